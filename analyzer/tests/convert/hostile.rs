//! Names of any content, in every field that a name can reach.

use tmrun::convert::Options;
use tmrun_formats::wire::{
    DTypeV1, DeviceV1, Edge, Frame, Gradient, ItemV1, NameV1, Op, OpInput, Record, RunV1, Scalar,
    Tensor, flags,
};
use tmrun_formats::{DType, DeviceCode, EdgeKind, GradientState, NameId, StorageId, TensorId};

use crate::make::{Done, convert, lines, rec, trace};
use crate::support::{Builder, run};

/// A file in which every string that can be is this text.
fn everywhere(text: &str) -> Vec<u8> {
    let some = Some(text);
    let first = [
        Frame::Run(RunV1 {
            entrypoint: text,
            profile: text,
            analysis_id: some,
            build_id: some,
            ..run()
        }),
        Frame::CargoFeature(ItemV1 { text }),
        Frame::Cfg(ItemV1 { text }),
        Frame::Name(NameV1 { id: NameId(1), text, node_type: some, static_id: some, source: some }),
        Frame::DType(DTypeV1 { code: DType(128), name: text, bits: 3 }),
        Frame::Device(DeviceV1 { code: DeviceCode(1), name: text }),
    ];
    let (dtype, device, op) = (DType(128), DeviceCode(1), NameId(1));
    let tensor = Tensor { storage: StorageId(1), dtype, device, ..Tensor::default() };
    let named = flags::OP_OUTPUT_NAMED;
    let records: Vec<Record> = vec![
        rec(1, flags::STORAGE_NAMED, &tensor),
        rec(1, named, &Op { output: TensorId(1), op, inputs: 1, ..Op::default() }),
        rec(0, flags::CONTINUES | flags::OP_INPUT_NAMED, &OpInput { tensors: [TensorId(1); 5] }),
        rec(1, 0, &Gradient { norm: 0.0, root: op, state: GradientState::MISSING }),
        rec(1, 0, &Scalar { value: 0.5 }),
        rec(0, 0, &Edge { from: 1, to: 1, kind: EdgeKind::STATIC, ..Edge::default() }),
    ];
    Builder::new().meta(&first).records(0, &records).done()
}

#[test]
fn every_string_survives_in_every_field() {
    let controls: String = (0..0x20).map(char::from).chain(['\u{7f}', '\u{85}']).collect();
    let long = "x\u{2028}\"".repeat(13_000);
    assert!(long.len() == 65_000);
    for text in [
        "",
        "plain",
        "\"quoted\" \\ back",
        &controls,
        "\u{2028}\u{2029}\u{feff}",
        &long,
        "🙂 é 漢 \u{10FFFF}",
        "</script><!--",
        "{\"kind\":\"meta\"}\n",
        "null",
        "\\u0000",
    ] {
        let file = everywhere(text);
        for options in [Options::default(), lines()] {
            let out = convert(&file, options).expect("converted");
            assert!(out.starts_with(b"{"), "no byte order mark");
            assert!(out.iter().all(|&byte| byte >= 0x20 || byte == b'\n'));
            let trace = trace(&out);
            let (tensor, op) = (&trace.tensors[0], &trace.operations[0]);
            let (gradient, value) = (&trace.gradients[0], &trace.values[0]);
            let edge = &trace.edge_timings[0];
            let fields = [
                &trace.run.entrypoint,
                &trace.run.profile,
                &trace.run.cargo_features[0],
                &trace.run.cfg[0],
                &tensor.dtype,
                &tensor.device,
                &op.op,
                &op.inputs[0],
                &gradient.root,
                &gradient.key,
                &edge.from_static_id,
                &edge.to_static_id,
            ];
            assert!(fields.iter().all(|field| field.as_str() == text));
            let optional = [
                &trace.run.analysis_id,
                &trace.run.build_id,
                &tensor.static_id,
                &tensor.source,
                &tensor.storage_id,
                &op.static_id,
                &op.source,
                &op.output,
                &value.static_id,
                &value.source,
            ];
            assert!(optional.iter().all(|field| field.as_deref() == Some(text)), "{text:?}");
        }
    }
}

#[test]
fn one_piece_or_many_the_text_is_the_same() {
    // So long a name that every few records fill a piece, and the chunk is gone on with.
    let name = "n".repeat(60_000);
    let frame =
        NameV1 { id: NameId(1), text: &name, node_type: None, static_id: None, source: None };
    let records = vec![rec(1, 0, &Scalar { value: 0.5 }); 200];
    let file = Builder::new().meta(&[Frame::Run(run()), Frame::Name(frame)]).records(0, &records);
    let file = file.done();
    for options in [Options::default(), lines()] {
        let out = convert(&file, options).expect("converted");
        let values = trace(&out).values;
        assert_eq!(values.len(), 200);
        assert!(values.iter().all(|value| value.source.as_deref() == Some(&name)));
        assert!(values.windows(2).all(|pair| pair[0].event_id < pair[1].event_id));
    }
}
