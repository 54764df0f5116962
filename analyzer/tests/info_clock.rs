//! What `tmrun info` says of a clock that wraps, stands still or runs backwards.

mod support;

use serde_json::Value;
use support::command::Folder;
use support::record::{scalar, span};
use support::{Builder, calibration, run};
use tmrun_formats::wire::Frame;

/// A recording by a clock that showed these when the host's was at so many seconds, with a record at
/// each.
fn read_at(readings: &[(u64, u64)]) -> Vec<u8> {
    let frames = readings
        .iter()
        .map(|(seconds, ticks)| Frame::Calibration(calibration(*ticks, seconds * 1_000_000_000)));
    let frames: Vec<_> = [Frame::Run(run())].into_iter().chain(frames).collect();
    let records: Vec<_> = readings.iter().map(|(_, ticks)| scalar(*ticks, 2, 0.5)).collect();
    Builder::new().meta(&frames).records(0, &records).unfinished()
}

/// The line that names the fault, and the name in JSON.
fn fault(file: &[u8]) -> (Option<String>, Value) {
    let folder = Folder::with(file);
    let (code, page, _) = folder.tmrun(&["info", "in.tmrun"]);
    assert_eq!(code, 0, "nothing is lost");
    let (_, json, _) = folder.tmrun(&["info", "--json", "in.tmrun"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let line = page.lines().next().filter(|line| line.starts_with("CLOCK"));
    (line.map(str::to_owned), json["clock"]["fault"].clone())
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_broken_clock_is_named_before_anything_that_it_measured() {
    let broken = [
        ("stopped", "stood still", [5 * SECOND, 6 * SECOND, 6 * SECOND]),
        ("backwards", "ran backwards", [5 * SECOND, 4 * SECOND, 3 * SECOND]),
        ("backwards", "ran backwards", [5 * SECOND, 6 * SECOND, 5 * SECOND]),
        ("wrapped", "wrapped or jumped", [u64::MAX - SECOND, u64::MAX, SECOND - 1]),
        ("wrapped", "wrapped or jumped", [5 * SECOND, 6 * SECOND, u64::MAX / 2]),
    ];
    for (name, words, [a, b, c]) in broken {
        let (line, json) = fault(&read_at(&[(100, a), (101, b), (102, c)]));
        let line = line.unwrap_or_else(|| panic!("{name} is in the first line"));
        assert!(
            line.contains(words) && line.contains("times and durations mean nothing"),
            "{line}"
        );
        assert_eq!(json, name);
    }
}

#[test]
fn records_that_lie_decades_apart_show_it_where_the_clock_was_read_once() {
    let wrapped = Builder::started().records(
        0,
        &[scalar(u64::MAX - 5, 2, 0.5), span(u64::MAX - 3, 7, 1, 1), scalar(9, 2, 0.5)],
    );
    let (line, json) = fault(&wrapped.unfinished());
    assert!(line.is_some_and(|line| line.contains("wrapped")));
    assert_eq!(json, "wrapped");
}

#[test]
fn a_clock_that_is_slow_or_coarse_or_was_read_twice_at_once_is_not_broken() {
    let sound = [
        [(100, SECOND), (101, 2 * SECOND), (102, 3 * SECOND)],
        // At half its rate, and at any time of its own.
        [(100, u64::MAX / 2), (102, u64::MAX / 2 + SECOND), (104, u64::MAX / 2 + 2 * SECOND)],
        // Read twice within the uncertainty of a reading.
        [(100, SECOND), (101, 2 * SECOND), (101, 2 * SECOND - 15)],
    ];
    for readings in sound {
        assert_eq!(fault(&read_at(&readings)), (None, Value::Null), "{readings:?}");
    }
}
