//! Levels: which sites record, from when and until when.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use support::read::{File, LEVEL, RECORDER, SCALAR, SPAN};
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::{Frame, Kind};
use tmrun_formats::{Level, LevelSource, NameId};
use tmrun_probe_core::{
    Probe, Recorder, Site, Target, TensorFact, measured, probe, record_scalar, scalar, span,
};

type Small = Probe<Counting, 1, 1024, 64>;

/// Level changes as (old, new, who, asked, armed).
fn changes(file: &File) -> Vec<(u8, u8, LevelSource, u64, u64)> {
    let changes = file.of(LEVEL).into_iter().map(|record| {
        assert_eq!(record.lane, RECORDER);
        let [old, new, source] = record.payload[16..19].try_into().unwrap();
        (old, new, LevelSource(source), record.u64_at(0), record.u64_at(8))
    });
    changes.collect()
}

/// One record of each level, by its least level.
fn one_of_each<T: Target>(target: &T, scalar: impl FnOnce(), span: impl FnOnce()) {
    scalar();
    span();
    let tensor = |recorder: Recorder<'_, T::Clock>| {
        recorder.tensor(NameId::NONE, &TensorFact::default());
    };
    target.at(Level::METADATA, tensor);
    let range = |recorder: Recorder<'_, T::Clock>| {
        recorder.range(NameId::NONE, &tmrun_probe_core::Range::default());
    };
    target.at(Level::NUMERICS, range);
}

#[test]
fn each_level_records_what_it_asks_for_and_nothing_else() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let all = [SCALAR, SPAN, Kind::Tensor as u8, Kind::Range as u8];
    for level in [3, 0, 2, 1, 9] {
        let drain = start(PROBE.view(), Memory::default(), Level(level));
        assert_eq!(PROBE.view().level(), Some(Level(level.min(3))), "no level is above 3");
        one_of_each(&lane, || scalar!(lane, "loss", 1.0), || drop(span!(lane, "span")));
        let (_, file) = finish(drain);
        let kinds: Vec<u8> = file.stored(0).iter().map(|record| record.kind).collect();
        assert_eq!(kinds, all[..=usize::from(level.min(3))]);
        let levels: Vec<u8> = file.stored(0).iter().map(|record| record.level).collect();
        assert_eq!(levels, [0, 1, 2, 3][..=usize::from(level.min(3))]);
        assert_eq!(PROBE.view().level(), None);
        one_of_each(&lane, || scalar!(lane, "loss", 1.0), || drop(span!(lane, "span")));
        drop(lane.step(1));
        assert_eq!(PROBE.view().after_finish(), 0, "disarmed sites record nothing");
    }
}

#[test]
fn a_change_of_level_arms_and_disarms_in_both_directions_and_is_recorded_in_order() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let mut drain = start(PROBE.view(), Memory::default(), Level::PULSE);
    let tick = |value: f64| {
        scalar!(lane, "value", value);
        drop(span!(lane, "span"));
    };
    tick(0.0);
    PROBE.view().set_level(Level::NUMERICS);
    tick(1.0);
    poll(&mut drain);
    PROBE.view().set_level(Level::PULSE);
    tick(2.0);
    PROBE.view().set_level(Level::TIMING);
    tick(3.0);
    let (_, file) = finish(drain);
    let changes = changes(&file);
    let levels: Vec<_> = changes.iter().map(|change| (change.0, change.1)).collect();
    assert_eq!(levels, [(0, 0), (0, 3), (3, 0), (0, 1)]);
    assert_eq!(changes[0].2, LevelSource::START);
    assert!(changes[1..].iter().all(|change| change.2 == LevelSource::APPLICATION));
    let ticks: Vec<_> = changes.iter().flat_map(|change| [change.3, change.4]).collect();
    assert!(ticks.is_sorted_by(|a, b| a < b));
    let (spans, scalars) = (file.of(SPAN), file.of(SCALAR));
    assert_eq!((spans.len(), scalars.len()), (2, 4));
    assert!(spans[0].ticks > changes[1].4 && spans[0].ticks < changes[2].3);
    assert!(spans[1].ticks > changes[3].4);
}

#[test]
fn a_guard_that_was_armed_when_it_opened_writes_and_one_that_was_not_never_does() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    let armed = span!(lane, "armed");
    PROBE.view().set_level(Level::PULSE);
    let not_armed = span!(lane, "not armed");
    assert_eq!(not_armed.id().0, 0);
    PROBE.view().set_level(Level::TIMING);
    let child = span!(lane, "child");
    drop(child);
    drop(not_armed);
    PROBE.view().set_level(Level::PULSE);
    drop(armed);
    let (_, file) = finish(drain);
    let spans = file.of(SPAN);
    let names: Vec<_> = spans.iter().map(|span| file.name(span)).collect();
    assert_eq!(names, ["child", "armed"]);
    assert_eq!(spans[0].u64_at(8), spans[1].span_id(), "in the nearest ancestor that is recorded");
    assert_eq!(spans[0].u16_at(24), 1);
}

#[test]
fn a_site_reached_only_after_the_change_is_armed_by_it() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let drain = start(PROBE.view(), Memory::default(), Level::PULSE);
    PROBE.view().set_level(Level::TIMING);
    drop(span!(lane, "new"));
    PROBE.view().set_level(Level::PULSE);
    drop(span!(lane, "too late"));
    PROBE.view().set_level(Level::TIMING);
    let (_, file) = finish(drain);
    assert_eq!(file.of(SPAN).len(), 1);
    let sites: Vec<_> = file
        .frames()
        .into_iter()
        .filter_map(|frame| match frame {
            Frame::Site(site) => Some((file.names()[&site.name.0].text, site.kind, site.level.0)),
            _ => None,
        })
        .collect();
    assert_eq!(sites, [("too late", SPAN, 1), ("new", SPAN, 1)], "each is described once");
}

#[test]
fn above_the_compiled_level_nothing_is_recorded_and_nothing_is_evaluated() {
    probe!(static PROBE: lanes = 1, slots = 64, max_level = 0; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::NUMERICS);
    let mut evaluated = 0;
    {
        let _measured = measured!(PROBE, "update");
        let span = span!(PROBE, "span");
        assert_eq!(span.id().0, 0);
        PROBE.at(Level::TIMING, |_| evaluated += 1);
        PROBE.at(Level::PULSE, |_| evaluated += 10);
    }
    let (_, file) = finish(drain);
    assert_eq!(evaluated, 10);
    let names: Vec<_> = file.of(SPAN).iter().map(|span| file.name(span)).collect();
    assert_eq!(names, ["update"]);
    assert!(file.names().values().all(|name| name.text != "span"), "no site above it is known");
}

#[test]
fn what_is_not_compiled_in_is_recorded_as_not_asked_for() {
    probe!(static PROBE: lanes = 1, slots = 64, max_level = 1; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::NUMERICS);
    assert_eq!((PROBE.max_level(), PROBE.level()), (Level::TIMING, Some(Level::TIMING)));
    PROBE.set_level(Level::PULSE);
    PROBE.set_level(Level::METADATA);
    PROBE.set_focus("encoder.**", Level::NUMERICS).unwrap();
    assert_eq!(PROBE.level(), Some(Level::TIMING));
    let (_, file) = finish(drain);
    let levels: Vec<_> = changes(&file).iter().map(|&(old, new, ..)| (old, new)).collect();
    assert_eq!(levels, [(1, 1), (1, 0), (0, 1), (0, 1)], "the last is of the focus");
}

#[test]
fn nothing_changes_the_level_of_a_probe_that_is_not_recorded() {
    static PROBE: Small = Small::new();
    let view = PROBE.view();
    view.set_level(Level::NUMERICS);
    assert_eq!(view.level(), None);
    let drain = start(view, Memory::default(), Level::PULSE);
    let (_, file) = finish(drain);
    view.set_level(Level::NUMERICS);
    assert_eq!((view.level(), changes(&file).len()), (None, 1));
    let lane = view.claim("a").unwrap();
    drop(lane.step(1));
    assert_eq!(view.after_finish(), 0);
}

#[test]
fn changes_that_race_the_end_of_a_recording_leave_the_probe_disarmed() {
    static PROBE: Small = Small::new();
    let view = PROBE.view();
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut level = 0;
            while !stop.load(Ordering::Relaxed) {
                level = (level + 1) % 4;
                view.set_level(Level(level));
            }
        });
        for _ in 0..2000 {
            let drain = start(view, Memory::default(), Level::PULSE);
            let (_, file) = finish(drain);
            assert_eq!(view.level(), None);
            let changes = changes(&file);
            assert_eq!(changes[0].2, LevelSource::START, "nothing of the recording before");
            assert!(changes.windows(2).all(|pair| pair[0].1 == pair[1].0), "each from the last");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn sites_that_register_while_the_level_changes_end_up_as_the_last_change_says() {
    // Each round has a new probe and new sites, which a thread reaches as another changes the level.
    for round in 0..300_u32 {
        let probe: &'static Small = Box::leak(Box::new(Small::new()));
        let view = probe.view();
        let sites: &'static [Site] = Box::leak(Box::new(
            [const { Site::new("site", Kind::Scalar, Level::TIMING, "", 0) }; 64],
        ));
        let drain = start(view, Memory::default(), Level::PULSE);
        let last = Level((round % 2) as u8);
        let lane = view.claim("a").unwrap();
        let together = &Barrier::new(2);
        let lane = std::thread::scope(|scope| {
            let reaches = scope.spawn(move || {
                together.wait();
                sites.iter().for_each(|site| record_scalar(&lane, site, || 1.0));
                lane
            });
            together.wait();
            for change in (0..200).rev() {
                view.set_level(Level((last.0 + change) % 2));
            }
            reaches.join().unwrap()
        });
        for site in sites {
            let mut records = false;
            record_scalar(&lane, site, || {
                records = true;
                2.0
            });
            assert_eq!(records, last == Level::TIMING, "in round {round}");
        }
        drop(finish(drain));
        sites.iter().for_each(|site| record_scalar(&lane, site, || panic!("it is disarmed")));
        let drain = start(view, Memory::default(), Level::TIMING);
        sites.iter().for_each(|site| record_scalar(&lane, site, || 3.0));
        let (_, file) = finish(drain);
        assert_eq!(file.of(SCALAR).len(), sites.len());
    }
}
