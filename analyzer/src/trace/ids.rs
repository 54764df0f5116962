//! What the spans of a trace are called.

use super::Tree;
use super::place::Node;
use super::row::Key;

/// The ids of the nodes.
#[derive(Debug)]
pub(super) struct Ids(pub(super) Vec<String>);

impl Ids {
    pub(super) const ROOT: &'static str = "root";
    pub(super) const STEP: &'static str = "step";

    pub(super) fn of(tree: &Tree) -> Self {
        Self(tree.rows.rows.iter().map(|row| Self::of_key(row.key)).collect())
    }

    /// What a span is called, whether the trace has it or not. Padded, so that as text they are in the
    /// order in which they opened.
    pub(super) fn of_key((lane, id): Key) -> String {
        format!("s{:02}.{:010}", lane.0, id.0)
    }

    pub(super) fn text(&self, node: Node) -> &str {
        match node {
            Node::Root => Self::ROOT,
            Node::Step => Self::STEP,
            Node::Span(at) => self.0.get(at).map_or(Self::ROOT, String::as_str),
        }
    }
}
