//! Reads `.tmrun` recordings.

pub mod audit;
