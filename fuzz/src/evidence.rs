//! Evidence of whatever trace is one.

use tmrun::evidence::{derive, read};
use tmrun_formats::evidence::Evidence;

/// A trace and what it says: derived twice the same, a document that reads back, and a graph where the
/// trace is sound and complete and nowhere else.
pub fn evidence(data: &[u8]) {
    let Ok(trace) = read(data) else { return };
    let Ok(evidence) = derive(&trace, None, None) else { return };
    assert_eq!(derive(&trace, None, None).expect("it was derived before"), evidence);
    let health = &evidence.health;
    let has_graph = health.structurally_valid && health.capture_complete;
    assert_eq!(evidence.graph.is_some(), has_graph);
    let text = serde_json::to_string(&evidence).expect("no number that JSON cannot hold");
    let again: Evidence<'_> = serde_json::from_str(&text).expect("a document that we wrote");
    assert_eq!(again, evidence);
}
