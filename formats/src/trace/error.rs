//! What can be wrong with a trace, and what a writer refuses.

use super::TraceSchema;
use crate::runtime::{JsonFault, Place};
use std::io;
use thiserror::Error;

/// Why a trace was not accepted. Lines are counted from one, blank ones too.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing but white space.
    #[error("the trace is empty: expected a meta line, events and a terminal line")]
    Empty,
    /// The bytes are not text.
    #[error(
        "byte {offset}: expected UTF-8, found an invalid sequence; a trace is text, is this a .tmrun file?"
    )]
    NotUtf8 {
        /// The first byte that does not fit.
        offset: usize,
    },
    /// A byte order mark, which keeps every reader from seeing what follows.
    #[error("byte 0: expected `{{`, found a UTF-8 byte order mark; save the file without it")]
    ByteOrderMark,
    /// Not the JSON that should stand there.
    #[error("{place}: {fault}: {detail}")]
    Json {
        /// Where reading stopped.
        place: Place,
        /// Which kind of fault.
        fault: JsonFault,
        /// What was expected and found there.
        detail: String,
    },
    /// Something else in front of the meta line, or instead of it.
    #[error("line {line}: expected kind meta, found {found}; the first line says what ran")]
    MetaNotFirst {
        /// The first line.
        line: usize,
        /// Its kind.
        found: &'static str,
    },
    /// A second meta line.
    #[error("line {line}: a second meta line: expected one, the first")]
    SecondMeta {
        /// The second one.
        line: usize,
    },
    /// Another schema.
    #[error(
        "line {line}: expected schema {} or {}, found {found:?}",
        TraceSchema::V10,
        TraceSchema::V9
    )]
    UnsupportedSchema {
        /// The meta line.
        line: usize,
        /// The label.
        found: String,
    },
    /// What the version does not have.
    #[error(
        "line {line}: {} has no tensor_stats: expected schema {}",
        TraceSchema::V9,
        TraceSchema::V10
    )]
    StatsBeforeV10 {
        /// The first line of that kind.
        line: usize,
    },
    /// A span that begins twice.
    #[error("line {line}: span {id:?} began at line {first}: expected an id of its own")]
    SpanTwice {
        /// Where it begins again.
        line: usize,
        /// Where it began.
        first: usize,
        /// Its id.
        id: String,
    },
    /// The end of a span that did not begin.
    #[error("line {line}: the end of span {id:?}: expected its span_start on an earlier line")]
    EndWithoutStart {
        /// Its end.
        line: usize,
        /// Its id.
        id: String,
    },
    /// A span that ends twice.
    #[error("line {line}: span {id:?} ended at line {first}: expected one end")]
    EndTwice {
        /// The second end.
        line: usize,
        /// The first one.
        first: usize,
        /// Its id.
        id: String,
    },
    /// Something behind the terminal line.
    #[error("line {line}: expected nothing behind the terminal line, which is line {terminal}")]
    AfterTerminal {
        /// What follows.
        line: usize,
        /// The terminal line.
        terminal: usize,
    },
    /// No terminal line.
    #[error(
        "no terminal line: expected one at the end; the file was cut or is still being written"
    )]
    NoTerminal,
    /// A run that ended before something of it did.
    #[error(
        "line {line}: the run ends at {timestamp_ns} ns: expected no time before {latest_ns} ns, \
         when the last span, operation or memory event does"
    )]
    EndsEarly {
        /// The terminal line.
        line: usize,
        /// When the run ends.
        timestamp_ns: u64,
        /// When the last of it does.
        latest_ns: u64,
    },
    /// A record that breaks a rule by itself.
    #[error("line {line}: {refusal}")]
    Refused {
        /// The record.
        line: usize,
        /// The rule.
        refusal: Refusal,
    },
}

impl ReadError {
    /// The same error in a text that begins so many lines and bytes earlier.
    pub(super) fn shifted(mut self, lines: usize, bytes: usize) -> Self {
        let shift = |number: &mut usize, by: usize| *number = number.saturating_add(by);
        match &mut self {
            Self::Empty | Self::NoTerminal | Self::ByteOrderMark => {}
            Self::NotUtf8 { offset } => shift(offset, bytes),
            Self::Json { place: Place::Text { line, offset, .. }, .. } => {
                shift(line, lines);
                shift(offset, bytes);
            }
            Self::Json { place: Place::Line(line), .. }
            | Self::MetaNotFirst { line, .. }
            | Self::SecondMeta { line }
            | Self::UnsupportedSchema { line, .. }
            | Self::StatsBeforeV10 { line }
            | Self::EndWithoutStart { line, .. }
            | Self::EndsEarly { line, .. }
            | Self::Refused { line, .. } => shift(line, lines),
            Self::SpanTwice { line, first: earlier, .. }
            | Self::EndTwice { line, first: earlier, .. }
            | Self::AfterTerminal { line, terminal: earlier } => {
                shift(line, lines);
                shift(earlier, lines);
            }
            Self::Json { place: Place::Item { .. } | Place::Schema, .. } => {}
        }
        self
    }
}

/// Why a single record cannot stand in a trace. Reader and writer hold the same rules.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Statistics of nothing.
    #[error("tensor_stats: label is blank: expected a text")]
    BlankLabel,
    /// A count that is not the shape's.
    #[error("tensor_stats: elements is {elements}: expected the product of shape, {}", or_more(.product))]
    Elements {
        /// What is said.
        elements: u64,
        /// The product; `None` when it has more than 64 bits.
        product: Option<u64>,
    },
    /// More elements that are not finite than there are elements.
    #[error("tensor_stats: non_finite is {non_finite}: expected at most elements, {elements}")]
    NonFiniteCount {
        /// How many are said not to be finite.
        non_finite: u64,
        /// How many there are.
        elements: u64,
    },
    /// A number that no tensor has.
    #[error(
        "tensor_stats: {field} is {value}: expected a finite number, rms and abs_max not negative; \
         count what is not finite in non_finite"
    )]
    Statistic {
        /// Which.
        field: &'static str,
        /// The number.
        value: f64,
    },
    /// A norm that JSON cannot hold.
    #[error(
        "gradient: norm is {norm}: expected a finite number; leave it out for state non_finite"
    )]
    Norm {
        /// The norm.
        norm: f64,
    },
    /// A reason for success.
    #[error("terminal: outcome is complete: expected no reason")]
    ReasonOfComplete,
    /// Failure without a reason.
    #[error("terminal: outcome is failed: expected a reason that is not blank")]
    FailedWithoutReason,
}

fn or_more(product: &Option<u64>) -> String {
    product.map_or_else(|| "which has more than 64 bits".to_owned(), |product| product.to_string())
}

/// Why a writer stopped. After [`Io`](WriteError::Io) it takes nothing more; after any other error
/// it goes on as if the call had not been made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A record that no reader would take.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A span that begins twice.
    #[error("span {id:?} is already in this trace: expected an id of its own")]
    SpanTwice {
        /// Its id.
        id: String,
    },
    /// The end of a span that did not begin.
    #[error("the end of span {id:?}: expected its start to be written earlier")]
    EndWithoutStart {
        /// Its id.
        id: String,
    },
    /// A span that ends twice.
    #[error("span {id:?} has ended: expected one end")]
    EndTwice {
        /// Its id.
        id: String,
    },
    /// A run that ends before something of it does.
    #[error(
        "the run ends at {timestamp_ns} ns: expected no time before {latest_ns} ns, when the last \
         span, operation or memory event does"
    )]
    EndsEarly {
        /// When the run ends.
        timestamp_ns: u64,
        /// When the last of it does.
        latest_ns: u64,
    },
    /// What the version does not have.
    #[error("{} has no tensor_stats: expected a writer of {}", TraceSchema::V9, TraceSchema::V10)]
    StatsBeforeV10,
    /// An event behind the end of the run.
    #[error("the terminal line is written: expected nothing behind it")]
    AfterTerminal,
    /// A trace without its last line.
    #[error("the trace has no terminal line: expected one before it is finished")]
    NoTerminal,
    /// The sink failed.
    #[error("the trace could not be written")]
    Io(#[from] io::Error),
    /// The sink failed before, perhaps in the middle of a line.
    #[error(
        "an earlier write failed, and the trace may end inside a line: nothing more is written"
    )]
    Broken,
}
