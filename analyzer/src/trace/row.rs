//! The spans of a region, each with its stretch of time.

use core::cmp::Reverse;
use std::collections::HashMap;

use tmrun_formats::wire::{Kind, OpenSpanV1, Record, Span, flags};
use tmrun_formats::{ExecutionStep, LaneId, NameId, SpanId, SpanKind, Ticks};

use super::told::{LeftOut, Told};
use crate::scan::Recording;
use crate::slice::Region;
use crate::slice::kept::Kept;

/// No span has so many around it: stacks are not as deep, and a chain that is longer is a circle.
const DEEPEST: usize = 1 << 12;

/// A span's identity: the lane that its id counts on, and the id.
pub(super) type Key = (LaneId, SpanId);

/// A span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: Key,
    /// The span around it, as it was recorded.
    pub(super) parent: Option<Key>,
    pub(super) name: NameId,
    pub(super) first: Ticks,
    pub(super) last: Ticks,
    /// Whether it had ended.
    pub(super) ended: bool,
    /// Whether it is a stretch of its lane, and so lies within one another.
    pub(super) of_lane: bool,
    /// Whether it is a detached span, or a lane's part of one.
    pub(super) detached: bool,
    pub(super) segment: bool,
    pub(super) depth: u16,
    pub(super) kind: SpanKind,
    pub(super) step: ExecutionStep,
    pub(super) measured: bool,
}

impl Row {
    /// When a span ends that does not.
    pub(super) const NEVER: Ticks = Ticks(u64::MAX);

    fn of(record: &Record) -> Option<Self> {
        let (header, span) = (record.header(), record.payload::<Span>()?);
        let given = |flag| header.flags & flag != 0;
        let parent = (span.parent_lane, span.parent);
        Some(Self {
            key: (span.own_lane, span.id(header.span)),
            parent: Some(parent).filter(|(_, id)| !id.is_none()),
            name: header.name,
            first: header.ticks.min(span.end),
            last: span.end.max(header.ticks),
            ended: !given(flags::SPAN_OPEN),
            of_lane: !given(flags::SPAN_DETACHED) && !given(flags::SPAN_COMPLETED),
            detached: given(flags::SPAN_DETACHED),
            segment: given(flags::SPAN_SEGMENT),
            depth: span.depth,
            kind: span.kind,
            step: span.step,
            measured: given(flags::SPAN_MEASURED),
        })
    }

    /// A span that was open at the end, and so has every moment behind its beginning.
    fn open(span: &OpenSpanV1) -> Self {
        Self {
            key: (span.lane, span.span),
            parent: Some((span.lane, span.parent)).filter(|(_, id)| !id.is_none()),
            name: span.name,
            first: span.start,
            last: Self::NEVER,
            ended: false,
            of_lane: true,
            detached: false,
            segment: false,
            depth: span.depth,
            kind: SpanKind::FUNCTION,
            step: ExecutionStep::default(),
            measured: false,
        }
    }

    /// Where it stands among spans that lie within one another: an outer one is before an inner one.
    fn rank(&self) -> (Ticks, Reverse<Ticks>, u16, Key) {
        (self.first, Reverse(self.last), self.depth, self.key)
    }

    pub(super) fn has(&self, (first, last): (Ticks, Ticks)) -> bool {
        self.first <= first && last <= self.last
    }
}

/// The spans of a region by rank, and where each is.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    places: HashMap<Key, usize>,
    /// Of each row the innermost other one of its lane that has it.
    within: Vec<Option<usize>>,
    /// The rows of each lane.
    lanes: HashMap<LaneId, Vec<usize>>,
    /// Those that are left out because they had not ended.
    left_out: HashMap<Key, Row>,
}

impl Rows {
    /// Every span that has a part of the region, each once.
    pub(super) fn of(recording: &Recording<'_>, region: &Region, kept: &Kept<'_>) -> Self {
        let records = kept.values().flatten().flat_map(|run| run.records());
        let spans = records.filter(|record| record.kind() == Some(Kind::Span));
        let mut rows: Vec<Row> = spans.filter_map(Row::of).collect();
        rows.extend(recording.meta().open_spans.iter().map(Row::open));
        rows.retain(|row| region.overlaps(row.first, row.last));
        // A span that ended just before its recorder did may be there as an open one too.
        rows.sort_unstable_by_key(|row| (row.key, !row.ended));
        rows.dedup_by_key(|row| row.key);
        rows.sort_unstable_by_key(Row::rank);
        Self::ranked(rows)
    }

    /// Of rows by rank, each of which is there once.
    fn ranked(rows: Vec<Row>) -> Self {
        let places = rows.iter().zip(0..).map(|(row, at)| (row.key, at)).collect();
        let mut rows = Self { rows, places, ..Self::default() };
        rows.nest();
        rows
    }

    /// Leaves out those that had not ended: an invocation that is complete has none around it or beside
    /// it. One that began in it and was never ended is evidence, and stays as it is.
    pub(super) fn leave_out_open(&mut self, began_in: impl Fn(&Row) -> bool, told: &mut Told) {
        let rows = core::mem::take(&mut self.rows);
        let (ended, open): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.ended || began_in(row));
        open.iter().for_each(|_| told.leave_out(LeftOut::OpenSpan));
        *self = Self::ranked(ended);
        self.left_out = open.into_iter().map(|row| (row.key, row)).collect();
    }

    /// Finds of each row the innermost one of its lane that has it: outer ones come first.
    fn nest(&mut self) {
        let mut open: HashMap<LaneId, Vec<usize>> = HashMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            if !row.of_lane {
                self.within.push(None);
                continue;
            }
            let stack = open.entry(row.key.0).or_default();
            let has =
                |outer: &usize| self.rows.get(*outer).is_some_and(|outer| outer.has(row.edges()));
            while stack.last().is_some_and(|outer| !has(outer)) {
                stack.pop();
            }
            self.within.push(stack.last().copied());
            stack.push(at);
            self.lanes.entry(row.key.0).or_default().push(at);
        }
    }

    pub(super) fn find(&self, key: Key) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// Whether a span that was left out has a stretch of time.
    pub(super) fn had(&self, key: Key, edges: (Ticks, Ticks)) -> bool {
        self.left_out.get(&key).is_some_and(|row| row.has(edges))
    }

    pub(super) fn get(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)
    }

    /// The innermost span of its lane that has a row.
    pub(super) fn around(&self, at: usize) -> Option<usize> {
        self.within.get(at).copied().flatten()
    }

    /// The innermost span of a lane that has a stretch of time.
    pub(super) fn innermost(&self, lane: LaneId, edges: (Ticks, Ticks)) -> Option<usize> {
        let rows = self.lanes.get(&lane)?;
        let begun = |at: &usize| self.get(*at).is_some_and(|row| row.first <= edges.0);
        let mut at = rows.get(rows.partition_point(begun).checked_sub(1)?).copied();
        while let Some(row) = at.and_then(|at| self.get(at)) {
            if row.has(edges) {
                return at;
            }
            at = at.and_then(|at| self.around(at));
        }
        None
    }

    /// The span with this key if it has a stretch of time, else the deepest of its ancestors that
    /// does; with whether it was the span itself.
    pub(super) fn holder(&self, key: Key, edges: (Ticks, Ticks)) -> Option<(usize, bool)> {
        let mut next = self.find(key);
        let mut itself = true;
        for _ in 0..DEEPEST {
            let row = self.get(next?)?;
            if row.has(edges) {
                return next.map(|at| (at, itself));
            }
            itself = false;
            next = row.parent.and_then(|parent| self.find(parent));
        }
        None
    }
}

impl Row {
    pub(super) const fn edges(&self) -> (Ticks, Ticks) {
        (self.first, self.last)
    }

    /// From its beginning to the last moment that is known of it.
    pub(super) const fn known(&self) -> (Ticks, Ticks) {
        (self.first, if self.ended { self.last } else { self.first })
    }
}
