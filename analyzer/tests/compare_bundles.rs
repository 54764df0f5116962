//! Bundles of ours, compared and made a series of: by us and by the neighbour, with one answer.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use candle_graph_v10 as theirs;
use serde_json::Value;
use tmrun::comparison::{compare, series, verified};
use tmrun_formats::comparison::ComparisonCode;

fn publish(at: &Path, name: &str, file: &[u8], step: u64) -> PathBuf {
    let root = at.join(name);
    let published = bundles::publish_at(file, Some(step), &root, &mut |_| Ok(()));
    published.unwrap_or_else(|error| panic!("{name}: {error}"));
    root
}

#[test]
fn a_comparison_that_is_refused_for_a_gap_names_it() {
    let at = tempfile::tempdir().expect("a folder");
    let whole = [publish(at.path(), "whole", &bundles::steps(), 2)];
    let gapped = [publish(at.path(), "gapped", &bundles::gapped(), 2)];
    let ((before, a), (after, b)) = (
        tmrun::comparison::bundles(&whole).expect("a run"),
        tmrun::comparison::bundles(&gapped).expect("a run"),
    );
    let ours = compare(&before, &after, verified(a, b));
    let theirs = theirs::compare_verified_bundles(&whole, &gapped).expect("compared");
    let codes = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("\"code\""));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(
        codes(serde_json::to_string_pretty(&ours).expect("JSON")),
        codes(serde_json::to_string_pretty(&theirs).expect("JSON"))
    );
    let of = ComparisonCode::CaptureSemanticsMismatch;
    let reason = ours.reasons.iter().find(|reason| reason.code == of).expect("it differs");
    for said in ["candidate run 1", "capture_contract.operations", "refuted in", "lost (corrupt)"] {
        assert!(reason.message.contains(said), "{said} in {}", reason.message);
    }
}

#[test]
fn steps_of_one_recording_are_a_series() {
    let at = tempfile::tempdir().expect("a folder");
    let file = bundles::steps();
    let roots: Vec<_> = (1..=3)
        .rev()
        .map(|step| publish(at.path(), &format!("step-{step}"), &file, step))
        .collect();
    let ours = series(&roots, None).expect("a series");
    assert_eq!(ours.inputs.len(), 3);
    assert!(ours.outer_wall_time.iter().all(|point| point.outer_wall_time_ns.is_some()));
    assert!(!ours.tensor_stats.is_empty());
    let theirs = theirs::build_series(&roots, None).expect("a series");
    assert_eq!(
        serde_json::to_string_pretty(&ours).expect("JSON"),
        serde_json::to_string_pretty(&theirs).expect("JSON")
    );
}

#[test]
fn runs_of_every_kind_are_compared_and_made_a_series_of_as_the_neighbour_does() {
    let at = tempfile::tempdir().expect("a folder");
    let cases = bundles::cases(at.path());
    let roots: Vec<_> = cases.iter().map(|case| (case.name, at.path().join(case.name))).collect();
    for (case, (name, root)) in cases.iter().zip(&roots) {
        let published = bundles::publish_at(&case.file, case.step, root, &mut |_| Ok(()));
        published.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let (mut codes, mut series_made) = (BTreeSet::new(), 0);
    for (before, a) in &roots {
        for (after, b) in &roots {
            let both = format!("{before}, {after}");
            let (a, b) = (std::slice::from_ref(a), std::slice::from_ref(b));
            let runs = |of| tmrun::comparison::bundles(of).expect("a run");
            let ((baseline, of_a), (candidate, of_b)) = (runs(a), runs(b));
            let ours = compare(&baseline, &candidate, verified(of_a, of_b));
            let ours = serde_json::to_value(&ours).expect("JSON");
            let theirs = theirs::compare_verified_bundles(a, b).expect("compared");
            let theirs = serde_json::to_value(&theirs).expect("JSON");
            assert_eq!(without_messages(&ours), without_messages(&theirs), "{both}");
            let reasons = ours["reasons"].as_array().expect("reasons").iter();
            codes.extend(reasons.map(|reason| reason["code"].to_string()));

            let roots = [a, b].concat();
            let ours = series(&roots, None).map(|it| serde_json::to_value(it).expect("JSON"));
            let theirs = theirs::build_series(&roots, None);
            let theirs = theirs.map(|it| serde_json::to_value(it).expect("JSON"));
            assert_eq!(ours.as_ref().ok(), theirs.as_ref().ok(), "{both}");
            series_made += u32::from(ours.is_ok());
        }
        let one = std::slice::from_ref(a);
        let ours = serde_json::to_value(series(one, None).expect("a series")).expect("JSON");
        let theirs = theirs::build_series(one, None).expect("a series");
        assert_eq!(ours, serde_json::to_value(theirs).expect("JSON"), "{before}");
    }
    println!("{codes:?}; {series_made} series of two");
    for code in ["incomplete_capture", "capture_semantics_mismatch", "insufficient_runs"] {
        assert!(codes.contains(&format!("{code:?}")), "{code} in {codes:?}");
    }
}

fn without_messages(comparison: &Value) -> Value {
    let mut comparison = comparison.clone();
    for reason in comparison["reasons"].as_array_mut().expect("reasons") {
        reason["message"] = Value::Null;
    }
    comparison
}
