//! What each kind of record becomes.

use serde_json::{Value, json};
use tmrun::convert::{Options, Schema};
use tmrun_formats::runtime::Section;
use tmrun_formats::wire::{
    Alloc, Control, DeviceMemory, Edge, Frame, Free, Hit, ItemV1, OpInput, RunV1, Scalar, Span,
    Stats, Tensor, flags,
};
use tmrun_formats::{DType, DeviceCode, EdgeKind, NameId, StorageId, TensorId};

use crate::make::{
    BARE, EDGE_END, FULL, MATMUL, NOWHERE, at, document, file, frames, in_step, inputs, lanes,
    more, of, op, range, rec, schema, shape, tensor,
};
use crate::support::{Builder, run};

#[test]
fn a_tensor_keeps_identity_shape_dtype_device_and_flags() {
    let known = flags::TENSOR_LAYOUT | flags::TENSOR_CONTIGUOUS | flags::TENSOR_REQUIRES_GRAD;
    let found = of(&[rec(FULL, known, &tensor())]);
    assert_eq!(
        found["tensors"],
        json!([{
            "event_id": "00000-00000000000000000000",
            "static_id": "fn:7",
            "source": "src/model.rs:40",
            "shape": [2, 3],
            "dtype": "f32",
            "device": "cuda:0",
            "contiguous": true,
            "requires_grad": true,
            "storage_id": "0x00000000000000ab",
        }])
    );
    assert_eq!(found["run"]["phase"], "train");
    assert_eq!(found["gaps"], json!([]));
    assert_eq!(found["not_represented"], json!({}));
    assert!(found.get("notes").is_none());
}

#[test]
fn what_is_not_known_of_a_tensor_is_not_invented() {
    let bare = Tensor { rank: 0, storage: StorageId::NONE, dtype: DType(0), ..tensor() };
    let found = of(&[
        rec(BARE, 0, &Tensor { device: DeviceCode(9), ..bare }),
        rec(BARE, flags::TENSOR_CONTIGUOUS, &Tensor { device: DeviceCode(0), ..bare }),
    ]);
    assert_eq!(found["tensors"][0]["shape"], json!([]), "a scalar has no dimensions");
    for tensor in found["tensors"].as_array().expect("tensors") {
        assert_eq!(tensor["contiguous"], false, "an unknown layout promises nothing");
        assert_eq!((&tensor["dtype"], &tensor["device"]), (&json!("unknown"), &json!("unknown")));
        assert_eq!(tensor["source"], "encoder.fc", "a node without a source is its name");
        assert!(tensor.get("static_id").is_none() && tensor.get("storage_id").is_none());
    }
}

#[test]
fn long_and_large_shapes_come_from_their_shape_records() {
    let seven = Tensor { rank: 7, dims: [0; 5], ..tensor() };
    let large = Tensor { rank: 1, dims: [0; 5], ..tensor() };
    let found = of(&[
        rec(BARE, 0, &seven),
        shape(&[1, 2, 3, 4, 5]),
        shape(&[6, 7]),
        rec(BARE, 0, &large),
        shape(&[u64::MAX]),
        rec(BARE, 0, &seven),
        shape(&[1, 2, 3, 4, 5]),
        rec(BARE, 0, &seven),
    ]);
    assert_eq!(found["tensors"][0]["shape"], json!([1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(found["tensors"][1]["shape"], json!([u64::MAX]));
    assert_eq!(found["tensors"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["not_represented"], json!({"tensor": 2}), "a part of a shape is no shape");
}

#[test]
fn an_operation_keeps_name_inputs_output_and_duration() {
    let named = flags::OP_INPUT_NAMED << 1;
    let found = of(&[
        rec(FULL, 0, &op(2_750, 6)),
        shape(&[2, 3]),
        more(named, &inputs([1, BARE.into(), 0, u64::MAX, 5])),
        more(0, &inputs([6, 7, 8, 9, 10])),
    ]);
    assert_eq!(
        found["operations"],
        json!([{
            "event_id": "00000-00000000000000000000",
            "op": "matmul",
            "static_id": "fn:7",
            "source": "src/model.rs:40",
            "inputs": [
                "0x0000000000000001", "encoder.fc", "unnamed", "0xffffffffffffffff",
                "0x0000000000000005", "0x0000000000000006"
            ],
            "output": "0x0000000000000051",
            "duration_ns": 750,
        }])
    );
    assert_eq!(found["notes"], json!({"unnamed": 1}), "an input without identity keeps its place");
}

#[test]
fn an_operation_that_lost_inputs_or_ends_before_it_begins_says_so() {
    let found = of(&[
        rec(BARE, flags::TRUNCATED, &op(2_000, 0)),
        rec(BARE, 0, &op(1_999, 7)),
        more(0, &OpInput { tensors: [TensorId(1); 5] }),
    ]);
    assert_eq!(found["operations"][0]["duration_ns"], 0);
    assert!(found["operations"][1].get("duration_ns").is_none());
    assert_eq!(found["operations"][1]["inputs"].as_array().map(Vec::len), Some(5));
    assert_eq!(found["notes"], json!({"truncated_inputs": 2}));
    assert_eq!(found["not_represented"], json!({"operations.duration_ns": 1}));
}

#[test]
fn a_static_edge_is_a_timing_between_static_ids_or_names() {
    let edge = Edge { from: FULL.into(), to: BARE.into(), duration: 300, ..Edge::default() };
    let edge = Edge { kind: EdgeKind::STATIC, ..edge };
    let found = of(&[
        rec(0, 0, &edge),
        rec(0, 0, &Edge { from: u64::MAX, to: EDGE_END.into(), ..edge }),
        rec(0, 0, &Edge { kind: EdgeKind::CALL, ..edge }),
        rec(0, 0, &Edge { kind: EdgeKind::DATA, ..edge }),
        rec(0, 0, &Edge { kind: EdgeKind(77), ..edge }),
    ]);
    let timing = |event: u64, from, to| {
        json!({"event_id": format!("00000-{event:020}"), "from_static_id": from,
               "to_static_id": to, "duration_ns": 300})
    };
    let placeholder = "unnamed:18446744073709551615";
    assert_eq!(
        found["edge_timings"],
        json!([timing(0, "fn:7", "encoder.fc"), timing(1, placeholder, "fn:8")])
    );
    let absent = json!({"call_edge": 1, "data_edge": 1, "other_edge": 1});
    assert_eq!(found["not_represented"], absent);
}

#[test]
fn whatever_has_no_place_is_counted_by_kind() {
    let newer = {
        let mut words = rec(0, 0, &Scalar { value: 1.0 }).words();
        words[2] |= 0xF0 << 32;
        tmrun_formats::wire::Record::from_words(words)
    };
    let found = of(&[
        rec(BARE, 0, &Span::default()),
        rec(BARE, 0, &Alloc::default()),
        shape(&[4]),
        rec(BARE, 0, &Free::default()),
        rec(BARE, 0, &DeviceMemory::default()),
        rec(BARE, 0, &Control::default()),
        rec(BARE, 0, &Hit::default()),
        newer,
        rec(BARE, flags::TENSOR_CONTEXT, &tensor()),
        more(0, &Stats { count: 6, ..Stats::default() }),
        rec(BARE, flags::TENSOR_CONTEXT, &tensor()),
    ]);
    for section in Section::ALL {
        assert_eq!(found[section.key()], json!([]));
    }
    assert_eq!(
        found["not_represented"],
        json!({"span": 1, "context_tensor": 1, "stats": 1, "alloc": 1, "free": 1,
               "device_memory": 1, "control": 1, "hit": 1, "unknown": 1})
    );
}

#[test]
fn a_missing_name_is_a_placeholder_and_counted() {
    let found = of(&[
        rec(NOWHERE, flags::STORAGE_NAMED, &Tensor { storage: StorageId(98), ..tensor() }),
        rec(0, 0, &tmrun_formats::wire::Op { op: NameId(NOWHERE), ..op(2_000, 0) }),
        rec(BARE, flags::STORAGE_NAMED, &Tensor { storage: StorageId(MATMUL.into()), ..tensor() }),
    ]);
    assert_eq!(found["tensors"][0]["source"], "unnamed:99");
    assert_eq!(found["tensors"][0]["storage_id"], "unnamed:98");
    assert_eq!(found["tensors"][1]["storage_id"], "matmul");
    assert_eq!(found["operations"][0]["source"], "unnamed");
    assert_eq!(found["operations"][0]["op"], "unnamed:99");
    assert_eq!(found["notes"], json!({"unnamed": 4}));
}

#[test]
fn a_recording_without_run_metadata_converts_and_says_so() {
    let file = Builder::new().meta(&frames()[1..]).records(0, &[rec(BARE, 0, &tensor())]);
    let found = document(&file.index().trailer(), Options::default());
    assert_eq!(
        found["run"],
        json!({"entrypoint": "unknown", "profile": "unknown",
                                    "cargo_features": [], "cfg": []})
    );
    assert_eq!(found["notes"], json!({"no_run_metadata": 1}));
}

#[test]
fn an_older_schema_carries_less_and_counts_what_it_leaves_out() {
    let edge =
        Edge { from: FULL.into(), to: BARE.into(), kind: EdgeKind::STATIC, ..Edge::default() };
    let file = file(&in_step(
        4,
        &[
            rec(BARE, 0, &tensor()),
            rec(BARE, 0, &op(2_500, 0)),
            crate::make::gradient(BARE, tmrun_formats::GradientState::ZERO, None),
            rec(BARE, 0, &range(0.0, 1.0)),
            rec(0, 0, &edge),
        ],
    ));
    let v1 = document(&file, schema(Schema::V1));
    assert_eq!(v1["schema"], "candle-graph/runtime/1");
    for key in ["values", "edge_timings"] {
        assert!(v1.get(key).is_none(), "{key}");
    }
    for section in ["tensors", "operations", "gradients"] {
        assert!(v1[section][0].get("step").is_none(), "{section}");
    }
    assert!(v1["run"].get("phase").is_none());
    assert_eq!(
        v1["not_represented"],
        json!({"step": 2, "value": 1, "edge_timing": 1, "run.phase": 1, "tensors.step": 1,
               "operations.step": 1, "gradients.step": 1, "operations.duration_ns": 1})
    );
    let v2 = document(&file, schema(Schema::V2));
    assert_eq!((&v2["tensors"][0]["step"], &v2["values"][0]["step"]), (&json!(4), &json!(4)));
    assert_eq!(
        v2["not_represented"],
        json!({"step": 2, "edge_timing": 1, "run.phase": 1, "operations.duration_ns": 1})
    );
    let v3 = document(&file, schema(Schema::V3));
    assert_eq!(v3["edge_timings"][0]["step"], 4);
    assert_eq!(v3["operations"][0]["duration_ns"], 500);
    assert_eq!(v3["not_represented"], json!({"step": 2}));
}

#[test]
fn numbers_keep_all_64_bits() {
    let huge = 9_007_199_254_740_993_u64;
    for step in [huge, u64::MAX] {
        let edge =
            Edge { from: FULL.into(), to: BARE.into(), duration: u64::MAX, ..Edge::default() };
        let edge = at(u64::MAX, 0, 0, &Edge { kind: EdgeKind::STATIC, ..edge });
        let op = at(0, BARE, 0, &op(step, 0));
        let found = of(&in_step_at(step, &[op, edge]));
        assert_eq!(found["operations"][0]["step"].as_u64(), Some(step));
        assert_eq!(found["operations"][0]["duration_ns"].as_u64(), Some(step));
        assert_eq!(found["edge_timings"][0]["duration_ns"].as_u64(), Some(u64::MAX));
    }
}

fn in_step_at(
    step: u64,
    records: &[tmrun_formats::wire::Record],
) -> Vec<tmrun_formats::wire::Record> {
    let mark = crate::make::mark(1, step, tmrun_formats::Phase(0), false);
    [&[mark], records].concat()
}

#[test]
fn event_ids_are_unique_over_all_collections_and_sort_as_events() {
    let both = [
        rec(BARE, 0, &tensor()),
        more(0, &Stats { count: 6, ..Stats::default() }),
        more(0, &range(-1.0, 2.0)),
    ];
    let ops = vec![rec(BARE, 0, &op(2_100, 0)); 12];
    let found = document(&lanes(&[(0, &both), (0, &ops), (7, &both)]), Options::default());
    let ids = |section: &str| -> Vec<String> {
        let items = found[section].as_array().expect("a collection").iter();
        items.map(|item| item["event_id"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(ids("tensors")[0], "00000-00000000000000000000");
    assert_eq!(ids("values")[0], "00000-00000000000000000002", "the range's own position");
    assert!(ids("operations").is_sorted() && ids("operations").len() == 12);
    let mut all: Vec<String> =
        ["tensors", "operations", "values"].iter().flat_map(|section| ids(section)).collect();
    assert_eq!(all.len(), 16);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 16);
}

#[test]
fn run_metadata_is_carried_over() {
    let mut first = frames();
    let (analysis_id, build_id) = (Some("an\"alysis"), Some("build"));
    first[0] = Frame::Run(RunV1 { analysis_id, build_id, ..run() });
    first.push(Frame::CargoFeature(ItemV1 { text: "cuda" }));
    first.push(Frame::Cfg(ItemV1 { text: "target_os=\"linux\"" }));
    let found = document(&Builder::new().meta(&first).index().trailer(), Options::default());
    let expected: Value = json!({
        "entrypoint": "trainer::update", "profile": "release", "cargo_features": ["cuda"],
        "cfg": ["target_os=\"linux\""], "analysis_id": "an\"alysis", "build_id": "build",
        "phase": "train"
    });
    assert_eq!(found["run"], expected);
}
