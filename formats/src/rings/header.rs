//! The first page of a rings file.

use super::{half, word};
use crate::wire::RECORD_SIZE;
use crate::{DecodeError, RunId};

/// The first eight bytes of every rings file.
pub const RINGS_MAGIC: [u8; 8] = *b"\x89TMRNG\r\n";
/// The version of the layout that this crate writes, and the only one that it reads.
pub const RINGS_VERSION: u32 = 2;

const WHAT: &str = "rings header";

macro_rules! header {
    ($($(#[$doc:meta])* $field:ident: $offset:literal),* $(,)?) => {
        /// Sizes of a probe, and where its parts lie: what the first 256 bytes say. All offsets are
        /// from the start of the file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct RingsHeader {
            /// The run that is being recorded.
            pub run: RunId,
            $($(#[$doc])* pub $field: u64,)*
        }

        impl RingsHeader {
            fn put(&self, bytes: &mut [u8; Self::SIZE]) {
                $(bytes[$offset..$offset + 8].copy_from_slice(&self.$field.to_le_bytes());)*
            }

            fn get(bytes: &[u8; Self::SIZE]) -> Self {
                let mut run = RunId([0; 16]);
                run.0.copy_from_slice(&bytes[16..32]);
                Self { run, $($field: word(bytes, $offset),)* }
            }

            /// Field by field: its name and its offset.
            pub const FIELDS: &[(&str, usize)] = &[("run", 16), $((stringify!($field), $offset)),*];
        }
    };
}

header! {
    /// When the recording began, in nanoseconds since 1970-01-01 UTC.
    created_ns: 32,
    /// Nominal rate of the recording clock.
    ticks_per_second: 40,
    /// The process that records.
    pid: 48,
    /// 1 when full rings keep the newest records, else 0.
    overwrite: 56,
    /// How many lanes there are, the recorder's own apart.
    lanes: 64,
    /// Slots of a lane's ring: a power of two.
    slots: 72,
    /// Slots of the recorder's own ring: a power of two.
    recorder_slots: 80,
    /// Entries of the name table.
    names: 88,
    /// Bytes of the whole file.
    length: 96,
    /// The control page, which is all zeros.
    control: 104,
    /// The run area.
    run_area: 112,
    /// The clock cells.
    clock: 120,
    /// What found no lane: a [`MissedImage`](super::MissedImage).
    no_lane: 128,
    /// How many names found no room since the recorder's memory was new: 4 bytes.
    unnamed: 136,
    /// Names of device codes from 1, 4 bytes each, 254 of them; then of dtype codes from 128, 127.
    codes: 144,
    /// The name table.
    entries: 152,
    /// The text that its entries point into.
    arena: 160,
    /// Bytes of that text.
    arena_length: 168,
    /// Block of the recorder's own lane.
    recorder: 176,
    /// Its ring.
    recorder_ring: 184,
    /// Blocks of the lanes, one behind the other.
    blocks: 192,
    /// Rings of the lanes, one behind the other.
    rings: 200,
    /// Changes of levels and foci that may be in no record yet: see
    /// [`WaitingChanges`](super::WaitingChanges).
    changes: 208,
}

impl RingsHeader {
    /// Bytes of the header.
    pub const SIZE: usize = 256;
    /// The byte that says how far the recording came: see [`FINISHED`](Self::FINISHED). It is not
    /// under the CRC.
    pub const STATE: u64 = 256;
    /// In the state byte: the recording was finished, and all of it is in its file.
    pub const FINISHED: u8 = 1;

    /// Its bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&RINGS_MAGIC);
        bytes[8..12].copy_from_slice(&RINGS_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(RECORD_SIZE as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.run.0);
        self.put(&mut bytes);
        let crc = crc32fast::hash(&bytes[..Self::SIZE - 4]);
        bytes[Self::SIZE - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of `file` and holds its offsets against the file's length: what
    /// lies within them can be sliced without a further look.
    ///
    /// # Errors
    ///
    /// Truncated when the file ends before what the header speaks of does; malformed when magic, CRC
    /// or a size do not hold; unsupported when another version wrote it.
    pub fn decode(file: &[u8]) -> Result<Self, DecodeError> {
        let Some(bytes) = file.first_chunk::<{ Self::SIZE }>() else {
            let (expected, found) = (Self::SIZE as u64, file.len() as u64);
            return Err(DecodeError::Truncated { what: WHAT, offset: 0, expected, found });
        };
        let malformed = |what, offset, expected, found| {
            Err(DecodeError::Malformed { what, offset, expected, found })
        };
        let magic = word(bytes, 0);
        if magic != u64::from_le_bytes(RINGS_MAGIC) {
            return malformed("rings magic", 0, u64::from_le_bytes(RINGS_MAGIC), magic);
        }
        let crc_at = Self::SIZE - 4;
        let computed = crc32fast::hash(bytes.get(..crc_at).unwrap_or_default());
        let stored = half(bytes, crc_at);
        if computed != stored {
            let what = "CRC of the rings header";
            return malformed(what, crc_at as u64, computed.into(), stored.into());
        }
        let version = half(bytes, 8);
        if version != RINGS_VERSION {
            let (expected, found) = (RINGS_VERSION.into(), version.into());
            return Err(DecodeError::Unsupported {
                what: "rings version",
                offset: 8,
                expected,
                found,
            });
        }
        let record = half(bytes, 12);
        if record as usize != RECORD_SIZE {
            return malformed("record size", 12, RECORD_SIZE as u64, record.into());
        }
        Self::get(bytes).checked(file.len() as u64)
    }

    /// Every part, with its bytes: a name for errors, where it begins, and its length; `None` for one
    /// that no file can hold.
    fn parts(&self) -> [(&'static str, u64, Option<u64>); 13] {
        let record = RECORD_SIZE as u64;
        let (block, lanes) = (super::LaneImage::SIZE as u64, self.lanes);
        let ring = self.slots.checked_mul(record);
        [
            ("control page", self.control, Some(8)),
            ("run area", self.run_area, Some(RunArea::SIZE)),
            ("clock cells", self.clock, Some(super::ClockCell::COUNT * super::ClockCell::SIZE)),
            ("lost records", self.no_lane, Some(super::MissedImage::SIZE)),
            ("lost names", self.unnamed, Some(4)),
            ("codes", self.codes, Some(4 * (254 + 127))),
            ("name table", self.entries, self.names.checked_mul(super::NameImage::SIZE as u64)),
            ("text of names", self.arena, Some(self.arena_length)),
            ("recorder's block", self.recorder, Some(block)),
            ("recorder's ring", self.recorder_ring, self.recorder_slots.checked_mul(record)),
            ("lane blocks", self.blocks, lanes.checked_mul(block)),
            ("rings", self.rings, ring.and_then(|ring| ring.checked_mul(lanes))),
            ("level changes", self.changes, Some(super::WaitingChanges::SIZE)),
        ]
    }

    fn checked(self, found: u64) -> Result<Self, DecodeError> {
        for (what, slots) in [("slots", self.slots), ("recorder's slots", self.recorder_slots)] {
            if !slots.is_power_of_two() {
                let (offset, expected) = (72, slots.checked_next_power_of_two().unwrap_or(1));
                return Err(DecodeError::Malformed { what, offset, expected, found: slots });
            }
        }
        let most = u64::from(crate::LaneId::RECORDER.0);
        if self.lanes >= most {
            let (what, offset, found) = ("lanes", 64, self.lanes);
            return Err(DecodeError::Malformed { what, offset, expected: most - 1, found });
        }
        for (what, offset, length) in self.parts() {
            let end = length.and_then(|length| offset.checked_add(length)).unwrap_or(u64::MAX);
            if end > found {
                return Err(DecodeError::Truncated { what, offset, expected: end, found });
            }
        }
        Ok(self)
    }

    /// The bytes of a lane's ring, [`LaneId::RECORDER`](crate::LaneId::RECORDER) among them; empty for
    /// a lane that is not there.
    pub fn ring<'f>(&self, file: &'f [u8], lane: crate::LaneId) -> &'f [u8] {
        let (start, slots) = match lane {
            crate::LaneId::RECORDER => (self.recorder_ring, self.recorder_slots),
            lane if u64::from(lane.0) < self.lanes => {
                let ring = self.slots.saturating_mul(RECORD_SIZE as u64);
                (self.rings.saturating_add(ring.saturating_mul(lane.0.into())), self.slots)
            }
            _ => return &[],
        };
        slice(file, start, slots.saturating_mul(RECORD_SIZE as u64))
    }

    /// A lane's block, the recorder's own among them; all zeros for a lane that is not there.
    pub fn block(&self, file: &[u8], lane: crate::LaneId) -> super::LaneImage {
        let size = super::LaneImage::SIZE as u64;
        let start = match lane {
            crate::LaneId::RECORDER => self.recorder,
            lane => self.blocks.saturating_add(size.saturating_mul(lane.0.into())),
        };
        super::LaneImage::read(slice(file, start, size))
    }

    /// A part that is `length` bytes long, from its offset on.
    pub fn part<'f>(&self, file: &'f [u8], offset: u64, length: u64) -> &'f [u8] {
        slice(file, offset, length)
    }
}

fn slice(file: &[u8], start: u64, length: u64) -> &[u8] {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
    file.get(start..end).unwrap_or_default()
}

/// What describes the run: 4 bytes of length, 4 of CRC-32, then so many bytes of metadata frames.
#[derive(Debug, Clone, Copy)]
pub struct RunArea;

impl RunArea {
    /// Bytes of the area.
    pub const SIZE: u64 = 64 * 1024;
    /// Where its frames begin.
    pub const FRAMES: usize = 8;

    /// The frames, when their CRC holds.
    pub fn frames(area: &[u8]) -> Option<&[u8]> {
        let length = usize::try_from(half(area, 0)).ok()?;
        let frames = area.get(Self::FRAMES..Self::FRAMES.checked_add(length)?)?;
        (crc32fast::hash(frames) == half(area, 4)).then_some(frames)
    }
}
