//! From a damaged or unfinished recording to a whole one.
//!
//! What a reader of the new file can rely on:
//!
//! - **Nothing intact is left out.** It has the records of every intact chunk at the positions that
//!   they had, and every metadata frame that can be read; of definitions that differ the first.
//! - **Nothing lost is hidden.** Positions that are missing are in Hole frames with their reason,
//!   and damaged bytes of which nobody knows what they held are Gap records of no known count.
//!   So its gaps are the gaps of what it was made from, and no record counts twice.
//! - **It is whole.** It passes `verify`, has its names before their first use and again at the end,
//!   index and trailer. Only what intact bytes say that contradicts the format stays as it is.
//! - **It says how the run ended**, or that nobody knows.
//! - **Once is enough.** A salvaged file salvages to the same bytes.
//!
//! The recording is walked once more; memory is what [`Recording`] keeps, and one chunk of metadata.
//!
//! ```no_run
//! use tmrun::input::Input;
//! use tmrun::salvage::salvage;
//! use tmrun::scan::Recording;
//!
//! let input = Input::open("torn.tmrun".as_ref())?;
//! let torn = Recording::open_damaged(&input, input.name(), &|_| ())?;
//! let mut whole = Vec::new();
//! salvage(&torn, &mut whole, &|_| ())?;
//! let again = Recording::open(&whole, "whole")?;
//! assert_eq!(again.verify(), []);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copy;
mod end;
mod ended;
mod holes;
mod rings;

use std::io::{self, Write};

use crate::rewrite::{File, Gaps, definitions};
use crate::scan::Recording;
pub(crate) use ended::{Salvaged, salvaged};
use holes::Holes;
pub use rings::{Process, Rings, join};

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its chunks.
    pub chunks: u64,
    /// Its records, with those that say what is missing.
    pub records: u64,
    /// Records that were in intact chunks, all of which it has.
    pub kept: u64,
}

/// Why a recording was not salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// The output could not be written.
    #[error("the recording could not be written: {0}")]
    Io(#[from] io::Error),
    /// Somebody else changes the input.
    #[error(
        "{file}: has changed while it was read: {found} records are intact, and there were {expected}"
    )]
    Changed {
        /// What the input is called.
        file: String,
        /// Records that were intact when it was opened.
        expected: u64,
        /// Records that were found intact when they were copied.
        found: u64,
    },
}

/// Writes what is intact of a recording as a whole file. `progress` is told of bytes of chunks as
/// they have been looked at.
///
/// # Errors
///
/// When the output cannot be written, or the recording changes meanwhile.
pub fn salvage(
    recording: &Recording<'_>,
    out: &mut dyn Write,
    progress: &dyn Fn(u64),
) -> Result<Written, SalvageError> {
    let mut file = File::begin(out, recording.header())?;
    file.frames(definitions(recording))?;
    let mut holes = Holes::of(recording);
    let kept = copy::chunks(recording, &mut holes, &mut file, progress)?;
    let expected = recording.counts().total();
    if kept != expected {
        let file = recording.name().to_owned();
        return Err(SalvageError::Changed { file, expected, found: kept });
    }
    let gaps = Gaps::of(recording, |_| true, []);
    for (place, records) in gaps.chunks() {
        file.frames(holes.before(place.lane, place.sequence))?;
        file.records(place, &records)?;
    }
    file.frames(holes.rest())?;
    file.frames(definitions(recording))?;
    end::frames(recording, &gaps, &mut file)?;
    let trailer = file.end()?;
    Ok(Written {
        bytes: trailer.offset.saturating_add(tmrun_formats::wire::Trailer::SIZE as u64),
        chunks: trailer.chunks,
        records: trailer.records,
        kept,
    })
}
