//! What a long recording allocates and holds: `src/bin/steady`, a process whose memory is nothing
//! but the recorder's.

use std::process::{Command, Stdio};

use tmrun_benches::Table;

use crate::Failure;

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    let mut steady = Command::new(env!("CARGO_BIN_EXE_steady"));
    // The level is the program's.
    let steady = steady.env_remove("TMRUN_LEVEL").env_remove("TMRUN_FOCUS");
    let ran = steady.stderr(Stdio::inherit()).output()?;
    if ran.status.success() {
        table.append(serde_json::from_slice(&ran.stdout)?);
    } else {
        table.miss("allocations and memory of a long recording", format!("steady: {}", ran.status));
    }
    Ok(())
}
