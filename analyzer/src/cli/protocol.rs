//! `tmrun protocol`: what can be asked, for programs.

use clap::{Arg, ArgAction, Command, CommandFactory};
use serde_json::{Value, json};
use tmrun::bundle::AnnexSchema;
use tmrun::diff::DIFF_SCHEMA;
use tmrun::query::{
    Choice, Envelope, Kind, Needs, OVERVIEW_BYTES, OVERVIEW_FOLLOWS, OVERVIEW_SCHEMA, Page, TOOL,
};
use tmrun_formats::bundle::{BundleReceiptSchema, BundleSchema, PublicationSchema};
use tmrun_formats::comparison::{
    CampaignSchema, CampaignStatusSchema, ComparisonSchema, SeriesSchema,
};
use tmrun_formats::evidence::{EvidenceSchema, GpuCapture, GraphSchema};
use tmrun_formats::runtime::SCHEMAS;
use tmrun_formats::trace::{GRADIENT_MANIFEST_SCHEMA, TraceSchema};
use tmrun_formats::wire::VERSION;

use super::output::OutputArgs;
use super::schemas;
use super::{Cli, EXIT_CODES, Failure, Outcome};

/// Print what can be asked, and how answers look, as one JSON document
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
The document (schema tmrun/protocol/1) has the schemas that are read and written, every command with
its arguments, every kind of query, the exit codes and the bounds.

Examples:
  tmrun protocol | jq -r '.queries[] | .kind + \"  \" + .about'
  tmrun protocol | jq '.commands[] | select(.name == \"query\").arguments'
  tmrun protocol -o protocol.json")]
pub(super) struct ProtocolArgs {
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ProtocolArgs) -> Result<Outcome, Failure> {
    args.output.write_json(&document())?;
    Ok(Outcome::Done)
}

fn document() -> Value {
    let commands = Cli::command();
    let commands: Vec<_> = commands.get_subcommands().map(command).collect();
    json!({
        "schema": schemas::PROTOCOL,
        "tool": TOOL,
        "schemas": labels(),
        "commands": commands,
        "queries": Kind::ALL.iter().copied().map(query).collect::<Vec<_>>(),
        "exit_codes": exit_codes(),
        "limits": {
            "query_rows": Page::MAX_LIMIT,
            "query_rows_unless_asked": Page::DEFAULT_LIMIT,
            "overview_bytes": OVERVIEW_BYTES,
        },
    })
}

/// What is read and written, by what it is.
fn labels() -> Value {
    json!({
        "recording": format!("tmrun/{VERSION}"),
        "runtime_read": SCHEMAS,
        "runtime_write": SCHEMAS,
        "trace_read": [TraceSchema::V9.name(), TraceSchema::V10.name()],
        "trace_write": TraceSchema::V10.name(),
        "graph": GraphSchema::LABEL,
        "evidence": EvidenceSchema::LABEL,
        "bundle_read": BundleSchema::LABEL,
        "bundle_write": BundleSchema::LABEL,
        "bundle_annex": AnnexSchema::V1,
        "bundle_verification": BundleReceiptSchema::LABEL,
        "publication": PublicationSchema::LABEL,
        "gradient_manifest": GRADIENT_MANIFEST_SCHEMA,
        "nsight_capture_read": GpuCapture::SCHEMA,
        "audit": schemas::AUDIT,
        "info": schemas::INFO,
        "verify": schemas::VERIFY,
        "verify_bundle": schemas::VERIFY_BUNDLE,
        "salvage": schemas::SALVAGE,
        "summary": schemas::SUMMARY,
        "protocol": schemas::PROTOCOL,
        "query": Envelope::SCHEMA,
        "query_follows": Envelope::FOLLOWS,
        "overview": OVERVIEW_SCHEMA,
        "overview_follows": OVERVIEW_FOLLOWS,
        "diff": DIFF_SCHEMA,
        "comparison": ComparisonSchema::LABEL,
        "series": SeriesSchema::LABEL,
        "campaign_read": CampaignSchema::LABEL,
        "campaign_status": CampaignStatusSchema::LABEL,
    })
}

fn command(command: &Command) -> Value {
    let arguments = command.get_arguments().filter(|argument| argument.get_id() != "help");
    json!({
        "name": command.get_name(),
        "about": command.get_about().map(ToString::to_string),
        "arguments": arguments.map(argument).collect::<Vec<_>>(),
    })
}

fn argument(argument: &Arg) -> Value {
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let values = argument.get_possible_values();
    let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
    let names = argument.get_value_names().unwrap_or_default();
    json!({
        "option": argument.get_long().map(|long| format!("--{long}")),
        "value": takes_value.then(|| names.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "required": argument.is_required_set(),
        "repeats": matches!(argument.get_action(), ArgAction::Append)
            || argument.get_num_args().is_some_and(|count| count.max_values() > 1),
        "one_of": (takes_value && !values.is_empty()).then_some(values),
        "about": argument.get_help().map(ToString::to_string),
    })
}

fn query(kind: Kind) -> Value {
    json!({
        "kind": kind.name(),
        "about": kind.about(),
        "rows_can_be_chosen": match kind.choice() {
            Choice::None => "no",
            Choice::Rows => "by page",
            Choice::Labels => "by page and label",
        },
        "needs": match kind.needs() {
            Needs::Trace => "one invocation",
            Needs::Graph => "one invocation, complete and valid",
            Needs::Recording => "a recording",
            Needs::Either => "a recording, or one invocation",
        },
        "follows": (!kind.is_ours()).then_some(Envelope::FOLLOWS),
    })
}

/// The exit codes, from the lines of the help text.
fn exit_codes() -> Value {
    let codes = EXIT_CODES.lines().filter_map(|line| {
        let (code, meaning) = line.strip_prefix("  ")?.split_once("  ")?;
        Some(json!({ "code": code.parse::<u8>().ok()?, "means": meaning }))
    });
    codes.collect::<Vec<_>>().into()
}
