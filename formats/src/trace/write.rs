//! The streaming writer.

use super::encode::{self, Event};
use super::error::WriteError;
use super::{
    DeviceInterval, DeviceMemory, Edge, Gradient, Memory, Op, SpanEnd, SpanStart, Tensor,
    TensorStats, Terminal, TraceDocument, TraceRun, TraceSchema,
};
use crate::seen::{IdKey, SeenIds};
use std::collections::HashMap;
use std::io::Write;

/// Writes a trace while it happens.
///
/// - What no reader would take is refused before a byte of it is written: a span that begins twice,
///   an end without a beginning, an end of the run that is too early, anything behind it.
/// - What readers take and report is written: [check](TraceRun::check) the run first.
/// - Every line goes out in one `write_all`; wrap a file in a `BufWriter`.
/// - To find repeated spans it remembers 16 bytes for each span, not its id, and 24 for each that is
///   open.
/// - After the sink failed, everything more is refused: the trace may end inside a line.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    sink: W,
    schema: TraceSchema,
    buffer: Vec<u8>,
    spans: SeenIds,
    /// When each span began that is open.
    open: HashMap<IdKey, u64>,
    /// The latest time that was written.
    latest_ns: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Going,
    Ended,
    Broken,
}

impl<W: Write> TraceWriter<W> {
    /// Writes the first line.
    ///
    /// # Errors
    /// [`WriteError::Io`]
    pub fn new(sink: W, run: &TraceRun) -> Result<Self, WriteError> {
        Self::new_with_schema(sink, TraceSchema::V10, run)
    }

    /// Writes the first line of a trace of the given version.
    ///
    /// # Errors
    /// [`WriteError::Io`]
    pub fn new_with_schema(
        sink: W,
        schema: TraceSchema,
        run: &TraceRun,
    ) -> Result<Self, WriteError> {
        let mut writer = TraceWriter {
            sink,
            schema,
            buffer: Vec::new(),
            spans: SeenIds::default(),
            open: HashMap::new(),
            latest_ns: 0,
            state: State::Going,
        };
        encode::meta_line(&mut writer.buffer, schema, run);
        writer.send()?;
        Ok(writer)
    }

    /// A span begins.
    ///
    /// # Errors
    /// [`WriteError::SpanTwice`], and nothing is written; like all that follow,
    /// [`WriteError::AfterTerminal`], and [`WriteError::Io`], after which the writer is
    /// [`WriteError::Broken`].
    pub fn span_start(&mut self, start: &SpanStart<'_>) -> Result<(), WriteError> {
        self.ready()?;
        let key = self.spans.key(&start.id);
        if !self.spans.insert(key) {
            return Err(WriteError::SpanTwice { id: start.id.clone().into_owned() });
        }
        self.open.insert(key, start.start_ns);
        self.event(start, start.start_ns)
    }

    /// A span ends.
    ///
    /// # Errors
    /// [`WriteError::EndWithoutStart`] and [`WriteError::EndTwice`], and nothing is written.
    pub fn span_end(&mut self, end: &SpanEnd<'_>) -> Result<(), WriteError> {
        self.ready()?;
        let key = self.spans.key(&end.id);
        let Some(start_ns) = self.open.remove(&key) else {
            let id = end.id.clone().into_owned();
            return Err(match self.spans.contains(key) {
                true => WriteError::EndTwice { id },
                false => WriteError::EndWithoutStart { id },
            });
        };
        self.event(end, start_ns.saturating_add(end.duration_ns))
    }

    /// Writes an operation.
    ///
    /// # Errors
    /// Those of all events.
    pub fn op(&mut self, op: &Op<'_>) -> Result<(), WriteError> {
        self.event(op, op.timestamp_ns.saturating_add(op.duration_ns))
    }

    /// Writes a tensor.
    ///
    /// # Errors
    /// Those of all events.
    pub fn tensor(&mut self, tensor: &Tensor<'_>) -> Result<(), WriteError> {
        self.event(tensor, 0)
    }

    /// Writes statistics of a tensor.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and [`WriteError::StatsBeforeV10`], and nothing is written.
    pub fn tensor_stats(&mut self, stats: &TensorStats<'_>) -> Result<(), WriteError> {
        if self.schema < TraceSchema::V10 {
            return Err(WriteError::StatsBeforeV10);
        }
        self.event(stats, 0)
    }

    /// Writes that a storage came or went.
    ///
    /// # Errors
    /// Those of all events.
    pub fn memory(&mut self, memory: &Memory<'_>) -> Result<(), WriteError> {
        self.event(memory, memory.timestamp_ns)
    }

    /// Writes the memory of a device.
    ///
    /// # Errors
    /// Those of all events.
    pub fn device_memory(&mut self, memory: &DeviceMemory<'_>) -> Result<(), WriteError> {
        self.event(memory, memory.timestamp_ns)
    }

    /// Writes a time on a device's clock.
    ///
    /// # Errors
    /// Those of all events.
    pub fn device_interval(&mut self, interval: &DeviceInterval<'_>) -> Result<(), WriteError> {
        self.event(interval, 0)
    }

    /// Writes a gradient.
    ///
    /// # Errors
    /// [`WriteError::Refused`], and nothing is written.
    pub fn gradient(&mut self, gradient: &Gradient<'_>) -> Result<(), WriteError> {
        self.event(gradient, 0)
    }

    /// Writes a connection.
    ///
    /// # Errors
    /// Those of all events.
    pub fn edge(&mut self, edge: &Edge<'_>) -> Result<(), WriteError> {
        self.event(edge, 0)
    }

    /// Writes the last line. Spans may still be open.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and [`WriteError::EndsEarly`], and nothing is written.
    pub fn terminal(&mut self, terminal: &Terminal<'_>) -> Result<(), WriteError> {
        self.ready()?;
        let (timestamp_ns, latest_ns) = (terminal.timestamp_ns, self.latest_ns);
        if timestamp_ns < latest_ns {
            return Err(WriteError::EndsEarly { timestamp_ns, latest_ns });
        }
        self.event(terminal, timestamp_ns)?;
        self.state = State::Ended;
        Ok(())
    }

    /// The latest time that was written: the run may not end before.
    #[must_use]
    pub fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// Flushes the sink.
    ///
    /// # Errors
    /// [`WriteError::Io`] or [`WriteError::Broken`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.state == State::Broken {
            return Err(WriteError::Broken);
        }
        self.sink.flush().map_err(|error| {
            self.state = State::Broken;
            WriteError::Io(error)
        })
    }

    /// Flushes and returns the sink, once the last line is written.
    ///
    /// # Errors
    /// [`WriteError::NoTerminal`], [`WriteError::Io`] or [`WriteError::Broken`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        if self.state == State::Going {
            return Err(WriteError::NoTerminal);
        }
        self.flush()?;
        Ok(self.sink)
    }

    fn ready(&self) -> Result<(), WriteError> {
        match self.state {
            State::Going => Ok(()),
            State::Ended => Err(WriteError::AfterTerminal),
            State::Broken => Err(WriteError::Broken),
        }
    }

    fn event(&mut self, event: &impl Event, latest_ns: u64) -> Result<(), WriteError> {
        self.ready()?;
        self.buffer.clear();
        encode::line(&mut self.buffer, event)?;
        self.send()?;
        self.latest_ns = self.latest_ns.max(latest_ns);
        Ok(())
    }

    fn send(&mut self) -> Result<(), WriteError> {
        self.sink.write_all(&self.buffer).map_err(|error| {
            self.state = State::Broken;
            WriteError::Io(error)
        })
    }
}

impl TraceDocument<'_> {
    /// Writes the whole trace: spans first, then each kind of event in its order.
    ///
    /// # Errors
    /// As those of the [writer](TraceWriter).
    pub fn write<W: Write>(&self, sink: W) -> Result<W, WriteError> {
        let mut writer = TraceWriter::new_with_schema(sink, self.schema, &self.run)?;
        for span in &self.spans {
            writer.span_start(&span.start())?;
        }
        for end in self.spans.iter().filter_map(|span| span.end()) {
            writer.span_end(&end)?;
        }
        self.ops.iter().try_for_each(|op| writer.op(op))?;
        self.tensors.iter().try_for_each(|tensor| writer.tensor(tensor))?;
        self.tensor_stats.iter().try_for_each(|stats| writer.tensor_stats(stats))?;
        self.memory.iter().try_for_each(|memory| writer.memory(memory))?;
        self.device_memory.iter().try_for_each(|memory| writer.device_memory(memory))?;
        self.device_intervals.iter().try_for_each(|interval| writer.device_interval(interval))?;
        self.gradients.iter().try_for_each(|gradient| writer.gradient(gradient))?;
        self.edges.iter().try_for_each(|edge| writer.edge(edge))?;
        writer.terminal(&self.terminal)?;
        writer.finish()
    }
}
