//! From one invocation of a recorded run to `trace/10`.
//!
//! Guarantees:
//!
//! - **One root, one measured region.** The root was not recorded; it begins with the first moment of
//!   all and ends with the last. A step that is made the measured region after the fact is a node of
//!   its own, and lies where it ran: within what was open around it, around what was open in it.
//! - **A child never leaves its parent**, to the nanosecond. What hung on a span that is lost, or that
//!   does not have it, hangs on the deepest surviving ancestor that does, else on the innermost
//!   surviving span of its lane that does, else on the root; each is listed. No time is altered.
//! - **Other lanes hang on the root**, unclipped. So does a detached span, which is a stretch of no lane;
//!   a lane's part of one lies where the lane had it, and is called `<name> (segment)`.
//! - **Ids are stable.** A span is `s<lane>.<id>`, padded so that text order is the order of opening;
//!   a gradient is its lane and position, as in every other output.
//! - **No claim outlives its evidence.** A plane that the run declared to be complete, and of which
//!   something is missing in the region, is declared to be partial; [`Told`] says why. A step of which
//!   an edge is missing, or whose time the clock does not tell, is a failed capture: nobody claims its
//!   wall time.
//! - **A step has what was recorded in it**, whatever time a record speaks of; work on a device the step
//!   in which it was launched. None of it is in two steps.
//! - **Nothing vanishes silently.** What a trace has no place for is counted in [`Told`].
//! - **A slice gives the same trace** as what it was cut from.

mod claims;
mod events;
mod fact;
mod gaps;
mod ids;
mod launched;
mod place;
mod row;
mod run;
mod storages;
mod texts;
mod told;

use std::borrow::Cow;

use tmrun_formats::trace::{
    RunOutcome, Span, SpanKind, Terminal, TraceDocument, TraceRun, TraceSchema, TraceStep,
};
use tmrun_formats::{GapReason, HostNs, Ticks};

use crate::scan::{Clock, Recording};
use crate::slice::concern::Concern;
use crate::slice::states::{Lanes, States};
use crate::slice::{Measured, Region, kept};
pub(crate) use claims::declared;
use events::Events;
use fact::Fact;
use ids::Ids;
use place::{Node, Tree};
use row::{Row, Rows};
pub(crate) use run::step_of;
use texts::Texts;
pub use told::{LeftOut, MovedFacts, MovedSpan, NonFinite, Refuted, Told, ValueOf};

/// A region of a recording, as a trace in the making.
#[derive(Debug)]
pub struct Trace<'r> {
    recording: &'r Recording<'r>,
    region: Region,
    tree: Tree,
    ids: Ids,
    facts: Vec<Fact<'r>>,
    told: Told,
}

/// A trace, and what it does not say.
#[derive(Debug)]
pub struct Derived<'t> {
    /// The trace.
    pub document: TraceDocument<'t>,
    /// What it has no place for.
    pub told: Told,
    /// When its time begins, in nanoseconds of the [recording's](Recording::clock).
    pub zero_ns: u64,
    /// The same, as the [host's](Clock::host_ns) nanosecond.
    pub zero: HostNs,
}

impl<'r> Trace<'r> {
    /// The trace of a region.
    pub fn of(recording: &'r Recording<'r>, region: &Region) -> Self {
        let kept = kept::of(recording, region);
        let mut told = Told { gaps: gaps::of(recording, region, &kept), ..Told::default() };
        let mut rows = Rows::of(recording, region, &kept);
        if outcome(recording, region).is_ok() {
            let lanes = Lanes::of(recording, &kept);
            let began_in = |row: &Row| began_in(row, recording, region, &lanes);
            rows.leave_out_open(began_in, &mut told);
        }
        let facts = fact::of(recording, region, &kept, &mut told);
        let tree = Tree::of(rows, region);
        let ids = Ids::of(&tree);
        told.moved_spans = tree.moved.iter().filter_map(|&at| moved(&tree, &ids, at)).collect();
        Self { recording, region: region.clone(), tree, ids, facts, told }
    }

    /// The trace itself.
    pub fn derive(&self) -> Derived<'_> {
        let clock = self.recording.clock();
        let (first, last) = self.edges();
        let time = Time { clock: &clock, zero: clock.host_ns(first) };
        let outcome = outcome(self.recording, &self.region);
        let terminal = Terminal {
            outcome: if outcome.is_ok() { RunOutcome::Complete } else { RunOutcome::Failed },
            timestamp_ns: time.at(last),
            reason: outcome.err().map(Cow::Owned),
        };
        let created = self.recording.header().created_ns;
        let created = created.saturating_add(clock.first().map_or(0, |at| time.zero.since(at)));
        let run = run::of(self.recording, &self.region, created);
        let mut document = empty(run, terminal);
        self.spans(&time, last, &mut document);
        let texts = Texts::of(self.recording.meta());
        let told = self.told.clone();
        let mut events = Events::new(&self.tree, &self.ids, texts, time, told, document);
        events.take(&self.facts);
        let (mut document, mut told) = events.end();
        let concern = Concern::of(self.recording, &self.region);
        claims::refute(&mut document.run.capture_contract, &mut told, &concern, &time);
        document.memory.sort_by_key(|event| event.timestamp_ns);
        let mut by_id: Vec<usize> = (0..document.spans.len()).collect();
        by_id.sort_by(|&a, &b| {
            let id = |at: usize| document.spans.get(at).map(|span| &span.id);
            id(a).cmp(&id(b))
        });
        document.by_id = by_id;
        Derived { document, told, zero_ns: clock.ns(first), zero: time.zero }
    }

    /// The first and the last moment of all.
    fn edges(&self) -> (Ticks, Ticks) {
        let spans = self.tree.rows.rows.iter().map(|row| row.known());
        let facts = self.facts.iter().filter(|fact| !fact.carried);
        let facts = facts.map(|fact| (fact.first, fact.last));
        spans
            .chain(facts)
            .fold(self.region.extent, |(from, to), (first, last)| (from.min(first), to.max(last)))
    }

    fn spans<'t>(&'t self, time: &Time<'_>, last: Ticks, document: &mut TraceDocument<'t>) {
        let mut line = 1_usize;
        let mut push = |mut span: Span<'t>| {
            line = line.saturating_add(1);
            span.line = line;
            document.spans.push(span);
        };
        let root = Span {
            id: Cow::Borrowed(Ids::ROOT),
            parent: None,
            name: Cow::Owned(document_name(self.recording)),
            kind: SpanKind::Function,
            step: None,
            measured: false,
            start_ns: 0,
            duration_ns: Some(time.at(last)),
            line: 0,
        };
        push(root);
        if self.region.step().is_some() {
            push(Span {
                id: Cow::Borrowed(Ids::STEP),
                parent: Some(Cow::Borrowed(self.ids.text(self.tree.around_step))),
                name: Cow::Borrowed(Ids::STEP),
                measured: true,
                start_ns: time.at(self.region.first),
                duration_ns: self.region.wall_ns(time.clock),
                kind: SpanKind::Function,
                step: None,
                line: 0,
            });
        }
        let texts = Texts::of(self.recording.meta());
        let name =
            |row: &Row| texts.name(row.name).unwrap_or_else(|| Texts::unnamed(row.name.0.into()));
        for (at, (row, parent)) in self.tree.rows.rows.iter().zip(&self.tree.parents).enumerate() {
            let is_measured = self.region.measured == Measured::Span(row.key.0, row.key.1);
            push(Span {
                id: Cow::Borrowed(self.ids.text(Node::Span(at))),
                parent: Some(Cow::Borrowed(self.ids.text(*parent))),
                name: if row.segment { segment(&name(row)) } else { name(row) },
                kind: kind(row.kind),
                step: step(row.step),
                measured: is_measured,
                start_ns: time.at(row.first),
                duration_ns: row.ended.then(|| time.between(row.first, row.last)),
                line: 0,
            });
        }
    }
}

/// Whether a span began in the region, on a lane that was in it: where the run is over it will not end any
/// more.
fn began_in(row: &Row, recording: &Recording<'_>, region: &Region, lanes: &Lanes) -> bool {
    let is_over = recording.meta().terminal.is_some();
    let (lane, _) = row.key;
    let is_within = region.first < row.first && row.first <= region.extent.1;
    let of_region = || match region.step() {
        None => lane == region.lane && row.first <= region.last,
        Some(number) => {
            let of_lane = |states: &States| states.step_from(row.first);
            let start = || {
                let start = recording.lanes().get(lane).map(|lane| lane.start);
                start.and_then(|start| start.open.filter(|_| start.sure)).map(|open| open.number)
            };
            lanes.get(lane).map_or_else(start, of_lane) == Some(number)
        }
    };
    is_over && row.of_lane && is_within && of_region()
}

/// What a lane's part of a detached span is called: the name alone is that of the whole, once.
fn segment(name: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{name} (segment)"))
}

fn moved(tree: &Tree, ids: &Ids, at: usize) -> Option<MovedSpan> {
    let recorded = Ids::of_key(tree.rows.get(at)?.parent?);
    let parent = ids.text(*tree.parents.get(at)?).to_owned();
    Some(MovedSpan { id: ids.text(Node::Span(at)).to_owned(), recorded, parent })
}

/// What a trace of a region says of its run, but with everything that the run promised.
pub fn planned(recording: &Recording<'_>, region: &Region) -> TraceRun {
    run::of(recording, region, recording.header().created_ns)
}

/// Nanoseconds since the first moment of a trace.
#[derive(Clone, Copy)]
struct Time<'c> {
    clock: &'c Clock<'c>,
    zero: HostNs,
}

impl Time<'_> {
    fn at(&self, ticks: Ticks) -> u64 {
        self.clock.host_ns(ticks).since(self.zero)
    }

    fn between(&self, first: Ticks, last: Ticks) -> u64 {
        self.at(last).saturating_sub(self.at(first))
    }
}

/// What the root is called: the entry point of the run.
fn document_name(recording: &Recording<'_>) -> String {
    let run = recording.meta().run.as_ref();
    run.map(|run| run.entrypoint).filter(|name| !name.is_empty()).unwrap_or("run").to_owned()
}

/// Whether the invocation did what it was to do; else why not.
fn outcome(recording: &Recording<'_>, region: &Region) -> Result<(), String> {
    let terminal = recording.meta().terminal;
    let of_run = || match terminal {
        Some(terminal) if terminal.complete => None,
        Some(terminal) => {
            let reason = terminal.reason.filter(|reason| !reason.trim().is_empty());
            Some(reason.unwrap_or("the run failed and did not say why").to_owned())
        }
        None => Some("the recording does not say how the run ended".to_owned()),
    };
    let failed = match region.measured {
        Measured::Step(number) => of_step(recording, region, number, of_run),
        Measured::Span(..) | Measured::Run => of_run(),
    };
    failed.or_else(|| of_clock(recording, region)).map_or(Ok(()), Err)
}

/// Why nobody can tell how long a region was.
fn of_clock(recording: &Recording<'_>, region: &Region) -> Option<String> {
    let (first, last) = (region.first, region.last);
    (!recording.clock().tells(first, last)).then(|| {
        let ticks = last.since(first);
        format!("the readings of the clock do not tell how long the {ticks} ticks of it lasted")
    })
}

/// Why a step is no whole invocation, of which the wall time is known. How the run ended says something
/// of a step that nothing follows.
fn of_step(
    recording: &Recording<'_>,
    region: &Region,
    number: u64,
    of_run: impl Fn() -> Option<String>,
) -> Option<String> {
    let goes_on = recording.span().is_some_and(|(_, last)| region.last < last);
    let mut behind = region.outside.iter().filter(|outside| outside.behind);
    let is_elsewhere = behind.any(|o| o.lane == region.lane && o.reason == GapReason::LEFT_OUT);
    let began_before = || format!("step {number} began before what is left of the recording");
    let why = match (region.begun, region.ended, region.edge_lost) {
        (true, true, _) => return None,
        (false, true, true) => format!("the beginning of step {number} is lost"),
        (false, true, false) => began_before(),
        (false, false, false) if is_elsewhere => {
            format!("{}, and goes on in another file", began_before())
        }
        (_, false, _) if is_elsewhere => format!("step {number} goes on in another file"),
        (_, false, is_lost) => match (of_run().filter(|_| !goes_on), is_lost) {
            (Some(why), _) => format!("step {number} did not end: {why}"),
            (None, true) => format!("the end of step {number} is lost"),
            (None, false) if goes_on => {
                format!("step {number} did not end before the next one of its lane began")
            }
            (None, false) => format!("step {number} did not end before the recording did"),
        },
    };
    Some(why)
}

const fn empty<'t>(run: TraceRun, terminal: Terminal<'t>) -> TraceDocument<'t> {
    TraceDocument {
        schema: TraceSchema::V10,
        run,
        spans: Vec::new(),
        by_id: Vec::new(),
        ops: Vec::new(),
        tensors: Vec::new(),
        tensor_stats: Vec::new(),
        memory: Vec::new(),
        device_memory: Vec::new(),
        device_intervals: Vec::new(),
        gradients: Vec::new(),
        edges: Vec::new(),
        terminal,
    }
}

const fn kind(kind: tmrun_formats::SpanKind) -> SpanKind {
    match kind {
        tmrun_formats::SpanKind::OP => SpanKind::Op,
        tmrun_formats::SpanKind::MODULE => SpanKind::Module,
        _ => SpanKind::Function,
    }
}

const fn step(step: tmrun_formats::ExecutionStep) -> Option<TraceStep> {
    match step {
        tmrun_formats::ExecutionStep::FORWARD => Some(TraceStep::Forward),
        tmrun_formats::ExecutionStep::BACKWARD => Some(TraceStep::Backward),
        tmrun_formats::ExecutionStep::OPTIMIZER => Some(TraceStep::Optimizer),
        _ => None,
    }
}
