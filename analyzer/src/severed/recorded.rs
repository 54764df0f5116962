//! Of a recording.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use tmrun_formats::wire::{Gradient, Op, Record, Tensor, flags};
use tmrun_formats::{GradientState, NameId, Ticks};

use super::{Call, Severed, find, steps::Parameters};
use crate::convert::{Id, inputs};
use crate::scan::{Meta, Recording};

/// What the families of gradients that should not be there are called in a recording.
const INACTIVE: u8 = 1;

/// Where the gradients of parameters that never had one likely stop. Parameters that the run declared to have
/// none are left out. It reads the records twice, and keeps the operations of the steps in which parameters
/// first lack their gradient: of a training run, those of its first step.
#[must_use]
pub fn of_recording(recording: &Recording<'_>) -> Vec<Severed> {
    let names = recording.names();
    let frozen = frozen(recording.meta());
    let mut parameters = Parameters::default();
    each_group(recording, |step, group| {
        let Some(head) = group.first() else { return };
        let Some(gradient) = head.payload::<Gradient>() else { return };
        let text = |id: NameId| names.text(id);
        let (Some(root), Some(key)) = (text(gradient.root), text(head.header().name)) else {
            return;
        };
        if !frozen.contains(&(root, key)) {
            parameters.add(root, key, step, gradient.state == GradientState::MISSING);
        }
    });
    let steps = parameters.first_steps();
    if steps.is_empty() {
        return Vec::new();
    }
    let mut ops: BTreeMap<Option<u64>, Vec<Ended<'_>>> = BTreeMap::new();
    let mut tracked: HashMap<Id, bool> = HashMap::new();
    each_group(recording, |step, group| {
        let Some(head) = group.first().filter(|_| steps.contains(&step)) else { return };
        if let Some(op) = head.payload::<Op>() {
            ops.entry(step).or_default().push(Ended { op, group });
        } else if let Some(tensor) = head.payload::<Tensor>() {
            let set = head.header().flags;
            let id = Id::tensor(tensor.tensor, set, flags::TENSOR_NAMED).given();
            let requires_grad = set & flags::TENSOR_REQUIRES_GRAD != 0;
            tracked.extend(id.map(|id| (id, requires_grad)));
        }
    });
    for ops in ops.values_mut() {
        // What is within another ends with it at the latest, and began later.
        ops.sort_by_key(|ended| (ended.op.end, Reverse(ended.start())));
    }
    parameters.in_each_step(|step, parameters| {
        let ops = ops.get(&step).map_or(&[][..], |ops| ops);
        let calls = ops.iter().filter_map(|ended| {
            let header = ended.group.first()?.header();
            let output = Id::tensor(ended.op.output, header.flags, flags::OP_OUTPUT_NAMED).given();
            Some(Call {
                layer: names.text(header.name)?,
                op: names.text(ended.op.op)?,
                inputs: inputs(ended.group, ended.op.inputs).collect(),
                tracked: output.and_then(|id| tracked.get(&id).copied()),
                output,
            })
        });
        find(step, &calls.collect::<Vec<_>>(), parameters)
    })
}

/// An operation, and the records of it.
struct Ended<'r> {
    op: Op,
    group: &'r [Record],
}

impl Ended<'_> {
    fn start(&self) -> Ticks {
        self.group.first().map_or(self.op.end, |head| head.header().ticks)
    }
}

/// Every group of records, in file order, with the step that is open on its lane.
fn each_group<'r>(recording: &Recording<'r>, mut take: impl FnMut(Option<u64>, &'r [Record])) {
    for chunk in recording.record_chunks() {
        let mut state = chunk.step();
        for group in chunk.groups() {
            state = group.iter().fold(state, |state, record| state.behind(record, chunk.lane()));
            take(state.open.map(|open| open.number), group);
        }
    }
}

/// The parameters that should have no gradient.
fn frozen<'r>(meta: &Meta<'r>) -> HashSet<(&'r str, &'r str)> {
    let families = meta.gradient_families.iter().filter(|it| it.expectation == INACTIVE);
    let inactive: HashSet<&str> = families.map(|family| family.family).collect();
    let entries = meta.gradient_entries.iter().filter(|it| inactive.contains(it.family));
    entries.map(|entry| (entry.root, entry.key)).collect()
}
