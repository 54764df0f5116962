//! The run's metadata.

use tmrun_formats::Phase;
use tmrun_formats::runtime::RunMetadata;

use super::options::Schema;
use super::tally::{Absent, Note, Tally};
use crate::scan::Meta;

/// What the output says of the run. What is missing is `unknown` where the schema demands a text,
/// and counted.
pub(super) fn metadata(
    meta: &Meta<'_>,
    phase: Phase,
    schema: Schema,
    tally: &mut Tally,
) -> RunMetadata {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let text = |text: Option<&str>| text.unwrap_or("unknown").to_owned();
    let run = meta.run.as_ref();
    if run.is_none() {
        tally.note(Note::NoRun, 1);
    }
    let name = phase.name().filter(|_| schema.has_durations_and_phase());
    if name.is_none() && phase.0 != 0 {
        tally.leave_out(Absent::Phase);
    }
    RunMetadata {
        entrypoint: text(run.map(|run| run.entrypoint)),
        profile: text(run.map(|run| run.profile)),
        cargo_features: owned(&meta.cargo_features),
        cfg: owned(&meta.cfg),
        analysis_id: run.and_then(|run| run.analysis_id).map(str::to_owned),
        build_id: run.and_then(|run| run.build_id).map(str::to_owned),
        phase: name.map(str::to_owned),
    }
}
