//! `tmrun query` of recordings: steps, gaps, values that JSON has no word for, and exit codes.

mod support;

#[path = "support/probed.rs"]
mod probed;
#[path = "support/steps.rs"]
mod steps;

use serde_json::{Value, json};
use support::Builder;
use support::command::{Folder, tmrun};
use support::record::{gap, gradient, step};
use tmrun_formats::{GapReason, Phase};
use tmrun_probe_core::session::{
    CaptureContract, CoverageLevel, ExpectedGradient, GradientContract, GradientFamilyContract,
    GradientState, ProfileRun, TraceSession,
};

fn ask(folder: &Folder, input: &str, rest: &[&str]) -> Value {
    let (code, out, err) = folder.tmrun(&[&["query", input], rest].concat());
    assert_eq!((code, &*err), (0, ""), "{rest:?}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn a_step_answers_as_the_trace_that_is_made_of_it() {
    let folder = Folder::with(b"");
    let file = probed::recorded(&folder.path("run.tmrun"));
    let recording = tmrun::scan::Recording::open(&file, "run").unwrap();
    let region = tmrun::slice::Region::of(&recording, Some(2)).unwrap();
    let trace = tmrun::trace::Trace::of(&recording, &region);
    let text = trace.derive().document.write(Vec::new()).unwrap();
    std::fs::write(folder.path("step.jsonl"), text).unwrap();
    candle_graph_v10::publish_bundle(&folder.path("bundle"), &folder.path("step.jsonl"), None)
        .unwrap();
    let kinds = tmrun::query::Kind::ALL.iter().filter(|kind| !kind.is_ours());
    let mut rows = 0;
    for kind in kinds.map(|kind| kind.name()) {
        let mut whole = ask(&folder, "run.tmrun", &["--step", "2", "--kind", kind]);
        let of_trace = ask(&folder, "step.jsonl", &["--kind", kind]);
        let of_bundle = ask(&folder, "bundle", &["--kind", kind, "--step", "2"]);
        if let Some(result) = whole["result"].as_object_mut() {
            result.remove("non_finite");
        }
        assert_eq!(whole["result"], of_trace["result"], "{kind}");
        assert_eq!(of_trace["result"], of_bundle["result"], "{kind}");
        assert_eq!(whole["capabilities"], of_bundle["capabilities"]);
        assert_eq!(whole["input"]["region"], "step");
        rows += whole["result"]["rows"].as_array().map_or(0, Vec::len);
    }
    assert!(rows > 20, "{rows}");
}

#[test]
fn a_bundle_that_is_not_what_its_manifest_says_answers_nothing() {
    let folder = Folder::with(&of_lengths(&[(1, 500)]));
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "1", "-o", "bundle"]);
    assert_eq!(code, 0, "{err}");
    ask(&folder, "bundle", &["--kind", "capabilities"]);
    for file in ["report.md", "trace.jsonl"] {
        let path = folder.path("bundle").join(file);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b" "].concat()).unwrap();
        for command in [
            &["query", "bundle", "--kind", "spans"][..],
            &["overview", "bundle"],
            &["summary", "bundle"],
            &["diff", "bundle", "bundle"],
        ] {
            let (code, out, err) = folder.tmrun(command);
            assert_eq!((code, &*out), (1, ""), "{command:?}");
            assert!(err.contains(file) && err.contains("tmrun verify"), "{err}");
        }
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn of_several_invocations_one_is_chosen_and_it_is_said_which_there_are() {
    let folder = Folder::with(b"");
    probed::recorded(&folder.path("run.tmrun"));
    let (code, out, err) = folder.tmrun(&["query", "run.tmrun", "--kind", "spans"]);
    assert_eq!((code, &*out), (2, ""));
    assert!(err.contains("--step") && err.contains("steps 1 to"), "{err}");
    let (code, _, err) = folder.tmrun(&["query", "run.tmrun", "--kind", "spans", "--step", "77"]);
    assert_eq!(code, 1);
    assert!(err.contains("step 77"), "{err}");
}

#[test]
fn an_unknown_kind_is_refused_with_the_list_of_kinds() {
    let output = tmrun(&["query", "x", "--kind", "everything"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    for kind in tmrun::query::Kind::ALL {
        assert!(said.contains(kind.name()), "{} in {said}", kind.name());
    }
    for limit in ["0", "1001", "many"] {
        let output = tmrun(&["query", "x", "--kind", "spans", "--limit", limit]);
        assert_eq!(output.status.code(), Some(2), "{limit}");
    }
    let output = tmrun(&["query", "x", "--kind", "spans", "--limit", "3", "--all"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Steps of known lengths: number and ticks, of which a tick is a nanosecond.
fn of_lengths(lengths: &[(u64, u64)]) -> Vec<u8> {
    let (mut builder, mut now) = (Builder::started(), 10_000);
    for &(number, length) in lengths {
        builder = builder.records(0, &[step(now, number, false), step(now + length, number, true)]);
        now += length + 10;
    }
    builder.finish()
}

#[test]
fn the_slowest_steps_come_first_with_what_is_usual() {
    let folder = Folder::with(&of_lengths(&[(1, 500), (2, 300), (3, 9_000), (4, 300), (5, 700)]));
    let answer = ask(&folder, "in.tmrun", &["--kind", "slow-steps", "--limit", "2"]);
    let result = &answer["result"];
    let rows: Vec<_> = result["rows"].as_array().unwrap().iter().collect();
    let row = |at: usize| (rows[at]["step"].as_u64(), rows[at]["duration_ns"].as_u64());
    assert_eq!([row(0), row(1)], [(Some(3), Some(9_000)), (Some(5), Some(700))]);
    assert_eq!(result["median_ns"], 500);
    assert_eq!((&result["least_ns"], &result["greatest_ns"]), (&300.into(), &9_000.into()));
    assert_eq!((&result["total"], &result["next_offset"]), (&5.into(), &2.into()));
    let rest = ask(&folder, "in.tmrun", &["--kind", "slow-steps", "--offset", "3"]);
    let rest: Vec<_> = rest["result"]["rows"].as_array().unwrap().iter().collect();
    assert_eq!(rest.iter().map(|row| row["step"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(4)]);
}

#[test]
fn a_hundred_thousand_steps_are_ranked_and_counted() {
    let lengths: Vec<_> =
        (1..=100_000).map(|number| (number, 100 + (number * 7_919) % 9_973)).collect();
    let (mut builder, mut now) = (Builder::started(), 10_000);
    for few in lengths.chunks(500) {
        let records = few.iter().flat_map(|&(number, length)| {
            let begin = now;
            now += length + 1;
            [step(begin, number, false), step(begin + length, number, true)]
        });
        builder = builder.records(0, &records.collect::<Vec<_>>());
    }
    let folder = Folder::with(&builder.finish());
    let answer = ask(&folder, "in.tmrun", &["--kind", "slow-steps", "--all"]);
    let rows = answer["result"]["rows"].as_array().unwrap();
    let mut expected = lengths;
    expected.sort_by_key(|&(number, length)| (std::cmp::Reverse(length), number));
    let found = rows
        .iter()
        .map(|row| (row["step"].as_u64().unwrap(), row["duration_ns"].as_u64().unwrap()));
    assert!(found.eq(expected.iter().copied()));
    assert_eq!(answer["result"]["p95_ns"], expected[5_000].1);
}

#[test]
fn a_step_whose_begin_is_lost_has_no_length_not_that_of_the_lane_that_joined_it() {
    let mut file = Builder::started()
        .records(0, &[step(2_000, 1, false), step(2_400, 1, true)])
        .records(0, &[step(2_500, 2, false)])
        .records(1, &[step(2_550, 2, false), step(2_800, 2, true)])
        .records(0, &[step(2_900, 2, true), step(3_000, 3, false)])
        .records(0, &[step(3_400, 3, true)])
        .records(0, &[step(3_500, 4, false), step(3_900, 4, true)])
        .finish();
    let chunks = support::naive::chunks(&file);
    for lost in [2, 5] {
        file[chunks[lost].offset + 70] ^= 1;
    }
    let folder = Folder::with(&file);
    let (code, out, _) = folder.tmrun(&["query", "in.tmrun", "--kind", "slow-steps"]);
    assert_eq!(code, 3);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let rows = answer["result"]["rows"].as_array().unwrap().iter();
    let keys = ["step", "lane", "duration_ns", "lanes", "lost_gaps"];
    let rows: Vec<Value> =
        rows.map(|row| keys.iter().map(|&key| row[key].clone()).collect()).collect();
    let expected = [json!([1, 0, 400, 1, 0]), json!([4, 0, 400, 1, 0]), json!([2, 0, null, 2, 1])];
    assert_eq!(rows[..3], expected);
    assert_eq!(rows[3], json!([3, 0, null, 1, 1]), "its end is lost");
}

#[test]
fn a_number_that_is_there_more_than_once_has_a_row_for_each_time() {
    let evaluates = [(2_200, false), (2_350, true)]
        .map(|(at, ends)| steps::of_phase(&step(at, 1, ends), Phase::INFER));
    let file = Builder::started()
        .records(0, &[step(2_000, 1, false)])
        .records(1, &[step(2_100, 1, false), step(2_600, 1, true)])
        .records(0, &[step(2_500, 1, true), step(3_000, 1, false), step(3_700, 1, true)])
        .records(2, &evaluates)
        .records(0, &[step(5_000, 2, false)])
        .records(0, &[step(5_100, 2, true), step(5_200, 3, false), step(5_300, 3, true)])
        .records(0, &[step(5_400, 2, false), step(5_410, 2, true)])
        .finish();
    let times = |file: &[u8]| {
        let folder = Folder::with(file);
        let (_, out, _) = folder.tmrun(&["query", "in.tmrun", "--kind", "slow-steps"]);
        let answer: Value = serde_json::from_str(&out).unwrap();
        let rows = answer["result"]["rows"].as_array().unwrap().iter();
        let key = |row: &Value| ["step", "lane", "duration_ns"].map(|key| row[key].as_u64());
        rows.map(key).collect::<Vec<_>>()
    };
    let row = |step, lane, duration| [Some(step), Some(lane), duration];
    let of_two = [row(3, 0, Some(100)), row(2, 0, Some(100)), row(2, 0, Some(10))];
    let of_one = [row(1, 0, Some(700)), row(1, 0, Some(500)), row(1, 2, Some(150))];
    let mut found = times(&file);
    found.sort();
    let mut expected = [of_one, of_two].concat();
    expected.sort();
    assert_eq!(found, expected, "lane 1 joined step 1; lane 2 did something else");
    // The end of the one and the beginning of the other are lost: nobody knows how long either was.
    let mut damaged = file.clone();
    let of_lane_0: Vec<_> =
        support::naive::chunks(&file).into_iter().filter(|c| (c.kind, c.lane) == (1, 0)).collect();
    damaged[of_lane_0[3].offset + 70] ^= 1;
    let found = times(&damaged);
    assert!(found.contains(&row(1, 0, Some(500))), "{found:?}");
    let mut of_step_2 = found.iter().filter(|row| row[0] == Some(2));
    assert!(!of_step_2.any(|row| row[2] > Some(10)), "{found:?}");
}

#[test]
fn a_step_whose_end_is_not_there_is_the_last_and_has_no_length() {
    let file = Builder::started()
        .records(0, &[step(2_000, 1, false), step(2_400, 1, true), step(2_500, 2, false)])
        .records(u16::MAX, &[gap(2_450, 2_600, 3, 0, GapReason::OVERRUN)])
        .finish();
    let folder = Folder::with(&file);
    let (code, out, err) = folder.tmrun(&["query", "in.tmrun", "--kind", "slow-steps"]);
    assert_eq!(code, 3, "{err}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let rows = answer["result"]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["duration_ns"], 400);
    assert_eq!((&rows[1]["step"], &rows[1]["duration_ns"]), (&2.into(), &Value::Null));
    assert_eq!((&rows[0]["lost_gaps"], &rows[1]["lost_gaps"]), (&0.into(), &1.into()));
    assert_eq!((&answer["result"]["timed"], &answer["result"]["total"]), (&1.into(), &2.into()));

    let (code, out, _) = folder.tmrun(&["query", "in.tmrun", "--kind", "gaps"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 3);
    let gap = &answer["result"]["rows"][0];
    assert_eq!((&gap["reason"], &gap["records"]), (&"overrun".into(), &3.into()));
    assert_eq!(answer["result"]["lost_records"], 3);
    assert_eq!(answer["capabilities"], Value::Null, "they are of one invocation");
}

#[test]
fn what_is_asked_of_a_recording_is_refused_of_a_trace() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/trace/ok-op.jsonl");
    let output = tmrun(&["query", trace, "--kind", "slow-steps"]);
    assert_eq!(output.status.code(), Some(2));
    let output = tmrun(&["query", trace, "--kind", "gaps"]);
    assert_eq!(output.status.code(), Some(0));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["result"].get("rows").is_none(), "nobody knows: {answer}");
    let output = tmrun(&["query", trace, "--kind", "spans", "--step", "99"]);
    assert_eq!(output.status.code(), Some(2), "the trace is of another step");
}

#[test]
fn nan_and_both_infinities_are_told_apart() {
    let folder = Folder::with(b"");
    let keys = ["nan", "inf", "unsaid", "sound"];
    let expected = keys.map(|key| ExpectedGradient::new("vb", key, "all")).to_vec();
    let families = vec![GradientFamilyContract::active("all", 1)];
    let contract = CaptureContract {
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(GradientContract::new(expected, families).unwrap()),
        ..CaptureContract::default()
    };
    let run = ProfileRun::training("trainer::update", 1, "cpu").capture_contract(contract);
    let session = TraceSession::open(folder.path("run.tmrun"), run).unwrap();
    let measured = session.begin_measurement("update/1");
    for (label, value) in [("loss", f64::NAN), ("up", f64::INFINITY), ("down", f64::NEG_INFINITY)] {
        session.record_scalar(measured.id(), label, value).unwrap();
    }
    for key in keys {
        let (state, norm) = match key {
            "sound" => (GradientState::Present, Some(0.5)),
            _ => (GradientState::NonFinite, None),
        };
        session.record_gradient("vb", key, state, norm).unwrap();
    }
    drop(measured);
    session.finish().unwrap();

    let answer = ask(&folder, "run.tmrun", &["--kind", "gradients"]);
    let states: Vec<_> = answer["result"]["rows"].as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 4);
    let odd = answer["result"]["non_finite"]["rows"].as_array().unwrap();
    assert_eq!(odd.len(), 3, "{odd:?}");
    assert!(answer["notes"][0].as_str().unwrap().contains("gradients alone"), "{answer}");
    let answer = ask(&folder, "run.tmrun", &["--kind", "slowest-host"]);
    assert!(!answer["result"]["slowest_host_spans"].as_array().unwrap().is_empty());

    assert!(odd.iter().all(|row| row["norm"].is_null()), "a session takes no such norm");

    let answer = ask(&folder, "run.tmrun", &["--kind", "tensor-stats", "--label-prefix", ""]);
    let odd = answer["result"]["non_finite"]["rows"].as_array().unwrap();
    let of = |label: &str| odd.iter().find(|row| row["label"] == label).unwrap();
    let counts = |label| ["nan", "positive", "negative"].map(|key| of(label)[key].as_u64());
    assert_eq!(counts("loss"), [Some(1), Some(0), Some(0)]);
    assert_eq!(counts("up"), [Some(0), Some(1), Some(0)]);
    assert_eq!(counts("down"), [Some(0), Some(0), Some(1)]);
}

#[test]
fn a_norm_that_is_not_finite_is_said_as_it_was_recorded() {
    let norms = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let mut records = vec![step(2_000, 1, false)];
    records.extend((0..).zip(norms).map(|(at, norm)| gradient(2_100 + at, 1, Some(norm))));
    records.extend([gradient(2_200, 2, None), step(2_900, 1, true)]);
    let folder = Folder::with(&Builder::started().records(0, &records).finish());
    let answer = ask(&folder, "in.tmrun", &["--step", "1", "--kind", "gradients"]);
    assert_eq!(answer["result"]["total"], 4);
    let odd = answer["result"]["non_finite"]["rows"].as_array().unwrap();
    let norms: Vec<_> = odd.iter().map(|row| row["norm"].as_str()).collect();
    assert_eq!(norms, [Some("NaN"), Some("+Inf"), Some("-Inf"), None]);
    let one = ask(&folder, "in.tmrun", &["--step", "1", "--kind", "gradients", "--label", "loss"]);
    assert_eq!(one["result"]["non_finite"]["total"], 1);

    // A bundle has the slice to say so.
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "1", "-o", "bundle"]);
    assert_eq!(code, 0, "{err}");
    let of_bundle = ask(&folder, "bundle", &["--kind", "gradients"]);
    assert_eq!(of_bundle["result"], answer["result"]);
    let other_step = folder.tmrun(&["query", "bundle", "--kind", "gradients", "--step", "2"]);
    assert_eq!(other_step.0, 2, "{}", other_step.2);
}
