//! Records that find no lane while the drain tells of some.

use loom::sync::Arc;
use tmrun_formats::Planes;

use super::check;
use crate::shared::{Missed, MissedTold};

/// What the drain does when it tells: how many records, of which planes.
fn tell((missed, told): &(Missed, MissedTold)) -> (u32, Planes) {
    let (records, _) = told.take(missed);
    let planes = missed.planes();
    told.clear_planes(missed);
    (records, planes)
}

#[test]
fn the_gap_that_counts_a_record_has_its_plane() {
    check(3, |turn| {
        let shared = Arc::new((Missed::new(), MissedTold::new()));
        shared.0.count(Planes::HOST_TIME);
        let (teller, counter) = (shared.clone(), shared.clone());
        let (first, ()) =
            turn.both(move || tell(&teller), move || counter.0.count(Planes::SCALARS));
        let second = tell(&shared);
        assert!(first.0 >= 1 && first.1.contains(Planes::HOST_TIME));
        assert_eq!(first.0 + second.0, 2);
        let of_scalar = if first.0 == 2 { first.1 } else { second.1 };
        assert!(of_scalar.contains(Planes::SCALARS));
        assert_eq!(tell(&shared), (0, Planes::NONE), "nothing is told twice");
    });
}
