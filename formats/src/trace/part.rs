//! Some lines of a trace, read by themselves.

use super::error::ReadError;
use super::span::IdKey;
use super::{
    DeviceInterval, DeviceMemory, Edge, Gradient, Memory, Op, Span, SpanEnd, Tensor, TensorStats,
    Terminal, TraceLine, TraceRun, TraceSchema,
};
use crate::words::Word;

/// Some whole lines of a trace. Each part can be read on a thread of its own; numbers of lines and
/// bytes count from the part's beginning until the parts are
/// [put together](super::TraceDocument::assemble).
#[derive(Debug, Default)]
pub struct TracePart<'a> {
    pub(super) lines: usize,
    pub(super) bytes: usize,
    /// The first line that is not blank, and its kind.
    pub(super) first: Option<(usize, &'static str)>,
    pub(super) meta: Option<(TraceSchema, Box<TraceRun>)>,
    pub(super) spans: Vec<Span<'a>>,
    /// The keys of their ids.
    pub(super) span_keys: Vec<IdKey>,
    pub(super) ends: Vec<End<'a>>,
    pub(super) ops: Vec<Op<'a>>,
    pub(super) tensors: Vec<Tensor<'a>>,
    pub(super) tensor_stats: Vec<TensorStats<'a>>,
    pub(super) first_stats: Option<usize>,
    pub(super) memory: Vec<Memory<'a>>,
    pub(super) device_memory: Vec<DeviceMemory<'a>>,
    pub(super) device_intervals: Vec<DeviceInterval<'a>>,
    pub(super) gradients: Vec<Gradient<'a>>,
    pub(super) edges: Vec<Edge<'a>>,
    pub(super) terminal: Option<(usize, Terminal<'a>)>,
}

/// The end of a span, its line, and the key of its id.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub key: IdKey,
    pub line: usize,
    pub end: SpanEnd<'a>,
}

impl<'a> TracePart<'a> {
    /// Reads whole lines.
    ///
    /// # Errors
    /// What is wrong with one line, or with their order as far as it can be seen from here.
    pub fn parse(text: &'a str) -> Result<Self, ReadError> {
        let mut part = Self::default();
        for raw in text.split_inclusive('\n') {
            part.lines = part.lines.saturating_add(1);
            if let Some(line) = TraceLine::parse(raw, part.lines, part.bytes)? {
                part.push(line)?;
            }
            part.bytes = part.bytes.saturating_add(raw.len());
        }
        Ok(part)
    }

    fn push(&mut self, parsed: TraceLine<'a>) -> Result<(), ReadError> {
        let line = self.lines;
        if let Some((terminal, _)) = self.terminal {
            return Err(ReadError::AfterTerminal { line, terminal });
        }
        let is_first = self.first.is_none();
        self.first.get_or_insert((line, parsed.kind()));
        match parsed {
            TraceLine::Meta { .. } if !is_first => return Err(ReadError::SecondMeta { line }),
            TraceLine::Meta { schema, run } => match Word::of(&schema) {
                Some(schema) => self.meta = Some((schema, run)),
                None => return Err(ReadError::UnsupportedSchema { line, found: schema }),
            },
            TraceLine::SpanStart(start) => {
                self.span_keys.push(IdKey::of(&start.id));
                self.spans.push(Span::open(start, line));
            }
            TraceLine::SpanEnd(end) => {
                self.ends.push(End { key: IdKey::of(&end.id), line, end });
            }
            TraceLine::Op(op) => self.ops.push(op),
            TraceLine::Tensor(tensor) => self.tensors.push(tensor),
            TraceLine::TensorStats(stats) => {
                self.first_stats.get_or_insert(line);
                self.tensor_stats.push(stats);
            }
            TraceLine::Memory(memory) => self.memory.push(memory),
            TraceLine::DeviceMemory(memory) => self.device_memory.push(memory),
            TraceLine::DeviceInterval(interval) => self.device_intervals.push(interval),
            TraceLine::Gradient(gradient) => self.gradients.push(gradient),
            TraceLine::Edge(edge) => self.edges.push(edge),
            TraceLine::Terminal(terminal) => self.terminal = Some((line, terminal)),
        }
        Ok(())
    }

    /// Appends the lines that follow, now numbered from the first part's beginning.
    pub(super) fn append(&mut self, mut next: Self) -> Result<(), ReadError> {
        let shifted = |line: usize| line.saturating_add(self.lines);
        if let Some((line, _)) = next.first {
            if let Some((terminal, _)) = self.terminal {
                return Err(ReadError::AfterTerminal { line: shifted(line), terminal });
            }
            if next.meta.is_some() && self.first.is_some() {
                return Err(ReadError::SecondMeta { line: shifted(line) });
            }
        }
        if self.lines > 0 {
            next.spans.iter_mut().for_each(|span| span.line = shifted(span.line));
            next.ends.iter_mut().for_each(|end| end.line = shifted(end.line));
        }
        self.first = self.first.or(next.first.map(|(line, kind)| (shifted(line), kind)));
        self.first_stats = self.first_stats.or(next.first_stats.map(shifted));
        self.terminal = next
            .terminal
            .map(|(line, terminal)| (shifted(line), terminal))
            .or(self.terminal.take());
        self.meta = self.meta.take().or(next.meta);
        extend(&mut self.spans, next.spans);
        extend(&mut self.span_keys, next.span_keys);
        extend(&mut self.ends, next.ends);
        extend(&mut self.ops, next.ops);
        extend(&mut self.tensors, next.tensors);
        extend(&mut self.tensor_stats, next.tensor_stats);
        extend(&mut self.memory, next.memory);
        extend(&mut self.device_memory, next.device_memory);
        extend(&mut self.device_intervals, next.device_intervals);
        extend(&mut self.gradients, next.gradients);
        extend(&mut self.edges, next.edges);
        self.lines = self.lines.saturating_add(next.lines);
        self.bytes = self.bytes.saturating_add(next.bytes);
        Ok(())
    }
}

/// Moves everything behind what is there; what comes first is not copied.
fn extend<T>(all: &mut Vec<T>, next: Vec<T>) {
    if all.is_empty() {
        *all = next;
    } else {
        all.extend(next);
    }
}
