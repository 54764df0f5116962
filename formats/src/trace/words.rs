//! The vocabularies are defined as all of the crate's are.

pub(super) use crate::words::words;
