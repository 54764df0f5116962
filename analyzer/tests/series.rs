//! Series are the neighbour's, point by point, and so is what is no series.

#[path = "support/bare.rs"]
mod bare;
mod support;
#[path = "support/traces/mod.rs"]
mod traces;

use candle_graph_v10 as theirs;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use support::command::tmrun;
use tmrun::comparison::{SeriesError, series};
use traces::{Rng, Sketch, base, cohorts};

/// A run of one step, with events of every kind that a series looks at; some fail, if they may.
fn step(number: u64, fails: bool, rng: &mut Rng) -> Sketch {
    let mut sketch = base::sketch(rng);
    sketch.failed = sketch.failed.filter(|_| fails);
    sketch.meta["run_id"] = json!(format!("run-{number}"));
    sketch.meta["phase"] = json!("train");
    sketch.meta["capture_step"] = json!(number);
    sketch.meta["warmup_steps"] = json!(0);
    if rng.one_in(5) {
        let at = sketch.add_span(None, sketch.spans[0].start, Some(0));
        sketch.spans[at].measured = true;
    }
    let span = sketch.spans[0].id.clone();
    for label in ["loss/total", "loss/aux", "grad"] {
        for _ in 0..rng.below(3) {
            sketch.stats.push(json!({
                "span_id": span, "label": label, "shape": [], "dtype": "f64", "elements": 1,
                "non_finite": 0, "rms": 0.5, "abs_max": 0.5, "mean": *rng.pick(&[0.5, -0.0]),
            }));
        }
    }
    sketch
}

fn same(folders: &[PathBuf], prefix: Option<&str>) {
    let ours = serde_json::to_string_pretty(&series(folders, prefix).unwrap()).unwrap();
    let theirs = theirs::build_series(folders, prefix).unwrap();
    let theirs = serde_json::to_string_pretty(&theirs).unwrap();
    let differ = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
    assert!(ours == theirs, "{differ:?}\n{ours}");
}

/// Bundles of steps, in any order.
fn steps(at: &Path, count: u64, fail: bool, rng: &mut Rng) -> Vec<PathBuf> {
    let mut texts: Vec<_> = (1..=count)
        .map(|number| {
            let number = number * 3 % (count + 1) + number * 100;
            step(number, fail, rng).text(rng)
        })
        .collect();
    rng.shuffle(&mut texts);
    bare::write_all(at, &texts)
}

#[test]
fn series_are_the_neighbours_with_and_without_a_prefix() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let at = tempfile::tempdir().unwrap();
        let folders = steps(at.path(), 1 + seed % 12, true, &mut rng);
        for prefix in [None, Some("loss/"), Some("vb/"), Some(""), Some("nothing")] {
            same(&folders, prefix);
        }
    }
}

#[test]
fn what_is_no_series_is_none_for_the_neighbour_either() {
    let at = tempfile::tempdir().unwrap();
    let write = |name: &str, step: u64, change: fn(&mut Sketch)| {
        let mut run = cohorts::run(name, "i", 9);
        run.meta["capture_step"] = json!(step + 5);
        change(&mut run);
        let folder = at.path().join(name);
        bare::write(&folder, &[("trace.jsonl", &run.text(&mut Rng::new(step)))]);
        folder
    };
    let one = write("one", 1, |_| ());
    let two = write("two", 2, |_| ());
    let again = write("again", 2, |_| ());
    let other = write("other", 3, |run| run.meta["entrypoint"] = json!("another"));
    let phase = write("phase", 4, |run| run.meta["phase"] = json!("train"));
    let refused = |folders: &[&PathBuf]| {
        let folders: Vec<_> = folders.iter().map(|&folder| folder.clone()).collect();
        assert!(theirs::build_series(&folders, None).is_err());
        series(&folders, None).unwrap_err()
    };
    same(&[two.clone(), one.clone()], None);
    assert!(matches!(refused(&[]), SeriesError::Empty));
    assert!(matches!(
        refused(&[&one, &two, &again]),
        SeriesError::StepTwice { capture_step: 7, .. }
    ));
    let error = refused(&[&one, &other]);
    assert!(matches!(error, SeriesError::Differs { field: "entrypoint", .. }), "{error}");
    let error = refused(&[&one, &phase]);
    assert!(matches!(error, SeriesError::Differs { field: "phase", .. }), "{error}");
    assert!(matches!(refused(&[&one, &at.path().join("none")]), SeriesError::Load(_)));
    fs::write(two.join("trace.jsonl"), "other bytes").unwrap();
    assert!(matches!(refused(&[&one, &two]), SeriesError::Load(_)));
}

#[test]
fn the_command_takes_bundles_or_a_campaign_of_which_all_is_published() {
    let at = tempfile::tempdir().unwrap();
    let folders = steps(at.path(), 3, false, &mut Rng::new(7));
    let planned: Vec<Value> = folders
        .iter()
        .map(|folder| {
            let trace = fs::read_to_string(folder.join("trace.jsonl")).unwrap();
            let meta: Value = serde_json::from_str(trace.lines().next().unwrap()).unwrap();
            let name = folder.file_name().unwrap().to_str();
            json!({ "capture_step": meta["capture_step"], "bundle": name })
        })
        .collect();
    let write = |planned: &[Value]| {
        let path = at.path().join("campaign.json");
        let plan = json!({
            "schema": "candle-graph/campaign/1", "campaign_id": "c", "entrypoint": "demo::step",
            "planned": planned,
        });
        fs::write(&path, plan.to_string()).unwrap();
        path
    };
    let run = |arguments: &[&str]| {
        let output = tmrun(&[&["series"], arguments].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let campaign = write(&planned);
    let campaign = campaign.to_str().unwrap();
    let theirs = at.path().join("theirs.json");
    theirs::cli::trace_cli::run_series(Some(Path::new(campaign)), &[], None, Some(&theirs))
        .unwrap();
    let (code, stdout, stderr) = run(&["--campaign", campaign]);
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(stdout, fs::read_to_string(&theirs).unwrap());

    let paths: Vec<_> = folders.iter().map(|folder| folder.to_str().unwrap()).collect();
    theirs::cli::trace_cli::run_series(None, &folders, Some("loss"), Some(&theirs)).unwrap();
    let (code, stdout, _) = run(&[&["--label-prefix", "loss"], &*paths].concat());
    assert_eq!((code, stdout), (0, fs::read_to_string(&theirs).unwrap()));

    write(&[planned, vec![json!({ "capture_step": 9, "bundle": "gone" })]].concat());
    let (code, stdout, stderr) = run(&["--campaign", campaign]);
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.contains("step 9 (gone: missing)"), "{stderr}");
    assert_eq!(run(&[]).0, 2);
    assert_eq!(run(&["--campaign", campaign, paths[0]]).0, 2);
}
