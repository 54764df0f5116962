//! What a question is asked of, opened in one way: a recording, a trace, or a bundle.
//!
//! Guarantees:
//!
//! - **One kind of answer.** Whatever is opened, a [`Subject`] is one trace (of one invocation) and what
//!   is known beside it; analysis sees nothing else.
//! - **A bundle is its trace.** Every file of it is held against the manifest; then the trace is read,
//!   never the evidence that is published beside it: that is derived again. Only what Nsight saw is
//!   taken from there. Where the recording's slice is in the bundle, what the trace has no place for is
//!   known too.
//! - **A choice is never made silently.** A recording of several invocations wants a step, and says
//!   which ones there are.
//!
//! ```no_run
//! use tmrun::evidence::derive;
//! use tmrun::source::Source;
//!
//! let source = Source::open("run.tmrun".as_ref())?;
//! let opened = source.read(&|_| ())?;
//! let part = opened.part(Some(4711))?;
//! let subject = part.subject();
//! let evidence = derive(subject.trace(), subject.gpu.clone(), subject.told())?;
//! println!("{}: {:?}", subject.input.path, evidence.health);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundle;
mod error;
mod subject;

use std::path::Path;

use tmrun_formats::rings::RINGS_MAGIC;
use tmrun_formats::trace::TraceDocument;
use tmrun_formats::wire::FILE_MAGIC;

use crate::evidence::read;
use crate::input::Input;
use crate::scan::Recording;
use crate::slice::Region;
use crate::trace::step_of;
use bundle::Bundle;
pub use error::SourceError;
pub use subject::{Part, Subject, SubjectInput};

/// What there is to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A `.tmrun`.
    Recording,
    /// A trace, JSONL.
    Trace,
    /// A directory with a manifest.
    Bundle,
}

/// The bytes of a recording, a trace or a bundle.
#[derive(Debug)]
pub struct Source {
    name: String,
    argument: Option<String>,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Recording(Input),
    Trace(Input),
    Bundle(Box<Bundle>),
}

impl Source {
    /// Opens a file, standard input (`-`), a bundle, or a directory with a trace in it that is to
    /// become one. A bundle's trace stands for its bundle.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is a directory with neither.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let (name, held) = match bundle::place(path)? {
            Some(root) => {
                let name = root.display().to_string();
                (name, Held::Bundle(Box::new(Bundle::open(&root)?)))
            }
            None => {
                let input = Input::open(&bundle::trace_in(path)?)?;
                let name = input.name().to_owned();
                let is_recording = [FILE_MAGIC, RINGS_MAGIC].iter().any(|m| input.starts_with(m));
                (name, if is_recording { Held::Recording(input) } else { Held::Trace(input) })
            }
        };
        Ok(Self { name, argument: argument(path), held })
    }

    /// What it is.
    pub const fn kind(&self) -> SourceKind {
        match &self.held {
            Held::Recording(_) => SourceKind::Recording,
            Held::Trace(_) => SourceKind::Trace,
            Held::Bundle(_) => SourceKind::Bundle,
        }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What names it on a command line; `None` where that is no text.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// How many bytes there are to read.
    pub fn bytes(&self) -> u64 {
        let inputs = match &self.held {
            Held::Recording(input) | Held::Trace(input) => [Some(input), None],
            Held::Bundle(bundle) => [Some(&bundle.trace), bundle.slice.as_ref()],
        };
        inputs.into_iter().flatten().fold(0, |sum, input| sum.saturating_add(input.len() as u64))
    }

    /// Reads all of it; `progress` is told of the bytes of a recording as they have been looked at.
    ///
    /// # Errors
    ///
    /// When it is none of what it looks like.
    pub fn read(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Opened<'_>, SourceError> {
        let content = match &self.held {
            Held::Recording(input) => {
                Content::Recording(Recording::open_observed(input, &self.name, progress)?)
            }
            Held::Trace(input) => Content::Trace(self.parse(input)?, None),
            Held::Bundle(bundle) => {
                let trace = bundle.parse()?;
                let open = |slice| Recording::open_observed(slice, &self.name, progress);
                Content::Trace(trace, bundle.slice.as_ref().map(|slice| open(slice)).transpose()?)
            }
        };
        Ok(Opened { source: self, content })
    }

    fn parse<'i>(&self, input: &'i Input) -> Result<TraceDocument<'i>, SourceError> {
        read(input).map_err(|error| SourceError::Read { name: self.name.clone(), error })
    }
}

/// A path as an argument that is none of the options.
fn argument(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_option = text.starts_with('-') && text != "-";
    Some(if is_option { format!("./{text}") } else { text.to_owned() })
}

/// A source whose bytes were understood.
#[derive(Debug)]
pub struct Opened<'s> {
    source: &'s Source,
    content: Content<'s>,
}

/// A trace may have the slice of the recording that it was made of beside it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of a command")]
enum Content<'s> {
    Recording(Recording<'s>),
    Trace(TraceDocument<'s>, Option<Recording<'s>>),
}

impl<'s> Opened<'s> {
    /// Where it is from.
    pub const fn source(&self) -> &'s Source {
        self.source
    }

    /// The recording, of which a bundle may have a slice.
    pub const fn recording(&self) -> Option<&Recording<'s>> {
        match &self.content {
            Content::Recording(recording) => Some(recording),
            Content::Trace(_, slice) => slice.as_ref(),
        }
    }

    /// One invocation: a step, or without one the only one that there is.
    ///
    /// # Errors
    ///
    /// When there is no such step, or not one invocation alone.
    pub fn part(&self, step: Option<u64>) -> Result<Part<'_>, SourceError> {
        let (trace, slice) = match &self.content {
            Content::Recording(recording) => {
                let region = Region::of(recording, step)?;
                return Ok(Part::of_recording(self.source, recording, &region));
            }
            Content::Trace(trace, slice) => (trace, slice.as_ref()),
        };
        let found = trace.run.capture_step;
        if let Some(step) = step.filter(|&step| step != found) {
            let name = self.source.name.clone();
            return Err(SourceError::OtherStep { name, step, found });
        }
        let slice = slice.map(|slice| {
            Ok::<_, SourceError>((slice, Region::of(slice, step_of(slice, &trace.run))?))
        });
        Ok(Part::of_trace(self.source, trace, slice.transpose()?))
    }
}
