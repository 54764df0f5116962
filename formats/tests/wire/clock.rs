//! The clock map, for any knots.

use proptest::prelude::*;
use tmrun_formats::{ClockMap, HostNs, Knot, Ticks};

/// Numbers of every size, and the ends of the scale.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..1_000_u64, any::<u32>().prop_map(u64::from), Just(u64::MAX)]
}

fn knots() -> impl Strategy<Value = Vec<Knot>> {
    let knot = |(ticks, ns)| Knot { ticks: Ticks(ticks), ns: HostNs(ns) };
    let wild = || prop::collection::vec((numbers(), numbers()).prop_map(knot), 0..8);
    let sorted = wild().prop_map(|mut knots| {
        let mut ns: Vec<HostNs> = knots.iter().map(|knot| knot.ns).collect();
        ns.sort_unstable();
        knots.sort_unstable_by_key(|knot| knot.ticks);
        knots.iter_mut().zip(ns).for_each(|(knot, ns)| knot.ns = ns);
        knots
    });
    prop_oneof![wild(), sorted]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_map_never_decreases(knots in knots(), rate in numbers(), mut ticks in prop::collection::vec(numbers(), 2..20)) {
        let map = ClockMap::new(&knots, rate);
        for knot in &knots {
            let around = [knot.ticks.0.saturating_sub(1), knot.ticks.0, knot.ticks.0.saturating_add(1)];
            ticks.extend(around);
        }
        ticks.sort_unstable();
        let ns: Vec<HostNs> = ticks.iter().map(|&ticks| map.ns(Ticks(ticks))).collect();
        prop_assert!(ns.is_sorted(), "{:?} → {:?}", ticks, ns);
    }

    #[test]
    fn the_map_passes_through_every_knot_that_it_uses(knots in knots(), rate in numbers()) {
        let map = ClockMap::new(&knots, rate);
        let used = &knots[..map.knots()];
        for knot in used {
            prop_assert_eq!(map.ns(knot.ticks), knot.ns);
        }
        prop_assert!(used.is_sorted_by(|a, b| a.ticks < b.ticks && a.ns <= b.ns));
        if let [.., last] = used && let Some(next) = knots.get(used.len()) {
            prop_assert!(next.ticks <= last.ticks || next.ns < last.ns, "it stops only where it must");
        }
    }
}
