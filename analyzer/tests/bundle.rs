//! Bundles: what is in them, and what the real `candle-graph` says of them.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;
#[path = "support/traces/mod.rs"]
mod traces;

use std::path::Path;

use bundles::{Case, cases, files, publish_at};
use candle_graph_v10 as neighbour;
use serde_json::{Value, json as of};
use support::Builder;
use support::record::{scalar_in, span_in, step};
use tmrun::bundle::{ANNEX, Annex, RECORDING, content, semantic, verify};
use tmrun::scan::Recording;
use tmrun_formats::bundle::PublicationStatus;
use tmrun_formats::evidence::Evidence;
use traces::neighbour::{difference, without_prose};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// Publishes every case, and hands each on with its directory.
fn each(mut then: impl FnMut(&Case, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    for case in cases(folder.path()) {
        let root = folder.path().join(case.name);
        let published = publish_at(&case.file, case.step, &root, &mut |_| Ok(()));
        let published = published.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(published.receipt.status, PublicationStatus::Published);
        then(&case, &root);
    }
}

#[test]
fn the_neighbour_accepts_every_bundle() {
    each(|case, root| {
        let theirs = neighbour::verify_bundle(root);
        let theirs = theirs.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
        let ours = content(root).receipt.expect("no problems");
        let ours_as_theirs = serde_json::to_value(&ours).expect("JSON");
        assert_eq!(ours_as_theirs, serde_json::to_value(&theirs).expect("JSON"), "{}", case.name);
        let packet = neighbour::cli::trace_cli::load_evidence(root);
        let packet = packet.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
        assert_eq!(packet.provenance.run_id, theirs.run_id);
    });
}

#[test]
fn the_evidence_is_what_the_neighbour_derives_from_the_trace() {
    each(|case, root| {
        let theirs = neighbour::build_evidence(&root.join("trace.jsonl"), None);
        let theirs = theirs.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
        let theirs = without_prose(serde_json::to_value(theirs).expect("JSON"));
        let ours = without_prose(json(&root.join("evidence.json")));
        assert_eq!(difference(&ours, &theirs), None, "{}", case.name);
    });
}

#[test]
fn evidence_is_written_as_the_neighbour_writes_it() {
    each(|case, root| {
        let text = std::fs::read_to_string(root.join("evidence.json")).expect("text");
        let ours: Evidence<'_> = serde_json::from_str(&text).expect("evidence");
        let again = serde_json::to_string_pretty(&ours).expect("JSON") + "\n";
        assert_eq!(text, again, "{}", case.name);
        let theirs = neighbour::cli::trace_cli::load_evidence(root).expect("evidence");
        let keys = |text: &str| -> Vec<String> {
            let keys = text.lines().filter(|line| line.starts_with("  \""));
            keys.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
        };
        let theirs = serde_json::to_string_pretty(&theirs).expect("JSON") + "\n";
        assert_eq!(keys(&text), keys(&theirs), "{}", case.name);
    });
}

#[test]
fn what_a_bundle_carries_bundles_to_the_same_bytes() {
    each(|case, root| {
        let carried = std::fs::read(root.join(RECORDING)).expect("the recording");
        let recording = Recording::open(&carried, RECORDING).expect("a header");
        assert_eq!(recording.verify(), [], "{}", case.name);
        let again = root.with_extension("again");
        publish_at(&carried, case.step, &again, &mut |_| Ok(())).expect("published");
        let (first, second) = (files(root), files(&again));
        assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
        for (name, bytes) in &first {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(
                bytes == &second[name],
                "{}: {name}:\n{}\n{}",
                case.name,
                text(bytes),
                text(&second[name])
            );
        }
    });
}

#[test]
fn what_is_derived_once_more_is_the_same() {
    each(|case, root| {
        let checked = verify(root);
        assert!(checked.receipt.is_some(), "{}: {:?}", case.name, checked.problems);
        let found = semantic(root).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(found.mismatches, [], "{}", case.name);
    });
}

#[test]
fn the_keys_of_the_annex_are_those_of_its_page_in_their_order() {
    const PAGE: &str = include_str!("../../docs/FORMAT.md");
    let (_, page) = PAGE.split_once("\n## 11. `tmrun.json`\n").expect("its section");
    let page = page.split("\n## ").next().expect("its text");
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let documented: Vec<_> = cells.flat_map(|cell| cell.split(", ")).collect();
    let documented: Vec<_> = documented.iter().map(|key| key.trim_matches('`')).collect();
    each(|case, root| {
        let text = std::fs::read_to_string(root.join(ANNEX)).expect("text");
        let keys = text.lines().filter_map(|line| line.strip_prefix("  \"")?.split('"').next());
        assert_eq!(keys.collect::<Vec<_>>(), documented, "{}", case.name);
    });
}

/// A span and a value that were recorded within one that is lost.
#[test]
fn what_hangs_elsewhere_than_was_recorded_is_listed_with_both_places() {
    let inner = span_in(2, (1_300, 1_400), 3, 1);
    let records = [step(1_000, 1, false), inner, scalar_in(2, 1_450, 2, 0.5)];
    let file = Builder::started().records(0, &records).skip(0, 2);
    let file = file.records(0, &[step(1_900, 1, true)]);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    publish_at(&file.finish(), Some(1), &root, &mut |_| Ok(())).expect("published");
    let annex = json(&root.join(ANNEX));
    let lost = "s00.0000000002";
    let span = of!([{ "id": "s00.0000000003", "recorded": lost, "parent": "step" }]);
    assert_eq!((&annex["moved_spans"], &annex["more_moved_spans"]), (&span, &Value::from(0)));
    let facts = of!([{ "lane": 0, "recorded": lost, "span_id": "step", "facts": 1 }]);
    assert_eq!((&annex["moved_facts"], &annex["more_moved_facts"]), (&facts, &Value::from(0)));
    let report = std::fs::read_to_string(root.join("report.md")).expect("a report");
    assert!(report.contains("1 span and 1 fact hang elsewhere than was recorded."), "{report}");
}

#[test]
fn a_capture_that_failed_for_its_gradients_has_graph_and_origin_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = bundles::failed_for_nan_gradient(&folder.path().join("run.tmrun"));
    let root = folder.path().join("bundle");
    publish_at(&file, None, &root, &mut |_| Ok(())).expect("it is published");
    let evidence = json(&root.join("evidence.json"));
    assert_eq!(evidence["health"]["capture_complete"], false);
    assert!(evidence.get("graph").is_none());
    let text = std::fs::read_to_string(root.join(ANNEX)).expect("text");
    let annex: Annex<'_> = serde_json::from_str(&text).expect("an annex");
    let graph = annex.graph.as_ref().expect("the graph that the evidence has not");
    assert!(graph.spans.iter().any(|span| span.name == "backward"));
    assert_eq!(annex.origin.as_ref().map(|value| &*value.label), Some("loss"));
    let semantic = semantic(&root).expect("it can be derived");
    assert_eq!(semantic.mismatches, []);

    // What is asked of it has both: where it was, and when.
    let ask = |kind: &str| {
        let root = root.to_str().expect("text");
        let output = support::command::tmrun(&["query", root, "--kind", kind]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{kind}: {error}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    assert_eq!(ask("slowest-host")["result"]["entrypoint"], "example::update");
    let gradient = ask("gradients")["result"]["non_finite"]["rows"][0].clone();
    let backward = graph.spans.iter().find(|span| span.name == "backward").expect("the span");
    assert_eq!((&gradient["key"], &gradient["span_id"]), (&"w".into(), &of!(backward.id)));
    assert!(gradient["timestamp_ns"].as_u64() > Some(0), "{gradient}");
    let loss = ask("tensor-stats")["result"]["non_finite"]["rows"][0].clone();
    assert_eq!(loss["label"], "loss");
    assert!(loss["span_id"].is_string() && loss["timestamp_ns"].is_u64(), "{loss}");
}

#[test]
fn what_no_format_of_the_neighbour_has_a_place_for_is_in_the_annex() {
    each(|case, root| {
        let text = std::fs::read_to_string(root.join(ANNEX)).expect("text");
        let annex: Annex<'_> = serde_json::from_str(&text).expect("an annex");
        let again = serde_json::to_string_pretty(&annex).expect("JSON") + "\n";
        assert_eq!(text, again, "{}", case.name);
        assert_eq!(annex.region.step, case.step);
        let lost: Vec<_> = annex.gaps.iter().filter(|gap| gap.class == "lost").collect();
        let report = std::fs::read_to_string(root.join("report.md")).expect("a report");
        match case.name {
            "training" => {
                assert_eq!(lost, Vec::<&_>::new());
                assert_eq!((annex.carried_storages, annex.carried_bytes), (2, 72));
                assert_eq!(annex.left_out["open_spans"], 1);
                assert!(annex.recorder.record_ns.is_some_and(|ns| ns > 0.0));
                assert!(annex.recorder.lanes.iter().all(|lane| lane.dropped_records == 0));
                assert_eq!(annex.levels.first().map(|level| level.level), Some(3));
                let value = &annex.non_finite[0];
                assert_eq!((value.nan, value.positive_infinities), (1, Some(1)));
                assert_eq!(value.negative_infinities, Some(0));
                assert!(report.contains("forward.out"), "{report}");
            }
            "inference" => {
                let value = annex.origin.as_ref().expect("a value that is not finite");
                assert_eq!((&*value.label, value.positive_infinities), ("temperature", Some(1)));
                assert_eq!(annex.region.measured, "span");
            }
            "failed" => assert!(report.contains("the loss is not finite"), "{report}"),
            "gapped" | "salvaged" => {
                let records: u64 = lost.iter().map(|gap| gap.records).sum();
                assert_eq!(records, 2, "{:?}", annex.gaps);
                assert!(lost.iter().all(|gap| gap.reason == "corrupt"), "{:?}", annex.gaps);
                let planes: Vec<_> = annex.refuted.iter().map(|r| &*r.plane).collect();
                assert_eq!(planes, ["operations", "tensors"]);
                assert!(report.contains("promised more than was kept"), "{report}");
            }
            "nan" => {
                let evidence = json(&root.join("evidence.json"));
                assert_eq!(evidence["health"]["structurally_valid"], false);
                assert!(evidence.get("graph").is_none());
                let graph = annex.graph.as_ref().expect("the graph that the evidence has not");
                assert!(graph.spans.iter().any(|span| span.name == "backward"));
                assert!(annex.gradient_contract.is_none(), "the trace is held to it");
                let labels: Vec<_> = annex.non_finite.iter().map(|v| &*v.label).collect();
                assert_eq!(labels, ["loss", "vb/w"], "where it came from is first");
            }
            other => panic!("{other}"),
        }
    });
}
