//! A whole trace.

use super::error::ReadError;
use super::part::TracePart;
use super::span::join;
use super::{
    DeviceInterval, DeviceMemory, Edge, Gradient, Memory, Op, Span, Tensor, TensorStats, Terminal,
    TraceRun, TraceSchema,
};

/// A whole trace. Each kind of event is in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceDocument<'a> {
    /// The version.
    pub schema: TraceSchema,
    /// What ran.
    pub run: TraceRun,
    /// Spans, each with its end.
    pub spans: Vec<Span<'a>>,
    /// Indices of the spans in the order of their ids as bytes, in which `s10` comes before `s2`.
    pub by_id: Vec<usize>,
    /// Operations.
    pub ops: Vec<Op<'a>>,
    /// Tensors.
    pub tensors: Vec<Tensor<'a>>,
    /// Statistics of tensors.
    pub tensor_stats: Vec<TensorStats<'a>>,
    /// Storages that come and go.
    pub memory: Vec<Memory<'a>>,
    /// Memory of the devices.
    pub device_memory: Vec<DeviceMemory<'a>>,
    /// Times on device clocks.
    pub device_intervals: Vec<DeviceInterval<'a>>,
    /// Gradients.
    pub gradients: Vec<Gradient<'a>>,
    /// Connections.
    pub edges: Vec<Edge<'a>>,
    /// The end of the run.
    pub terminal: Terminal<'a>,
}

impl<'a> TraceDocument<'a> {
    /// Reads a trace from bytes.
    ///
    /// # Errors
    /// Anything that is not a trace, with the place where it stops being one.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            Err(error) => Err(ReadError::NotUtf8 { offset: error.valid_up_to() }),
        }
    }

    /// Reads a trace from text.
    ///
    /// # Errors
    /// As [`read`](TraceDocument::read).
    pub fn parse(text: &'a str) -> Result<Self, ReadError> {
        if text.starts_with('\u{feff}') {
            return Err(ReadError::ByteOrderMark);
        }
        Self::assemble([TracePart::parse(text)])
    }

    /// Puts together a trace that was cut between lines, whose parts were each
    /// [read](TracePart::parse) by themselves.
    ///
    /// # Errors
    /// As [`read`](TraceDocument::read).
    pub fn assemble(
        parts: impl IntoIterator<Item = Result<TracePart<'a>, ReadError>>,
    ) -> Result<Self, ReadError> {
        let mut whole = TracePart::default();
        for part in parts {
            let part = part.map_err(|error| error.shifted(whole.lines, whole.bytes))?;
            whole.append(part)?;
        }
        let (line, found) = whole.first.ok_or(ReadError::Empty)?;
        let (schema, run) = whole.meta.ok_or(ReadError::MetaNotFirst { line, found })?;
        if let (TraceSchema::V9, Some(line)) = (schema, whole.first_stats) {
            return Err(ReadError::StatsBeforeV10 { line });
        }
        let by_id = join(&mut whole.spans, &whole.span_keys, &whole.ends)?;
        let (line, terminal) = whole.terminal.ok_or(ReadError::NoTerminal)?;
        let document = TraceDocument {
            schema,
            run: *run,
            spans: whole.spans,
            by_id,
            ops: whole.ops,
            tensors: whole.tensors,
            tensor_stats: whole.tensor_stats,
            memory: whole.memory,
            device_memory: whole.device_memory,
            device_intervals: whole.device_intervals,
            gradients: whole.gradients,
            edges: whole.edges,
            terminal,
        };
        let (timestamp_ns, latest_ns) = (document.terminal.timestamp_ns, document.latest_ns());
        if timestamp_ns < latest_ns {
            return Err(ReadError::EndsEarly { line, timestamp_ns, latest_ns });
        }
        Ok(document)
    }

    /// The span of this id.
    #[must_use]
    pub fn span(&self, id: &str) -> Option<&Span<'a>> {
        self.spans.get(self.span_index(id)?)
    }

    /// Where in [`spans`](TraceDocument::spans) the span of this id is.
    #[must_use]
    pub fn span_index(&self, id: &str) -> Option<usize> {
        let of = |index: &usize| self.spans.get(*index).map_or("", |span| &*span.id);
        let at = self.by_id.binary_search_by(|index| of(index).cmp(id)).ok()?;
        self.by_id.get(at).copied()
    }

    /// The latest time on the host, but for the terminal's.
    #[must_use]
    pub fn latest_ns(&self) -> u64 {
        let spans = self.spans.iter().map(Span::end_ns);
        let ops = self.ops.iter().map(|op| op.timestamp_ns.saturating_add(op.duration_ns));
        let memory = self.memory.iter().map(|event| event.timestamp_ns);
        let device_memory = self.device_memory.iter().map(|event| event.timestamp_ns);
        spans.chain(ops).chain(memory).chain(device_memory).max().unwrap_or(0)
    }
}
