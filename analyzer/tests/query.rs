//! Every question that the neighbour can be asked too has its answer, row by row.

#[path = "planes_support/peaks.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod peaks;
#[path = "support/traces/mod.rs"]
mod traces;

use std::collections::BTreeMap;
use std::path::Path;

use candle_graph_v10::cli::trace_cli::{self, QueryLabelFilter, QueryOptions, TraceQueryKind};
use serde_json::{Value, json};
use tmrun::evidence::{derive, graph_despite_gradients};
use tmrun::query::{Envelope, Kind, LabelFilter, Page, QueryError, Question, of_trace};
use tmrun::source::Source;
use traces::{Rng, Sketch, base, neighbour, planes};

const KINDS: [(Kind, TraceQueryKind); 16] = [
    (Kind::Labels, TraceQueryKind::Labels),
    (Kind::SlowestHost, TraceQueryKind::SlowestHost),
    (Kind::SlowestDevice, TraceQueryKind::SlowestDevice),
    (Kind::Activations, TraceQueryKind::Activations),
    (Kind::Heaviest, TraceQueryKind::Heaviest),
    (Kind::Memory, TraceQueryKind::Memory),
    (Kind::Spans, TraceQueryKind::Spans),
    (Kind::Tensors, TraceQueryKind::Tensors),
    (Kind::TensorStats, TraceQueryKind::TensorStats),
    (Kind::Gradients, TraceQueryKind::Gradients),
    (Kind::Capabilities, TraceQueryKind::Capabilities),
    (Kind::GpuStatus, TraceQueryKind::GpuStatus),
    (Kind::GpuCorrelation, TraceQueryKind::GpuCorrelation),
    (Kind::GpuPhases, TraceQueryKind::GpuPhases),
    (Kind::GpuKernels, TraceQueryKind::GpuKernels),
    (Kind::GpuAttributionGaps, TraceQueryKind::GpuAttributionGaps),
];

const COLLECTIONS: [Kind; 5] =
    [Kind::Labels, Kind::Spans, Kind::Tensors, Kind::TensorStats, Kind::Gradients];

/// Our document, or why there is none.
fn ours(input: &Path, question: &Question) -> Result<Value, QueryError> {
    let source = Source::open(input).unwrap();
    let opened = source.read(&|_| ()).unwrap();
    let part = opened.part(None).unwrap();
    let subject = part.subject();
    let evidence = derive(subject.trace(), subject.gpu.clone(), subject.told()).unwrap();
    let despite = graph_despite_gradients(subject.trace(), &evidence.health).unwrap();
    let graph = evidence.graph.as_ref().or(despite.as_ref());
    let answer = of_trace(question, &subject, &evidence, graph)?;
    let capabilities = Some(&evidence.capabilities);
    let envelope = Envelope::of(question, subject.input, capabilities, &[], &answer);
    Ok(serde_json::to_value(&envelope).unwrap())
}

/// The neighbour's document, or why there is none.
fn theirs(input: &Path, question: &Question) -> Result<Value, String> {
    let kind = KINDS.iter().find(|(kind, _)| *kind == question.kind).unwrap().1;
    let filter = question.filter.clone().map(|filter| match filter {
        LabelFilter::Exact(label) => QueryLabelFilter::Exact(label),
        LabelFilter::Prefix(prefix) => QueryLabelFilter::Prefix(prefix),
    });
    let page = question.page;
    let options = QueryOptions {
        filter,
        limit: page.filter(|page| !page.all).map(|page| page.limit),
        offset: page.filter(|page| !page.all).map(|page| page.offset),
        all: page.is_some_and(|page| page.all),
    };
    let out = tempfile::NamedTempFile::new().unwrap();
    let answer = trace_cli::run_query(input, kind, &options, Some(out.path()));
    answer.map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&std::fs::read(out.path()).unwrap()).unwrap())
}

/// Takes away what is said in words, wherever it stands.
fn without_words(value: &mut Value, forget_peaks: bool) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| without_words(one, forget_peaks)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match (&**key, &mut *value) {
                    (
                        "reason" | "definition" | "edges_reason" | "correlation_reason",
                        Value::String(text),
                    ) => text.clear(),
                    ("diagnostics", found) => {
                        if let Some(rows) = found["rows"].as_array_mut() {
                            rows.iter_mut().for_each(|row| *row = Value::Null);
                        }
                    }
                    ("peak_live_bytes", peak) if forget_peaks => *peak = Value::Null,
                    (_, value) => without_words(value, forget_peaks),
                }
            }
        }
        _ => {}
    }
}

/// Rows that were equal, by kind, and refusals by both.
#[derive(Default)]
struct Held {
    rows: BTreeMap<&'static str, usize>,
    refused: usize,
}

impl Held {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(rows) => rows.len(),
            Value::Object(fields) => fields.values().map(Self::count).sum(),
            _ => 0,
        }
    }

    fn hold(&mut self, input: &Path, question: &Question, text: &str) {
        let (ours, theirs) = (ours(input, question), theirs(input, question));
        let kind = question.kind.name();
        let (mut ours, mut theirs) = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(error), Err(_)) => {
                assert!(matches!(error, QueryError::NoGraph { .. }), "{error}");
                self.refused += 1;
                return;
            }
            // Rows that do not need a graph are given without one, with what they are worth.
            (Ok(_), Err(_)) if [Kind::Tensors, Kind::Gradients].contains(&question.kind) => return,
            (ours, theirs) => panic!("{kind}: ours {ours:?}, theirs {theirs:?}\n{text}"),
        };
        let document = neighbour::document(text).unwrap();
        let right = peaks::neighbour_counts_right(&neighbour::evidence(document).unwrap());
        for part in ["result", "filter", "capabilities", "kind"] {
            let (ours, theirs) = (&mut ours[part], &mut theirs[part]);
            without_words(ours, !right);
            without_words(theirs, !right);
            if let Some(found) = neighbour::difference(ours, theirs) {
                panic!("{kind} {question:?}: /{part}{found}\n{text}");
            }
        }
        assert_eq!(ours["follows"], theirs["schema"]);
        *self.rows.entry(kind).or_default() += Self::count(&ours["result"]);
    }
}

/// Questions of every kind, and for rows with every choice.
fn questions(rng: &mut Rng, labels: &[String]) -> Vec<Question> {
    let mut all: Vec<_> = KINDS.iter().map(|(kind, _)| Question::new(*kind)).collect();
    for kind in COLLECTIONS {
        let label = rng.pick(labels).clone();
        let page = Page {
            limit: rng.between(1, 4) as usize,
            offset: rng.below(5) as usize,
            all: rng.one_in(3),
        };
        let end = (1..=label.len()).find(|&end| label.is_char_boundary(end)).unwrap_or(0);
        let prefix = label[..end].to_owned();
        let filters = [LabelFilter::Exact(label), LabelFilter::Prefix(prefix)];
        all.extend(filters.map(|filter| Question { kind, filter: Some(filter), page: None }));
        all.push(Question { kind, filter: None, page: Some(page) });
        let filter = LabelFilter::Prefix("n".to_owned());
        all.push(Question { kind, filter: Some(filter), page: Some(page) });
    }
    all
}

fn labels(sketch: &Sketch) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spans = sketch.spans.iter().map(|span| span.name.clone());
    let stats = sketch.stats.iter().map(|stats| text(&stats["label"]));
    let gradients = sketch.gradients.iter();
    let gradients = gradients.map(|one| format!("{}/{}", text(&one["root"]), text(&one["key"])));
    let keys = sketch.gradients.iter().map(|one| text(&one["key"]));
    let tensors = sketch.tensors.iter().map(|one| text(&one["tensor_id"]));
    spans.chain(stats).chain(gradients).chain(keys).chain(tensors).collect()
}

#[test]
fn answers_are_the_neighbours_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.jsonl");
    let mut held = Held::default();
    for seed in 0..160 {
        let mut rng = Rng::new(seed);
        let sketch = if seed % 2 == 0 { planes::sketch(&mut rng) } else { base::sketch(&mut rng) };
        if !sketch.late.is_empty() {
            continue;
        }
        let text = sketch.text(&mut rng);
        std::fs::write(&path, &text).unwrap();
        let document = neighbour::document(&text).unwrap();
        if neighbour::evidence(document).is_err() {
            continue;
        }
        for question in questions(&mut rng, &labels(&sketch)) {
            held.hold(&path, &question, &text);
        }
    }
    println!("rows held equal: {:?}; refused by both: {}", held.rows, held.refused);
    assert_eq!(held.rows.len(), KINDS.len());
    for (kind, rows) in held.rows {
        assert!(rows > 0 || kind == "capabilities" || kind.starts_with("gpu"), "{kind}");
    }
    assert!(held.refused > 0);
}

#[test]
fn a_bundle_with_reports_of_nsight_answers_as_the_neighbour_does() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, nsight, bundle) =
        (folder.path().join("t.jsonl"), folder.path().join("n"), folder.path().join("bundle"));
    let mut rng = Rng::new(7);
    let mut sketch = planes::sketch(&mut rng);
    while sketch.failed.is_some() || !sketch.late.is_empty() {
        sketch = planes::sketch(&mut rng);
    }
    let text = sketch.text(&mut rng);
    std::fs::write(&trace, &text).unwrap();
    std::fs::create_dir(&nsight).unwrap();
    let mut kernels =
        "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name\n".to_owned();
    for at in 0..70 {
        kernels += &format!("1.0,{},3,{at},1,9,kernel_{at}\n", (at * 37) % 70);
    }
    std::fs::write(nsight.join("run_cuda_gpu_kern_sum.csv"), kernels).unwrap();
    candle_graph_v10::publish_bundle(&bundle, &trace, Some(&nsight)).unwrap();
    let mut held = Held::default();
    for (kind, _) in KINDS {
        held.hold(&bundle, &Question::new(kind), &text);
        held.hold(&bundle.join("trace.jsonl"), &Question::new(kind), &text);
    }
    let kernels = ours(&bundle, &Question::new(Kind::GpuKernels)).unwrap();
    assert_eq!(kernels["result"]["displayed"], 50);
    assert_eq!(kernels["result"]["population_total"], 70);
    assert_eq!(kernels["input"]["kind"], "bundle");
}

#[test]
fn choices_that_a_kind_does_not_have_are_refused_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.jsonl");
    let mut rng = Rng::new(3);
    std::fs::write(&path, base::sketch(&mut rng).text(&mut rng)).unwrap();
    for (kind, _) in KINDS {
        let filter = Some(LabelFilter::Exact("x".to_owned()));
        for (filter, page) in [(filter, None), (None, Some(Page::default()))] {
            let question = Question { kind, filter, page };
            let refused = matches!(ours(&path, &question), Err(QueryError::NoChoice { .. }));
            assert_eq!(refused, !COLLECTIONS.contains(&kind), "{kind:?}");
            let says = theirs(&path, &question).is_err_and(|error| error.contains("not support"));
            assert_eq!(refused, says, "{kind:?}");
        }
    }
}

/// The neighbour has no graph of such a trace, and no gradients.
#[test]
fn a_gradient_that_is_not_finite_under_a_contract_is_in_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.jsonl");
    let mut rng = Rng::new(11);
    let mut sketch = base::sketch(&mut rng);
    while sketch.failed.is_some() || !sketch.late.is_empty() {
        sketch = base::sketch(&mut rng);
    }
    sketch.gradients.clear();
    sketch.meta["phase"] = json!("train");
    sketch.add_family("active", 1, &["present", "non_finite"]);
    std::fs::write(&path, sketch.text(&mut rng)).unwrap();
    assert!(theirs(&path, &Question::new(Kind::Gradients)).is_err());
    let answer = ours(&path, &Question::new(Kind::Gradients)).unwrap();
    let rows = answer["result"]["rows"].as_array().unwrap();
    let mut states: Vec<_> = rows.iter().map(|row| row["state"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["non_finite", "present"]);
    assert_eq!(answer["capabilities"]["gradient_coverage"]["level"], "invalid");
    let spans = ours(&path, &Question::new(Kind::Spans)).unwrap();
    assert!(spans["result"]["total"].as_u64() > Some(0), "the graph is there too");

    // What is wrong with anything else takes the graph away.
    sketch.add_op("no such span", 0, 1);
    std::fs::write(&path, sketch.text(&mut rng)).unwrap();
    let error = ours(&path, &Question::new(Kind::Spans)).unwrap_err();
    assert!(error.to_string().contains("unknown_span"), "{error}");
    assert!(ours(&path, &Question::new(Kind::Gradients)).is_ok());
}
