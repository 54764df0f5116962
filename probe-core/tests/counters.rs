//! Counters that pass 2^32: nothing repeats, nothing is lost.

mod support;

use std::collections::BTreeSet;

use support::read::SPAN;
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::{LaneId, Level};
use tmrun_probe_core::{Probe, span};

const TURN: u64 = 1 << 32;

#[test]
fn sequences_and_span_ids_go_on_in_full_past_two_to_the_32() {
    static PROBE: Probe<Counting, 1, 64, 64> = Probe::new();
    let probe = PROBE.view();
    probe.preset_counters(LaneId(0), TURN - 150, TURN - 100);
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
    assert_eq!(*ids.first().unwrap(), TURN - 99);
    assert_eq!(*ids.last().unwrap(), TURN + 201, "one id more, for the one left out");
    assert!(!ids.contains(&TURN), "an id whose low half is 0 would read as none");

    for span in &spans {
        let (parent, own) = (span.u64_at(8), span.span_id());
        match file.name(span).as_str() {
            "outer" => assert_eq!(parent, 0),
            _ => assert!(ids.contains(&parent) && own - parent <= 3, "{parent} is around {own}"),
        }
    }
    let totals = file.totals(0).unwrap();
    assert_eq!((totals.records, totals.spans), (TURN + 150, TURN + 201));
}
