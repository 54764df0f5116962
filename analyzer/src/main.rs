//! The `tmrun` command.
fn main() {}
