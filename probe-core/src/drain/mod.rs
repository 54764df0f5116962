//! The drain: the one consumer of all lanes. It turns published records into chunks of a file.
//!
//! It owns no memory worth the name, needs no thread and no clock of its own: whoever has it calls
//! [`Drain::poll`], from a thread with feature `std`, from an idle loop without.

mod close;
mod describe;
mod look;
mod out;
mod part;
pub(crate) mod take;

use tmrun_formats::wire::{FileHeader, Frame, Gap, INDEX_EVERY, Record, RecorderCostV1};
use tmrun_formats::{GapReason, LaneId, Level, NameId, Ticks};

use crate::clock::{Clock, Overrun};
use crate::lane::LaneBlock;
use crate::levels::Taken;
use crate::probe::ProbeRef;
use crate::ring::{self, Ring, Slot};
use crate::sink::Sink;
use crate::sync::Ordering;

use describe::Known;
pub(crate) use look::Look;
use out::Out;
use take::chunk_records;

/// Whether a poll leaves short runs of records for a later chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Only what fills a chunk. Poll with [`Flush::All`] every 100 ms or so beside it.
    Full,
    /// Everything that is published.
    All,
}

/// What a poll saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Polled {
    /// Records that it took, or found written over.
    pub records: u64,
    /// The greatest part of a ring that was waiting, in 1/256.
    pub fullest: u8,
    /// Records that were waiting, those that it took among them.
    pub waiting: u64,
}

/// What a recording came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Records in the file, or in all files of the recording that are there.
    pub records: u64,
    /// Records that were dropped: ring full, no lane left, or the sink failed.
    pub dropped: u64,
    /// Those of them that the sink failed to take.
    pub sink_failed: u64,
    /// Records that were left out because nobody asked to keep them.
    pub left_out: u64,
    /// Bytes of the file (of several, of the last), or of what is whole of it.
    pub bytes: u64,
}

/// Why a probe cannot be recorded now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// It is being recorded already.
    Busy,
    /// The program was built with the feature `off` of this crate: no site is any code.
    CompiledOut,
}

impl core::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Busy => "the probe is being recorded already: finish that recording first",
            Self::CompiledOut => {
                "the probe is compiled out: to record, build without the feature `off` of \
                 tmrun-probe-core"
            }
        })
    }
}

impl core::error::Error for Unavailable {}

/// The one consumer of a probe's lanes, writing a file into a [`Sink`].
pub struct Drain<'p, C: Clock, S: Sink> {
    probe: ProbeRef<'p, C>,
    hold: Hold<'p, C>,
    out: Out<S>,
    known: Known,
    /// How many chunks the file had when the names were last written again.
    named_at: u64,
    missed: Missed,
    sink_failed: u64,
    left_out: u64,
    /// Records of files that were removed.
    removed: u64,
    cost: RecorderCostV1,
    look: Look,
    /// What the files before this one came to.
    before: Summary,
}

/// The probe is this drain's. However the drain ends, the sites are disarmed and the next may come.
pub(crate) struct Hold<'p, C: Clock>(ProbeRef<'p, C>);

impl<'p, C: Clock> Hold<'p, C> {
    /// Takes the probe, if there is anything to record and nobody does.
    pub(crate) fn take(probe: ProbeRef<'p, C>) -> Result<Self, Unavailable> {
        if crate::OFF {
            return Err(Unavailable::CompiledOut);
        }
        if probe.shared.draining.swap(true, Ordering::AcqRel) {
            return Err(Unavailable::Busy);
        }
        Ok(Self(probe))
    }

    fn disarm(&self) {
        self.0.disarm();
    }
}

impl<C: Clock> Drop for Hold<'_, C> {
    fn drop(&mut self) {
        self.disarm();
        self.0.shared.draining.store(false, Ordering::Release);
    }
}

/// Records that found no lane, as the drain collects them.
#[derive(Debug, Clone, Copy)]
struct Missed {
    records: u64,
    groups: u64,
    /// Before the first and after the last of them.
    first: Ticks,
    last: Ticks,
    /// When the drain last looked.
    looked: Ticks,
    /// What this file and those before it tell of, and those before it alone.
    told: (u64, u64),
    earlier: (u64, u64),
}

impl<'p, C: Clock, S: Sink> Drain<'p, C, S> {
    /// Starts a recording: takes the probe, writes the file's header and these frames (the run,
    /// first of all), and arms the sites. What lies in the rings from before is counted as recorded
    /// after the end of the last recording.
    ///
    /// # Errors
    ///
    /// [`Start::Unavailable`] when the probe is being recorded already or compiled out; [`Start::Sink`] when the sink
    /// fails, and then nothing is recorded.
    pub fn start(
        probe: ProbeRef<'p, C>,
        sink: S,
        header: &FileHeader,
        frames: &[Frame<'_>],
        level: Level,
    ) -> Result<Self, Start<S::Error>> {
        let hold = Hold::take(probe).map_err(Start::Unavailable)?;
        Self::start_held(hold, sink, header, frames, level, &[]).map_err(Start::Sink)
    }

    /// The same for a probe that was taken before, with foci.
    pub(crate) fn start_held(
        hold: Hold<'p, C>,
        sink: S,
        header: &FileHeader,
        frames: &[Frame<'_>],
        level: Level,
        foci: &[(NameId, Level)],
    ) -> Result<Self, S::Error> {
        let probe = hold.0;
        let shared = probe.shared;
        let image = probe.image;
        let own = Ring { mirror: image.recorder, slots: image.recorder_slots };
        shared.recorder.try_claim::<C>(LaneId::RECORDER, own, NameId::NONE, 0);
        let now = C::ticks();
        let mut late = u64::from(shared.no_lane_told.take(image.no_lane).0);
        shared.no_lane_told.begin(image.no_lane, now);
        for (id, block) in probe.application_lanes() {
            late = late.saturating_add(begin::<C>(id, block, probe.slots(id)));
        }
        begin::<C>(LaneId::RECORDER, &shared.recorder, own.slots);
        shared.after_finish.set(shared.after_finish.get().saturating_add(late));
        let (records, groups, told, earlier) = (0, 0, (0, 0), (0, 0));
        let missed = Missed { records, groups, first: now, last: now, looked: now, told, earlier };
        let cost = RecorderCostV1::default();
        let (out, known) = (Out::new(sink), Known::default());
        let (look, before) = (Look::default(), Summary::default());
        let (named_at, sink_failed, left_out, removed) = (0, 0, 0, 0);
        let mut drain = Self {
            probe,
            hold,
            out,
            known,
            named_at,
            missed,
            sink_failed,
            left_out,
            removed,
            cost,
            look,
            before,
        };
        drain.out.header(header)?;
        drain.write_frames(frames)?;
        probe.arm(level, foci);
        Ok(drain)
    }

    /// Writes a chunk of these frames.
    ///
    /// # Errors
    ///
    /// When the sink fails.
    pub fn write_frames(&mut self, frames: &[Frame<'_>]) -> Result<(), S::Error> {
        self.out.frames(frames)
    }

    /// What recording costs, as calibrated; it is written at the end, with how many names found no
    /// room.
    pub fn set_cost(&mut self, cost: RecorderCostV1) {
        self.cost = cost;
    }

    /// Takes what the lanes have published and writes it.
    ///
    /// # Errors
    ///
    /// When the sink fails, once. From then on records are taken, counted and thrown away, so that
    /// the rings do not fill, until a [retry](Self::retry) succeeds.
    pub fn poll(&mut self, flush: Flush) -> Result<Polled, S::Error> {
        let (probe, mut polled, mut result) = (self.probe, Polled::default(), Ok(()));
        self.store_level_changes();
        self.look_for_missed();
        // About once for each index, so that a file without an end is not unnamed by one bad chunk.
        let chunks = self.out.file().trailer().chunks;
        if chunks.saturating_sub(self.named_at) >= INDEX_EVERY as u64 {
            self.named_at = chunks;
            result = self.write_new_names().and_then(|()| self.write_names_again());
        }
        for (id, block) in probe.all_lanes() {
            // Lanes may come and go between two chunks of theirs: their owners are asked for now.
            result = result.and(self.write_claims(id, block));
            let (head, taken) = (block.observe_head(), block.taken());
            let waiting = head.wrapping_sub(taken);
            if waiting == 0 {
                continue;
            }
            let slots = probe.slots(id).len() as u64;
            let part = u8::try_from(waiting * 255 / slots.max(1)).unwrap_or(u8::MAX);
            polled.fullest = polled.fullest.max(part);
            polled.waiting += waiting;
            block.saw_waiting(waiting.min(slots));
            let least = if flush == Flush::All { 1 } else { chunk_records(slots) };
            if waiting >= least {
                result = result.and(self.take(id, block, head, least));
                polled.records += block.taken().wrapping_sub(taken);
            }
        }
        result.map(|()| polled)
    }

    /// Level changes become records of the recorder's lane.
    fn store_level_changes(&self) {
        let (shared, shown) = (self.probe.shared, self.probe.image.changes);
        shared.levels.take_changes(shown, |taken| store_taken::<C>(&shared.recorder, taken));
    }

    /// Collects what found no lane since the last look.
    fn look_for_missed(&mut self) {
        let (looked, missed) = (C::ticks(), &mut self.missed);
        let no_lane = self.probe.image.no_lane;
        let (records, groups) = self.probe.shared.no_lane_told.take(no_lane);
        if records > 0 || groups > 0 {
            if missed.records == 0 && missed.groups == 0 {
                missed.first = missed.looked;
            }
            missed.records += u64::from(records);
            missed.groups += u64::from(groups);
            missed.last = C::ticks();
        }
        missed.looked = looked;
        let is_told = missed.records == 0 && missed.groups == 0;
        no_lane.show(if is_told { looked } else { missed.first }, looked);
    }
}

/// A change of what is asked for becomes a record of the recorder's lane.
fn store_taken<C: Clock>(own: &LaneBlock, taken: Taken) {
    match taken {
        Taken::Change(focus, change) => own.store_own(change.asked, focus, &change),
        Taken::Lost(lost) => own.lose_own(lost.into(), C::ticks()),
    }
}

/// Begins a recording of a lane: what waits in its ring is not of it. Returns how many records of
/// the application's that is, and were dropped. (The drain that calls it is the only consumer.)
pub(crate) fn begin<C: Clock>(id: LaneId, block: &LaneBlock, slots: &[Slot]) -> u64 {
    let head = block.observe_head();
    if rests::<C>(id) {
        // SAFETY: the ring rests; the records are published, and given back by `begin_recording`,
        // behind their last use.
        let waiting = unsafe { ring::published(slots, block.taken(), head) };
        block.begin_recording(id, head, overruns(id, waiting))
    } else {
        // A lane that drops nothing has no Gap records of drops.
        block.begin_recording(id, head, core::iter::empty())
    }
}

/// Whether nothing of this lane is stored over before it is taken. (The recorder's own lane is
/// drained by whoever fills it.)
const fn rests<C: Clock>(id: LaneId) -> bool {
    matches!(C::OVERRUN, Overrun::DropNewest) || id.0 == LaneId::RECORDER.0
}

/// The gaps of a lane's own drops.
pub(crate) fn overruns(id: LaneId, records: [&[Record]; 2]) -> impl Iterator<Item = Gap> {
    let gaps = records.into_iter().flatten().filter_map(Record::payload::<Gap>);
    gaps.filter(move |gap| gap.lane == id && gap.reason == GapReason::OVERRUN)
}

impl<C: Clock, S: Sink> core::fmt::Debug for Drain<'_, C, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Drain").field("file", self.out.file()).finish_non_exhaustive()
    }
}

/// Why a recording did not start.
#[derive(Debug)]
pub enum Start<E> {
    /// The probe is being recorded already, or compiled out.
    Unavailable(Unavailable),
    /// The sink failed.
    Sink(E),
}
