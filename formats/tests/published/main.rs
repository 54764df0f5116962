//! The published documents are those of the real neighbour: its own are read and written again byte for
//! byte, and what its types refuse is refused.

mod bundle;
mod comparison;
mod evidence;
mod support;
