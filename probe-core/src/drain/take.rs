//! Taking records out of a ring, into chunks.

use core::ops::Range;

use tmrun_formats::wire::{Frame, GROUP_MAX, HoleV1, LaneStepV1, Place, Record, StepState};
use tmrun_formats::{GapReason, LaneId, SpanId};

use super::{Drain, overruns, rests};
use crate::clock::Clock;
use crate::lane::LaneBlock;
use crate::ring::{self, Slot};
use crate::sink::Sink;

/// A chunk closes at so many records (256 KiB), or at a quarter of its ring.
const CHUNK_RECORDS: u64 = 4096;

/// Records that are copied at once out of a ring whose producer may be storing over them: a chunk.
pub(super) const COPIED: usize = 256;

/// Records at which a chunk of a ring closes.
pub(super) const fn chunk_records(slots: u64) -> u64 {
    let quarter = slots / 4;
    if quarter > CHUNK_RECORDS {
        CHUNK_RECORDS
    } else if quarter < GROUP_MAX as u64 {
        GROUP_MAX as u64
    } else {
        quarter
    }
}

/// Whether a slot holds the record of this position. One that nothing was stored to holds none, also
/// where its sequence would be the right one.
fn is_at(record: &Record, position: u64) -> bool {
    let header = record.header();
    header.seq == position as u32 && header.kind != 0
}

/// Whether a group begins at this position.
fn begins_at(record: &Record, position: u64) -> bool {
    is_at(record, position) && !record.continues()
}

/// What was copied out of a ring whose producer stores over the oldest.
pub(crate) struct Copied<'c> {
    /// What lies before it was stored over.
    pub(crate) lapped: u64,
    /// The position of the first record. What lies between the two is torn.
    pub(crate) first: u64,
    /// Whole groups.
    pub(crate) records: &'c [Record],
}

/// Copies records of these positions out of a ring whose producer stores over the oldest, as many as
/// there is room for: the first whole groups of them.
///
/// A slot that does not hold its position's record is torn: it was stored while the rings were being
/// mapped, into the pages that they had before, or somebody else wrote to it.
pub(crate) fn copy_whole<'c>(
    block: &LaneBlock,
    slots: &[Slot],
    positions: Range<u64>,
    copied: &'c mut [Record],
) -> Copied<'c> {
    let head = positions.end;
    let from = positions.start.max(block.oldest_whole()).min(head);
    let count = copied.len().min(usize::try_from(head - from).unwrap_or(usize::MAX));
    let copied = copied.get_mut(..count).unwrap_or_default();
    ring::copy(slots, from, copied);
    let copied = &*copied;
    let over = block.oldest_whole_after_copy().saturating_sub(from);
    let over = count.min(usize::try_from(over).unwrap_or(usize::MAX));
    // What continues a group whose head is lost belongs to nothing.
    let behind = copied.get(over..).unwrap_or_default();
    let lapped = over + behind.iter().take_while(|record| record.continues()).count();
    let all = || (from..).zip(copied);
    let torn = all().skip(lapped).take_while(|&(at, record)| !begins_at(record, at)).count();
    let first = lapped + torn;
    let own = all().skip(first).take_while(|&(at, record)| is_at(record, at)).count();
    let mut records = copied.get(first..first + own).unwrap_or_default();
    let end = first + own;
    if end == count && from + (count as u64) < head {
        // More follows, of the last group perhaps: it is taken with what follows.
        let last = records.iter().rposition(|record| !record.continues());
        records = records.get(..last.unwrap_or_default()).unwrap_or_default();
    }
    Copied { lapped: from + lapped as u64, first: from + first as u64, records }
}

impl<C: Clock, S: Sink> Drain<'_, C, S> {
    /// Takes the records of a lane up to `head`, in chunks, while at least so many wait.
    pub(super) fn take(
        &mut self,
        id: LaneId,
        block: &LaneBlock,
        head: u64,
        least: u64,
    ) -> Result<(), S::Error> {
        // The head was observed first: the names and the claim of every record before it are there.
        let mut result = self.write_new_names();
        result = result.and(self.write_claims(id, block));
        result.and(if rests::<C>(id) {
            self.take_resting(id, block, head, least)
        } else {
            self.take_moving(id, block, head, least)
        })
    }

    /// Of a ring in which nothing is stored over before it is taken: the slots are the chunk.
    fn take_resting(
        &mut self,
        id: LaneId,
        block: &LaneBlock,
        head: u64,
        least: u64,
    ) -> Result<(), S::Error> {
        let mut result = Ok(());
        let slots = self.probe.slots(id);
        let chunk = chunk_records(slots.len() as u64);
        let mut tail = block.taken();
        while head.wrapping_sub(tail) >= least.max(1) {
            // SAFETY: this drain is the only consumer (it took `draining`), and `tail` is not taken.
            let next = unsafe { ring::published(slots, tail, tail + 1) };
            if next[0].first().is_some_and(|record| !begins_at(record, tail)) {
                // Stored while the rings were being mapped, into the pages that they had before; or the
                // rest of such a group.
                result = result.and(self.write_hole(id, block, tail, 1, GapReason::TORN));
                tail += 1;
                block.take_until(tail);
                continue;
            }
            let mut end = tail + head.wrapping_sub(tail).min(chunk);
            // A chunk ends between groups, and `head` does: step back to where one begins. That is
            // behind the tail, because no group is longer than a chunk; a mapped page that was
            // written to by somebody else could say otherwise.
            // SAFETY: this drain is the only consumer (it took `draining`), and `end` is not taken.
            let begins = |end| unsafe { ring::published(slots, end, end + 1) };
            let first = tail + 1;
            while end != head
                && end > first
                && begins(end)[0].first().is_some_and(Record::continues)
            {
                end -= 1;
            }
            // SAFETY: as above; the slots are given back below, behind their last use.
            let records = unsafe { ring::published(slots, tail, end) };
            result = result.and(self.write_records(id, block, tail, records));
            block.take_until(end);
            tail = end;
        }
        result
    }

    /// Of a ring whose producer stores over the oldest: records are copied out, and then it is seen
    /// which of them were whole.
    fn take_moving(
        &mut self,
        id: LaneId,
        block: &LaneBlock,
        head: u64,
        least: u64,
    ) -> Result<(), S::Error> {
        let mut result = Ok(());
        let slots = self.probe.slots(id);
        let mut copied = [Record::default(); COPIED];
        let mut tail = block.taken();
        while head.saturating_sub(tail) >= least.max(1) {
            let Copied { lapped, mut first, records } =
                copy_whole(block, slots, tail..head, &mut copied);
            if records.is_empty() && first == tail {
                // No group is that long: a mapped page was written to by somebody else.
                first = head.min(tail + COPIED as u64);
            }
            let end = first + records.len() as u64;
            let holes = [(tail, lapped, GapReason::LAPPED), (lapped, first, GapReason::TORN)];
            for (from, to, reason) in holes.into_iter().filter(|(from, to, _)| from < to) {
                result = result.and(self.write_hole(id, block, from, to - from, reason));
            }
            if !records.is_empty() {
                result = result.and(self.write_records(id, block, first, [records, &[]]));
            }
            block.take_until(end);
            tail = end;
        }
        result
    }

    /// Writes records of a lane, which are all of what was taken behind the last ones, or leaves them
    /// out.
    fn write_records(
        &mut self,
        lane: LaneId,
        block: &LaneBlock,
        sequence: u64,
        records: [&[Record]; 2],
    ) -> Result<(), S::Error> {
        let run = Run { lane, block, sequence, records };
        if self.look.is_needed() { self.look_at(run) } else { self.write_run(run, None) }
    }

    /// Writes a run of records. What is missing before it is said first, and then the step that the
    /// lane is in.
    pub(super) fn write_run(
        &mut self,
        run: Run<'_>,
        state: Option<StepState>,
    ) -> Result<(), S::Error> {
        let Run { lane, block, sequence, records } = run;
        let told = self.tell_missing(lane, block, sequence, state);
        let place = Place { lane, sequence, span: SpanId(block.spans()) };
        let result = told.and(self.out.records(place, records));
        overruns(lane, records).for_each(|gap| block.took_gap(&gap));
        if self.out.failed() {
            self.sink_failed += (records[0].len() + records[1].len()) as u64;
            block.fail_to_write(sequence);
            overruns(lane, records).for_each(|gap| block.fail_to_tell(&gap));
        }
        result
    }

    /// These positions hold no records any more.
    fn write_hole(
        &mut self,
        lane: LaneId,
        block: &LaneBlock,
        sequence: u64,
        records: u64,
        reason: GapReason,
    ) -> Result<(), S::Error> {
        block.lost_in_ring(records);
        block.set_step_state(block.step_state().doubted());
        let told = self.tell_missing(lane, block, sequence, None);
        let hole = Frame::Hole(HoleV1 { lane, sequence, records, reason });
        let result = told.and(self.out.frames(&[hole]));
        if self.out.failed() {
            block.fail_to_write(sequence);
        }
        result
    }

    /// Says what of a lane is not in the file, up to this position, and which step it is in there.
    pub(super) fn tell_missing(
        &mut self,
        lane: LaneId,
        block: &LaneBlock,
        to: u64,
        state: Option<StepState>,
    ) -> Result<(), S::Error> {
        if block.missing(lane, to).next().is_none() {
            return Ok(());
        }
        let step = state.map(|state| Frame::LaneStep(LaneStepV1::of(lane, to, state)));
        self.out.meta(&|each: &mut dyn FnMut(&Frame<'_>)| {
            block.missing(lane, to).for_each(|hole| each(&Frame::Hole(hole)));
            step.iter().for_each(&mut *each);
        })?;
        if !self.out.failed() {
            block.nothing_missing();
        }
        Ok(())
    }
}

/// Records of a lane, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) lane: LaneId,
    pub(super) block: &'r LaneBlock,
    pub(super) sequence: u64,
    pub(super) records: [&'r [Record]; 2],
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use tmrun_formats::wire::{Chunks, FileHeader, Walked};
    use tmrun_formats::{Level, NameId, RunId, TensorId};

    use super::super::Summary;
    use super::*;
    use crate::clock::{AutoClock, Overwrite};
    use crate::facts::OpFact;
    use crate::probe::Probe;
    use crate::sink::SliceSink;

    /// Groups of 3, 1, 3 and 1 records, of which the slots at these positions hold none: as if they had
    /// been stored into pages that are not there any more. Returns what the recording came to, and
    /// its holes.
    fn torn<C: Clock>(positions: &[usize]) -> (Summary, Vec<(u64, u64, GapReason)>) {
        let probe = Box::new(Probe::<C, 1, 32, 4>::new());
        let (probe, mut memory) = (probe.view(), vec![0; 1 << 16]);
        let header = FileHeader { run: RunId([7; 16]), created_ns: 1, ticks_per_second: 1 };
        let sink = SliceSink::new(&mut memory);
        let drain = Drain::start(probe, sink, &header, &[], Level::TIMING).unwrap();
        let lane = probe.claim("lane").unwrap();
        let inputs = [TensorId(1); 10];
        for value in [1.0, 2.0] {
            lane.recorder().op(NameId::NONE, &OpFact { inputs: &inputs, ..OpFact::default() });
            lane.recorder().scalar(NameId::NONE, value);
        }
        positions.iter().for_each(|&at| probe.slots(LaneId(0))[at].set_kind(0, 0));
        let (summary, sink) = drain.finish(&[]);
        let sink = sink.unwrap();
        let chunks = Chunks::new(sink.written()).filter_map(|walked| match walked {
            Walked::Chunk(chunk) => Some(chunk),
            _ => None,
        });
        let frames = chunks.flat_map(|chunk| chunk.frames().map_while(Result::ok));
        let holes = frames.filter_map(|frame| match frame.decode() {
            Ok(Frame::Hole(hole)) => Some((hole.sequence, hole.records, hole.reason)),
            _ => None,
        });
        (summary, holes.collect())
    }

    #[test]
    fn a_group_whose_first_slot_holds_no_record_is_torn_wherever_it_is_in_a_ring_that_moves() {
        let (summary, holes) = torn::<Overwrite<AutoClock>>(&[0, 4]);
        assert_eq!(holes, [(0, 3, GapReason::TORN), (4, 3, GapReason::TORN)]);
        // With the record of the level that it starts with.
        assert_eq!((summary.records, summary.dropped), (3, 6));
    }

    #[test]
    fn and_at_the_tail_of_one_that_rests() {
        let (summary, holes) = torn::<AutoClock>(&[0]);
        assert_eq!(holes, [0, 1, 2].map(|at| (at, 1, GapReason::TORN)));
        assert_eq!((summary.records, summary.dropped), (6, 3));
    }
}
