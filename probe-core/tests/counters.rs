//! Counters that pass 2^32: nothing repeats, nothing is lost.

mod support;

use std::collections::BTreeSet;

use support::read::{OVERRUN, SPAN};
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::{LaneId, Level, NameId, TensorId};
use tmrun_probe_core::{MAX_DEPTH, OpFact, Probe, span};

const TURN: u64 = 1 << 32;

#[test]
fn sequences_and_span_ids_go_on_in_full_past_two_to_the_32() {
    static PROBE: Probe<Counting, 1, 64, 64> = Probe::new();
    let probe = PROBE.view();
    probe.preset_counters(LaneId(0), TURN - 150, TURN - 300);
    let lane = probe.claim("producer").unwrap();
    let mut drain = start(probe, Memory::default(), Level::TIMING);
    for _ in 0..100 {
        let _outer = span!(lane, "outer");
        drop(span!(lane, "inner"));
        drop(span!(lane, "inner"));
        poll(&mut drain);
    }
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);

    let spans = file.of(SPAN);
    assert_eq!(spans.len(), 300);
    assert_eq!(spans[0].position, TURN - 150);
    assert_eq!(spans[299].position, TURN + 149, "positions go on in full");
    let ids: BTreeSet<u64> = spans.iter().map(|span| span.span_id()).collect();
    assert_eq!(ids.len(), 300, "no id repeats");
    let last = *ids.last().unwrap();
    assert_eq!(*ids.first().unwrap(), TURN - 299);
    assert!(!ids.contains(&TURN), "an id whose low half is 0 would read as none");
    let left_out: Vec<u64> = (TURN - 299..last).filter(|id| !ids.contains(id)).collect();
    assert_eq!(left_out.last(), Some(&TURN), "ids go on in full behind those left out");
    assert!(left_out.windows(2).all(|two| two[0] + 1 == two[1]), "which are in one place");
    assert!(left_out.len() < 64 + 2 * MAX_DEPTH, "and few: {}", left_out.len());

    for span in &spans {
        let (parent, own) = (span.u64_at(8), span.span_id());
        match file.name(span).as_str() {
            "outer" => assert_eq!(parent, 0),
            _ => {
                let between = (parent..own).filter(|id| !left_out.contains(id)).count();
                assert!(ids.contains(&parent) && between <= 3, "{parent} is around {own}");
            }
        }
    }
    let totals = file.totals(0).unwrap();
    assert_eq!((totals.records, totals.spans), (TURN + 150, last));
}

#[test]
fn every_counter_passes_two_to_the_32_wherever_in_a_group_it_does() {
    for before in 0..=17 {
        let probe = Box::new(Probe::<Counting, 1, 32, 16>::new());
        let view = probe.view();
        view.preset_counters(LaneId(0), TURN - before, TURN - 2);
        let lane = view.claim("producer").unwrap();
        let mut drain = start(view, Memory::default(), Level::TIMING);
        let inputs = [TensorId(7); 75];
        for _ in 0..2 {
            lane.recorder().op(NameId::NONE, &OpFact { inputs: &inputs, ..OpFact::default() });
            lane.recorder().op(NameId::NONE, &OpFact { inputs: &inputs, ..OpFact::default() });
            // No room in the first round; the gap of it takes the second group's place in the next.
            drop(span!(lane, "behind"));
            poll(&mut drain);
        }
        let (summary, file) = finish(drain);
        let stored = file.stored(0);
        assert_eq!((stored.len(), summary.dropped), (32 + 16 + 1, 1 + 16), "{before} before");
        assert_eq!(stored[0].position, TURN - before);
        assert_eq!(file.dropped(0, OVERRUN), summary.dropped);
        let ids = stored.iter().filter(|record| record.kind == SPAN).map(|span| span.span_id());
        assert!(ids.clone().count() > 0 && ids.clone().all(|id| id > TURN), "and no id is 2^32");
    }
}
