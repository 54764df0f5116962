//! Opening a recording.

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use tmrun_formats::wire::{FILE_MAGIC, FileHeader, Trailer};
use tmrun_formats::{DecodeError, GapClass, RunId, Ticks};

use super::blocks::Block;
use super::check::{Checked, check_one};
use super::clock::{Calibrations, Clock};
use super::counts::{ChunkCounts, Counts};
use super::damage::Missing;
use super::error::{Finding, OpenError};
use super::gaps::Gap;
use super::lanes::Lanes;
use super::levels::Levels;
use super::merge::Merge;
use super::meta::Meta;
use super::names::Names;
use super::walk::{ChunkInfo, Walk};

/// The most chunks that one core takes at once: enough to be worth handing over.
const SHARE: usize = 64;

/// What is in a `.tmrun`, and what is missing from it.
#[derive(Debug, Clone)]
pub struct Recording<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) name: String,
    pub(super) header: FileHeader,
    pub(super) blocks: Vec<Block>,
    pub(super) chunks: ChunkCounts,
    pub(super) counts: Counts,
    pub(super) lanes: Lanes<'a>,
    pub(super) levels: Levels,
    pub(super) meta: Meta<'a>,
    pub(super) calibrations: Calibrations,
    pub(super) gaps: Vec<Gap>,
    pub(super) merged_gaps: u64,
    pub(super) missing: Vec<Missing>,
    pub(super) header_error: Option<DecodeError>,
    pub(super) findings: Vec<Finding>,
    pub(super) odd: Vec<Finding>,
    pub(super) trailer: Option<Trailer>,
    pub(super) torn: bool,
    pub(super) span: Option<(Ticks, Ticks)>,
}

/// How a file ends, and whether all of it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It has its trailer, and every byte holds.
    Finished,
    /// Every byte holds, and it has no trailer: it is being written, or its writer was stopped.
    NotFinished,
    /// It ends within a chunk or the trailer; what comes before holds.
    Torn,
    /// Bytes do not hold, or positions are missing.
    Damaged,
}

impl Status {
    /// The status's name in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::NotFinished => "not_finished",
            Self::Torn => "torn",
            Self::Damaged => "damaged",
        }
    }
}

impl<'a> Recording<'a> {
    /// Reads a whole file; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// When the file header cannot be read. Everything else that is wrong is a
    /// [finding](Self::findings).
    pub fn open(bytes: &'a [u8], name: &str) -> Result<Self, OpenError> {
        Self::open_observed(bytes, name, &|_| ())
    }

    /// The same, and `progress` is told of bytes as they have been looked at, on any thread.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_observed(
        bytes: &'a [u8],
        name: &str,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, OpenError> {
        let header = FileHeader::decode(bytes)
            .map_err(|source| OpenError { file: name.to_owned(), source })?;
        Ok(Self::scan(bytes, name, header, Walk::over(bytes), progress))
    }

    /// The same, and goes on when the file header is damaged: then the [header](Self::header) is what
    /// the metadata says of it, and 0 elsewhere. Only who mends the file can do something with that.
    ///
    /// # Errors
    ///
    /// When the header is of a newer version, or cannot be read and there is no chunk behind it, and
    /// the bytes are not the beginning of a header either.
    pub fn open_damaged(
        bytes: &'a [u8],
        name: &str,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, OpenError> {
        let error = match FileHeader::decode(bytes) {
            Ok(header) => return Ok(Self::scan(bytes, name, header, Walk::over(bytes), progress)),
            Err(error) => error,
        };
        let refused = OpenError { file: name.to_owned(), source: error };
        if matches!(error, DecodeError::Unsupported { .. }) {
            return Err(refused);
        }
        let unknown = FileHeader { run: RunId([0; 16]), created_ns: 0, ticks_per_second: 0 };
        let walk = Walk::without_header(bytes, error);
        let mut recording = Self::scan(bytes, name, unknown, walk, progress);
        let begins = FILE_MAGIC.starts_with(bytes.get(..FILE_MAGIC.len()).unwrap_or(bytes));
        let is_cut_header = bytes.len() < FileHeader::SIZE && begins;
        if recording.chunks.all == 0 && !is_cut_header {
            return Err(refused);
        }
        recording.header_error = Some(error);
        let rate = recording.calibrations.measured_rate().unwrap_or_default();
        recording.header.ticks_per_second = rate.round() as u64;
        recording.header.run = recording.meta.run.map_or(unknown.run, |run| run.run);
        Ok(recording)
    }

    fn scan(
        bytes: &'a [u8],
        name: &str,
        header: FileHeader,
        walk: Walk<'a>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        let mut merge = Merge::of(walk);
        let mut window = Vec::new();
        loop {
            merge.walk(&mut window);
            if window.is_empty() {
                return merge.finish(bytes, name, header);
            }
            let shares = check_all(bytes, &window, progress);
            let mut infos = window.iter_mut();
            for (checked, counts) in shares {
                merge.counts.merge(&counts);
                for (checked, info) in checked.into_iter().zip(&mut infos) {
                    merge.chunk(bytes, info, checked);
                }
            }
            merge.place(&window);
        }
    }
}

/// A share of checked chunks, and the counts of the records in those that hold.
type Share = (Vec<Checked>, Counts);

/// Every chunk by itself, on all cores. The result does not depend on how the chunks are dealt out.
fn check_all(bytes: &[u8], chunks: &[ChunkInfo], progress: &(dyn Fn(u64) + Sync)) -> Vec<Share> {
    let shares = rayon::current_num_threads().saturating_mul(32).max(1);
    let share = chunks.len().checked_div(shares).unwrap_or(1).clamp(1, SHARE);
    let check_share = |infos: &[ChunkInfo]| {
        let mut counts = Counts::default();
        let checked = infos.iter().map(|info| {
            progress(info.header.payload_len.into());
            info.chunk(bytes).map_or_else(
                || Checked::only(None),
                |chunk| check_one(&chunk, info.state, Some(&mut counts)),
            )
        });
        (checked.collect(), counts)
    };
    chunks.par_chunks(share).map(check_share).collect()
}

impl<'a> Recording<'a> {
    /// The bytes that it was opened from.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file header.
    pub const fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Why the file header could not be read, when it was opened [all the same](Self::open_damaged).
    pub const fn header_error(&self) -> Option<DecodeError> {
        self.header_error
    }

    /// The trailer; `None` in a file that was not finished.
    pub const fn trailer(&self) -> Option<&Trailer> {
        self.trailer.as_ref()
    }

    /// How many chunks there are.
    pub const fn chunk_counts(&self) -> &ChunkCounts {
        &self.chunks
    }

    /// Records in intact chunks, by kind.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The lanes.
    pub const fn lanes(&self) -> &Lanes<'a> {
        &self.lanes
    }

    /// The level and the foci over time.
    pub const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The metadata.
    pub const fn meta(&self) -> &Meta<'a> {
        &self.meta
    }

    /// The name table.
    pub const fn names(&self) -> &Names<'a> {
        &self.meta.names
    }

    /// The map from ticks to nanoseconds. Keep it for as many ticks as there are to map.
    pub fn clock(&self) -> Clock<'_> {
        self.calibrations.clock()
    }

    /// The samples behind the clock.
    pub const fn calibrations(&self) -> &Calibrations {
        &self.calibrations
    }

    /// The earliest and latest ticks of intact records; `None` when there are none.
    pub const fn span(&self) -> Option<(Ticks, Ticks)> {
        self.span
    }

    /// Everything that is missing, in order of time.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The gaps that are lost evidence.
    pub fn lost(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(|gap| gap.class == GapClass::Lost)
    }

    /// How many gaps were too many to list and were added to another one of their reason and lane.
    pub const fn merged_gaps(&self) -> u64 {
        self.merged_gaps
    }

    /// What the file's bytes lack, by offset: all gaps but those that Gap records tell of and those
    /// that were not requested.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Every place that breaks the format, by offset.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The first record of each chunk whose level is none that this version knows.
    pub(super) fn odd(&self) -> &[Finding] {
        &self.odd
    }

    /// Whether the recording goes on in another file, which says how the run ended.
    pub fn goes_on(&self) -> bool {
        self.meta.part.is_some_and(|part| part.next.is_some()) && self.meta.terminal.is_none()
    }

    /// How the file ends, and whether all of it holds.
    pub fn status(&self) -> Status {
        match (self.findings.len(), self.trailer) {
            (0, Some(_)) => Status::Finished,
            (0, None) => Status::NotFinished,
            (1, _) if self.torn => Status::Torn,
            _ => Status::Damaged,
        }
    }
}
