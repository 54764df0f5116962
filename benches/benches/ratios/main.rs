//! `cargo bench -p tmrun-benches --bench ratios`: what recording, draining and reading cost, as ratios
//! to what was measured beside them in the same rounds; the peers too, from `benches/peers`. It
//! prints the table and writes `ratios.json` into the target folder. It fails where a row misses what it
//! must meet, which a busy machine is enough for.
//!
//! Behind `--`: the names of parts (`recording`, `step`, `steady`, `transfer`, `finish`, `reading`,
//! `json`, `evidence`, `peers`) to run these alone.

mod finish;
mod floor;
mod json;
mod peers;
mod reading;
mod recording;
mod steady;
mod step;
mod transfer;

use std::error::Error;
use std::path::PathBuf;

use tmrun_benches::Table;

/// What stops a part; what cannot be measured here is a row that says so.
type Failure = Box<dyn Error + Send + Sync>;

/// A part of the table.
type Part = fn(&mut Table) -> Result<(), Failure>;

const PARTS: [(&str, Part); 9] = [
    ("recording", recording::rows),
    ("step", step::rows),
    ("steady", steady::rows),
    ("transfer", transfer::rows),
    ("finish", finish::rows),
    ("reading", reading::rows),
    ("json", json::rows),
    ("evidence", peers::evidence),
    ("peers", peers::rows),
];

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if let [count, function, calls] = args.as_slice()
        && count == recording::COUNT
    {
        recording::repeat(function, calls.parse()?);
        return Ok(());
    }
    let mut table = Table::default();
    for (name, part) in PARTS {
        if args.is_empty() || args.iter().any(|arg| arg == name) {
            part(&mut table)?;
        }
    }
    print!("{table}");
    let path = target_folder()?.join("ratios.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&table)?)?;
    eprintln!("written to {}", path.display());
    match &*table.missed() {
        [] => Ok(()),
        missed => Err(format!("what must be met is missed: {}", missed.join("; ")).into()),
    }
}

/// Where cargo builds: this program lies in `<target>/release/deps`.
fn target_folder() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?;
    Ok(program.ancestors().nth(3).ok_or("the program does not lie in a target folder")?.to_owned())
}
