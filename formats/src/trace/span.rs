//! Spans whose beginnings and ends have been joined.

use super::error::ReadError;
use super::part::End;
use super::{SpanEnd, SpanKind, SpanStart, TraceStep};
use std::borrow::Cow;
use std::cmp::Ordering;

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
/// bytes. The spans' `keys` are those of their ids.
///
/// Both sides are sorted and walked once, which takes less time and memory than a table of all ids;
/// of several faults the one on the earliest line is reported.
pub(super) fn join(
    spans: &mut [Span<'_>],
    keys: &[IdKey],
    ends: &[End<'_>],
) -> Result<Vec<usize>, ReadError> {
    let starts = sorted(spans.iter().map(|span| &*span.id).zip(keys.iter().copied()));
    let sorted_ends = sorted(ends.iter().map(|end| (&*end.end.id, end.key)));
    let mut fault = Earliest(None);
    for (a, b) in starts.iter().zip(starts.iter().skip(1)).filter(|(a, b)| a.same_id(b)) {
        if let (Some(first), Some(span)) = (spans.get(a.index), spans.get(b.index)) {
            let (line, first, id) = (span.line, first.line, b.id.to_owned());
            fault.see(line, ReadError::SpanTwice { line, first, id });
        }
    }
    let mut durations = Vec::with_capacity(ends.len());
    let mut open = starts.iter().peekable();
    let mut last: Option<(&Keyed<'_>, usize)> = None;
    for keyed in &sorted_ends {
        let Some(end) = ends.get(keyed.index) else { continue };
        let line = end.line;
        if let Some((_, first)) = last.filter(|(last, _)| last.same_id(keyed)) {
            fault.see(line, ReadError::EndTwice { line, first, id: keyed.id.to_owned() });
            continue;
        }
        last = Some((keyed, line));
        while open.next_if(|start| start.compare_id(keyed).is_lt()).is_some() {}
        let start = open.peek().filter(|start| start.same_id(keyed));
        match start.and_then(|start| Some((start.index, spans.get(start.index)?))) {
            Some((index, span)) if span.line < line => {
                durations.push((index, end.end.duration_ns));
            }
            _ => fault.see(line, ReadError::EndWithoutStart { line, id: keyed.id.to_owned() }),
        }
    }
    let order = starts.iter().map(|start| start.index).collect();
    fault.none()?;
    for (index, duration_ns) in durations {
        if let Some(span) = spans.get_mut(index) {
            span.duration_ns = Some(duration_ns);
        }
    }
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

/// The first bytes of an id as one number, which mostly decides between two ids without a look at
/// them. It is made while the id is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdKey(u64);

impl IdKey {
    const LEN: usize = size_of::<u64>();

    pub(super) fn of(id: &str) -> Self {
        let mut bytes = [0; Self::LEN];
        for (to, from) in bytes.iter_mut().zip(id.bytes()) {
            *to = from;
        }
        Self(u64::from_be_bytes(bytes))
    }
}

/// An id with its key, and the place of what has it.
struct Keyed<'k> {
    key: IdKey,
    id: &'k str,
    index: usize,
}

impl Keyed<'_> {
    /// As the ids compare.
    fn compare_id(&self, other: &Self) -> Ordering {
        let (a, b) = (self.id, other.id);
        self.key.cmp(&other.key).then_with(|| {
            if a.len().max(b.len()) <= IdKey::LEN {
                // What fills the key up is zero, so the longer id goes on with zeros.
                a.len().cmp(&b.len())
            } else {
                a.cmp(b)
            }
        })
    }

    fn same_id(&self, other: &Self) -> bool {
        self.compare_id(other).is_eq()
    }
}

/// The ids in their order, equal ones in the order in which they come.
fn sorted<'k>(ids: impl Iterator<Item = (&'k str, IdKey)>) -> Vec<Keyed<'k>> {
    let mut keyed: Vec<_> =
        ids.enumerate().map(|(index, (id, key))| Keyed { key, id, index }).collect();
    keyed.sort_unstable_by(|a, b| a.compare_id(b).then(a.index.cmp(&b.index)));
    keyed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_are_sorted_as_bytes(ids in vec("[\\x00a-c]{0,12}", 0..20)) {
            let keyed = sorted(ids.iter().map(|id| (&**id, IdKey::of(id))));
            let order: Vec<usize> = keyed.iter().map(|keyed| keyed.index).collect();
            let mut expected: Vec<usize> = (0..ids.len()).collect();
            expected.sort_by_key(|&index| (&ids[index], index));
            prop_assert_eq!(order, expected);
        }
    }
}
