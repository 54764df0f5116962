//! The document form: piece by piece, or a whole [`RuntimeDocument`] at once.

use super::encode::{self, Record};
use super::error::WriteError;
use super::write::{RuntimeTraceWriter, claim, known};
use super::{
    EdgeTimingRef, GradientRef, OperationRef, RunMetadata, RuntimeDocument, RuntimeGap, Section,
    TensorRef, ValueRef,
};
use crate::json::{self, Object};
use crate::seen::SeenIds;
use std::io::Write;

/// Writes the document form piece by piece into a buffer that the caller may drain in between.
///
/// Collections come in the order of [`Section::ALL`]. Ids are not compared here: the caller makes
/// unique ones, or validates the whole document before.
#[derive(Debug)]
pub struct DocumentEncoder {
    newest: Newest,
    open: Option<Section>,
    first: bool,
}

/// Which collections the label introduces, and so which stand in the document even when empty.
#[derive(Debug, Clone, Copy)]
struct Newest(u8);

impl DocumentEncoder {
    /// Writes the opening, the schema and the run.
    ///
    /// # Errors
    /// [`WriteError::UnsupportedSchema`], and nothing is written.
    pub fn begin(out: &mut Vec<u8>, schema: &str, run: &RunMetadata) -> Result<Self, WriteError> {
        known(schema)?;
        let mut object = Object::begin(out);
        object.string("schema", schema);
        let mut fields = Object::begin(object.value("run"));
        encode::run_fields(&mut fields, run);
        fields.end();
        let newest = Newest(schema.as_bytes().last().copied().unwrap_or_default());
        Ok(DocumentEncoder { newest, open: None, first: true })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// [`WriteError::Refused`] or [`WriteError::OutOfOrder`]; of the record, nothing is written.
    pub fn record<R: Record>(&mut self, out: &mut Vec<u8>, record: &R) -> Result<(), WriteError> {
        record.check()?;
        self.enter(out, R::SECTION)?;
        let before = out.len();
        if !self.first {
            out.push(b',');
        }
        if let Err(refusal) = encode::element(out, record) {
            out.truncate(before);
            return Err(refusal.into());
        }
        self.first = false;
        Ok(())
    }

    /// Appends records that were encoded elsewhere, with [`element`](encode::element), and joined
    /// by commas.
    ///
    /// # Errors
    /// [`WriteError::OutOfOrder`], and nothing is written.
    pub fn splice(
        &mut self,
        out: &mut Vec<u8>,
        section: Section,
        elements: &[u8],
    ) -> Result<(), WriteError> {
        if elements.is_empty() {
            return Ok(());
        }
        self.enter(out, section)?;
        if !self.first {
            out.push(b',');
        }
        self.first = false;
        out.extend_from_slice(elements);
        Ok(())
    }

    /// Writes the collections that are still missing, the gaps if there are any, and the end.
    pub fn finish(mut self, out: &mut Vec<u8>, gaps: &[RuntimeGap]) {
        self.skip_to(out, None);
        self.close(out);
        if !gaps.is_empty() {
            out.extend_from_slice(json::key!("gaps"));
            encode::gaps(out, gaps);
        }
        out.extend_from_slice(b"}\n");
    }

    fn enter(&mut self, out: &mut Vec<u8>, section: Section) -> Result<(), WriteError> {
        match self.open {
            Some(open) if open == section => return Ok(()),
            Some(open) if open > section => return Err(WriteError::OutOfOrder { section, open }),
            _ => {}
        }
        self.skip_to(out, Some(section));
        self.start(out, section);
        Ok(())
    }

    /// Writes the empty collections before `next` that the label introduces.
    fn skip_to(&mut self, out: &mut Vec<u8>, next: Option<Section>) {
        for section in Section::ALL {
            let ahead = self.open.is_none_or(|open| section > open);
            let before = next.is_none_or(|next| section < next);
            let introduced = section.since().as_bytes().last().copied() <= Some(self.newest.0);
            if ahead && before && introduced {
                self.start(out, section);
            }
        }
    }

    fn start(&mut self, out: &mut Vec<u8>, section: Section) {
        self.close(out);
        out.extend_from_slice(b",\"");
        out.extend_from_slice(section.key().as_bytes());
        out.extend_from_slice(b"\":[");
        self.open = Some(section);
        self.first = true;
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.is_some() {
            out.push(b']');
        }
    }
}

impl RuntimeDocument {
    /// The document form, in one line.
    ///
    /// # Errors
    /// [`WriteError::UnsupportedSchema`], [`WriteError::Refused`] or [`WriteError::DuplicateId`].
    pub fn to_json(&self) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::new();
        let mut encoder = DocumentEncoder::begin(&mut out, &self.schema, &self.run)?;
        let mut ids = SeenIds::default();
        self.each(&mut DocumentSink { out: &mut out, encoder: &mut encoder, ids: &mut ids })?;
        encoder.finish(&mut out, &self.gaps);
        Ok(out)
    }

    /// The JSONL form; a document of one line if there are no observations.
    ///
    /// # Errors
    /// As [`to_json`](RuntimeDocument::to_json).
    pub fn to_jsonl(&self) -> Result<Vec<u8>, WriteError> {
        let (run, gaps) = (self.run.clone(), self.gaps.clone());
        let mut writer = RuntimeTraceWriter::new_with_gaps(Vec::new(), &self.schema, run, gaps)?;
        self.each(&mut writer)?;
        writer.finish()
    }

    fn each(&self, sink: &mut impl RecordSink) -> Result<(), WriteError> {
        self.tensors.iter().try_for_each(|record| sink.take(&TensorRef::from(record)))?;
        self.operations.iter().try_for_each(|record| sink.take(&OperationRef::from(record)))?;
        self.gradients.iter().try_for_each(|record| sink.take(&GradientRef::from(record)))?;
        self.values.iter().try_for_each(|record| sink.take(&ValueRef::from(record)))?;
        self.edge_timings.iter().try_for_each(|record| sink.take(&EdgeTimingRef::from(record)))
    }
}

/// Where the records of a document go, whatever their kind.
trait RecordSink {
    fn take<R: Record>(&mut self, record: &R) -> Result<(), WriteError>;
}

impl<W: Write> RecordSink for RuntimeTraceWriter<W> {
    fn take<R: Record>(&mut self, record: &R) -> Result<(), WriteError> {
        self.record(record)
    }
}

struct DocumentSink<'a> {
    out: &'a mut Vec<u8>,
    encoder: &'a mut DocumentEncoder,
    ids: &'a mut SeenIds,
}

impl RecordSink for DocumentSink<'_> {
    fn take<R: Record>(&mut self, record: &R) -> Result<(), WriteError> {
        self.encoder.record(self.out, record)?;
        claim(self.ids, record.event_id())
    }
}
