//! JSON lines beside serde_json's, one thread, into memory.

use tmrun_benches::{Case, Row, Table, measure, on_core};
use tmrun_formats::runtime::{
    GradientRef, GradientState, OperationRef, Record, TensorRef, ValueRef, encode,
};

use crate::Failure;

const RECORDS: u64 = 20_000;
const ROUNDS: usize = 31;

/// The same records with serde's derived serialisation.
mod derived {
    use serde::Serialize;

    #[derive(Serialize)]
    pub struct Operation<'a> {
        pub kind: &'a str,
        pub event_id: &'a str,
        pub op: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub static_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<&'a str>,
        pub inputs: &'a [&'a str],
        #[serde(skip_serializing_if = "Option::is_none")]
        pub output: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub step: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub duration_ns: Option<u64>,
    }

    #[derive(Serialize)]
    pub struct Value<'a> {
        pub kind: &'a str,
        pub event_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub static_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub step: Option<u64>,
        pub min: f64,
        pub max: f64,
        pub abs_max: f64,
        pub nonfinite_count: u64,
        pub saturated_count: u64,
    }

    #[derive(Serialize)]
    pub struct Tensor<'a> {
        pub kind: &'a str,
        pub event_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub static_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub step: Option<u64>,
        pub shape: &'a [u64],
        pub dtype: &'a str,
        pub device: &'a str,
        pub contiguous: bool,
        pub requires_grad: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub storage_id: Option<&'a str>,
    }

    #[derive(Serialize)]
    pub struct Gradient<'a> {
        pub kind: &'a str,
        pub event_id: &'a str,
        pub root: &'a str,
        pub key: &'a str,
        pub state: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub step: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub norm: Option<f64>,
    }
}

/// What varies from record to record, made beforehand.
struct Parts {
    event_ids: Vec<String>,
    tensors: Vec<String>,
    floats: Vec<f64>,
}

const NODES: [&str; 4] = [
    "model.encoder.layers.3.attn.q_proj",
    "model.encoder.layers.11.mlp.fc1",
    "model.embed",
    "model.decoder.layers.7.norm",
];

impl Parts {
    fn new() -> Self {
        let ids = 0..RECORDS;
        Self {
            event_ids: ids.clone().map(|i| format!("{:05}-{:010}", i % 7, i * 977)).collect(),
            tensors: ids.clone().map(|i| format!("tensor-{}", i * 31 % 100_003)).collect(),
            // As they come out of a reduction: all of a double's digits.
            floats: ids.map(|i| (i as f64 * 0.7310585786300049 + 0.1).sin() * 37.5).collect(),
        }
    }
}

/// The two forms of record `i`.
trait Pair {
    const KIND: &'static str;
    fn ours(out: &mut Vec<u8>, parts: &Parts, i: usize);
    fn theirs(out: &mut Vec<u8>, parts: &Parts, i: usize);
}

fn ours(out: &mut Vec<u8>, record: &impl Record) {
    encode::line(out, record).expect("a record that every reader takes");
}

fn theirs(out: &mut Vec<u8>, record: &impl serde::Serialize) {
    serde_json::to_writer(&mut *out, record).expect("memory takes everything");
    out.push(b'\n');
}

/// Declares a kind of record, with the same fields for both.
macro_rules! pair {
    ($name:ident, $kind:literal, $ours:ident { $($key:ident: $same:expr,)* } $($only:ident: ($a:expr, $b:expr),)? |$p:ident, $i:ident|) => {
        struct $name;

        impl Pair for $name {
            const KIND: &'static str = $kind;

            #[inline(always)]
            fn ours(out: &mut Vec<u8>, $p: &Parts, $i: usize) {
                let event_id = $p.event_ids[$i].as_str();
                ours(out, &$ours { event_id, $($key: $same,)* $($only: $a,)? });
            }

            #[inline(always)]
            fn theirs(out: &mut Vec<u8>, $p: &Parts, $i: usize) {
                let event_id = $p.event_ids[$i].as_str();
                let kind = $kind;
                theirs(out, &derived::$name { kind, event_id, $($key: $same,)* $($only: $b,)? });
            }
        }
    };
}

pair!(Operation, "operation", OperationRef {
    op: "matmul",
    static_id: None,
    source: Some("src/model.rs:117"),
    inputs: &[p.tensors[i].as_str(), p.tensors[i / 2].as_str()],
    output: Some(p.tensors[i / 3].as_str()),
    step: Some(i as u64 / 64),
    duration_ns: Some(i as u64 * 7919 % 3_000_000),
} |p, i|);

pair!(Value, "value", ValueRef {
    static_id: Some(NODES[i % 4]),
    source: None,
    step: Some(i as u64 / 64),
    min: -p.floats[i].abs(),
    max: p.floats[i].abs(),
    abs_max: p.floats[i].abs(),
    nonfinite_count: 0,
    saturated_count: i as u64 % 3,
} |p, i|);

pair!(Tensor, "tensor", TensorRef {
    static_id: Some(NODES[i % 4]),
    source: None,
    step: Some(i as u64 / 64),
    shape: &[32, i as u64 % 2048, 768],
    dtype: "f32",
    device: "cuda:0",
    contiguous: true,
    requires_grad: i.is_multiple_of(2),
    storage_id: Some(p.tensors[i].as_str()),
} |p, i|);

pair!(Gradient, "gradient", GradientRef {
    root: "loss",
    key: NODES[i % 4],
    step: Some(i as u64 / 64),
    norm: Some(p.floats[i].abs() + 0.1),
} state: (GradientState::Present, "present"), |p, i|);

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    on_core(0, || encode_all(table))
}

fn encode_all(table: &mut Table) -> Result<(), Failure> {
    let parts = Parts::new();
    row::<Operation>(table, &parts)?;
    row::<Value>(table, &parts)?;
    row::<Tensor>(table, &parts)?;
    row::<Gradient>(table, &parts)
}

fn row<P: Pair>(table: &mut Table, parts: &Parts) -> Result<(), Failure> {
    type Write = fn(&mut Vec<u8>, &Parts, usize);
    fn all(out: &mut Vec<u8>, parts: &Parts, write: impl Fn(&mut Vec<u8>, &Parts, usize)) {
        out.clear();
        for i in 0..RECORDS as usize {
            write(out, parts, i);
        }
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    all(&mut a, parts, P::ours as Write);
    all(&mut b, parts, P::theirs as Write);
    if a != b {
        return Err(format!("the {} records are not the same bytes", P::KIND).into());
    }
    let cases = [
        Case::new("ours", |_| all(&mut a, parts, P::ours)),
        Case::new("serde_json", |_| all(&mut b, parts, P::theirs)),
    ];
    let [ours, theirs] = measure(cases, ROUNDS, RECORDS);
    let name = format!("JSON lines, {} records, one thread", P::KIND);
    table.push(Row::speed(name, ours, "serde_json, derived", theirs).asked(4.0, 3.0));
    Ok(())
}
