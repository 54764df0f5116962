//! What is going to be written, decided before the first byte of it.

use tmrun_formats::runtime::{RunMetadata, Section};
use tmrun_formats::{GapClass, Phase};

use super::census::Census;
use super::cover::is_of_ours;
use super::error::ConvertError;
use super::options::{Form, Options};
use super::phase::Selection;
use super::run;
use super::source::Source;
use super::tally::Tally;
use crate::scan::{Gap, Recording};

/// A recording and what of it becomes a trace.
#[derive(Debug)]
pub struct Plan<'r> {
    pub(super) recording: &'r Recording<'r>,
    pub(super) options: Options,
    pub(super) source: Source<'r>,
    pub(super) selection: Selection,
    pub(super) census: Census,
    pub(super) run: RunMetadata,
    is_gone: bool,
}

impl<'r> Plan<'r> {
    /// Looks through a recording for what is asked for.
    ///
    /// # Errors
    ///
    /// When there is no such step or phase, or when what is asked for is not one trace: see
    /// [`ConvertError::is_usage`]. A step that is not there because something was lost is no error:
    /// see [`is_gone`](Self::is_gone).
    pub fn of(recording: &'r Recording<'r>, options: Options) -> Result<Self, ConvertError> {
        let Options { schema, step, phase, .. } = options;
        let meta = recording.meta();
        let run = meta.run.map_or(Phase(0), |run| run.phase);
        let source = Source::new(recording, schema);
        let selection = Selection { step, phase, run };
        let mut census = Census::take(recording, &source, &selection);
        let may_have_it = |gap: &Gap| is_of_ours(gap) && census.cover.touches(gap);
        let is_gone = step.is_some() && !census.has_step && recording.lost().any(may_have_it);
        let phase = check(&census, &options, run, is_gone)?;
        let run = run::metadata(meta, phase, schema, &mut census.tally);
        Ok(Self { recording, options, source, selection, census, run, is_gone })
    }

    /// Whether nothing of the selected step is left, and it may have been in what was lost.
    pub const fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// How many observations a collection has.
    pub fn observations(&self, section: Section) -> u64 {
        self.census.observations.get(section as usize).copied().unwrap_or_default()
    }

    /// Whether there are none at all. JSONL is then replaced by a document of one line: a stream
    /// that holds its meta line alone is taken for a broken document by every reader.
    pub fn is_empty(&self) -> bool {
        Section::ALL.iter().all(|&section| self.observations(section) == 0)
    }

    /// The form that is written.
    pub fn form(&self) -> Form {
        if self.is_empty() { Form::Document } else { self.options.form }
    }

    /// What has no place in the output, and what stands there otherwise than it was recorded.
    pub const fn tally(&self) -> &Tally {
        &self.census.tally
    }

    /// What the recording lacks of what is converted, in order of time.
    pub fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.recording.gaps().iter().filter(|gap| self.census.cover.touches(gap))
    }

    /// Those of them that are lost evidence of a kind that is converted.
    pub fn lost(&self) -> impl Iterator<Item = &Gap> {
        self.gaps().filter(|gap| gap.class == GapClass::Lost && is_of_ours(gap))
    }
}

/// Whether this is one trace, and of which phase.
fn check(
    census: &Census,
    options: &Options,
    run: Phase,
    is_gone: bool,
) -> Result<Phase, ConvertError> {
    if let Some(step) = options.step.filter(|_| !census.has_step && !is_gone) {
        return Err(ConvertError::NoStep { step, phase: options.phase, found: census.steps });
    }
    let mut phases = census.phases;
    if phases.len() == 0 {
        phases.add(run);
    }
    let phase = match options.phase {
        Some(phase) if phases.has(phase) || is_gone => phase,
        Some(phase) => return Err(ConvertError::NoPhase { phase, found: phases }),
        None if phases.len() > 1 => return Err(ConvertError::SeveralPhases { found: phases }),
        None => phases.iter().next().unwrap_or(run),
    };
    match census.steps {
        Some((first, last))
            if !options.schema.has_steps() && options.step.is_none() && first != last =>
        {
            Err(ConvertError::SeveralSteps { first, last })
        }
        _ => Ok(phase),
    }
}
