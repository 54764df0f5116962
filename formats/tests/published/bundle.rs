//! `bundle.json` and the receipts.

use crate::support::{assert_same_text, assert_same_verdicts, publish, trace};
use candle_graph_v10 as theirs;
use candle_graph_v10::cli::trace_cli::{run_report, run_verify};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tmrun_formats::bundle::{
    BundleManifest, BundleReceipt, MANIFEST, ManifestFault, PublicationReceipt, PublicationStatus,
    SemanticStatus, VerifyReport,
};

const BUNDLE: (&str, &str) = ("/schema", "candle-graph/bundle/1");

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("text")
}

#[test]
fn a_manifest_is_the_neighbours() {
    let at = tempfile::tempdir().expect("folder");
    let bundle = at.path().join("b");
    publish(&bundle, &trace("train.trace.jsonl"), str::to_owned);
    let text = read(&bundle.join(MANIFEST));
    assert_same_text::<BundleManifest<'static>>(&text, "manifest");
    assert_same_verdicts::<BundleManifest<'static>, theirs::BundleManifest>(&text, &[BUNDLE]);
    let manifest: BundleManifest<'_> = serde_json::from_str(&text).expect("manifest");
    assert_eq!(manifest.check(), Ok(()));
    let mut named: Vec<_> = manifest.files.iter().map(|file| file.path.as_ref()).collect();
    named.push(MANIFEST);
    named.sort_unstable();
    let entries = fs::read_dir(&bundle).expect("bundle").map(|entry| entry.expect("entry"));
    let mut there: Vec<_> =
        entries.map(|entry| entry.file_name().into_string().expect("text")).collect();
    there.sort_unstable();
    assert_eq!(named, there, "every file is in the manifest");
}

#[test]
fn receipts_are_the_neighbours() {
    let at = tempfile::tempdir().expect("folder");
    let (bundle, output) = (at.path().join("b"), at.path().join("receipt.json"));
    run_report(&trace("train.trace.jsonl"), None, &bundle, Some(&output)).expect("report");
    let publication = read(&output);
    let verification =
        serde_json::to_string_pretty(&theirs::verify_bundle(&bundle).expect("receipt"));
    let verification = verification.expect("text");

    assert_same_text::<PublicationReceipt>(&publication, "publication");
    assert_same_text::<BundleReceipt<'static>>(&verification, "verification");
    let labels = [
        ("/schema", "candle-graph/publication/1"),
        ("/verification/schema", "candle-graph/bundle-verification/1"),
        ("/verification/bundle_schema", BUNDLE.1),
    ];
    assert_same_verdicts::<PublicationReceipt, theirs::PublicationReceipt>(&publication, &labels);
    let labels = [("/schema", "candle-graph/bundle-verification/1"), ("/bundle_schema", BUNDLE.1)];
    assert_same_verdicts::<BundleReceipt<'static>, theirs::BundleVerificationReceipt>(
        &verification,
        &labels,
    );

    let receipt: PublicationReceipt = serde_json::from_str(&publication).expect("receipt");
    assert_eq!(receipt.status, PublicationStatus::Published);
    assert_eq!(receipt.verification, serde_json::from_str(&verification).expect("receipt"));
}

#[test]
fn what_verify_prints_is_the_neighbours() {
    let at = tempfile::tempdir().expect("folder");
    let (bundle, output) = (at.path().join("b"), at.path().join("verify.json"));
    publish(&bundle, &trace("ok-op.jsonl"), str::to_owned);
    for semantic in [false, true] {
        run_verify(&bundle, semantic, Some(&output)).expect("verified");
        let text = read(&output);
        assert_same_text::<VerifyReport<'static>>(&text, "verify");
        let report: VerifyReport<'_> = serde_json::from_str(&text).expect("report");
        let status = report.semantic.map(|semantic| semantic.status);
        assert_eq!(status, semantic.then_some(SemanticStatus::RederivedMatch));
        assert_eq!(report.tool.package, "candle-graph");
    }
}

/// The neighbour follows a manifest only together with the directory: what it says of the declarations
/// is known by its words.
#[test]
fn a_declaration_that_cannot_be_followed_is_refused_as_the_neighbour_does() {
    let at = tempfile::tempdir().expect("folder");
    let digest = "0".repeat(64);
    let verdict = |files: &Value| {
        let manifest = json!({"schema": BUNDLE.1, "run_id": "r", "files": files});
        fs::write(at.path().join(MANIFEST), manifest.to_string()).expect("written");
        let error = theirs::verify_bundle(at.path()).expect_err("no such file").to_string();
        let ours: BundleManifest<'_> = serde_json::from_value(manifest).expect("manifest");
        let words = ["unsafe or reserved", "more than once", "invalid SHA-256"];
        assert_eq!(
            ours.check().is_err(),
            words.iter().any(|word| error.contains(word)),
            "{files}: {error}"
        );
        ours.check()
    };
    let paths = [
        "a",
        "a/b",
        "a//b",
        "a/./b",
        "./a",
        "a/",
        "a/.",
        "/a",
        "//a",
        "..",
        "../a",
        "a/../b",
        "a/..",
        ".",
        "",
        " ",
        "\\a",
        "a\\b",
        "c:a",
        "bundle.json",
        "a/bundle.json",
        "...",
        "a\0b",
        "ä",
    ];
    for path in paths {
        let _ = verdict(&json!([{"path": path, "bytes": 0, "sha256": digest}]));
    }
    for wrong in [
        "",
        "0",
        &"0".repeat(63),
        &"0".repeat(65),
        &"g".repeat(64),
        &"ä".repeat(32),
        &"Aa".repeat(32),
    ] {
        let _ = verdict(&json!([{"path": "a", "bytes": 0, "sha256": wrong}]));
    }
    let file = json!({"path": "a", "bytes": 0, "sha256": digest});
    assert_eq!(verdict(&json!([file, file])), Err(ManifestFault::Twice { path: "a".into() }));
    let itself = json!([{"path": MANIFEST, "bytes": 0, "sha256": digest}]);
    assert_eq!(verdict(&itself), Err(ManifestFault::Itself));
}
