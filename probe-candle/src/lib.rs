//! Placeholder opening; replaced with the crate's guarantees.
