//! Comparisons, campaigns and series.

use crate::support::{assert_same_text, assert_same_verdicts, publish, trace, traces};
use candle_graph_v10 as theirs;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tmrun_formats::comparison::{
    COORDINATE, CampaignPlan, CampaignStatus, CaptureState, Comparison, ComparisonCode,
    ComparisonVerdict, METRIC, PlanFault, Series,
};

const RUN: &str = "run-27487-1795982966591676842";

/// `count` bundles of one trace, each of a run of its own.
fn cohort(at: &Path, implementation: &str, count: usize) -> Vec<PathBuf> {
    let bundle = |index: usize| {
        let bundle = at.join(format!("{implementation}-{index}"));
        publish(&bundle, &trace("train.trace.jsonl"), |text| {
            let (meta, rest) = text.split_once('\n').expect("a meta line");
            let mut meta: Value = serde_json::from_str(meta).expect("meta");
            assert_eq!(meta["run_id"], RUN);
            meta["run_id"] = json!(format!("{implementation}-{index}"));
            meta["comparison_identity"]["implementation_id"] = json!(implementation);
            format!("{meta}\n{rest}")
        });
        bundle
    };
    (0..count).map(bundle).collect()
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("text")
}

#[test]
fn an_eligible_comparison_is_the_neighbours() {
    let at = tempfile::tempdir().expect("folder");
    let (before, after) = (cohort(at.path(), "before", 5), cohort(at.path(), "after", 5));
    let text = pretty(&theirs::compare_verified_bundles(&before, &after).expect("compared"));
    assert_same_text::<Comparison<'static>>(&text, "comparison");
    let labels = [("/schema", "candle-graph/comparison/6")];
    assert_same_verdicts::<Comparison<'static>, theirs::ReplicatedComparison>(&text, &labels);

    let comparison: Comparison<'_> = serde_json::from_str(&text).expect("comparison");
    assert_eq!(comparison.reasons, []);
    assert_eq!(comparison.verdict, ComparisonVerdict::Inconclusive);
    assert!(comparison.confidence_interval.is_some() && comparison.identity.is_some());
    assert!(!comparison.tensor_stats.matched.is_empty());
    assert_eq!(comparison.metric, METRIC);
}

#[test]
fn comparisons_of_every_trace_with_every_other_are_the_neighbours() {
    let documents: Vec<_> =
        traces().iter().map(|path| theirs::parse_trace(path).expect("trace")).collect();
    let mut seen = Vec::new();
    for pair in documents.windows(2) {
        for (left, right) in [(&pair[..1], &pair[1..]), (&pair[1..], pair), (&[], &pair[..1])] {
            let text = pretty(&theirs::compare_unverified_traces(left, right));
            assert_same_text::<Comparison<'static>>(&text, "comparison");
            let comparison: Comparison<'_> = serde_json::from_str(&text).expect("comparison");
            assert_eq!(comparison.verdict, ComparisonVerdict::Ineligible);
            seen.extend(comparison.reasons.into_iter().map(|reason| reason.code));
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() >= 8 && seen.len() < ComparisonCode::ALL.len(), "{seen:?}");
}

#[test]
fn the_reason_codes_are_all_that_the_neighbour_knows() {
    for &code in ComparisonCode::ALL {
        let theirs: theirs::ComparisonReasonCode =
            serde_json::from_value(json!(code)).unwrap_or_else(|error| panic!("{code}: {error}"));
        assert_eq!(json!(theirs), json!(code.name()));
    }
    let unknown = serde_json::from_value::<theirs::ComparisonReasonCode>(json!("no_such_code"));
    let error = unknown.expect_err("unknown").to_string();
    assert_eq!(error.matches('`').count() / 2 - 1, ComparisonCode::ALL.len(), "{error}");
}

#[test]
fn a_campaign_and_what_became_of_it_are_the_neighbours() {
    let at = tempfile::tempdir().expect("folder");
    publish(&at.path().join("done"), &trace("train.trace.jsonl"), str::to_owned);
    publish(&at.path().join("failed"), &trace("train.trace.jsonl"), |text| {
        let terminal = r#""outcome":"complete""#;
        assert!(text.contains(terminal));
        text.replace(terminal, r#""outcome":"failed","reason":"no memory""#)
            .replace(r#""capture_step":3"#, r#""capture_step":4"#)
    });
    publish(&at.path().join("other"), &trace("ok-op.jsonl"), str::to_owned);
    fs::create_dir(at.path().join("broken")).expect("folder");
    let planned = ["done", "failed", "other", "broken", "missing"];
    let planned: Vec<_> = planned
        .iter()
        .zip(3..)
        .map(|(bundle, step)| json!({"capture_step": step, "bundle": bundle}))
        .collect();
    let plan: theirs::CampaignManifest = serde_json::from_value(json!({
        "schema": "candle-graph/campaign/1", "campaign_id": "c", "entrypoint": "toy::train_step", "planned": planned,
    }))
    .expect("plan");
    let text = pretty(&plan);
    assert_same_text::<CampaignPlan<'static>>(&text, "plan");
    let labels = [("/schema", "candle-graph/campaign/1")];
    assert_same_verdicts::<CampaignPlan<'static>, theirs::CampaignManifest>(&text, &labels);

    let path = at.path().join("campaign.json");
    fs::write(&path, text).expect("written");
    let text = pretty(&theirs::campaign_status(&path).expect("status"));
    assert_same_text::<CampaignStatus<'static>>(&text, "status");
    let labels = [("/schema", "candle-graph/campaign-status/1")];
    assert_same_verdicts::<CampaignStatus<'static>, theirs::CampaignStatus>(&text, &labels);
    let status: CampaignStatus<'_> = serde_json::from_str(&text).expect("status");
    let states: Vec<_> = status.captures.iter().map(|capture| &capture.state).collect();
    assert!(
        matches!(
            states[..],
            [
                CaptureState::Published { .. },
                CaptureState::FailedRun { reason: Some(_), .. },
                CaptureState::IdentityMismatch { .. },
                CaptureState::VerificationFailed { .. },
                CaptureState::Missing,
            ]
        ),
        "{states:?}"
    );
    for state in ["missing", "published", "failed_run", "verification_failed", "identity_mismatch"]
    {
        let text = pretty(
            &json!({"state": state, "run_id": "r", "reason": null, "manifest_sha256": "s", "message": "m"}),
        );
        assert_same_verdicts::<CaptureState<'static>, theirs::CaptureState>(&text, &[]);
    }
}

#[test]
fn a_plan_that_cannot_be_followed_is_refused_as_the_neighbour_does() {
    let verdict = |name: &str, entrypoint: &str, planned: Value| {
        let plan = json!({
            "schema": "candle-graph/campaign/1", "campaign_id": name, "entrypoint": entrypoint, "planned": planned,
        });
        let ours: CampaignPlan<'_> = serde_json::from_value(plan.clone()).expect("plan");
        let theirs: theirs::CampaignManifest = serde_json::from_value(plan).expect("plan");
        assert_eq!(ours.check().is_ok(), theirs.validate().is_ok(), "{ours:?}");
        ours.check()
    };
    let capture = |step: u64, bundle: &str| json!({"capture_step": step, "bundle": bundle});
    let one = json!([capture(0, "a")]);
    assert_eq!(verdict("c", "e", one.clone()), Ok(()));
    assert_eq!(
        verdict(" \u{a0}", "e", one.clone()),
        Err(PlanFault::Blank { field: "campaign_id" })
    );
    assert_eq!(verdict("c", "", one), Err(PlanFault::Blank { field: "entrypoint" }));
    assert_eq!(verdict("c", "e", json!([])), Err(PlanFault::Empty));
    let twice = json!([capture(1, "a"), capture(1, "b")]);
    assert_eq!(verdict("c", "e", twice), Err(PlanFault::StepTwice { capture_step: 1 }));
    let twice = json!([capture(1, "a"), capture(2, "a")]);
    assert_eq!(verdict("c", "e", twice), Err(PlanFault::BundleTwice { bundle: "a".into() }));
    for path in ["", "/a", "../a", "a/..", "./a", "a\\b", "a/./b", "a//b", "a/"] {
        let fault = verdict("c", "e", json!([capture(1, path)]));
        assert!(matches!(fault, Ok(()) | Err(PlanFault::Path { .. })), "{fault:?}");
    }
}

#[test]
fn a_series_is_the_neighbours() {
    let at = tempfile::tempdir().expect("folder");
    let bundles: Vec<_> = (3..6)
        .map(|step: u64| {
            let bundle = at.path().join(format!("step-{step}"));
            publish(&bundle, &trace("train.trace.jsonl"), |text| {
                text.replace(r#""capture_step":3"#, &format!(r#""capture_step":{step}"#))
            });
            bundle
        })
        .collect();
    for prefix in [None, Some("vb/"), Some("no such label")] {
        let text = pretty(&theirs::build_series(&bundles, prefix).expect("series"));
        assert_same_text::<Series<'static>>(&text, "series");
        let labels = [("/schema", "candle-graph/series/1")];
        assert_same_verdicts::<Series<'static>, theirs::SeriesReport>(&text, &labels);
        let series: Series<'_> = serde_json::from_str(&text).expect("series");
        assert_eq!((series.inputs.len(), series.coordinate.as_ref()), (3, COORDINATE));
        assert_eq!(series.gradients.is_empty(), prefix == Some("no such label"));
        assert_eq!(series.tensor_stats.is_empty(), prefix.is_some());
    }
}
