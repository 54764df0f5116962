//! Reads `.tmrun` recordings.

pub mod audit;
pub mod input;
pub mod scan;
