//! Each span, and how it lies in its parent.

use super::{HealthCode, Issues, Subject};

/// Span by span, in the order of their ids.
pub(super) fn check(subject: &Subject<'_>, issues: &mut Issues) {
    let Subject { trace, index, .. } = subject;
    let tree = &index.tree;
    for &place in &trace.by_id {
        let Some(span) = trace.spans.get(place) else { continue };
        let (id, line) = (&span.id, span.line);
        if span.duration_ns.is_none() {
            let message = format!("span {id:?} (line {line}) is open: expected a span_end");
            issues.add(HealthCode::OpenSpan, message);
        }
        let parent = tree.parents.get(place).and_then(|link| link.of(&trace.spans));
        match (&span.parent, parent) {
            (Some(parent), None) => {
                let message =
                    format!("span {id:?} (line {line}): its parent {parent:?} is not in the trace");
                issues.add(HealthCode::UnknownParent, message);
            }
            (_, Some(parent)) if span.duration_ns.and(parent.duration_ns).is_some() => {
                let (inner, outer) =
                    (span.start_ns..=span.end_ns(), parent.start_ns..=parent.end_ns());
                if inner.start() < outer.start() || inner.end() > outer.end() {
                    let message = format!(
                        "span {id:?} (line {line}) takes {inner:?} ns: expected inside {outer:?}, the \
                         time of its parent {:?}",
                        parent.id
                    );
                    issues.add(HealthCode::ChildOutsideParent, message);
                }
            }
            _ => {}
        }
        if tree.cyclic.get(place).is_some_and(|cyclic| *cyclic) {
            let message =
                format!("span {id:?} (line {line}): its parents never end at a root, but go round");
            issues.add(HealthCode::SpanCycle, message);
        }
    }
}
