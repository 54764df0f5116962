//! Recordings for the tests of the converter, and their conversion.

use serde_json::Value;
use tmrun::convert::{ConvertError, Form, Options, Plan, Schema};
use tmrun::scan::Recording;
use tmrun_formats::runtime::{RuntimeDocument, read};
use tmrun_formats::wire::{
    DeviceV1, Frame, Gradient, NameV1, Op, OpInput, Payload, Range, Record, RecordHeader, Shape,
    Step, Tensor, flags,
};
use tmrun_formats::{DType, DeviceCode, GradientState, NameId, Phase, StorageId, TensorId, Ticks};

use crate::support::{Builder, calibration, run};

/// A node with everything beside its name.
pub const FULL: u32 = 3;
/// A node that is only a name.
pub const BARE: u32 = 4;
pub const MATMUL: u32 = 5;
pub const ROOT: u32 = 6;
pub const EDGE_END: u32 = 7;
/// No frame defines it.
pub const NOWHERE: u32 = 99;

/// The first frames of a recording whose nanoseconds are its ticks.
pub fn frames() -> Vec<Frame<'static>> {
    let bare =
        |id, text| NameV1 { id: NameId(id), text, node_type: None, static_id: None, source: None };
    vec![
        Frame::Run(run()),
        Frame::Calibration(calibration(0, 0)),
        Frame::Name(NameV1 {
            node_type: Some("attention"),
            static_id: Some("fn:7"),
            source: Some("src/model.rs:40"),
            ..bare(FULL, "encoder.attn")
        }),
        Frame::Name(bare(BARE, "encoder.fc")),
        Frame::Name(bare(MATMUL, "matmul")),
        Frame::Name(bare(ROOT, "vb")),
        Frame::Name(NameV1 { static_id: Some("fn:8"), ..bare(EDGE_END, "encoder.out") }),
        Frame::Device(DeviceV1 { code: DeviceCode(1), name: "cuda:0" }),
    ]
}

/// A file of these records on lane 0.
pub fn file(records: &[Record]) -> Vec<u8> {
    lanes(&[(0, records)])
}

/// A file of these chunks of records.
pub fn lanes(chunks: &[(u16, &[Record])]) -> Vec<u8> {
    let start = Builder::new().meta(&frames());
    chunks.iter().fold(start, |file, (lane, records)| file.records(*lane, records)).done()
}

pub trait Done {
    fn done(self) -> Vec<u8>;
}

impl Done for Builder {
    /// The end without the builder's own calibration, so that nanoseconds stay ticks.
    fn done(self) -> Vec<u8> {
        self.index().trailer()
    }
}

/// A record at tick 2,000.
pub fn rec<P: Payload>(name: u32, flags: u16, payload: &P) -> Record {
    at(2_000, name, flags, payload)
}

pub fn at<P: Payload>(ticks: u64, name: u32, flags: u16, payload: &P) -> Record {
    let header = RecordHeader::of::<P>(P::KIND.level());
    Record::new(RecordHeader { ticks: Ticks(ticks), name: NameId(name), flags, ..header }, payload)
}

/// A continuation.
pub fn more<P: Payload>(flags: u16, payload: &P) -> Record {
    rec(0, flags | flags::CONTINUES, payload)
}

pub fn shape(dims: &[u64]) -> Record {
    let five = std::array::from_fn(|i| dims.get(i).copied().unwrap_or_default());
    more(dims.len() as u16, &Shape { dims: five })
}

/// A contiguous `f32` of two dimensions on the GPU.
pub fn tensor() -> Tensor {
    Tensor {
        tensor: TensorId(0x51),
        storage: StorageId(0xab),
        rank: 2,
        dtype: DType::F32,
        device: DeviceCode(1),
        dims: [2, 3, 0, 0, 0],
        ..Tensor::default()
    }
}

pub fn op(end: u64, inputs: u8) -> Op {
    let (end, op) = (Ticks(end), NameId(MATMUL));
    Op { end, op, inputs, output: TensorId(0x51), ..Op::default() }
}

pub fn inputs(ids: [u64; 5]) -> OpInput {
    OpInput { tensors: ids.map(TensorId) }
}

pub fn range(min: f64, max: f64) -> Range {
    Range { min, max, ..Range::default() }
}

pub fn gradient(key: u32, state: GradientState, norm: Option<f64>) -> Record {
    let flags = if norm.is_some() { flags::GRADIENT_NORM } else { 0 };
    rec(key, flags, &Gradient { norm: norm.unwrap_or_default(), root: NameId(ROOT), state })
}

pub fn mark(ticks: u64, number: u64, phase: Phase, end: bool) -> Record {
    let flags = if end { flags::STEP_END } else { 0 };
    at(ticks, 0, flags, &Step { number, micro_batch: 0, phase })
}

/// The records of a step, between its marks.
pub fn in_step(number: u64, records: &[Record]) -> Vec<Record> {
    let marks = [false, true].map(|end| mark(number * 1_000, number, Phase(0), end));
    [&marks[..1], records, &marks[1..]].concat()
}

pub fn lines() -> Options {
    Options { form: Form::Lines, ..Options::default() }
}

pub fn schema(schema: Schema) -> Options {
    Options { schema, ..Options::default() }
}

/// The trace of a file, as bytes.
pub fn convert(file: &[u8], options: Options) -> Result<Vec<u8>, ConvertError> {
    let recording = Recording::open(file, "test").expect("a header");
    let mut out = Vec::new();
    Plan::of(&recording, options)?.write(&mut out, &|_| ())?;
    Ok(out)
}

/// The trace of a file as a document, which both our reader and serde accept.
pub fn document(file: &[u8], options: Options) -> Value {
    let out = convert(file, options).expect("converted");
    trace(&out);
    serde_json::from_slice(&out).expect("JSON")
}

/// The default trace of records on lane 0.
pub fn of(records: &[Record]) -> Value {
    document(&file(records), Options::default())
}

pub fn trace(out: &[u8]) -> RuntimeDocument {
    read(out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(out)))
}
