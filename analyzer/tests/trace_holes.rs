//! Traces of recordings of which something is missing, or stands at another time than what it is of.

mod support;

use candle_graph_v10 as neighbour;
use support::Builder;
use support::record::{gap, level, span, step};
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::{Derived, LeftOut, MovedFacts, MovedSpan, Trace};
use tmrun_formats::trace::{self, CoverageLevel};
use tmrun_formats::wire::{
    Alloc, ContractV1, Edge, Frame, Free, Gap, Gradient, LabelV1, Payload, Record, RecordHeader,
    Scalar, Span, Tensor, flags,
};
use tmrun_formats::{
    EdgeKind, GapReason, GradientState, LaneId, Level, NameId, Planes, SpanId, StorageId, TensorId,
    Ticks,
};

/// A record of something within a span.
fn of<P: Payload>(ticks: u64, within: u32, flags: u16, payload: &P) -> Record {
    let header = RecordHeader::of::<P>(Level::METADATA);
    let (ticks, name) = (Ticks(ticks), NameId(2));
    Record::new(RecordHeader { ticks, name, flags, span: within, ..header }, payload)
}

/// A span within another one.
fn inner(start: u64, end: u64, id: u32, parent: u64) -> Record {
    let payload =
        Span { end: Ticks(end), parent: SpanId(parent), depth: parent as u16, ..Span::default() };
    of(start, id, 0, &payload)
}

fn scalar(ticks: u64, within: u32) -> Record {
    of(ticks, within, 0, &Scalar { value: 0.5 })
}

fn alloc(ticks: u64, storage: u64, tensor: u64, bytes: u64) -> Record {
    let (storage, tensor) = (StorageId(storage), TensorId(tensor));
    of(ticks, 0, 0, &Alloc { storage, tensor, bytes, ..Alloc::default() })
}

fn free(ticks: u64, storage: u64, tensor: u64, bytes: u64) -> Record {
    let (storage, tensor) = (StorageId(storage), TensorId(tensor));
    of(ticks, 0, 0, &Free { storage, tensor, bytes, ..Free::default() })
}

fn missing(planes: Planes, reason: GapReason) -> Record {
    let payload = Gap {
        first: Ticks(1_300),
        last: Ticks(1_400),
        records: 3,
        groups: 3,
        planes,
        lane: LaneId(0),
        reason,
    };
    of(1_300, 0, 0, &payload)
}

/// A finished recording with these records on its lane.
fn file(records: &[Record]) -> Vec<u8> {
    Builder::started().records(0, records).finish()
}

/// The trace of step 1, of which the neighbour must find no error.
fn derived<R>(file: &[u8], look: impl FnOnce(Derived<'_>) -> R) -> R {
    derived_of(file, 1, look)
}

/// The same of any step.
fn derived_of<R>(file: &[u8], number: u64, look: impl FnOnce(Derived<'_>) -> R) -> R {
    let recording = Recording::open(file, "test").expect("a header");
    let region = Region::of(&recording, Some(number)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
    let written = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(written.path(), text).expect("it is written");
    let document = neighbour::parse_trace(written.path()).expect("the neighbour reads it");
    let health = neighbour::trace::analyze_health(&document);
    assert!(health.structurally_valid, "{:?}", health.issues);
    look(derived)
}

fn parent_of<'d>(derived: &'d Derived<'_>, id: &str) -> Option<&'d str> {
    let span = derived.document.spans.iter().find(|span| span.id.ends_with(id));
    span.expect("the span").parent.as_deref()
}

#[test]
fn what_is_said_of_a_span_that_has_ended_hangs_on_it_where_a_trace_has_no_time_for_it() {
    let file = file(&[
        step(1_000, 1, false),
        inner(1_100, 1_200, 1, 0),
        scalar(1_500, 1),
        step(1_900, 1, true),
    ]);
    derived(&file, |derived| {
        assert!(derived.document.tensor_stats[0].span_id.ends_with(".0000000001"));
        assert_eq!(derived.told.moved_facts, []);
    });
}

#[test]
fn what_was_recorded_within_a_lost_span_hangs_on_what_is_left_around_it() {
    // Span 2 is lost, and with it what links 3 to 1; span 5 has no survivor around it.
    let records = [
        step(1_000, 1, false),
        inner(1_300, 1_400, 3, 2),
        scalar(1_450, 2),
        inner(1_100, 1_600, 1, 0),
    ];
    let more = [inner(1_700, 1_750, 5, 4), step(1_900, 1, true)];
    let file = Builder::started().records(0, &records).skip(0, 2).records(0, &more).finish();
    derived(&file, |derived| {
        let outer = parent_of(&derived, ".0000000003").expect("a parent");
        assert!(outer.ends_with(".0000000001"), "{outer}");
        assert_eq!(parent_of(&derived, ".0000000005"), Some("step"));
        assert_eq!(parent_of(&derived, ".0000000001"), Some("step"));
        let id = |number: u64| format!("s00.{number:010}");
        let moved = |of: u64, from: u64, parent: String| MovedSpan {
            id: id(of),
            recorded: id(from),
            parent,
        };
        let expected = [moved(3, 2, id(1)), moved(5, 4, "step".to_owned())];
        assert_eq!(derived.told.moved_spans, expected);
        assert_eq!(*derived.document.tensor_stats[0].span_id, id(1));
        let (lane, recorded, span_id) = (LaneId(0), Some(id(2)), id(1));
        let expected = [MovedFacts { lane, recorded, span_id, facts: 1 }];
        assert_eq!(derived.told.moved_facts, expected);
        let lost: Vec<_> = derived.told.gaps.iter().map(|gap| gap.records).collect();
        assert_eq!(lost, [2]);
    });
}

#[test]
fn a_child_that_outlives_its_parent_hangs_on_the_first_ancestor_that_has_it() {
    let file = file(&[
        step(1_000, 1, false),
        inner(1_300, 1_400, 2, 1),
        inner(1_350, 1_500, 3, 2),
        inner(1_200, 1_600, 1, 0),
        step(1_900, 1, true),
    ]);
    derived(&file, |derived| {
        let outer = parent_of(&derived, ".0000000003").expect("a parent");
        assert!(outer.ends_with(".0000000001"), "{outer}");
        assert_eq!(derived.told.moved_spans.len(), 1);
        let moved = derived.document.spans.iter().find(|span| span.id.ends_with("3"));
        assert_eq!(moved.and_then(|span| span.duration_ns), Some(150), "no time is altered");
    });
}

fn contract() -> ContractV1 {
    ContractV1 {
        measurement_scope: 0,
        operations: 2,
        activations: 2,
        tensors: 2,
        gradients: 2,
        logical_memory: 2,
        physical_memory: 2,
        device_timing: 2,
    }
}

/// The planes that are not `complete` any more when this is missing of the step.
fn refuted(planes: Planes, reason: GapReason) -> Vec<&'static str> {
    refuted_by(&[], &[missing(planes, reason)], reason.name().expect("a known reason"))
}

/// Those that are not when these records are on the recorder's lane, and these in the step; `said` is in
/// every reason.
fn refuted_by(recorder: &[Record], of_step: &[Record], said: &str) -> Vec<&'static str> {
    let gradient = Gradient { norm: 0.5, root: NameId(1), state: GradientState::PRESENT };
    let entry = Frame::GradientEntry(tmrun_formats::wire::GradientEntryV1 {
        root: "forward",
        key: "loss",
        family: "all",
    });
    let family = Frame::GradientFamily(tmrun_formats::wire::GradientFamilyV1 {
        family: "all",
        expectation: 0,
        min_present: 1,
    });
    let label = Frame::Label(LabelV1 { text: "forward", list: 0 });
    let before = [
        step(1_000, 1, false),
        span(1_100, 1_800, 1, 1),
        of(1_200, 1, flags::GRADIENT_NORM, &gradient),
    ];
    let file = Builder::started()
        .meta(&[Frame::Contract(contract()), entry, family, label])
        .records(u16::MAX, recorder)
        .records(0, &[&before, of_step, &[step(1_900, 1, true)]].concat())
        .finish();
    derived(&file, |derived| {
        let (told, contract) = (&derived.told, &derived.document.run.capture_contract);
        let levels = [
            ("operations", contract.operations),
            ("activations", contract.activations),
            ("tensors", contract.tensors),
            ("gradients", contract.gradients),
            ("logical_memory", contract.logical_memory),
            ("physical_memory", contract.physical_memory),
            ("device_timing", contract.device_timing),
        ];
        let partial = levels.iter().filter(|(_, level)| *level == CoverageLevel::Partial);
        let partial: Vec<_> = partial.map(|(name, _)| *name).collect();
        let planes: Vec<_> = told.refuted.iter().map(|refuted| refuted.plane).collect();
        assert_eq!(planes, partial);
        let is_complete = contract.gradients == CoverageLevel::Complete;
        assert_eq!(contract.gradient_contract.is_some(), is_complete, "it goes with its claim");
        let because = told.refuted.iter().map(|refuted| &*refuted.because);
        assert!(because.into_iter().all(|why| why.contains(said)), "{:?}", told.refuted);
        partial
    })
}

#[test]
fn a_claim_of_which_something_is_missing_is_taken_back_with_what_rests_on_it() {
    let lost = |planes| refuted(planes, GapReason::OVERRUN);
    assert_eq!(lost(Planes::OPERATIONS), ["operations", "activations"]);
    assert_eq!(lost(Planes::TENSORS), ["activations", "tensors"]);
    assert_eq!(lost(Planes::GRADIENTS), ["gradients"]);
    assert_eq!(lost(Planes::LOGICAL_MEMORY), ["activations", "logical_memory"]);
    assert_eq!(lost(Planes::PHYSICAL_MEMORY), ["physical_memory"]);
    assert_eq!(lost(Planes::DEVICE_TIMING), ["device_timing"]);
    assert_eq!(lost(Planes::HOST_TIME).len(), 0, "the format makes no claim of it");
    assert_eq!(lost(Planes::NONE).len(), 7, "nobody knows what it was");
    assert_eq!(refuted(Planes::GRADIENTS, GapReason::FOCUS), ["gradients"], "nor asked for");
}

#[test]
fn a_level_that_did_not_ask_for_a_plane_takes_its_claim_back() {
    let asked = |levels: &[Record], said| refuted_by(levels, &[], said);
    let numerics = level(10, 20, 3, 3);
    assert_eq!(asked(&[numerics], "").len(), 0);
    let timing = ["activations", "tensors", "gradients", "logical_memory"];
    let never = asked(&[level(10, 20, 1, 1)], "not all of it was asked for (level), from 0.00 ns");
    assert!(timing.iter().all(|plane| never.contains(plane)), "{never:?}");
    assert!(!never.contains(&"operations"), "{never:?}");
    // It was lowered in the midst of the step, and raised again.
    let lowered = [numerics, level(1_400, 1_410, 3, 1), level(1_500, 1_510, 1, 3)];
    assert_eq!(
        asked(&lowered, "not all of it was asked for (level), from 400 ns to 510 ns"),
        never
    );
    let later = [numerics, level(2_400, 2_410, 3, 1)];
    assert_eq!(asked(&later, "").len(), 0, "that was after the step");
}

#[test]
fn what_an_activation_is_known_by_takes_its_claim_with_it() {
    let lacks = |records: &[Record], said| refuted_by(&[], records, said);
    let shapeless = of(1_300, 0, 0, &Tensor { tensor: TensorId(9), rank: 6, ..Tensor::default() });
    assert_eq!(lacks(&[shapeless], "1 tensor lacks dimensions"), ["activations", "tensors"]);
    let memory = ["activations", "logical_memory"];
    assert_eq!(lacks(&[free(1_300, 8, 4, 16)], "1 free is of storage of unknown origin"), memory);
    let twice = [alloc(1_300, 7, 1, 64), alloc(1_310, 7, 1, 32)];
    assert_eq!(lacks(&twice, "1 storage came while one of its name was live"), memory);
}

#[test]
fn a_record_of_a_newer_version_may_be_of_any_plane() {
    let mut words = scalar(1_300, 0).words();
    words[2] = words[2] & !(0xFF << 32) | 0xEE << 32;
    let newer = Record::from_words(words);
    assert_eq!(newer.kind(), None);
    let refuted =
        refuted_by(&[], &[newer], "1 record is of a kind that this version does not know");
    assert_eq!(refuted.len(), 7);
}

#[test]
fn a_storage_whose_free_was_lost_is_not_the_one_that_takes_its_name() {
    let file = Builder::started()
        .meta(&[Frame::Contract(ContractV1 { gradients: 0, ..contract() })])
        .records(
            0,
            &[
                step(1_000, 1, false),
                alloc(1_100, 7, 1, 64),
                alloc(1_200, 7, 2, 64), // a view: another tensor, the same bytes
                alloc(1_300, 7, 3, 32), // the address again, for something else
                free(1_400, 7, 3, 32),
                free(1_500, 8, 4, 16), // never allocated
                step(1_900, 1, true),
            ],
        )
        .finish();
    derived(&file, |derived| {
        let storages: Vec<_> =
            derived.document.memory.iter().map(|event| &*event.storage_id).collect();
        let (first, second) = ("0x0000000000000007", "0x0000000000000007#2");
        assert_eq!(storages, [first, first, second, second]);
        assert_eq!(derived.told.renamed_storages, [second]);
        assert_eq!(derived.told.count(LeftOut::Free), 1);
        let refuted: Vec<_> = derived.told.refuted.iter().map(|refuted| refuted.plane).collect();
        assert!(refuted.contains(&"logical_memory"), "{refuted:?}");
    });
}

#[test]
fn nothing_is_missing_of_a_slice_of_a_step_that_lies_in_several_chunks() {
    let file = Builder::started()
        .meta(&[Frame::Contract(ContractV1 { gradients: 0, ..contract() })])
        .records(0, &[step(1_000, 1, false), scalar(1_100, 0)])
        .records(0, &[scalar(1_200, 0), step(1_900, 1, true)])
        // One behind the step is kept, one is cut out, and the last is around all of it.
        .records(0, &[scalar(2_000, 0), scalar(2_100, 0), span(900, 3_000, 1, 1)])
        .finish();
    let whole = Recording::open(&file, "test").expect("a header");
    let region = Region::of(&whole, Some(1)).expect("the step");
    let mut part = Vec::new();
    tmrun::slice::slice(&whole, &region, &mut part).expect("memory");
    let cut = Recording::open(&part, "slice").expect("a header");
    assert_eq!(cut.gaps().iter().map(|gap| gap.records).collect::<Vec<_>>(), [1]);
    derived(&part, |derived| {
        assert!(derived.told.gaps.is_empty(), "{:?}", derived.told.gaps);
        assert_eq!(derived.told.refuted, []);
        assert_eq!(derived.document.tensor_stats.len(), 2);
    });
}

#[test]
fn a_gap_elsewhere_refutes_nothing_of_the_step() {
    let file = Builder::started()
        .meta(&[Frame::Contract(ContractV1 { gradients: 0, ..contract() })])
        .records(
            0,
            &[
                gap(100, 200, 5, 0, GapReason::OVERRUN),
                step(1_000, 1, false),
                step(1_900, 1, true),
                gap(2_000, 2_100, 5, 0, GapReason::OVERRUN),
            ],
        )
        .finish();
    derived(&file, |derived| {
        assert!(derived.told.gaps.is_empty() && derived.told.refuted.is_empty());
    });
}

/// What a tensor is.
fn tensor(ticks: u64, id: u64) -> Record {
    of(ticks, 0, 0, &Tensor { tensor: TensorId(id), ..Tensor::default() })
}

fn data_edge(ticks: u64, from: u64, to: u64) -> Record {
    of(ticks, 0, 0, &Edge { from, to, kind: EdgeKind::DATA, ..Edge::default() })
}

#[test]
fn an_edge_to_a_tensor_that_only_memory_speaks_of_is_left_out() {
    // The parameter is described in the first step, and lives on in the second.
    let file = Builder::started()
        .records(0, &[step(1_000, 1, false), tensor(1_100, 5), alloc(1_200, 1, 5, 64)])
        .records(0, &[data_edge(1_300, 5, 5), step(1_900, 1, true)])
        .records(0, &[step(2_000, 2, false), tensor(2_100, 6), alloc(2_200, 2, 7, 8)])
        .records(0, &[data_edge(2_300, 5, 6), data_edge(2_310, 6, 7), data_edge(2_320, 6, 6)])
        .records(0, &[step(2_900, 2, true)])
        .finish();
    let whole = Recording::open(&file, "test").expect("a header");
    let region = Region::of(&whole, Some(2)).expect("the step");
    let mut part = Vec::new();
    tmrun::slice::slice(&whole, &region, &mut part).expect("memory");
    for file in [&file, &part] {
        derived_of(file, 2, |derived| {
            let named = derived.document.memory.iter().map(|event| &*event.tensor_id);
            let hex = |id: u64| format!("{id:#018x}");
            assert_eq!(named.collect::<Vec<_>>(), [hex(5), hex(7)], "memory speaks of both");
            let [trace::Edge::Data(edge)] = &derived.document.edges[..] else {
                panic!("{:?}", derived.document.edges)
            };
            assert_eq!((&*edge.from_tensor, &*edge.to_tensor), (&*hex(6), &*hex(6)));
            assert_eq!(derived.told.count(LeftOut::DataEdge), 2);
        });
    }
    derived_of(&file, 1, |derived| {
        assert_eq!((derived.document.edges.len(), derived.told.count(LeftOut::DataEdge)), (1, 0));
    });
}
