//! Models: this crate's own code under a checker that tries the interleavings of a few threads, and
//! the answers that the memory orderings allow, up to a number of preemptions.
//!
//! `.ci/models` runs them. What is shrunk for them (`cfg!(all(loom, test))`) is only how many of a
//! thing there are.

mod claims;
mod gap;
mod level;
mod missed;
mod overwrite;
mod push_drain;

use loom::sync::Arc;
use tmrun_formats::wire::{Payload, Record, RecordHeader, Scalar};
use tmrun_formats::{LaneId, Level, NameId, Ticks};

use crate::clock::Clock;
use crate::drain::overruns;
use crate::lane::{LaneBlock, LaneMirror};
use crate::ring::{self, Ring, Slot};

/// Checks a model of two parties with up to so many preemptions, twice.
///
/// The checker runs a model once and then tries what could have gone otherwise, by the last access to
/// each object: who reads its own counter before it writes it hides from it who had read the counter
/// before. So each of the two goes first once.
fn check(preemptions: usize, model: impl Fn(Turn) + Copy + Send + Sync + 'static) {
    for turn in [Turn::Caller, Turn::Other] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(move || model(turn));
    }
}

/// Which of two parties goes first, when nothing is known of what could go otherwise.
#[derive(Clone, Copy)]
enum Turn {
    Caller,
    Other,
}

impl Turn {
    /// Runs both at once.
    fn both<A: 'static, B: 'static>(
        self,
        caller: impl FnOnce() -> A + 'static,
        other: impl FnOnce() -> B + 'static,
    ) -> (A, B) {
        match self {
            Self::Caller => {
                let other = loom::thread::spawn(other);
                let caller = caller();
                (caller, other.join().unwrap())
            }
            Self::Other => {
                let caller = loom::thread::spawn(caller);
                let other = other();
                (caller.join().unwrap(), other)
            }
        }
    }
}

/// A clock that stands still.
enum Still {}

impl Clock for Still {
    const NAME: &'static str = "still";

    fn ticks() -> Ticks {
        Ticks(7)
    }

    fn ticks_per_second() -> u64 {
        1
    }
}

/// A lane and its memory, as a probe has them.
struct Memory<const SLOTS: usize> {
    block: LaneBlock,
    mirror: LaneMirror,
    slots: [Slot; SLOTS],
}

impl<const SLOTS: usize> Memory<SLOTS> {
    fn new() -> Arc<Self> {
        let slots = core::array::from_fn(|_| Slot::new());
        Arc::new(Self { block: LaneBlock::new(), mirror: LaneMirror::new(), slots })
    }

    /// The same, claimed.
    fn claimed() -> Arc<Self> {
        let memory = Self::new();
        assert!(memory.claim(1));
        memory
    }

    fn claim(&self, owner: u32) -> bool {
        let ring = Ring { mirror: &self.mirror, slots: &self.slots };
        self.block.try_claim::<Still>(LaneId(0), ring, NameId(owner), owner.into())
    }

    /// Records a group of so many of this value; `false` when it was dropped.
    fn push<C: Clock>(&self, value: u32, group: u64) -> bool {
        let now = C::ticks();
        let Some(mut store) = self.block.reserve::<C>(group, (now, now), Scalar::KIND.plane())
        else {
            return false;
        };
        let header = RecordHeader::of::<Scalar>(Level::PULSE);
        let scalar = Scalar { value: value.into() };
        store.put(header, &scalar);
        (1..group).for_each(|_| store.put_continued(header, 0, &scalar));
        store.publish();
        true
    }

    /// What the drain does with a ring that rests: looks, reads, counts its gaps, gives it back.
    fn take(&self) -> Vec<Record> {
        let (block, tail) = (&self.block, self.block.taken());
        let head = block.observe_head();
        // SAFETY: the only consumer; given back below, behind the last use.
        let records = unsafe { ring::published(&self.slots, tail, head) };
        overruns(LaneId(0), records).for_each(|gap| block.took_gap(&gap));
        let taken = records.concat();
        block.take_until(head);
        assert_eq!(taken.len() as u64, head - tail);
        for (position, record) in (tail..).zip(&taken) {
            assert_eq!(u64::from(record.header().seq), position, "a record is at its position");
        }
        taken
    }
}

/// The value of a record that [`Memory::push`] made.
fn value(record: &Record) -> Option<u32> {
    record.payload::<Scalar>().map(|scalar| scalar.value as u32)
}
