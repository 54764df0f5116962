//! Reads `.tmrun` recordings.

pub mod audit;
pub mod convert;
pub mod evidence;
pub mod input;
mod rewrite;
pub mod salvage;
pub mod scan;
pub mod slice;
pub mod trace;
