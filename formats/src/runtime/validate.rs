//! The rules of the format, each written once. Everything that is not here is allowed: empty roots,
//! `min` above `max`, any phase, any label with any field.

use super::encode::Record;
use super::error::{Place, ReadError, Refusal};
use super::{
    EdgeTimingRef, GradientRef, GradientState, OperationRef, RuntimeDocument, Section, TensorRef,
    ValueRef, is_known_schema,
};
use std::collections::HashMap;

/// An id is not empty.
pub(super) fn event_id(id: &str) -> Result<(), Refusal> {
    if id.is_empty() { Err(Refusal::EmptyId) } else { Ok(()) }
}

/// State and norm do not contradict each other.
pub(super) fn gradient(fact: &GradientRef<'_>) -> Result<(), Refusal> {
    let Some(norm) = fact.norm else { return Ok(()) };
    let (holds, expected) = match fact.state {
        GradientState::Present => {
            (norm.is_finite() && norm != 0.0, "a finite norm that is not zero, or none")
        }
        GradientState::Zero => (norm == 0.0, "a norm of 0.0, or none"),
        GradientState::Missing => (false, "no norm"),
        GradientState::NonFinite => (!norm.is_finite(), "no finite norm"),
    };
    if holds {
        return Ok(());
    }
    Err(Refusal::Contradiction {
        root: fact.root.to_owned(),
        key: fact.key.to_owned(),
        state: fact.state,
        norm,
        expected,
    })
}

/// Holds every rule against a document. `place` says where a record stands in the input.
pub(super) fn document(
    document: &RuntimeDocument,
    schema: Place,
    place: impl Fn(Section, usize) -> Place,
) -> Result<(), ReadError> {
    if !is_known_schema(&document.schema) {
        return Err(ReadError::UnsupportedSchema { place: schema, found: document.schema.clone() });
    }
    let mut ids = Ids { seen: HashMap::with_capacity(document.len()), place };
    for (index, record) in document.tensors.iter().enumerate() {
        ids.admit(&record.event_id, &TensorRef::from(record), index)?;
    }
    for (index, record) in document.operations.iter().enumerate() {
        ids.admit(&record.event_id, &OperationRef::from(record), index)?;
    }
    for (index, record) in document.gradients.iter().enumerate() {
        ids.admit(&record.event_id, &GradientRef::from(record), index)?;
    }
    for (index, record) in document.values.iter().enumerate() {
        ids.admit(&record.event_id, &ValueRef::from(record), index)?;
    }
    for (index, record) in document.edge_timings.iter().enumerate() {
        ids.admit(&record.event_id, &EdgeTimingRef::from(record), index)?;
    }
    Ok(())
}

/// The ids seen so far and where; they are borrowed, so that checking copies no text.
struct Ids<'a, P> {
    seen: HashMap<&'a str, (Section, usize)>,
    place: P,
}

impl<'a, P: Fn(Section, usize) -> Place> Ids<'a, P> {
    fn admit<R: Record>(&mut self, id: &'a str, record: &R, index: usize) -> Result<(), ReadError> {
        record.check().map_err(|refusal| ReadError::Refused {
            place: (self.place)(R::SECTION, index),
            refusal,
        })?;
        match self.seen.insert(id, (R::SECTION, index)) {
            None => Ok(()),
            Some((section, first)) => Err(ReadError::DuplicateId {
                place: (self.place)(R::SECTION, index),
                first: (self.place)(section, first),
                id: id.to_owned(),
            }),
        }
    }
}

impl RuntimeDocument {
    /// Holds every rule of the format against the document as it is.
    ///
    /// # Errors
    /// The first rule that is broken, and the record that breaks it.
    pub fn validate(&self) -> Result<(), ReadError> {
        document(self, Place::Schema, |section, index| Place::Item { section, index })
    }
}
