//! Questions, and what a trace or a recording answers.
//!
//! Guarantees:
//!
//! - Questions that `candle-graph` 0.10.1 can be asked too have its rows, order, names and values; what
//!   is said in words is ours. [`Kind::is_ours`] is the others.
//! - Every answer comes with the capabilities that qualify it. What is not known is `null` or not there,
//!   and never 0.
//! - Where a trace is invalid for its gradients alone (one that is not finite, say, where a contract
//!   wants all), its graph and all gradients are given all the same, and a note says so.
//! - Of a recording an answer also says what JSON cannot: which values are NaN and which infinite.

mod activations;
mod answer;
mod envelope;
mod error;
mod gaps;
mod gpu;
mod graph;
mod kind;
mod labels;
mod non_finite;
mod overview;
mod page;
mod steps;

pub use answer::{Answer, GradientRows, SpanRows, StatsRows, of_trace};
pub use envelope::{Envelope, TOOL, Tool};
pub use error::QueryError;
pub use gaps::{GapRows, of_recording as gaps_of_recording};
pub use kind::{Choice, Kind, Needs};
pub use labels::LabelRow;
pub use non_finite::{GradientNorm, NonFiniteStats};
pub use overview::{OVERVIEW_BYTES, OVERVIEW_FOLLOWS, OVERVIEW_SCHEMA, overview};
pub use page::{Bounded, LabelFilter, Page, Paged};
pub use steps::{StepRow, StepRows, slow as slow_steps};

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which.
    pub kind: Kind,
    /// Which labels; all without.
    pub filter: Option<LabelFilter>,
    /// Which rows; the first ones without.
    pub page: Option<Page>,
}

impl Question {
    /// A question for all that there is, as far as the first rows go.
    pub const fn new(kind: Kind) -> Self {
        Self { kind, filter: None, page: None }
    }

    /// Holds that what is chosen can be.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoChoice`]
    pub fn check(&self) -> Result<(), QueryError> {
        let (kind, choice) = (self.kind, self.kind.choice());
        if self.filter.is_some() && choice != Choice::Labels {
            return Err(QueryError::NoChoice { kind, what: "by label", choice: Choice::Labels });
        }
        if self.page.is_some() && choice == Choice::None {
            return Err(QueryError::NoChoice { kind, what: "by page", choice: Choice::Rows });
        }
        Ok(())
    }

    fn page(&self) -> Page {
        self.page.unwrap_or_default()
    }

    fn wants(&self, label: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(label))
    }
}
