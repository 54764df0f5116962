//! Bundles that somebody changed: each change is named, by whatever it shows.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use bundles::{gapped, publish_at};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use support::command::tmrun;
use tmrun::bundle::{ANNEX, ProblemKind, RECORDING, SemanticSource, content, semantic, verify};

/// A bundle in a folder of its own.
fn bundle() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    publish_at(&gapped(), Some(2), &root, &mut |_| Ok(())).expect("published");
    (folder, root)
}

fn manifest(root: &Path) -> Value {
    serde_json::from_slice(&fs::read(root.join("bundle.json")).expect("it")).expect("JSON")
}

fn put_manifest(root: &Path, manifest: &Value) {
    fs::write(root.join("bundle.json"), manifest.to_string()).expect("written");
}

/// Changes a declaration.
fn redeclare(root: &Path, path: &str, change: impl FnOnce(&mut Value)) {
    let mut manifest = manifest(root);
    let files = manifest["files"].as_array_mut().expect("files");
    change(files.iter_mut().find(|file| file["path"] == path).expect("the file"));
    put_manifest(root, &manifest);
}

/// Declares a file as it is.
fn declare_as_it_is(root: &Path, path: &str) {
    let bytes = fs::read(root.join(path)).expect("its bytes");
    redeclare(root, path, |file| {
        file["bytes"] = json!(bytes.len());
        file["sha256"] = json!(format!("{:x}", Sha256::digest(&bytes)));
    });
}

type Tamper = fn(&Path);

const TAMPERED: [(ProblemKind, &str, Tamper); 17] = [
    (ProblemKind::NotADirectory, "", |root| fs::remove_dir_all(root).expect("away")),
    (ProblemKind::NoManifest, "bundle.json", |root| {
        fs::remove_file(root.join("bundle.json")).expect("away");
    }),
    (ProblemKind::NoManifest, "bundle.json", |root| {
        fs::rename(root.join("bundle.json"), root.with_extension("json")).expect("moved");
        symlink(root.with_extension("json"), root.join("bundle.json")).expect("a link");
    }),
    (ProblemKind::BadManifest, "bundle.json", |root| {
        put_manifest(root, &json!({"schema": "candle-graph/bundle/2"}));
    }),
    (ProblemKind::UnsafePath, "../report.md", |root| {
        redeclare(root, "report.md", |file| file["path"] = json!("../report.md"));
    }),
    (ProblemKind::DeclaresItself, "bundle.json", |root| {
        redeclare(root, "report.md", |file| file["path"] = json!("bundle.json"));
    }),
    (ProblemKind::DeclaredTwice, "trace.jsonl", |root| {
        redeclare(root, "report.md", |file| file["path"] = json!("trace.jsonl"));
    }),
    (ProblemKind::BadDigest, "report.md", |root| {
        redeclare(root, "report.md", |file| file["sha256"] = json!("sha256:00"));
    }),
    (ProblemKind::SymbolicLink, "report.md", |root| {
        fs::rename(root.join("report.md"), root.with_extension("md")).expect("moved");
        symlink(root.with_extension("md"), root.join("report.md")).expect("a link");
    }),
    (ProblemKind::SpecialFile, "pipe", |root| {
        let made = Command::new("mkfifo").arg(root.join("pipe")).status().expect("it runs");
        assert!(made.success());
    }),
    (ProblemKind::Undeclared, "a/b", |root| {
        fs::create_dir(root.join("a")).expect("a folder");
        fs::write(root.join("a/b"), "mine").expect("written");
    }),
    (ProblemKind::Missing, "report.md", |root| {
        fs::remove_file(root.join("report.md")).expect("away");
    }),
    (ProblemKind::NotAFile, "report.md", |root| {
        fs::remove_file(root.join("report.md")).expect("away");
        fs::create_dir(root.join("report.md")).expect("a folder");
    }),
    (ProblemKind::Size, "report.md", |root| {
        fs::write(root.join("report.md"), "mine").expect("written");
    }),
    (ProblemKind::Sha256, RECORDING, |root| {
        let mut bytes = fs::read(root.join(RECORDING)).expect("its bytes");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(root.join(RECORDING), bytes).expect("written");
    }),
    (ProblemKind::Incomplete, "evidence.json", |root| {
        fs::remove_file(root.join("evidence.json")).expect("away");
        let mut manifest = manifest(root);
        let files = manifest["files"].as_array_mut().expect("files");
        files.retain(|file| file["path"] != "evidence.json");
        put_manifest(root, &manifest);
    }),
    (ProblemKind::RunId, "bundle.json", |root| {
        let mut manifest = manifest(root);
        manifest["run_id"] = json!("another");
        put_manifest(root, &manifest);
    }),
];

#[test]
fn every_change_is_named_and_the_neighbour_refuses_what_its_rules_refuse() {
    for (kind, path, tamper) in TAMPERED {
        let (_folder, root) = bundle();
        tamper(&root);
        let found = verify(&root);
        assert_eq!(found.receipt, None);
        let named = |problem: &&tmrun::bundle::Problem| {
            problem.kind == kind && (problem.path == path || path.is_empty())
        };
        assert!(found.problems.iter().any(|p| named(&p)), "{kind:?}: {:?}", found.problems);
        // What it holds to its content alone, both say the same.
        let theirs = candle_graph_v10::verify_bundle(&root);
        assert_eq!(content(&root).receipt.is_some(), theirs.is_ok(), "{kind:?}: {theirs:?}");

        let output = tmrun(&["verify", &root.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(1), "{kind:?}");
        if root.is_dir() {
            let receipt: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!((&receipt["intact"], &receipt["receipt"]), (&json!(false), &json!(null)));
            let mut problems = receipt["problems"].as_array().expect("problems").iter();
            assert!(problems.any(|problem| problem["kind"] == kind.name()), "{receipt:#}");
        }
    }
}

#[test]
fn every_problem_is_listed_not_the_first_alone() {
    let (_folder, root) = bundle();
    fs::write(root.join("mine"), "mine").expect("written");
    fs::remove_file(root.join("evidence.json")).expect("away");
    fs::write(root.join("report.md"), "mine").expect("written");
    symlink("mine", root.join("link")).expect("a link");
    let mut kinds: Vec<_> = verify(&root).problems.iter().map(|problem| problem.kind).collect();
    kinds.sort();
    use ProblemKind::{Missing, Size, SymbolicLink, Undeclared};
    assert_eq!(kinds, [SymbolicLink, Undeclared, Missing, Size]);
}

#[test]
fn a_digest_in_capitals_is_the_same_one() {
    let (_folder, root) = bundle();
    redeclare(&root, "report.md", |file| {
        file["sha256"] = json!(file["sha256"].as_str().expect("text").to_uppercase());
    });
    assert!(verify(&root).receipt.is_some());
}

/// Changes a file and declares it as it then is.
fn rewrite(root: &Path, path: &str, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(root.join(path)).expect("text");
    let changed = change(text.clone());
    assert_ne!(changed, text);
    fs::write(root.join(path), changed).expect("written");
    declare_as_it_is(root, path);
}

#[test]
fn what_was_changed_and_declared_anew_is_found_by_deriving_it() {
    let changes: [(&str, &str, Tamper); 6] = [
        ("evidence.json", "/health/coverage/spans", |root| {
            rewrite(root, "evidence.json", |text| {
                let mut evidence: Value = serde_json::from_str(&text).expect("JSON");
                evidence["health"]["coverage"]["spans"] = json!(99);
                evidence.to_string()
            });
        }),
        ("evidence.json", "/facts/0/label", |root| {
            rewrite(root, "evidence.json", |text| {
                let mut evidence: Value = serde_json::from_str(&text).expect("JSON");
                evidence["facts"][0]["label"] = json!("mine");
                evidence.to_string()
            });
        }),
        ("trace.jsonl", "/name", |root| {
            let (from, to) = ("\"name\":\"forward\"", "\"name\":\"other\"");
            rewrite(root, "trace.jsonl", |text| text.replace(from, to));
        }),
        (ANNEX, "/refuted/0", |root| {
            rewrite(root, ANNEX, |text| {
                let mut annex: Value = serde_json::from_str(&text).expect("JSON");
                annex["refuted"] = json!([]);
                annex.to_string()
            });
        }),
        ("report.md", "", |root| rewrite(root, "report.md", |text| text.replace("lost", "kept"))),
        ("trace.jsonl", "", |root| {
            // Another step's recording: everything else is of another one.
            let other = root.with_extension("other");
            publish_at(&gapped(), Some(3), &other, &mut |_| Ok(())).expect("published");
            rewrite(root, "trace.jsonl", |_| {
                fs::read_to_string(other.join("trace.jsonl")).expect("text")
            });
        }),
    ];
    for (file, at, change) in changes {
        let (_folder, root) = bundle();
        change(&root);
        let output = tmrun(&["verify", "--semantic", &root.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(1), "{file} {at}");
        let receipt: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if receipt["intact"] == json!(false) {
            // The run is another one: that shows without deriving.
            assert_eq!(receipt["problems"][0]["kind"], "run_id", "{receipt:#}");
            continue;
        }
        let mismatches = semantic(&root).expect("derived").mismatches;
        assert!(mismatches.iter().any(|m| m.file == file && m.at == at), "{mismatches:?}");
        assert_eq!(receipt["semantic"]["status"], "mismatch");
    }
}

#[test]
fn another_form_of_the_same_values_is_the_same() {
    let (_folder, root) = bundle();
    rewrite(&root, "evidence.json", |text| {
        let evidence: Value = serde_json::from_str(&text).expect("JSON");
        evidence.to_string()
    });
    assert_eq!(semantic(&root).expect("derived").mismatches, []);
}

#[test]
fn evidence_of_a_foreign_bundle_is_derived_from_its_trace() {
    let (folder, root) = bundle();
    let foreign = folder.path().join("foreign");
    candle_graph_v10::publish_bundle(&foreign, &root.join("trace.jsonl"), None).expect("theirs");
    assert!(verify(&foreign).receipt.is_some());
    let found = semantic(&foreign).expect("derived");
    assert_eq!((found.source, found.mismatches), (SemanticSource::Trace, vec![]));
    rewrite(&foreign, "evidence.json", |text| {
        let mut evidence: Value = serde_json::from_str(&text).expect("JSON");
        evidence["facts"][0]["value"]["value"] = json!(1);
        evidence.to_string()
    });
    let found = semantic(&foreign).expect("derived");
    let places: Vec<_> = found.mismatches.iter().map(|mismatch| &*mismatch.at).collect();
    assert_eq!(places, ["/facts/0/value/value"]);
}
