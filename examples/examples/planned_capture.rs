//! A loop that captures one planned update as evidence, and does not capture it again when it is run
//! again: `cargo run -p tmrun-examples --example planned_capture -- DIR`.

use std::error::Error;
use std::path::PathBuf;

use tmrun::capture::{
    CaptureBegin, CaptureRun, CaptureSelector, ExecutionStep, ProfileRun, SpanKind, TraceSession,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("expected a directory")?.into();
    let selector = CaptureSelector::new(3)?;
    let mut weight = 1.0;
    for update in 1..=5 {
        if !selector.is_selected(update) {
            weight = train(weight, None)?;
            continue;
        }
        let run = ProfileRun::training("planned_capture::update", update, "cpu");
        let destination = folder.join(format!("update-{update}"));
        let receipt = match CaptureRun::begin(destination, run)? {
            CaptureBegin::AlreadyPublished(receipt) => {
                weight = train(weight, None)?;
                *receipt
            }
            CaptureBegin::Active(capture) => {
                weight = {
                    let _measured = capture.session().begin_measurement("update");
                    train(weight, Some(capture.session()))?
                };
                capture.publish()?
            }
        };
        println!("{} in {}", receipt.status, receipt.bundle_path.display());
    }
    Ok(())
}

/// An update towards 0, with what there is to see of it.
fn train(weight: f64, session: Option<&TraceSession>) -> Result<f64, Box<dyn Error>> {
    let span = |name, part| session.map(|it| it.begin_step_span(name, part, SpanKind::Function));
    let loss = {
        let forward = span("update/forward", ExecutionStep::Forward);
        let loss = weight * weight;
        if let (Some(session), Some(forward)) = (session, &forward) {
            session.record_scalar(forward.id(), "loss", loss)?;
        }
        loss
    };
    let _optimizer = span("update/optimizer", ExecutionStep::Optimizer);
    Ok(weight - 0.1 * loss)
}
