//! Instructions, counted by callgrind: they do not depend on how busy the machine is.

use std::io;
use std::process::Command;

/// The running program, to be run again under callgrind.
#[derive(Debug)]
pub struct Callgrind {
    calls: u64,
}

/// Why instructions could not be counted.
#[derive(Debug)]
pub enum NoCallgrind {
    /// Valgrind did not run.
    Start(io::Error),
    /// It ran, and this is the end of what it said.
    Count(String),
}

impl std::fmt::Display for NoCallgrind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(error) => write!(f, "valgrind did not start: {error}"),
            Self::Count(said) => write!(f, "callgrind counted nothing: {said}"),
        }
    }
}

impl std::error::Error for NoCallgrind {}

impl Callgrind {
    /// Counts what is repeated so many times.
    pub const fn of(calls: u64) -> Self {
        Self { calls }
    }

    /// Instructions for one repetition of a `#[no_mangle]` function. The program, run again with
    /// these arguments and a number behind them, has to call it once with that number. It is run
    /// for two numbers, so that what only the first repetitions do is not counted.
    ///
    /// # Errors
    ///
    /// When valgrind is missing, or counts nothing.
    pub fn count(&self, function: &str, arguments: &[&str]) -> Result<f64, NoCallgrind> {
        let few = collected(function, arguments, self.calls)?;
        let many = collected(function, arguments, self.calls * 2)?;
        Ok(many.saturating_sub(few) as f64 / self.calls as f64)
    }
}

/// Instructions between the beginning and the end of the function.
fn collected(function: &str, arguments: &[&str], calls: u64) -> Result<u64, NoCallgrind> {
    let program = std::env::current_exe().map_err(NoCallgrind::Start)?;
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}"))
        .arg(program)
        .args(arguments)
        .arg(calls.to_string())
        .output()
        .map_err(NoCallgrind::Start)?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let count = said.lines().find_map(|line| line.split_once("Collected : "));
    match count.and_then(|(_, count)| count.trim().parse().ok()) {
        Some(count) if count > 0 => Ok(count),
        _ => Err(NoCallgrind::Count(said.lines().last().unwrap_or_default().to_owned())),
    }
}
