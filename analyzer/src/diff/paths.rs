//! Spans and operations by the path of their names.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use super::missing::{Missing, UnderGap};
use super::{Rows, Which, signed};
use crate::evidence::Index;
use crate::evidence::graph::Host;
use crate::query::Bounded;
use crate::source::Subject;

/// The most names of a path; of longer ones the last, behind `…`.
const NAMES: usize = 64;

/// Spans of one path, or operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathRow<'d> {
    /// The names below the root, from the outermost to their own; none of the root itself.
    pub path: Vec<&'d str>,
    /// `span` or `op`.
    pub kind: &'static str,
    /// How much more time of their own there is on the second side.
    pub change_ns: i64,
    /// On the first side; `None` where there are none.
    pub a: Option<PathSide>,
    /// On the second side; `None` where there are none.
    pub b: Option<PathSide>,
    /// The only side that has them.
    pub only_in: Option<Which>,
    /// The gap of the side that has fewer, if they may be missing in one.
    pub under_gap: Option<UnderGap>,
}

/// Spans of one path on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PathSide {
    /// How many.
    pub count: u64,
    /// Their time in the measured region less that of what hangs under them.
    pub own_ns: u64,
    /// Their time in the measured region; all of it where there is none.
    pub total_ns: u64,
    /// How many of them did not end, and count until the trace does.
    pub open: u64,
    /// When the first one began.
    #[serde(skip)]
    first_ns: u64,
    /// When the last one ended.
    #[serde(skip)]
    last_ns: u64,
}

impl PathSide {
    /// Adds one that was from `start` to `end`, and took so long in all and by itself.
    fn add(&mut self, (start, end): (u64, u64), (total, own): (u64, u64), is_open: bool) {
        (self.first_ns, self.last_ns) = match self.count {
            0 => (start, end),
            _ => (self.first_ns.min(start), self.last_ns.max(end)),
        };
        self.count = self.count.saturating_add(1);
        self.own_ns = self.own_ns.saturating_add(own);
        self.total_ns = self.total_ns.saturating_add(total);
        self.open = self.open.saturating_add(is_open.into());
    }
}

const NONE: PathSide =
    PathSide { count: 0, own_ns: 0, total_ns: 0, open: 0, first_ns: 0, last_ns: 0 };

/// A path.
#[derive(Debug)]
struct Node<'d> {
    /// What is above; the root's own place of the root.
    above: usize,
    name: &'d str,
    is_op: bool,
    sides: [PathSide; 2],
    /// Of each side the nearest path above, but for the root, that the side has any of.
    around: [Option<usize>; 2],
}

/// The paths of both sides.
#[derive(Debug)]
struct Paths<'d> {
    nodes: Vec<Node<'d>>,
    places: HashMap<(usize, &'d str, bool), usize>,
}

const ROOT: usize = 0;

pub(super) fn of<'d>(
    sides: [(&'d Subject<'d>, &Index<'_>); 2],
    missing: &[Missing; 2],
    limit: usize,
) -> Rows<PathRow<'d>> {
    let root = Node { above: ROOT, name: "", is_op: false, sides: [NONE; 2], around: [None; 2] };
    let mut paths = Paths { nodes: vec![root], places: HashMap::new() };
    for (side, (subject, index)) in sides.into_iter().enumerate() {
        paths.take(side, subject, index);
    }
    paths.find_around();
    let changed = |node: &Node<'_>| {
        let [a, b] = node.sides;
        (a.own_ns, a.count) != (b.own_ns, b.count)
    };
    let mut rows: Vec<usize> =
        (0..).zip(&paths.nodes).filter(|(_, node)| changed(node)).map(|(at, _)| at).collect();
    let same = paths.nodes.len().saturating_sub(rows.len());
    rows.sort_by_key(|&at| {
        let [a, b] = paths.nodes.get(at).map_or([NONE; 2], |node| node.sides);
        Reverse((a.own_ns.abs_diff(b.own_ns), a.count.abs_diff(b.count), Reverse(at)))
    });
    let row = |at| paths.row(at, missing);
    Rows { same, rows: Bounded::of(rows.into_iter().map(row), limit) }
}

impl<'d> Paths<'d> {
    fn take(&mut self, side: usize, subject: &'d Subject<'d>, index: &Index<'_>) {
        let trace = subject.trace();
        let host = Host::until(trace, index, trace.terminal.timestamp_ns);
        let end = |start: u64, duration: u64| start.saturating_add(duration);
        // What is around the measured region, or beside it, is of no interest but for that time.
        let measured = index.tree.measured.first().map(|&span| span as usize);
        let measured = measured.and_then(|span| Some((span, trace.spans.get(span)?.start_ns)));
        let (from, until) = measured
            .map_or((0, u64::MAX), |(span, start)| (start, end(start, host.time(span).total)));
        let mut places = vec![ROOT; trace.spans.len()];
        for &span in &index.tree.top_down {
            let span = span as usize;
            let Some(it) = trace.spans.get(span) else { continue };
            let above = index.tree.parents.get(span).and_then(|parent| parent.get());
            let above = above.and_then(|above| places.get(above).copied());
            let place = match above {
                Some(above) => self.place(above, &it.name, false),
                None if it.parent.is_none() => ROOT,
                // What its parent was is lost, but not what it is.
                None => self.place(ROOT, &it.name, false),
            };
            if let Some(known) = places.get_mut(span) {
                *known = place;
            }
            let time = host.time(span);
            let took = match measured {
                Some(_) => (time.overlap, time.own_overlap),
                None => (time.total, time.own),
            };
            let edges = (it.start_ns, end(it.start_ns, time.total));
            self.add(place, side, edges, took, it.duration_ns.is_none());
            for op in index.ops.of(span).filter_map(|op| trace.ops.get(op)) {
                let place = self.place(place, &op.op_name, true);
                let edges = (op.timestamp_ns, end(op.timestamp_ns, op.duration_ns));
                let took = edges.1.min(until).saturating_sub(edges.0.max(from));
                self.add(place, side, edges, (took, took), false);
            }
        }
    }

    fn place(&mut self, above: usize, name: &'d str, is_op: bool) -> usize {
        let nodes = &mut self.nodes;
        *self.places.entry((above, name, is_op)).or_insert_with(|| {
            nodes.push(Node { above, name, is_op, sides: [NONE; 2], around: [None; 2] });
            nodes.len().saturating_sub(1)
        })
    }

    fn add(
        &mut self,
        place: usize,
        side: usize,
        edges: (u64, u64),
        took: (u64, u64),
        is_open: bool,
    ) {
        let node = self.nodes.get_mut(place);
        if let Some(of_side) = node.and_then(|node| node.sides.get_mut(side)) {
            of_side.add(edges, took, is_open);
        }
    }

    fn row(&self, at: usize, missing: &[Missing; 2]) -> PathRow<'d> {
        let (is_op, [a, b]) =
            self.nodes.get(at).map_or((false, [NONE; 2]), |node| (node.is_op, node.sides));
        let only_in = match (a.count, b.count) {
            (0, _) => Some(Which::B),
            (_, 0) => Some(Which::A),
            _ => None,
        };
        let [missing_a, missing_b] = missing;
        let under_gap = match a.count.cmp(&b.count) {
            std::cmp::Ordering::Less => missing_a.at(Which::A, is_op, self.around(at, 0)),
            std::cmp::Ordering::Greater => missing_b.at(Which::B, is_op, self.around(at, 1)),
            std::cmp::Ordering::Equal => None,
        };
        PathRow {
            path: self.path(at),
            kind: if is_op { "op" } else { "span" },
            change_ns: signed(a.own_ns, b.own_ns),
            a: Some(a).filter(|side| side.count > 0),
            b: Some(b).filter(|side| side.count > 0),
            only_in,
            under_gap,
        }
    }

    /// Finds of each path what is around it. What is above stands before what is below.
    fn find_around(&mut self) {
        for at in ROOT.saturating_add(1)..self.nodes.len() {
            let Some(above) = self.nodes.get(at).map(|node| node.above) else { continue };
            let Some(node) = self.nodes.get(above).filter(|_| above != ROOT) else { continue };
            let mut around = node.around;
            for (around, side) in around.iter_mut().zip(&node.sides) {
                *around = if side.count > 0 { Some(above) } else { *around };
            }
            if let Some(node) = self.nodes.get_mut(at) {
                node.around = around;
            }
        }
    }

    /// When on a side what is around a path was: the time in which it may be missing there.
    fn around(&self, at: usize, side: usize) -> (u64, u64) {
        let around = self.nodes.get(at).and_then(|node| *node.around.get(side)?);
        let around = around.and_then(|around| self.nodes.get(around)?.sides.get(side));
        around.map_or((0, u64::MAX), |around| (around.first_ns, around.last_ns))
    }

    fn path(&self, mut at: usize) -> Vec<&'d str> {
        let mut names = Vec::new();
        while let Some(node) = self.nodes.get(at).filter(|_| at != ROOT) {
            if names.len() == NAMES {
                names.push("…");
                break;
            }
            names.push(node.name);
            at = node.above;
        }
        names.reverse();
        names
    }
}
