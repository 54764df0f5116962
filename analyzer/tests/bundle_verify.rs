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
use tmrun::bundle::{
    ANNEX, ProblemKind, PublishFault, RECORDING, SemanticSource, content, semantic, verify,
};

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

const TAMPERED: &[(ProblemKind, &str, Tamper)] = &[
    (ProblemKind::NotADirectory, "", |root| fs::remove_dir_all(root).expect("away")),
    (ProblemKind::NoManifest, "bundle.json", |root| {
        fs::remove_file(root.join("bundle.json")).expect("away");
    }),
    (ProblemKind::NoManifest, "bundle.json", |root| {
        fs::rename(root.join("bundle.json"), root.with_file_name("moved")).expect("moved");
        symlink(root.with_file_name("moved"), root.join("bundle.json")).expect("a link");
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
    // From here on every byte is as the manifest declares it.
    (ProblemKind::BadTrace, "trace.jsonl", |root| {
        rewrite(root, "trace.jsonl", |text| format!("{}\nnot json\n", first_line(&text)));
    }),
    (ProblemKind::BadTrace, "trace.jsonl", |root| {
        rewrite(root, "trace.jsonl", |text| first_line(&text).to_owned());
    }),
    (ProblemKind::BadTrace, "trace.jsonl", |root| {
        rewrite(root, "trace.jsonl", |text| text[..text.len() - 9].to_owned());
    }),
    (ProblemKind::BadEvidence, "evidence.json", |root| {
        rewrite(root, "evidence.json", |_| "not json".to_owned());
    }),
    (ProblemKind::BadEvidence, "evidence.json", |root| {
        rewrite(root, "evidence.json", |text| text.replace("/evidence/5", "/evidence/4"));
    }),
    (ProblemKind::BadEvidence, "evidence.json", |root| {
        rewrite(root, "evidence.json", |text| text.replace("\"spans\": ", "\"spans\": -"));
    }),
    (ProblemKind::Provenance, "evidence.json", |root| {
        rewrite(root, "evidence.json", |text| text.replace("trainer::update", "another"));
    }),
];

fn first_line(text: &str) -> &str {
    text.lines().next().expect("a line")
}

#[test]
fn every_change_is_named_and_the_neighbour_refuses_what_its_rules_refuse() {
    for &(kind, path, tamper) in TAMPERED {
        let (_folder, root) = bundle();
        tamper(&root);
        let found = verify(&root);
        assert_eq!(found.receipt, None);
        let named = |problem: &&tmrun::bundle::Problem| {
            problem.kind == kind && (problem.path == *path || path.is_empty())
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

/// The neighbour's word for a retry: whether what is there is the planned capture, published.
fn they_find_it_published(root: &Path, planned: &Value) -> bool {
    let text = |field: &str| planned[field].as_str().expect("text").to_owned();
    let run = candle_graph_v10::ProfileRun::training(text("entrypoint"), 2, text("device"));
    let run = run.correlation_id(text("correlation_id"));
    let found = candle_graph_v10::reconcile_published_bundle(root, &run);
    found.is_ok_and(|found| found.is_some())
}

#[test]
fn what_was_changed_is_no_publication_for_a_retry_either() {
    let (_folder, root) = bundle();
    let trace = fs::read_to_string(root.join("trace.jsonl")).expect("text");
    let planned: Value = serde_json::from_str(first_line(&trace)).expect("JSON");
    assert!(they_find_it_published(&root, &planned));
    let retry = |root: &Path| publish_at(&gapped(), Some(2), root, &mut |_| Ok(()));
    retry(&root).expect("published already");
    let mut stricter = Vec::new();
    for &(kind, path, tamper) in TAMPERED {
        let (_folder, root) = bundle();
        tamper(&root);
        if !root.is_dir() {
            continue;
        }
        let refused = retry(&root).expect_err("it is in the way").fault;
        assert!(matches!(refused, PublishFault::Occupied { .. }), "{kind:?} {path}: {refused}");
        let theirs = candle_graph_v10::cli::trace_cli::load_evidence(&root);
        assert!(theirs.is_err(), "{kind:?} {path}");
        if they_find_it_published(&root, &planned) {
            stricter.push(kind);
        }
    }
    stricter.dedup();
    // They do not look into the evidence, and take a bundle without.
    let expected = [ProblemKind::Incomplete, ProblemKind::BadEvidence, ProblemKind::Provenance];
    assert_eq!(stricter, expected);
}

const STAGED: &str = ".bundle.tmp-1-2";

/// A bundle whose publisher was killed before it renamed it; and its plan of a campaign.
fn staged() -> (tempfile::TempDir, PathBuf) {
    let (folder, root) = bundle();
    let staged = root.with_file_name(STAGED);
    fs::rename(&root, &staged).expect("moved");
    symlink(STAGED, folder.path().join("link")).expect("a link");
    let plan = json!({
        "schema": "candle-graph/campaign/1", "campaign_id": "c", "entrypoint": "trainer::update",
        "planned": [{ "capture_step": 2, "bundle": STAGED }],
    });
    fs::write(folder.path().join("plan.json"), plan.to_string()).expect("written");
    (folder, staged)
}

#[test]
fn what_was_never_published_is_a_bundle_for_no_command() {
    let (folder, staged) = staged();
    assert!(content(&staged).receipt.is_some(), "it is whole");
    fs::write(folder.path().join("in.tmrun"), gapped()).expect("written");
    let trace = format!("{STAGED}/trace.jsonl");
    let campaign = ["series", "--campaign", "plan.json"];
    for input in [STAGED, &*trace, "link"] {
        let mut commands = vec![
            vec!["summary", input],
            vec!["query", input, "--kind", "capabilities"],
            vec!["overview", input],
            vec!["diff", input, input],
        ];
        if input != trace {
            commands.push(vec!["verify", input]);
            commands.push(vec!["verify", input, "--semantic"]);
            commands.push(vec!["series", input]);
            commands.push(vec!["compare", "--baseline", input, "--candidate", input]);
            commands.push(vec!["bundle", "in.tmrun", "--step", "2", "-o", input]);
        }
        for command in commands {
            let output = tmrun_in(folder.path(), &command);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
            assert!(said.contains("was never published"), "{command:?}: {said}");
        }
    }
    let output = tmrun_in(folder.path(), &campaign);
    assert_eq!(output.status.code(), Some(1));
    let output = tmrun_in(folder.path(), &["campaign-status", "--json", "plan.json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let state = &status["captures"][0]["state"];
    assert_eq!(state["state"], "verification_failed");
    assert!(state["message"].as_str().expect("text").contains("was never published"), "{state}");
}

#[test]
fn what_was_left_half_done_is_no_trace_either() {
    let (folder, staged) = staged();
    for name in ["bundle.json", "evidence.json"] {
        fs::remove_file(staged.join(name)).expect("away");
    }
    let output = tmrun_in(folder.path(), &["summary", STAGED]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("was never published"), "{said}");
}

/// The command, run in a folder.
fn tmrun_in(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    command.current_dir(folder).args(arguments).output().expect("it runs")
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
