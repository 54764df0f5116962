//! The peers, which live in a workspace of their own: built and run from here.

use std::process::Command;

use tmrun_benches::Table;

use crate::Failure;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/Cargo.toml");

/// What they record.
pub fn rows(table: &mut Table) -> Result<(), Failure> {
    run(table, &[], "every peer")
}

/// What candle-graph derives.
pub fn evidence(table: &mut Table) -> Result<(), Failure> {
    run(table, &["evidence"], "evidence beside candle-graph's")
}

fn run(table: &mut Table, args: &[&str], what: &str) -> Result<(), Failure> {
    let folder = crate::target_folder()?.join("peers");
    // Tracy is C++: without a compiler the others are measured all the same.
    let features: &[&str] = if has_cxx() { &["--features", "tracy"] } else { &[] };
    let ran = Command::new(env!("CARGO"))
        .args(["run", "--release", "--manifest-path", MANIFEST])
        .args(features)
        .arg("--")
        .args(args)
        .env("CARGO_TARGET_DIR", folder)
        .stderr(std::process::Stdio::inherit())
        .output();
    match ran {
        Ok(ran) if ran.status.success() => table.append(serde_json::from_slice(&ran.stdout)?),
        Ok(ran) => table.miss(what, format!("benches/peers: {}", ran.status)),
        Err(error) => table.miss(what, format!("cargo did not start: {error}")),
    }
    Ok(())
}

fn has_cxx() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    Command::new(compiler).arg("--version").output().is_ok_and(|ran| ran.status.success())
}
