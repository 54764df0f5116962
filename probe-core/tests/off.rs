//! A program that is built with the probe compiled out:
//! `cargo test -p tmrun-probe-core --features std,off --test off`.

#![cfg(feature = "off")]

use tmrun_probe_core::{
    Level, ProfileRun, RecordError, Unavailable, install, measured, probe, scalar, span,
};

probe!(static PROBE: lanes = 1, slots = 64);

#[test]
fn nothing_is_recorded_and_a_recording_says_why() {
    install(PROBE).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let run = ProfileRun::training("off", 1, "cpu").flight_recorder();
    let error = PROBE.record(&path, run).unwrap_err();
    assert!(matches!(error, RecordError::Unavailable(Unavailable::CompiledOut)));
    let text = error.to_string();
    assert!(text.contains("compiled out") && text.contains("without the feature `off`"), "{text}");
    assert!(!path.exists(), "a file that nothing is recorded into");

    let step = PROBE.step(1);
    let _measured = measured!(PROBE, "region");
    let spans = [span!(PROBE, "forward"), span!("of a library")];
    assert!(spans.iter().all(|span| span.id().0 == 0), "no span is recorded");
    scalar!(PROBE, "loss", unreachable!("a value that nobody records is not computed"));
    assert!(PROBE.at(Level::PULSE, |_| ()).is_none());
    assert!(!PROBE.records(Level::PULSE));
    drop(step);
    assert_eq!(PROBE.after_finish(), 0);
}

#[test]
fn who_asks_for_no_level_stores_nothing_and_counts_nothing() {
    probe!(static OTHER: lanes = 1, slots = 64);
    let lane = OTHER.claim("main").unwrap();
    for _ in 0..1_000 {
        lane.recorder().scalar(OTHER.name("loss"), 1.0);
    }
    drop(lane);
    assert_eq!(OTHER.after_finish(), 0);
}
