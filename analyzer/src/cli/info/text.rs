//! The answer for people: what was lost first, then short aligned lines.

use std::fmt::Write;

use tmrun::scan::{ClockFault, FocusChange, Gap, Recording};
use tmrun_formats::{GapClass, LaneId, Level, Planes};

use super::super::loss::Loss;
use super::super::text::{Table, duration, moment, number, plain, plural};
use super::devices;
use super::facts::{Facts, pattern_of};
use super::ring::{Dropped, high_water};

/// The most rows of one table; `--json` has all.
const ROWS: usize = 12;

pub(super) fn page(recording: &Recording<'_>, facts: &Facts<'_>, loss: &Loss) -> String {
    let mut page = Page { recording, facts, out: String::new() };
    if !loss.is_none() {
        page.field("LOST", &loss.line());
    }
    page.broken_clock();
    page.file();
    page.run();
    page.steps();
    page.levels();
    page.clock();
    page.cost();
    page.rings();
    page.devices();
    page.terminal();
    page.counts();
    page.lanes();
    page.gaps();
    page.out
}

struct Page<'p> {
    recording: &'p Recording<'p>,
    facts: &'p Facts<'p>,
    out: String,
}

impl Page<'_> {
    fn field(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.out, "{name:<9} {value}");
    }

    fn broken_clock(&mut self) {
        let did = match self.recording.calibrations().fault {
            None => return,
            Some(ClockFault::Stopped) => "stood still",
            Some(ClockFault::Backwards) => "ran backwards",
            Some(ClockFault::Wrapped) => "wrapped or jumped",
        };
        self.field("CLOCK", &format!("broken, it {did}: times and durations mean nothing"));
    }

    fn file(&mut self) {
        let recording = self.recording;
        let name = plain(recording.name()).into_owned();
        let bytes = plural(recording.bytes().len() as u64, "byte");
        self.field("file", &format!("{name}, {bytes}, {}", recording.status().name()));
        let chunks = &self.facts.chunks;
        let mut line = format!(
            "{} of records, {} of metadata, {}",
            plural(chunks.records, "chunk"),
            number(chunks.meta),
            if recording.trailer().is_some() { "index and trailer" } else { "no trailer" }
        );
        for (n, what) in [
            (chunks.blob, "of tensor data"),
            (chunks.unknown, "of a newer version, skipped"),
            (chunks.damaged, "damaged"),
        ] {
            if n > 0 {
                let _ = write!(line, ", {} {what}", number(n));
            }
        }
        if recording.meta().unknown_frames > 0 {
            let frames = plural(recording.meta().unknown_frames, "unknown frame");
            let _ = write!(line, ", {frames} skipped");
        }
        self.field("chunks", &line);
        self.part();
    }

    /// Which of several files of its recording it is.
    fn part(&mut self) {
        let meta = self.recording.meta();
        if let Some(part) = meta.part {
            let mut line = format!("{} of its recording", number(part.number));
            for (what, file) in [("behind", part.previous), ("goes on in", part.next)] {
                if let Some(file) = file {
                    let _ = write!(line, ", {what} {}", plain(file));
                }
            }
            self.field("part", &line);
        }
        for removed in meta.removed.values().take(ROWS) {
            let files = plural(removed.files, "file");
            let records = plural(removed.records, "record");
            let (first, last) = (number(removed.first), number(removed.last));
            let line = format!("{files} with {records}: of parts {first} to {last}");
            self.field("removed", &line);
        }
        self.more(meta.removed.len());
    }

    fn run(&mut self) {
        let id = self.recording.header().run.to_string();
        let Some(run) = self.recording.meta().run else {
            return self.field("run", &format!("{id}, and the file does not say more"));
        };
        match run.run_id == id || run.run_id.is_empty() {
            true => self.field("run", &id),
            false => self.field("run", &format!("{} ({id})", plain(run.run_id))),
        }
        let mut line = plain(run.entrypoint).into_owned();
        for part in [run.phase.name().unwrap_or_default(), run.device, run.profile] {
            if !part.is_empty() {
                let _ = write!(line, ", {}", plain(part));
            }
        }
        self.field("of", &line);
        let mut at = String::new();
        if let Some(host) = run.host {
            let _ = write!(at, "{}", plain(host));
        }
        if let Some(pid) = run.pid {
            let _ = write!(at, " pid {pid}");
        }
        if let (Some(rank), Some(size)) = (run.rank, run.world_size) {
            let _ = write!(at, " rank {rank} of {size}");
        }
        if !at.is_empty() {
            self.field("on", at.trim_start());
        }
        let tags = &self.recording.meta().tags;
        for tag in tags.iter().take(ROWS) {
            self.field("tag", &format!("{} = {}", plain(tag.key), plain(tag.value)));
        }
        self.more(tags.len());
    }

    fn steps(&mut self) {
        let steps = self.facts.steps;
        // What was lost may have held more of them.
        let least = if self.recording.lost().next().is_some() { "at least " } else { "" };
        let line = match (steps.first, steps.last) {
            (Some(first), Some(last)) => format!(
                "{least}{}, numbers {first} to {last}: {} train, {} infer",
                plural(steps.counts.steps, "step"),
                number(steps.counts.train),
                number(steps.counts.infer)
            ),
            _ => "none".to_owned(),
        };
        self.field("steps", &line);
        if let Some((first, last)) = self.facts.span_ns {
            let long = duration(last.saturating_sub(first) as f64);
            self.field("time", &format!("{} to {}, {long}", moment(first), moment(last)));
        }
    }

    fn levels(&mut self) {
        let changes = self.recording.levels().changes();
        if changes.is_empty() {
            return self.field("level", "unknown: the file has no level record");
        }
        let clock = self.recording.clock();
        for change in changes.iter().take(ROWS) {
            let source = change.source.name().unwrap_or("someone");
            let line = format!(
                "{} from {} (asked by {source})",
                level_name(change.new),
                moment(clock.ns(change.armed))
            );
            self.field("level", &line);
        }
        self.more(changes.len());
        self.foci();
    }

    fn foci(&mut self) {
        let (foci, clock) = (self.recording.levels().foci(), self.recording.clock());
        for focus in foci.iter().take(ROWS) {
            let FocusChange { pattern, change } = focus;
            let to = match change.new {
                Level::PULSE => format!("ends at {}", moment(clock.ns(change.asked))),
                new => format!("{} from {}", level_name(new), moment(clock.ns(change.armed))),
            };
            let source = change.source.name().unwrap_or("someone");
            let pattern = pattern_of(self.recording.names(), *pattern);
            self.field("focus", &format!("{} {to} (asked by {source})", plain(&pattern)));
        }
        self.more(foci.len());
    }

    fn clock(&mut self) {
        let calibrations = self.recording.calibrations();
        let name = self.recording.meta().run.map_or("unknown", |run| run.clock);
        let mut line = plain(name).into_owned();
        match self.recording.meta().run.map(|run| run.clock_invariant) {
            Some(true) => line.push_str(", invariant"),
            Some(false) => line.push_str(", NOT invariant"),
            None => {}
        }
        let rate = self.recording.header().ticks_per_second as f64;
        let rate = calibrations.measured_rate().unwrap_or(rate);
        let _ = write!(line, ", {:.3} MHz", rate / 1e6);
        let _ = write!(line, ", {}", plural(calibrations.used, "calibration"));
        if calibrations.set_aside > 0 {
            let _ = write!(line, " and {} set aside", number(calibrations.set_aside));
        }
        if let Some(spread) = calibrations.rate_spread_ppm() {
            let _ = write!(line, ", rate within {spread:.1} ppm");
        }
        let _ = write!(line, ", to {}", duration(self.facts.uncertainty_ns as f64));
        self.field("clock", &line);
    }

    fn cost(&mut self) {
        let Some(cost) = self.facts.cost else { return };
        let mut line = format!(
            "{} a record, {} a span, about {} in all",
            duration(cost.record_ns),
            duration(cost.span_ns),
            duration(cost.total_ns)
        );
        if let Some(step) = &cost.step {
            let _ = write!(line, ", {} a step", duration(step.ns));
            if let Some(share) = step.share {
                let _ = write!(line, ", {} of it", percent(share));
            }
        }
        self.field("cost", &line);
        if let Some(step) = &cost.step {
            let level = |(level, ns): (usize, &f64)| format!("{} at level {level}", duration(*ns));
            let levels: Vec<_> = step.by_level.iter().enumerate().map(level).collect();
            self.field("", &format!("a step: {}", levels.join(", ")));
        }
        let unnamed = self.recording.meta().cost.map_or(0, |cost| cost.unnamed);
        if unnamed > 0 {
            self.field("names", &format!("{} did not fit", number(unnamed)));
        }
    }

    fn rings(&mut self) {
        let Some(rings) = self.facts.rings else { return };
        let mut line = format!("{} a ring", plural(rings.slots, "record"));
        if let (Some((lane, waited)), Some(headroom)) = (rings.fullest, rings.headroom()) {
            let (waited, headroom) = (number(waited), percent(headroom));
            let _ = write!(line, ", at most {waited} waited (lane {}): {headroom} free", lane.0);
        }
        self.field("rings", &line);
        if let Some(Dropped { lane, burst, slots }) = rings.dropped {
            let ring = match slots {
                Some(slots) => format!("a ring of about {}", number(slots)),
                None => "no ring".to_owned(),
            };
            let burst = plural(burst, "record");
            let line = format!("{ring} would have held the worst burst, {burst} (lane {})", lane.0);
            self.field("", &line);
        }
    }

    fn devices(&mut self) {
        for (name, line) in devices::lines(self.recording, &self.facts.devices) {
            self.field(name, &line);
        }
    }

    fn terminal(&mut self) {
        let line = match self.recording.meta().terminal {
            Some(terminal) if terminal.complete => "complete".to_owned(),
            Some(terminal) => {
                format!("failed: {}", plain(terminal.reason.unwrap_or("no reason given")))
            }
            None => match self.recording.meta().part.and_then(|part| part.next) {
                Some(next) => format!("not here: the recording goes on in {}", plain(next)),
                None => "unknown: the file does not say how the run ended".to_owned(),
            },
        };
        let open = self.recording.meta().open_spans.len() as u64;
        match open {
            0 => self.field("ended", &line),
            _ => self.field("ended", &format!("{line}, {} still open", plural(open, "span"))),
        }
    }

    fn counts(&mut self) {
        let counts = self.recording.counts();
        let _ = writeln!(self.out, "\n{}", plural(counts.total(), "record"));
        let mut table = Table::new(&["kind", "records"]).right(&[1]);
        counts.occurring().for_each(|(kind, n)| table.row([kind.to_owned(), number(n)]));
        if counts.total() > 0 {
            table.write(&mut self.out);
        }
    }

    fn lanes(&mut self) {
        let lanes = self.recording.lanes();
        let slots = self.facts.rings.map(|rings| rings.slots);
        let _ = writeln!(self.out, "\n{}", plural(lanes.len() as u64, "lane"));
        let heading = ["lane", "name", "records", "spans", "lost", "high water"];
        let mut table = Table::new(&heading).right(&[0, 2, 3, 4, 5]);
        for (id, lane) in lanes.iter().take(ROWS) {
            let (number_of, name) = match id {
                LaneId::RECORDER => ("-".to_owned(), "(recorder)".into()),
                _ => (id.0.to_string(), plain(lane.claim.map_or("", |claim| claim.name))),
            };
            let of_slots = slots.filter(|_| id != LaneId::RECORDER);
            let waited = of_slots.and_then(|slots| Some((high_water(lane, slots)?, slots)));
            let high = match (waited, lane.totals) {
                (Some((waited, slots)), _) => {
                    format!("{} ({})", number(waited), percent(waited as f64 / slots as f64))
                }
                (None, Some(totals)) => number(totals.high_water),
                (None, None) => "?".to_owned(),
            };
            let lost = number(self.facts.lost.get(&id).copied().unwrap_or_default());
            let (records, spans) = (number(lane.records), number(lane.spans));
            table.row([number_of, name.into_owned(), records, spans, lost, high]);
        }
        if !lanes.is_empty() {
            table.write(&mut self.out);
        }
        self.more(lanes.len());
    }

    fn gaps(&mut self) {
        let gaps = self.recording.gaps();
        let _ = writeln!(self.out, "\n{}", plural(gaps.len() as u64, "gap"));
        // What was lost matters most.
        let (lost, quiet): (Vec<_>, Vec<_>) =
            gaps.iter().partition(|gap| gap.class == GapClass::Lost);
        let heading = ["class", "reason", "lane", "from", "to", "records", "planes"];
        let mut table = Table::new(&heading).right(&[2, 3, 4, 5]);
        lost.iter().chain(&quiet).take(ROWS).for_each(|gap| table.row(gap_cells(gap)));
        if !gaps.is_empty() {
            table.write(&mut self.out);
        }
        self.more(gaps.len());
    }

    fn more(&mut self, rows: usize) {
        if let Some(more) = rows.checked_sub(ROWS).filter(|&more| more > 0) {
            let _ = writeln!(self.out, "  … and {} more; --json lists all", number(more as u64));
        }
    }
}

/// A share, as precise as it is small.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p == 0.0 || p >= 9.95 => format!("{p:.0}%"),
        p if p >= 0.1 => format!("{p:.1}%"),
        p if p >= 0.001 => format!("{p:.3}%"),
        _ => "under 0.001%".to_owned(),
    }
}

fn level_name(level: Level) -> String {
    format!("{} {}", level.0, level.name().unwrap_or("(unknown)"))
}

fn gap_cells(gap: &Gap) -> [String; 7] {
    let lane = match gap.lane {
        Some(LaneId::RECORDER) => "recorder".to_owned(),
        Some(lane) => lane.0.to_string(),
        None => "-".to_owned(),
    };
    let records = match (gap.class, gap.records) {
        (GapClass::Lost, 0) => "unknown".to_owned(),
        (GapClass::NotRequested, 0) => "-".to_owned(),
        (_, n) => number(n),
    };
    let reason = gap.reason.name().map_or_else(|| gap.reason.0.to_string(), str::to_owned);
    let planes = match gap.planes {
        Planes::NONE => "none".to_owned(),
        planes if planes.names().count() >= 10 => "any".to_owned(),
        planes => planes.names().collect::<Vec<_>>().join(" "),
    };
    let class = gap.class.name().replace('_', " ");
    [class, reason, lane, moment(gap.first_ns), moment(gap.last_ns), records, planes]
}
