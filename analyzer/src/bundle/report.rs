//! `report.md`: what a bundle says, for people.

use std::fmt::Write;

use tmrun_formats::evidence::{CapabilityKind, CapabilityLevel, Evidence, HealthSeverity};
use tmrun_formats::trace::{GradientState, RunOutcome, TraceDocument};

use super::annex::{Annex, AnnexGap, AnnexNonFinite};
use crate::readable::{duration, number, plural};
use crate::severed::{Severed, of_trace};
use crate::trace::Told;

/// No table has more rows; the documents have all.
const ROWS: usize = 12;

/// The report.
pub(super) fn of(
    trace: &TraceDocument<'_>,
    told: &Told,
    evidence: &Evidence<'_>,
    annex: &Annex<'_>,
) -> String {
    let lost_time = told.host_time.as_deref();
    let mut page = Page(String::new());
    page.head(trace, evidence);
    page.claims(evidence, annex, lost_time);
    page.missing(evidence, annex);
    page.time(evidence, annex, lost_time);
    page.memory(evidence, annex);
    page.gradients(trace, annex);
    page.values(annex);
    page.recorder(annex);
    page.0
}

/// Text from a recording as a part of a line, and nothing more.
fn md(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#' | '~' => {
                out.extend(['\\', c])
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The first few of these.
fn few(texts: &[String]) -> String {
    let shown = texts.iter().take(ROWS).map(String::as_str).collect::<Vec<_>>().join(" ");
    match texts.len().saturating_sub(ROWS) {
        0 => shown,
        more => format!("{shown} … and {} more", number(more as u64)),
    }
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn time(ns: u64) -> String {
    duration(ns as f64)
}

struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn section(&mut self, title: &str) {
        let _ = writeln!(self.0, "\n## {title}\n");
    }

    /// A table of the first rows, and how many more there are.
    fn table(&mut self, heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let rule: Vec<_> = heading.iter().map(|_| "---").collect();
        let _ = writeln!(self.0, "| {} |\n| {} |", heading.join(" | "), rule.join(" | "));
        let mut rows = rows.into_iter();
        for row in rows.by_ref().take(ROWS) {
            let _ = writeln!(self.0, "| {} |", row.join(" | "));
        }
        let more = rows.count() as u64;
        if more > 0 {
            let _ = writeln!(self.0, "\n… and {} more.", number(more));
        }
    }

    fn head(&mut self, trace: &TraceDocument<'_>, evidence: &Evidence<'_>) {
        let (run, health) = (&evidence.provenance, &evidence.health);
        let title = format!("# Evidence: {}, step {}\n", md(&run.entrypoint), run.capture_step);
        self.line(&title);
        let count = |severity| {
            health.issues.iter().filter(|issue| issue.severity == severity).count() as u64
        };
        let verdict = match (health.structurally_valid, health.capture_complete) {
            (true, true) => "the trace is valid, and its capture complete",
            (true, false) => "the trace is valid, of a capture that failed",
            (false, true) => "the trace is **structurally invalid**",
            (false, false) => "the trace is **structurally invalid**, of a capture that failed",
        };
        let (errors, warnings) = (count(HealthSeverity::Error), count(HealthSeverity::Warning));
        let counts = format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"));
        self.line(&format!("- Verdict: {verdict}; {counts}."));
        if trace.terminal.outcome == RunOutcome::Failed {
            let reason = trace.terminal.reason.as_deref().unwrap_or("it does not say why");
            self.line(&format!("- It failed: {}", md(reason)));
        }
        self.line(&format!("- Run: {}, {}, on {}", md(&run.run_id), run.phase, md(&run.device)));
        self.line(&format!("- At: {}", md(&run.timestamp)));
        if !health.issues.is_empty() {
            self.line("");
            let row = |severity: &str, code: &str, message: &str| {
                vec![severity.to_owned(), md(code), md(message)]
            };
            let of = |wanted: HealthSeverity| {
                let issues = health.issues.iter().filter(move |issue| issue.severity == wanted);
                issues.map(move |i| row(wanted.name(), i.code.as_str(), &i.message))
            };
            let issues = of(HealthSeverity::Error).chain(of(HealthSeverity::Warning));
            self.table(&["", "issue", "what"], issues);
        }
    }

    /// `lost_time` is why there are not the host times of all spans: what rests on them is complete in the
    /// format's sense alone.
    fn claims(&mut self, evidence: &Evidence<'_>, annex: &Annex<'_>, lost_time: Option<&str>) {
        self.section("What can be claimed");
        let lacks = |kind| kind == CapabilityKind::NestedHostTime && lost_time.is_some();
        for &kind in CapabilityKind::ALL {
            let capability = evidence.capabilities.get(kind);
            let mark = match capability.level {
                CapabilityLevel::Complete if lacks(kind) => "all of it that was kept",
                CapabilityLevel::Complete => "all of it",
                CapabilityLevel::Partial => "a part of it",
                CapabilityLevel::Unavailable => "nothing",
                CapabilityLevel::Invalid => "nothing, for it contradicts itself",
            };
            self.line(&format!("- {}: {mark}. {}", md(kind.name()), md(&capability.reason)));
        }
        if !annex.refuted.is_empty() {
            self.line("\nThe run promised more than was kept:\n");
            let row = |refuted: &super::AnnexRefuted<'_>| {
                let (declared, instead) = (refuted.declared.name(), refuted.instead.name());
                vec![md(&refuted.plane), declared.into(), instead.into(), md(&refuted.because)]
            };
            let heading = ["plane", "promised", "kept", "because"];
            self.table(&heading, annex.refuted.iter().map(row));
        }
        for finding in &evidence.findings {
            let of_kept = finding.requires.iter().any(|&kind| lacks(kind));
            let of_kept = if of_kept { ", of spans that were kept" } else { "" };
            let (what, level) = (md(&finding.summary), finding.qualification);
            self.line(&format!("- {what} ({level} evidence{of_kept})"));
        }
    }

    fn missing(&mut self, evidence: &Evidence<'_>, annex: &Annex<'_>) {
        self.section("What is missing");
        if annex.gaps.is_empty() {
            self.line("Nothing of what was recorded is missing.");
        } else {
            let lost = |gap: &&AnnexGap<'_>| gap.class == "lost";
            let first = annex.gaps.iter().filter(lost);
            let then = annex.gaps.iter().filter(|gap| !lost(gap));
            let row = |gap: &AnnexGap<'_>| {
                let lane = gap.lane.map_or_else(|| "-".to_owned(), |lane| lane.to_string());
                let records = match gap.records {
                    0 => "not counted".to_owned(),
                    records => number(records),
                };
                let when = format!("{} to {}", time(gap.first_ns), time(gap.last_ns));
                let what = gap.planes.join(" ");
                vec![gap.class.replace('_', " "), md(&gap.reason), lane, when, records, md(&what)]
            };
            let heading = ["class", "reason", "lane", "when", "records", "of"];
            self.table(&heading, first.chain(then).map(row));
        }
        let spans = annex.more_moved_spans.saturating_add(annex.moved_spans.len() as u64);
        let facts = annex.moved_facts.iter().map(|moved| moved.facts);
        let facts = facts.fold(annex.more_moved_facts, u64::saturating_add);
        if spans > 0 || facts > 0 {
            let (spans, facts) = (plural(spans, "span"), plural(facts, "fact"));
            self.line(&format!("\n{spans} and {facts} hang elsewhere than was recorded."));
        }
        let left_out = annex.left_out.iter();
        let left_out: Vec<_> =
            left_out.map(|(what, count)| vec![md(what), number(*count)]).collect();
        if !left_out.is_empty() {
            self.line("\nThe trace has no place for:\n");
            self.table(&["what", "how often"], left_out);
        }
        if !evidence.gaps.is_empty() {
            self.line("\nWhat the evidence lacks:\n");
            for gap in evidence.gaps.iter().take(ROWS) {
                self.line(&format!("- {}", md(gap)));
            }
            if let Some(more) = evidence.gaps.len().checked_sub(ROWS).filter(|&more| more > 0) {
                self.line(&format!("- … and {} more.", number(more as u64)));
            }
        }
    }

    fn time(&mut self, evidence: &Evidence<'_>, annex: &Annex<'_>, lost_time: Option<&str>) {
        self.section("Where the time went");
        let region = &annex.region;
        let took = region.last_ns.saturating_sub(region.first_ns);
        self.line(&format!("The measured region took {}.", time(took)));
        if let Some(lost) = lost_time {
            self.line(&format!(
                "Spans may be missing, and what they took is others' own: {}.",
                md(lost)
            ));
        }
        let Some(graph) = evidence.graph.as_ref().or(annex.graph.as_ref()) else {
            self.line("Of a trace that is not valid and complete, there is no graph.");
            return;
        };
        let hosts = graph.summary.slowest_host_spans.iter().map(|span| {
            let own = time(span.measured_overlap_self_time_ns);
            vec![md(&span.name), own, time(span.full_duration_ns), md(span.scope.name())]
        });
        self.line("");
        self.table(&["slowest on the host", "own time", "span", "scope"], hosts);
        let devices = &graph.summary.slowest_device_spans;
        if !devices.is_empty() {
            let row = |span: &tmrun_formats::evidence::GraphDeviceCost<'_>| {
                vec![
                    md(&span.name),
                    md(&span.device),
                    md(&span.clock_id),
                    time(span.device_busy_ns),
                ]
            };
            self.line("");
            self.table(
                &["slowest on a device", "device", "clock", "busy"],
                devices.iter().map(row),
            );
            self.line("");
            self.line(
                "Busy is stream time between two points, not kernel busy time; host spans on CUDA are \
                 submit time.",
            );
        }
    }

    fn memory(&mut self, evidence: &Evidence<'_>, annex: &Annex<'_>) {
        self.section("Memory");
        let memory = &evidence.memory;
        if memory.logical.is_none() && memory.physical.is_none() {
            self.line("No memory was recorded.");
        }
        if let Some(logical) = &memory.logical {
            let bytes = plural(logical.total_allocated_bytes, "byte");
            let storages = plural(logical.storage_allocation_count, "storage");
            self.line(&format!("- Allocated: {bytes} in {storages}."));
            if let Some(peak) = &logical.peak {
                let (bytes, at) = (plural(peak.live_bytes, "byte"), time(peak.timestamp_ns));
                self.line(&format!("- Most of it live: {bytes}, at {at}."));
            }
        }
        if annex.carried_storages > 0 {
            let storages = plural(annex.carried_storages, "storage");
            let bytes = plural(annex.carried_bytes, "byte");
            self.line(&format!("- Live before it began: {storages} of {bytes}."));
        }
        for device in memory.physical.iter().flat_map(|physical| &physical.by_device) {
            let peak = device.peak_used_bytes.map_or("nothing".to_owned(), |b| plural(b, "byte"));
            let samples = plural(device.sample_count, "sample");
            let line = format!("- {}: at most {peak} used, in {samples}.", md(&device.device));
            self.line(&line);
        }
    }

    fn gradients(&mut self, trace: &TraceDocument<'_>, annex: &Annex<'_>) {
        self.section("Gradients");
        if trace.gradients.is_empty() {
            self.line("No gradients were recorded.");
        } else {
            let count = |state: GradientState| {
                let of = trace.gradients.iter().filter(|gradient| gradient.state == state);
                format!("{} {}", number(of.count() as u64), state.name())
            };
            use GradientState::{Missing, NonFinite, Present, Zero};
            let counts =
                [Present, Zero, Missing, NonFinite].map(count).join(", ").replace('_', " ");
            self.line(&format!("{counts}."));
        }
        let held = trace.run.capture_contract.gradient_contract.as_ref();
        let line = match (held, annex.gradient_contract.as_deref()) {
            (Some(contract), _) => format!("The run expected {}.", expected(contract)),
            (None, Some(contract)) => format!(
                "The run expected {}. The trace is not held to that, because it does not have all \
                 that was recorded.",
                expected(contract)
            ),
            (None, None) => "The run did not say which ones it expected.".to_owned(),
        };
        self.line(&format!("\n{line}"));
        let contract = held.or(annex.gradient_contract.as_deref());
        let severed = of_trace(trace, contract);
        if severed.is_empty() {
            return;
        }
        self.line("\nSome parameters get no gradient. It likely stops here:\n");
        let row = |it: &Severed| {
            let parameters = it.parameters.iter().map(|it| md(&format!("{}:{}", it.root, it.key)));
            let parameters: Vec<_> = parameters.collect();
            let count = number(parameters.len() as u64);
            let seen = if it.seen { "its output has none" } else { "its kind passes none on" };
            let instead = it.instead().unwrap_or("-").to_owned();
            vec![md(&it.layer), md(&it.op), seen.into(), instead, count, few(&parameters)]
        };
        let heading =
            ["layer", "kind", "because", "what passes it on", "parameters", "which they are"];
        self.table(&heading, severed.iter().map(row));
    }

    fn values(&mut self, annex: &Annex<'_>) {
        self.section("Values that are not finite");
        if annex.non_finite.is_empty() {
            self.line("None was seen.");
            return;
        }
        let row = |value: &AnnexNonFinite<'_>| {
            let count = |count: Option<u64>| count.map_or("?".to_owned(), number);
            let (nan, positive, negative) = match value {
                v if v.of == "gradient" && v.positive_infinities.is_none() => (None, None, None),
                v => (Some(v.nan), v.positive_infinities, v.negative_infinities),
            };
            let (label, at) = (md(&value.label), time(value.timestamp_ns));
            vec![label, md(&value.of), at, count(nan), count(positive), count(negative)]
        };
        self.line("The first one is where to look.\n");
        let heading = ["label", "of", "at", "NaN", "+Inf", "-Inf"];
        self.table(&heading, annex.non_finite.iter().map(row));
    }

    fn recorder(&mut self, annex: &Annex<'_>) {
        self.section("What recording took");
        let recorder = &annex.recorder;
        match (recorder.record_ns, recorder.span_ns) {
            (Some(record), Some(span)) => {
                let (record, span) = (duration(record), duration(span));
                self.line(&format!("A record cost {record}, a span {span}, by its own measure."));
            }
            _ => self.line("The recording does not say."),
        }
        if let Some(level) = annex.levels.first() {
            let name = level.name.as_deref().unwrap_or("unknown");
            let changes = annex.levels.len().saturating_sub(1) as u64;
            let changes = plural(changes, "change");
            self.line(&format!("The level was {} ({}), with {changes}.", level.level, md(name)));
        }
        if !recorder.lanes.is_empty() {
            let row = |lane: &super::AnnexLane<'_>| {
                let name = md(lane.name.as_deref().unwrap_or(""));
                let counts = [lane.dropped_records, lane.high_water].map(number);
                [vec![lane.lane.to_string(), name], counts.to_vec()].concat()
            };
            self.line("");
            let heading = ["lane", "name", "dropped in the run", "most that waited"];
            self.table(&heading, recorder.lanes.iter().map(row));
        }
        let clock = &annex.clock;
        let error = time(clock.uncertainty_ns);
        let samples = plural(clock.calibrations, "calibration");
        self.line(&format!("\nMoments may be off by {error}, by {samples} of the clock."));
    }
}

fn expected(contract: &tmrun_formats::trace::GradientContract) -> String {
    let (gradients, families) = (contract.expected.len() as u64, contract.families.len() as u64);
    let families = match families {
        1 => "1 family".to_owned(),
        families => format!("{} families", number(families)),
    };
    format!("{} of {families}", plural(gradients, "gradient"))
}
