//! A loop without any framework, with the probe in it. Copy it and start from here.
//!
//! `cargo run -p tmrun-examples --example plain_loop` writes `plain.tmrun`.

use tmrun_probe_core::{Level, ProfileRun, measured, probe, scalar, span};

probe!(static PROBE: lanes = 1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let run = ProfileRun::training("plain::descend", 1, "cpu").level(Level::TIMING).replace(true);
    let recording = PROBE.record("plain.tmrun", run)?;

    // The line through these points, found by gradient descent.
    let points = [(0.0, 1.0), (1.0, 3.1), (2.0, 4.9), (3.0, 7.2)];
    let (mut slope, mut offset) = (0.0, 0.0);
    {
        let _region = measured!(PROBE, "descend");
        for update in 1..=100 {
            let _step = PROBE.step(update);
            let errors = {
                let _forward = span!(PROBE, "forward", step = FORWARD);
                points.map(|(x, y)| (x, slope * x + offset - y))
            };
            scalar!(PROBE, "loss", errors.iter().map(|(_, e)| e * e).sum::<f64>());
            let _optimizer = span!(PROBE, "optimizer", step = OPTIMIZER);
            slope -= 0.05 * errors.iter().map(|(x, e)| x * e).sum::<f64>();
            offset -= 0.05 * errors.iter().map(|(_, e)| e).sum::<f64>();
        }
    }
    let summary = recording.finish()?;
    println!("y = {slope:.2} x + {offset:.2}; {} records in plain.tmrun", summary.records);
    Ok(())
}
