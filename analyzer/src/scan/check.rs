//! One chunk by itself: everything about it that needs no other chunk.

use tmrun_formats::wire::{self, Chunk, ChunkKind, GROUP_MAX, Kind, LevelChange, Record, Step};
use tmrun_formats::{DecodeError, GapClass, Level, Planes, Ticks};

use super::counts::Counts;
use super::gaps::{Gap, GapList};
use super::steps::StepEffect;
use super::walk::ChunkState;

/// More Gap records in one chunk than this are added up by reason and lane.
const GAPS_A_CHUNK: usize = 64;

/// What a chunk says of itself.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    /// The first rule that it breaks; then nothing of it is used.
    pub(super) error: Option<DecodeError>,
    pub(super) gaps: GapList,
    pub(super) levels: Vec<LevelChange>,
    pub(super) steps: StepEffect,
    pub(super) spans: u64,
    /// The first record whose level is none, by offset.
    pub(super) odd_level: Option<DecodeError>,
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
            odd_level: None,
        }
    }

    fn look(&mut self, chunk: &Chunk<'_>, counts: Option<&mut Counts>) -> Result<(), DecodeError> {
        chunk.check()?;
        if chunk.header.kind != ChunkKind::RECORDS {
            return Ok(());
        }
        let mut place = Place {
            offset: chunk.payload_offset(),
            seq: chunk.header.first_sequence as u32,
            group: 0,
        };
        let (mut least, mut greatest) = (Ticks(u64::MAX), Ticks(0));
        let mut by_code = [0_u32; 256];
        let mut unknown = false;
        for record in chunk.records() {
            let header = record.header();
            place.check(&header)?;
            if let Some(count) = by_code.get_mut(usize::from(header.kind)) {
                *count = count.saturating_add(1);
            }
            let (first, last) = record.edges();
            least = least.min(first);
            greatest = greatest.max(last);
            match Kind::from_code(header.kind) {
                Some(Kind::Step | Kind::Level | Kind::Gap) => self.note(record, chunk),
                Some(Kind::Span) => self.spans = self.spans.saturating_add(1),
                Some(_) => {}
                None => unknown = true,
            }
            if header.level > Level::MAX && self.odd_level.is_none() {
                let (expected, found) = (Level::MAX.0.into(), header.level.0.into());
                self.odd_level = Some(place.malformed("level of a record", 21, expected, found));
            }
            place.advance();
        }
        check_range(chunk, (least, greatest), unknown)?;
        if let Some(counts) = counts {
            counts.add(&by_code);
        }
        Ok(())
    }

    /// The few kinds of records that say something about the others.
    #[cold]
    fn note(&mut self, record: &Record, chunk: &Chunk<'_>) {
        if let Some(step) = record.payload::<Step>() {
            self.steps.mark(&record.header(), &step);
        } else if let Some(change) = record.payload::<LevelChange>() {
            self.levels.push(change);
        } else if let Some(gap) = record.payload::<wire::Gap>() {
            let gap = Gap::recorded(&gap);
            let may_hold_marks = gap.planes.contains(Planes::HOST_TIME);
            if gap.class == GapClass::Lost && may_hold_marks && gap.lane == Some(chunk.header.lane)
            {
                self.steps.doubt();
            }
            self.gaps.push(gap);
        }
    }
}

/// Where in the chunk the next record stands, and what it has to be there.
struct Place {
    offset: u64,
    seq: u32,
    /// Records of the group so far, 0 before the first.
    group: usize,
}

impl Place {
    #[inline(always)]
    fn check(&mut self, header: &wire::RecordHeader) -> Result<(), DecodeError> {
        if header.seq != self.seq {
            let (expected, found) = (self.seq.into(), header.seq.into());
            return Err(self.malformed("sequence number of a record", 16, expected, found));
        }
        let continues = header.flags & wire::flags::CONTINUES != 0;
        match Kind::from_code(header.kind) {
            None if header.kind == 0 => {
                return Err(self.malformed("kind of a record, 0 is an empty slot", 20, 1, 0));
            }
            Some(Kind::OpInput | Kind::Shape | Kind::Stats) if !continues => {
                return Err(self.misplaced("a record that continues another stands alone", header));
            }
            Some(kind) if continues && !may_continue(kind) => {
                return Err(
                    self.misplaced("a record that continues none continues another", header)
                );
            }
            _ => {}
        }
        if !continues {
            self.group = 1;
        } else if self.group == 0 {
            return Err(self.misplaced("the first record of a chunk continues another", header));
        } else if self.group >= GROUP_MAX {
            return Err(self.misplaced("a group holds too many records", header));
        } else {
            self.group = self.group.saturating_add(1);
        }
        Ok(())
    }

    const fn advance(&mut self) {
        self.offset = self.offset.saturating_add(wire::RECORD_SIZE as u64);
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

    /// A wrong continuation flag.
    #[cold]
    fn misplaced(&self, what: &'static str, header: &wire::RecordHeader) -> DecodeError {
        let found = header.flags;
        self.malformed(what, 22, (found ^ wire::flags::CONTINUES).into(), found.into())
    }
}

const fn may_continue(kind: Kind) -> bool {
    matches!(kind, Kind::OpInput | Kind::Shape | Kind::Stats | Kind::Range)
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
