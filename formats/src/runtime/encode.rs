//! One encoder for each kind of record, behind the streaming writer, the document writer and the
//! bulk converter alike: no key is spelled twice.
//!
//! Everything appends to a `Vec<u8>`. A record that is refused leaves the buffer as it was.

use super::{
    Dim, EdgeTimingRef, GradientRef, GradientState, OperationRef, Refusal, RunMetadata, RuntimeGap,
    Section, TensorRef, ValueRef, validate,
};
use crate::json::{
    self, Object, key, push_bool, push_f64, push_str, push_strings, push_u64, push_unquoted,
};

/// A record that can stand in a trace.
pub trait Record {
    /// The collection it belongs to.
    const SECTION: Section;

    /// Its id.
    fn event_id(&self) -> &str;

    /// Holds the rules of the format against it, the uniqueness of ids excepted.
    ///
    /// # Errors
    /// The first rule it breaks.
    fn check(&self) -> Result<(), Refusal> {
        validate::event_id(self.event_id())
    }

    /// Appends every field but `kind` and `event_id`, each with a comma before it.
    ///
    /// # Errors
    /// A float that JSON cannot hold; what was appended until then stays.
    fn fields(&self, out: &mut Vec<u8>) -> Result<(), Refusal>;
}

/// Appends one JSONL line, newline included.
///
/// # Errors
/// A record that no reader would take; nothing is appended then.
#[inline]
pub fn line<R: Record>(out: &mut Vec<u8>, record: &R) -> Result<(), Refusal> {
    let opening: &[u8] = match R::SECTION {
        Section::Tensors => b"{\"kind\":\"tensor\",\"event_id\":",
        Section::Operations => b"{\"kind\":\"operation\",\"event_id\":",
        Section::Gradients => b"{\"kind\":\"gradient\",\"event_id\":",
        Section::Values => b"{\"kind\":\"value\",\"event_id\":",
        Section::EdgeTimings => b"{\"kind\":\"edge_timing\",\"event_id\":",
    };
    object(out, record, opening, b"}\n")
}

/// Appends one element of a document's collection, without a comma.
///
/// # Errors
/// A record that no reader would take; nothing is appended then.
#[inline]
pub fn element<R: Record>(out: &mut Vec<u8>, record: &R) -> Result<(), Refusal> {
    object(out, record, b"{\"event_id\":", b"}")
}

#[inline(always)]
fn object<R: Record>(
    out: &mut Vec<u8>,
    record: &R,
    opening: &[u8],
    closing: &[u8],
) -> Result<(), Refusal> {
    record.check()?;
    let before = out.len();
    out.extend_from_slice(opening);
    push_str(out, record.event_id());
    if let Err(refusal) = record.fields(out) {
        out.truncate(before);
        return Err(refusal);
    }
    out.extend_from_slice(closing);
    Ok(())
}

impl<D: Dim> Record for TensorRef<'_, D> {
    const SECTION: Section = Section::Tensors;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline]
    fn fields(&self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        text(out, key!("static_id", string), self.static_id);
        text(out, key!("source", string), self.source);
        number(out, key!("step"), self.step);
        out.extend_from_slice(key!("shape"));
        json::push_array(out, self.shape, |out, dim| push_u64(out, dim.dim()));
        text(out, key!("dtype", string), Some(self.dtype));
        text(out, key!("device", string), Some(self.device));
        out.extend_from_slice(key!("contiguous"));
        push_bool(out, self.contiguous);
        out.extend_from_slice(key!("requires_grad"));
        push_bool(out, self.requires_grad);
        text(out, key!("storage_id", string), self.storage_id);
        Ok(())
    }
}

impl<S: AsRef<str>> Record for OperationRef<'_, S> {
    const SECTION: Section = Section::Operations;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline]
    fn fields(&self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        text(out, key!("op", string), Some(self.op));
        text(out, key!("static_id", string), self.static_id);
        text(out, key!("source", string), self.source);
        out.extend_from_slice(key!("inputs"));
        push_strings(out, self.inputs);
        text(out, key!("output", string), self.output);
        number(out, key!("step"), self.step);
        number(out, key!("duration_ns"), self.duration_ns);
        Ok(())
    }
}

impl Record for GradientRef<'_> {
    const SECTION: Section = Section::Gradients;

    fn event_id(&self) -> &str {
        self.event_id
    }

    fn check(&self) -> Result<(), Refusal> {
        validate::event_id(self.event_id)?;
        validate::gradient(self)
    }

    #[inline]
    fn fields(&self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        text(out, key!("root", string), Some(self.root));
        text(out, key!("key", string), Some(self.key));
        text(out, key!("state", string), Some(self.state.name()));
        number(out, key!("step"), self.step);
        // The norm of a non-finite gradient says nothing that its state does not.
        match self.norm {
            Some(norm) if self.state != GradientState::NonFinite => {
                float(out, key!("norm"), norm, self.event_id, "norm")
            }
            _ => Ok(()),
        }
    }
}

impl Record for ValueRef<'_> {
    const SECTION: Section = Section::Values;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline]
    fn fields(&self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        text(out, key!("static_id", string), self.static_id);
        text(out, key!("source", string), self.source);
        number(out, key!("step"), self.step);
        float(out, key!("min"), self.min, self.event_id, "min")?;
        float(out, key!("max"), self.max, self.event_id, "max")?;
        float(out, key!("abs_max"), self.abs_max, self.event_id, "abs_max")?;
        number(out, key!("nonfinite_count"), Some(self.nonfinite_count));
        number(out, key!("saturated_count"), Some(self.saturated_count));
        Ok(())
    }
}

impl Record for EdgeTimingRef<'_> {
    const SECTION: Section = Section::EdgeTimings;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline]
    fn fields(&self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        text(out, key!("from_static_id", string), Some(self.from_static_id));
        text(out, key!("to_static_id", string), Some(self.to_static_id));
        number(out, key!("duration_ns"), Some(self.duration_ns));
        number(out, key!("step"), self.step);
        Ok(())
    }
}

#[inline]
fn text(out: &mut Vec<u8>, key: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        push_unquoted(out, value);
        out.push(b'"');
    }
}

#[inline]
fn number(out: &mut Vec<u8>, key: &[u8], value: Option<u64>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        push_u64(out, value);
    }
}

#[inline]
fn float(
    out: &mut Vec<u8>,
    key: &[u8],
    value: f64,
    event_id: &str,
    field: &'static str,
) -> Result<(), Refusal> {
    out.extend_from_slice(key);
    push_f64(out, value).map_err(|refused| Refusal::NonFinite {
        event_id: event_id.to_owned(),
        field,
        value: refused.value,
    })
}

/// Appends the JSONL meta line. `gaps` is left out when there are none.
pub fn meta_line(out: &mut Vec<u8>, schema: &str, run: &RunMetadata, gaps: &[RuntimeGap]) {
    let mut line = Object::begin(out);
    line.string("kind", "meta");
    line.string("schema", schema);
    run_fields(&mut line, run);
    if !gaps.is_empty() {
        self::gaps(line.value("gaps"), gaps);
    }
    line.end();
    out.push(b'\n');
}

/// Appends the fields of the run's metadata to an object: `run` itself, or the meta line.
pub(super) fn run_fields(object: &mut Object<'_>, run: &RunMetadata) {
    object.string("entrypoint", &run.entrypoint);
    object.string("profile", &run.profile);
    object.strings("cargo_features", &run.cargo_features);
    object.strings("cfg", &run.cfg);
    let optional =
        [("analysis_id", &run.analysis_id), ("build_id", &run.build_id), ("phase", &run.phase)];
    for (key, value) in optional {
        if let Some(value) = value {
            object.string(key, value);
        }
    }
}

/// Appends the array of gaps.
pub fn gaps(out: &mut Vec<u8>, gaps: &[RuntimeGap]) {
    json::push_array(out, gaps, gap);
}

/// Appends one gap, the same object in every JSON that shows gaps. What is not known is `null`.
pub fn gap(out: &mut Vec<u8>, gap: &RuntimeGap) {
    let mut object = Object::begin(out);
    object.string("class", &gap.class);
    object.string("reason", &gap.reason);
    let known =
        [("lane", gap.lane.map(u64::from)), ("first_ns", gap.first_ns), ("last_ns", gap.last_ns)];
    for (key, value) in known {
        match value {
            Some(value) => object.u64(key, value),
            None => object.null(key),
        }
    }
    object.u64("records", gap.records);
    object.u64("groups", gap.groups);
    object.strings("planes", &gap.planes);
    object.end();
}
