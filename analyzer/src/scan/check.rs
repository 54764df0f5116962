//! One chunk by itself: everything about it that needs no other chunk.

use tmrun_formats::wire::{self, Chunk, ChunkKind, GROUP_MAX, Kind, LevelChange, Record, Step};
use tmrun_formats::{DecodeError, Level, NameId, Ticks};

use super::counts::Counts;
use super::gaps::{Gap, GapList};
use super::rules::{self, DIMS};
use super::steps::StepEffect;
use super::sums::Sums;
use super::walk::ChunkState;

/// More Gap records in one chunk than this are added up by reason and lane.
const GAPS_A_CHUNK: usize = 64;

/// What a chunk says of itself.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    /// The first rule that it breaks; then nothing of it is used.
    pub(super) error: Option<DecodeError>,
    pub(super) gaps: GapList,
    /// Changes of the level, or of the focus with this pattern.
    pub(super) levels: Vec<(NameId, LevelChange)>,
    pub(super) steps: StepEffect,
    pub(super) spans: u64,
    /// The first record whose level is none, or that has more dimensions than there are places.
    pub(super) odd: Option<DecodeError>,
}

/// Checks a chunk as far as its state allows. The records of one that holds are added to `counts`.
pub(super) fn check_one(
    chunk: &Chunk<'_>,
    state: ChunkState,
    counts: Option<&mut Counts>,
) -> Checked {
    match state {
        ChunkState::Intact => check(chunk, counts),
        // Not read by this version, or not to be used: only its bytes are checked.
        _ => Checked::only(chunk.check().err()),
    }
}

/// Holds a chunk against its CRC and, when it has records, each record against its place. Its
/// records are added to `counts` only when all of it holds.
fn check(chunk: &Chunk<'_>, counts: Option<&mut Counts>) -> Checked {
    let mut checked = Checked::only(None);
    checked.error = checked.look(chunk, counts).err();
    checked
}

impl Checked {
    /// A chunk of which nothing is read.
    pub(super) fn only(error: Option<DecodeError>) -> Self {
        Self {
            error,
            gaps: GapList::new(GAPS_A_CHUNK),
            levels: Vec::new(),
            steps: StepEffect::default(),
            spans: 0,
            odd: None,
        }
    }

    /// What a chunk that is known to hold says of steps, and nothing else.
    pub(super) fn marks(chunk: &Chunk<'_>, state: ChunkState) -> Self {
        let mut checked = Self::only(None);
        if state == ChunkState::Intact {
            for record in chunk.records() {
                if rules::of(record.header().kind) & rules::NOTED != 0 {
                    checked.note(record, chunk);
                }
            }
        }
        checked
    }

    /// Whether it says anything of steps.
    pub(super) fn has_marks(&self) -> bool {
        self.steps != StepEffect::default()
    }

    fn look(&mut self, chunk: &Chunk<'_>, counts: Option<&mut Counts>) -> Result<(), DecodeError> {
        let mut place = Place::first_of(chunk);
        let mut sums = Sums::default();
        chunk.check_records(|records| {
            for some in records.chunks(Sums::AT_ONCE) {
                match sums.add(some, place.seq, place.group) {
                    Some(group) => place.skip(some.len(), group),
                    None => self.each(some, &mut place, &mut sums, chunk)?,
                }
            }
            Ok(())
        })?;
        if chunk.header.kind != ChunkKind::RECORDS {
            return Ok(());
        }
        check_range(chunk, (sums.least, sums.greatest), sums.has_unknown())?;
        self.spans = sums.of(Kind::Span).into();
        if let Some(counts) = counts {
            counts.add(&sums.by_code);
        }
        Ok(())
    }

    /// Looks at each of a few records, one of which says something about others or breaks a rule.
    fn each(
        &mut self,
        records: &[Record],
        place: &mut Place,
        sums: &mut Sums,
        chunk: &Chunk<'_>,
    ) -> Result<(), DecodeError> {
        for record in records {
            let header = record.header();
            let rules = rules::of(header.kind);
            if !place.holds(&header, rules) {
                return Err(place.why_not(&header));
            }
            sums.reach(record.edges());
            if rules & rules::NOTED != 0 {
                self.note(record, chunk);
            }
            let has_dims = rules & rules::SHAPE != 0;
            let dims = header.flags & wire::flags::SHAPE_DIMS;
            if (header.level > Level::MAX) | (has_dims & (dims > DIMS)) {
                self.odd(place, &header);
            }
            place.advance(&header);
        }
        Ok(())
    }

    #[cold]
    fn odd(&mut self, place: &Place, header: &wire::RecordHeader) {
        let error = if header.level > Level::MAX {
            place.malformed("level of a record", 21, Level::MAX.0.into(), header.level.0.into())
        } else {
            let (expected, found) = (DIMS, header.flags & wire::flags::SHAPE_DIMS);
            let what = "dimensions in a record, at most";
            place.malformed(what, 22, expected.into(), found.into())
        };
        self.odd.get_or_insert(error);
    }

    /// The few kinds of records that say something about the others.
    #[cold]
    fn note(&mut self, record: &Record, chunk: &Chunk<'_>) {
        if let Some(step) = record.payload::<Step>() {
            self.steps.mark(&record.header(), &step);
        } else if let Some(change) = record.payload::<LevelChange>() {
            self.levels.push((record.header().name, change));
        } else if let Some(gap) = record.payload::<wire::Gap>() {
            if gap.lane == chunk.header.lane && gap.may_hold_marks() {
                self.steps.doubt();
            }
            self.gaps.push(Gap::recorded(&gap));
        }
    }
}

/// Where in the chunk the next record stands, and what it has to be there.
struct Place {
    offset: u64,
    seq: u32,
    /// Records of the group before it.
    group: usize,
}

const RECORD_BYTES: u64 = wire::RECORD_SIZE as u64;

/// As long as a group that cannot be continued: there is none.
const NO_GROUP: usize = usize::MAX;

impl Place {
    fn first_of(chunk: &Chunk<'_>) -> Self {
        let (offset, seq) = (chunk.payload_offset(), chunk.header.first_sequence as u32);
        Self { offset, seq, group: NO_GROUP }
    }

    /// Behind so many records that hold, the last group of which has so many by then.
    const fn skip(&mut self, records: usize, group: usize) {
        self.group = group;
        self.offset = self.offset.saturating_add((records as u64).saturating_mul(RECORD_BYTES));
        self.seq = self.seq.wrapping_add(records as u32);
    }

    #[inline(always)]
    fn holds(&self, header: &wire::RecordHeader, rules: u8) -> bool {
        let continues = header.flags & wire::flags::CONTINUES != 0;
        let role = if continues { rules::CONTINUES } else { rules::BEGINS };
        header.seq == self.seq && rules & role != 0 && !(continues && self.group >= GROUP_MAX)
    }

    /// The first rule that a record breaks which does not [hold](Self::holds).
    #[cold]
    fn why_not(&self, header: &wire::RecordHeader) -> DecodeError {
        if header.seq != self.seq {
            let (expected, found) = (self.seq.into(), header.seq.into());
            return self.malformed("sequence number of a record", 16, expected, found);
        }
        if header.kind == 0 {
            return self.malformed("kind of a record, 0 is an empty slot", 20, 1, 0);
        }
        let continues = header.flags & wire::flags::CONTINUES != 0;
        let what = if !continues {
            "a record that continues another stands alone"
        } else if rules::of(header.kind) & rules::CONTINUES == 0 {
            "a record that continues none continues another"
        } else if self.group == NO_GROUP {
            "the first record of a chunk continues another"
        } else {
            "a group holds too many records"
        };
        // The flag is wrong.
        let found = header.flags;
        self.malformed(what, 22, (found ^ wire::flags::CONTINUES).into(), found.into())
    }

    #[inline(always)]
    const fn advance(&mut self, header: &wire::RecordHeader) {
        let continues = header.flags & wire::flags::CONTINUES != 0;
        self.group = if continues { self.group.wrapping_add(1) } else { 1 };
        self.offset = self.offset.saturating_add(RECORD_BYTES);
        self.seq = self.seq.wrapping_add(1);
    }

    #[cold]
    const fn malformed(
        &self,
        what: &'static str,
        at: u64,
        expected: u64,
        found: u64,
    ) -> DecodeError {
        let offset = self.offset.saturating_add(at);
        DecodeError::Malformed { what, offset, expected, found }
    }
}

/// Holds the ticks of the header against those of the records. Kinds of newer versions may have
/// ticks that this version does not see, so with any of those the header's range may be wider.
fn check_range(
    chunk: &Chunk<'_>,
    (least, greatest): (Ticks, Ticks),
    wider: bool,
) -> Result<(), DecodeError> {
    let header = &chunk.header;
    let differs = |what, at: u64, expected: Ticks, found: Ticks| {
        let offset = chunk.offset.saturating_add(at);
        Err(DecodeError::Malformed { what, offset, expected: expected.0, found: found.0 })
    };
    if header.least != least && !(wider && header.least < least) {
        return differs("least tick of the chunk's records", 40, least, header.least);
    }
    if header.greatest != greatest && !(wider && header.greatest > greatest) {
        return differs("greatest tick of the chunk's records", 48, greatest, header.greatest);
    }
    Ok(())
}
