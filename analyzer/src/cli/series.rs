//! `tmrun series`: numbers from step to step.

use std::fmt::Write;
use std::path::PathBuf;

use tmrun::comparison::{published, series};
use tmrun_formats::comparison::{Series, SeriesTime};

use super::output::OutputArgs;
use super::text::{Table, duration, number, plain, plural};
use super::{Failure, Outcome};

/// Show how times, tensor statistics and gradients went from step to step
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  done
  1  a bundle does not verify, bundles are of several entrypoints or phases or of one step twice, or
     not all of a campaign is published
  2  the command line is wrong

Examples:
  tmrun series step-*
  tmrun series --campaign campaign.json --label-prefix loss/
  tmrun series --json step-* | jq '.tensor_stats[\"loss/total\"][] | [.capture_step, .mean]'")]
pub(super) struct SeriesArgs {
    /// The bundles, one for each step, in any order
    #[arg(
        value_name = "BUNDLE",
        required_unless_present = "campaign",
        conflicts_with = "campaign"
    )]
    bundles: Vec<PathBuf>,
    /// Take the bundles of this plan, all of which must be published
    #[arg(long, value_name = "FILE")]
    campaign: Option<PathBuf>,
    /// Of labels, and of gradients as root/key, take those that start with this
    #[arg(long, value_name = "PREFIX")]
    label_prefix: Option<String>,
    /// Print one JSON document, as is printed where standard output is no terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &SeriesArgs) -> Result<Outcome, Failure> {
    args.output.check_all(args.bundles.iter().chain(&args.campaign))?;
    let series = match &args.campaign {
        Some(campaign) => series(&published(campaign)?, args.label_prefix.as_deref())?,
        None => series(&args.bundles, args.label_prefix.as_deref())?,
    };
    args.output.write_document(args.json, &series, page)?;
    Ok(Outcome::Done)
}

/// The series for people: the times, then each curve by its ends.
fn page(series: &Series<'_>) -> String {
    let mut out = String::new();
    let steps = plural(series.inputs.len() as u64, "step");
    let _ = writeln!(out, "{}, {steps}", plain(&series.entrypoint));
    let mut table = Table::new(&["step", "wall time", "run"]).right(&[0, 1]);
    for SeriesTime { capture_step, run_id, outer_wall_time_ns } in &series.outer_wall_time {
        #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
        let time = outer_wall_time_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
        table.row([number(*capture_step), time, plain(run_id).into_owned()]);
    }
    out.push('\n');
    table.write(&mut out);
    let curves = series.tensor_stats.iter().map(|(label, points)| {
        let means = points.iter().map(|point| point.mean);
        let bad = points.iter().map(|point| point.non_finite).fold(0, u64::saturating_add);
        (label, curve(means), points.len(), bad)
    });
    let heading = ["mean of", "points", "first", "last", "lowest", "highest", "not finite"];
    let mut table = Table::new(&heading).right(&[1, 2, 3, 4, 5, 6]);
    for (label, ends, points, bad) in curves {
        let name = plain(label).into_owned();
        table.row([vec![name, number(points as u64)], ends, vec![number(bad)]].concat());
    }
    write(&mut out, &table, series.tensor_stats.is_empty());
    let heading = ["norm of", "points", "first", "last", "lowest", "highest", "last state"];
    let mut table = Table::new(&heading).right(&[1, 2, 3, 4, 5]);
    for (gradient, points) in &series.gradients {
        let ends = curve(points.iter().filter_map(|point| point.norm));
        let (name, count) = (plain(gradient).into_owned(), number(points.len() as u64));
        let state = points.last().map_or("", |point| point.state.name());
        table.row([vec![name, count], ends, vec![state.to_owned()]].concat());
    }
    write(&mut out, &table, series.gradients.is_empty());
    out
}

fn write(out: &mut String, table: &Table, is_empty: bool) {
    if !is_empty {
        out.push('\n');
        table.write(out);
    }
}

/// The first, the last, the lowest and the highest of values.
fn curve(values: impl Iterator<Item = f64>) -> Vec<String> {
    let values: Vec<_> = values.collect();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let ends = [values.first(), values.last(), sorted.first(), sorted.last()];
    let shown = |value: Option<&f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.4e}"));
    ends.map(shown).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_times_and_the_ends_of_each_curve() {
        let series: Series<'_> = serde_json::from_str(
            r#"{"schema":"candle-graph/series/1","entrypoint":"e","coordinate":"capture_step",
            "label_prefix":null,"inputs":[],"outer_wall_time":[
              {"capture_step":1,"run_id":"a","outer_wall_time_ns":1500},
              {"capture_step":2,"run_id":"b","outer_wall_time_ns":null}],
            "tensor_stats":{"loss":[
              {"capture_step":1,"run_id":"a","rms":2.0,"abs_max":2.0,"mean":2.0,"non_finite":0,"elements":1},
              {"capture_step":2,"run_id":"b","rms":1.0,"abs_max":1.0,"mean":-1.0,"non_finite":3,"elements":1}]},
            "gradients":{"vb/w":[{"capture_step":1,"run_id":"a","state":"missing","norm":null}]}}"#,
        )
        .expect("a series");
        let page = page(&series);
        for said in ["1.50 us", "loss", "-1.0000e0", "2.0000e0", "vb/w", "missing"] {
            assert!(page.contains(said), "{said} in\n{page}");
        }
    }
}
