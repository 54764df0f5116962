//! Small recordings, built in memory on the wire format alone, for the tests of the analyzer.
//!
//! Positions, chunk numbers, index, totals and trailer are filled in as a recorder would; what a
//! test wants wrong it changes afterwards with [`patch`].
#![allow(dead_code, reason = "every test uses some of it")]

pub mod command;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[path = "../../../probe-core/tests/support/dying.rs"]
pub mod dying;
pub mod naive;
pub mod patch;
pub mod record;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod slots;

use std::collections::BTreeMap;

use tmrun_formats::wire::{
    Assembler, CalibrationV1, ChunkHeader, FileHeader, Frame, LaneV1, NameV1, Place, Record, RunV1,
    TerminalV1, TotalsV1,
};
use tmrun_formats::{HostNs, LaneId, NameId, Phase, RunId, SpanId, Ticks};

/// A recording under construction.
pub struct Builder {
    bytes: Vec<u8>,
    assembler: Box<Assembler>,
    next: BTreeMap<LaneId, u64>,
    last: Ticks,
}

impl Builder {
    /// A file header and nothing else.
    pub fn new() -> Self {
        let header = FileHeader {
            run: RunId([7; 16]),
            created_ns: 1_700_000_000_000_000_000,
            ticks_per_second: 1_000_000_000,
        };
        Self {
            bytes: header.encode().to_vec(),
            assembler: Box::new(Assembler::new()),
            next: BTreeMap::new(),
            last: Ticks(0),
        }
    }

    /// A file header, and the frames that a recorder begins with: run, calibration, two names and
    /// lane 0.
    pub fn started() -> Self {
        Self::new().meta(&[
            Frame::Run(run()),
            Frame::Calibration(calibration(1_000, 50_000)),
            Frame::Name(name(1, "forward")),
            Frame::Name(name(2, "loss")),
            Frame::Lane(lane(0, "main")),
        ])
    }

    /// A chunk of metadata.
    pub fn meta(mut self, frames: &[Frame<'_>]) -> Self {
        let mut payload = Vec::new();
        for frame in frames {
            let mut space = vec![0; 1 << 18];
            let used = frame.encode(&mut space).expect("the frame fits");
            payload.extend_from_slice(&space[..used]);
        }
        payload.resize(payload.len().next_multiple_of(64), 0);
        let header = self.assembler.meta_header(&payload);
        self.commit(header, &payload);
        self
    }

    /// A chunk of a lane's next records; their sequence numbers are filled in.
    pub fn records(mut self, lane: u16, records: &[Record]) -> Self {
        let lane = LaneId(lane);
        let next = self.next.entry(lane).or_default();
        let numbered: Vec<Record> = (*next..).zip(records).map(|(seq, r)| at(r, seq)).collect();
        let place = Place { lane, sequence: *next, span: SpanId(1) };
        *next += records.len() as u64;
        self.chunk_of(place, &numbered)
    }

    /// A chunk of these records as they are, at any place.
    pub fn chunk_of(mut self, place: Place, records: &[Record]) -> Self {
        let header = self.assembler.records_header(place, [records, &[]]);
        let payload: Vec<u8> = records.iter().flat_map(|r| *r.as_bytes()).collect();
        self.last = self.last.max(header.greatest);
        self.commit(header, &payload);
        self
    }

    /// Records of a lane that took their positions and were never written.
    pub fn skip(mut self, lane: u16, records: u64) -> Self {
        *self.next.entry(LaneId(lane)).or_default() += records;
        self
    }

    /// An index chunk.
    pub fn index(mut self) -> Self {
        let (header, pieces) = self.assembler.index();
        let payload: Vec<u8> = pieces.flatten().collect();
        self.commit(header, &payload);
        self
    }

    fn commit(&mut self, header: ChunkHeader, payload: &[u8]) {
        self.bytes.extend_from_slice(&header.encode());
        self.bytes.extend_from_slice(payload);
        self.assembler.commit(&header);
    }

    /// The file as it is, without what ends it.
    pub fn unfinished(self) -> Vec<u8> {
        self.bytes
    }

    /// The totals of every lane, the last calibration and a terminal, an index, and the trailer.
    pub fn finish(self) -> Vec<u8> {
        let totals: Vec<TotalsV1> = self
            .next
            .iter()
            .map(|(&lane, &records)| TotalsV1 { lane, records, ..TotalsV1::default() })
            .collect();
        let end = Ticks(self.last.0 + 1_000);
        let mut frames = vec![
            Frame::Name(name(1, "forward")),
            Frame::Name(name(2, "loss")),
            Frame::Calibration(calibration(end.0, 49_000 + end.0)),
        ];
        frames.extend(totals.into_iter().map(Frame::Totals));
        frames.push(Frame::Terminal(TerminalV1 { complete: true, reason: None, ticks: end }));
        self.meta(&frames).index().trailer()
    }

    /// The trailer, and nothing before it.
    pub fn trailer(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&self.assembler.trailer().encode());
        self.bytes
    }
}

/// The record at a position of its lane.
pub fn at(record: &Record, seq: u64) -> Record {
    let mut words = record.words();
    words[2] = words[2] & !0xFFFF_FFFF | seq & 0xFFFF_FFFF;
    Record::from_words(words)
}

/// A small file with everything in it: two lanes, a micro-batch, a group, a recorder's lane, an
/// index in the middle, and the usual end.
pub fn small() -> Vec<u8> {
    use record::{gap, level, scalar, span, stats, step, tensor};
    Builder::started()
        .records(u16::MAX, &[level(1_000, 1_010, 2, 2)])
        .records(0, &[step(1_100, 1, false), span(1_200, 1_900, 1, 1), scalar(1_950, 2, 0.5)])
        .index()
        .records(1, &[span(1_300, 1_400, 1, 1), span(1_450, 1_500, 2, 1)])
        .records(0, &[tensor(2_000, 2), stats(2_000, 10.0), step(2_100, 1, true)])
        .records(0, &[span(2_200, 2_300, 2, 1)])
        .records(u16::MAX, &[gap(2_400, 2_500, 1, 0, tmrun_formats::GapReason::FOCUS)])
        .finish()
}

/// Three steps in a chunk each, and the same with the second one damaged.
pub fn damaged_second_step() -> (Vec<u8>, Vec<u8>) {
    use record::step;
    let mut builder = Builder::started();
    for number in 1..=3 {
        let (start, end) = (number * 1_000, number * 1_000 + 900);
        builder = builder.records(0, &[step(start, number, false), step(end, number, true)]);
    }
    let whole = builder.finish();
    let mut damaged = whole.clone();
    damaged[naive::chunks(&whole)[2].offset + 100] ^= 1;
    (whole, damaged)
}

/// The run of every test.
pub fn run() -> RunV1<'static> {
    RunV1 {
        run: RunId([7; 16]),
        run_id: "run-7",
        correlation_id: None,
        entrypoint: "trainer::update",
        device: "cpu",
        phase: Phase::TRAIN,
        capture_step: 1,
        warmup_steps: 0,
        device_synchronized: false,
        measured_region_synchronized: false,
        candle_version: None,
        profile: "release",
        analysis_id: None,
        build_id: None,
        host: Some("host"),
        pid: Some(1),
        rank: None,
        world_size: None,
        rings: None,
        clock: "tsc",
        clock_invariant: true,
        ring_slots: 16_384,
    }
}

/// An entry of the name table.
pub fn name(id: u32, text: &str) -> NameV1<'_> {
    NameV1 { id: NameId(id), text, node_type: None, static_id: None, source: None }
}

/// The first claim of a lane.
pub fn lane(id: u16, name: &str) -> LaneV1<'_> {
    LaneV1 { lane: LaneId(id), claim: 0, sequence: 0, name, thread: 42 }
}

/// A calibration sample.
pub fn calibration(ticks: u64, ns: u64) -> CalibrationV1 {
    CalibrationV1 { ticks: Ticks(ticks), ns: HostNs(ns), uncertainty: 20, set_aside: false }
}
