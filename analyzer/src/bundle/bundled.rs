//! A published bundle, opened in one way by whoever reads one.

use std::fmt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tmrun_formats::bundle::{BundleReceipt, MANIFEST, TRACE};
use tmrun_formats::trace::TraceDocument;

use super::content::{Content, hex, published};
use super::problem::{Problem, ProblemKind};
use crate::evidence::read;
use crate::input::Input;

/// A directory that was published as a bundle, and each of whose files is what its manifest declares.
#[derive(Debug)]
pub struct Bundle {
    root: PathBuf,
    /// Without problems.
    content: Content,
    receipt: BundleReceipt<'static>,
}

/// A directory that is no whole bundle.
#[derive(Debug, thiserror::Error)]
pub struct BundleError {
    /// The directory.
    pub root: PathBuf,
    /// What is wrong, up to a thousand; one thing at least.
    pub problems: Vec<Problem>,
    /// How much more is wrong.
    pub more: u64,
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.root.display())?;
        self.problems.first().map_or(Ok(()), |first| write!(f, "{first}"))?;
        match self.more.saturating_add(self.problems.len().saturating_sub(1) as u64) {
            0 => {}
            more => write!(f, ", and {more} problems more")?,
        }
        f.write_str("; `tmrun verify` lists all that is wrong with it")
    }
}

impl Bundle {
    /// Opens a bundle. Which files it has is no matter, nor what is in them.
    ///
    /// # Errors
    ///
    /// When it was not published, or a file of it is not what is declared.
    pub fn open(root: &Path) -> Result<Self, BundleError> {
        Self::of(root, published(root)).map_err(|found| {
            let Content { problems, more, .. } = *found;
            BundleError { root: root.to_owned(), problems, more }
        })
    }

    /// What was found to have no problems.
    pub(super) fn of(root: &Path, content: Content) -> Result<Self, Box<Content>> {
        match content.receipt.clone() {
            Some(receipt) => Ok(Self { root: root.to_owned(), content, receipt }),
            None => Err(Box::new(content)),
        }
    }

    /// What it was checked to be.
    pub const fn receipt(&self) -> &BundleReceipt<'static> {
        &self.receipt
    }

    pub(super) fn into_content(self) -> Content {
        self.content
    }

    /// A file of it, if that is declared. What is read is what was checked.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or somebody wrote to it since.
    pub fn file(&self, name: &str) -> Result<Option<Input>, BundleError> {
        self.checked(name).map_err(|problem| self.error(problem))
    }

    /// The trace's text.
    ///
    /// # Errors
    ///
    /// When there is none, or as for [any other file](Self::file).
    pub fn trace_file(&self) -> Result<Input, BundleError> {
        let missing = || self.error(Problem::of(ProblemKind::Incomplete, TRACE));
        self.file(TRACE)?.ok_or_else(missing)
    }

    /// What the trace's text says.
    ///
    /// # Errors
    ///
    /// When it is no trace, or one of another run than the manifest's.
    pub fn trace<'i>(&self, text: &'i Input) -> Result<TraceDocument<'i>, BundleError> {
        self.parsed(text).map_err(|problem| self.error(problem))
    }

    pub(super) fn checked(&self, name: &str) -> Result<Option<Input>, Problem> {
        let Some(declared) = self.content.declared(name) else { return Ok(None) };
        let unreadable = |error| Problem::of(ProblemKind::Unreadable, name).found(error);
        let input = Input::open(&self.root.join(name)).map_err(unreadable)?;
        let is_same = hex(&Sha256::digest(&*input)).eq_ignore_ascii_case(&declared.sha256);
        if is_same { Ok(Some(input)) } else { Err(Problem::of(ProblemKind::Changed, name)) }
    }

    pub(super) fn parsed<'i>(&self, text: &'i [u8]) -> Result<TraceDocument<'i>, Problem> {
        let trace =
            read(text).map_err(|error| Problem::of(ProblemKind::BadTrace, TRACE).found(error))?;
        if trace.run.run_id == self.receipt.run_id {
            return Ok(trace);
        }
        let problem = Problem::of(ProblemKind::RunId, MANIFEST);
        Err(problem.expected(&trace.run.run_id).found(&self.receipt.run_id))
    }

    fn error(&self, problem: Problem) -> BundleError {
        BundleError { root: self.root.clone(), problems: vec![problem], more: 0 }
    }
}
