//! What the test of the planes counts, and what it checks by itself.

pub mod hits;
pub mod peaks;
pub mod rules;
