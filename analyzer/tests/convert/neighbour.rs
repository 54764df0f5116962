//! The real candle-graph 0.3.0 reads what comes of the real recorder's file.

use candle_graph_v03::runtime as theirs;
use tmrun::audit::audit;
use tmrun::convert::{Form, Options, Plan, Schema};
use tmrun::scan::Recording;
use tmrun_formats::EdgeKind;
use tmrun_formats::runtime::Section;
use tmrun_formats::wire::{ClockSync, DeviceInterval, Edge, Hit, Kind, Scalar};
use tmrun_probe_core::{
    DeviceMemoryFact, GradientState, Level, MemoryFact, NameId, Node, OpFact, ProfileRun, Range,
    Stats, StorageId, Target, TensorFact, TensorId, probe, scalar, span,
};

use crate::make::{self, BARE, FULL, convert, lanes, more, rec, tensor, trace};

probe!(static PROBE: lanes = 4, slots = 1 << 12);

/// One of everything that the recorder records, in each of three steps, and a tensor outside.
fn record(path: &std::path::Path, level: Level) {
    let run = ProfileRun::training("trainer::update", 1, "cpu").level(level);
    let run = run.cargo_features(["cuda"]).cfg(["unix"]).analysis_id("a").build_id("b");
    let recording = PROBE.record(path, run).expect("it starts");
    let probe = PROBE.probe();
    let node = probe.node(&Node {
        name: "encoder.fc",
        node_type: Some("linear"),
        static_id: Some("fn:1"),
        source: Some("src/model.rs:7"),
    });
    let [op, root, key, other] =
        ["matmul", "vb", "fc.weight", "encoder.out"].map(|n| probe.name(n));
    let shape = [2, 3];
    let (dtype, device) = (probe.dtype("f32"), probe.device("cpu"));
    let fact = TensorFact {
        tensor: TensorId(7),
        storage: StorageId(0x7f00),
        shape: &shape,
        dtype,
        device,
        contiguous: Some(true),
        requires_grad: true,
        ..TensorFact::default()
    };
    PROBE.at(Level::METADATA, |recorder| recorder.tensor(NameId::NONE, &fact));
    for update in 1..=3 {
        let _step = PROBE.step(update);
        let _forward = span!(PROBE, "forward");
        scalar!(PROBE, "loss", 1.0 / update as f64);
        PROBE.at(Level::TIMING, |recorder| {
            let start = recorder.now();
            let inputs: Vec<TensorId> = (1..=7).map(TensorId).collect();
            recorder.op(
                node,
                &OpFact {
                    op,
                    start,
                    end: recorder.now(),
                    output: TensorId(7),
                    shape: Some(&shape),
                    dtype,
                    device,
                    inputs: &inputs,
                    input_bytes: Some(24),
                    ..OpFact::default()
                },
            );
            recorder.static_edge(node, other, 1_000);
            recorder.data_edge(TensorId(1), TensorId(7));
        });
        PROBE.at(Level::METADATA, |recorder| {
            recorder.tensor(node, &fact);
            recorder.tensor(node, &TensorFact { shape: &[1, 2, 3, 4, 5, 6], ..fact });
            recorder.gradient(root, key, GradientState::PRESENT, Some(0.5));
            let memory = MemoryFact { storage: fact.storage, bytes: 64, ..MemoryFact::default() };
            recorder.alloc(node, &memory);
            recorder.free(node, &memory);
            recorder.device_memory(&DeviceMemoryFact { used: Some(1), ..Default::default() });
        });
        PROBE.at(Level::NUMERICS, |recorder| {
            let stats = Stats { count: 6, rms: 1.0, abs_max: 2.0, ..Stats::default() };
            let range = Range { min: -2.0, max: 1.0, ..Range::default() };
            recorder.stats(node, &fact, true, &stats, Some(&range));
            recorder.stats(node, &fact, false, &stats, Some(&range));
            recorder.stats(node, &fact, false, &stats, None);
            recorder.range(node, &range);
        });
    }
    recording.finish().expect("it ends");
}

fn theirs_of(text: &[u8]) -> theirs::RuntimeTrace {
    let trace = theirs::parse(std::str::from_utf8(text).expect("text")).expect("it parses");
    trace.validate().expect("it validates");
    trace.finalize().expect("it is final")
}

fn their_counts(trace: &theirs::RuntimeTrace) -> [u64; 5] {
    [
        trace.tensors.len(),
        trace.operations.len(),
        trace.gradients.len(),
        trace.values.len(),
        trace.edge_timings.len(),
    ]
    .map(|n| n as u64)
}

#[test]
fn the_neighbour_reads_every_form_of_a_recorded_run_and_counts_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    // Twice on one probe: a recording that was started again in its process.
    for round in 0..2 {
        let path = folder.path().join(format!("{round}.tmrun"));
        record(&path, Level::NUMERICS);
        let file = std::fs::read(&path).expect("the file");
        let recording = Recording::open(&file, "run").expect("a header");
        let plan = Plan::of(&recording, Options::default()).expect("a plan");
        assert_eq!(
            plan.lost().collect::<Vec<_>>(),
            Vec::<&tmrun::scan::Gap>::new(),
            "round {round}"
        );
        let ours = Section::ALL.map(|section| plan.observations(section));
        // Outside 1 tensor; a step: 3 tensors, 1 operation, 1 gradient, 4 ranges, 1 edge.
        assert_eq!(ours, [1 + 9, 3, 3, 12, 3]);
        for form in [Form::Document, Form::Lines] {
            let out = convert(&file, Options { form, ..Options::default() }).expect("converted");
            let trace = theirs_of(&out);
            assert_eq!(their_counts(&trace), ours);
            assert_eq!(trace.run.phase.as_deref(), Some("train"));
            assert_eq!(trace.run.entrypoint, "trainer::update");
            assert!(trace.tensors.iter().filter(|tensor| tensor.step.is_none()).count() == 1);
            assert!(trace.operations.iter().all(|op| op.inputs.len() == 7));
        }
        for (schema, expected) in [(Schema::V1, [3, 1, 1, 0, 0]), (Schema::V2, [3, 1, 1, 4, 0])] {
            let options = Options { schema, step: Some(2), ..Options::default() };
            assert_eq!(
                their_counts(&theirs_of(&convert(&file, options).expect("converted"))),
                expected
            );
        }
    }
    // What a run recorded at level 0 has.
    let path = folder.path().join("pulse.tmrun");
    record(&path, Level::PULSE);
    let file = std::fs::read(&path).expect("the file");
    assert_eq!(
        their_counts(&theirs_of(&convert(&file, Options::default()).expect("converted"))),
        [0, 0, 0, 3, 0]
    );
}

#[test]
fn a_healthy_runs_audit_is_clean() {
    let grads = |n: u64| make::gradient(BARE, GradientState::PRESENT, Some(n as f64));
    let records: Vec<_> = (1..=4)
        .flat_map(|n| {
            make::in_step(
                n,
                &[rec(FULL, 0, &tensor()), rec(BARE, 0, &make::op(2_100, 0)), grads(n)],
            )
        })
        .collect();
    let out = convert(&make::file(&records), Options::default()).expect("converted");
    let report = audit(&trace(&out), None);
    assert!(report.is_clean() && !report.has_findings(), "{report:?}");
    assert!(theirs_of(&out).audit().is_clean());
}

#[test]
fn every_kind_of_record_at_once_is_a_valid_trace() {
    let edge = Edge { from: 1, to: 2, kind: EdgeKind::CALL, ..Edge::default() };
    let lane = make::in_step(
        1,
        &[
            rec(FULL, 0, &tensor()),
            more(0, &Stats { count: 2, ..Stats::default() }),
            more(0, &Range { min: 0.0, max: 1.0, ..Range::default() }),
            rec(BARE, 0, &Scalar { value: f64::NAN }),
            rec(0, 0, &edge),
            rec(BARE, 0, &Hit::default()),
        ],
    );
    let own = [rec(0, 0, &ClockSync::default()), rec(0, 0, &DeviceInterval::default())];
    let file = lanes(&[(0, &lane), (1, &lane), (u16::MAX, &own)]);
    let out = convert(&file, Options::default()).expect("converted");
    assert_eq!(their_counts(&theirs_of(&out)), [2, 0, 0, 4, 0]);
}

#[test]
fn a_file_of_every_record_kind_and_every_frame_is_a_valid_trace_of_the_same_counts() {
    let file: &[u8] = include_bytes!("../../../testdata/v1/every.tmrun");
    let recording = Recording::open(file, "every").expect("a header");
    for kind in Kind::ALL {
        assert!(recording.counts().of(*kind) > 0, "the fixture lacks {}", kind.name());
    }
    let count = |kind| recording.counts().of(kind);
    // One tensor describes a statistic alone, whose range is a value, as the scalar is; the edge is
    // one of a call, which the schema has no place for.
    let expected = [
        count(Kind::Tensor) - count(Kind::Stats),
        count(Kind::Op),
        count(Kind::Gradient),
        count(Kind::Range) + count(Kind::Scalar),
        count(Kind::Edge) - 1,
    ];
    for form in [Form::Document, Form::Lines] {
        let options = Options { form, ..Options::default() };
        let out = convert(file, options).expect("converted");
        assert_eq!(their_counts(&theirs_of(&out)), expected);
        let ours = trace(&out);
        assert_eq!(ours.gaps.len(), recording.gaps().len());
    }
}
