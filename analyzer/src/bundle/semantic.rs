//! A bundle's documents derived once more, and every value compared.

use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;
use tmrun_formats::bundle::{EVIDENCE, NSIGHT, REPORT, TRACE};

use super::contents::{Contents, write_trace};
use super::difference::{Compare, Mismatch, is_prose, nothing, short};
use super::{ANNEX, RECORDING};
use crate::evidence::{EvidenceError, derive, read};
use crate::input::{Input, InputError};
use crate::nsight::read as read_nsight;
use crate::scan::{OpenError, Recording, Status};
use crate::slice::{Region, RegionError};
use crate::trace::{Trace, step_of};

/// So many mismatches are listed, and the others counted.
const LISTED: usize = 1_000;

/// What deriving once more came to.
#[derive(Debug, Clone)]
pub struct Semantic {
    /// From what.
    pub source: SemanticSource,
    /// The values that are not what was derived, up to a thousand.
    pub mismatches: Vec<Mismatch>,
    /// How many more there are.
    pub more: u64,
}

/// From what the documents were derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticSource {
    /// The part of the recording that is in the bundle: all documents were, and compared to the last
    /// word.
    Recording,
    /// The trace, in a bundle without a recording: the evidence was, and compared but for what is said
    /// in words.
    Trace,
}

impl SemanticSource {
    /// The file's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recording => RECORDING,
            Self::Trace => TRACE,
        }
    }
}

/// Documents that could not be derived.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SemanticError {
    /// A file could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The recording is none.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The recording does not have what was measured.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Nothing can be said of the trace.
    #[error("the trace says nothing: {0}")]
    Evidence(#[from] EvidenceError),
    /// A document could not be read.
    #[error("{file}: {why}")]
    Document {
        /// The document.
        file: &'static str,
        /// Why not.
        why: String,
    },
}

/// Derives the documents of a bundle from what it carries, and compares them. [Verify](super::verify)
/// it before.
///
/// # Errors
///
/// When what it carries cannot be read, or nothing can be derived from it.
pub fn semantic(root: &Path) -> Result<Semantic, SemanticError> {
    let recording = root.join(RECORDING);
    if recording.symlink_metadata().is_err() {
        return of_trace(root);
    }
    let input = Input::open(&recording)?;
    let recording = Recording::open(&input, input.name())?;
    let published = Input::open(&root.join(TRACE))?;
    let published = read(&published).map_err(|error| document(TRACE, error))?;
    let region = Region::of(&recording, step_of(&recording, &published.run))?;
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let folder = root.join(NSIGHT);
    let gpu = folder.is_dir().then(|| read_nsight(&folder, &derived.document.run));
    let contents = Contents::of(&recording, &region, &derived, gpu)?;

    let mut found = Found::default();
    if recording.status() != Status::Finished {
        let mut found_it = Mismatch::of(RECORDING);
        found_it.derived = Some(Status::Finished.name().to_owned());
        found_it.published = Some(recording.status().name().to_owned());
        found.push(found_it);
    }
    let mut line = |at, derived: &[u8], published: &[u8]| {
        of_line(TRACE, at, derived, published, &mut found);
    };
    lines(root, TRACE, &mut line, |out| write_trace(&derived, out))?;
    let mut line = |at, derived: &[u8], published: &[u8]| {
        found.push(of_text(REPORT, at, derived, published));
    };
    lines(root, REPORT, &mut line, |out| contents.write_report(out))?;
    let is_tool = |at: &str| at.starts_with("/tool/");
    json(root, EVIDENCE, &contents.evidence, nothing, &mut found)?;
    json(root, ANNEX, &contents.annex, is_tool, &mut found)?;
    Ok(found.of(SemanticSource::Recording))
}

/// The evidence of a bundle without a recording.
fn of_trace(root: &Path) -> Result<Semantic, SemanticError> {
    let input = Input::open(&root.join(TRACE))?;
    let trace = read(&input).map_err(|error| document(TRACE, error))?;
    let folder = root.join(NSIGHT);
    let gpu = folder.is_dir().then(|| read_nsight(&folder, &trace.run));
    let evidence = derive(&trace, gpu, None)?;
    let mut found = Found::default();
    json(root, EVIDENCE, &evidence, is_prose, &mut found)?;
    Ok(found.of(SemanticSource::Trace))
}

fn document(file: &'static str, why: impl ToString) -> SemanticError {
    SemanticError::Document { file, why: why.to_string() }
}

/// What was found.
#[derive(Default)]
struct Found {
    mismatches: Vec<Mismatch>,
    more: u64,
}

impl Found {
    fn push(&mut self, mismatch: Mismatch) {
        if self.mismatches.len() < LISTED {
            self.mismatches.push(mismatch);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    fn of(self, source: SemanticSource) -> Semantic {
        Semantic { source, mismatches: self.mismatches, more: self.more }
    }
}

impl Mismatch {
    const fn of(file: &'static str) -> Self {
        Self { file, line: None, at: String::new(), derived: None, published: None }
    }
}

/// Compares a document as JSON.
fn json(
    root: &Path,
    file: &'static str,
    derived: &impl serde::Serialize,
    skip: fn(&str) -> bool,
    found: &mut Found,
) -> Result<(), SemanticError> {
    let mut same = true;
    // As long as the bytes are the same, so are the values.
    lines(root, file, &mut |_, _, _| same = false, |out| super::staging::write_json(out, derived))?;
    if same {
        return Ok(());
    }
    let input = Input::open(&root.join(file))?;
    let published: Value = serde_json::from_slice(&input).map_err(|error| document(file, error))?;
    let derived = serde_json::to_value(derived).map_err(|error| document(file, error))?;
    compare(file, None, skip, &derived, &published, found);
    Ok(())
}

fn compare(
    file: &'static str,
    line: Option<u64>,
    skip: fn(&str) -> bool,
    derived: &Value,
    published: &Value,
    found: &mut Found,
) {
    let shown = |value: Option<&Value>| value.map(|value| short(&value.to_string()));
    let mut tell = |at: &str, derived: Option<&Value>, published: Option<&Value>| {
        let (derived, published) = (shown(derived), shown(published));
        found.push(Mismatch { file, line, at: at.to_owned(), derived, published });
    };
    Compare::new(skip, &mut tell).values(derived, published);
}

/// A line that is a document, where it differs.
fn of_line(file: &'static str, at: u64, derived: &[u8], published: &[u8], found: &mut Found) {
    let value = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    match (value(derived), value(published)) {
        (Some(derived), Some(published)) => {
            compare(file, Some(at), nothing, &derived, &published, found);
        }
        _ => found.push(of_text(file, at, derived, published)),
    }
}

/// A line that differs.
fn of_text(file: &'static str, at: u64, derived: &[u8], published: &[u8]) -> Mismatch {
    let shown = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        (!line.is_empty()).then(|| short(text.trim_end_matches('\n')))
    };
    let (derived, published) = (shown(derived), shown(published));
    Mismatch { line: Some(at), derived, published, ..Mismatch::of(file) }
}

/// Is told of a line's number, what was derived, and what is published.
type Differ<'d> = dyn FnMut(u64, &[u8], &[u8]) + 'd;

/// Holds what is written, line by line, against a published file. `differ` is told of lines that are not
/// the same; where there is none, of an empty one.
fn lines(
    root: &Path,
    file: &'static str,
    differ: &mut Differ<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), SemanticError> {
    let published = Input::open(&root.join(file))?;
    let mut lines = Lines { published: &published, derived: Vec::new(), number: 0, differ };
    write(&mut lines).map_err(|error| document(file, error))?;
    if !lines.derived.is_empty() {
        lines.line();
    }
    while !lines.published.is_empty() {
        lines.line();
    }
    Ok(())
}

struct Lines<'l> {
    published: &'l [u8],
    derived: Vec<u8>,
    number: u64,
    differ: &'l mut Differ<'l>,
}

impl Lines<'_> {
    /// A line is complete.
    fn line(&mut self) {
        let (published, rest) = first_line(self.published);
        self.published = rest;
        self.number = self.number.saturating_add(1);
        if self.derived != published {
            (self.differ)(self.number, &self.derived, published);
        }
        self.derived.clear();
    }
}

/// The first line, with its end, and what is behind it.
fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end =
        bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at.saturating_add(1));
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, behind) = first_line(rest);
            self.derived.extend_from_slice(piece);
            rest = behind;
            if piece.ends_with(b"\n") {
                self.line();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
