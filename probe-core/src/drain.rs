//! The drain: the one consumer of all lanes. It turns published records into chunks of a file.
//!
//! It owns no memory worth the name, needs no thread and no clock of its own: whoever has it calls
//! [`Drain::poll`], from a thread with feature `std`, from an idle loop without.

use tmrun_formats::wire::{
    Assembler, FileHeader, Frame, Gap, Kind, LaneV1, NameV1, OpenSpanV1, Place, Record,
    RecordHeader, RecorderCostV1, SiteV1, TotalsV1,
};
use tmrun_formats::{GapReason, LaneId, Level, LevelSource, NameId, Planes, SpanId, Ticks};

use crate::clock::Clock;
use crate::lane::{LaneBlock, add};
use crate::meta::{FrameSource, write_meta};
use crate::probe::ProbeRef;
use crate::ring;
use crate::shared::Threshold;
use crate::sink::Sink;
use crate::sync::Ordering;

/// A chunk closes at so many records (256 KiB), or at a quarter of its ring.
const CHUNK_RECORDS: u64 = 4096;

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
    /// Records that it took.
    pub records: u64,
    /// The greatest part of a ring that was waiting, in 1/256.
    pub fullest: u8,
}

/// What a recording came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Records in the file.
    pub records: u64,
    /// Records that were dropped: ring full, no lane left, or the sink failed.
    pub dropped: u64,
    /// Those of them that the sink failed to take.
    pub sink_failed: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The probe is being recorded already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlreadyRecording;

impl core::fmt::Display for AlreadyRecording {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the probe is being recorded already: finish that recording first")
    }
}

impl core::error::Error for AlreadyRecording {}

/// The one consumer of a probe's lanes, writing a file into a [`Sink`].
pub struct Drain<'p, C: Clock, S: Sink> {
    probe: ProbeRef<'p, C>,
    hold: Hold<'p, C>,
    out: Out<S>,
    names: u32,
    sites: u32,
    devices: u8,
    dtypes: u8,
    sink_failed: u64,
    cost: RecorderCostV1,
}

/// The probe is this drain's. However the drain ends, the sites are disarmed and the next may come.
struct Hold<'p, C: Clock>(ProbeRef<'p, C>);

impl<C: Clock> Hold<'_, C> {
    fn disarm(&self) {
        self.0.shared.set_threshold(Threshold::OFF, LevelSource::APPLICATION, C::ticks);
    }
}

impl<C: Clock> Drop for Hold<'_, C> {
    fn drop(&mut self) {
        self.disarm();
        self.0.shared.draining.store(false, Ordering::Release);
    }
}

/// The file so far. Its two halves are apart from the rest so that a chunk can be written while the
/// probe is looked at.
struct Out<S> {
    file: Assembler,
    sink: S,
    failed: bool,
}

impl<S: Sink> Out<S> {
    /// Runs one write, after an index that is due. Once one has failed nothing more is written.
    fn write(
        &mut self,
        write: impl FnOnce(&mut Assembler, &mut S) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        if self.failed {
            return Ok(());
        }
        let mut result = if self.file.index_due() { self.index() } else { Ok(()) };
        if result.is_ok() {
            result = write(&mut self.file, &mut self.sink);
        }
        if result.is_err() {
            self.failed = true;
            self.sink.cut(self.file.offset());
        }
        result
    }

    fn index(&mut self) -> Result<(), S::Error> {
        let (header, pieces) = self.file.index();
        self.sink.write(&[&header.encode()])?;
        for piece in pieces {
            self.sink.write(&[&piece])?;
        }
        self.file.commit(&header);
        Ok(())
    }
}

impl<'p, C: Clock, S: Sink> Drain<'p, C, S> {
    /// Starts a recording: takes the probe, writes the file's header and these frames (the run,
    /// first of all), and arms the sites. What lies in the rings from before is counted as recorded
    /// after the end of the last recording.
    ///
    /// # Errors
    ///
    /// [`Start::Busy`] when the probe is being recorded already; [`Start::Sink`] when the sink
    /// fails, and then nothing is recorded.
    pub fn start(
        probe: ProbeRef<'p, C>,
        sink: S,
        header: &FileHeader,
        frames: &[Frame<'_>],
        level: Level,
    ) -> Result<Self, Start<S::Error>> {
        if probe.shared.draining.swap(true, Ordering::AcqRel) {
            return Err(Start::Busy(AlreadyRecording));
        }
        let hold = Hold(probe);
        let ring = probe.ring(LaneId::RECORDER);
        probe.shared.recorder.try_claim(LaneId::RECORDER, ring, NameId::NONE, 0);
        let _ = probe.shared.no_lane.take();
        for (_, block) in probe.all_lanes() {
            let head = block.observe_head();
            let skipped = head.wrapping_sub(block.drain.tail.get());
            let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
            probe.shared.after_finish.fetch_add(skipped, Ordering::Relaxed);
            block.take_until(head);
            block.begin_recording();
        }
        let out = Out { file: Assembler::new(), sink, failed: false };
        let cost = RecorderCostV1::default();
        let mut drain = Self {
            probe,
            hold,
            out,
            names: 0,
            sites: 0,
            devices: 0,
            dtypes: 0,
            sink_failed: 0,
            cost,
        };
        let written = drain
            .out
            .write(|_, sink| sink.write(&[&header.encode()]))
            .and_then(|()| drain.write_frames(frames));
        if let Err(error) = written {
            return Err(Start::Sink(error));
        }
        let level = Threshold::of(level.min(Level::MAX));
        probe.shared.set_threshold(level, LevelSource::START, C::ticks);
        Ok(drain)
    }

    /// Writes a chunk of these frames.
    ///
    /// # Errors
    ///
    /// When the sink fails.
    pub fn write_frames(&mut self, frames: &[Frame<'_>]) -> Result<(), S::Error> {
        self.meta(&|each: &mut dyn FnMut(&Frame<'_>)| frames.iter().for_each(each))
    }

    /// What recording costs, as calibrated; it is written at the end, with how many names found no
    /// room.
    pub fn set_cost(&mut self, cost: RecorderCostV1) {
        self.cost = cost;
    }

    fn meta(&mut self, source: &impl FrameSource) -> Result<(), S::Error> {
        self.out.write(|file, sink| write_meta(file, sink, source))
    }

    /// Takes what the lanes have published and writes it.
    ///
    /// # Errors
    ///
    /// When the sink fails, once. From then on records are taken, counted and thrown away, so that
    /// the rings do not fill.
    pub fn poll(&mut self, flush: Flush) -> Result<Polled, S::Error> {
        let (probe, mut polled, mut result) = (self.probe, Polled::default(), Ok(()));
        self.store_level_changes();
        for (id, block) in probe.all_lanes() {
            let head = block.observe_head();
            let waiting = head.wrapping_sub(block.drain.tail.get());
            if waiting == 0 {
                continue;
            }
            let slots = probe.ring(id).len() as u64;
            let part = u8::try_from(waiting * 255 / slots.max(1)).unwrap_or(u8::MAX);
            polled.fullest = polled.fullest.max(part);
            block.drain.high_water.set(block.drain.high_water.get().max(waiting));
            let chunk = CHUNK_RECORDS.min(slots / 4);
            if flush == Flush::All || waiting >= chunk {
                polled.records += waiting;
                let taken = self.take(id, block, head, chunk);
                result = result.and(taken);
            }
        }
        result.map(|()| polled)
    }

    /// Level changes become records of the recorder's lane.
    fn store_level_changes(&self) {
        let own = &self.probe.shared.recorder;
        let lost = self.probe.shared.take_changes(|change| {
            let header = RecordHeader {
                ticks: change.asked,
                ..RecordHeader::of::<tmrun_formats::wire::LevelChange>(Level::PULSE)
            };
            store(own, header, &change);
        });
        if lost > 0 {
            let now = C::ticks();
            let records = lost.into();
            let (first, last) = (now, now);
            let (planes, lane, reason) = (Planes::RECORDER, LaneId::RECORDER, GapReason::OVERRUN);
            store_gap(own, Gap { first, last, records, groups: records, planes, lane, reason });
        }
    }

    /// Takes the records of a lane up to `head`, in chunks.
    fn take(
        &mut self,
        id: LaneId,
        block: &LaneBlock,
        head: u64,
        chunk: u64,
    ) -> Result<(), S::Error> {
        // The head was observed first: the names and the claim of every record before it are there.
        let mut result = self.write_new_names().and_then(|()| self.write_claim(id, block));
        let slots = self.probe.ring(id);
        let mut tail = block.drain.tail.get();
        while tail != head {
            let mut end = tail + head.wrapping_sub(tail).min(chunk);
            // A chunk ends between groups, and `head` does: step back to where one begins.
            // SAFETY: this drain is the only consumer (it took `draining`), and `end` is not taken.
            let begins = |end| unsafe { ring::published(slots, end, end + 1) };
            while end != head && begins(end)[0].first().is_some_and(Record::continues) {
                end -= 1;
            }
            // SAFETY: as above; the slots are given back below, behind their last use.
            let records = unsafe { ring::published(slots, tail, end) };
            count_gaps(id, block, records);
            let place = Place { lane: id, sequence: tail, span: SpanId(block.spans()) };
            let written = self.out.write(|file, sink| {
                let header = file.records_header(place, records);
                let [first, second] = records.map(zerocopy::IntoBytes::as_bytes);
                sink.write(&[&header.encode(), first, second])?;
                file.commit(&header);
                Ok(())
            });
            if self.out.failed {
                self.sink_failed += end - tail;
            }
            block.take_until(end);
            tail = end;
            result = result.and(written);
        }
        result
    }

    fn write_new_names(&mut self) -> Result<(), S::Error> {
        let (names, shared) = (self.probe.names(), self.probe.shared);
        let (sites, known_sites) = (&shared.sites, shared.sites.count());
        let (devices, dtypes) = (shared.devices.count(), shared.dtypes.count());
        let known = (self.names, self.sites, self.devices, self.dtypes);
        if (names.count(), known_sites, devices, dtypes) == known {
            return Ok(());
        }
        let (from_device, from_dtype) = (self.devices, self.dtypes);
        let from = self.names + 1;
        // An id may be handed out before its entry is there: no record that was observed has it.
        let ready = (from..=names.count()).take_while(|&id| names.get(NameId(id)).is_some());
        let to = ready.last().unwrap_or(self.names);
        let new_sites = known_sites.saturating_sub(self.sites) as usize;
        self.meta(&|each: &mut dyn FnMut(&Frame<'_>)| {
            (from..=to).for_each(|id| emit_name(names, id, each));
            sites.iter().take(new_sites).for_each(|site| {
                let (file, line) = site.place();
                let (name, kind, level) = (site.name_id(), site.kind() as u8, site.level());
                each(&Frame::Site(SiteV1 { name, kind, level, file, line }));
            });
            shared.emit_codes(names, from_device..devices, from_dtype..dtypes, each);
        })?;
        (self.names, self.sites, self.devices, self.dtypes) = (to, known_sites, devices, dtypes);
        Ok(())
    }

    fn write_claim(&mut self, id: LaneId, block: &LaneBlock) -> Result<(), S::Error> {
        let count = block.claim.count.get();
        if block.drain.claims.get() == count {
            return Ok(());
        }
        block.drain.claims.set(count);
        let name = self.probe.names().get(NameId(block.claim.name.get() as u32));
        let frame = LaneV1 {
            lane: id,
            claim: count.saturating_sub(1),
            sequence: block.claim.sequence.get().max(block.drain.first.get()),
            name: name.map_or("", |node| node.name),
            thread: block.claim.thread.get(),
        };
        self.write_frames(&[Frame::Lane(frame)])
    }

    /// Ends the recording: disarms the sites, takes what is published, and writes the closing gaps,
    /// the names again, open spans, totals, `frames` (the terminal, last of all), index and trailer.
    /// It writes what is pending and no more.
    ///
    /// The sink comes back, unless it fails now; a failure that an earlier poll returned is only in
    /// the summary.
    pub fn finish(mut self, frames: &[Frame<'_>]) -> (Summary, Result<S, S::Error>) {
        self.hold.disarm();
        let mut result = self.poll(Flush::All).map(drop);
        let dropped = self.store_closing_gaps();
        result = result.and_then(|()| self.poll(Flush::All).map(drop));
        result = result.and_then(|()| self.write_closing_frames(frames));
        result = result.and_then(|()| self.out.write(|_, _| Ok(())));
        if result.is_ok() && !self.out.failed {
            result = self.out.index();
        }
        if result.is_ok() && !self.out.failed {
            let trailer = self.out.file.trailer().encode();
            result = self.out.sink.write(&[&trailer]);
        }
        let summary = Summary {
            records: self.out.file.records(),
            dropped: dropped + self.sink_failed,
            sink_failed: self.sink_failed,
            bytes: self.out.file.offset(),
        };
        drop(self.hold);
        (summary, result.map(|()| self.out.sink))
    }

    /// At most one gap a lane, of the drops that no Gap record of the lane tells of, and one for
    /// records that found no lane. Returns how many records were dropped in all.
    fn store_closing_gaps(&self) -> u64 {
        let own = &self.probe.shared.recorder;
        let mut all = 0;
        for (lane, block) in self.probe.all_lanes() {
            let (records, groups) = block.dropped();
            all += records;
            let records = records.saturating_sub(block.drain.gap_records.get());
            let groups = groups.saturating_sub(block.drain.gap_groups.get());
            if records > 0 {
                let (first, last) = (Ticks(block.shown.first.get()), Ticks(block.shown.last.get()));
                let planes = Planes(block.shown.planes.get() as u32);
                let reason = GapReason::OVERRUN;
                store_gap(own, Gap { first, last, records, groups, planes, lane, reason });
            }
        }
        let (records, groups, planes) = self.probe.shared.no_lane.take();
        if groups > 0 {
            let now = C::ticks();
            let (records, groups) = (records.into(), groups.into());
            all += records;
            let (lane, reason) = (LaneId::RECORDER, GapReason::NO_LANE);
            store_gap(own, Gap { first: now, last: now, records, groups, planes, lane, reason });
        }
        all
    }

    fn write_closing_frames(&mut self, frames: &[Frame<'_>]) -> Result<(), S::Error> {
        let (probe, names, last) = (self.probe, self.probe.names(), self.names);
        let (devices, dtypes) = (self.devices, self.dtypes);
        let cost = RecorderCostV1 { unnamed: names.unnamed().into(), ..self.cost };
        self.meta(&|each: &mut dyn FnMut(&Frame<'_>)| {
            (1..=last).for_each(|id| emit_name(names, id, each));
            probe.shared.emit_codes(names, 0..devices, 0..dtypes, each);
            for (lane, block) in probe.all_lanes() {
                emit_open_spans(lane, block, each);
                emit_totals(lane, block, each);
            }
            each(&Frame::RecorderCost(cost));
            frames.iter().for_each(each);
        })
    }
}

impl<C: Clock, S: Sink> core::fmt::Debug for Drain<'_, C, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Drain").field("file", &self.out.file).finish_non_exhaustive()
    }
}

/// Why a recording did not start.
#[derive(Debug)]
pub enum Start<E> {
    /// The probe is being recorded already.
    Busy(AlreadyRecording),
    /// The sink failed.
    Sink(E),
}

fn emit_name(names: crate::names::Names<'_>, id: u32, each: &mut dyn FnMut(&Frame<'_>)) {
    if let Some(node) = names.get(NameId(id)) {
        each(&Frame::Name(NameV1 {
            id: NameId(id),
            text: node.name,
            node_type: node.node_type,
            static_id: node.static_id,
            source: node.source,
        }));
    }
}

fn emit_open_spans(lane: LaneId, block: &LaneBlock, each: &mut dyn FnMut(&Frame<'_>)) {
    for open in block.open_spans() {
        each(&Frame::OpenSpan(OpenSpanV1 {
            lane,
            span: open.id,
            parent: open.parent,
            name: open.name,
            start: open.start,
            depth: open.depth,
        }));
    }
}

fn emit_totals(lane: LaneId, block: &LaneBlock, each: &mut dyn FnMut(&Frame<'_>)) {
    let records = block.drain.tail.get();
    let (dropped_records, dropped_groups) = block.dropped();
    if records == block.drain.first.get() && dropped_records == 0 {
        return;
    }
    each(&Frame::Totals(TotalsV1 {
        lane,
        records,
        spans: block.spans(),
        dropped_records,
        dropped_groups,
        truncated: block.shown.truncated.get(),
        out_of_order: block.shown.out_of_order.get(),
        high_water: block.drain.high_water.get(),
    }));
}

/// Remembers what the Gap records of a lane tell of.
fn count_gaps(id: LaneId, block: &LaneBlock, records: [&[Record]; 2]) {
    for record in records.into_iter().flatten() {
        if record.header().kind != Kind::Gap as u8 {
            continue;
        }
        let overrun = |gap: &Gap| gap.lane == id && gap.reason == GapReason::OVERRUN;
        if let Some(gap) = record.payload::<Gap>().filter(overrun) {
            add(&block.drain.gap_records, gap.records);
            add(&block.drain.gap_groups, gap.groups);
        }
    }
}

fn store_gap(own: &LaneBlock, gap: Gap) {
    store(own, RecordHeader { ticks: gap.first, ..RecordHeader::of::<Gap>(Level::PULSE) }, &gap);
}

fn store<P: tmrun_formats::wire::Payload>(own: &LaneBlock, header: RecordHeader, payload: &P) {
    if let Some(mut store) = own.reserve(1, header.ticks, P::KIND.plane()) {
        store.put(header, payload);
        store.publish();
    }
}
