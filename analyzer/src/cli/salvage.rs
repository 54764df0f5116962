//! `tmrun salvage FILE -o OUT`: a damaged or unfinished recording as a whole one.

mod join;

use std::path::PathBuf;

use tmrun::escape::escaped;
use tmrun::salvage::{Written, salvage};
use tmrun::scan::{Missing, Recording};
use tmrun_formats::LaneId;
use tmrun_formats::json::{Object, push_array};

use super::loss::Loss;
use super::output::OutputArgs;
use super::progress::Progress;
use super::text::{number, plural};
use super::{Failure, Outcome, say, schemas};

/// Make a whole recording of what is intact in a damaged or unfinished one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every intact record keeps its place, what is missing is declared as gaps, and `tmrun verify` accepts
the result. Of a flight recorder either file will do, the .tmrun or the .rings: they name each
other, and the result has what both hold. Where a recording did not come to its end and the rings
are not there, what they held is missing. The file header may be damaged too. The input stays as it
is.

Exit codes:
  0  done, and nothing is missing
  1  nothing that belongs to a recording was found, or the result cannot be written
  2  the command line is wrong
  3  done, and something is missing: standard error lists what and where

Examples:
  tmrun salvage torn.tmrun -o whole.tmrun
  tmrun salvage /dev/shm/tmrun-1000/4711-….rings -o whole.tmrun
  tmrun salvage --json torn.tmrun -o whole.tmrun | jq '.missing[] | {what, offset, records}'
  tmrun salvage torn.tmrun | tmrun info -")]
pub(crate) struct SalvageArgs {
    /// The recording; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON document (schema tmrun/salvage/1); needs -o
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Standard error lists so many places, the JSON document so many.
const LINES: usize = 20;
const PLACES: usize = 10_000;

pub(super) fn run(args: &SalvageArgs) -> Result<Outcome, Failure> {
    if args.output.is_stdout() && (args.json || args.output.is_terminal()) {
        return Err(Failure::Usage("name a file for the recording with -o"));
    }
    args.output.check(&args.file)?;
    let join::Found { input, lacks_rings } = join::with_rings(&args.file, &args.output)?;
    let progress = Progress::new(input.len() as u64, "scanning");
    let recording = Recording::open_damaged(&input, input.name(), &|more| progress.add(more));
    progress.finish();
    let recording = recording?;
    let recording = if lacks_rings { recording.without_rings() } else { recording };
    let progress = Progress::new(input.len() as u64, "salvaging");
    let mut written = None;
    let result = args.output.write(|out| {
        written = Some(salvage(&recording, out, &|more| progress.add(more))?);
        Ok(())
    });
    progress.finish();
    result?;
    let loss = Loss::of(&recording);
    say_what_is_missing(&recording);
    if let Some(written) = written {
        report(args, &recording, &written, &loss)?;
    }
    Ok(loss.outcome(input.name()))
}

/// Where the recording goes to standard output, nothing else does.
fn report(
    args: &SalvageArgs,
    recording: &Recording<'_>,
    written: &Written,
    loss: &Loss,
) -> Result<(), Failure> {
    let (name, output) = (recording.name(), args.output.output.display());
    if args.output.is_stdout() {
        return Ok(());
    }
    let kept = plural(written.kept, "record");
    let line = format!("{output}: {kept} of {name}, {}", plural(written.bytes, "byte"));
    match args.json {
        true => {
            let answer = as_json(recording, &output.to_string(), written, loss);
            OutputArgs::stdout().write_json_text(&answer)
        }
        false => OutputArgs::stdout().write_text(&format!("{}\n", escaped(&line))),
    }
}

fn say_what_is_missing(recording: &Recording<'_>) {
    let name = recording.name();
    if let Some(error) = recording.header_error() {
        let run = recording.header().run;
        say(format_args!(
            "{name}: {error}; {}, the time of creation is not known, {}",
            match run.0 == [0; 16] {
                true => "the run is not known",
                false => "the run's identity is from the metadata",
            },
            match recording.header().ticks_per_second {
                0 => "and a tick is taken for a nanosecond",
                _ => "and the clock's rate is as calibrated",
            }
        ));
    }
    if recording.meta().terminal.is_none() && !recording.goes_on() {
        say(format_args!("{name}: it does not say how the run ended; the result says so"));
    }
    let missing = recording.missing();
    missing.iter().take(LINES).for_each(|missing| say(format_args!("{name}: {}", line(missing))));
    if let Some(more) = missing.len().checked_sub(LINES).filter(|&more| more > 0) {
        say(format_args!("{name}: … and {} more; --json lists them", number(more as u64)));
    }
}

/// `3 records of lane 0 from position 6 are missing (corrupt): offset 1216, 256 bytes`.
fn line(missing: &Missing) -> String {
    let gap = &missing.gap;
    let mut line = match missing.position {
        Some(position) => {
            let lane = gap.lane.map_or("no lane".to_owned(), lane_name);
            format!("{} of {lane} from position {position}", plural(gap.records, "record"))
        }
        None => missing.what.to_owned(),
    };
    let reason = gap.reason.name().unwrap_or("unknown reason");
    line.push_str(&format!(" ({reason}): offset {}", missing.offset));
    if missing.len > 0 {
        line.push_str(&format!(", {}", plural(missing.len, "byte")));
    }
    if missing.declared {
        line.push_str(", as the file says itself");
    }
    format!("missing: {line}")
}

fn lane_name(lane: LaneId) -> String {
    match lane {
        LaneId::RECORDER => "the recorder's lane".to_owned(),
        lane => format!("lane {}", lane.0),
    }
}

fn as_json(recording: &Recording<'_>, output: &str, written: &Written, loss: &Loss) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.string("schema", schemas::SALVAGE);
    object.string("file", recording.name());
    object.string("output", output);
    object.string("run", &recording.header().run.to_string());
    object.bool("header", recording.header_error().is_none());
    object.bool("terminal", recording.meta().terminal.is_some());
    object.u64("bytes", written.bytes);
    object.u64("chunks", written.chunks);
    object.u64("records", written.records);
    object.u64("kept_records", written.kept);
    object.u64("lost_records", loss.records);
    object.u64("lost_gaps", loss.gaps);
    let missing = recording.missing();
    let listed = missing.iter().take(PLACES);
    push_array(object.value("missing"), listed, push_missing);
    object.u64("more_missing", missing.len().saturating_sub(PLACES) as u64);
    object.end();
    out.push(b'\n');
    out
}

/// A position is a string: it can be any 64 bits.
fn push_missing(out: &mut Vec<u8>, missing: &Missing) {
    let gap = &missing.gap;
    let mut object = Object::begin(out);
    object.string("what", missing.what);
    match gap.reason.name() {
        Some(reason) => object.string("reason", reason),
        None => object.string("reason", &format!("unknown-{}", gap.reason.0)),
    }
    match gap.lane {
        Some(lane) => object.u64("lane", lane.0.into()),
        None => object.null("lane"),
    }
    match missing.position {
        Some(position) => {
            object.string("position", &position.to_string());
            object.u64("records", gap.records);
        }
        None => {
            object.null("position");
            object.null("records");
        }
    }
    object.u64("offset", missing.offset);
    object.u64("bytes", missing.len);
    object.bool("declared", missing.declared);
    object.end();
}
