//! The real `candle-graph`'s commands on our bundles, of runs of every kind.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;
#[path = "support/words.rs"]
mod words;

use std::path::{Path, PathBuf};

use bundles::{cases, publish_at};
use candle_graph_v10::cli::trace_cli::{self, QueryOptions, TraceQueryKind as Kind};
use serde_json::{Value, json};
use support::command::tmrun;
use words::without_reasons;

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
    let mut rows = 0;
    for case in cases(folder.path()) {
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
            let Ok(theirs) = answered else { continue };
            // They read what is published, and we derive it again.
            let ours = answered_by_us(&root, kind);
            let (ours, theirs) = (without_reasons(ours), without_reasons(theirs["result"].clone()));
            if (name, kind.as_str()) == ("nan", "labels") {
                // Of a graph whose gradients alone are wrong they know nothing.
                assert!(ours["total"].as_u64() > theirs["total"].as_u64(), "{ours}");
                continue;
            }
            assert_eq!(ours, theirs, "{name}, {}", kind.as_str());
            rows += theirs["rows"].as_array().map_or(0, Vec::len);
        }
        let page = folder.path().join(format!("{name}.html"));
        trace_cli::run_view(&root, &page, None).expect(name);
        let page = std::fs::read_to_string(page).expect("a page");
        assert!(run_id.as_str().is_some_and(|id| page.contains(id)), "{name}: {run_id}");
        let status = planned(&root, &overview["provenance"]);
        let state = &status["captures"][0]["state"];
        let expected = if name == "failed" { "failed_run" } else { "published" };
        assert_eq!((&state["state"], &state["run_id"]), (&json!(expected), run_id), "{name}");
        assert_eq!(status["captures"][1]["state"]["state"], "missing");
        let ours = tmrun(&["campaign-status", "--json", &plan_of(&root).to_string_lossy()]);
        let ours: Value = serde_json::from_slice(&ours.stdout).expect("JSON");
        assert_eq!(ours, status, "{name}");
    }
    assert!(rows > 20, "{rows}");
}

fn plan_of(root: &Path) -> PathBuf {
    root.with_extension("plan.json")
}

/// What they say of a campaign of this capture, and of another one that is not there.
fn planned(root: &Path, run: &Value) -> Value {
    let step = run["capture_step"].as_u64().expect("a step");
    let plan = json!({
        "schema": "candle-graph/campaign/1", "campaign_id": "all", "entrypoint": run["entrypoint"],
        "planned": [
            { "capture_step": step, "bundle": root.file_name().expect("a name").to_str() },
            { "capture_step": step + 1, "bundle": "not-there" },
        ],
    });
    std::fs::write(plan_of(root), plan.to_string()).expect("written");
    let status = answer(|out| trace_cli::run_campaign_status(&plan_of(root), Some(out)));
    status.expect("a status")
}

/// Our answer, but for what they have no place for.
fn answered_by_us(root: &Path, kind: Kind) -> Value {
    let output = tmrun(&["query", &root.to_string_lossy(), "--kind", kind.as_str()]);
    let mut answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut result = answer["result"].take();
    if let Some(result) = result.as_object_mut() {
        result.remove("non_finite");
    }
    result
}
