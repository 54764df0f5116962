//! The size that `tmrun info` says the rings should have had, taken at its word.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use support::command::Folder;
use support::{calibration, run};
use tmrun_formats::wire::{FileHeader, Frame, RunV1};
use tmrun_formats::{Level, RunId, Ticks};
use tmrun_probe_core::{Clock, Drain, Flush, Probe, SliceSink, scalar};

/// A clock of a tick a nanosecond that is moved by hand, and at each reading.
enum Moved {}

static NOW: AtomicU64 = AtomicU64::new(1_000);
const APART: u64 = 10_000_000;

impl Clock for Moved {
    const NAME: &'static str = "moved";

    fn ticks() -> Ticks {
        Ticks(NOW.fetch_add(1, Ordering::Relaxed))
    }

    fn ticks_per_second() -> u64 {
        1_000_000_000
    }
}

/// Records these bursts, with nobody draining in any of them and everything taken between them.
/// Returns what `tmrun info` says of the rings: records that were dropped, and the size.
fn recorded<const SLOTS: usize>(bursts: &[u64]) -> (u64, Option<u64>) {
    let probe = Box::new(Probe::<Moved, 1, SLOTS, 64>::new());
    let probe = probe.view();
    let header = FileHeader {
        run: RunId([7; 16]),
        created_ns: 1,
        ticks_per_second: Moved::ticks_per_second(),
    };
    let start = NOW.load(Ordering::Relaxed);
    let frames = [
        Frame::Run(RunV1 { ring_slots: SLOTS as u64, ..run() }),
        Frame::Calibration(calibration(start, 0)),
    ];
    let mut room = vec![0; 1 << 20];
    let sink = SliceSink::new(&mut room);
    let Ok(mut drain) = Drain::start(probe, sink, &header, &frames, Level::TIMING) else {
        panic!("nothing else records this probe")
    };
    let lane = probe.claim("bursts").expect("a lane");
    for burst in bursts {
        for i in 0..*burst {
            scalar!(lane, "value", i as f64);
        }
        assert!(drain.poll(Flush::All).is_ok());
        NOW.fetch_add(APART, Ordering::Relaxed);
    }
    drop(lane);
    let (summary, sink) = drain.finish(&[]);
    let folder = Folder::with(sink.expect("it has room").written());
    let (_, json, errors) = folder.tmrun(&["info", "--json", "in.tmrun"]);
    let json: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{errors}"));
    assert_eq!(json["rings"]["slots"], SLOTS);
    (summary.dropped, json["rings"]["slots_needed"].as_u64())
}

/// The same with rings of a size that is not known before.
fn recorded_in(slots: u64, bursts: &[u64]) -> (u64, Option<u64>) {
    match slots {
        64 => recorded::<64>(bursts),
        128 => recorded::<128>(bursts),
        256 => recorded::<256>(bursts),
        512 => recorded::<512>(bursts),
        1_024 => recorded::<1_024>(bursts),
        2_048 => recorded::<2_048>(bursts),
        _ => panic!("{slots} is not what these bursts need"),
    }
}

#[test]
fn rings_of_the_size_that_info_names_drop_nothing_and_of_half_of_it_drop_again() {
    let patterns: [&[u64]; 6] =
        [&[65], &[700], &[100, 700, 300], &[300, 300, 300], &[10, 1_024], &[1_025, 70, 70]];
    for bursts in patterns {
        let (dropped, needed) = recorded_in(64, bursts);
        assert!(dropped > 0, "{bursts:?}");
        let needed = needed.expect("a size");
        assert_eq!(recorded_in(needed, bursts), (0, None), "{bursts:?} in {needed}");
        let (dropped, _) = recorded_in(needed / 2, bursts);
        assert!(dropped > 0, "{bursts:?} in half of {needed}");
    }
}
