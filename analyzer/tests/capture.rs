//! Captures of a running application, from the session to the bundle.

use std::error::Error;
use std::path::{Path, PathBuf};

use candle_graph_v10 as neighbour;
use tmrun::capture::{
    CaptureBegin, CaptureFault, CaptureRun, ExecutionStep, ProfileRun, PublicationStatus,
    PublishFault, SpanKind, TraceSession,
};

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

    let inside = CaptureRun::begin(destination.join("update-13"), run()).expect_err("a bundle");
    assert!(inside.to_string().contains("lies in the bundle"), "{inside}");
    assert_eq!(names(folder.path()), ["update-12"]);
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
