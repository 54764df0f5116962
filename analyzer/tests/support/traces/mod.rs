//! Small traces of every shape, made to hold together or to break one rule, and what the neighbour
//! makes of them.
#![allow(dead_code, reason = "every test uses some of it")]

pub mod base;
pub mod cohorts;
pub mod faults;
pub mod neighbour;
pub mod planes;
pub mod rng;
pub mod sketch;

pub use rng::Rng;
pub use sketch::{Sketch, SpanSketch};
