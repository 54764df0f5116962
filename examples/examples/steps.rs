//! Trains on request, for `cargo bench -p tmrun-examples --bench overhead`: a line on the standard
//! input, `nothing` or a level, is some steps that are timed, and a line on the standard output.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use tmrun::input::Input;
use tmrun::scan::Recording;
use tmrun_demo::{PROBE, Trainer};
use tmrun_formats::wire::Kind;
use tmrun_probe_core::{Level, ProfileRun};

/// Steps that are timed on each request, behind one that warms up.
const STEPS: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("run.tmrun");
    let mut training = Training { trainer: Trainer::new(1, None)?, number: 0 };
    for asked in std::io::stdin().lines() {
        let (ns, cost) = match asked?.as_str() {
            "nothing" => (training.steps()?, Cost::default()),
            level => {
                let run = ProfileRun::training("demo::overhead", 1, "cpu");
                let run = run.level(Level(level.parse()?)).replace(true);
                let recording = PROBE.record(&path, run)?;
                let ns = training.steps()?;
                recording.finish()?;
                (ns, cost_of(&path)?)
            }
        };
        println!("{ns} {} {}", cost.records, cost.ns);
        std::io::stdout().flush()?;
    }
    Ok(())
}

struct Training {
    trainer: Trainer,
    number: u64,
}

impl Training {
    /// Nanoseconds a step.
    fn steps(&mut self) -> Result<f64, Box<dyn Error>> {
        self.step()?;
        let start = Instant::now();
        for _ in 0..STEPS {
            self.step()?;
        }
        Ok(start.elapsed().as_nanos() as f64 / STEPS as f64)
    }

    fn step(&mut self) -> Result<(), Box<dyn Error>> {
        self.number += 1;
        self.trainer.step(self.number)?;
        Ok(())
    }
}

/// Records of a step, and what they cost in nanoseconds, as the recorder measured it when it began.
#[derive(Default)]
struct Cost {
    records: f64,
    ns: f64,
}

fn cost_of(path: &Path) -> Result<Cost, Box<dyn Error>> {
    let input = Input::open(path)?;
    let recording = Recording::open(&input, input.name())?;
    let cost = recording.meta().cost.ok_or("the recorder did not measure its cost")?;
    let ns = |millis: u64| millis as f64 * 1e6 / recording.header().ticks_per_second as f64;
    let spans = recording.counts().of(Kind::Span) as f64;
    let others = recording.counts().total() as f64 - spans;
    let steps = (STEPS + 1) as f64;
    Ok(Cost {
        records: (spans + others) / steps,
        ns: (spans * ns(cost.span) + others * ns(cost.record)) / steps,
    })
}
