//! What stands around an answer.

use serde::Serialize;
use tmrun_formats::evidence::Capabilities;

use super::{Answer, LabelFilter, Question};
use crate::source::SubjectInput;

/// This program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// Its name.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// This program.
pub const TOOL: Tool = Tool { package: "tmrun", version: env!("CARGO_PKG_VERSION") };

/// An answer as a document.
#[derive(Debug, Serialize)]
pub struct Envelope<'e> {
    schema: &'static str,
    /// The neighbour's schema, whose `result` this is; none of a question that is ours alone.
    follows: Option<&'static str>,
    tool: Tool,
    kind: &'static str,
    filter: Filter<'e>,
    input: SubjectInput<'e>,
    notes: &'e [&'e str],
    capabilities: Option<&'e Capabilities<'e>>,
    result: &'e Answer<'e>,
}

#[derive(Debug, Serialize)]
struct Filter<'e> {
    label: Option<&'e str>,
    label_prefix: Option<&'e str>,
}

impl<'e> Envelope<'e> {
    /// The label of the document.
    pub const SCHEMA: &'static str = "tmrun/query/1";
    /// The neighbour's.
    pub const FOLLOWS: &'static str = "candle-graph/trace-query/7";

    /// The document of an answer. Capabilities are those of one invocation.
    pub fn of(
        question: &'e Question,
        input: SubjectInput<'e>,
        capabilities: Option<&'e Capabilities<'e>>,
        notes: &'e [&'e str],
        result: &'e Answer<'e>,
    ) -> Self {
        let (label, label_prefix) = match &question.filter {
            Some(LabelFilter::Exact(label)) => (Some(label.as_str()), None),
            Some(LabelFilter::Prefix(prefix)) => (None, Some(prefix.as_str())),
            None => (None, None),
        };
        Self {
            schema: Self::SCHEMA,
            follows: (!question.kind.is_ours()).then_some(Self::FOLLOWS),
            tool: TOOL,
            kind: question.kind.name(),
            filter: Filter { label, label_prefix },
            input,
            notes,
            capabilities,
            result,
        }
    }
}
