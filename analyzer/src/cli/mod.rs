//! What the user typed, and what came of it.

mod audit;
mod bundle;
mod campaign_status;
mod compare;
mod convert;
mod diff;
mod info;
mod loss;
mod open;
mod output;
mod overview;
mod progress;
mod protocol;
mod query;
mod salvage;
mod schemas;
mod series;
mod summary;
mod text;
mod verify;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tmrun::bundle::PublishError;
use tmrun::comparison::{CampaignError, LoadError, SeriesError};
use tmrun::convert::ConvertError;
use tmrun::escape::{acts, escaped};
use tmrun::evidence::EvidenceError;
use tmrun::input::InputError;
use tmrun::query::QueryError;
use tmrun::salvage::SalvageError;
use tmrun::scan::OpenError;
use tmrun::slice::RegionError;
use tmrun::source::SourceError;

/// Reads .tmrun recordings of training and inference runs.
#[derive(Debug, Parser)]
#[command(name = "tmrun", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed, or the answer is no
  2  the command line is wrong
  3  done, but evidence was lost inside what the command covered; standard error says what

Results go to standard output, messages to standard error. - stands for standard input or output.";

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::InfoArgs),
    Convert(convert::ConvertArgs),
    Verify(verify::VerifyArgs),
    Bundle(bundle::BundleArgs),
    Salvage(salvage::SalvageArgs),
    Audit(audit::AuditArgs),
    Summary(summary::SummaryArgs),
    Query(query::QueryArgs),
    Overview(overview::OverviewArgs),
    Diff(diff::DiffArgs),
    Protocol(protocol::ProtocolArgs),
    Compare(compare::CompareArgs),
    Series(series::SeriesArgs),
    CampaignStatus(campaign_status::CampaignStatusArgs),
}

/// What came of a command that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done, and nothing was lost.
    Done,
    /// The answer is no.
    No,
    /// It is done, and standard error says what was lost.
    Lost,
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The input could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The input is no recording.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The recording could not be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The recording could not be salvaged.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// The recording does not have what is to be evidence.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The bundle was not published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// There is nothing to ask.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The trace says nothing.
    #[error("{name}: {error}")]
    Evidence {
        /// The input.
        name: String,
        /// Why.
        error: EvidenceError,
    },
    /// There is no answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A run cannot be compared at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Bundles are no series.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A plan cannot be followed.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The output could not be written.
    #[error(transparent)]
    Output(#[from] output::OutputError),
    /// The command line asks for what does not go together.
    #[error("{0}")]
    Usage(&'static str),
    /// Something could not be written; of the output that is said as [`output::OutputError`].
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure {
    /// Another command line would do.
    const fn is_usage(&self) -> bool {
        match self {
            Self::Convert(error) => error.is_usage(),
            Self::Source(error) => error.is_usage(),
            Self::Query(error) => error.is_usage(),
            Self::Region(error) => error.is_usage(),
            Self::Usage(_) => true,
            _ => false,
        }
    }

    /// Whoever read the output has seen enough.
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.is_broken_pipe())
    }
}

/// What the user typed. Where that is no command, or asks for help, it is answered here.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let typed: Vec<OsString> = env::args_os().collect();
    let error = match Cli::try_parse_from(&typed) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        let printed = printed.map_err(|error| output::OutputError::Stdout(error).into());
        return Err(exit_code(printed.map(|()| Outcome::Done)));
    }
    // It repeats what was typed, between escapes of its own. So it is made of what can be shown.
    let shown = typed.iter().map(|argument| match argument.to_string_lossy() {
        text if text.contains(acts) => escaped(&text).into_owned().into(),
        _ => argument.clone(),
    });
    let error = Cli::try_parse_from(shown).err().unwrap_or(error);
    let _ = error.print();
    Err(ExitCode::from(2))
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Info(args) => info::run(args),
            Command::Convert(args) => convert::run(args),
            Command::Verify(args) => verify::run(args),
            Command::Bundle(args) => bundle::run(args),
            Command::Salvage(args) => salvage::run(args),
            Command::Audit(args) => audit::run(args),
            Command::Summary(args) => summary::run(args),
            Command::Query(args) => query::run(args),
            Command::Overview(args) => overview::run(args),
            Command::Diff(args) => diff::run(args),
            Command::Protocol(args) => protocol::run(args),
            Command::Compare(args) => compare::run(args),
            Command::Series(args) => series::run(args),
            Command::CampaignStatus(args) => campaign_status::run(args),
        }
    }
}

/// Says what failed, and gives the process its exit code.
pub(crate) fn exit_code(answer: Result<Outcome, Failure>) -> ExitCode {
    match answer {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Ok(Outcome::Lost) => ExitCode::from(3),
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            say(format_args!("tmrun: {failure}"));
            ExitCode::from(if failure.is_usage() { 2 } else { 1 })
        }
    }
}

/// A line on standard error, and one line only: what comes from a file cannot forge another, steer the
/// terminal, or go on for ever; of a long one the middle is left out, because the name is in front and the
/// reason at the end. When standard error is closed, nobody wants to know.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    const LONGEST: usize = 2000;
    let line = line.to_string();
    let _ = writeln!(io::stderr().lock(), "{}", escaped(&text::ends(&line, LONGEST)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn no_line_of_a_help_text_is_broken_where_nobody_meant_it() {
        let mut commands = Cli::command();
        commands.build();
        for command in commands.get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // Help is 100 columns wide where no terminal is narrower.
            let wide = help.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "{}", command.get_name());
        }
    }
}
