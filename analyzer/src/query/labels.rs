//! Which labels there are.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use tmrun_formats::evidence::{Evidence, Graph, GraphGradient, GraphTensor};

use super::Question;
use super::page::Paged;

/// A label, and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabelRow<'e> {
    /// The kind of question whose rows have it.
    pub kind: &'static str,
    /// The label.
    pub label: Cow<'e, str>,
    /// How often it occurs.
    pub events: usize,
}

/// The labels of every kind, each kind in the order of its labels as bytes.
pub(super) fn of<'e>(
    question: &Question,
    evidence: &'e Evidence<'e>,
    graph: Option<&'e Graph<'e>>,
) -> Paged<LabelRow<'e>> {
    let mut rows = Vec::new();
    if let Some(graph) = graph {
        tally(&mut rows, "spans", graph.spans.iter().map(|node| &*node.name));
        let label =
            |tensor: &'e GraphTensor<'e>| tensor.label.as_deref().unwrap_or(&tensor.tensor_id);
        tally(&mut rows, "tensors", graph.tensors.iter().map(label));
    }
    tally(&mut rows, "tensor-stats", evidence.tensor_stats.iter().map(|stats| &*stats.label));
    if let Some(graph) = graph {
        let label = |one: &GraphGradient<'_>| gradient(&one.root, &one.key);
        tally(&mut rows, "gradients", graph.gradients.iter().map(label));
    }
    let total = rows.len();
    rows.retain(|row| question.wants(&row.label));
    question.page().cut(total, rows)
}

fn tally<'e, L>(rows: &mut Vec<LabelRow<'e>>, kind: &'static str, labels: impl Iterator<Item = L>)
where
    L: Into<Cow<'e, str>>,
{
    let mut counts: HashMap<Cow<'e, str>, usize> = HashMap::new();
    for label in labels {
        let events = counts.entry(label.into()).or_default();
        *events = events.saturating_add(1);
    }
    let mut counted: Vec<_> = counts.into_iter().collect();
    counted.sort_unstable();
    rows.extend(counted.into_iter().map(|(label, events)| LabelRow { kind, label, events }));
}

/// The label of a gradient.
fn gradient(root: &str, key: &str) -> String {
    format!("{root}/{key}")
}

/// Whether a gradient is wanted, by its key alone or by root and key.
pub(super) fn wants_gradient(question: &Question, root: &str, key: &str) -> bool {
    let Some(filter) = &question.filter else { return true };
    filter.matches(key) || filter.matches(&gradient(root, key))
}
