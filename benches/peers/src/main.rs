//! What others' recorders and rings cost, beside ours in the same process, or with `evidence` behind it
//! what it costs to derive that: the rows as JSON on standard output. The benchmark `ratios` of the
//! main workspace builds and runs it.

mod count;
mod evidence;
mod rings;
mod spans;
#[cfg(feature = "tracy")]
mod tracy;

use std::io::Write;

use tmrun_benches::{Table, on_core};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [count, what, calls] = args.as_slice()
        && count == count::COUNT
    {
        count::repeat(what, calls.parse()?)?;
        tmrun_benches::exit_at_once()
    }
    let mut table = Table::default();
    if args.as_slice() == ["evidence"] {
        evidence::rows(&mut table)?;
    } else {
        on_core(0, || {
            spans::rows(&mut table)?;
            rings::rows(&mut table)
        })?;
    }
    serde_json::to_writer(std::io::stdout(), &table)?;
    std::io::stdout().flush()?;
    // Tracy's end waits for its server, which is at the mercy of this process: it is not waited for.
    tmrun_benches::exit_at_once()
}
