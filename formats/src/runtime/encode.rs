//! One encoder for each kind of record, behind the streaming writer, the document writer and the
//! bulk converter alike: no key is spelled twice.
//!
//! Everything appends to a `Vec<u8>`. A record that is refused leaves the buffer as it was.

use super::{
    Dim, EdgeTimingRef, GradientRef, GradientState, OperationRef, Refusal, RunMetadata, RuntimeGap,
    Section, TensorRef, ValueRef, validate,
};
use crate::json::field::{number, separate, text};
use crate::json::{self, FloatText, Object, Room, Write, append, key};

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

    /// Whether JSON can hold what is written of it. (A document in memory can hold more.)
    ///
    /// # Errors
    /// The first float that it cannot.
    fn check_floats(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Writes every field but `kind` and `event_id`, each with a comma before it. Only of a record
    /// that holds. `None` if there is no room for them.
    fn fields(&self, room: &mut Room<'_>) -> Option<()>;
}

/// Appends one JSONL line, newline included.
///
/// # Errors
/// A record that no reader would take; nothing is appended then.
#[inline]
pub fn line<R: Record>(out: &mut Vec<u8>, record: &R) -> Result<(), Refusal> {
    object(out, record, &Line(record))
}

/// Appends one element of a document's collection, without a comma.
///
/// # Errors
/// A record that no reader would take; nothing is appended then.
#[inline]
pub fn element<R: Record>(out: &mut Vec<u8>, record: &R) -> Result<(), Refusal> {
    object(out, record, &Element(record))
}

/// Room for most records.
const ROOM: usize = 1024;

#[inline(always)]
fn object(out: &mut Vec<u8>, record: &impl Record, form: &impl Write) -> Result<(), Refusal> {
    record.check()?;
    record.check_floats()?;
    append(out, ROOM, form);
    Ok(())
}

struct Line<'a, R>(&'a R);

impl<R: Record> Write for Line<'_, R> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        let Self(record) = self;
        match R::SECTION {
            Section::Tensors => room.raw(b"{\"kind\":\"tensor\",\"event_id\":\""),
            Section::Operations => room.raw(b"{\"kind\":\"operation\",\"event_id\":\""),
            Section::Gradients => room.raw(b"{\"kind\":\"gradient\",\"event_id\":\""),
            Section::Values => room.raw(b"{\"kind\":\"value\",\"event_id\":\""),
            Section::EdgeTimings => room.raw(b"{\"kind\":\"edge_timing\",\"event_id\":\""),
        }?;
        room.string(record.event_id())?;
        record.fields(room)?;
        room.raw(b"}\n")
    }
}

struct Element<'a, R>(&'a R);

impl<R: Record> Write for Element<'_, R> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        let Self(record) = self;
        room.raw(b"{\"event_id\":\"")?;
        room.string(record.event_id())?;
        record.fields(room)?;
        room.raw(b"}")
    }
}

impl<D: Dim> Record for TensorRef<'_, D> {
    const SECTION: Section = Section::Tensors;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline(always)]
    fn fields(&self, room: &mut Room<'_>) -> Option<()> {
        text(room, key!("static_id", string), self.static_id)?;
        text(room, key!("source", string), self.source)?;
        number(room, key!("step"), self.step)?;
        room.raw(key!("shape"))?;
        room.raw(b"[")?;
        for (i, dim) in self.shape.iter().enumerate() {
            separate(room, i)?;
            room.u64(dim.dim())?;
        }
        room.raw(b"]")?;
        text(room, key!("dtype", string), Some(self.dtype))?;
        text(room, key!("device", string), Some(self.device))?;
        room.raw(key!("contiguous"))?;
        room.bool(self.contiguous)?;
        room.raw(key!("requires_grad"))?;
        room.bool(self.requires_grad)?;
        text(room, key!("storage_id", string), self.storage_id)
    }
}

impl<S: AsRef<str>> Record for OperationRef<'_, S> {
    const SECTION: Section = Section::Operations;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline(always)]
    fn fields(&self, room: &mut Room<'_>) -> Option<()> {
        text(room, key!("op", string), Some(self.op))?;
        text(room, key!("static_id", string), self.static_id)?;
        text(room, key!("source", string), self.source)?;
        room.raw(key!("inputs"))?;
        room.raw(b"[")?;
        for (i, input) in self.inputs.iter().enumerate() {
            separate(room, i)?;
            room.raw(b"\"")?;
            room.string(input.as_ref())?;
        }
        room.raw(b"]")?;
        text(room, key!("output", string), self.output)?;
        number(room, key!("step"), self.step)?;
        number(room, key!("duration_ns"), self.duration_ns)
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

    #[inline(always)]
    fn fields(&self, room: &mut Room<'_>) -> Option<()> {
        text(room, key!("root", string), Some(self.root))?;
        text(room, key!("key", string), Some(self.key))?;
        match self.state {
            GradientState::Present => room.raw(b",\"state\":\"present\""),
            GradientState::Missing => room.raw(b",\"state\":\"missing\""),
            GradientState::Zero => room.raw(b",\"state\":\"zero\""),
            GradientState::NonFinite => room.raw(b",\"state\":\"non_finite\""),
        }?;
        number(room, key!("step"), self.step)?;
        // The norm of a non-finite gradient says nothing that its state does not.
        let Some(norm) = self.norm.filter(|_| self.state != GradientState::NonFinite) else {
            return Some(());
        };
        float(room, key!("norm"), norm, FloatText::new().of(norm.abs()))
    }
}

impl Record for ValueRef<'_> {
    const SECTION: Section = Section::Values;

    fn event_id(&self) -> &str {
        self.event_id
    }

    fn check_floats(&self) -> Result<(), Refusal> {
        for (field, value) in [("min", self.min), ("max", self.max), ("abs_max", self.abs_max)] {
            if !value.is_finite() {
                let event_id = self.event_id.to_owned();
                return Err(Refusal::NonFinite { event_id, field, value });
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn fields(&self, room: &mut Room<'_>) -> Option<()> {
        text(room, key!("static_id", string), self.static_id)?;
        text(room, key!("source", string), self.source)?;
        number(room, key!("step"), self.step)?;
        // The text of a float costs as much as all other fields, and mostly two of the three are as
        // great as each other.
        let [mut min, mut max, mut abs_max] = [(); 3].map(|()| FloatText::new());
        let min = min.of(self.min.abs());
        let same = self.max.abs() == self.min.abs();
        let max = if same { min } else { max.of(self.max.abs()) };
        let abs_max = match self.abs_max.abs() {
            size if size == self.max.abs() => max,
            size if size == self.min.abs() => min,
            size => abs_max.of(size),
        };
        float(room, key!("min"), self.min, min)?;
        float(room, key!("max"), self.max, max)?;
        float(room, key!("abs_max"), self.abs_max, abs_max)?;
        if (self.nonfinite_count, self.saturated_count) == (0, 0) {
            return room.raw(b",\"nonfinite_count\":0,\"saturated_count\":0");
        }
        number(room, key!("nonfinite_count"), Some(self.nonfinite_count))?;
        number(room, key!("saturated_count"), Some(self.saturated_count))
    }
}

impl Record for EdgeTimingRef<'_> {
    const SECTION: Section = Section::EdgeTimings;

    fn event_id(&self) -> &str {
        self.event_id
    }

    #[inline(always)]
    fn fields(&self, room: &mut Room<'_>) -> Option<()> {
        text(room, key!("from_static_id", string), Some(self.from_static_id))?;
        text(room, key!("to_static_id", string), Some(self.to_static_id))?;
        number(room, key!("duration_ns"), Some(self.duration_ns))?;
        number(room, key!("step"), self.step)
    }
}

/// A float whose text without its sign is `size`. Of zero the sign is left out: on nothing it only
/// confuses who compares text.
#[inline(always)]
fn float<const N: usize>(
    room: &mut Room<'_>,
    key: &[u8; N],
    value: f64,
    size: &[u8],
) -> Option<()> {
    room.raw(key)?;
    if value < 0.0 {
        room.raw(b"-")?;
    }
    room.plain(size)
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
