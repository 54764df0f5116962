//! Two cohorts of runs that can be compared, and what speaks against that.

use super::{Rng, Sketch, base};
use serde_json::{Value, json};
use tmrun_formats::comparison::ComparisonCode as Code;

/// Both sides of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Cohorts {
    pub baseline: Vec<Sketch>,
    pub candidate: Vec<Sketch>,
}

/// One run whose measured region took so long.
pub fn run(id: &str, implementation: &str, ns: u64) -> Sketch {
    let mut identity = base::identity();
    identity["implementation_id"] = json!(implementation);
    identity.as_object_mut().unwrap().remove("pair_id");
    let meta = json!({
        "schema": "candle-graph/trace/10", "run_id": id, "correlation_id": id,
        "entrypoint": "demo::infer", "phase": "infer", "timestamp": "2026-01-01T00:00:00.000Z",
        "capture_step": 6, "warmup_steps": 5, "device": "cpu", "timing_mode": "host",
        "capture_contract": {
            "measurement_scope": "production_equivalent", "operations": "none",
            "logical_memory": "none", "physical_memory": "none", "device_timing": "none",
        },
        "comparison_identity": identity, "tags": {},
    });
    let mut sketch = Sketch { meta, ..Sketch::default() };
    sketch.add_span(None, 0, Some(ns));
    sketch.spans[0].measured = true;
    sketch
}

/// Cohorts that nothing speaks against: 5 to 40 runs a side, of times that differ much, little or not
/// at all, in every third case as pairs.
pub fn cohorts(rng: &mut Rng) -> Cohorts {
    let pairs = rng.one_in(3);
    let sizes = match rng.below(6) {
        0 => [5, 5],
        1 => [5 + rng.below(36), 5 + rng.below(36)],
        _ => [5 + rng.below(4), 5 + rng.below(4)],
    };
    let around = *rng.pick(&[0, 100, 1_000_003, u64::MAX - 5_000]);
    let spread = *rng.pick(&[1, 3, 40, 5_000]);
    let apart = *rng.pick(&[0, 0, 2, 60, 2_000]);
    let faster = rng.one_in(2);
    let mut side = |name: &str, size: u64, apart: u64| -> Vec<Sketch> {
        let time = |rng: &mut Rng| around.saturating_add(apart).saturating_add(rng.below(spread));
        let runs = (0..size).map(|n| run(&format!("{name}-{n}"), name, time(rng)));
        runs.collect()
    };
    let mut all = Cohorts {
        baseline: side("before", sizes[0], if faster { apart } else { 0 }),
        candidate: side(
            "after",
            if pairs { sizes[0] } else { sizes[1] },
            if faster { 0 } else { apart },
        ),
    };
    if pairs {
        for side in [&mut all.baseline, &mut all.candidate] {
            for (n, run) in side.iter_mut().enumerate() {
                run.meta["comparison_identity"]["pair_id"] = json!(format!("pair {n}"));
            }
            rng.shuffle(side);
        }
    }
    for run in all.all() {
        stats(run, rng);
    }
    all
}

fn stats(run: &mut Sketch, rng: &mut Rng) {
    let span = run.spans[0].id.clone();
    for _ in 0..rng.below(5) {
        let label = *rng.pick(&["loss", "act/0", "act/1", "norm", "é"]);
        let value = || [0.0, -0.0, 0.25, 1.5, 1e-3, 3e10, 123.456, 5e-324, 1e300];
        let (rms, abs_max) = (*rng.pick(&value()), *rng.pick(&value()));
        run.stats.push(json!({
            "span_id": span, "label": label, "shape": [2], "dtype": "f32", "elements": 2,
            "non_finite": rng.below(3), "rms": rms, "abs_max": abs_max, "mean": -0.125,
        }));
    }
}

impl Cohorts {
    pub fn all(&mut self) -> impl Iterator<Item = &mut Sketch> {
        self.baseline.iter_mut().chain(&mut self.candidate)
    }

    pub fn any(&mut self, rng: &mut Rng) -> &mut Sketch {
        let count = self.baseline.len() + self.candidate.len();
        let place = rng.place(count);
        self.all().nth(place).unwrap()
    }

    fn is_paired(&self) -> bool {
        !self.baseline[0].meta["comparison_identity"]["pair_id"].is_null()
    }

    /// Makes pairs of what are none: as many as the smaller side has.
    fn pair(&mut self) {
        let size = self.baseline.len().min(self.candidate.len());
        for side in [&mut self.baseline, &mut self.candidate] {
            side.truncate(size);
            for (n, run) in side.iter_mut().enumerate() {
                run.meta["comparison_identity"]["pair_id"] = json!(format!("p{n}"));
            }
        }
    }

    pub fn texts(&self, rng: &mut Rng) -> [Vec<String>; 2] {
        [&self.baseline, &self.candidate].map(|side| side.iter().map(|run| run.text(rng)).collect())
    }
}

/// Makes something speak against the cohorts. What comes along with it is in [`company`].
pub fn add(code: Code, all: &mut Cohorts, rng: &mut Rng) {
    match code {
        Code::InsufficientRuns => {
            all.baseline.truncate(4);
            if all.is_paired() {
                all.candidate.retain(|run| {
                    let pair = &run.meta["comparison_identity"]["pair_id"];
                    all.baseline
                        .iter()
                        .any(|other| other.meta["comparison_identity"]["pair_id"] == *pair)
                });
            }
        }
        Code::DuplicateRunIds => {
            let id = all.any(rng).meta["run_id"].clone();
            let other = if all.baseline[0].meta["run_id"] == id { 1 } else { 0 };
            all.baseline[other].meta["run_id"] = id;
        }
        Code::NoRuns => *all = Cohorts::default(),
        Code::CaptureSemanticsMismatch => semantics(all.any(rng), rng),
        Code::IncompleteCapture => {
            let run = all.any(rng);
            match rng.below(3) {
                0 => run.failed = Some("out of memory".to_owned()),
                1 => drop(run.add_op("nowhere", 0, 0)),
                _ => {
                    run.add_gradient("", "", "present", None);
                    run.failed = Some("why".to_owned());
                }
            }
        }
        Code::NotProductionEquivalent => {
            let scope = json!(rng.pick(&["unknown", "profiled_work"]));
            all.all().for_each(|run| run.contract()["measurement_scope"] = scope.clone());
        }
        Code::UnsynchronizedDeviceRegion => {
            let device = json!(rng.pick(&["cuda:0", "Cpu", " cpu", "metal"]));
            all.all().for_each(|run| run.meta["device"] = device.clone());
        }
        Code::MeasuredRegionCountInvalid => {
            let run = all.any(rng);
            if rng.one_in(2) {
                let at = run.add_span(None, 0, Some(0));
                run.spans[at].measured = true;
                // Sorted as text, it comes before the other one.
                run.spans[at].id = "a".to_owned();
            } else {
                run.spans[0].measured = false;
                run.failed = Some("too early".to_owned());
            }
        }
        Code::IdentityMissing => {
            let run = all.any(rng).meta.as_object_mut().unwrap();
            run.remove("comparison_identity");
        }
        Code::IdentityInvalid => {
            let fields = ["workload_id", "seed_policy", "device_state", "physical_batch"];
            let field = *rng.pick(&fields);
            for run in all.all() {
                let value = if field == "physical_batch" { json!(0) } else { json!(" \u{a0}") };
                run.meta["comparison_identity"][field] = value;
            }
        }
        Code::IdentityConditionsDiffer => {
            let fields = [
                "workload_id",
                "model_id",
                "config_id",
                "data_id",
                "seed_policy",
                "physical_batch",
                "accumulation_steps",
                "precision",
                "device_state",
            ];
            let field = *rng.pick(&fields);
            let number = field == "physical_batch" || field == "accumulation_steps";
            let value = if number { json!(7) } else { json!("another") };
            all.any(rng).meta["comparison_identity"][field] = value;
        }
        Code::ImplementationIdMissing => {
            let run = all.any(rng);
            run.meta["comparison_identity"]["implementation_id"] = Value::Null;
        }
        Code::ImplementationIdEmpty => {
            let blank = *rng.pick(&["", " ", "\u{2003}"]);
            all.any(rng).meta["comparison_identity"]["implementation_id"] = json!(blank);
        }
        Code::ImplementationIdInconsistent => {
            all.any(rng).meta["comparison_identity"]["implementation_id"] = json!("a third one");
        }
        Code::PairingIncomplete => {
            if !all.is_paired() {
                all.pair();
            }
            all.any(rng).meta["comparison_identity"]["pair_id"] = Value::Null;
        }
        Code::PairIdsDuplicated => {
            all.pair();
            let side = if rng.one_in(2) { &mut all.baseline } else { &mut all.candidate };
            side[0].meta["comparison_identity"]["pair_id"] = json!("p3");
        }
        Code::PairSetsMismatch => {
            all.pair();
            let side = if rng.one_in(2) { &mut all.baseline } else { &mut all.candidate };
            side[3].meta["comparison_identity"]["pair_id"] = json!("alone");
        }
        Code::UnverifiedInputs
        | Code::ReceiptCountMismatch
        | Code::ReceiptRunIdMismatch
        | Code::ReceiptDigestInvalid => unreachable!("{code} is not of runs"),
    }
}

fn semantics(run: &mut Sketch, rng: &mut Rng) {
    match rng.below(12) {
        0 => run.meta["entrypoint"] = json!("another"),
        1 => run.meta["phase"] = json!("train"),
        2 => run.meta["device"] = json!("cpu:1"),
        3 => run.meta["timing_mode"] = json!("device_synchronized"),
        4 => run.meta["warmup_steps"] = json!(1),
        5 => run.meta["capture_step"] = json!(7),
        6 => run.meta["measured_region_device_synchronized"] = json!(true),
        7 => {
            let name = run.spans[0].name.clone();
            run.contract()["required_semantic_labels"] = json!([name]);
        }
        8 => run.add_family("active", 1, &["present"]),
        9 => run.contract()["tensors"] = json!("partial"),
        10 => {
            let name = run.spans[0].name.clone();
            run.contract()["required_semantic_labels"] = json!([name]);
            run.contract()["cpu_only_semantic_labels"] = json!([name]);
        }
        _ => run.contract()["physical_memory"] = json!("complete"),
    }
}

/// What a reason never comes without, or does not always.
pub fn company(code: Code) -> &'static [Code] {
    match code {
        Code::NoRuns => {
            &[Code::InsufficientRuns, Code::IdentityMissing, Code::ImplementationIdMissing]
        }
        Code::MeasuredRegionCountInvalid => &[Code::IncompleteCapture, Code::PairingIncomplete],
        Code::IdentityMissing => &[Code::ImplementationIdMissing, Code::PairingIncomplete],
        Code::IdentityInvalid => &[Code::IncompleteCapture],
        Code::ImplementationIdEmpty => &[Code::IncompleteCapture, Code::IdentityInvalid],
        _ => &[],
    }
}
