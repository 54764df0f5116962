//! Foci: which nodes more is recorded of, from when and until when.

mod support;

use std::sync::Barrier;

use support::read::{File, GAP, LEVEL, RECORDER, SCALAR, SPAN};
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::Kind;
use tmrun_formats::{GradientState, Level, LevelSource, NameId};
use tmrun_probe_core::{
    DeviceMemoryFact, FocusError, MemoryFact, OpFact, PatternError, Probe, Range, Recorder, Site,
    Stats, Target, TensorFact, measured, probe, record_scalar, scalar, span,
};

type Small = Probe<Counting, 1, 1024, 64>;

/// Changes of foci as (pattern, old, new, asked, armed).
fn changes(file: &File) -> Vec<(String, u8, u8, u64, u64)> {
    let named = file.of(LEVEL).into_iter().filter(|record| record.name != 0);
    let changes = named.map(|record| {
        assert_eq!((record.lane, record.payload[18]), (RECORDER, LevelSource::APPLICATION.0));
        let [old, new] = record.payload[16..18].try_into().unwrap();
        (file.name(&record), old, new, record.u64_at(0), record.u64_at(8))
    });
    changes.collect()
}

/// Every fact that has a node, once.
fn every_fact<C: tmrun_probe_core::Clock>(recorder: Recorder<'_, C>, node: NameId) {
    recorder.scalar(node, 1.0);
    recorder.op(node, &OpFact::default());
    recorder.tensor(node, &TensorFact::default());
    recorder.stats(node, &TensorFact::default(), true, &Stats::default(), None);
    recorder.range(node, &Range::default());
    recorder.gradient(NameId::NONE, node, GradientState::PRESENT, None);
    recorder.alloc(node, &MemoryFact::default());
    recorder.free(node, &MemoryFact::default());
}
/// How many records that makes.
const FACTS: usize = 9;

#[test]
fn a_focus_records_more_of_its_nodes_and_no_more_of_the_others() {
    static PROBE: Small = Small::new();
    let (probe, lane) = (PROBE.view(), PROBE.view().claim("a").unwrap());
    let (inside, outside) = (probe.name("layers.3.attn"), probe.name("layers.4.attn"));
    let drain = start(probe, Memory::default(), Level::PULSE);
    probe.set_focus("layers.3.*", Level::METADATA).unwrap();
    assert_eq!(probe.level(), Some(Level::PULSE), "of every node");
    assert!(probe.records(Level::METADATA) && !probe.records(Level::NUMERICS), "of some node");
    assert!(probe.wants(inside, Level::METADATA) && !probe.wants(inside, Level::NUMERICS));
    assert!(probe.wants(outside, Level::PULSE) && !probe.wants(outside, Level::TIMING));
    let ran = lane.at(Level::METADATA, |recorder| {
        assert!(recorder.wants(inside) && !recorder.wants(outside));
        for node in [outside, NameId::NONE, inside] {
            every_fact(recorder, node);
        }
        recorder.device_memory(&DeviceMemoryFact { used: Some(1), ..Default::default() });
    });
    assert!(ran.is_some());
    lane.at(Level::TIMING, |recorder| {
        recorder.static_edge(outside, outside, 1);
        recorder.static_edge(outside, inside, 2);
        recorder.static_edge(inside, outside, 3);
        recorder.data_edge(Default::default(), Default::default());
    });
    assert!(lane.at(Level::NUMERICS, |_| ()).is_none());
    drop(span!(lane, outside));
    drop(span!(lane, NameId::NONE));
    drop(span!(lane, inside));
    drop(span!(lane, "layers.4.mlp"));
    drop(span!(lane, "layers.3.mlp"));
    let (_, file) = finish(drain);
    let stored = file.stored(0);
    let of = |kind: Kind| stored.iter().filter(move |record| record.kind == kind as u8);
    assert_eq!(stored.iter().filter(|record| record.name == inside.0).count(), FACTS + 1);
    assert!(stored.iter().all(|record| record.name != outside.0));
    let durations: Vec<_> = of(Kind::Edge).map(|edge| edge.u64_at(16)).collect();
    assert_eq!(durations, [2, 3], "an edge is wanted where either of its nodes is");
    let spans: Vec<_> = of(Kind::Span).map(|span| file.name(span)).collect();
    assert_eq!(spans, ["layers.3.attn", "layers.3.mlp"]);
    assert_eq!(stored.len(), FACTS + 2 + 2);
}

#[test]
fn the_level_of_every_node_goes_before_a_lower_focus_and_the_greatest_focus_counts() {
    static PROBE: Small = Small::new();
    let probe = PROBE.view();
    let node = probe.name("a.b");
    let drain = start(probe, Memory::default(), Level::METADATA);
    let wants = |level| probe.wants(node, level);
    probe.set_focus("a.*", Level::TIMING).unwrap();
    assert!(wants(Level::METADATA) && !wants(Level::NUMERICS));
    probe.set_focus("*.b", Level::NUMERICS).unwrap();
    assert!(wants(Level::NUMERICS));
    probe.set_level(Level::PULSE);
    assert!(wants(Level::NUMERICS));
    probe.clear_focus("*.b");
    assert!(wants(Level::TIMING) && !wants(Level::METADATA));
    probe.set_focus("a.*", Level(200)).unwrap();
    assert!(wants(Level::NUMERICS) && !wants(Level(4)), "no level is above 3");
    probe.set_focus("a.*", Level::PULSE).unwrap();
    assert!(!wants(Level::TIMING), "level 0 asks for no more");
    probe.clear_focus("a.*");
    probe.clear_focus("never.set");
    let (_, file) = finish(drain);
    let levels: Vec<_> = changes(&file).into_iter().map(|c| (c.0, c.1, c.2)).collect();
    let expected = [("a.*", 0, 1), ("*.b", 0, 3), ("*.b", 3, 0), ("a.*", 1, 3), ("a.*", 3, 0)];
    assert_eq!(levels, expected.map(|(pattern, old, new)| (pattern.to_owned(), old, new)));
}

#[test]
fn what_is_raised_is_recorded_from_the_second_tick_and_what_is_lowered_until_the_first() {
    static PROBE: Small = Small::new();
    let (probe, lane) = (PROBE.view(), PROBE.view().claim("a").unwrap());
    let node = probe.name("layer");
    let mut drain = start(probe, Memory::default(), Level::PULSE);
    let both = || {
        drop(span!(lane, node));
        drop(span!(lane, "layer"));
        drop(span!(lane, "other"));
    };
    both();
    probe.set_focus("layer", Level::TIMING).unwrap();
    both();
    poll(&mut drain);
    probe.clear_focus("layer");
    both();
    let (_, file) = finish(drain);
    let (changes, spans) = (changes(&file), file.of(SPAN));
    let [raised, lowered] = &changes[..] else { panic!("{changes:?}") };
    assert!(raised.3 < raised.4 && raised.4 < lowered.3 && lowered.3 < lowered.4);
    assert_eq!(spans.len(), 2);
    assert!(spans.iter().all(|span| span.ticks > raised.4 && span.u64_at(0) < lowered.3));
}

#[test]
fn a_guard_of_a_focus_writes_if_it_was_armed_when_it_opened_and_only_then() {
    static PROBE: Small = Small::new();
    let (probe, lane) = (PROBE.view(), PROBE.view().claim("a").unwrap());
    let [armed, late] = ["armed", "late"].map(|name| probe.name(name));
    let drain = start(probe, Memory::default(), Level::PULSE);
    probe.set_focus("armed", Level::TIMING).unwrap();
    let armed = span!(lane, armed);
    probe.clear_focus("armed");
    let late = span!(lane, late);
    assert_eq!(late.id().0, 0);
    probe.set_focus("late", Level::TIMING).unwrap();
    probe.set_level(Level::TIMING);
    probe.set_level(Level::PULSE);
    drop(late);
    drop(armed);
    let (_, file) = finish(drain);
    let names: Vec<_> = file.of(SPAN).iter().map(|span| file.name(span)).collect();
    assert_eq!(names, ["armed"]);
}

#[test]
fn children_attach_to_the_nearest_ancestor_that_is_recorded() {
    static PROBE: Small = Small::new();
    let (probe, lane) = (PROBE.view(), PROBE.view().claim("a").unwrap());
    let nodes = ["net.3", "net.3.attn", "net.3.attn.q", "net.4"].map(|name| probe.name(name));
    let drain = start(probe, Memory::default(), Level::PULSE);
    probe.set_focus("net.3", Level::TIMING).unwrap();
    probe.set_focus("**.q", Level::TIMING).unwrap();
    {
        let _measured = measured!(lane, "update");
        let _forward = span!(lane, "forward");
        let _nodes = nodes.map(|node| {
            let guard = span!(lane, node);
            lane.at(Level::PULSE, |recorder| recorder.scalar(NameId::NONE, 0.0));
            guard
        });
    }
    let (_, file) = finish(drain);
    let mut spans = file.of(SPAN);
    spans.sort_by_key(|span| span.span_id());
    let names: Vec<_> = spans.iter().map(|span| file.name(span)).collect();
    assert_eq!(names, ["update", "net.3", "net.3.attn.q"]);
    let parents: Vec<_> = spans.iter().map(|span| span.u64_at(8)).collect();
    assert_eq!(parents, [0, 1, 2]);
    let within: Vec<_> = file.of(SCALAR).iter().map(|scalar| scalar.span).collect();
    assert_eq!(within, [2, 2, 3, 3], "and so do facts");
}

#[test]
fn a_node_and_a_site_that_come_after_the_focus_are_of_it() {
    static PROBE: Small = Small::new();
    let (probe, lane) = (PROBE.view(), PROBE.view().claim("a").unwrap());
    let drain = start(probe, Memory::default(), Level::PULSE);
    probe.set_focus("late.*", Level::TIMING).unwrap();
    let [inside, outside] = ["late.node", "early.node"].map(|name| probe.name(name));
    drop((span!(lane, inside), span!(lane, outside)));
    drop((span!(lane, "late.site"), span!(lane, "early.site")));
    let (_, file) = finish(drain);
    let mut names: Vec<_> = file.of(SPAN).iter().map(|span| file.name(span)).collect();
    names.sort_unstable();
    assert_eq!(names, ["late.node", "late.site"]);
}

#[test]
fn foci_have_so_many_places_and_say_what_is_wrong() {
    static PROBE: Small = Small::new();
    let probe = PROBE.view();
    let drain = start(probe, Memory::default(), Level::PULSE);
    let wrong = FocusError::Pattern(PatternError::EmptySegment { at: 2 });
    assert_eq!(probe.set_focus("a..b", Level::TIMING), Err(wrong));
    assert_eq!(probe.set_focus("a..b", Level::PULSE), Err(wrong));
    for focus in 0..16 {
        probe.set_focus(&format!("node.{focus}"), Level::TIMING).unwrap();
    }
    let full = Err(FocusError::Full(16));
    assert_eq!(probe.set_focus("one.more", Level::TIMING), full);
    assert_eq!(probe.set_focus("node.7", Level::NUMERICS), Ok(()), "it has its place");
    assert!(!probe.wants(probe.name("one.more"), Level::TIMING));
    probe.clear_focus("node.3");
    assert_eq!(probe.set_focus("one.more", Level::TIMING), Ok(()));
    assert_eq!(probe.set_focus("node.3", Level::TIMING), full);
    let (_, file) = finish(drain);
    assert_eq!(changes(&file).len(), 19, "what was refused is no change");
}

#[test]
fn a_pattern_without_room_for_its_name_is_no_focus() {
    static PROBE: Probe<Counting, 1, 64, 2> = Probe::new();
    let probe = PROBE.view();
    let drain = start(probe, Memory::default(), Level::PULSE);
    let [_, node] = ["a", "b"].map(|name| probe.name(name));
    assert_eq!(probe.set_focus("*", Level::TIMING), Err(FocusError::NoName));
    assert!(!probe.wants(node, Level::TIMING));
    assert_eq!(probe.set_focus("b", Level::TIMING), Ok(()), "that name is known");
    assert!(probe.wants(node, Level::TIMING));
    drop(finish(drain));
}

#[test]
fn foci_are_of_one_recording() {
    static PROBE: Small = Small::new();
    let (probe, lane) = (PROBE.view(), PROBE.view().claim("a").unwrap());
    let node = probe.name("node");
    assert_eq!(probe.set_focus("node", Level::NUMERICS), Ok(()), "nothing is recording");
    assert!(!probe.wants(node, Level::PULSE) && !probe.records(Level::PULSE));
    let drain = start(probe, Memory::default(), Level::PULSE);
    assert!(!probe.wants(node, Level::TIMING));
    probe.set_focus("node", Level::NUMERICS).unwrap();
    let (_, file) = finish(drain);
    assert_eq!(changes(&file).len(), 1);
    assert!(!probe.wants(node, Level::PULSE) && !probe.records(Level::PULSE));
    drop(span!(lane, node));
    lane.at(Level::PULSE, |recorder| recorder.scalar(node, 1.0));
    assert_eq!(probe.after_finish(), 0, "disarmed sites record nothing");
    let drain = start(probe, Memory::default(), Level::PULSE);
    assert!(!probe.wants(node, Level::TIMING));
    let (_, file) = finish(drain);
    assert_eq!(changes(&file), []);
}

#[test]
fn changes_beyond_those_that_can_wait_are_counted() {
    static PROBE: Small = Small::new();
    let probe = PROBE.view();
    let mut drain = start(probe, Memory::default(), Level::PULSE);
    poll(&mut drain);
    for change in 0..70 {
        probe.set_focus("node", Level(1 + change % 3)).unwrap();
    }
    let (_, file) = finish(drain);
    assert_eq!(changes(&file).len(), 64);
    let gaps: Vec<_> = file.of(GAP).iter().filter_map(|gap| gap.gap()).collect();
    assert_eq!(gaps.iter().map(|gap| gap.records).sum::<u64>(), 6);
}

#[test]
fn nodes_and_sites_that_come_while_foci_change_end_up_as_the_last_change_says() {
    for round in 0..100_u32 {
        let probe: &'static Probe<Counting, 1, 1024, 256> = Box::leak(Box::new(Probe::new()));
        let view = probe.view();
        let sites: &'static [Site] = Box::leak(Box::new(
            [const { Site::new("node.site", Kind::Scalar, Level::TIMING, "", 0) }; 64],
        ));
        let drain = start(view, Memory::default(), Level::PULSE);
        let wanted = round % 2 == 1;
        let lane = view.claim("a").unwrap();
        let together = &Barrier::new(3);
        let (lane, nodes) = std::thread::scope(|scope| {
            let reaches = scope.spawn(move || {
                together.wait();
                sites.iter().for_each(|site| record_scalar(&lane, site, || 1.0));
                lane
            });
            let interns = scope.spawn(move || {
                together.wait();
                let name = |node| view.name(&format!("node.{node}"));
                let nodes = [0; 128].iter().enumerate().map(|(node, _)| name(node));
                nodes.collect::<Vec<_>>()
            });
            together.wait();
            for change in (0..40_u32).rev() {
                let level = Level(u8::from((change % 2 == 0) == wanted));
                view.set_focus("node.*", level).unwrap();
            }
            (reaches.join().unwrap(), interns.join().unwrap())
        });
        assert!(nodes.iter().all(|node| view.wants(*node, Level::TIMING) == wanted));
        for site in sites {
            let mut records = false;
            record_scalar(&lane, site, || {
                records = true;
                2.0
            });
            assert_eq!(records, wanted, "in round {round}");
        }
        drop(finish(drain));
    }
}

/// A generic function has one call site for targets of any probe.
macro_rules! shared_sites {
    ($name:ident) => {
        fn $name<T: Target>(target: &T) {
            scalar!(*target, "shared", 1.0);
            drop(span!(*target, "net.shared"));
        }
    };
}

#[test]
fn a_site_records_for_each_probe_by_its_own_level_and_names() {
    shared_sites!(shared_site);
    static FIRST: Small = Small::new();
    static SECOND: Small = Small::new();
    let lanes = [FIRST.view(), SECOND.view()].map(|probe| probe.claim("a").unwrap());
    let first = start(FIRST.view(), Memory::default(), Level::PULSE);
    shared_site(&lanes[0]);
    SECOND.view().name("so that ids differ");
    shared_site(&lanes[1]);
    let second = start(SECOND.view(), Memory::default(), Level::TIMING);
    shared_site(&lanes[1]);
    SECOND.view().set_level(Level::PULSE);
    shared_site(&lanes[1]);
    SECOND.view().set_focus("net.*", Level::TIMING).unwrap();
    shared_site(&lanes[1]);
    let (_, of_first) = finish(first);
    shared_site(&lanes[1]);
    shared_site(&lanes[0]);
    let (_, of_second) = finish(second);
    let names = |file: &File| -> Vec<String> {
        file.stored(0).iter().map(|record| file.name(record)).collect()
    };
    assert_eq!(names(&of_first), ["shared"]);
    let both = ["shared", "net.shared"];
    assert_eq!(names(&of_second), [&both[..], &["shared"], &both, &both].concat());
    assert_eq!((FIRST.view().after_finish(), SECOND.view().after_finish()), (0, 0));
}

#[test]
fn when_a_probe_is_dropped_its_sites_are_those_of_the_next() {
    shared_sites!(shared_site);
    let file = || {
        let probe: Box<Small> = Box::default();
        let lane = probe.view().claim("a").unwrap();
        let drain = start(probe.view(), Memory::default(), Level::TIMING);
        shared_site(&lane);
        let (_, file) = finish(drain);
        file
    };
    for _ in 0..3 {
        let file = file();
        let names: Vec<_> = file.stored(0).iter().map(|record| file.name(record)).collect();
        assert_eq!(names, ["shared", "net.shared"]);
        let sites = file.frames().into_iter().filter(is_site).count();
        assert_eq!(sites, 2, "and they are described there");
    }
}

fn is_site(frame: &tmrun_formats::wire::Frame<'_>) -> bool {
    matches!(frame, tmrun_formats::wire::Frame::Site(_))
}

#[test]
fn above_the_compiled_level_a_focus_records_nothing_either() {
    probe!(static PROBE: lanes = 1, slots = 64, max_level = 1; clock = Counting);
    let node = PROBE.name("node");
    let drain = start(*PROBE, Memory::default(), Level::PULSE);
    PROBE.set_focus("**", Level::NUMERICS).unwrap();
    assert!(PROBE.at(Level::METADATA, |recorder| every_fact(recorder, node)).is_none());
    PROBE.at(Level::TIMING, |recorder| recorder.op(node, &OpFact::default()));
    let (_, file) = finish(drain);
    assert_eq!(file.stored(0).len(), 1);
}
