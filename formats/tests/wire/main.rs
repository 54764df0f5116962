//! The wire format's promises, each held against values, bytes and files that nobody chose.

#[path = "../wire_support/mod.rs"]
mod wire_support;

mod clock;
mod damage;
mod frames;
mod headers;
mod hostile;
mod index;
mod newer;
mod records;
