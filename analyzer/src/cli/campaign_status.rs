//! `tmrun campaign-status`: a plan of captures, and what became of it.

use std::fmt::Write;
use std::path::PathBuf;

use tmrun::comparison::{campaign_status, word};
use tmrun_formats::comparison::{CampaignStatus, CaptureState};

use super::output::OutputArgs;
use super::text::{Table, number, plain};
use super::{Failure, Outcome};

/// Show which captures of a campaign are published, missing or failed
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  done, whatever became of the captures
  1  the plan is unreadable or contradicts itself
  2  the command line is wrong

Examples:
  tmrun campaign-status campaign.json
  tmrun campaign-status --json campaign.json | jq '.captures[] | select(.state.state == \"missing\")'")]
pub(super) struct CampaignStatusArgs {
    /// The plan, candle-graph/campaign/1; its bundles lie where it says, from its own folder
    #[arg(value_name = "FILE")]
    campaign: PathBuf,
    /// Print one JSON document, as is printed where standard output is no terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &CampaignStatusArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.campaign)?;
    let status = campaign_status(&args.campaign)?;
    args.output.write_document(args.json, &status, page)?;
    Ok(Outcome::Done)
}

fn page(status: &CampaignStatus<'_>) -> String {
    let mut out = String::new();
    let [planned, published, missing, failed] =
        [status.planned, status.published, status.missing, status.failed].map(number);
    let (name, entrypoint) = (plain(&status.campaign_id), plain(&status.entrypoint));
    let _ = writeln!(out, "{name} of {entrypoint}");
    let _ = writeln!(
        out,
        "{planned} planned: {published} published, {missing} missing, {failed} failed\n"
    );
    let mut table = Table::new(&["step", "bundle", "state", ""]).right(&[0]);
    for capture in &status.captures {
        let what = match &capture.state {
            CaptureState::Missing => "",
            CaptureState::Published { run_id, .. } => run_id,
            CaptureState::FailedRun { reason, .. } => reason.as_deref().unwrap_or_default(),
            CaptureState::VerificationFailed { message }
            | CaptureState::IdentityMismatch { message } => message,
        };
        let bundle = plain(&capture.bundle).into_owned();
        let state = word(&capture.state).to_owned();
        table.row([number(capture.capture_step), bundle, state, plain(what).into_owned()]);
    }
    table.write(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_first_and_lists_then() {
        let status: CampaignStatus<'_> = serde_json::from_str(
            r#"{"schema":"candle-graph/campaign-status/1","campaign_id":"c","entrypoint":"e",
            "planned":2,"published":0,"missing":1,"failed":1,"captures":[
              {"capture_step":1,"bundle":"b1","state":{"state":"missing"}},
              {"capture_step":2,"bundle":"b2","state":{"state":"failed_run","run_id":"r","reason":"no memory"}}]}"#,
        )
        .expect("a status");
        let page = page(&status);
        assert!(page.contains("2 planned: 0 published, 1 missing, 1 failed"), "{page}");
        assert!(page.contains("     2  b2      failed_run  no memory"), "{page}");
    }
}
