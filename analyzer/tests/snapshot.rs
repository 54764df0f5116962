//! A flight recorder's files, salvaged while its process goes on: a snapshot, and nothing is missing
//! between what was in the rings and what was in the file.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::process::{Command, Stdio};

use support::dying::rings;
use tmrun::scan::{Recording, Status};
use tmrun_formats::wire::Scalar;
use tmrun_formats::{GapReason, LaneId};
use tmrun_probe_core::{ProfileRun, probe, scalar};

probe!(static PROBE: lanes = 2, slots = 1 << 12);

#[test]
fn a_snapshot_of_a_process_that_goes_on_lacks_nothing_and_says_what_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, out) = (dir.path().join("run.tmrun"), dir.path().join("whole.tmrun"));
    let run = ProfileRun::training("goes on", 1, "cpu").rings_in(dir.path().join("rings"));
    let recording = PROBE.record(&path, run).expect("it starts");
    let rings = rings(dir.path());
    let mut recorded = 0_u64;
    for round in 0..8 {
        let of = if round % 2 == 0 { &path } else { &rings };
        let mut salvage = Command::new(env!("CARGO_BIN_EXE_tmrun"));
        salvage.arg("salvage").arg(of).arg("--force").arg("-o").arg(&out);
        let salvage = salvage.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = salvage.spawn().expect("it starts");
        let before = recorded;
        while child.try_wait().expect("a child").is_none() {
            // Enough to go around the ring often, and not more than what is salvaged in a moment.
            let more = if recorded - before < 50_000 { 100 } else { 0 };
            (0..more).for_each(|_| {
                scalar!(PROBE, "value", recorded as f64);
                recorded += 1;
            });
            std::thread::yield_now();
        }
        let output = child.wait_with_output().expect("it ended");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
        assert!(text.contains("this is a snapshot"), "{text}");

        let bytes = std::fs::read(&out).expect("the result");
        let whole = Recording::open(&bytes, "whole").expect("a header");
        assert_eq!(whole.verify(), []);
        assert_eq!(whole.status(), Status::Finished);
        let lost: Vec<_> = whole.lost().collect();
        assert!(lost.iter().all(|gap| gap.reason == GapReason::OVERRUN), "{lost:?}");
        let records = whole.record_chunks().filter(|chunk| chunk.lane() == LaneId(0));
        let records = records.flat_map(|chunk| chunk.records().to_vec());
        let values = records.filter_map(|record| Some(record.payload::<Scalar>()?.value as u64));
        let values: Vec<_> = values.collect();
        assert!(values.is_sorted_by(|a, b| a < b), "each once, in order");
        let dropped: u64 = lost.iter().map(|gap| gap.records).sum();
        assert!(values.len() as u64 + dropped >= before, "all that was there when it began");
        let reason = whole.meta().terminal.and_then(|terminal| terminal.reason);
        assert!(reason.is_some_and(|reason| reason.contains("a snapshot")), "{reason:?}");
    }
    recording.finish().expect("it ends");
}
