//! Captures of a running application, from the session to the bundle.

#[path = "support/reports.rs"]
mod reports;
#[path = "support/traces/mod.rs"]
mod traces;
#[path = "support/words.rs"]
mod words;

use std::error::Error;
use std::path::{Path, PathBuf};

use candle_graph_v10 as neighbour;
use candle_graph_v10::cli::trace_cli::{QueryOptions, TraceQueryKind as Kind, run_query};
use serde_json::Value;
use tmrun::capture::{
    CaptureBegin, CaptureContract, CaptureFault, CapturePlan, CaptureRun, ExecutionStep,
    MeasurementScope, ProfileRun, PublicationReceipt, PublicationStatus, PublishFault, SpanKind,
    TraceSession,
};
use words::without_reasons;

type Tested = Result<(), Box<dyn Error>>;

fn run() -> ProfileRun {
    ProfileRun::training("trainer::update", 12, "cpu").tag("dataset", "small")
}

fn active(destination: &Path, run: ProfileRun) -> Result<CaptureRun, Box<dyn Error>> {
    match CaptureRun::begin(destination, run)? {
        CaptureBegin::Active(capture) => Ok(capture),
        CaptureBegin::AlreadyPublished(receipt) => Err(format!("{receipt:?}").into()),
    }
}

fn update(session: &TraceSession) -> Tested {
    let measured = session.begin_measurement("update/12");
    drop(session.begin_step_span("forward", ExecutionStep::Forward, SpanKind::Function));
    session.record_scalar(measured.id(), "loss/total", 0.25)?;
    Ok(())
}

/// What is in a folder, hidden or not.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// As an application writes it: the receipt has a name, and a path that is one.
fn evidence_of(receipt: &PublicationReceipt) -> PathBuf {
    receipt.bundle_path.join("evidence.json")
}

#[test]
fn a_capture_is_published_once_and_found_by_who_tries_again() -> Tested {
    let folder = tempfile::tempdir()?;
    let destination = folder.path().join("profiles/update-12");
    let capture = active(&destination, run())?;
    assert!(capture.recording().is_file() && !destination.exists());
    update(capture.session())?;
    let receipt = capture.publish()?;
    assert_eq!(receipt.status, PublicationStatus::Published);
    assert_eq!(names(&folder.path().join("profiles")), ["update-12"], "nothing is left beside it");

    let theirs = neighbour::artifact::verify_bundle(&destination)?;
    assert_eq!(theirs.run_id, receipt.run_id);
    assert!(evidence_of(&receipt).is_file());
    assert_eq!(theirs.manifest_sha256, receipt.verification.manifest_sha256);
    let trace = neighbour::parse_trace(destination.join("trace.jsonl"))?;
    let health = neighbour::trace::analyze_health(&trace);
    assert!(health.structurally_valid && health.capture_complete, "{:?}", health.issues);

    let CaptureBegin::AlreadyPublished(again) = CaptureRun::begin(&destination, run())? else {
        panic!("it is published");
    };
    assert_eq!(again.status, PublicationStatus::AlreadyPublished);
    assert_eq!((&again.run_id, &again.verification), (&receipt.run_id, &receipt.verification));
    assert_eq!(names(&folder.path().join("profiles")), ["update-12"], "nothing was recorded");
    Ok(())
}

#[test]
fn the_neighbour_finds_our_captures_published_when_it_is_asked_for_the_same() -> Tested {
    let folder = tempfile::tempdir()?;
    let destination = folder.path().join("update-12");
    let capture = active(&destination, run())?;
    update(capture.session())?;
    let receipt = capture.publish()?;
    let planned = neighbour::ProfileRun::training("trainer::update", 12, "cpu");
    match neighbour::CaptureRun::begin(&destination, planned)? {
        neighbour::CaptureBegin::AlreadyPublished(theirs) => {
            assert_eq!(theirs.run_id, receipt.run_id);
        }
        neighbour::CaptureBegin::Active(_) => panic!("it is published"),
    }
    Ok(())
}

#[test]
fn a_step_that_failed_is_published_as_that() -> Tested {
    let folder = tempfile::tempdir()?;
    let destination = folder.path().join("update-12");
    let capture = active(&destination, run())?;
    update(capture.session())?;
    let publication = capture.finish_failed("the loss is NaN")?;
    assert!(publication.lost.is_empty());
    let trace = neighbour::parse_trace(destination.join("trace.jsonl"))?;
    let health = neighbour::trace::analyze_health(&trace);
    assert!(health.structurally_valid && !health.capture_complete, "{:?}", health.issues);
    assert_eq!(trace.terminal.reason.as_deref(), Some("the loss is NaN"));
    Ok(())
}

#[test]
fn what_is_in_the_way_is_said_before_anything_is_recorded() -> Tested {
    let folder = tempfile::tempdir()?;
    let destination = folder.path().join("update-12");
    let capture = active(&destination, run())?;
    update(capture.session())?;
    capture.publish()?;

    let other = ProfileRun::training("trainer::update", 13, "cpu");
    let error = CaptureRun::begin(&destination, other).expect_err("another capture");
    let CaptureFault::Publish(publish) = &error.fault else { panic!("{error}") };
    let PublishFault::Conflict { fields, .. } = &publish.fault else { panic!("{error}") };
    let fields: Vec<_> = fields.iter().map(|field| field.field).collect();
    assert_eq!(fields, ["correlation_id", "capture_step"]);

    let within = names(&destination);
    for inside in ["update-12/update-13", "missing/../update-12/nsight/update-13"] {
        let inside = CaptureRun::begin(folder.path().join(inside), run()).expect_err("a bundle");
        assert!(inside.to_string().contains("lies in the bundle"), "{inside}");
        assert_eq!(
            (names(folder.path()), names(&destination)),
            (vec!["update-12".to_owned()], within.clone())
        );
    }
    Ok(())
}

#[test]
fn a_run_whose_id_ends_as_that_of_a_step_is_no_step() -> Tested {
    let folder = tempfile::tempdir()?;
    let destination = folder.path().join("update-12");
    let capture = active(&destination, run().run_id("sweep/step-12"))?;
    update(capture.session())?;
    assert_eq!(capture.publish()?.run_id, "sweep/step-12");
    for command in [
        &["verify", "--semantic", "update-12"][..],
        &["query", "update-12", "--kind", "labels"],
        &["query", "update-12", "--kind", "gaps"],
    ] {
        let (code, said) = tmrun(folder.path(), command);
        assert_eq!((code, &*said), (Some(0), ""), "{command:?}");
    }
    Ok(())
}

/// The recording that an error says is kept.
fn kept(error: tmrun::capture::CaptureError) -> PathBuf {
    let recording = error.recording.clone().expect("what was recorded");
    assert!(error.to_string().contains(&recording.display().to_string()), "{error}");
    assert!(recording.is_file());
    recording
}

#[test]
fn what_cannot_be_published_is_kept_and_can_be_published_elsewhere() -> Tested {
    let folder = tempfile::tempdir()?;
    // No region says that it is measured.
    let capture = active(&folder.path().join("update-1"), run())?;
    let error = capture.publish().expect_err("nothing was measured");
    assert!(matches!(error.fault, CaptureFault::Region(_)), "{error}");
    kept(error);

    // Somebody takes the place meanwhile.
    let destination = folder.path().join("update-12");
    let capture = active(&destination, run())?;
    update(capture.session())?;
    std::fs::create_dir(&destination)?;
    let error = capture.publish().expect_err("it is in the way");
    assert_eq!(names(&destination), Vec::<String>::new());
    let recording = kept(error);

    let input = tmrun::input::Input::open(&recording)?;
    let recording = tmrun::scan::Recording::open(&input, input.name())?;
    let region = tmrun::slice::Region::of(&recording, None)?;
    let elsewhere = folder.path().join("elsewhere");
    let (destination, nsight) = (&*elsewhere, None);
    let request =
        tmrun::bundle::Request { recording: &recording, region: &region, destination, nsight };
    let published = tmrun::bundle::publish(&request, &mut |_| Ok(()))?;
    assert_eq!(published.receipt.status, PublicationStatus::Published);
    Ok(())
}

#[test]
fn a_plan_says_in_what_the_published_capture_differs() -> Tested {
    let folder = tempfile::tempdir()?;
    let destination = folder.path().join("update-12");
    let capture = active(&destination, run())?;
    update(capture.session())?;
    capture.publish()?;
    assert!(CapturePlan::of(&destination, run())?.differing().is_empty());

    let measurement_scope = MeasurementScope::ProfiledWork;
    let contract = CaptureContract { measurement_scope, ..CaptureContract::default() };
    let other = run().tag("dataset", "large").capture_contract(contract);
    let plan = CapturePlan::of(&destination, other)?;
    let fields: Vec<_> = plan.differing().iter().map(|differing| differing.field).collect();
    assert_eq!(fields, ["capture_contract", "tags"]);
    let tags = plan.differing().last().expect("the tags");
    let large = r#"{"dataset":"large"}"#;
    assert_eq!((&*tags.published, &*tags.planned), (r#"{"dataset":"small"}"#, large));
    assert!(
        matches!(plan.begin()?, CaptureBegin::AlreadyPublished(_)),
        "it is the same all the same"
    );
    Ok(())
}

const CHILD: &str = "TMRUN_TEST_CHILD";

/// What the child captures; its rings outlive it.
fn run_that_dies(folder: &Path) -> ProfileRun {
    run().rings_in(folder.join("rings"))
}

#[test]
#[ignore = "the child of another test"]
fn is_killed_while_it_captures() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let capture = active(&folder.join("update-12"), run_that_dies(&folder)).expect("it begins");
    let session = capture.session();
    let measured = session.begin_measurement("update/12");
    session.record_scalar(measured.id(), "loss/total", 0.25).expect("recorded");
    // SAFETY: a signal to this process, which it cannot survive.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

fn output(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tmrun"));
    command.current_dir(folder).args(arguments).output().expect("it runs")
}

/// The exit code, and what is said.
fn tmrun(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = output(folder, arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_a_killed_capture_left_is_told_of_and_can_be_published() -> Tested {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let mut child = std::process::Command::new(std::env::current_exe()?);
    let child = child.args(["--exact", "is_killed_while_it_captures", "--ignored"]);
    let killed = child.env(CHILD, folder).output()?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&killed.status);
    assert_eq!(signal, Some(libc::SIGKILL), "{killed:?}");
    let destination = folder.join("update-12");
    assert!(!destination.exists());

    let plan = CapturePlan::of(&destination, run())?;
    let [left] = plan.leftovers() else { panic!("{:?}", plan.leftovers()) };
    let left = left.clone();
    let name = left.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with(".update-12.capture-") && name.ends_with(".tmrun"), "{name}");

    // It broke off in its measured region, with all that was recorded of it.
    let (code, said) = tmrun(folder, &["salvage", &name, "-o", "whole.tmrun"]);
    assert!(matches!(code, Some(0 | 3)), "{said}");
    let (code, said) = tmrun(folder, &["bundle", "whole.tmrun", "-o", "salvaged"]);
    assert!(matches!(code, Some(0 | 3)), "{said}");
    assert!(said.contains(&name) || !said.contains("left by"), "{said}");
    let trace = neighbour::parse_trace(folder.join("salvaged/trace.jsonl"))?;
    assert_eq!(trace.tensor_stats.len(), 1);
    assert!(!neighbour::trace::analyze_health(&trace).capture_complete);

    // The next one captures anew; a live one is nothing that is left, and the other is until it is away.
    let CaptureBegin::Active(capture) = plan.begin()? else { panic!("it is not published") };
    assert_eq!(CapturePlan::of(&destination, run())?.leftovers(), std::slice::from_ref(&left));
    let (_, said) = tmrun(folder, &["bundle", "whole.tmrun", "-o", "update-12"]);
    assert!(said.contains(&format!("{name}: left by an earlier publication")), "{said}");
    drop(capture);
    Ok(())
}

#[test]
fn what_nsight_left_is_in_the_bundle_and_is_answered_of_as_the_neighbour_does() -> Tested {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let left = folder.join("left");
    let files = reports::whole("run-12", "trainer::update/update-12", "forward");
    files.write(&left);
    let required_semantic_labels = vec!["forward".to_owned()];
    let contract = CaptureContract { required_semantic_labels, ..CaptureContract::default() };
    let run = run().run_id("run-12").capture_contract(contract);
    let capture = active(&folder.join("bundle"), run)?.with_nsight_dir(&left);
    update(capture.session())?;
    capture.publish()?;
    std::fs::remove_dir_all(&left)?;

    let bundle = folder.join("bundle");
    let manifest: Value = serde_json::from_slice(&std::fs::read(bundle.join("bundle.json"))?)?;
    let declared = manifest["files"].as_array().ok_or("files")?.iter();
    let declared: Vec<_> = declared.filter_map(|file| file["path"].as_str()).collect();
    for (name, text) in &files.0 {
        assert!(declared.contains(&&*format!("nsight/{name}")), "{name} in {declared:?}");
        assert_eq!(std::fs::read_to_string(bundle.join("nsight").join(name))?, *text);
    }
    let (code, said) = tmrun(folder, &["verify", "--semantic", "bundle"]);
    assert_eq!((code, &*said), (Some(0), ""));

    let mut answers = Vec::new();
    for kind in [
        Kind::GpuStatus,
        Kind::GpuCorrelation,
        Kind::GpuPhases,
        Kind::GpuKernels,
        Kind::GpuAttributionGaps,
    ] {
        let theirs = tempfile::NamedTempFile::new()?;
        run_query(&bundle, kind, &QueryOptions::default(), Some(theirs.path()))?;
        let theirs: Value = serde_json::from_slice(&std::fs::read(theirs.path())?)?;
        let ours = output(folder, &["query", "bundle", "--kind", kind.as_str()]);
        assert!(ours.status.success(), "{ours:?}");
        let ours: Value = serde_json::from_slice(&ours.stdout)?;
        let [ours, theirs] = [ours, theirs].map(|it| without_reasons(it["result"].clone()));
        assert_eq!(ours, theirs, "{}", kind.as_str());
        answers.push(ours);
    }
    let [status, correlation, phases, kernels, gaps] = &answers[..] else { panic!() };
    assert_eq!(
        (&status["status"], &status["provenance_binding"]),
        (&"available".into(), &"bound".into())
    );
    assert_eq!(correlation["ledger"]["matched"]["rows"], serde_json::json!(["forward"]));
    assert_eq!(phases["attributed_phases"]["rows"][0]["gpu_busy_ns"], 110, "from 1010 to 1120");
    let rows = [&kernels["rows"][0], &kernels["rows"][1]];
    let rows = rows.map(|row| (row["name"].as_str(), row["total_ns"].as_u64()));
    assert_eq!(rows, [(Some("second"), Some(100)), (Some("first"), Some(34))]);
    assert_eq!(
        (&gaps["correlation_complete"], &gaps["exactly_attributed_phase_rows"]),
        (&true.into(), &1.into())
    );
    Ok(())
}
