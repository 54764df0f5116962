//! A producer that goes round its ring while the drain looks.

mod support;

use support::{Counting, HEADER, TERMINAL};
use tmrun_formats::{Level, NameId};
use tmrun_probe_core::{Drain, Flush, Lane, Overwrite, Probe, Sink};

type Newest = Overwrite<Counting>;

const SLOTS: u64 = 32;

/// A sink whose every write lets the lane go round twice.
struct Busy<'p>(Option<Lane<'p, Newest>>, u64);

impl Sink for Busy<'_> {
    type Error = core::convert::Infallible;

    fn write(&mut self, _: &[&[u8]]) -> Result<(), Self::Error> {
        let Some(lane) = &self.0 else { return Ok(()) };
        for _ in 0..2 * SLOTS {
            lane.recorder().scalar(NameId::NONE, 1.0);
            self.1 += 1;
        }
        Ok(())
    }

    fn cut(&mut self, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[test]
fn what_is_lapped_between_two_looks_of_one_poll_is_counted() {
    let probe = Box::new(Probe::<Newest, 1, { SLOTS as usize }, 4>::new());
    let mut sink = Busy(Some(probe.view().claim("busy").unwrap()), 0);
    let Ok(mut drain) = Drain::start(probe.view(), &mut sink, &HEADER, &[], Level::TIMING) else {
        panic!("it starts")
    };
    let mut taken = 0;
    for _ in 0..10 {
        taken += drain.poll(Flush::All).unwrap().records;
    }
    let (summary, ended) = drain.finish(&[TERMINAL]);
    ended.unwrap();
    assert!(taken > 10 * SLOTS, "what is written over is taken too");
    assert!(summary.records > 0 && summary.dropped > 0);
}
