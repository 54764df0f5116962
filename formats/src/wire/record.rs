//! The record: 64 bytes, one cache line.

use zerocopy::byteorder::{LittleEndian, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Kind, Payload, flags};
use crate::{Level, NameId, Ticks};

/// Bytes of a record.
pub const RECORD_SIZE: usize = 64;

/// One record as it lies in a file: eight little-endian words, of any alignment, every value of
/// which is readable.
#[derive(Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Record([U64<LittleEndian>; 8]);

const _: () = assert!(size_of::<Record>() == RECORD_SIZE);

/// The first 24 bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordHeader {
    /// When; for a span its start.
    pub ticks: Ticks,
    /// Site, node or label.
    pub name: NameId,
    /// Low half of the id of the enclosing span; of a span record its own.
    pub span: u32,
    /// Low half of the position in the lane's stream.
    pub seq: u32,
    /// Code of the [`Kind`].
    pub kind: u8,
    /// The level that asked for it.
    pub level: Level,
    /// See [`flags`].
    pub flags: u16,
}

impl RecordHeader {
    /// A header of this kind and level; everything else zero.
    #[inline(always)]
    pub const fn of<P: Payload>(level: Level) -> Self {
        let kind = P::KIND as u8;
        Self { ticks: Ticks(0), name: NameId::NONE, span: 0, seq: 0, kind, level, flags: 0 }
    }

    /// The three words of the header.
    #[inline(always)]
    pub const fn words(&self) -> [u64; 3] {
        [
            self.ticks.0,
            self.name.0 as u64 | (self.span as u64) << 32,
            self.seq as u64 | (self.kind_word() as u64) << 32,
        ]
    }

    /// The high half of the third word: kind, level and flags.
    #[inline(always)]
    pub const fn kind_word(&self) -> u32 {
        self.kind as u32 | (self.level.0 as u32) << 8 | (self.flags as u32) << 16
    }
}

impl Record {
    /// A record of this header and payload; the payload decides the kind.
    #[inline(always)]
    pub fn new<P: Payload>(header: RecordHeader, payload: &P) -> Self {
        let [ticks, name, rest] = RecordHeader { kind: P::KIND as u8, ..header }.words();
        let [a, b, c, d, e] = payload.words();
        Self::from_words([ticks, name, rest, a, b, c, d, e])
    }

    /// The record that these words make.
    #[inline(always)]
    pub fn from_words(words: [u64; 8]) -> Self {
        Self(words.map(U64::new))
    }

    /// Its eight words.
    #[inline(always)]
    pub fn words(&self) -> [u64; 8] {
        self.0.map(U64::get)
    }

    /// The records that these bytes are, and what is left over.
    pub fn slice(bytes: &[u8]) -> (&[Self], &[u8]) {
        let whole = bytes.len() / RECORD_SIZE;
        match <[Self]>::ref_from_prefix_with_elems(bytes, whole) {
            Ok(split) => split,
            // Not reached: the length fits and alignment is 1. Nothing is lost either way.
            Err(_) => (&[], bytes),
        }
    }

    /// Its 64 bytes.
    pub fn as_bytes(&self) -> &[u8; RECORD_SIZE] {
        zerocopy::transmute_ref!(&self.0)
    }

    /// Its header.
    #[inline(always)]
    pub fn header(&self) -> RecordHeader {
        let [ticks, name, rest, ..] = self.words();
        RecordHeader {
            ticks: Ticks(ticks),
            name: NameId(name as u32),
            span: (name >> 32) as u32,
            seq: rest as u32,
            kind: (rest >> 32) as u8,
            level: Level((rest >> 40) as u8),
            flags: (rest >> 48) as u16,
        }
    }

    /// Its kind; `None` when this version does not know it.
    #[inline(always)]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_code(self.header().kind)
    }

    /// Whether it continues the record before it.
    #[inline(always)]
    pub fn continues(&self) -> bool {
        self.header().flags & flags::CONTINUES != 0
    }

    /// Its payload, if it is of that kind.
    #[inline(always)]
    pub fn payload<P: Payload>(&self) -> Option<P> {
        let [_, _, _, payload @ ..] = self.words();
        (self.header().kind == P::KIND as u8).then(|| P::from_words(&payload))
    }

    /// The first and the last moment that it speaks of on the recording clock: of the header's
    /// ticks and every tick in the payload. (Device times are on another clock and do not count.)
    #[inline(always)]
    pub fn edges(&self) -> (Ticks, Ticks) {
        let [ticks, _, rest, payload @ .., _] = self.words();
        let at = TICKS[usize::from((rest >> 32) as u8)];
        // Kinds follow one another in any order, and a branch that nothing foretells would cost more
        // than all the rest. Of the usual ones only the first word can be ticks.
        let first = payload[0];
        let given = u64::from(at & 1).wrapping_neg();
        let (mut least, mut greatest) = (ticks.min(first | !given), ticks.max(first & given));
        if at > 1 {
            for (i, word) in payload.into_iter().enumerate() {
                if (at >> i) & 1 != 0 {
                    (least, greatest) = (least.min(word), greatest.max(word));
                }
            }
        }
        (Ticks(least), Ticks(greatest))
    }
}

/// By the code of a kind: which of the first four words of its payload are ticks, the first in the
/// lowest bit.
static TICKS: [u8; 256] = {
    let mut table = [0; 256];
    let mut code = 0;
    while code < table.len() {
        table[code] = match Kind::from_code(code as u8) {
            Some(kind) => kind.ticks_in_payload(),
            None => 0,
        };
        code += 1;
    }
    table
};

impl core::fmt::Debug for Record {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [_, _, _, payload @ ..] = self.words();
        f.debug_struct("Record").field("header", &self.header()).field("payload", &payload).finish()
    }
}
