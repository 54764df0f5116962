//! The real `candle-graph`'s commands on our bundles, of runs of every kind.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use std::path::{Path, PathBuf};

use bundles::{cases, publish_at};
use candle_graph_v10::cli::trace_cli::{self, QueryOptions, TraceQueryKind as Kind};
use serde_json::{Value, json};

/// What a command writes, read back.
fn answer<E: std::fmt::Display>(
    command: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<Value, String> {
    let out = tempfile::NamedTempFile::new().expect("a file");
    command(out.path()).map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&std::fs::read(out.path()).expect("a file")).expect("JSON"))
}

const KINDS: [Kind; 16] = [
    Kind::Labels,
    Kind::SlowestHost,
    Kind::SlowestDevice,
    Kind::Activations,
    Kind::Heaviest,
    Kind::Memory,
    Kind::Spans,
    Kind::Tensors,
    Kind::TensorStats,
    Kind::Gradients,
    Kind::Capabilities,
    Kind::GpuStatus,
    Kind::GpuCorrelation,
    Kind::GpuPhases,
    Kind::GpuKernels,
    Kind::GpuAttributionGaps,
];

#[test]
fn every_command_of_the_neighbour_answers_of_every_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut planned = Vec::new();
    for (at, case) in cases(folder.path()).into_iter().enumerate() {
        let (name, root) = (case.name, folder.path().join(case.name));
        publish_at(&case.file, case.step, &root, &mut |_| Ok(())).expect("published");
        let verified = answer(|out| trace_cli::run_verify(&root, false, Some(out)));
        assert_eq!(verified.expect(name)["schema"], "candle-graph/verify/1");

        // A graph is what some questions are about; a capture that failed has none.
        let is_valid = answer(|out| trace_cli::run_summary(&root, Some(out), true));
        assert_eq!(is_valid.is_ok(), !["failed", "nan"].contains(&name), "{name}: {is_valid:?}");
        let overview = answer(|out| trace_cli::run_overview(&root, Some(out)));
        let overview = overview.expect(name);
        let run_id = &overview["provenance"]["run_id"];
        for kind in KINDS {
            let options = QueryOptions::default();
            let answered = answer(|out| trace_cli::run_query(&root, kind, &options, Some(out)));
            let needs_graph = matches!(
                kind,
                Kind::SlowestHost
                    | Kind::SlowestDevice
                    | Kind::Heaviest
                    | Kind::Spans
                    | Kind::Tensors
                    | Kind::Gradients
            );
            let expected = is_valid.is_ok() || !needs_graph;
            assert_eq!(answered.is_ok(), expected, "{name}, {}: {answered:?}", kind.as_str());
        }
        let page = folder.path().join(format!("{name}.html"));
        trace_cli::run_view(&root, &page, None).expect(name);
        let page = std::fs::read_to_string(page).expect("a page");
        assert!(run_id.as_str().is_some_and(|id| page.contains(id)), "{name}: {run_id}");
        planned.push(json!({ "capture_step": at + 1, "bundle": name }));
    }

    let campaign: PathBuf = folder.path().join("campaign.json");
    let plan = json!({
        "schema": "candle-graph/campaign/1", "campaign_id": "all", "entrypoint": "example::update",
        "planned": planned,
    });
    std::fs::write(&campaign, plan.to_string()).expect("written");
    let status = answer(|out| trace_cli::run_campaign_status(&campaign, Some(out)));
    assert_eq!(status.expect("a status")["planned"], json!(planned.len()));
    // The second step of a training run is one point of a series.
    let bundles = [folder.path().join("training")];
    let series = answer(|out| trace_cli::run_series(None, &bundles, None, Some(out)));
    assert_eq!(series.expect("a series")["inputs"][0]["capture_step"], json!(2));
}
