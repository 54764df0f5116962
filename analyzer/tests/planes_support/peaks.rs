//! Peaks of subtrees, counted one by one: the neighbour's are wrong where a storage is freed at the
//! time at which it is allocated.

use serde_json::Value;
use std::collections::BTreeMap;
use tmrun_formats::trace::TraceDocument;

struct Life {
    span: String,
    bytes: u128,
    start: u64,
    end: u64,
}

fn lifetimes(evidence: &Value) -> Vec<Life> {
    let all = evidence["memory"]["logical"]["lifetimes"].as_array();
    let life = |one: &Value| Life {
        span: one["allocation_span_id"].as_str().unwrap().to_owned(),
        bytes: one["bytes"].as_u64().unwrap().into(),
        start: one["start_timestamp_ns"].as_u64().unwrap(),
        end: one["end_timestamp_ns"].as_u64().unwrap_or(u64::MAX),
    };
    all.into_iter().flatten().map(life).collect()
}

pub fn neighbour_counts_right(evidence: &Value) -> bool {
    lifetimes(evidence).iter().all(|life| life.start < life.end)
}

/// Takes the peaks of spans away.
pub fn forget(evidence: &mut Value) {
    for list in ["/graph/spans", "/graph/summary/heaviest_spans"] {
        for one in evidence.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(peak) = one.get_mut("peak_live_bytes") {
                *peak = Value::Null;
            }
        }
    }
}

/// Holds every span's peak against one that is counted at every time at which a storage comes.
pub fn check(evidence: &Value, trace: &TraceDocument<'_>, text: &str) {
    let all = lifetimes(evidence);
    let parents: BTreeMap<&str, Option<&str>> =
        trace.spans.iter().map(|span| (&*span.id, span.parent.as_deref())).collect();
    let contains = |above: &str, below: &str| {
        let up = |span: &&str| parents.get(*span).copied().flatten();
        std::iter::successors(Some(below), up).any(|span| span == above)
    };
    for node in evidence["graph"]["spans"].as_array().unwrap() {
        let Some(peak) = node["peak_live_bytes"].as_u64() else { continue };
        let span = trace.span(node["id"].as_str().unwrap()).unwrap();
        let (from, until) = (span.start_ns, span.end_ns());
        let own: Vec<_> = all.iter().filter(|life| contains(&span.id, &life.span)).collect();
        let at = |time: u64| -> u128 {
            let live = own.iter().filter(|life| life.start <= time && time < life.end);
            live.map(|life| life.bytes).sum()
        };
        let times = own.iter().map(|life| life.start).filter(|&time| from <= time && time < until);
        let most = times.map(at).max().unwrap_or(0);
        assert_eq!(u128::from(peak), most.min(u64::MAX.into()), "{node} of\n{text}");
    }
}
