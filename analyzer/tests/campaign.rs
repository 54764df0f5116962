//! What became of a campaign is what the neighbour says of it.

#[path = "support/bare.rs"]
mod bare;
mod support;
#[path = "support/traces/mod.rs"]
mod traces;

use candle_graph_v10 as theirs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use support::command::tmrun;
use tmrun::comparison::{CampaignError, campaign_status};
use traces::{Rng, cohorts};

fn plan(at: &Path, planned: &[Value]) -> std::path::PathBuf {
    let path = at.join("campaign.json");
    let plan = json!({
        "schema": "candle-graph/campaign/1", "campaign_id": "c", "entrypoint": "demo::infer",
        "planned": planned,
    });
    fs::write(&path, plan.to_string()).unwrap();
    path
}

/// Puts something where a bundle is planned.
fn put(folder: &Path, step: u64, rng: &mut Rng) {
    let mut run = cohorts::run(&format!("run-{step}"), "i", 9);
    run.meta["capture_step"] = json!(step);
    run.meta["warmup_steps"] = json!(0);
    let kind = rng.below(9);
    match kind {
        0 => return,
        1 => run.failed = Some("no memory".to_owned()),
        2 => run.meta["entrypoint"] = json!("another"),
        3 => run.meta["capture_step"] = json!(step + 1),
        // It is published all the same: nobody asks whether it is valid.
        4 => drop(run.add_op("nowhere", 0, 0)),
        _ => {}
    }
    let text = run.text(rng);
    match kind {
        5 => return fs::create_dir_all(folder).unwrap(),
        6 => return fs::write(folder, "a file").unwrap(),
        7 => bare::write(folder, &[("trace.jsonl", &format!("{text}{{"))]),
        _ => bare::write(folder, &[("trace.jsonl", &text)]),
    }
    if rng.one_in(8) {
        fs::write(folder.join("trace.jsonl"), "other bytes").unwrap();
    }
}

fn without_messages(status: &impl serde::Serialize) -> Value {
    let mut status = serde_json::to_value(status).unwrap();
    for capture in status["captures"].as_array_mut().unwrap() {
        if let Some(message) = capture["state"].get_mut("message") {
            assert_ne!(message, "");
            *message = json!("");
        }
    }
    status
}

#[test]
fn every_state_is_the_neighbours() {
    let mut states = BTreeMap::<String, u64>::new();
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let at = tempfile::tempdir().unwrap();
        let mut planned: Vec<_> = (1..1 + seed % 9)
            .map(|step| {
                let bundle = format!("b/{step}");
                let step = step * 7 % 10 + 1;
                fs::create_dir_all(at.path().join("b")).unwrap();
                put(&at.path().join(&bundle), step, &mut rng);
                json!({ "capture_step": step, "bundle": bundle })
            })
            .collect();
        planned.push(json!({ "capture_step": 99, "bundle": "b/./never" }));
        let path = plan(at.path(), &planned);
        let theirs = theirs::campaign_status(&path).unwrap();
        let ours = campaign_status(&path).unwrap();
        let (ours, theirs) = (without_messages(&ours), without_messages(&theirs));
        assert_eq!(ours.to_string(), theirs.to_string());
        for capture in ours["captures"].as_array().unwrap() {
            let state = capture["state"]["state"].as_str().unwrap();
            *states.entry(state.to_owned()).or_default() += 1;
        }
    }
    println!("{states:?}");
    assert!(states.len() == 5 && states.values().all(|count| *count >= 5), "{states:?}");
}

#[test]
fn plans_that_cannot_be_followed_are_refused_by_both() {
    let at = tempfile::tempdir().unwrap();
    let one = json!({ "capture_step": 1, "bundle": "a" });
    for planned in [
        vec![],
        vec![one.clone(), one.clone()],
        vec![one.clone(), json!({ "capture_step": 2, "bundle": "a" })],
        vec![json!({ "capture_step": 1, "bundle": "../a" })],
        vec![json!({ "capture_step": 1, "bundle": "" })],
    ] {
        let path = plan(at.path(), &planned);
        assert!(theirs::campaign_status(&path).is_err());
        assert!(matches!(campaign_status(&path), Err(CampaignError::Plan { .. })), "{planned:?}");
    }
    let path = at.path().join("campaign.json");
    for text in ["", "{}", r#"{"schema":"candle-graph/campaign/2"}"#] {
        fs::write(&path, text).unwrap();
        assert!(theirs::campaign_status(&path).is_err());
        assert!(matches!(campaign_status(&path), Err(CampaignError::Json { .. })), "{text}");
    }
    let none = at.path().join("none.json");
    assert!(matches!(campaign_status(&none), Err(CampaignError::File { .. })));
}

/// Where the neighbour is wrong we are not; docs/COMPATIBILITY.md lists it.
#[test]
fn a_manifest_of_another_run_than_its_trace_does_not_verify() {
    let at = tempfile::tempdir().unwrap();
    let text = cohorts::run("run", "i", 9).text(&mut Rng::new(0));
    bare::write_as(&at.path().join("a"), &[("trace.jsonl", &text)], "another");
    let path = plan(at.path(), &[json!({ "capture_step": 6, "bundle": "a" })]);
    let theirs = serde_json::to_value(theirs::campaign_status(&path).unwrap()).unwrap();
    assert_eq!(theirs["captures"][0]["state"]["state"], "published");
    assert!(theirs::build_series(&[at.path().join("a")], None).is_ok());
    let ours = serde_json::to_value(campaign_status(&path).unwrap()).unwrap();
    assert_eq!(ours["captures"][0]["state"]["state"], "verification_failed");
    let message = ours["captures"][0]["state"]["message"].as_str().unwrap();
    assert!(message.contains("expected run, found another"), "{message}");
    assert!(tmrun::comparison::series(&[at.path().join("a")], None).is_err());
}

#[test]
fn a_link_to_nothing_is_missing_as_the_neighbour_has_it() {
    let at = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nowhere", at.path().join("a")).unwrap();
    let path = plan(at.path(), &[json!({ "capture_step": 6, "bundle": "a" })]);
    let theirs = serde_json::to_value(theirs::campaign_status(&path).unwrap()).unwrap();
    let ours = serde_json::to_value(campaign_status(&path).unwrap()).unwrap();
    assert_eq!(ours, theirs);
    assert_eq!(ours["captures"][0]["state"]["state"], "missing");
}

#[test]
fn the_command_prints_the_status_whatever_became_of_the_captures() {
    let at = tempfile::tempdir().unwrap();
    let text = cohorts::run("run", "i", 9).text(&mut Rng::new(0));
    bare::write(&at.path().join("a"), &[("trace.jsonl", &text)]);
    let planned = [("a", 6), ("b", 7)]
        .map(|(bundle, step)| json!({ "capture_step": step, "bundle": bundle }));
    let path = plan(at.path(), &planned);
    let output = tmrun(&["campaign-status", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let theirs = at.path().join("theirs.json");
    theirs::cli::trace_cli::run_campaign_status(&path, Some(&theirs)).unwrap();
    assert_eq!(output.stdout, fs::read(theirs).unwrap());
    fs::write(&path, "{").unwrap();
    let output = tmrun(&["campaign-status", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}
