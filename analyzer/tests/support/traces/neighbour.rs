//! What the neighbour makes of a trace, and what both say but for the words.

use super::sketch::Late;
use candle_graph_v10 as theirs;
use serde_json::Value;
use theirs::evidence::EvidencePacket;
use theirs::nsight::NsightEvidence;
use tmrun_formats::trace::TraceDocument;

/// The neighbour's document of a text.
pub fn document(text: &str) -> Result<theirs::TraceDocument, String> {
    let events = text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str);
    let events: Result<Vec<_>, _> = events.collect();
    let events = events.map_err(|error| error.to_string())?;
    theirs::TraceDocument::from_events(events).map_err(|error| error.to_string())
}

/// The neighbour's evidence, without reports of Nsight.
pub fn evidence(document: theirs::TraceDocument) -> Result<Value, String> {
    evidence_with(document, NsightEvidence::unavailable("not asked for"))
}

/// The neighbour's evidence, with what it read of Nsight's reports.
pub fn evidence_with(
    document: theirs::TraceDocument,
    gpu: NsightEvidence,
) -> Result<Value, String> {
    let packet = EvidencePacket::from_document(document, gpu).map_err(|error| error.to_string())?;
    serde_json::to_value(packet).map_err(|error| error.to_string())
}

/// Does to both documents what no file can say.
pub fn apply(late: &[Late], ours: &mut TraceDocument<'_>, theirs: &mut theirs::TraceDocument) {
    for late in late {
        let reason = match late {
            Late::ReasonOfComplete => Some("all is well"),
            Late::NoReasonOfFailed => None,
            Late::BlankReasonOfFailed => Some(" \t"),
            Late::EndsEarly => {
                let before = ours.latest_ns().saturating_sub(1);
                ours.terminal.timestamp_ns = before;
                theirs.terminal.timestamp_ns = before;
                continue;
            }
            Late::SpanTwice => {
                let twin = ours.spans[0].clone();
                let same = theirs.spans.iter().find(|span| span.id == twin.id).unwrap().clone();
                theirs.spans.push(same);
                theirs.spans.sort_by(|a, b| a.id.cmp(&b.id));
                ours.spans.push(twin);
                ours.by_id = (0..ours.spans.len()).collect();
                ours.by_id.sort_by(|&a, &b| ours.spans[a].id.cmp(&ours.spans[b].id));
                continue;
            }
        };
        ours.terminal.reason = reason.map(Into::into);
        theirs.terminal.reason = reason.map(Into::into);
    }
}

/// Takes away what is words for people: everything else is the format's. Of lists of words, how many
/// there are stays.
pub fn without_prose(mut evidence: Value) -> Value {
    fn blank(value: &mut Value, keys: &[&str]) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|one| blank(one, keys)),
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut() {
                    match value {
                        Value::String(text) if keys.contains(&&**key) => *text = String::new(),
                        Value::Array(all) if keys.contains(&&**key) => {
                            all.iter_mut().for_each(|one| *one = Value::Null);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    blank(&mut evidence["health"]["issues"], &["message"]);
    if let Some(capabilities) = evidence["capabilities"].as_object_mut() {
        capabilities.values_mut().for_each(|one| blank(one, &["reason"]));
    }
    blank(&mut evidence["findings"], &["summary"]);
    blank(&mut evidence["facts"], &["label"]);
    blank(&mut evidence["activations"], &["definition"]);
    if let Some(activations) = evidence["activations"].as_object_mut() {
        activations.values_mut().for_each(|one| blank(one, &["reason"]));
    }
    blank(&mut evidence["gpu"], &["reason", "diagnostics"]);
    blank(&mut evidence["gpu"]["provenance"], &["diagnostics"]);
    blank(&mut evidence["gpu"]["correlation"], &["reason"]);
    blank(&mut evidence, &["gaps"]);
    evidence
}

/// The first place where two values differ, and what is there in each.
pub fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    let inside = |name: &dyn std::fmt::Display, ours: &Value, theirs: &Value| {
        difference(ours, theirs).map(|found| format!("/{name}{found}"))
    };
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => {
            left.iter().find_map(|(key, value)| inside(key, value, &right[key]))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs.into_iter().find_map(|(at, (left, right))| inside(&at, left, right))
        }
        _ => (ours != theirs).then(|| format!(": ours {ours}, theirs {theirs}")),
    }
}
