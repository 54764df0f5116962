//! Opening what a command reads.

use std::path::Path;

use tmrun::evidence::{EvidenceError, derive};
use tmrun::scan::{OpenError, Recording, Status};
use tmrun::source::{Opened, Source, SourceError, Subject};
use tmrun_formats::evidence::Evidence;

use super::progress::Progress;
use super::{Failure, Outcome, say};

/// Scans a whole recording, with a progress bar where someone may be waiting.
pub(super) fn recording<'a>(bytes: &'a [u8], name: &str) -> Result<Recording<'a>, OpenError> {
    let progress = Progress::new(bytes.len() as u64, "scanning");
    let recording = Recording::open_observed(bytes, name, &|more| progress.add(more));
    progress.finish();
    recording
}

/// Reads a source whole, with a progress bar where someone may be waiting.
pub(super) fn source(source: &Source) -> Result<Opened<'_>, SourceError> {
    let progress = Progress::new(source.bytes(), "scanning");
    let opened = source.read(&|more| progress.add(more));
    progress.finish();
    opened
}

/// What one invocation's evidence says, handed to `look` with the name of the input.
pub(super) fn evidence(
    input: &Path,
    step: Option<u64>,
    look: impl FnOnce(&str, &Subject<'_>, &Evidence<'_>) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let source = Source::open(input)?;
    let opened = self::source(&source)?;
    let part = opened.part(step)?;
    let subject = part.subject();
    say_if_several_steps(source.name(), subject.several_steps);
    let evidence =
        told(source.name(), derive(subject.trace(), subject.gpu.clone(), subject.told()))?;
    look(source.name(), &subject, &evidence)
}

/// Says of which input nothing can be said.
pub(super) fn told<T>(name: &str, said: Result<T, EvidenceError>) -> Result<T, Failure> {
    said.map_err(|error| Failure::Evidence { name: name.to_owned(), error })
}

/// Says that what is looked at as one invocation is several steps.
pub(super) fn say_if_several_steps(name: &str, steps: Option<(u64, u64)>) {
    if let Some((first, last)) = steps {
        say(format_args!(
            "{name}: its measured region covers several steps ({first} to {last}) and is taken as one \
             invocation: choose one of them with --step"
        ));
    }
}

/// Says that the file has no trailer, when that is all that is the matter with it.
pub(super) fn say_if_not_finished(recording: &Recording<'_>) {
    if recording.status() == Status::NotFinished {
        let name = recording.name();
        say(format_args!(
            "{name}: not finished: it has no trailer yet; all of its {} chunks are whole",
            recording.chunk_counts().all
        ));
    }
}
