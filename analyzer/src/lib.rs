//! Reads `.tmrun` recordings.

pub mod audit;
pub mod convert;
pub mod input;
pub mod salvage;
pub mod scan;
