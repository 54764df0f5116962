//! Evidence is the neighbour's, whatever is wrong with a trace: each rule broken by itself, and
//! together with each other that can be.

#[path = "planes_support/peaks.rs"]
mod peaks;
#[path = "support/traces/mod.rs"]
mod traces;

use candle_graph_v10::nsight::NsightEvidence;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tmrun::comparison::{self, Run};
use tmrun::evidence::derive;
use tmrun_formats::evidence::{Evidence, Gpu, HealthCode};
use tmrun_formats::trace::TraceDocument;
use traces::neighbour::{self, without_prose};
use traces::{Rng, Sketch, base, faults};

/// The codes of a trace of which both say the same; panics with the trace where they do not.
fn judge(text: &str, late: &[traces::sketch::Late]) -> BTreeSet<HealthCode> {
    let mut trace = TraceDocument::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut document = neighbour::document(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    neighbour::apply(late, &mut trace, &mut document);
    let theirs = neighbour::evidence(document).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let evidence = derive(&trace, None, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    compare(&trace, &evidence, theirs, &format!("{text}{late:?}"));
    evidence.health.issues.iter().filter_map(|issue| issue.code.known()).collect()
}

/// Holds our evidence against the neighbour's.
fn compare(trace: &TraceDocument<'_>, evidence: &Evidence<'_>, theirs: Value, text: &str) {
    assert!(evidence.gaps.is_sorted());
    for issue in &evidence.health.issues {
        assert_ne!(issue.message, "", "every issue says what it is");
    }
    let ours = serde_json::to_value(evidence).unwrap();
    let (mut theirs, mut ours) = (without_prose(theirs), without_prose(ours));
    if !peaks::neighbour_counts_right(&theirs) {
        if evidence.graph.is_some() {
            peaks::check(&ours, trace, text);
        }
        peaks::forget(&mut theirs);
        peaks::forget(&mut ours);
    }
    if let Some(found) = neighbour::difference(&ours, &theirs) {
        panic!("{found}\n{text}");
    }
}

/// Holds what both say of two traces, as a baseline and its candidate.
fn judge_comparison(baseline: &str, candidate: &str) {
    let of_theirs = |text| [neighbour::document(text).unwrap()];
    let mut theirs =
        candle_graph_v10::compare_unverified_traces(&of_theirs(baseline), &of_theirs(candidate));
    theirs.reasons.iter_mut().for_each(|reason| reason.message.clear());
    let of_ours = |text| [Run::of(&TraceDocument::parse(text).unwrap()).unwrap()];
    let (left, right) = (of_ours(baseline), of_ours(candidate));
    let mut ours = comparison::compare(&left, &right, comparison::unverified());
    ours.reasons.iter_mut().for_each(|reason| reason.message = "".into());
    let [ours, theirs] = [serde_json::to_value(&ours), serde_json::to_value(&theirs)];
    if let Some(found) = neighbour::difference(&ours.unwrap(), &theirs.unwrap()) {
        panic!("{found}\n{baseline}\n{candidate}");
    }
}

/// How often each code and each pair of codes was met, over traces no two of which are of one structure.
#[derive(Default)]
struct Met {
    /// The trace before, if a text can say all of it.
    before: Option<String>,
    comparisons: usize,
    structures: BTreeSet<String>,
    codes: BTreeMap<HealthCode, usize>,
    /// Where the code is the only one that breaks a rule.
    alone: BTreeMap<HealthCode, usize>,
    pairs: BTreeMap<(HealthCode, HealthCode), usize>,
}

/// What is left of a trace without its numbers and the spelling of its texts: which events with which
/// keys, lists of which lengths, and who names the same thing as who.
fn structure(text: &str, late: &[traces::sketch::Late]) -> String {
    fn strip(value: &mut Value, texts: &mut BTreeMap<String, usize>) {
        match value {
            Value::Number(number) => *number = 0.into(),
            Value::String(text) => {
                let next = texts.len();
                let place = *texts.entry(std::mem::take(text)).or_insert(next);
                *text = place.to_string();
            }
            Value::Array(values) => values.iter_mut().for_each(|value| strip(value, texts)),
            Value::Object(fields) => fields.values_mut().for_each(|value| strip(value, texts)),
            Value::Null | Value::Bool(_) => (),
        }
    }
    let mut texts = BTreeMap::new();
    let lines = text.lines().map(|line| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let kind = event["kind"].as_str().unwrap_or_default().to_owned();
        strip(&mut event, &mut texts);
        format!("{kind} {event}\n")
    });
    format!("{}{late:?}", lines.collect::<String>())
}

impl Met {
    fn judge(&mut self, sketch: &Sketch, rng: &mut Rng) -> BTreeSet<HealthCode> {
        let text = sketch.text(rng);
        let codes = judge(&text, &sketch.late);
        if sketch.late.is_empty()
            && let Some(before) = self.before.replace(text.clone())
        {
            judge_comparison(&before, &text);
            self.comparisons += 1;
        }
        if self.structures.insert(structure(&text, &sketch.late)) {
            let is_error = |code: &HealthCode| faults::is_error(*code, sketch.failed.is_some());
            let broken = codes.iter().filter(|code| is_error(code)).count();
            for &left in &codes {
                *self.codes.entry(left).or_default() += 1;
                let others = broken - usize::from(is_error(&left));
                *self.alone.entry(left).or_default() += usize::from(others == 0);
                for &right in codes.iter().filter(|&&right| left < right) {
                    *self.pairs.entry((left, right)).or_default() += 1;
                }
            }
        }
        codes
    }
}

#[test]
fn every_code_alone_and_with_every_other_is_as_the_neighbour_has_it() {
    const EACH: u64 = 20;
    const TRIES: u64 = 40;
    let mut met = Met::default();
    let mut seed = 0;
    let mut next = || {
        seed += 1;
        Rng::new(seed)
    };
    for _ in 0..200 {
        let mut rng = next();
        let sketch = base::sketch(&mut rng);
        let codes = met.judge(&sketch, &mut rng);
        let errors = codes.iter().filter(|code| faults::is_error(**code, sketch.failed.is_some()));
        assert_eq!(errors.count(), 0, "{codes:?} of a trace that breaks no rule");
    }
    for &code in HealthCode::ALL {
        let mut alone = 0;
        for _ in 0..EACH * 2 {
            let mut rng = next();
            let mut sketch = base::sketch(&mut rng);
            faults::add(code, &mut sketch, &mut rng);
            alone += u64::from(met.judge(&sketch, &mut rng).contains(&code));
        }
        assert!(alone >= EACH, "{code} was met in {alone} traces of its own");
    }
    let mut never = Vec::new();
    for (at, &left) in HealthCode::ALL.iter().enumerate() {
        for &right in &HealthCode::ALL[..at] {
            let hit = (0..TRIES).any(|attempt| {
                let mut rng = next();
                let mut sketch = base::sketch(&mut rng);
                let mut both = [left, right];
                both.rotate_left((attempt % 2) as usize);
                both.iter().for_each(|&code| faults::add(code, &mut sketch, &mut rng));
                met.judge(&sketch, &mut rng).is_superset(&both.into())
            });
            assert!(!(hit && faults::exclude_each_other(left, right)), "{left} with {right}");
            if !hit && !faults::exclude_each_other(left, right) {
                never.push((left, right));
            }
        }
    }
    println!("{} structures, {} pairs of codes", met.structures.len(), met.pairs.len());
    println!("{} comparisons of two of them", met.comparisons);
    assert!(met.comparisons >= 2_000);
    for (code, count) in &met.codes {
        println!("{count:6}, {:4} alone: {code}", met.alone[code]);
    }
    assert!(never.is_empty(), "never met together: {never:?}");
    assert_eq!(met.codes.len(), HealthCode::ALL.len());
    assert!(met.codes.values().all(|count| *count >= 20));
    assert!(met.alone.values().all(|count| *count > 0));
    assert!(met.structures.len() >= 2000, "{} structures", met.structures.len());
}

#[test]
fn samples_are_as_the_neighbour_has_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/trace");
    let mut judged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let is_read = TraceDocument::parse(&text).is_ok();
        assert_eq!(is_read, neighbour::document(&text).is_ok(), "{}", path.display());
        let Ok(document) = neighbour::document(&text) else { continue };
        match neighbour::evidence(document) {
            Ok(_) => drop(judge(&text, &[])),
            Err(_) => {
                let trace = TraceDocument::parse(&text).unwrap();
                assert!(derive(&trace, None, None).is_err(), "{}", path.display());
            }
        }
        judged += 1;
    }
    assert!(judged >= 35, "{judged}");
}

/// A root from 10 to 110 and the measured span `m` from 20 to 100.
fn two_spans() -> Sketch {
    let mut sketch = Sketch { meta: base::sketch(&mut Rng::new(1)).meta, ..Sketch::default() };
    sketch.contract()["required_semantic_labels"] = json!([]);
    for class in ["gpu_expected_semantic_labels", "cpu_only_semantic_labels"] {
        sketch.contract()[class] = json!([]);
    }
    sketch.contract().as_object_mut().unwrap().remove("gradient_contract");
    sketch.contract()["gradients"] = json!("none");
    sketch.add_span(None, 10, Some(100));
    sketch.add_span(Some(0), 20, Some(80));
    sketch.spans[1].id = "m".to_owned();
    sketch.spans[1].measured = true;
    sketch
}

/// Changes a trace so that a rule holds just so, or, with `true`, no longer.
type Limit = (HealthCode, fn(&mut Sketch, bool));

const LIMITS: [Limit; 25] = [
    (HealthCode::ChildOutsideParent, |sketch, over| {
        sketch.add_span(Some(1), 20 - u64::from(over), Some(0));
    }),
    (HealthCode::ChildOutsideParent, |sketch, over| {
        sketch.add_span(Some(1), 20, Some(80 + u64::from(over)));
    }),
    (HealthCode::ChildOutsideParent, |sketch, over| {
        // Ends stay at the end of their range: the parent's is there, or one before.
        sketch.spans[0].duration = Some(u64::MAX - 10 - u64::from(over));
        sketch.add_span(Some(0), u64::MAX - 3, Some(90));
    }),
    (HealthCode::OperationOutsideSpan, |sketch, over| {
        sketch.add_op("m", 20 - u64::from(over), 0);
    }),
    (HealthCode::OperationOutsideSpan, |sketch, over| {
        sketch.add_op("m", 100, u64::from(over));
    }),
    (HealthCode::MemoryOutsideSpan, |sketch, over| {
        sketch.add_memory("alloc", 20 - u64::from(over), "p", "t", "m", 1);
    }),
    (HealthCode::MemoryOutsideSpan, |sketch, over| {
        sketch.add_memory("alloc", 100 + u64::from(over), "p", "t", "m", 1);
    }),
    (HealthCode::MemoryOutsideSpan, |sketch, over| {
        sketch.spans[1].duration = over.then_some(80);
        sketch.failed = Some("why".to_owned());
        sketch.add_memory("alloc", 101, "p", "t", "m", 1);
    }),
    (HealthCode::EmptyDeviceInterval, |sketch, over| {
        sketch.add_interval("m", 5, u64::from(!over));
    }),
    (HealthCode::RunProvenanceInvalid, |sketch, over| {
        sketch.meta["capture_step"] = json!(1);
        sketch.meta["warmup_steps"] = json!(u64::from(over));
    }),
    (HealthCode::RunProvenanceInvalid, |sketch, over| {
        // A space of no width is no white space.
        sketch.meta["device"] = json!(if over { "\u{2003}" } else { "\u{200b}" });
    }),
    (HealthCode::GradientStateNormInconsistent, |sketch, over| {
        sketch.add_gradient("r", "k", "present", Some(if over { 0.0 } else { 5e-324 }));
    }),
    (HealthCode::GradientStateNormInconsistent, |sketch, over| {
        sketch.add_gradient("r", "k", "zero", Some(if over { -0.0 } else { 0.0 }));
    }),
    (HealthCode::GradientActiveFamilyBelowMinimum, |sketch, over| {
        sketch.add_family("active", 1 + u64::from(over), &["present", "zero", "missing"]);
    }),
    (HealthCode::GradientConditionalFamilyBelowMinimum, |sketch, over| {
        let first = if over { "present" } else { "zero" };
        sketch.add_family("data_conditional", 2, &[first, "missing"]);
    }),
    (HealthCode::GradientConditionalFamilyBelowMinimum, |sketch, over| {
        let second = if over { "zero" } else { "present" };
        sketch.add_family("data_conditional", 2, &["present", second, "missing"]);
    }),
    (HealthCode::GradientActiveFamilyBelowMinimum, |sketch, over| {
        // A failed capture is held to its families only where it saw all of them.
        sketch.failed = Some("why".to_owned());
        sketch.add_family("active", 2, &["present", if over { "missing" } else { "" }]);
    }),
    (HealthCode::GradientConditionalFamilyBelowMinimum, |sketch, over| {
        sketch.failed = Some("why".to_owned());
        sketch.add_family("data_conditional", 2, &["present", if over { "zero" } else { "" }]);
    }),
    (HealthCode::GradientContractInvalid, |sketch, over| {
        sketch.add_family("active", 2 + u64::from(over), &["present", "present"]);
    }),
    (HealthCode::AllocationSizeMismatch, |sketch, over| {
        sketch.add_memory("alloc", 30, "p", "t", "m", 8);
        sketch.add_memory("alloc", 31, "p", "u", "m", 8 + u64::from(over));
    }),
    (HealthCode::DuplicateAllocation, |sketch, over| {
        sketch.add_memory("alloc", 30, "p", "t", "m", 8);
        sketch.add_memory("alloc", 31, "p", if over { "t" } else { "u" }, "m", 8);
    }),
    (HealthCode::UnpairedFree, |sketch, over| {
        // Of one time, the file's order decides.
        for action in if over { ["free", "alloc"] } else { ["alloc", "free"] } {
            sketch.add_memory(action, 30, "p", "t", "m", 8);
        }
    }),
    (HealthCode::UnpairedFree, |sketch, over| {
        sketch.add_memory("free", 31 - 2 * u64::from(over), "p", "t", "m", 8);
        sketch.add_memory("alloc", 30, "p", "t", "m", 8);
    }),
    (HealthCode::EmptyDataEdgeEndpoint, |sketch, over| {
        sketch.add_tensor("m", " ");
        let from = if over { "" } else { " " };
        sketch.edges.push(json!({ "edge_kind": "data", "from_tensor": from, "to_tensor": " " }));
    }),
    (HealthCode::RequiredSemanticLabelCardinality, |sketch, over| {
        sketch.contract()["required_semantic_labels"] = json!(["label"]);
        sketch.spans[0].name = if over { "label " } else { "label" }.to_owned();
    }),
];

#[test]
fn each_rule_holds_up_to_its_limit_and_not_beyond() {
    for (at, (code, change)) in LIMITS.into_iter().enumerate() {
        let met = [false, true].map(|over| {
            let mut sketch = two_spans();
            change(&mut sketch, over);
            judge(&sketch.text(&mut Rng::new(7)), &[]).contains(&code)
        });
        assert_eq!(met, [false, true], "limit {at}, {code}");
    }
}

/// What was read of Nsight's reports, of every kind.
fn reports(rng: &mut Rng) -> Value {
    let mut gpu = serde_json::to_value(NsightEvidence::unavailable("not asked for")).unwrap();
    gpu["status"] = json!(rng.pick(&["available", "available", "unavailable", "failed"]));
    if rng.one_in(2) {
        gpu.as_object_mut().unwrap().remove("reason");
    }
    gpu["correlation"]["complete"] = json!(rng.one_in(2));
    if rng.one_in(2) {
        gpu["correlation"].as_object_mut().unwrap().remove("reason");
    }
    if !rng.one_in(4) {
        gpu["provenance"]["manifest"] = json!({
            "schema": "candle-graph/nsight-capture/1", "run": { "id": "run-1" },
            "correlation": { "id": "c/1" }, "tool": { "name": "nsys", "version": "1" },
            "commands": [], "hardware": {}, "source_revisions": {},
            "required_semantic_labels": [], "artifacts": [],
        });
        gpu["provenance"]["binding"] = json!(rng.pick(&["partial", "partial", "mismatch"]));
    }
    for total in 0..rng.below(3) {
        let kernels = gpu["kernels"].as_array_mut().unwrap();
        kernels.push(json!({ "name": format!("kernel {total}"), "total_ns": 9 - total }));
    }
    gpu
}

#[test]
fn reports_of_nsight_qualify_as_with_the_neighbour() {
    let mut levels = BTreeMap::<String, usize>::new();
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let text = base::sketch(&mut rng).text(&mut rng);
        let gpu: NsightEvidence = serde_json::from_value(reports(&mut rng)).unwrap();
        let trace = TraceDocument::parse(&text).unwrap();
        let theirs = neighbour::evidence_with(neighbour::document(&text).unwrap(), gpu).unwrap();
        let gpu: Gpu<'_> = serde_json::from_value(theirs["gpu"].clone()).unwrap();
        let evidence = derive(&trace, Some(gpu), None).unwrap();
        compare(&trace, &evidence, theirs, &text);
        let capabilities = &evidence.capabilities;
        for (what, level) in [
            ("correlation", capabilities.gpu_correlation.level),
            ("binding", capabilities.provenance_binding.level),
        ] {
            *levels.entry(format!("{what} {level}")).or_default() += 1;
        }
        for finding in &evidence.findings {
            *levels.entry(format!("{} {}", finding.code, finding.qualification)).or_default() += 1;
        }
    }
    println!("{levels:#?}");
    let expected = ["unavailable", "partial", "complete", "invalid"];
    for level in expected
        .iter()
        .flat_map(|level| [format!("correlation {level}"), format!("binding {level}")])
    {
        assert!(levels.contains_key(&level), "{level} was never met");
    }
    for code in tmrun_formats::evidence::FindingCode::ALL {
        assert!(levels.keys().any(|met| met.starts_with(code.name())), "{code} was never met");
    }
}
