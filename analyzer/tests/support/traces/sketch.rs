//! A trace that can still be changed.

use super::Rng;
use serde_json::{Value, json};
use tmrun_formats::trace::{ExpectedGradient, GradientContract};

/// A span, start and end in one.
#[derive(Debug, Clone)]
pub struct SpanSketch {
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub start: u64,
    pub duration: Option<u64>,
    pub kind: &'static str,
    pub measured: bool,
    pub step: Option<&'static str>,
}

impl SpanSketch {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.duration.unwrap_or(0))
    }
}

/// What no file can say, because readers refuse it; done to both documents behind their reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    ReasonOfComplete,
    NoReasonOfFailed,
    BlankReasonOfFailed,
    EndsEarly,
    SpanTwice,
}

/// A trace that can still be changed: lines without order, values without types.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    pub meta: Value,
    pub spans: Vec<SpanSketch>,
    pub ops: Vec<Value>,
    pub tensors: Vec<Value>,
    pub stats: Vec<Value>,
    pub memory: Vec<Value>,
    pub device_memory: Vec<Value>,
    pub intervals: Vec<Value>,
    pub gradients: Vec<Value>,
    pub edges: Vec<Value>,
    pub failed: Option<String>,
    /// How long the run goes on behind its last event.
    pub slack: u64,
    pub late: Vec<Late>,
    /// How many names were given out.
    pub names: u64,
}

impl Sketch {
    /// A name that nothing has.
    pub fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    pub fn contract(&mut self) -> &mut Value {
        &mut self.meta["capture_contract"]
    }

    /// A span that ended, with some time behind it; it is added where there is none.
    pub fn closed(&mut self, rng: &mut Rng) -> usize {
        let closed = |span: &SpanSketch| span.duration.is_some() && span.end() < u64::MAX;
        let all: Vec<_> = (0..self.spans.len()).filter(|&at| closed(&self.spans[at])).collect();
        if !all.is_empty() {
            return *rng.pick(&all);
        }
        self.add_span(None, 5, Some(20))
    }

    /// One more span, below another or the first one that there is.
    pub fn add_span(&mut self, parent: Option<usize>, start: u64, duration: Option<u64>) -> usize {
        let id = self.name("x");
        let parent = parent.or((!self.spans.is_empty()).then_some(0));
        self.spans.push(SpanSketch {
            name: format!("name of {id}"),
            id,
            parent: parent.map(|at| self.spans[at].id.clone()),
            start,
            duration,
            kind: "module",
            measured: false,
            step: None,
        });
        self.spans.len() - 1
    }

    pub fn add_op(&mut self, span: &str, start: u64, duration: u64) -> &mut Value {
        let name = self.name("op");
        self.ops.push(json!({
            "span_id": span, "op_name": name, "shape": [2, 3], "dtype": "f32", "device": "cpu",
            "duration_ns": duration, "timestamp_ns": start, "input_dense_bytes": 8,
        }));
        self.ops.last_mut().unwrap()
    }

    pub fn add_tensor(&mut self, span: &str, tensor: &str) -> &mut Value {
        self.tensors.push(json!({
            "span_id": span, "tensor_id": tensor, "shape": [4], "dtype": "f32", "device": "cpu",
        }));
        self.tensors.last_mut().unwrap()
    }

    pub fn add_memory(
        &mut self,
        action: &str,
        at: u64,
        storage: &str,
        tensor: &str,
        span: &str,
        bytes: u64,
    ) {
        self.memory.push(json!({
            "timestamp_ns": at, "storage_id": storage, "tensor_id": tensor, "span_id": span,
            "device": "cpu", "bytes": bytes, "action": action, "dtype": "f32",
        }));
    }

    pub fn add_interval(&mut self, span: &str, start: u64, duration: u64) {
        self.intervals.push(json!({
            "span_id": span, "device": "cuda:0", "stream_id": "7", "clock_id": "k",
            "backend": "cuda", "start_ns": start, "duration_ns": duration,
        }));
    }

    pub fn add_gradient(&mut self, root: &str, key: &str, state: &str, norm: Option<f64>) {
        let id = self.name("g");
        let mut event = json!({ "event_id": id, "root": root, "key": key, "state": state });
        if let Some(norm) = norm {
            event["norm"] = json!(norm);
        }
        self.gradients.push(event);
    }

    /// A family of the gradient contract, which is made complete where it is not, with one gradient
    /// of each state; none of the state `""`.
    pub fn add_family(&mut self, expectation: &str, min_present: u64, states: &[&str]) {
        let family = self.name("family");
        if self.contract()["gradient_contract"].is_null() {
            self.contract()["gradient_contract"] = json!({ "expected": [], "families": [] });
        }
        self.contract()["gradients"] = json!("complete");
        for state in states {
            let key = self.name("w");
            let expected = json!({ "root": "vb", "key": key, "family": family });
            self.list("expected").push(expected);
            let norm = match *state {
                "present" => Some(0.5),
                "zero" => Some(0.0),
                _ => None,
            };
            if !state.is_empty() {
                self.add_gradient("vb", &key, state, norm);
            }
        }
        let declared =
            json!({ "family": family, "expectation": expectation, "min_present": min_present });
        self.list("families").push(declared);
        self.sign();
    }

    /// The parameters or the families of the gradient contract.
    pub fn list(&mut self, list: &str) -> &mut Vec<Value> {
        self.contract()["gradient_contract"][list].as_array_mut().unwrap()
    }

    /// Gives the gradient contract its digest.
    pub fn sign(&mut self) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let expected: Vec<_> = self
            .list("expected")
            .iter()
            .map(|one| {
                ExpectedGradient::new(text(&one["root"]), text(&one["key"]), text(&one["family"]))
            })
            .collect();
        let digest = GradientContract::digest(&expected);
        self.contract()["gradient_contract"]["manifest_sha256"] = json!(digest);
    }

    /// The lines in some order that readers take. Memory events keep theirs.
    pub fn text(&self, rng: &mut Rng) -> String {
        let mut lines = Vec::new();
        let mut latest = 0;
        for (at, span) in self.spans.iter().enumerate() {
            let mut start = json!({
                "kind": "span_start", "id": span.id, "name": span.name, "start_ns": span.start,
                "span_kind": span.kind, "measured": span.measured,
            });
            if let Some(parent) = &span.parent {
                start["parent_id"] = json!(parent);
            }
            if let Some(step) = span.step {
                start["step"] = json!(step);
            }
            lines.push((Slot::Start(at), start));
            if let Some(duration) = span.duration {
                let end = json!({ "kind": "span_end", "id": span.id, "duration_ns": duration });
                lines.push((Slot::End(at), end));
            }
            latest = latest.max(span.end());
        }
        let time = |value: &Value, field: &str| value[field].as_u64().unwrap_or(0);
        for (kind, events) in [
            ("op", &self.ops),
            ("tensor", &self.tensors),
            ("tensor_stats", &self.stats),
            ("memory", &self.memory),
            ("device_memory", &self.device_memory),
            ("device_interval", &self.intervals),
            ("gradient", &self.gradients),
            ("edge", &self.edges),
        ] {
            for event in events {
                let mut line = event.clone();
                line["kind"] = json!(kind);
                if matches!(kind, "op" | "memory" | "device_memory") {
                    let duration = if kind == "op" { time(event, "duration_ns") } else { 0 };
                    latest = latest.max(time(event, "timestamp_ns").saturating_add(duration));
                }
                lines.push((if kind == "memory" { Slot::Memory } else { Slot::Other }, line));
            }
        }
        let memory: Vec<_> =
            lines.iter().filter(|(slot, _)| *slot == Slot::Memory).cloned().collect();
        rng.shuffle(&mut lines);
        let mut memory = memory.into_iter();
        for line in lines.iter_mut().filter(|(slot, _)| *slot == Slot::Memory) {
            *line = memory.next().unwrap();
        }
        for at in 0..self.spans.len() {
            let place = |slot| lines.iter().position(|(of, _)| *of == slot);
            if let (Some(start), Some(end)) = (place(Slot::Start(at)), place(Slot::End(at)))
                && end < start
            {
                lines.swap(start, end);
            }
        }
        let mut meta = self.meta.clone();
        meta["kind"] = json!("meta");
        let mut terminal = json!({
            "kind": "terminal", "outcome": "complete",
            "timestamp_ns": latest.saturating_add(self.slack),
        });
        if let Some(reason) = &self.failed {
            terminal["outcome"] = json!("failed");
            terminal["reason"] = json!(reason);
        }
        let lines = lines.into_iter().map(|(_, line)| line);
        let all = std::iter::once(meta).chain(lines).chain(std::iter::once(terminal));
        all.map(|line| format!("{line}\n")).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Start(usize),
    End(usize),
    Memory,
    Other,
}
