//! A sink that fails, at any write: nothing panics, what is whole stays, the rest is counted.

mod support;

use support::read::{File, LEVEL};
use support::{Counting, HEADER, Memory, TERMINAL, start};
use tmrun_formats::wire::Frame;
use tmrun_formats::{GapReason, Level, NameId};
use tmrun_probe_core::{Drain, Flush, MemoryFull, Probe, SliceSink, Start, Summary, span};

type Small = Probe<Counting, 2, 32, 32>;

/// Records 3 × 30 scalars on each of two lanes, into this sink; the errors, and what it came to.
fn run(sink: &mut Memory) -> Result<(usize, Summary), ()> {
    run_and(sink, |_| ())
}

/// The same, with something behind every poll.
fn run_and(
    sink: &mut Memory,
    mut polled: impl FnMut(&mut Drain<'_, Counting, &mut Memory>),
) -> Result<(usize, Summary), ()> {
    let probe = Box::new(Small::new());
    let view = probe.view();
    let lanes = [view.claim("a").unwrap(), view.claim("b").unwrap()];
    let mut errors = 0;
    let Ok(mut drain) = Drain::start(view, &mut *sink, &HEADER, &[], Level::TIMING) else {
        assert!(view.level().is_none(), "a recording that does not start arms nothing");
        return Err(());
    };
    for round in 0..3 {
        let node = view.name(&format!("round {round}"));
        for lane in &lanes {
            (0..30).for_each(|i| lane.recorder().scalar(node, f64::from(i)));
        }
        errors += usize::from(drain.poll(Flush::All).is_err());
        polled(&mut drain);
    }
    let (summary, ended) = drain.finish(&[TERMINAL]);
    errors += usize::from(ended.is_err());
    assert!(view.level().is_none());
    Ok((errors, summary))
}

#[test]
fn a_sink_that_fails_at_any_write_leaves_a_whole_prefix_and_exact_counts() {
    let mut whole = Memory::default();
    let (errors, all) = run(&mut whole).unwrap();
    assert_eq!((errors, all.dropped, all.records), (0, 0, 181));
    let writes = whole.writes;
    assert!(writes > 20);
    for fails_at in 0..writes {
        let mut sink = Memory::failing_at(fails_at);
        let came = run(&mut sink);
        // And again when the recording ends.
        assert!(sink.writes <= fails_at + 2, "nothing is tried after the failure");
        assert!(sink.cuts <= 2, "it is cut when it fails");
        let file = File::prefix(&sink.bytes);
        assert!(!file.trailer);
        let Ok((errors, summary)) = came else {
            assert!(fails_at == 0, "only the header is written before it starts");
            assert!(sink.bytes.is_empty(), "not a byte of a header that is not whole");
            continue;
        };
        assert!((1..=2).contains(&errors), "the failure is reported once, and at the end");
        assert_eq!(summary.bytes, sink.bytes.len() as u64);
        assert_eq!(summary.records, file.records.len() as u64);
        assert_eq!(summary.records + summary.sink_failed, 181, "at write {fails_at}");
        assert_eq!(summary.dropped, summary.sink_failed);
        assert!(whole.bytes.starts_with(&sink.bytes[..64]));
    }
}

#[test]
fn a_failing_sink_does_not_fill_the_rings() {
    let probe = Box::new(Small::new());
    let view = probe.view();
    let lane = view.claim("a").unwrap();
    let mut drain = start(view, Memory::failing_at(1), Level::TIMING);
    for _ in 0..100 {
        (0..20).for_each(|i| lane.recorder().scalar(NameId::NONE, f64::from(i)));
        let _ = drain.poll(Flush::All);
    }
    let (summary, _) = drain.finish(&[TERMINAL]);
    let expected = Summary { dropped: 2001, sink_failed: 2001, bytes: 64, ..Summary::default() };
    assert_eq!(summary, expected);
}

#[test]
fn a_sink_that_fails_once_gets_an_end_that_says_what_is_missing() {
    let mut whole = Memory::default();
    run(&mut whole).unwrap();
    for fails_at in 1..whole.writes {
        let mut sink = Memory::failing_once_at(fails_at);
        let Ok((errors, summary)) = run(&mut sink) else { continue };
        assert_eq!(errors, 1, "at write {fails_at}");
        let file = File::prefix(&sink.bytes);
        let holes = file.frames().into_iter().filter_map(|frame| match frame {
            Frame::Hole(hole) => Some((hole.reason, hole.records)),
            _ => None,
        });
        let holes: Vec<_> = holes.collect();
        assert!(holes.iter().all(|(reason, _)| *reason == GapReason::SINK_FAILED));
        let missing: u64 = holes.iter().map(|(_, records)| records).sum();
        assert_eq!(missing, summary.sink_failed, "at write {fails_at}");
        assert_eq!(summary.records + summary.sink_failed, 181, "at write {fails_at}");
        assert_eq!(summary.records, file.records.len() as u64);
        // The end itself may be what failed.
        assert!(file.trailer || summary.sink_failed == 0, "at write {fails_at}");
    }
}

#[test]
fn a_sink_that_works_again_takes_what_comes_then() {
    let probe = Box::new(Small::new());
    let view = probe.view();
    let lane = view.claim("a").unwrap();
    let record = |n: u32| (0..n).for_each(|i| lane.recorder().scalar(NameId::NONE, f64::from(i)));
    let mut drain = start(view, Memory::failing_once_at(4), Level::TIMING);
    for round in 0..6 {
        record(10);
        let _ = drain.poll(Flush::All);
        if round == 3 {
            drain.retry().unwrap();
        }
    }
    let (summary, sink) = drain.finish(&[TERMINAL]);
    let file = File::finished(&sink.unwrap().bytes);
    let last = file.stored(0).last().copied().unwrap();
    assert_eq!((last.position, last.f64_at(0)), (59, 9.0));
    assert!(summary.sink_failed > 0 && summary.sink_failed < 41);
    assert_eq!(summary.records + summary.sink_failed, 61);
}

#[test]
fn nothing_is_written_behind_torn_bytes_that_cannot_be_cut_off() {
    let mut whole = Memory::default();
    run(&mut whole).unwrap();
    for fails_at in 1..whole.writes {
        let mut sink = Memory { cuts_fail: usize::MAX, ..Memory::failing_once_at(fails_at) };
        let came = run_and(&mut sink, |drain| {
            assert_eq!(drain.retry().is_err(), drain.is_failing(), "it is as final as it is said");
        });
        let (errors, summary) = came.unwrap();
        assert!((1..=2).contains(&errors), "when it fails, and at the end");
        assert_eq!(sink.writes, fails_at + 1, "it would have worked again");
        let (bytes, torn) = sink.bytes.split_at(summary.bytes as usize);
        assert!(!torn.is_empty(), "at write {fails_at}");
        let file = File::prefix(bytes);
        assert!(!file.trailer);
        assert_eq!(summary.records, file.records.len() as u64);
        assert_eq!(summary.records + summary.sink_failed, 181, "at write {fails_at}");
    }
}

#[test]
fn a_sink_that_can_be_cut_later_goes_on_from_then_on() {
    let mut whole = Memory::default();
    run(&mut whole).unwrap();
    let mut went_on = Vec::new();
    for fails_at in 1..whole.writes {
        let mut sink = Memory { cuts_fail: 2, ..Memory::failing_once_at(fails_at) };
        let mut failed = false;
        let came = run_and(&mut sink, |drain| {
            failed |= drain.is_failing();
            let _ = drain.retry();
        });
        let (_, summary) = came.unwrap();
        assert_eq!(summary.records + summary.sink_failed, 181, "at write {fails_at}");
        let file = File::prefix(&sink.bytes[..summary.bytes as usize]);
        assert_eq!(summary.records, file.records.len() as u64);
        // The end is tried once: what fails there is cut too late.
        assert_eq!(file.trailer, failed, "at write {fails_at}");
        went_on.push(failed);
        if failed {
            assert_eq!((sink.cuts, sink.bytes.len() as u64), (3, summary.bytes));
            let missing = file.frames().into_iter().filter_map(|frame| match frame {
                Frame::Hole(hole) => Some(hole.records),
                _ => None,
            });
            assert_eq!(missing.sum::<u64>(), summary.sink_failed, "at write {fails_at}");
        } else {
            assert_eq!(sink.writes, fails_at + 1);
        }
    }
    assert!(went_on.contains(&true) && went_on.contains(&false));
}

#[test]
fn the_probe_can_be_recorded_again_after_a_failure() {
    static PROBE: Small = Small::new();
    let view = PROBE.view();
    let lane = view.claim("a").unwrap();
    assert!(matches!(
        Drain::start(view, Memory::failing_at(0), &HEADER, &[], Level::TIMING),
        Err(Start::Sink(support::Broken))
    ));
    let drain = start(view, Memory::failing_at(2), Level::TIMING);
    drop(span!(lane, "lost"));
    let _ = drain.finish(&[]);
    let mut drain = start(view, Memory::default(), Level::TIMING);
    assert!(matches!(
        Drain::start(view, Memory::default(), &HEADER, &[], Level::TIMING),
        Err(Start::Unavailable(_))
    ));
    drop(span!(lane, "kept"));
    drain.poll(Flush::All).unwrap();
    let (summary, file) = support::finish(drain);
    assert_eq!((summary.records, file.of(LEVEL).len()), (2, 1));
    assert_eq!(file.name(&file.stored(0)[0]), "kept");
    assert_eq!(view.after_finish(), 0);
}

#[test]
fn memory_that_is_there_already_takes_what_fits_and_no_half_chunk() {
    for size in (0..2000).step_by(64) {
        let mut memory = vec![0xaa; size];
        let mut sink = SliceSink::new(&mut memory);
        let probe = Box::new(Small::new());
        let lane = probe.view().claim("a").unwrap();
        let Ok(mut drain) = Drain::start(probe.view(), &mut sink, &HEADER, &[], Level::TIMING)
        else {
            assert_eq!((size, sink.written().len()), (0, 0));
            continue;
        };
        (0..5).for_each(|i| lane.recorder().scalar(NameId::NONE, f64::from(i)));
        let polled = drain.poll(Flush::All);
        let (summary, ended) = drain.finish(&[TERMINAL]);
        let full = matches!(ended, Err(MemoryFull));
        let file = File::prefix(sink.written());
        // What did not fit earlier may leave room for an end.
        assert_eq!(file.trailer, !full, "with {size} bytes");
        assert!(file.trailer || polled.is_err() || full);
        assert_eq!(summary.records, file.records.len() as u64);
    }
}
