//! The audit beside the real neighbour's, over every sample and over traces made for a point.

use candle_graph_v03::runtime as theirs;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;
use std::{fs, str};
use tmrun::audit::{
    AuditReport, ExpectedIdentity, IdentityField, agreed_gradient, agreed_tensor, audit,
};
use tmrun_formats::runtime::{
    GradientFact, GradientState, RuntimeDocument, RuntimeGap, SCHEMA_V3, TensorObservation,
    ValueObservation, read,
};

fn samples() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/runtime");
    let mut samples = Vec::new();
    for folder in ["valid", "audit", "."] {
        for entry in fs::read_dir(root.join(folder)).expect("sample folder") {
            let path = entry.expect("entry").path();
            if path.is_file() {
                samples.push((path.display().to_string(), fs::read(&path).expect("sample")));
            }
        }
    }
    assert!(samples.len() > 15);
    samples
}

fn their_audit(text: &[u8], expected: Option<&theirs::ExpectedIdentity>) -> Value {
    let trace = theirs::parse(str::from_utf8(text).expect("text")).expect("theirs reads it");
    serde_json::to_value(trace.audit_with_identity(expected)).expect("value")
}

/// Our report without what only we look at.
fn shared_part(report: &AuditReport) -> Value {
    let mut value = serde_json::to_value(report).expect("value");
    value.as_object_mut().expect("object").remove("extra").expect("ours");
    value
}

fn sample(name: &str) -> RuntimeDocument {
    let (_, bytes) = samples()
        .into_iter()
        .find(|(path, _)| path.ends_with(name))
        .unwrap_or_else(|| panic!("no sample {name}"));
    read(&bytes).expect("valid sample")
}

fn fact(id: &str, state: GradientState, norm: Option<f64>, step: Option<u64>) -> GradientFact {
    let (event_id, root, key) = (id.into(), "vb".into(), "w".into());
    GradientFact { event_id, root, key, state, step, norm }
}

fn trace(gradients: Vec<GradientFact>) -> RuntimeDocument {
    RuntimeDocument { schema: SCHEMA_V3.into(), gradients, ..Default::default() }
}

#[test]
fn every_sample_is_audited_as_the_neighbour_audits_it() {
    for (name, bytes) in samples() {
        let report = audit(&read(&bytes).expect("ours reads it"), None);
        assert_eq!(shared_part(&report), their_audit(&bytes, None), "{name}");
        let their_trace = theirs::parse(str::from_utf8(&bytes).expect("text")).expect("theirs");
        assert_eq!(report.is_clean(), their_trace.audit().is_clean(), "{name}");
    }
}

#[test]
fn a_foreign_identity_is_reported_as_the_neighbour_reports_it() {
    let theirs_expect = theirs::ExpectedIdentity {
        analysis_id: Some("analysis:other".into()),
        build_id: Some("candle-graph/build/1:0123456789abcdef".into()),
    };
    let ours_expect = ExpectedIdentity {
        analysis_id: theirs_expect.analysis_id.clone(),
        build_id: theirs_expect.build_id.clone(),
    };
    for (name, bytes) in samples() {
        let report = audit(&read(&bytes).expect("ours"), Some(&ours_expect));
        assert_eq!(shared_part(&report), their_audit(&bytes, Some(&theirs_expect)), "{name}");
    }
}

#[test]
fn the_neighbours_writer_is_read_and_audited() {
    let run = theirs::RunMetadata {
        entrypoint: "train".into(),
        profile: "release".into(),
        cargo_features: vec![],
        cfg: vec![],
        analysis_id: None,
        build_id: None,
        phase: None,
    };
    let mut writer =
        theirs::RuntimeTraceWriter::new_with_schema(Vec::new(), SCHEMA_V3, run).expect("theirs");
    for (id, state) in
        [("a", theirs::GradientState::Missing), ("b", theirs::GradientState::NonFinite)]
    {
        let norm = (id == "b").then_some(f64::NAN);
        let (event_id, root, key) = (id.into(), "vb".into(), id.into());
        let fact = theirs::GradientFact { event_id, root, key, state, step: Some(2), norm };
        writer.gradient(fact).expect("theirs");
    }
    let text = writer.finish().expect("theirs");
    let report = audit(&read(&text).expect("ours reads it"), None);
    assert_eq!(shared_part(&report), their_audit(&text, None));
    assert_eq!((report.missing_gradients.len(), report.first_non_finite_step), (1, Some(2)));
}

#[test]
fn a_mismatch_is_unknown_evidence_and_an_absent_identity_is_remarked_upon() {
    let mut document = trace(vec![]);
    let expected = ExpectedIdentity { analysis_id: Some("a".into()), build_id: Some("b".into()) };
    document.run.analysis_id = Some("another".into());
    let report = audit(&document, Some(&expected));
    assert_eq!(report.identity_mismatches.len(), 1);
    assert!(report.has_unknown_evidence() && !report.is_clean());
    assert_eq!(report.extra.identity_unchecked, [IdentityField::BuildId]);
    let text = report.to_string();
    assert!(text.contains("analysis_id should be a, the trace has another"), "{text}");
    assert!(text.contains("build_id was not compared"), "{text}");
}

#[test]
fn conflicting_facts_have_no_winner() {
    let conflict = sample("audit/tensor-conflict.json");
    let report = audit(&conflict, None);
    assert!(!report.tensor_conflicts.is_empty());
    for it in &report.tensor_conflicts {
        assert_eq!(agreed_tensor(&conflict, &it.static_id), None);
        assert_eq!(serde_json::to_value(it.confidence).expect("value"), "unknown");
    }
    let conflict = sample("audit/grad-conflict-nostep.json");
    let report = audit(&conflict, None);
    assert_eq!(report.gradient_conflicts.len(), 1);
    for it in &report.gradient_conflicts {
        assert_eq!(agreed_gradient(&conflict, &it.identity.root, &it.identity.key), None);
    }
}

#[test]
fn agreeing_facts_have_their_answer_and_absent_ones_have_none() {
    let facts = ["a", "b"].map(|id| fact(id, GradientState::Present, Some(0.5), None));
    let document = trace(facts.to_vec());
    assert_eq!(agreed_gradient(&document, "vb", "w"), Some(&facts[0]));
    assert_eq!(agreed_gradient(&document, "vb", "other"), None);
    assert_eq!(agreed_tensor(&document, "x"), None);
}

#[test]
fn r6_two_ranks_merged_under_one_root_hide_a_nan_from_the_neighbour_but_not_from_us() {
    let nan = fact("rank1", GradientState::NonFinite, None, Some(5));
    let fine = fact("rank7", GradientState::Present, Some(1.0), Some(5));
    let mut document = trace(vec![fine, nan]);
    document.normalize();
    let report = audit(&document, None);
    assert!(report.non_finite_gradients.is_empty(), "the last in text order stands for the series");
    let [found] = report.extra.same_step_gradient_conflicts.as_slice() else { panic!("one") };
    assert_eq!((found.step, found.event_ids.len()), (5, 2));
    assert!(report.has_unknown_evidence() && report.has_findings());

    for (index, fact) in document.gradients.iter_mut().enumerate() {
        fact.root = format!("rank{index}/vb");
    }
    let report = audit(&document, None);
    assert_eq!(report.non_finite_gradients.len(), 1);
    assert!(report.extra.same_step_gradient_conflicts.is_empty());
}

#[test]
fn r7_a_nan_at_step_3_of_10_is_listed_although_the_gradient_recovered() {
    let at = |step: u64| match step {
        3 => fact("g-03", GradientState::NonFinite, None, Some(step)),
        _ => fact(&format!("g-{step:02}"), GradientState::Present, Some(1.0), Some(step)),
    };
    let report = audit(&trace((1..=10).map(at).collect()), None);
    assert!(report.non_finite_gradients.is_empty());
    assert_eq!(report.first_non_finite_step, Some(3));
    assert_eq!(report.extra.earliest_non_finite_step, Some(3));
    let [found] = report.extra.ever_non_finite.as_slice() else { panic!("one") };
    assert_eq!((found.first_step, found.count), (Some(3), 1));
    assert!(report.to_string().contains("gradient vb:w since step 3; not so"));
}

#[test]
fn r8_facts_without_step_conflict_and_the_same_facts_with_steps_do_not() {
    let facts = |step: fn(u64) -> Option<u64>| {
        let at = |n: u64| fact(&n.to_string(), GradientState::Present, Some(n as f64), step(n));
        audit(&trace((1..4).map(at).collect()), None)
    };
    assert_eq!(facts(|_| None).gradient_conflicts.len(), 1);
    assert!(!facts(Some).has_findings());
}

#[test]
fn r9_a_smaller_last_batch_is_a_conflict_that_is_said_to_be_between_steps() {
    let batch = |step: u64, rows: usize, id: &str| TensorObservation {
        event_id: format!("t{step}"),
        static_id: Some(id.into()),
        step: Some(step),
        shape: vec![rows, 8],
        ..Default::default()
    };
    let mut document = trace(vec![]);
    document.tensors = vec![batch(1, 32, "x"), batch(2, 32, "x"), batch(3, 5, "x")];
    let report = audit(&document, None);
    assert_eq!(report.tensor_conflicts[0].values, ["[32, 8]", "[5, 8]"]);
    assert_eq!(report.extra.tensors_varying_by_step, ["x"]);

    document.tensors = vec![batch(1, 32, "x"), batch(3, 5, "x[5,8]")];
    assert!(audit(&document, None).tensor_conflicts.is_empty(), "one static id for each shape");
}

#[test]
fn r13_integers_that_javascript_would_round_are_remarked_upon() {
    let mut document = trace(vec![fact("g", GradientState::Missing, None, Some(u64::MAX))]);
    document.values.push(ValueObservation {
        event_id: "v".into(),
        saturated_count: 1 << 53,
        nonfinite_count: (1 << 53) - 1,
        ..Default::default()
    });
    let report = audit(&document, None);
    assert_eq!(report.extra.inexact_integers, 2);
    assert_eq!(report.extra.saturated_without_source, ["v"]);
}

#[test]
fn values_that_were_not_finite_and_lost_records_are_findings() {
    let value = |id: &str, step: u64| ValueObservation {
        event_id: id.into(),
        source: Some("head".into()),
        step: Some(step),
        nonfinite_count: 2,
        ..Default::default()
    };
    let mut document = trace(vec![]);
    document.values = vec![value("v2", 7), value("v1", 4)];
    document.gaps = vec![
        RuntimeGap { class: "lost".into(), ..Default::default() },
        RuntimeGap { class: "not_requested".into(), ..Default::default() },
    ];
    let report = audit(&document, None);
    assert!(report.is_clean(), "for the neighbour");
    assert!(report.has_findings());
    let [found] = report.extra.non_finite_values.as_slice() else { panic!("one place") };
    assert_eq!((found.place.as_str(), found.first_step, found.elements), ("head", Some(4), 4));
    assert_eq!(report.extra.first_non_finite_place.as_deref(), Some("head"));
    assert_eq!((report.extra.lost_gaps, report.extra.other_gaps), (1, 1));
    assert_eq!(report.extra.earliest_non_finite_step, Some(4));
}

#[test]
fn the_place_that_was_not_finite_first_is_told_by_step_and_by_id() {
    let value = |id: &str, place: &str, step: Option<u64>| ValueObservation {
        event_id: id.into(),
        source: Some(place.into()),
        step,
        nonfinite_count: 1,
        ..Default::default()
    };
    let mut document = trace(vec![]);
    document.values =
        vec![value("1", "late", Some(3)), value("3", "a", Some(2)), value("2", "z", Some(2))];
    let report = audit(&document, None);
    assert_eq!(report.extra.first_non_finite_place.as_deref(), Some("z"));
    let said = report.to_string();
    assert!(
        said.contains("non-finite: 1 elements at z since step 2, before any other\n"),
        "{said}"
    );
    document.values.push(value("0", "whenever", None));
    assert_eq!(audit(&document, None).extra.first_non_finite_place, None);
}

#[test]
fn parameters_without_a_gradient_are_told_with_the_step_that_was_the_first() {
    let missing = |id: &str, step| fact(id, GradientState::Missing, None, Some(step));
    let present = fact("a", GradientState::Present, Some(1.0), Some(1));
    let mut zero = fact("z", GradientState::Zero, Some(0.0), Some(2));
    zero.key = "v".into();
    let report = audit(&trace(vec![present, missing("b", 2), missing("c", 3), zero]), None);
    let said = report.to_string();
    assert_eq!(said, "missing: gradient vb:w since step 2\nzero: gradient vb:v since step 2\n");
    let counts: Vec<_> = report.extra.without.iter().map(|it| (it.first_step, it.count)).collect();
    assert_eq!(counts, [(Some(2), 2), (Some(2), 1)]);
}

#[test]
fn text_from_a_file_cannot_act_on_a_terminal() {
    let mut document = trace(vec![fact("g", GradientState::Zero, None, Some(1))]);
    document.gradients[0].key = "\u{1b}[2J\n\u{202e}w".into();
    let text = audit(&document, None).to_string();
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    assert_eq!(text.lines().count(), 1);
}

fn any_gradient() -> impl Strategy<Value = GradientFact> {
    let state = prop::sample::select(vec![
        (GradientState::Present, Some(1.0)),
        (GradientState::Present, Some(2.0)),
        (GradientState::Present, None),
        (GradientState::Zero, Some(0.0)),
        (GradientState::Zero, None),
        (GradientState::Missing, None),
        (GradientState::NonFinite, None),
    ]);
    (0..2_u8, 0..2_u8, state, option::of(0..3_u64)).prop_map(|(root, key, (state, norm), step)| {
        let (root, key) = (format!("r{root}"), format!("k{key}"));
        GradientFact { event_id: String::new(), root, key, state, step, norm }
    })
}

fn any_tensor() -> impl Strategy<Value = TensorObservation> {
    let fields = (option::of(0..2_u8), 0..2_usize, 0..2_u8, any::<bool>(), option::of(0..2_u64));
    fields.prop_map(|(id, dim, dtype, flag, step)| TensorObservation {
        static_id: id.map(|id| format!("s{id}")),
        step,
        shape: vec![dim, 3],
        dtype: format!("d{dtype}"),
        device: "cpu".into(),
        contiguous: flag,
        ..Default::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_trace_is_audited_as_the_neighbour_audits_it(
        mut gradients in vec(any_gradient(), 0..8),
        mut tensors in vec(any_tensor(), 0..6),
        order in any::<u64>(),
    ) {
        for (index, fact) in gradients.iter_mut().enumerate() {
            fact.event_id = format!("g{}", (index as u64).wrapping_mul(order | 1));
        }
        for (index, tensor) in tensors.iter_mut().enumerate() {
            tensor.event_id = format!("t{index}");
        }
        let document = RuntimeDocument { tensors, ..trace(gradients) };
        let text = document.to_jsonl().expect("valid");
        let ours = read(&text).expect("ours");
        prop_assert_eq!(shared_part(&audit(&ours, None)), their_audit(&text, None));

        let theirs = theirs::parse(str::from_utf8(&text).expect("text")).expect("theirs");
        for id in ["s0", "s1"] {
            let found = agreed_tensor(&ours, id).map(|tensor| tensor.event_id.clone());
            let wanted = theirs.agreed_tensor(id).map(|tensor| tensor.event_id.clone());
            prop_assert_eq!(found, wanted);
        }
        for (root, key) in [("r0", "k0"), ("r0", "k1"), ("r1", "k0"), ("r1", "k1")] {
            let found = agreed_gradient(&ours, root, key).map(|fact| fact.event_id.clone());
            let wanted = theirs.gradient(root, key).map(|fact| fact.event_id.clone());
            prop_assert_eq!(found, wanted);
        }
    }
}
