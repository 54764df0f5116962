//! One encoder for each kind of event: no key is spelled twice.
//!
//! Everything appends to a `Vec<u8>`. A record that is refused leaves the buffer as it was.

use super::{
    DeviceInterval, DeviceMemory, Edge, Gradient, Memory, Op, Refusal, SpanEnd, SpanStart, Tensor,
    TensorStats, Terminal, TraceRun, TraceSchema, rules,
};
use crate::json::field::{number, separate, text};
use crate::json::{FloatText, Room, Write, append, key};
use serde::Serialize;
use std::borrow::Cow;

/// An event that can stand in a trace, behind its first line.
pub trait Event {
    /// Holds the rules of the format that it keeps or breaks by itself.
    ///
    /// # Errors
    /// The first rule it breaks.
    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Writes it as an object without its closing brace. Only of an event that holds. `None` if
    /// there is no room for it.
    fn write(&self, room: &mut Room<'_>) -> Option<()>;
}

/// Room for most events.
const ROOM: usize = 1024;

/// Appends one line, newline included.
///
/// # Errors
/// An event that no reader would take; nothing is appended then.
#[inline]
pub fn line<E: Event>(out: &mut Vec<u8>, event: &E) -> Result<(), Refusal> {
    event.check()?;
    append(out, ROOM, &Line(event));
    Ok(())
}

struct Line<'a, E>(&'a E);

impl<E: Event> Write for Line<'_, E> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        self.0.write(room)?;
        room.raw(b"}\n")
    }
}

/// Appends the first line.
pub fn meta_line(out: &mut Vec<u8>, schema: TraceSchema, run: &TraceRun) {
    #[derive(Serialize)]
    struct Meta<'a> {
        kind: &'static str,
        schema: TraceSchema,
        #[serde(flatten)]
        run: &'a TraceRun,
    }
    // There is one such line, and a run has one list of its keys. It holds texts and integers, and a
    // `Vec` takes everything, so that there is nothing that could fail.
    let written = serde_json::to_writer(&mut *out, &Meta { kind: "meta", schema, run });
    debug_assert!(written.is_ok(), "{written:?}");
    out.push(b'\n');
}

impl Event for SpanStart<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"span_start\",\"id\":\"")?;
        room.string(&self.id)?;
        text(room, key!("parent_id", string), self.parent_id.as_deref())?;
        text(room, key!("name", string), Some(&self.name))?;
        number(room, key!("start_ns"), Some(self.start_ns))?;
        text(room, key!("span_kind", string), Some(self.kind.name()))?;
        boolean(room, key!("measured"), self.measured)?;
        text(room, key!("step", string), self.step.map(|step| step.name()))
    }
}

impl Event for SpanEnd<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"span_end\",\"id\":\"")?;
        room.string(&self.id)?;
        number(room, key!("duration_ns"), Some(self.duration_ns))
    }
}

impl Event for Op<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"op\",\"span_id\":\"")?;
        room.string(&self.span_id)?;
        text(room, key!("op_name", string), Some(&self.op_name))?;
        texts(room, key!("inputs"), &self.inputs)?;
        text(room, key!("output", string), self.output.as_deref())?;
        numbers(room, key!("shape"), &self.shape)?;
        text(room, key!("dtype", string), Some(&self.dtype))?;
        text(room, key!("device", string), Some(&self.device))?;
        number(room, key!("duration_ns"), Some(self.duration_ns))?;
        number(room, key!("timestamp_ns"), Some(self.timestamp_ns))?;
        number(room, key!("output_dense_bytes"), self.output_dense_bytes)?;
        number(room, key!("input_dense_bytes"), Some(self.input_dense_bytes))
    }
}

impl Event for Tensor<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"tensor\",\"span_id\":\"")?;
        room.string(&self.span_id)?;
        text(room, key!("tensor_id", string), Some(&self.tensor_id))?;
        text(room, key!("label", string), self.label.as_deref())?;
        numbers(room, key!("shape"), &self.shape)?;
        text(room, key!("dtype", string), Some(&self.dtype))?;
        text(room, key!("device", string), Some(&self.device))?;
        boolean(room, key!("requires_grad"), self.requires_grad)?;
        number(room, key!("dense_bytes"), self.dense_bytes)?;
        text(room, key!("category", string), Some(self.category.name()))
    }
}

impl Event for TensorStats<'_> {
    fn check(&self) -> Result<(), Refusal> {
        rules::tensor_stats(self)
    }

    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"tensor_stats\",\"span_id\":\"")?;
        room.string(&self.span_id)?;
        text(room, key!("label", string), Some(&self.label))?;
        numbers(room, key!("shape"), &self.shape)?;
        text(room, key!("dtype", string), Some(&self.dtype))?;
        number(room, key!("elements"), Some(self.elements))?;
        number(room, key!("non_finite"), Some(self.non_finite))?;
        float(room, key!("rms"), self.rms)?;
        float(room, key!("abs_max"), self.abs_max)?;
        float(room, key!("mean"), self.mean)
    }
}

impl Event for Memory<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"memory\",\"timestamp_ns\":")?;
        room.u64(self.timestamp_ns)?;
        text(room, key!("storage_id", string), Some(&self.storage_id))?;
        text(room, key!("tensor_id", string), Some(&self.tensor_id))?;
        text(room, key!("span_id", string), Some(&self.span_id))?;
        text(room, key!("op_name", string), self.op_name.as_deref())?;
        text(room, key!("device", string), Some(&self.device))?;
        number(room, key!("bytes"), Some(self.bytes))?;
        text(room, key!("action", string), Some(self.action.name()))?;
        numbers(room, key!("shape"), &self.shape)?;
        text(room, key!("dtype", string), Some(&self.dtype))?;
        text(room, key!("category", string), Some(self.category.name()))
    }
}

impl Event for DeviceMemory<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"device_memory\",\"timestamp_ns\":")?;
        room.u64(self.timestamp_ns)?;
        text(room, key!("device", string), Some(&self.device))?;
        number(room, key!("used_bytes"), self.used_bytes)?;
        number(room, key!("free_bytes"), self.free_bytes)?;
        number(room, key!("reserved_bytes"), self.reserved_bytes)?;
        number(room, key!("capacity_bytes"), self.capacity_bytes)
    }
}

impl Event for DeviceInterval<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"device_interval\",\"span_id\":\"")?;
        room.string(&self.span_id)?;
        text(room, key!("device", string), Some(&self.device))?;
        text(room, key!("stream_id", string), Some(&self.stream_id))?;
        text(room, key!("clock_id", string), Some(&self.clock_id))?;
        text(room, key!("backend", string), Some(&self.backend))?;
        number(room, key!("start_ns"), Some(self.start_ns))?;
        number(room, key!("duration_ns"), Some(self.duration_ns))
    }
}

impl Event for Gradient<'_> {
    fn check(&self) -> Result<(), Refusal> {
        match self.norm {
            Some(norm) if !norm.is_finite() => Err(Refusal::Norm { norm }),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"gradient\",\"event_id\":\"")?;
        room.string(&self.event_id)?;
        text(room, key!("root", string), Some(&self.root))?;
        text(room, key!("key", string), Some(&self.key))?;
        text(room, key!("state", string), Some(self.state.name()))?;
        let Some(norm) = self.norm else { return Some(()) };
        float(room, key!("norm"), norm)
    }
}

impl Event for Edge<'_> {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        match self {
            Edge::Call(call) => {
                room.raw(b"{\"kind\":\"edge\",\"edge_kind\":\"call\",\"from_span\":\"")?;
                room.string(&call.from_span)?;
                text(room, key!("to_span", string), Some(&call.to_span))?;
                number(room, key!("host_duration_ns"), Some(call.host_duration_ns))
            }
            Edge::Data(data) => {
                room.raw(b"{\"kind\":\"edge\",\"edge_kind\":\"data\",\"from_tensor\":\"")?;
                room.string(&data.from_tensor)?;
                text(room, key!("to_tensor", string), Some(&data.to_tensor))
            }
        }
    }
}

impl Event for Terminal<'_> {
    fn check(&self) -> Result<(), Refusal> {
        rules::terminal(self)
    }

    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        room.raw(b"{\"kind\":\"terminal\",\"outcome\":\"")?;
        room.string(self.outcome.name())?;
        number(room, key!("timestamp_ns"), Some(self.timestamp_ns))?;
        text(room, key!("reason", string), self.reason.as_deref())
    }
}

#[inline(always)]
fn boolean<const N: usize>(room: &mut Room<'_>, key: &[u8; N], value: bool) -> Option<()> {
    room.raw(key)?;
    room.bool(value)
}

/// A finite float. Zero keeps its sign: of a norm it says that the state is not what it seems.
#[inline(always)]
fn float<const N: usize>(room: &mut Room<'_>, key: &[u8; N], value: f64) -> Option<()> {
    room.raw(key)?;
    if value.is_sign_negative() {
        room.raw(b"-")?;
    }
    room.plain(FloatText::new().of(value.abs()))
}

#[inline(always)]
fn texts<const N: usize>(room: &mut Room<'_>, key: &[u8; N], texts: &[Cow<'_, str>]) -> Option<()> {
    room.raw(key)?;
    room.raw(b"[")?;
    for (i, text) in texts.iter().enumerate() {
        separate(room, i)?;
        room.raw(b"\"")?;
        room.string(text)?;
    }
    room.raw(b"]")
}

#[inline(always)]
fn numbers<const N: usize>(room: &mut Room<'_>, key: &[u8; N], numbers: &[u64]) -> Option<()> {
    room.raw(key)?;
    room.raw(b"[")?;
    for (i, &number) in numbers.iter().enumerate() {
        separate(room, i)?;
        room.u64(number)?;
    }
    room.raw(b"]")
}
