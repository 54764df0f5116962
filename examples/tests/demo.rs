//! The demo from end to end, in this process: what each level holds, and that what was planted is
//! found. There is one probe, so one recording at a time.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use candle_core::{DType, Device, Var};
use tempfile::TempDir;
use tmrun::audit::{AuditReport, audit};
use tmrun::input::Input;
use tmrun::scan::{Recording, Status};
use tmrun_demo::{
    Args, BROKEN_LAYER, Evidence, GradientCounts, PROBE, RECORDING, RUNTIME, Trainer, run_of,
    write_report,
};
use tmrun_formats::GradientState;
use tmrun_formats::wire::{Gradient, Step, flags};

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn args(level: u8, steps: u64, out: &Path) -> Args {
    let steps = NonZeroU64::new(steps).unwrap();
    Args { level, steps, out: out.to_owned(), plant_nan: false, heads_in_turn: false, seed: 1 }
}

/// Runs the demo and returns its directory and what it printed.
fn demo(level: u8, steps: u64, plant_nan: bool) -> (TempDir, String) {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let args = Args { plant_nan, ..args(level, steps, dir.path()) };
    let mut printed = Vec::new();
    tmrun_demo::run(&args, &mut printed).unwrap();
    (dir, String::from_utf8(printed).unwrap())
}

fn read<R>(dir: &TempDir, f: impl FnOnce(&Recording<'_>) -> R) -> R {
    let input = Input::open(&dir.path().join(RECORDING)).unwrap();
    f(&Recording::open(&input, input.name()).unwrap())
}

fn audited(dir: &TempDir) -> AuditReport {
    let bytes = std::fs::read(dir.path().join(RUNTIME)).unwrap();
    audit(&tmrun_formats::runtime::read(&bytes).unwrap(), None)
}

fn evidence(dir: &TempDir) -> Evidence {
    read(dir, Evidence::of)
}

#[test]
fn each_level_adds_kinds_of_records_and_takes_none_away() {
    let mut below = BTreeSet::new();
    let mut losses = None;
    for level in 0..=3 {
        let (dir, printed) = demo(level, 2, false);
        let kinds: BTreeSet<&str> =
            read(&dir, |recording| recording.counts().occurring().map(|(kind, _)| kind).collect());
        assert!(kinds.is_superset(&below) && kinds.len() > below.len(), "{kinds:?} {below:?}");
        below = kinds;
        let gaps = if level == 3 { "gaps: none" } else { "nothing was lost" };
        assert!(printed.contains(gaps), "{printed}");
        assert!(printed.contains("step time: min"), "{printed}");
        // Recording changes nothing about the training.
        let curve = std::fs::read_to_string(dir.path().join("losses.csv")).unwrap();
        assert_eq!(losses.get_or_insert_with(|| curve.clone()), &curve);
    }
    let all = [
        "alloc",
        "device_memory",
        "gradient",
        "level",
        "op",
        "op_input",
        "range",
        "scalar",
        "shape",
        "span",
        "stats",
        "step",
        "tensor",
    ];
    assert_eq!(below, BTreeSet::from(all));
}

#[test]
fn a_recording_is_whole_and_without_a_hole() {
    for level in 0..=3 {
        let (dir, _) = demo(level, 3, false);
        read(&dir, |recording| {
            assert_eq!(recording.status(), Status::Finished);
            assert_eq!(recording.verify(), []);
            assert_eq!(recording.lost().count(), 0);
            // Every position from the recording's first to the lane's last is there, once.
            for (id, lane) in recording.lanes().iter() {
                let chunks = recording.record_chunks().filter(|chunk| chunk.lane() == id);
                let first = chunks.map(|chunk| chunk.first_sequence()).min();
                let next = first.map_or(lane.next, |first| first + lane.records);
                let counted = lane.totals.map_or(next, |totals| totals.records);
                assert_eq!((lane.next, counted), (next, next), "{id:?}");
            }
            assert!(recording.meta().terminal.is_some_and(|terminal| terminal.complete));
        });
        let steps = evidence(&dir).steps;
        let numbers: Vec<u64> = steps.iter().map(|step| step.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!(steps.iter().all(|step| step.ns > 0));
    }
}

#[test]
fn every_parameter_has_a_gradient_in_every_step() {
    let (dir, _) = demo(2, 3, false);
    let expected: BTreeSet<String> =
        Trainer::new(1, None).unwrap().parameter_names().map(str::to_owned).collect();
    let mut steps = Vec::new();
    read(&dir, |recording| {
        let mut present = BTreeSet::new();
        for record in recording.record_chunks().flat_map(|chunk| chunk.records()) {
            let header = record.header();
            if let Some(gradient) = record.payload::<Gradient>() {
                let name = recording.names().text(header.name).unwrap();
                assert_eq!(gradient.state, GradientState::PRESENT, "{name}");
                assert!(gradient.norm > 0.0 && gradient.norm.is_finite(), "{name}");
                assert!(present.insert(name.to_owned()), "{name} twice");
            } else if record.payload::<Step>().is_some() && header.flags & flags::STEP_END != 0 {
                steps.push(std::mem::take(&mut present));
            }
        }
    });
    assert_eq!(steps, vec![expected; 3]);
}

#[test]
fn a_planted_nan_is_found_in_its_step_and_layer() {
    let (dir, printed) = demo(3, 5, true);
    let found = evidence(&dir);
    let first = found.bad_tensor.unwrap();
    assert_eq!((first.step, first.name.as_str()), (3, BROKEN_LAYER));
    assert_eq!(found.bad_gradient.unwrap().step, 3);
    assert!(
        printed.contains("not finite first: the output of blocks.0.mlp.up in step 3"),
        "{printed}"
    );
    let said = audited(&dir).to_string();
    let first = " elements at blocks.0.mlp.up since step 3, before any other\n";
    assert!(said.contains(first), "{said}");
}

#[test]
fn lower_levels_say_what_they_can_of_a_planted_nan() {
    let (dir, printed) = demo(2, 5, true);
    let found = evidence(&dir);
    assert_eq!((found.bad_tensor.clone(), found.bad_gradient.clone().unwrap().step), (None, 3));
    let counts = found.gradients["blocks.0.mlp.up.weight"];
    assert_eq!(counts, GradientCounts { present: 2, non_finite: 3, ..Default::default() });
    assert!(printed.contains("gradients in step 3"), "{printed}");

    let (dir, printed) = demo(0, 5, true);
    assert_eq!(evidence(&dir).first_non_finite("loss"), Some(3));
    assert!(printed.contains("not finite first: the loss of step 3"), "{printed}");
}

#[test]
fn a_parameter_without_a_gradient_is_named() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let run = run_of(&args(2, 2, dir.path()));
    let mut trainer = Trainer::new(1, None).unwrap();
    let stray = Var::zeros(3, DType::F32, &Device::Cpu).unwrap();
    trainer.add_unused("stray.weight", stray).unwrap();
    let recording = PROBE.record(dir.path().join(RECORDING), run).unwrap();
    (1..=2).for_each(|number| _ = trainer.step(number).unwrap());
    recording.finish().unwrap();

    let counts = evidence(&dir).gradients;
    assert_eq!(counts["stray.weight"], GradientCounts { missing: 2, ..Default::default() });
    assert!(counts.values().filter(|counts| counts.missing > 0).count() == 1);
    let mut report = Vec::new();
    read(&dir, |recording| write_report(recording, &mut report)).unwrap();
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("that never had a gradient: stray.weight\n"), "{report}");
    // Nothing uses it, so nothing cuts it off.
    assert!(evidence(&dir).severed.is_empty() && !report.contains("likely"), "{report}");
}

#[test]
fn the_runtime_json_is_accepted_and_clean() {
    let (dir, _) = demo(3, 2, false);
    let bytes = std::fs::read(dir.path().join(RUNTIME)).unwrap();
    let document = tmrun_formats::runtime::read(&bytes).unwrap();
    let (layers, parameters) = (28, 38);
    assert_eq!(document.tensors.len(), 2 * layers);
    assert_eq!(document.operations.len(), 2 * layers);
    assert_eq!(document.gradients.len(), 2 * parameters);
    assert!(document.tensors.iter().all(|tensor| tensor.static_id.is_some()));
    let report = audited(&dir);
    assert!(!report.has_findings(), "{report}");
}

#[test]
fn layers_have_their_type_and_the_time_of_their_own() {
    let (dir, _) = demo(1, 2, false);
    let found = evidence(&dir);
    assert_eq!(found.layers.len(), 28);
    let attention = &found.layers["blocks.0.attn"];
    assert_eq!((attention.kind.as_str(), attention.calls), ("attention", 2));
    assert!(attention.own_ns < attention.total_ns);
    let step: u64 = found.steps.iter().map(|step| step.ns).sum();
    let parts: u64 = ["data", "forward", "backward", "optimizer"]
        .map(|part| found.parts[part].total_ns)
        .iter()
        .sum();
    assert!(parts <= step && found.measured_ns.unwrap() >= step);
}
