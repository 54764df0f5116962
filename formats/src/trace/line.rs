//! One line.
//!
//! A line is read twice at most: once in one pass, which takes what writers write (`kind` first, no
//! unknown key), and if that takes no liking to it, by serde's own reading of tagged enums, which
//! the neighbour uses for everything, and which decides.

use super::dense::dense_bytes;
use super::error::ReadError;
use super::known::Rest;
use super::{
    CallEdge, DataEdge, DeviceInterval, DeviceMemory, Edge, Gradient, Memory, Op, SpanEnd,
    SpanStart, Tensor, TensorStats, Terminal, TraceRun, rules,
};
use crate::runtime::{JsonFault, Place};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::error::Category;
use std::fmt;

/// What one line says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the variants are named for what they hold")]
pub enum TraceLine<'a> {
    /// What ran.
    Meta {
        /// The label of the format.
        schema: String,
        /// The run.
        #[serde(flatten)]
        run: Box<TraceRun>,
    },
    #[serde(borrow)]
    SpanStart(SpanStart<'a>),
    #[serde(borrow)]
    SpanEnd(SpanEnd<'a>),
    #[serde(borrow)]
    Op(Op<'a>),
    #[serde(borrow)]
    Tensor(Tensor<'a>),
    #[serde(borrow)]
    TensorStats(TensorStats<'a>),
    #[serde(borrow)]
    Memory(Memory<'a>),
    #[serde(borrow)]
    DeviceMemory(DeviceMemory<'a>),
    #[serde(borrow)]
    DeviceInterval(DeviceInterval<'a>),
    #[serde(borrow)]
    Gradient(Gradient<'a>),
    #[serde(borrow)]
    Edge(Edge<'a>),
    #[serde(borrow)]
    Terminal(Terminal<'a>),
}

impl<'a> TraceLine<'a> {
    /// Reads one line, with or without its line break; `None` for a blank one. Bytes that can be
    /// computed are filled in, and what a record has to hold by itself is held. `line` is its number
    /// and `offset` that of its first byte, for errors.
    ///
    /// # Errors
    /// What is wrong with this line alone.
    pub fn parse(text: &'a str, line: usize, offset: usize) -> Result<Option<Self>, ReadError> {
        let body = text.trim_start();
        let indent = text.len().saturating_sub(body.len());
        let body = body.trim_end();
        if body.is_empty() {
            return Ok(None);
        }
        let mut parsed = match one_pass(body) {
            Ok(parsed) => parsed,
            Err(first) => serde_json::from_str(body).map_err(|decided| {
                json_error(&first, &decided, line, indent, offset.saturating_add(indent))
            })?,
        };
        match &mut parsed {
            Self::Op(op) if op.output_dense_bytes.is_none() => {
                op.output_dense_bytes = dense_bytes(&op.shape, &op.dtype);
            }
            Self::Tensor(tensor) if tensor.dense_bytes.is_none() => {
                tensor.dense_bytes = dense_bytes(&tensor.shape, &tensor.dtype);
            }
            _ => {}
        }
        match &parsed {
            Self::TensorStats(stats) => rules::tensor_stats(stats),
            Self::Terminal(terminal) => rules::terminal(terminal),
            _ => Ok(()),
        }
        .map_err(|refusal| ReadError::Refused { line, refusal })?;
        Ok(Some(parsed))
    }

    /// Its `kind`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Meta { .. } => "meta",
            Self::SpanStart(_) => "span_start",
            Self::SpanEnd(_) => "span_end",
            Self::Op(_) => "op",
            Self::Tensor(_) => "tensor",
            Self::TensorStats(_) => "tensor_stats",
            Self::Memory(_) => "memory",
            Self::DeviceMemory(_) => "device_memory",
            Self::DeviceInterval(_) => "device_interval",
            Self::Gradient(_) => "gradient",
            Self::Edge(_) => "edge",
            Self::Terminal(_) => "terminal",
        }
    }
}

fn one_pass(text: &str) -> serde_json::Result<TraceLine<'_>> {
    let mut json = serde_json::Deserializer::from_str(text);
    let line = json.deserialize_map(LineVisitor)?;
    json.end()?;
    Ok(line)
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = TraceLine<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        use TraceLine as Line;
        Ok(match tag(&mut map, "kind")? {
            "span_start" => Line::SpanStart(Deserialize::deserialize(Rest(map))?),
            "span_end" => Line::SpanEnd(Deserialize::deserialize(Rest(map))?),
            "op" => Line::Op(Deserialize::deserialize(Rest(map))?),
            "tensor" => Line::Tensor(Deserialize::deserialize(Rest(map))?),
            "tensor_stats" => Line::TensorStats(Deserialize::deserialize(Rest(map))?),
            "memory" => Line::Memory(Deserialize::deserialize(Rest(map))?),
            "device_memory" => Line::DeviceMemory(Deserialize::deserialize(Rest(map))?),
            "device_interval" => Line::DeviceInterval(Deserialize::deserialize(Rest(map))?),
            "gradient" => Line::Gradient(Deserialize::deserialize(Rest(map))?),
            "edge" => Line::Edge(match tag(&mut map, "edge_kind")? {
                "call" => Edge::Call(CallEdge::deserialize(Rest(map))?),
                "data" => Edge::Data(DataEdge::deserialize(Rest(map))?),
                other => return Err(A::Error::unknown_variant(other, &["call", "data"])),
            }),
            "terminal" => Line::Terminal(Deserialize::deserialize(Rest(map))?),
            // There is one meta line, and its run is flattened into it.
            other => return Err(A::Error::unknown_variant(other, &[])),
        })
    }
}

/// The value of the next key, which is to be this one.
fn tag<'de, A: MapAccess<'de>>(map: &mut A, key: &'static str) -> Result<&'de str, A::Error> {
    match map.next_entry::<&str, &str>()? {
        Some((found, value)) if found == key => Ok(value),
        _ => Err(A::Error::missing_field(key)),
    }
}

/// The error that decided. It has no column where serde found it in what it had kept; if the first
/// pass found the same, it knows where.
fn json_error(
    first: &serde_json::Error,
    decided: &serde_json::Error,
    line: usize,
    indent: usize,
    offset: usize,
) -> ReadError {
    let fault = match decided.classify() {
        Category::Eof => JsonFault::Truncated,
        Category::Syntax | Category::Io => JsonFault::Malformed,
        Category::Data => JsonFault::WrongShape,
    };
    let detail = detail(decided);
    let placed = if decided.line() > 0 {
        Some(decided.column())
    } else {
        (first.line() > 0 && self::detail(first) == detail).then(|| first.column())
    };
    let place = match placed {
        Some(column) => Place::Text {
            line,
            column: indent.saturating_add(column.max(1)),
            offset: offset.saturating_add(column.saturating_sub(1)),
        },
        None => Place::Line(line),
    };
    ReadError::Json { place, fault, detail }
}

/// The text of an error without its place.
fn detail(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    whole.rsplit_once(" at line ").map_or(whole.as_str(), |(detail, _)| detail).to_owned()
}
