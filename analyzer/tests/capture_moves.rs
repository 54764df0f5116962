//! A program that publishes its captures moves over by its imports, and each crate finds what the other
//! published.

#[path = "support/told.rs"]
mod told;

use std::error::Error;

use tmrun::capture::SpanKind;
use tmrun_formats::trace::TraceDocument;
use told::told;

/// A program that publishes what it captures, with these imports: whether somebody had published it
/// before.
macro_rules! capturing {
    ($name:ident: $import:item) => {
        mod $name {
            use std::error::Error;
            use std::path::Path;

            $import

            pub fn run(destination: &Path, step: u64, fails: bool) -> Result<bool, Box<dyn Error>> {
                let run = ProfileRun::training("trainer::update", step, "cpu").tag("data", "small");
                let capture = match CaptureRun::begin(destination, run)? {
                    CaptureBegin::AlreadyPublished(receipt) => {
                        assert_eq!(receipt.status, PublicationStatus::AlreadyPublished);
                        return Ok(true);
                    }
                    CaptureBegin::Active(capture) => capture,
                };
                assert_eq!(capture.destination(), destination);
                let session = capture.session();
                {
                    let measured = session.begin_measurement(format!("update/{step}"));
                    session.record_scalar(measured.id(), "loss/total", 0.25)?;
                    drop(session.begin_span("forward", SpanKind::Function));
                }
                let receipt = match fails {
                    true => capture.publish_failed("device lost")?,
                    false => capture.publish()?,
                };
                assert_eq!(receipt.status, PublicationStatus::Published);
                assert!(receipt.verification.files_verified >= 3);
                Ok(false)
            }
        }
    };
}

capturing! { capturing_theirs:
    use candle_graph_v10::{CaptureBegin, CaptureRun, ProfileRun, PublicationStatus, SpanKind};
}

capturing! { capturing_ours:
    use tmrun::capture::{CaptureBegin, CaptureRun, ProfileRun, PublicationStatus, SpanKind};
}

#[test]
fn the_same_program_publishes_the_same_capture_through_either_crate() -> Result<(), Box<dyn Error>>
{
    let folder = tempfile::tempdir()?;
    for (step, fails) in [(3, false), (4, true)] {
        let [ours, theirs] =
            ["ours", "theirs"].map(|name| folder.path().join(format!("{name}-{step}")));
        assert!(!capturing_ours::run(&ours, step, fails)?);
        assert!(!capturing_theirs::run(&theirs, step, fails)?);
        // Each takes both for what was planned, and neither for another step.
        for root in [&ours, &theirs] {
            assert!(
                capturing_ours::run(root, step, fails)?
                    && capturing_theirs::run(root, step, fails)?
            );
            assert!(capturing_ours::run(root, 9, fails).is_err());
            assert!(capturing_theirs::run(root, 9, fails).is_err());
        }
        let [theirs, ours] = [theirs, ours].map(|root| std::fs::read(root.join("trace.jsonl")));
        let (theirs, ours) = (theirs?, ours?);
        let [theirs, ours] =
            [TraceDocument::read(&theirs)?, TraceDocument::read(&ours)?].map(|trace| told(&trace));
        assert!(theirs.len() >= 7, "{theirs:#?}");
        // The root of a failed capture ends with the run: it is not among what the failure left open.
        let root = |ended: bool| {
            let name = "trainer::update";
            format!("{:?}", (name, None::<String>, SpanKind::Function, None::<()>, false, ended))
        };
        assert!(theirs.contains(&root(!fails)) && ours.contains(&root(true)));
        let as_ours = theirs.into_iter().map(|line| match line == root(false) {
            true => root(true),
            false => line,
        });
        assert_eq!(ours, as_ours.collect::<Vec<_>>());
    }
    Ok(())
}
