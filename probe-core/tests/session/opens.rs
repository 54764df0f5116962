//! How sessions open: what the file says of the run, what is refused, and what they hold.

use tmrun_formats::Phase;
use tmrun_formats::trace::LabelFault;
use tmrun_formats::wire::{ContractV1, Frame, Kind};
use tmrun_probe_core::session::{
    CaptureContract, CaptureSelector, ComparisonIdentity, ContractError, CoverageLevel,
    ExpectedGradient, GradientContract, GradientFamilyContract, IdentityError, MeasurementScope,
    ProfileRun, RecordError, RunError, SessionError, TraceSession, ZeroInvocation,
};

use crate::{Folder, read, run};

fn identity() -> ComparisonIdentity {
    ComparisonIdentity {
        implementation_id: Some("git:1".into()),
        workload_id: "workload".into(),
        model_id: "model".into(),
        config_id: "config".into(),
        data_id: "data".into(),
        seed_policy: "seed".into(),
        physical_batch: 8,
        accumulation_steps: 2,
        precision: "f32".into(),
        device_state: "exclusive".into(),
        pair_id: None,
    }
}

fn contract() -> CaptureContract {
    let entry = |key: &str, family: &str| ExpectedGradient::new("vb", key, family);
    let expected = vec![entry("b", "on"), entry("a", "off"), entry("c", "on")];
    let families = vec![
        GradientFamilyContract::data_conditional("on", 2),
        GradientFamilyContract::inactive("off"),
    ];
    CaptureContract {
        measurement_scope: MeasurementScope::ProductionEquivalent,
        operations: CoverageLevel::Complete,
        activations: CoverageLevel::Complete,
        tensors: CoverageLevel::Partial,
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(GradientContract::new(expected, families).unwrap()),
        logical_memory: CoverageLevel::Partial,
        physical_memory: CoverageLevel::None,
        device_timing: CoverageLevel::Partial,
        required_semantic_labels: vec!["first".into(), "second".into(), "third".into()],
        gpu_expected_semantic_labels: vec!["first".into(), "third".into()],
        cpu_only_semantic_labels: vec!["second".into()],
    }
}

#[test]
fn one_invocation_is_selected_and_there_is_no_invocation_0() {
    let selector = CaptureSelector::new(3).unwrap();
    let selected: Vec<u64> = (0..6).filter(|at| selector.is_selected(*at)).collect();
    assert_eq!((selected, selector.selected_invocation()), (vec![3], 3));
    assert_eq!(CaptureSelector::new(0), Err(ZeroInvocation));
}

#[test]
fn the_file_says_what_the_run_is_and_what_it_promises() {
    let folder = Folder::new();
    let run = run().tag("batch", "1").tag("batch", "2").device_synchronized();
    let run = run.capture_contract(contract()).comparison_identity(identity());
    let session = TraceSession::open(folder.path("run.tmrun"), run).unwrap();
    let file = read(&session.finish().unwrap());
    let (mut lists, mut entries, mut families, mut others) = (vec![], vec![], vec![], 0);
    for frame in file.frames() {
        match frame {
            Frame::Run(run) => {
                let synchronized = (run.device_synchronized, run.measured_region_synchronized);
                assert_eq!((run.capture_step, run.warmup_steps, run.phase), (3, 2, Phase::TRAIN));
                assert_eq!(run.correlation_id, Some("trainer::update/update-3"));
                assert_eq!(
                    (run.device, synchronized, run.clock),
                    ("cpu", (true, true), "monotonic")
                );
                others += 1;
            }
            Frame::Tag(tag) => {
                assert_eq!((tag.key, tag.value), ("batch", "2"));
                others += 1;
            }
            Frame::Contract(found) => {
                let expected = ContractV1 {
                    measurement_scope: 2,
                    operations: 2,
                    activations: 2,
                    tensors: 1,
                    gradients: 2,
                    logical_memory: 1,
                    physical_memory: 0,
                    device_timing: 1,
                };
                assert_eq!(found, expected);
                others += 1;
            }
            Frame::ComparisonIdentity(found) => {
                assert_eq!((found.workload_id, found.physical_batch), ("workload", 8));
                assert_eq!((found.implementation_id, found.pair_id), (Some("git:1"), None));
                assert_eq!((found.accumulation_steps, found.device_state), (2, "exclusive"));
                others += 1;
            }
            Frame::Label(label) => lists.push((label.text.to_owned(), label.list)),
            Frame::GradientEntry(entry) => {
                entries.push([entry.root, entry.key, entry.family].join("/"));
            }
            Frame::GradientFamily(found) => {
                families.push((found.family.to_owned(), found.expectation, found.min_present));
            }
            _ => {}
        }
    }
    assert_eq!(others, 4);
    assert_eq!(lists, [("first".into(), 1), ("second".into(), 2), ("third".into(), 1)]);
    assert_eq!(entries, ["vb/b/on", "vb/a/off", "vb/c/on"]);
    assert_eq!(families, [("on".into(), 2, 2), ("off".into(), 1, 0)]);
}

#[test]
fn an_inference_names_itself_after_its_invocation() {
    let folder = Folder::new();
    let run = ProfileRun::inference("serve", 4, "cpu").warmup_steps(1);
    let session = TraceSession::open(folder.path("run.tmrun"), run).unwrap();
    let file = read(&session.finish().unwrap());
    let run = file.frames().into_iter().find_map(|frame| match frame {
        Frame::Run(run) => Some(run),
        _ => None,
    });
    let run = run.unwrap();
    assert_eq!((run.correlation_id, run.warmup_steps), (Some("serve/inference-4"), 1));
    assert_eq!(run.phase, Phase::INFER);
    assert!(!file.frames().iter().any(|frame| matches!(frame, Frame::Contract(_))));
}

#[test]
fn what_a_run_cannot_keep_is_refused_and_leaves_no_file() {
    let folder = Folder::new();
    let path = folder.path("deeper").join("run.tmrun");
    let refused = |run: ProfileRun| match TraceSession::open(&path, run) {
        Err(SessionError::Record(RecordError::Run(error))) => error,
        other => panic!("{other:?}"),
    };
    let blank = |field| RunError::Blank { field };
    assert_eq!(refused(ProfileRun::training(" ", 1, "cpu")), blank("entrypoint"));
    assert_eq!(refused(ProfileRun::training("x", 1, "")), blank("device"));
    assert_eq!(refused(run().correlation_id("\t")), blank("correlation_id"));
    assert_eq!(refused(ProfileRun::training("x", 0, "cpu")), RunError::CaptureStep);
    let warmup = RunError::Warmup { warmup_steps: 3, capture_step: 3 };
    assert_eq!(refused(run().warmup_steps(3)), warmup);
    let identity = ComparisonIdentity { physical_batch: 0, ..identity() };
    let zero = IdentityError::Zero { field: "physical_batch" };
    assert_eq!(refused(run().comparison_identity(identity)), RunError::Identity(zero));
    let mut twice = contract();
    twice.required_semantic_labels.push("first".into());
    let error = refused(run().capture_contract(twice));
    let RunError::Contract(ContractError::Label { fault, .. }) = error else { panic!("{error}") };
    assert_eq!(fault, LabelFault::Twice);
    assert!(!folder.path("deeper").exists(), "before anything is made");
}

#[test]
fn a_contract_is_held_of_any_recording() {
    use tmrun_probe_core::probe;
    probe!(static PROBE: lanes = 1, slots = 64);
    let folder = Folder::new();
    let unkept = CaptureContract { gradients: CoverageLevel::Complete, ..Default::default() };
    let path = folder.path("run.tmrun");
    let refused = PROBE.record(&path, run().capture_contract(unkept)).unwrap_err();
    assert!(matches!(refused, RecordError::Run(_)), "{refused}");
    assert!(refused.to_string().contains("gradient_contract"), "{refused}");
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_there_is_written_over_only_when_the_run_says_so() {
    let folder = Folder::new();
    let path = folder.path("run.tmrun");
    std::fs::write(&path, "dear").unwrap();
    let refused = TraceSession::open(&path, run()).unwrap_err();
    assert!(refused.to_string().contains("exists already"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"dear");
    let session = TraceSession::open(&path, run().replace(true)).unwrap();
    read(&session.finish().unwrap());
}

#[test]
fn sessions_do_not_share_their_names() {
    let folder = Folder::new();
    let builder = TraceSession::builder().names(16);
    for number in 0..3 {
        let path = folder.path(&format!("{number}.tmrun"));
        let session = builder.open(path, run()).unwrap();
        let measured = session.begin_measurement(format!("update/{number}"));
        for part in 0..10 {
            session.record_scalar(measured.id(), &format!("{number}/{part}"), 1.0).unwrap();
        }
        drop(measured);
        let file = read(&session.finish().unwrap());
        let scalars = file.of(Kind::Scalar as u8);
        let names: Vec<String> = scalars.iter().map(|scalar| file.name(scalar)).collect();
        let expected: Vec<String> = (0..10).map(|part| format!("{number}/{part}")).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn a_name_that_finds_no_room_is_counted_and_its_record_is_there() {
    let folder = Folder::new();
    let builder = TraceSession::builder().names(4);
    let session = builder.open(folder.path("run.tmrun"), run()).unwrap();
    let measured = session.begin_measurement("update");
    for part in 0..10 {
        session.record_scalar(measured.id(), &format!("loss/{part}"), f64::from(part)).unwrap();
    }
    drop(measured);
    let file = read(&session.finish().unwrap());
    let scalars = file.of(Kind::Scalar as u8);
    let unnamed = scalars.iter().filter(|scalar| scalar.name == 0).count() as u64;
    assert!(scalars.len() == 10 && unnamed >= 7, "{unnamed}");
    let mut counted = file.frames().into_iter().filter_map(|frame| match frame {
        Frame::RecorderCost(cost) => Some(cost.unnamed),
        _ => None,
    });
    assert_eq!(counted.next_back(), Some(unnamed), "at the end");
}

#[test]
fn what_finds_no_room_in_the_ring_is_counted() {
    let folder = Folder::new();
    let builder = TraceSession::builder().slots(1);
    let session = builder.open(folder.path("run.tmrun"), run()).unwrap();
    let span = session.begin_measurement("update");
    const ATTEMPTS: u64 = 50_000;
    for at in 0..ATTEMPTS {
        session.record_scalar(span.id(), "loss", at as f64).unwrap();
    }
    drop(span);
    let (path, summary) = session.finish_with_summary().unwrap();
    let file = read(&path);
    let dropped = file.dropped(0, crate::support::read::OVERRUN);
    let stored = file.stored(0).len() as u64;
    assert_eq!((stored + dropped, summary.dropped), (ATTEMPTS + 1, dropped));
}

#[test]
fn sessions_are_open_side_by_side_and_move_between_threads() {
    let folder = Folder::new();
    let open = |name: &str| TraceSession::open(folder.path(name), run()).unwrap();
    let (one, other) = (open("one"), open("other"));
    let label = |session: &TraceSession, label: &str| {
        let span = session.begin_measurement(label);
        session.record_scalar(span.id(), label, 1.0).unwrap();
    };
    label(&one, "here");
    let moved = std::thread::spawn(move || {
        label(&other, "there");
        other
    });
    label(&one, "here");
    let other = moved.join().unwrap();
    label(&other, "here");
    for (session, expected) in [(one, ["here", "here"]), (other, ["there", "here"])] {
        let file = read(&session.finish().unwrap());
        let spans = file.of(Kind::Span as u8);
        let names: Vec<String> = spans.iter().map(|span| file.name(span)).collect();
        assert_eq!(names, expected);
    }
}
