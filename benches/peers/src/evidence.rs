//! Evidence from a trace's file, ours and candle-graph's, by turns.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

use tmrun::evidence::{derive, read};
use tmrun_benches::{Case, Row, Table, measure};

use crate::Failure;

/// The traces: what each holds beside its spans, how many spans, and how often it is measured.
const SHAPES: [(Shape, u64, usize); 6] = [
    (Shape::Ops, 1_000, 9),
    (Shape::Ops, 8_000, 3),
    (Shape::Ops, 32_000, 1),
    (Shape::OpsAndStorages, 1_000, 3),
    (Shape::OpsAndStorages, 4_000, 1),
    (Shape::Spans, 1_000_000, 1),
];

/// Where candle-graph would take hours: ours of so many spans beside ours of a quarter of them.
const ALONE: [(Shape, u64); 4] = [
    (Shape::Ops, 128_000),
    (Shape::Ops, 512_000),
    (Shape::OpsAndStorages, 256_000),
    (Shape::Spans, 4_000_000),
];

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Spans,
    Ops,
    OpsAndStorages,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::Spans => "flat spans",
            Self::Ops => "spans with an operation each",
            Self::OpsAndStorages => "spans with an operation and a storage each",
        }
    }
}

/// Rows of every shape; threads are as many as there are cores.
pub fn rows(table: &mut Table) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.jsonl");
    for (shape, spans, rounds) in SHAPES {
        std::fs::write(&path, trace(shape, spans))?;
        ours(&path)?;
        let cases = [
            Case::new("ours", |_| ours(&path).expect("it was derived before")),
            Case::new("theirs", |_| {
                black_box(candle_graph::build_evidence(&path, None).expect("a trace"));
            }),
        ];
        let [ours, theirs] = measure(cases, rounds, 1);
        let name = format!("evidence, {spans} {}", shape.name());
        let row = Row::cost(name, ours, "candle-graph's", theirs);
        let is_asked = (shape, spans) == (Shape::Ops, 32_000);
        table.push(if is_asked { row.asked(0.01, 0.05) } else { row });
    }
    let quarter = folder.path().join("quarter.jsonl");
    for (shape, spans) in ALONE {
        std::fs::write(&path, trace(shape, spans))?;
        std::fs::write(&quarter, trace(shape, spans / 4))?;
        let cases = [
            Case::new("whole", |_| ours(&path).expect("a trace")),
            Case::new("quarter", |_| ours(&quarter).expect("a trace")),
        ];
        let [whole, quarter] = measure(cases, 3, 1);
        let name = format!("evidence, {spans} {}: ours alone", shape.name());
        table.push(Row::cost(name, whole, "a quarter of it (4 is linear)", quarter));
    }
    Ok(())
}

fn ours(path: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(path)?;
    let trace = read(&bytes)?;
    black_box(derive(&trace, None, None)?);
    Ok(())
}

/// Spans one after another: with something in them below one that is measured, else without a parent,
/// because candle-graph takes minutes for a million of one parent.
fn trace(shape: Shape, spans: u64) -> String {
    let mut text = String::from(
        r#"{"kind":"meta","schema":"candle-graph/trace/10","run_id":"r","correlation_id":"c","entrypoint":"e","phase":"infer","timestamp":"t","capture_step":1,"warmup_steps":0,"device":"cpu","timing_mode":"host","capture_contract":{"measurement_scope":"unknown","operations":"partial","logical_memory":"partial","physical_memory":"none","device_timing":"none"},"tags":{}}"#,
    );
    let end = spans * 100;
    let _ = write!(
        text,
        r#"
{{"kind":"span_start","id":"s1","name":"step","start_ns":0,"span_kind":"function","measured":true}}"#
    );
    let parent = if shape == Shape::Spans { "" } else { r#""parent_id":"s1","# };
    for n in 2..=spans {
        let (id, start) = (format!("s{n}"), (n - 1) * 100);
        let _ = write!(
            text,
            r#"
{{"kind":"span_start","id":"{id}",{parent}"name":"layer","start_ns":{start},"span_kind":"module","measured":false}}"#
        );
        if shape != Shape::Spans {
            let at = start + 10;
            let _ = write!(
                text,
                r#"
{{"kind":"op","span_id":"{id}","op_name":"matmul","inputs":["t{n}"],"output":"u{n}","shape":[16,32],"dtype":"f32","device":"cpu","duration_ns":40,"timestamp_ns":{at},"input_dense_bytes":2048}}"#
            );
        }
        if shape == Shape::OpsAndStorages {
            for (action, at) in [("alloc", start + 20), ("free", start + 60)] {
                let _ = write!(
                    text,
                    r#"
{{"kind":"memory","timestamp_ns":{at},"storage_id":"p{n}","tensor_id":"u{n}","span_id":"{id}","op_name":"matmul","device":"cpu","bytes":2048,"action":"{action}","shape":[16,32],"dtype":"f32","category":"activation"}}"#
                );
            }
        }
        let _ = write!(
            text,
            r#"
{{"kind":"span_end","id":"{id}","duration_ns":80}}"#
        );
    }
    let _ = write!(
        text,
        r#"
{{"kind":"span_end","id":"s1","duration_ns":{end}}}
{{"kind":"terminal","outcome":"complete","timestamp_ns":{end}}}
"#
    );
    text
}
