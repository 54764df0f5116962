//! What the published documents have in common: labels, vocabularies, floats and paths.
//!
//! Guarantees, for every type of [`bundle`](crate::bundle), [`evidence`](crate::evidence) and
//! [`comparison`](crate::comparison):
//!
//! - A document is written with the keys, their order and the omissions of `candle-graph` 0.10.1.
//! - What that version's types accept is accepted here, what they refuse is refused. Two things are
//!   stricter: a document with a `schema` must have the right one, and a float that is not finite is
//!   an error when written, not a `null`.
//! - Unknown keys are skipped. Unknown codes survive where the neighbour has a string ([`Coded`]),
//!   and are refused where it has an enumeration.
//! - Strings are [`Cow`](std::borrow::Cow): derived documents borrow from what they were derived
//!   from, and what is read back owns everything.
//!
//! ```
//! use tmrun_formats::evidence::{HealthCode, HealthIssue};
//! use tmrun_formats::published::Coded;
//!
//! let read = |code: &str| {
//!     let text = format!(r#"{{"severity":"error","code":"{code}","message":"two of them"}}"#);
//!     serde_json::from_str::<HealthIssue<'_>>(&text).unwrap().code
//! };
//! assert_eq!(read("root_count"), Coded::Known(HealthCode::RootCount));
//! assert_eq!(read("of_a_later_version").as_str(), "of_a_later_version");
//! ```

mod coded;
pub(crate) mod finite;
pub(crate) mod label;
mod path;

pub use crate::words::Word;
pub use coded::Coded;
pub use path::is_safe_path;
