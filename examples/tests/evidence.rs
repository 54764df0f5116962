//! Evidence of the demo, step by step, to us and to the real `candle-graph`: bundles, a series of ten,
//! and two variants that are compared.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use candle_graph_v10 as neighbour;
use serde_json::Value;
use tmrun::bundle::{Request, publish, semantic, verify};
use tmrun::comparison::{bundles, compare, series, verified};
use tmrun::input::Input;
use tmrun::scan::Recording;
use tmrun::slice::Region;

type Tested = Result<(), Box<dyn Error>>;

/// Runs the demo in a process of its own; returns its recording.
fn demo(out: &Path, args: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    Ok(demo_in(&[], out, args)?.0)
}

/// The same in this environment; returns what it printed, too.
fn demo_in(
    environment: &[(&str, &str)],
    out: &Path,
    args: &[&str],
) -> Result<(PathBuf, String), Box<dyn Error>> {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo"));
    let demo = demo.env_remove("TMRUN_LEVEL").env_remove("TMRUN_FOCUS").arg("--out").arg(out);
    let ran = demo.envs(environment.iter().copied()).args(args).output()?;
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok((out.join(tmrun_demo::RECORDING), String::from_utf8(ran.stdout)?))
}

/// Publishes these steps of a recording beside it.
fn publish_steps(
    recording: &Path,
    steps: impl IntoIterator<Item = u64>,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let input = Input::open(recording)?;
    let recording = Recording::open(&input, input.name())?;
    let folder = Path::new(input.name()).parent().expect("a folder").to_owned();
    let mut published = Vec::new();
    for number in steps {
        let destination = folder.join(format!("step-{number}"));
        let region = Region::of(&recording, Some(number))?;
        let (destination, nsight) = (&*destination, None);
        let request = Request { recording: &recording, region: &region, destination, nsight };
        let publication = publish(&request, &mut |_| Ok(()))?;
        assert!(publication.lost.is_empty(), "{:?}", publication.lost);
        published.push(destination.to_owned());
    }
    Ok(published)
}

#[test]
fn ten_steps_are_ten_bundles_and_a_series() -> Tested {
    let folder = tempfile::tempdir()?;
    let recording = demo(folder.path(), &["--level", "3", "--steps", "10"])?;
    let steps = publish_steps(&recording, 1..=10)?;
    for step in &steps {
        assert!(verify(step).problems.is_empty(), "{:?}", verify(step).problems);
        assert!(semantic(step)?.mismatches.is_empty());
        neighbour::verify_bundle(step)?;
        let trace = neighbour::parse_trace(step.join("trace.jsonl"))?;
        let health = neighbour::trace::analyze_health(&trace);
        assert!(health.structurally_valid && health.capture_complete, "{:?}", health.issues);
        // What the run promised holds of every step.
        let contract = &trace.run.capture_contract;
        assert_eq!(contract.gradients, neighbour::CoverageLevel::Complete);
        assert_eq!(
            trace.gradients.len(),
            contract.gradient_contract.as_ref().unwrap().expected.len()
        );
    }
    let ours = serde_json::to_value(series(&steps, None)?)?;
    let theirs = serde_json::to_value(neighbour::build_series(&steps, None)?)?;
    assert_eq!(ours, theirs);
    let losses = ours["tensor_stats"]["loss"].as_array().expect("the loss, step by step");
    let losses: Vec<f64> = losses.iter().filter_map(|loss| loss["mean"].as_f64()).collect();
    let curve = std::fs::read_to_string(folder.path().join("losses.csv"))?;
    let curve = curve.lines().skip(1).filter_map(|line| line.split_once(',')?.1.parse().ok());
    assert_eq!(losses, curve.map(|loss: f32| f64::from(loss)).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn two_variants_get_the_same_verdict_from_both_tools() -> Tested {
    let folder = tempfile::tempdir()?;
    let mut cohorts = [Vec::new(), Vec::new()];
    // By turns, so that what else the machine does meets both.
    for run in 0..5 {
        for (cohort, variant) in cohorts.iter_mut().zip([None, Some("--heads-in-turn")]) {
            let out = folder.path().join(format!("{}-{run}", variant.unwrap_or("together")));
            let args = ["--level", "1", "--steps", "3"].into_iter().chain(variant);
            let recording = demo(&out, &args.collect::<Vec<_>>())?;
            cohort.extend(publish_steps(&recording, [3])?);
        }
    }
    let [before, after] = &cohorts;
    let ((left, a), (right, b)) = (bundles(before)?, bundles(after)?);
    let ours = compare(&left, &right, verified(a, b));
    assert!(ours.comparable, "{:?}", ours.reasons);
    let theirs = neighbour::compare_verified_bundles(before, after)?;
    let (ours, theirs): (Value, Value) =
        (serde_json::to_value(&ours)?, serde_json::to_value(&theirs)?);
    assert_eq!(ours, theirs);
    println!("{}: {} %", ours["verdict"], ours["median_delta_percent"]);
    Ok(())
}

#[test]
fn a_planted_nan_is_found_where_the_neighbours_format_has_no_place_for_it() -> Tested {
    let folder = tempfile::tempdir()?;
    let recording = demo(folder.path(), &["--level", "3", "--steps", "4", "--plant-nan"])?;
    let steps = publish_steps(&recording, [2])?;
    neighbour::verify_bundle(&steps[0])?;
    let annex: Value = serde_json::from_slice(&std::fs::read(steps[0].join("tmrun.json"))?)?;
    let label = annex["origin"]["label"].as_str().expect("where it began");
    assert!(label.contains(tmrun_demo::BROKEN_LAYER), "{label}");
    assert_eq!(annex["origin"]["nan"], 1);
    // Its gradients keep the graph out of the neighbour's evidence, and not out of ours.
    let evidence: Value = serde_json::from_slice(&std::fs::read(steps[0].join("evidence.json"))?)?;
    assert_eq!((&evidence["graph"], annex["graph"].is_object()), (&Value::Null, true));
    Ok(())
}

#[test]
fn a_run_promises_what_the_environment_has_it_record() -> Tested {
    let folder = tempfile::tempdir()?;
    let of = |variable, value| -> Result<_, Box<dyn Error>> {
        let args = ["--level", "1", "--steps", "1"];
        let (path, printed) = demo_in(&[(variable, value)], folder.path(), &args)?;
        let input = Input::open(&path)?;
        let recording = Recording::open(&input, input.name())?;
        let contract = recording.meta().contract.expect("it promises something");
        Ok(((contract.measurement_scope, contract.gradients), printed))
    };
    let (profiled, production) = (1, 2);
    let (none, partial, complete) = (0, 1, 2);
    assert_eq!(of("TMRUN_LEVEL", "1")?.0, (production, none));
    assert_eq!(of("TMRUN_LEVEL", "3")?.0, (profiled, complete));
    assert_eq!(of("TMRUN_FOCUS", "blocks.0.**=1")?.0, (production, none));
    let (promised, printed) = of("TMRUN_FOCUS", "blocks.0.**=3")?;
    assert_eq!(promised, (profiled, partial));
    // And the report says what it is of.
    for said in [
        "level 1 (timing), in focus 3 (numerics)",
        "all 16 parameters in focus",
        "parameters in focus that never had a gradient: none",
        "not finite: nothing that was looked at; layers out of focus are seen at level 3",
        "MiB of parameters in focus",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    Ok(())
}
