//! Op records: one call of an operation, with its output and inputs.

use tmrun_formats::TensorId;
use tmrun_formats::runtime::OperationRef;
use tmrun_formats::wire::{Op, OpInput, Record, flags};

use super::encode::Put;
use super::source::{Id, Name, Source};
use super::tally::{Absent, Note, Tally};
use super::text::Text;

/// An operation that can be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationFact<'r> {
    node: Name<'r>,
    op: Name<'r>,
    inputs: u8,
    output: Option<Id>,
    duration_ns: Option<u64>,
    group: &'r [Record],
}

impl<'r> OperationFact<'r> {
    pub(super) fn read(
        source: &Source<'r>,
        group: &'r [Record],
        tally: &mut Tally,
    ) -> Option<Self> {
        let head = group.first()?;
        let (header, op) = (head.header(), head.payload::<Op>()?);
        let output = Id::tensor(op.output, header.flags, flags::OP_OUTPUT_NAMED).given();
        if let Some(output) = output {
            source.note_id(output, tally);
        }
        let mut found = 0_usize;
        for input in inputs(group, op.inputs) {
            source.note_id(input, tally);
            found = found.saturating_add(1);
        }
        if header.flags & flags::TRUNCATED != 0 || found < usize::from(op.inputs) {
            tally.note(Note::TruncatedInputs, 1);
        }
        // An end before the start is no duration, and 0 would be a claim.
        let ticks = op.end.0.checked_sub(header.ticks.0);
        let ticks = ticks.filter(|_| source.schema.has_durations_and_phase());
        if ticks.is_none() {
            tally.leave_out(Absent::Duration);
        }
        Some(Self {
            node: source.name(header.name, tally),
            op: source.name(op.op, tally),
            inputs: op.inputs,
            output,
            duration_ns: ticks.map(|ticks| source.clock.span_ns(header.ticks, ticks)),
            group,
        })
    }

    pub(super) fn write(
        &self,
        source: &Source<'r>,
        (event_id, step): (&str, Option<u64>),
        texts: &mut Vec<Text<'r>>,
        put: &mut Put<'_>,
    ) {
        texts.clear();
        texts.extend(inputs(self.group, self.inputs).map(|id| source.id(id)));
        let output = self.output.map(|id| source.id(id));
        put.record(&OperationRef {
            event_id,
            op: self.op.text().as_ref(),
            static_id: self.node.static_id(),
            source: Some(self.node.source().as_ref()),
            inputs: texts.as_slice(),
            output: output.as_ref().map(AsRef::as_ref),
            step,
            duration_ns: self.duration_ns,
        });
    }
}

/// The inputs that an operation counts, as far as they were recorded. Their places matter, so one
/// that has no identity keeps its place.
pub(crate) fn inputs(group: &[Record], count: u8) -> impl Iterator<Item = Id> {
    let five = |record: &Record| {
        let flags = record.header().flags;
        let id = move |(i, tensor): (u32, TensorId)| {
            Id::tensor(tensor, flags, flags::OP_INPUT_NAMED.wrapping_shl(i))
        };
        record.payload::<OpInput>().map(|input| (0..).zip(input.tensors).map(id))
    };
    group.iter().skip(1).filter_map(five).flatten().take(count.into())
}
