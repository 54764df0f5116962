//! Small files, made with the crate's own writer.
#![allow(dead_code, reason = "each test target uses its part")]

pub mod every;
pub mod listing;

use tmrun_formats::wire::{
    Assembler, CalibrationV1, ChunkHeader, FileHeader, Frame, NameV1, Payload, Place, Record,
    RecordHeader, Scalar, Span, Walked,
};
use tmrun_formats::{ExecutionStep, HostNs, LaneId, Level, NameId, RunId, SpanId, SpanKind, Ticks};

/// A file in the making.
pub struct File {
    pub bytes: Vec<u8>,
    pub assembler: Assembler,
}

impl File {
    pub fn new() -> Self {
        let run = RunId(core::array::from_fn(|i| i as u8 * 0x11));
        let created_ns = 1_767_225_600_000_000_000;
        Self::with(FileHeader { run, created_ns, ticks_per_second: 1_000_000_000 })
    }

    pub fn with(header: FileHeader) -> Self {
        Self { bytes: header.encode().to_vec(), assembler: Assembler::new() }
    }

    pub fn meta(&mut self, frames: &[Frame<'_>]) {
        let payload = payload_of(frames);
        let header = self.assembler.meta_header(&payload);
        self.chunk(header, &payload);
    }

    pub fn records(&mut self, lane: LaneId, sequence: u64, span: SpanId, records: &[Record]) {
        let place = Place { lane, sequence, span };
        let (first, second) = records.split_at(records.len() / 2);
        let header = self.assembler.records_header(place, [first, second]);
        let payload: Vec<u8> = records.iter().flat_map(|record| *record.as_bytes()).collect();
        self.chunk(header, &payload);
    }

    pub fn index(&mut self) {
        let (header, pieces) = self.assembler.index();
        let payload: Vec<u8> = pieces.flatten().collect();
        self.chunk(header, &payload);
    }

    /// A chunk of any header: its CRCs, length and number are filled in.
    pub fn raw(&mut self, header: ChunkHeader, payload: &[u8]) {
        let number = self.assembler.trailer().chunks;
        let (payload_len, payload_crc) = (payload.len() as u32, crc32fast::hash(payload));
        self.chunk(ChunkHeader { number, payload_len, payload_crc, ..header }, payload);
    }

    fn chunk(&mut self, header: ChunkHeader, payload: &[u8]) {
        self.bytes.extend(header.encode());
        self.bytes.extend(payload);
        self.assembler.commit(&header);
        assert_eq!(self.bytes.len() as u64, self.assembler.offset());
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.index();
        self.bytes.extend(self.assembler.trailer().encode());
        self.bytes
    }
}

/// Frames, padded with zeros to whole 64 bytes.
pub fn payload_of(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut payload = Vec::new();
    for frame in frames {
        let mut space = vec![0; 1 << 16];
        let used = frame.encode(&mut space).expect("64 KiB are enough");
        payload.extend(space.get(..used).expect("used is within the space"));
    }
    payload.resize(payload.len().next_multiple_of(64), 0);
    payload
}

/// The records with the sequence numbers from `first` on.
pub fn numbered(first: u64, records: impl IntoIterator<Item = Record>) -> Vec<Record> {
    let with_seq = |(i, record): (u64, Record)| {
        let mut words = record.words();
        words[2] = words[2] >> 32 << 32 | u64::from((first + i) as u32);
        Record::from_words(words)
    };
    (0..).zip(records).map(with_seq).collect()
}

/// The file of the annotated dump in docs/FORMAT.md.
pub fn tiny() -> Vec<u8> {
    let mut file = File::new();
    let name = |id, text| {
        let (node_type, static_id, source) = (None, None, None);
        Frame::Name(NameV1 { id: NameId(id), text, node_type, static_id, source })
    };
    file.meta(&[
        name(1, "forward"),
        name(2, "loss"),
        Frame::Calibration(CalibrationV1 {
            ticks: Ticks(1_000),
            ns: HostNs(500_000),
            uncertainty: 12,
            set_aside: false,
        }),
    ]);
    let span = Span {
        end: Ticks(3_000),
        parent: SpanId::NONE,
        own_high: 0,
        parent_lane: LaneId(0),
        own_lane: LaneId(0),
        depth: 0,
        step: ExecutionStep::FORWARD,
        kind: SpanKind::FUNCTION,
    };
    let header = |ticks, name| RecordHeader {
        ticks: Ticks(ticks),
        name: NameId(name),
        span: 1,
        ..RecordHeader::of::<Span>(Level::TIMING)
    };
    let loss = RecordHeader { level: Level::PULSE, ..header(2_500, 2) };
    let records = numbered(
        0,
        [Record::new(loss, &Scalar { value: 0.25 }), Record::new(header(2_000, 1), &span)],
    );
    file.records(LaneId(0), 0, SpanId(1), &records);
    file.finish()
}

/// A file of several chunks of each kind in use.
pub fn small() -> Vec<u8> {
    let mut file = File::new();
    let scalars = |lane: u16, first: u64| {
        let record = |i: u64| {
            let ticks = Ticks(1_000 * u64::from(lane) + first + i);
            let header = RecordHeader { ticks, ..RecordHeader::of::<Scalar>(Level::PULSE) };
            Record::new(header, &Scalar { value: i as f64 })
        };
        numbered(first, (0..3).map(record))
    };
    file.meta(&every::frames());
    file.records(LaneId(0), 0, SpanId(1), &scalars(0, 0));
    file.records(LaneId(1), 0, SpanId(1), &scalars(1, 0));
    file.index();
    file.records(LaneId(0), 3, SpanId(1), &scalars(0, 3));
    file.meta(&every::frames()[..4]);
    file.records(LaneId(1), 3, SpanId(1), &scalars(1, 3));
    file.finish()
}

/// A record of any kind, as the kinds' strategies want it.
pub fn record_of<P: Payload>(words: [u64; 5]) -> Record {
    Record::new(RecordHeader::of::<P>(Level::PULSE), &P::from_words(&words))
}

/// Where a walked piece lies in the file.
pub fn place(walked: &Walked<'_>) -> (u64, u64) {
    match walked {
        Walked::Chunk(chunk) => (chunk.offset, 64 + chunk.payload.len() as u64),
        Walked::Damage(damage) => (damage.offset, damage.len),
        Walked::Trailer(trailer) => (trailer.offset, 64),
    }
}
