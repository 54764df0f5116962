//! Where everything hangs: one root, the measured region, and the spans below.

use tmrun_formats::wire::StepState;
use tmrun_formats::{LaneId, SpanId, Ticks};

use super::row::{Key, Row, Rows};
use crate::slice::{Measured, Region};

/// A node of the tree of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// The root, which was not recorded: it is around everything.
    Root,
    /// The step that is measured, which is no span of its own.
    Step,
    /// A span.
    Span(usize),
}

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) rows: Rows,
    region: Region,
    /// The parent of each row.
    pub(super) parents: Vec<Node>,
    /// What the measured step hangs on.
    pub(super) around_step: Node,
    /// The rows that hang elsewhere than was recorded, because what they hung on is not there, or does
    /// not have them.
    pub(super) moved: Vec<usize>,
}

impl Tree {
    pub(super) fn of(rows: Rows, region: &Region) -> Self {
        let mut tree = Self {
            rows,
            region: region.clone(),
            parents: Vec::new(),
            around_step: Node::Root,
            moved: Vec::new(),
        };
        if region.step().is_some() {
            let around = tree.rows.innermost(region.lane, (region.first, region.last));
            tree.around_step = around.map_or(Node::Root, Node::Span);
        }
        for at in 0..tree.rows.rows.len() {
            let Some(row) = tree.rows.get(at).copied() else { break };
            let (parent, moved) = tree.parent(at, &row);
            tree.parents.push(parent);
            if moved {
                tree.moved.push(at);
            }
        }
        tree
    }

    /// What a span hangs on, and whether that is not what was recorded.
    fn parent(&self, at: usize, row: &Row) -> (Node, bool) {
        let (lane, _) = row.key;
        // No lane's time has a detached span, wherever it began; its parts are of the lanes that they
        // are stretches of, and the detached span is around none of them.
        if row.detached {
            return (Node::Root, false);
        }
        if row.segment {
            let around = self.rows.around(at);
            let around = around.map(|around| self.within(around, lane, row.edges()));
            return (around.unwrap_or_else(|| self.top(lane, row.edges())), false);
        }
        let Some(parent) = row.parent.filter(|&parent| !self.is_behind_step(parent)) else {
            return (self.top(lane, row.edges()), false);
        };
        // A span lies in one that comes before it; so there is no circle.
        match self.rows.holder(parent, row.edges()).filter(|&(holder, _)| holder < at) {
            Some((holder, itself)) => (self.within(holder, lane, row.edges()), !itself),
            None => match self.rows.around(at) {
                Some(around) => (self.within(around, lane, row.edges()), true),
                None => (self.top(lane, row.edges()), true),
            },
        }
    }

    /// Where something hangs that was recorded within a span of this lane, and that span's time has:
    /// on the step where that lies between them.
    fn within(&self, span: usize, lane: LaneId, edges: (Ticks, Ticks)) -> Node {
        let encloses = |row: &Row| row.has((self.region.first, self.region.last));
        if self.rows.get(span).is_some_and(encloses) && self.is_of_step(lane, edges) {
            Node::Step
        } else {
            Node::Span(span)
        }
    }

    /// Whether a span is around the step and is left out, because it goes on: what was recorded within
    /// it was recorded within the step.
    fn is_behind_step(&self, span: Key) -> bool {
        span.0 == self.region.lane && self.rows.had(span, (self.region.first, self.region.last))
    }

    /// Where something hangs that was recorded within no span.
    fn top(&self, lane: LaneId, edges: (Ticks, Ticks)) -> Node {
        if self.is_of_step(lane, edges) { Node::Step } else { Node::Root }
    }

    /// Whether a stretch of the step's own lane lies in the step.
    fn is_of_step(&self, lane: LaneId, (first, last): (Ticks, Ticks)) -> bool {
        let Region { measured, lane: own, first: from, last: to, .. } = self.region;
        // What encloses the step in equal ticks does not lie in it.
        let is_step = matches!(measured, Measured::Step(_)) && lane == own;
        // A span that did not end is of the step that it began in.
        let last = if last == Row::NEVER { first } else { last };
        is_step && from <= first && last <= to && (first, last) != (from, to)
    }

    /// Where something hangs that a trace has no time for: on the span that it was recorded of, even if
    /// that has ended by then.
    pub(super) fn place_untimed(
        &self,
        lane: LaneId,
        of: Option<SpanId>,
        edges: (Ticks, Ticks),
    ) -> (Node, bool) {
        match of.and_then(|id| self.rows.find((lane, id))) {
            Some(span) => (self.within(span, lane, edges), false),
            None => self.place(lane, of, edges),
        }
    }

    /// Where something hangs that was recorded on a lane within a span, and whether that is not the
    /// span that was recorded.
    pub(super) fn place(
        &self,
        lane: LaneId,
        within: Option<SpanId>,
        edges: (Ticks, Ticks),
    ) -> (Node, bool) {
        let Some(id) = within.filter(|&id| !self.is_behind_step((lane, id))) else {
            return (self.top(lane, edges), false);
        };
        match self.rows.holder((lane, id), edges) {
            Some((holder, itself)) => (self.within(holder, lane, edges), !itself),
            None => match self.rows.innermost(lane, edges) {
                Some(around) => (self.within(around, lane, edges), true),
                None => (self.top(lane, edges), true),
            },
        }
    }

    /// The node of a span that something names from elsewhere, at whatever time.
    pub(super) fn named(&self, key: Key) -> Option<Node> {
        self.rows.find(key).map(Node::Span)
    }

    /// Whether a record in this state is of another invocation than the one that is measured.
    pub(super) fn is_of_another(&self, state: StepState) -> bool {
        let other = state.open.map(|open| open.number).filter(|_| state.sure);
        self.region.step().is_some() && other.is_some() && other != self.region.step()
    }
}
