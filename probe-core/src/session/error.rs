//! Why a session did not open, did not record something, or did not end well.

use std::io;
use std::path::PathBuf;

use tmrun_formats::trace::GradientState;

use crate::recording::RecordError;

/// Why a session did not open, did not record something, or did not end well.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionError {
    /// It could not be recorded; of a run that declares what cannot be kept: before a file was made.
    Record(RecordError),
    /// There is no memory of the size that the session was to have.
    Memory {
        /// Records that the ring was to hold.
        slots: usize,
        /// Names that the table was to hold.
        names: usize,
        /// Why.
        source: io::Error,
    },
    /// The folder of the file could not be made.
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A text that says nothing.
    Blank {
        /// What it is.
        what: &'static str,
    },
    /// A span that this session has not begun.
    UnknownSpan {
        /// Its number.
        found: u64,
        /// The last that was begun.
        last: u64,
    },
    /// A gradient whose norm does not go with its state.
    Gradient {
        /// Its state.
        state: GradientState,
        /// Its norm.
        norm: Option<f64>,
    },
    /// Statistics that contradict themselves.
    Stats {
        /// What contradicts what.
        fault: StatsFault,
    },
    /// A sample of a device's memory without a value.
    EmptyDeviceMemory,
    /// An interval that lasts no time.
    EmptyInterval {
        /// What it is of.
        what: &'static str,
    },
    /// An interval that ends behind all times.
    IntervalTooLong {
        /// What it is of.
        what: &'static str,
        /// Its start.
        start_ns: u64,
        /// How long it is.
        duration_ns: u64,
    },
    /// Host work that is said to be complete and ends later than now.
    InTheFuture {
        /// Its end.
        end_ns: u64,
        /// The time now.
        now_ns: u64,
    },
    /// A moment before the session began.
    BeforeSession,
    /// Spans were still open when the session was finished; the file says that it failed.
    SpansOpen {
        /// How many.
        open: u16,
    },
    /// An operation that is not under way.
    UnknownOperation {
        /// What it is called.
        event_id: String,
    },
}

/// What is wrong with statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StatsFault {
    /// The shape has another number of elements, or more than can be counted.
    Elements {
        /// How many there are said to be.
        count: u64,
        /// The product of the dimensions.
        product: Option<u64>,
    },
    /// More elements that are not finite than elements.
    NonFinite {
        /// How many elements there are.
        count: u64,
        /// How many of them are not finite.
        non_finite: u64,
    },
    /// A number that cannot be what it is said to be.
    Value {
        /// Which.
        field: &'static str,
        /// The number.
        value: f64,
    },
}

impl From<RecordError> for SessionError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Record(error) => error.fmt(f),
            Self::Memory { slots, names, source } => write!(
                f,
                "no memory for a session of {slots} records and {names} names: {source}; choose \
                 less with SessionBuilder"
            ),
            Self::Folder { path, source } => {
                write!(f, "the folder {} could not be made: {source}", path.display())
            }
            Self::Blank { what } => write!(f, "{what} is blank: expected a text"),
            Self::UnknownSpan { found, last } => write!(
                f,
                "span {found} is not of this session, whose last is {last}: use the id of a guard \
                 that it gave"
            ),
            Self::Gradient { state, norm } => {
                let expected = match state {
                    GradientState::Present => "a finite norm above 0",
                    GradientState::Zero => "0.0, and not -0.0",
                    GradientState::Missing | GradientState::NonFinite => "none",
                };
                write!(f, "the norm of a {state} gradient is {norm:?}: expected {expected}")
            }
            Self::Stats { fault } => fault.fmt(f),
            Self::EmptyDeviceMemory => f.write_str(
                "a sample of a device's memory holds nothing: expected used, free, reserved or \
                 capacity bytes",
            ),
            Self::EmptyInterval { what } => {
                write!(f, "{what} lasts 0 ns: expected an end after its start")
            }
            Self::IntervalTooLong { what, start_ns, duration_ns } => write!(
                f,
                "{what} starts at {start_ns} ns and lasts {duration_ns} ns: its end is no 64-bit \
                 number"
            ),
            Self::InTheFuture { end_ns, now_ns } => write!(
                f,
                "completed host work ends at {end_ns} ns, and now is {now_ns} ns: report it when it \
                 has ended, in the session's time (host_timestamp_ns)"
            ),
            Self::BeforeSession => f.write_str(
                "the moment is before the session began: open the session before what it times",
            ),
            Self::SpansOpen { open } => write!(
                f,
                "{open} spans were still open at the end, and the file says so: drop their guards \
                 before finishing"
            ),
            Self::UnknownOperation { event_id } => write!(
                f,
                "no operation {event_id:?} is under way: expected one that begin_operation gave, \
                 once"
            ),
        }
    }
}

impl std::fmt::Display for StatsFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Elements { count, product: Some(product) } => {
                write!(f, "statistics are over {count} elements, and the shape has {product}")
            }
            Self::Elements { count, product: None } => {
                write!(f, "statistics are over {count} elements, and the shape has more than 2^64")
            }
            Self::NonFinite { count, non_finite } => {
                write!(f, "{non_finite} of {count} elements are not finite: expected at most all")
            }
            Self::Value { field: "mean", value } => {
                write!(f, "mean is {value}: expected a finite number")
            }
            Self::Value { field, value } => {
                write!(f, "{field} is {value}: expected a finite number of 0 or more")
            }
        }
    }
}

impl std::error::Error for SessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Record(error) => Some(error),
            Self::Memory { source, .. } | Self::Folder { source, .. } => Some(source),
            _ => None,
        }
    }
}
