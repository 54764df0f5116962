//! What can be wrong with a trace, and what a writer refuses.

use super::{GradientState, SCHEMAS, Section};
use std::fmt;
use std::io;
use thiserror::Error;

/// Where in the input something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A character of the text: line and column count from one, the offset from zero, in bytes.
    Text {
        /// Line.
        line: usize,
        /// Column, in bytes.
        column: usize,
        /// Offset from the first byte of the input.
        offset: usize,
    },
    /// A whole line of a JSONL stream, counted from one.
    Line(usize),
    /// A record of a document: the collection, and the index in it from zero.
    Item {
        /// The collection.
        section: Section,
        /// The index in it.
        index: usize,
    },
    /// The field `schema` of a document.
    Schema,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Text { line, column, offset } => {
                write!(f, "line {line}, column {column} (byte {offset})")
            }
            Place::Line(line) => write!(f, "line {line}"),
            Place::Item { section, index } => write!(f, "{}[{index}]", section.key()),
            Place::Schema => f.write_str("schema"),
        }
    }
}

/// How a text failed to be the JSON it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonFault {
    /// The text ends inside a value: the file was cut.
    Truncated,
    /// The text is not JSON.
    Malformed,
    /// The text is JSON, but a field is missing, given twice, or of another type.
    WrongShape,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonFault::Truncated => "truncated JSON; the file was cut or is still being written",
            JsonFault::Malformed => "malformed JSON",
            JsonFault::WrongShape => "JSON of the wrong shape",
        })
    }
}

/// Why a trace was not accepted.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing but white space.
    #[error("the trace is empty: expected a JSON document or JSONL records")]
    Empty,
    /// The bytes are not text.
    #[error(
        "byte {offset}: expected UTF-8, found an invalid sequence; runtime JSON is text, is this a .tmrun file?"
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
    /// A document without one of its two required keys.
    #[error("the document has no `{key}`: expected an object with `schema` and `run`")]
    DocumentWithout {
        /// The absent key.
        key: &'static str,
    },
    /// A stream that holds its meta line and nothing else.
    #[error(
        "the stream holds only its meta line, which every reader takes for a document without `run`; \
         write a run without observations in the document form"
    )]
    LoneMeta,
    /// A JSONL line that is not an object.
    #[error("line {line}: expected a JSON object, found {found}")]
    NotAnObject {
        /// The line.
        line: usize,
        /// What stands there instead.
        found: &'static str,
    },
    /// A JSONL line without `kind`.
    #[error(
        "line {line}: expected a string `kind`, found none; is this one document rather than JSONL?"
    )]
    NoKind {
        /// The line.
        line: usize,
    },
    /// A JSONL line of a kind no version knows.
    #[error(
        "line {line}: expected kind meta, tensor, operation, gradient, value or edge_timing, found {found:?}"
    )]
    UnknownKind {
        /// The line.
        line: usize,
        /// Its `kind`.
        found: String,
    },
    /// A stream without meta line.
    #[error("no line of kind meta: expected exactly one, with `schema` and the run's metadata")]
    NoMeta,
    /// A second meta line.
    #[error("line {line}: a second meta line; the first is line {first}, and a stream has one")]
    SecondMeta {
        /// The second meta line.
        line: usize,
        /// The first one.
        first: usize,
    },
    /// Another schema.
    #[error("{place}: expected schema {}, found {found:?}", one_of_schemas())]
    UnsupportedSchema {
        /// Where it stands.
        place: Place,
        /// The label.
        found: String,
    },
    /// Two records with one id.
    #[error(
        "{place}: event_id {id:?} was already used at {first}; ids are unique over all collections"
    )]
    DuplicateId {
        /// The second record.
        place: Place,
        /// The first one.
        first: Place,
        /// Their id.
        id: String,
    },
    /// A record that breaks a rule by itself.
    #[error("{place}: {refusal}")]
    Refused {
        /// The record.
        place: Place,
        /// The rule.
        refusal: Refusal,
    },
}

/// Why a single record cannot stand in a trace. Reader and writer hold the same rules.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// `event_id` is the empty string.
    #[error("event_id is empty: expected one that no other record of the trace has")]
    EmptyId,
    /// State and norm contradict each other.
    #[error("gradient {root}:{key}: state {state} expects {expected}, found norm {norm}")]
    Contradiction {
        /// The fact's root.
        root: String,
        /// The fact's key.
        key: String,
        /// The state it claims.
        state: GradientState,
        /// The norm it carries.
        norm: f64,
        /// The norms that go with the state.
        expected: &'static str,
    },
    /// A float that JSON cannot hold.
    #[error(
        "{event_id}: {field} is {value}: expected a finite number; give the range of the finite \
         elements and count the others in nonfinite_count"
    )]
    NonFinite {
        /// The record.
        event_id: String,
        /// Its field.
        field: &'static str,
        /// The value.
        value: f64,
    },
}

/// Why a writer stopped. After [`Io`](WriteError::Io) it takes nothing more; after any other error
/// it goes on as if the call had not been made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Another schema.
    #[error("expected schema {}, found {found:?}", one_of_schemas())]
    UnsupportedSchema {
        /// The label.
        found: String,
    },
    /// A record that no reader would take.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An id that the stream already holds.
    #[error("event_id {id:?} is already in this trace; ids are unique over all collections")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// A record of a collection that was already closed.
    #[error(
        "{} after {}: a document holds its collections in one order; use JSONL to mix them",
        section.key(),
        open.key()
    )]
    OutOfOrder {
        /// The record's collection.
        section: Section,
        /// The one that is open.
        open: Section,
    },
    /// The sink failed.
    #[error("the trace could not be written")]
    Io(#[from] io::Error),
    /// The sink failed before, perhaps in the middle of a line.
    #[error(
        "an earlier write failed, and the trace may end inside a line: nothing more is written"
    )]
    Broken,
}

fn one_of_schemas() -> String {
    SCHEMAS.join(" or ")
}
