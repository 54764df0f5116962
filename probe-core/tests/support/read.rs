//! A naive reader: it takes a file apart byte by byte, by docs/FORMAT.md, and holds everything it
//! can against everything else. Only the bodies of frames are left to the format's crate.

use std::collections::BTreeMap;

use tmrun_formats::GapReason;
use tmrun_formats::wire::{Chunks, Frame, Frames, HoleV1, LaneV1, NameV1, TotalsV1, Walked};

pub const RECORDER: u16 = 0xffff;
pub const GAP: u8 = 18;
pub const LEVEL: u8 = 16;
pub const SPAN: u8 = 1;
pub const STEP: u8 = 2;
pub const SCALAR: u8 = 9;
pub const OVERRUN: u8 = 16;
pub const NO_LANE: u8 = 18;
pub const TOO_DEEP: u8 = 24;
pub const CONTINUES: u16 = 1 << 15;

/// A record and where it was found.
#[derive(Debug, Clone, Copy)]
pub struct Rec {
    pub lane: u16,
    /// Its full position, by its chunk's header.
    pub position: u64,
    pub ticks: u64,
    pub name: u32,
    pub span: u32,
    pub seq: u32,
    pub kind: u8,
    pub level: u8,
    pub flags: u16,
    pub payload: [u8; 40],
    /// The chunk header's span id, in full.
    pub first_span: u64,
}

/// A Gap record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The lane that the record is on.
    pub on: u16,
    pub lane: u16,
    pub reason: u8,
    pub records: u64,
    pub groups: u64,
    pub planes: u32,
    pub first: u64,
    pub last: u64,
}

impl Rec {
    pub fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.payload[at..at + 8].try_into().unwrap())
    }

    pub fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    pub fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.payload[at..at + 2].try_into().unwrap())
    }

    pub fn f64_at(&self, at: usize) -> f64 {
        f64::from_bits(self.u64_at(at))
    }

    pub fn continues(&self) -> bool {
        self.flags & CONTINUES != 0
    }

    pub fn gap(&self) -> Option<Gap> {
        (self.kind == GAP).then(|| Gap {
            on: self.lane,
            first: self.u64_at(0),
            last: self.u64_at(8),
            records: self.u64_at(16),
            groups: self.u64_at(24),
            planes: self.u32_at(32),
            lane: self.u16_at(36),
            reason: self.payload[38],
        })
    }

    /// A span record's own id, in full.
    pub fn span_id(&self) -> u64 {
        u64::from(self.u32_at(16)) << 32 | u64::from(self.span)
    }
}

/// A whole file.
#[derive(Debug, Default)]
pub struct File {
    pub records: Vec<Rec>,
    bytes: Vec<u8>,
    /// Offset and length of every metadata payload.
    metas: Vec<(usize, usize)>,
    /// Positions that are declared to hold nothing.
    pub holes: Vec<HoleV1>,
    pub chunks: usize,
    pub indexes: usize,
    pub trailer: bool,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn quarter(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

impl File {
    /// A file that ends with its trailer.
    pub fn finished(bytes: &[u8]) -> Self {
        let file = Self::prefix(bytes);
        assert!(file.trailer, "the file has its trailer");
        file
    }

    /// A file that may end between two chunks.
    pub fn prefix(bytes: &[u8]) -> Self {
        let mut file = Self { bytes: bytes.to_vec(), ..Self::default() };
        if bytes.is_empty() {
            return file;
        }
        assert_eq!(&bytes[..8], b"\x89TMRUN\r\n");
        let mut at = 64;
        let mut next: BTreeMap<u16, u64> = BTreeMap::new();
        let mut listed = Vec::new();
        while at < bytes.len() {
            let header = &bytes[at..at + 64];
            if header.starts_with(b"tmrunEND") {
                assert_eq!(half(header, 60), crc32fast::hash(&header[..60]));
                assert_eq!(word(header, 8), file.chunks as u64);
                assert_eq!(word(header, 16), file.records.len() as u64);
                assert_eq!(word(header, 32), at as u64);
                assert_eq!(at + 64, bytes.len());
                assert_eq!(*listed.last().unwrap(), word(header, 24) as usize, "last index");
                file.trailer = true;
                break;
            }
            let len = half(header, 16) as usize;
            let payload = &bytes[at + 64..at + 64 + len];
            file.chunk(at, header, payload, &mut next, &mut listed);
            at += 64 + len;
        }
        file.agrees_with_the_crate();
        file
    }

    fn chunk(
        &mut self,
        at: usize,
        header: &[u8],
        payload: &[u8],
        next: &mut BTreeMap<u16, u64>,
        listed: &mut Vec<usize>,
    ) {
        assert_eq!(&header[..4], b"tmCK", "a chunk at {at}");
        assert_eq!(half(header, 60), crc32fast::hash(&header[..60]), "header CRC at {at}");
        assert_eq!(half(header, 56), crc32fast::hash(payload), "payload CRC at {at}");
        assert_eq!(word(header, 8), self.chunks as u64, "chunk number at {at}");
        self.chunks += 1;
        match header[4] {
            1 => {
                let (lane, first) = (quarter(header, 6), word(header, 24));
                assert!(!payload.is_empty(), "a chunk of no records at {at}");
                assert_eq!(half(header, 20) as usize * 64, payload.len());
                if let Some(expected) = next.get(&lane) {
                    let holes = self.holes.iter().filter(|hole| hole.lane.0 == lane);
                    let expected = holes.fold(*expected, |at, hole| {
                        if hole.sequence == at { at + hole.records } else { at }
                    });
                    assert_eq!(first, expected, "lane {lane} goes on where it was");
                }
                for (i, bytes) in payload.chunks(64).enumerate() {
                    let position = first + i as u64;
                    let record = Rec {
                        lane,
                        position,
                        ticks: word(bytes, 0),
                        name: half(bytes, 8),
                        span: half(bytes, 12),
                        seq: half(bytes, 16),
                        kind: bytes[20],
                        level: bytes[21],
                        flags: quarter(bytes, 22),
                        payload: bytes[24..].try_into().unwrap(),
                        first_span: word(header, 32),
                    };
                    assert_eq!(record.seq, position as u32, "sequence in lane {lane}");
                    assert!(i > 0 || !record.continues(), "a chunk begins with a group");
                    self.records.push(record);
                }
                next.insert(lane, first + (payload.len() / 64) as u64);
            }
            2 => {
                self.metas.push((at + 64, payload.len()));
                let frames = Frames::new(payload, 0).map(|raw| raw.unwrap().decode().unwrap());
                self.holes.extend(frames.filter_map(|frame| match frame {
                    Frame::Hole(hole) => Some(hole),
                    _ => None,
                }));
            }
            3 => {
                self.indexes += 1;
                let previous = word(payload, 0) as usize;
                assert_eq!(previous, listed.last().copied().unwrap_or(0), "back link at {at}");
                listed.push(at);
            }
            kind => panic!("chunk kind {kind} at {at}"),
        }
    }

    /// The format's own walker sees the same file, without damage.
    fn agrees_with_the_crate(&self) {
        let mut records = 0;
        for walked in Chunks::new(&self.bytes) {
            match walked {
                Walked::Chunk(chunk) => {
                    chunk.check().unwrap();
                    records += chunk.records().len();
                }
                Walked::Damage(damage) => panic!("{damage:?}"),
                Walked::Trailer(_) => {}
            }
        }
        assert_eq!(records, self.records.len());
    }

    pub fn frames(&self) -> Vec<Frame<'_>> {
        let mut frames = Vec::new();
        for &(at, len) in &self.metas {
            for raw in Frames::new(&self.bytes[at..at + len], at as u64) {
                frames.push(raw.expect("a whole frame").decode().expect("a body that decodes"));
            }
        }
        frames
    }

    pub fn names(&self) -> BTreeMap<u32, NameV1<'_>> {
        let names = self.frames().into_iter().filter_map(|frame| match frame {
            Frame::Name(name) => Some((name.id.0, name)),
            _ => None,
        });
        names.collect()
    }

    /// The name of a record.
    pub fn name(&self, record: &Rec) -> String {
        self.names().get(&record.name).map_or_else(String::new, |name| name.text.to_owned())
    }

    pub fn lanes(&self) -> Vec<LaneV1<'_>> {
        let lanes = self.frames().into_iter().filter_map(|frame| match frame {
            Frame::Lane(lane) if lane.lane.0 != RECORDER => Some(lane),
            _ => None,
        });
        lanes.collect()
    }

    pub fn totals(&self, lane: u16) -> Option<TotalsV1> {
        self.frames().into_iter().find_map(|frame| match frame {
            Frame::Totals(totals) if totals.lane.0 == lane => Some(totals),
            _ => None,
        })
    }

    pub fn of(&self, kind: u8) -> Vec<Rec> {
        self.records.iter().filter(|record| record.kind == kind).copied().collect()
    }

    pub fn gaps(&self) -> Vec<Gap> {
        self.records.iter().filter_map(Rec::gap).collect()
    }

    /// Records that the file says were dropped from a lane, for this reason.
    pub fn dropped(&self, lane: u16, reason: u8) -> u64 {
        let gaps = self.gaps().into_iter();
        gaps.filter(|gap| gap.lane == lane && gap.reason == reason).map(|gap| gap.records).sum()
    }

    /// Records of a lane that the file says were written over before they were taken.
    pub fn lapped(&self, lane: u16) -> u64 {
        let holes = self.holes.iter().filter(|hole| hole.lane.0 == lane);
        let lapped = holes.inspect(|hole| assert_eq!(hole.reason, GapReason::LAPPED));
        lapped.map(|hole| hole.records).sum()
    }

    /// What a lane's application stored.
    pub fn stored(&self, lane: u16) -> Vec<Rec> {
        let stored = self.records.iter().filter(|r| r.lane == lane && r.kind != GAP);
        stored.copied().collect()
    }
}
