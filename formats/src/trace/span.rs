//! Spans whose beginnings and ends have been joined.

use super::error::ReadError;
use super::part::End;
use super::{SpanEnd, SpanKind, SpanStart, TraceStep};
use std::borrow::Cow;

/// A span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span<'a> {
    /// No other span has it.
    pub id: Cow<'a, str>,
    /// The span it lies in; none for the root.
    pub parent: Option<Cow<'a, str>>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// What it stands for.
    pub kind: SpanKind,
    /// The part of a training step that it covers.
    pub step: Option<TraceStep>,
    /// Whether it is the region whose time is the run's.
    pub measured: bool,
    /// When it began.
    pub start_ns: u64,
    /// How long it took; none if it was still open at the end.
    pub duration_ns: Option<u64>,
    /// The line on which it begins.
    pub line: usize,
}

impl<'a> Span<'a> {
    pub(super) fn open(start: SpanStart<'a>, line: usize) -> Self {
        let SpanStart { id, parent_id, name, start_ns, kind, measured, step } = start;
        let (parent, duration_ns) = (parent_id, None);
        Span { id, parent, name, kind, step, measured, start_ns, duration_ns, line }
    }

    /// The event that it begins with.
    #[must_use]
    pub fn start(&self) -> SpanStart<'_> {
        SpanStart {
            id: Cow::Borrowed(&self.id),
            parent_id: self.parent.as_deref().map(Cow::Borrowed),
            name: Cow::Borrowed(&self.name),
            start_ns: self.start_ns,
            kind: self.kind,
            measured: self.measured,
            step: self.step,
        }
    }

    /// The event that it ends with; none if it is open.
    #[must_use]
    pub fn end(&self) -> Option<SpanEnd<'_>> {
        Some(SpanEnd { id: Cow::Borrowed(&self.id), duration_ns: self.duration_ns? })
    }

    /// When it ended, or began if it is open.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns.unwrap_or(0))
    }
}

/// Gives each span its end. Returns the spans' indices in the order of their ids, which compare as
/// bytes.
///
/// Both sides are sorted and walked once, which takes less time and memory than a table of all ids;
/// of several faults the one on the earliest line is reported.
pub(super) fn join(spans: &mut [Span<'_>], ends: &[End<'_>]) -> Result<Vec<usize>, ReadError> {
    let order = sorted(spans.len(), |index| spans.get(index).map_or("", |span| &span.id));
    let mut fault = Earliest(None);
    let ids = order.iter().filter_map(|&index| spans.get(index));
    for (first, span) in ids.clone().zip(ids.skip(1)) {
        if first.id == span.id {
            let id = span.id.clone().into_owned();
            fault.see(span.line, ReadError::SpanTwice { line: span.line, first: first.line, id });
        }
    }
    let mut starts = order.iter().copied().peekable();
    let mut last: Option<&End<'_>> = None;
    let by_id = sorted(ends.len(), |index| ends.get(index).map_or("", |end| &end.end.id));
    for end in by_id.into_iter().filter_map(|index| ends.get(index)) {
        let (line, id) = (end.line, &end.end.id);
        if let Some(first) = last.filter(|last| last.end.id == *id) {
            let id = id.clone().into_owned();
            fault.see(line, ReadError::EndTwice { line, first: first.line, id });
            continue;
        }
        last = Some(end);
        while starts.next_if(|&start| spans.get(start).is_some_and(|span| span.id < *id)).is_some()
        {
        }
        let start = starts.peek().and_then(|&start| spans.get_mut(start));
        match start.filter(|span| span.id == *id && span.line < line) {
            Some(span) => span.duration_ns = Some(end.end.duration_ns),
            None => {
                let id = id.clone().into_owned();
                fault.see(line, ReadError::EndWithoutStart { line, id });
            }
        }
    }
    fault.none()?;
    Ok(order)
}

/// The fault on the earliest line.
struct Earliest(Option<(usize, ReadError)>);

impl Earliest {
    fn see(&mut self, line: usize, error: ReadError) {
        if self.0.as_ref().is_none_or(|&(earliest, _)| line < earliest) {
            self.0 = Some((line, error));
        }
    }

    fn none(self) -> Result<(), ReadError> {
        self.0.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The numbers below `len` in the order of their ids, and of equal ids in their own. The first bytes
/// of an id, which mostly decide, are compared as one number.
fn sorted<'a>(len: usize, id: impl Fn(usize) -> &'a str) -> Vec<usize> {
    let mut order: Vec<_> = (0..len).map(|index| (first_bytes(id(index)), index)).collect();
    order.sort_unstable_by(|&(a_bytes, a), &(b_bytes, b)| {
        a_bytes.cmp(&b_bytes).then_with(|| id(a).cmp(id(b))).then(a.cmp(&b))
    });
    order.into_iter().map(|(_, index)| index).collect()
}

fn first_bytes(id: &str) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(id.bytes()) {
        *to = from;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_are_sorted_as_bytes(ids in vec("[\\x00a-c]{0,12}", 0..20)) {
            let order = sorted(ids.len(), |index| &ids[index]);
            let mut expected: Vec<usize> = (0..ids.len()).collect();
            expected.sort_by_key(|&index| (&ids[index], index));
            prop_assert_eq!(order, expected);
        }
    }
}
