//! One way or several to break each rule.

use super::base::identity;
use super::sketch::Late;
use super::{Rng, Sketch};
use serde_json::json;
use tmrun_formats::evidence::HealthCode as Code;

/// What is blank to readers.
const BLANKS: [&str; 5] = ["", " ", "\t", "\u{a0}", "\u{2003}\n"];

/// Breaks the rule of a code.
pub fn add(code: Code, sketch: &mut Sketch, rng: &mut Rng) {
    match code {
        Code::RunProvenanceInvalid => provenance(sketch, rng),
        Code::CompleteWithFailureReason => {
            sketch.failed = None;
            sketch.late.push(Late::ReasonOfComplete);
        }
        Code::FailedWithoutReason => {
            sketch.failed = Some("why".to_owned());
            sketch.late.push(*rng.pick(&[Late::NoReasonOfFailed, Late::BlankReasonOfFailed]));
        }
        Code::TerminalPrecedesEvidence => sketch.late.push(Late::EndsEarly),
        Code::CaptureFailed => sketch.failed = Some("device lost".to_owned()),
        Code::DuplicateSpanId => sketch.late.push(Late::SpanTwice),
        Code::RootCount => {
            let at = sketch.add_span(None, 3, Some(0));
            sketch.spans[at].parent = None;
            if at == 0 {
                sketch.add_span(None, 3, Some(0));
                sketch.spans[1].parent = None;
            }
        }
        Code::MeasurementCount => {
            sketch.failed = None;
            let measured = rng.one_in(2);
            sketch.spans.iter_mut().for_each(|span| span.measured = measured);
            if measured && sketch.spans.len() < 2 {
                let at = sketch.add_span(None, sketch.spans[0].start, Some(0));
                sketch.spans[at].measured = true;
            }
        }
        Code::OpenSpan => {
            let at = rng.place(sketch.spans.len());
            sketch.spans[at].duration = None;
        }
        Code::UnknownParent => {
            let at = sketch.add_span(None, 4, Some(1));
            sketch.spans[at].parent = Some("nowhere".to_owned());
        }
        Code::ChildOutsideParent => child_outside(sketch, rng),
        Code::SpanCycle => cycle(sketch, rng),
        Code::UnknownSpan => match rng.below(5) {
            0 => drop(sketch.add_op("nowhere", 0, 0)),
            1 => drop(sketch.add_tensor("nowhere", "t1")),
            2 => sketch.stats.push(json!({
                "span_id": "", "label": "l", "shape": [], "dtype": "f64", "elements": 1,
                "non_finite": 0, "rms": 1.0, "abs_max": 1.0, "mean": 1.0,
            })),
            3 => {
                let storage = sketch.name("q");
                sketch.add_memory("alloc", 5, &storage, "t1", "nowhere", 4);
            }
            _ => sketch.add_interval("nowhere", 3, 4),
        },
        Code::EmptyDeviceInterval => {
            let span = sketch.spans[rng.place(sketch.spans.len())].id.clone();
            sketch.add_interval(&span, rng.below(9), 0);
        }
        Code::OperationOutsideSpan => {
            let at = sketch.closed(rng);
            let span = sketch.spans[at].clone();
            let (start, duration) = match rng.below(3) {
                0 if span.start > 0 => (span.start - 1, 0),
                1 => (span.end() + 1, 0),
                _ => (span.start, span.end() - span.start + 1),
            };
            sketch.add_op(&span.id, start, duration);
        }
        Code::MemoryOutsideSpan => {
            let at = sketch.closed(rng);
            let (span, storage) = (sketch.spans[at].clone(), sketch.name("q"));
            let before = span.start > 0 && rng.one_in(2);
            let time = if before { span.start - 1 } else { span.end() + 1 };
            sketch.add_memory("alloc", time, &storage, "t1", &span.id, 4);
            if rng.one_in(2) {
                sketch.add_memory("free", time, &storage, "t1", &span.id, 4);
            }
        }
        Code::EmptyDeviceMemorySample => {
            sketch.device_memory.push(json!({ "timestamp_ns": rng.below(9), "device": "cuda:0" }));
        }
        Code::UnknownCallEdgeSpan => {
            let span = sketch.spans[rng.place(sketch.spans.len())].id.clone();
            let (from, to) = *rng.pick(&[(&*span, "?"), ("?", &*span), ("?", "?")]);
            sketch.edges.push(json!({
                "edge_kind": "call", "from_span": from, "to_span": to, "host_duration_ns": 1,
            }));
        }
        Code::CallEdgeHierarchyMismatch | Code::CallEdgeDurationMismatch => {
            call_edge(code, sketch, rng);
        }
        Code::EmptyDataEdgeEndpoint | Code::UnknownDataEdgeTensor => {
            let known = tensor(sketch);
            let bad = if code == Code::EmptyDataEdgeEndpoint { "" } else { rng.pick(&["?", " "]) };
            let (from, to) = *rng.pick(&[(bad, &*known), (&*known, bad), (bad, bad)]);
            sketch.edges.push(json!({ "edge_kind": "data", "from_tensor": from, "to_tensor": to }));
        }
        Code::AllocationSizeMismatch
        | Code::DuplicateAllocation
        | Code::UnpairedFree
        | Code::RetainedAllocations => storage(code, sketch, rng),
        Code::OperationsAbsent => sketch.ops.clear(),
        Code::TensorsAbsent => sketch.tensors.clear(),
        Code::LogicalMemoryAbsent => sketch.memory.clear(),
        Code::PhysicalMemoryAbsent => sketch.device_memory.clear(),
        Code::DeviceTimingAbsent => sketch.intervals.clear(),
        Code::GradientsAbsent => {
            sketch.meta["phase"] = json!("train");
            sketch.gradients.clear();
        }
        Code::ForwardAbsent => without_step(sketch, "forward"),
        Code::BackwardAbsent => without_step(sketch, "backward"),
        Code::OptimizerAbsent => without_step(sketch, "optimizer"),
        Code::EmptyRequiredSemanticLabel
        | Code::DuplicateRequiredSemanticLabel
        | Code::RequiredSemanticLabelCardinality => required_label(code, sketch, rng),
        Code::EmptySemanticLabelClassification
        | Code::DuplicateSemanticLabelClassification
        | Code::UnrequiredSemanticLabelClassification
        | Code::OverlappingSemanticLabelClassification
        | Code::IncompleteSemanticLabelPartition => label_class(code, sketch, rng),
        _ => gradient(code, sketch, rng),
    }
}

fn provenance(sketch: &mut Sketch, rng: &mut Rng) {
    let blank = *rng.pick(&BLANKS);
    match rng.below(6) {
        0 => sketch.meta["capture_step"] = json!(0),
        1 => {
            let step = sketch.meta["capture_step"].as_u64().unwrap();
            sketch.meta["warmup_steps"] = json!(step + rng.below(2));
        }
        2 => {
            let mut identity = identity();
            let count = *rng.pick(&["physical_batch", "accumulation_steps"]);
            identity[count] = json!(0);
            sketch.meta["comparison_identity"] = identity;
        }
        3 => {
            let mut identity = identity();
            let fields = identity.as_object().unwrap().iter();
            let texts: Vec<_> =
                fields.filter(|(_, v)| v.is_string()).map(|(k, _)| k.clone()).collect();
            identity[rng.pick(&texts)] = json!(blank);
            sketch.meta["comparison_identity"] = identity;
        }
        _ => {
            let field =
                *rng.pick(&["run_id", "correlation_id", "entrypoint", "timestamp", "device"]);
            sketch.meta[field] = json!(blank);
        }
    }
}

fn child_outside(sketch: &mut Sketch, rng: &mut Rng) {
    let parent = sketch.closed(rng);
    let (start, end) = (sketch.spans[parent].start, sketch.spans[parent].end());
    match rng.below(4) {
        0 if start > 0 => sketch.add_span(Some(parent), start - 1, Some(0)),
        1 => sketch.add_span(Some(parent), end + 1, Some(0)),
        2 => sketch.add_span(Some(parent), start, Some(u64::MAX)),
        _ => sketch.add_span(Some(parent), end, Some(1)),
    };
}

fn cycle(sketch: &mut Sketch, rng: &mut Rng) {
    let length = 1 + rng.place(3);
    let first = sketch.spans.len();
    for _ in 0..length {
        sketch.add_span(None, 6, Some(0));
    }
    for at in 0..length {
        sketch.spans[first + at].parent = Some(sketch.spans[first + (at + 1) % length].id.clone());
    }
    if rng.one_in(2) {
        sketch.add_span(Some(first), 6, Some(0));
    }
}

fn call_edge(code: Code, sketch: &mut Sketch, rng: &mut Rng) {
    let (outer, between) = (sketch.closed(rng), rng.one_in(2));
    let start = sketch.spans[outer].start;
    let middle = if between { sketch.add_span(Some(outer), start, Some(0)) } else { outer };
    let inner = sketch.add_span(Some(middle), start, Some(0));
    let (from, to, duration) = match code {
        Code::CallEdgeDurationMismatch => (middle, inner, 1 + rng.below(3)),
        _ if between => (outer, inner, 0),
        _ => (inner, inner, 0),
    };
    sketch.edges.push(json!({
        "edge_kind": "call", "from_span": sketch.spans[from].id, "to_span": sketch.spans[to].id,
        "host_duration_ns": duration,
    }));
}

/// A tensor that a tensor event or an operation names.
fn tensor(sketch: &mut Sketch) -> String {
    let of_op = || sketch.ops.iter().find_map(|op| op.get("output")?.as_str().map(str::to_owned));
    let known = sketch.tensors.first().map(|t| t["tensor_id"].as_str().unwrap().to_owned());
    known.or_else(of_op).unwrap_or_else(|| "t0".to_owned())
}

fn storage(code: Code, sketch: &mut Sketch, rng: &mut Rng) {
    let at = sketch.closed(rng);
    let (span, storage) = (sketch.spans[at].clone(), sketch.name("q"));
    let time = rng.between(span.start, span.end());
    let mut add = |action, tensor, bytes| {
        sketch.add_memory(action, time, &storage, tensor, &span.id, bytes);
    };
    match code {
        Code::UnpairedFree => {
            if rng.one_in(2) {
                add("alloc", "t1", 4);
                add("free", "t1", 4);
            }
            return add("free", "t1", 4);
        }
        Code::RetainedAllocations => return add("alloc", "t1", 4),
        Code::DuplicateAllocation => {
            add("alloc", "t1", 4);
            let tensor = *rng.pick(&["t1", "t2"]);
            if tensor == "t2" {
                add("alloc", "t2", 4);
            }
            add("alloc", tensor, 4);
        }
        _ => {
            add("alloc", "t1", 4);
            if rng.one_in(2) {
                return add("free", "t1", 5);
            }
            add("alloc", *rng.pick(&["t1", "t2"]), 5);
        }
    }
    if rng.one_in(2) {
        add("free", "t1", 4);
    }
}

fn without_step(sketch: &mut Sketch, step: &str) {
    sketch.meta["phase"] = json!("train");
    for span in &mut sketch.spans {
        span.step = span.step.filter(|of| *of != step);
    }
}

fn labels<'s>(sketch: &'s mut Sketch, list: &str) -> &'s mut Vec<serde_json::Value> {
    let list = &mut sketch.contract()[list];
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().unwrap()
}

/// A span's name that no other has, required.
fn required(sketch: &mut Sketch) -> String {
    let at = sketch.add_span(None, 2, Some(0));
    let (start, name) = (sketch.spans[0].start, sketch.spans[at].name.clone());
    sketch.spans[at].start = start;
    labels(sketch, "required_semantic_labels").push(json!(name));
    name
}

fn required_label(code: Code, sketch: &mut Sketch, rng: &mut Rng) {
    let label = match code {
        Code::EmptyRequiredSemanticLabel => (*rng.pick(&BLANKS)).to_owned(),
        Code::DuplicateRequiredSemanticLabel => required(sketch),
        _ => "no span's name".to_owned(),
    };
    if code == Code::EmptyRequiredSemanticLabel && rng.one_in(2) {
        let at = sketch.add_span(None, sketch.spans[0].start, Some(0));
        sketch.spans[at].name.clone_from(&label);
    }
    if code == Code::RequiredSemanticLabelCardinality && rng.one_in(2) {
        for _ in 0..2 {
            let at = sketch.add_span(None, sketch.spans[0].start, Some(0));
            sketch.spans[at].name.clone_from(&label);
        }
    }
    labels(sketch, "required_semantic_labels").push(json!(label));
}

fn label_class(code: Code, sketch: &mut Sketch, rng: &mut Rng) {
    const CLASSES: [&str; 2] = ["gpu_expected_semantic_labels", "cpu_only_semantic_labels"];
    let class = *rng.pick(&CLASSES);
    let label = match code {
        Code::EmptySemanticLabelClassification => (*rng.pick(&BLANKS)).to_owned(),
        Code::UnrequiredSemanticLabelClassification => "not required".to_owned(),
        _ => required(sketch),
    };
    match code {
        Code::IncompleteSemanticLabelPartition => {
            let other = required(sketch);
            return labels(sketch, class).push(json!(other));
        }
        Code::OverlappingSemanticLabelClassification => {
            CLASSES.iter().for_each(|class| labels(sketch, class).push(json!(label)));
            return;
        }
        Code::DuplicateSemanticLabelClassification => labels(sketch, class).push(json!(label)),
        _ => {}
    }
    labels(sketch, class).push(json!(label));
}

/// A gradient contract of a parameter and a family at least.
fn with_contract(sketch: &mut Sketch) {
    let none = sketch.contract()["gradient_contract"].is_null();
    if none || sketch.list("expected").is_empty() || sketch.list("families").is_empty() {
        sketch.add_family("active", 1, &["present", "missing"]);
    }
}

fn gradient(code: Code, sketch: &mut Sketch, rng: &mut Rng) {
    match code {
        Code::EmptyGradientEventId | Code::DuplicateGradientEventId => {
            sketch.add_gradient("vb", "other", "missing", None);
            let last = sketch.gradients.len() - 1;
            let id = match code {
                Code::EmptyGradientEventId => json!(rng.pick(&BLANKS)),
                _ if last > 0 => sketch.gradients[rng.place(last)]["event_id"].clone(),
                _ => {
                    sketch.add_gradient("vb", "another", "missing", None);
                    sketch.gradients[1]["event_id"].clone()
                }
            };
            sketch.gradients[last]["event_id"] = id;
        }
        Code::EmptyGradientParameterKey => {
            let (root, key) = *rng.pick(&[("", "k"), ("vb", " "), ("\t", "\u{a0}")]);
            sketch.add_gradient(root, key, "missing", None);
        }
        Code::GradientStateNormInconsistent => {
            let (state, norm) = *rng.pick(&[
                ("present", None),
                ("present", Some(0.0)),
                ("present", Some(-1.0)),
                ("zero", None),
                ("zero", Some(-0.0)),
                ("zero", Some(5e-324)),
                ("missing", Some(0.0)),
                ("missing", Some(1.0)),
                ("non_finite", Some(1.0)),
            ]);
            sketch.add_gradient("vb", "k", state, norm);
        }
        Code::GradientContractMissing => {
            sketch.contract().as_object_mut().unwrap().remove("gradient_contract");
            sketch.contract()["gradients"] = json!("complete");
        }
        Code::GradientContractWithoutCompleteCoverage => {
            with_contract(sketch);
            sketch.contract()["gradients"] = json!(rng.pick(&["none", "partial"]));
        }
        Code::GradientContractInvalid => {
            with_contract(sketch);
            sketch.contract()["gradients"] = json!("complete");
            contract(sketch, rng);
        }
        Code::GradientManifestDuplicateKey => {
            with_contract(sketch);
            let key = sketch.list("expected")[0]["key"].as_str().unwrap().to_owned();
            for _ in 0..2 {
                sketch.add_gradient("vb", &key, "present", Some(1.0));
            }
        }
        Code::GradientManifestUndeclaredKey => {
            with_contract(sketch);
            let (root, key) = *rng.pick(&[("vb", "undeclared"), ("other", "w1")]);
            sketch.add_gradient(root, key, "missing", None);
        }
        Code::GradientManifestMissingKey => {
            let expectation = rng.pick(&["active", "data_conditional"]);
            sketch.add_family(expectation, 1, &["present", "", "missing"]);
        }
        Code::GradientFamilyNonFinite => match rng.below(3) {
            0 => sketch.add_family("active", 1, &["present", "non_finite"]),
            1 => sketch.add_family("inactive", 0, &["non_finite"]),
            _ => sketch.add_family("data_conditional", 1, &["non_finite"]),
        },
        Code::GradientActiveFamilyBelowMinimum => match rng.below(3) {
            0 => sketch.add_family("active", 2, &["present", "zero"]),
            1 => sketch.add_family("active", 1, &["missing"]),
            _ => sketch.add_family("active", 1, &[""]),
        },
        Code::GradientInactiveFamilyLeakage => {
            let leak = *rng.pick(&["present", "zero", "non_finite"]);
            sketch.add_family("inactive", 0, &["missing", leak]);
        }
        Code::GradientConditionalFamilyBelowMinimum => {
            let other = *rng.pick(&["missing", "zero", "non_finite", ""]);
            sketch.add_family("data_conditional", 2, &["present", other]);
        }
        _ => unreachable!("{code} has no way to be broken"),
    }
}

/// Breaks one of the rules that a gradient contract has by itself.
fn contract(sketch: &mut Sketch, rng: &mut Rng) {
    let blank = json!(rng.pick(&BLANKS));
    match rng.below(10) {
        0 => return sketch.contract()["gradient_contract"]["manifest_sha256"] = json!("sha256:0"),
        1 => sketch.list("expected").clear(),
        2 => sketch.list("families").clear(),
        3 => sketch.list("expected")[0][*rng.pick(&["root", "key", "family"])] = blank,
        4 => sketch.list("families")[0]["family"] = blank,
        5 => {
            let first = sketch.list("expected")[0].clone();
            sketch.list("expected").push(first);
        }
        6 => {
            let first = sketch.list("families")[0].clone();
            sketch.list("families").push(first);
        }
        7 => sketch.list("families").push(json!({
            "family": "of nobody", "expectation": "inactive", "min_present": 0,
        })),
        8 => sketch.list("expected").push(json!({
            "root": "vb", "key": "of no family", "family": "undeclared",
        })),
        _ => {
            let family = &mut sketch.list("families")[0];
            let active = family["expectation"] != "inactive";
            let wrong = if active { *rng.pick(&[0, 99]) } else { 1 };
            family["min_present"] = json!(wrong);
        }
    }
    sketch.sign();
}

/// Whether a code is an error of a capture that `failed` or did not.
pub fn is_error(code: Code, failed: bool) -> bool {
    code.severity().of(failed) == tmrun_formats::evidence::HealthSeverity::Error
}

/// Whether two codes cannot be of one trace.
pub fn exclude_each_other(left: Code, right: Code) -> bool {
    /// A capture failed or did not.
    const ENDS: [[Code; 2]; 4] = [
        [Code::CompleteWithFailureReason, Code::CaptureFailed],
        [Code::CompleteWithFailureReason, Code::FailedWithoutReason],
        [Code::MeasurementCount, Code::CaptureFailed],
        [Code::MeasurementCount, Code::FailedWithoutReason],
    ];
    /// A contract that is none is not held against gradients.
    const NO_CONTRACT: [Code; 3] = [
        Code::GradientContractMissing,
        Code::GradientContractWithoutCompleteCoverage,
        Code::GradientContractInvalid,
    ];
    const OF_CONTRACT: [Code; 7] = [
        Code::GradientManifestDuplicateKey,
        Code::GradientManifestUndeclaredKey,
        Code::GradientManifestMissingKey,
        Code::GradientFamilyNonFinite,
        Code::GradientActiveFamilyBelowMinimum,
        Code::GradientInactiveFamilyLeakage,
        Code::GradientConditionalFamilyBelowMinimum,
    ];
    /// What nothing of a plane is there to break.
    const WITHOUT: [(Code, &[Code]); 5] = [
        (Code::OperationsAbsent, &[Code::OperationOutsideSpan]),
        (
            Code::LogicalMemoryAbsent,
            &[
                Code::MemoryOutsideSpan,
                Code::AllocationSizeMismatch,
                Code::DuplicateAllocation,
                Code::UnpairedFree,
                Code::RetainedAllocations,
            ],
        ),
        (Code::PhysicalMemoryAbsent, &[Code::EmptyDeviceMemorySample]),
        (Code::DeviceTimingAbsent, &[Code::EmptyDeviceInterval]),
        (
            Code::GradientsAbsent,
            &[
                Code::EmptyGradientEventId,
                Code::EmptyGradientParameterKey,
                Code::DuplicateGradientEventId,
                Code::GradientStateNormInconsistent,
                Code::GradientManifestDuplicateKey,
                Code::GradientManifestUndeclaredKey,
                Code::GradientFamilyNonFinite,
                Code::GradientInactiveFamilyLeakage,
                Code::GradientConditionalFamilyBelowMinimum,
            ],
        ),
    ];
    let either = |one: &dyn Fn(Code, Code) -> bool| one(left, right) || one(right, left);
    ENDS.iter().any(|of| of.contains(&left) && of.contains(&right))
        || (NO_CONTRACT.contains(&left) && NO_CONTRACT.contains(&right))
        || either(&|left, right| NO_CONTRACT.contains(&left) && OF_CONTRACT.contains(&right))
        || either(&|left, right| {
            WITHOUT.iter().any(|(absent, of)| *absent == left && of.contains(&right))
        })
}
