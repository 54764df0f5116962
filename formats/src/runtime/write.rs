//! The streaming writer.

use super::encode::{self, Record};
use super::error::WriteError;
use super::whole::DocumentEncoder;
use super::{
    EdgeTimingObservation, EdgeTimingRef, GradientFact, GradientRef, OperationObservation,
    OperationRef, RunMetadata, RuntimeGap, SCHEMA, TensorObservation, TensorRef, ValueObservation,
    ValueRef, is_known_schema,
};
use crate::seen::SeenIds;
use std::borrow::Borrow;
use std::io::Write;

/// Writes a trace as JSONL while it happens.
///
/// - A record that no reader would take is refused before a byte of it is written.
/// - Every line goes out in one `write_all`; wrap a file in a `BufWriter`.
/// - The meta line waits for the first record: readers take a lone meta line for a broken document,
///   so a run without observations is [finished](RuntimeTraceWriter::finish) in the document form.
/// - To find repeated ids it remembers 16 bytes for each id, not the id.
/// - After the sink failed, everything more is refused: the trace may end inside a line.
#[derive(Debug)]
pub struct RuntimeTraceWriter<W: Write> {
    sink: W,
    ids: SeenIds,
    buffer: Vec<u8>,
    /// What the meta line will say, until it is written.
    pending: Option<Box<Head>>,
    broken: bool,
}

#[derive(Debug)]
struct Head {
    schema: String,
    run: RunMetadata,
    gaps: Vec<RuntimeGap>,
}

impl<W: Write> RuntimeTraceWriter<W> {
    /// Starts a stream of version 1, as the neighbour's `new` does.
    ///
    /// # Errors
    /// None today; the neighbour's signature is kept.
    pub fn new(sink: W, run: RunMetadata) -> Result<Self, WriteError> {
        Self::new_with_schema(sink, SCHEMA, run)
    }

    /// Starts a stream of the given version.
    ///
    /// # Errors
    /// [`WriteError::UnsupportedSchema`]
    pub fn new_with_schema(sink: W, schema: &str, run: RunMetadata) -> Result<Self, WriteError> {
        Self::new_with_gaps(sink, schema, run, Vec::new())
    }

    /// Starts a stream that says at once what it lacks.
    ///
    /// # Errors
    /// [`WriteError::UnsupportedSchema`]
    pub fn new_with_gaps(
        sink: W,
        schema: &str,
        run: RunMetadata,
        gaps: Vec<RuntimeGap>,
    ) -> Result<Self, WriteError> {
        known(schema)?;
        let head = Head { schema: schema.to_owned(), run, gaps };
        Ok(RuntimeTraceWriter {
            sink,
            ids: SeenIds::default(),
            buffer: Vec::new(),
            pending: Some(Box::new(head)),
            broken: false,
        })
    }

    /// Writes a tensor, owned or borrowed.
    ///
    /// # Errors
    /// As [`record`](RuntimeTraceWriter::record).
    pub fn tensor(
        &mut self,
        observation: impl Borrow<TensorObservation>,
    ) -> Result<(), WriteError> {
        self.record(&TensorRef::from(observation.borrow()))
    }

    /// Writes an operation, owned or borrowed.
    ///
    /// # Errors
    /// As [`record`](RuntimeTraceWriter::record).
    pub fn operation(
        &mut self,
        observation: impl Borrow<OperationObservation>,
    ) -> Result<(), WriteError> {
        self.record(&OperationRef::from(observation.borrow()))
    }

    /// Writes a gradient, owned or borrowed. A NaN or infinite norm of a `non_finite` gradient is
    /// left out: the state says it.
    ///
    /// # Errors
    /// As [`record`](RuntimeTraceWriter::record).
    pub fn gradient(&mut self, fact: impl Borrow<GradientFact>) -> Result<(), WriteError> {
        self.record(&GradientRef::from(fact.borrow()))
    }

    /// Writes a value range, owned or borrowed.
    ///
    /// # Errors
    /// As [`record`](RuntimeTraceWriter::record).
    pub fn value(&mut self, observation: impl Borrow<ValueObservation>) -> Result<(), WriteError> {
        self.record(&ValueRef::from(observation.borrow()))
    }

    /// Writes an edge timing, owned or borrowed.
    ///
    /// # Errors
    /// As [`record`](RuntimeTraceWriter::record).
    pub fn edge_timing(
        &mut self,
        observation: impl Borrow<EdgeTimingObservation>,
    ) -> Result<(), WriteError> {
        self.record(&EdgeTimingRef::from(observation.borrow()))
    }

    /// Writes any record in borrowed form.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and [`WriteError::DuplicateId`], and nothing is written;
    /// [`WriteError::Io`], after which the writer is [`WriteError::Broken`].
    pub fn record<R: Record>(&mut self, record: &R) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        self.buffer.clear();
        if let Some(head) = &self.pending {
            encode::meta_line(&mut self.buffer, &head.schema, &head.run, &head.gaps);
        }
        encode::line(&mut self.buffer, record)?;
        claim(&mut self.ids, record.event_id())?;
        self.send()?;
        self.pending = None;
        Ok(())
    }

    /// Flushes the sink. Before the first record there is nothing to flush.
    ///
    /// # Errors
    /// [`WriteError::Io`] or [`WriteError::Broken`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        self.sink.flush().map_err(|error| {
            self.broken = true;
            WriteError::Io(error)
        })
    }

    /// Ends the trace, flushes and returns the sink. If nothing was recorded, the trace becomes a
    /// document of one line, because a stream with only its meta line is readable by nobody.
    ///
    /// # Errors
    /// [`WriteError::Io`] or [`WriteError::Broken`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        if let Some(head) = self.pending.take() {
            self.buffer.clear();
            DocumentEncoder::begin(&mut self.buffer, &head.schema, &head.run)?
                .finish(&mut self.buffer, &head.gaps);
            self.send()?;
        }
        self.flush()?;
        Ok(self.sink)
    }

    fn send(&mut self) -> Result<(), WriteError> {
        self.sink.write_all(&self.buffer).map_err(|error| {
            self.broken = true;
            WriteError::Io(error)
        })
    }
}

pub(super) fn known(schema: &str) -> Result<(), WriteError> {
    if is_known_schema(schema) {
        return Ok(());
    }
    Err(WriteError::UnsupportedSchema { found: schema.to_owned() })
}

pub(super) fn claim(ids: &mut SeenIds, id: &str) -> Result<(), WriteError> {
    if ids.insert(ids.key(id)) {
        return Ok(());
    }
    Err(WriteError::DuplicateId { id: id.to_owned() })
}
