//! Reads `.tmrun` recordings.

pub mod audit;
pub mod bundle;
#[cfg(feature = "capture")]
pub mod capture;
pub mod comparison;
pub mod convert;
pub mod diff;
pub mod evidence;
pub mod input;
pub mod nsight;
pub mod query;
pub mod readable;
mod rewrite;
pub mod salvage;
pub mod scan;
pub mod slice;
pub mod source;
pub mod trace;
