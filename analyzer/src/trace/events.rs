//! From the facts of a region to events of a trace.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use tmrun_formats::trace::{
    self, CallEdge, DataEdge, MemoryAction, MemoryCategory, TraceDocument, dense_bytes,
};
use tmrun_formats::wire::{
    Alloc, DeviceInterval, DeviceMemory, Edge, Free, Gradient, Kind, Op, Range, Scalar, Shape,
    Stats, Tensor, flags,
};
use tmrun_formats::{
    Category, ClockCode, DeviceCode, EdgeKind, GradientState, LaneId, NameId, SpanId, StampFault,
    StreamId,
};

use super::fact::Fact;
use super::ids::Ids;
use super::place::Node;
use super::storages::Storages;
use super::told::{LeftOut, MovedFacts, NonFinite, Told, ValueOf};
use super::{Texts, Time, Tree};
use crate::convert::{EventId, Id, dims_of, inputs};

/// What is around each fact.
pub(super) struct Events<'t, 'd> {
    pub(super) tree: &'t Tree,
    pub(super) ids: &'d Ids,
    pub(super) texts: Texts<'d>,
    pub(super) time: Time<'t>,
    pub(super) told: Told,
    pub(super) document: TraceDocument<'d>,
    /// Tensors that operations and tensor events speak of: a trace has no edge to another.
    tensors: HashSet<(u64, bool)>,
    storages: Storages<'d>,
    /// The rows of a lane by the low halves of their ids.
    low: HashMap<(LaneId, u32), SpanId>,
    /// How many facts of a lane that were recorded within a span hang on which other node.
    moved: BTreeMap<(LaneId, Option<SpanId>, Node), u64>,
}

impl<'t, 'd> Events<'t, 'd> {
    pub(super) fn new(
        tree: &'t Tree,
        ids: &'d Ids,
        texts: Texts<'d>,
        time: Time<'t>,
        told: Told,
        document: TraceDocument<'d>,
    ) -> Self {
        let low = tree.rows.rows.iter().map(|row| {
            let (lane, id) = row.key;
            ((lane, id.0 as u32), id)
        });
        Self {
            tree,
            ids,
            texts,
            time,
            told,
            document,
            tensors: HashSet::new(),
            storages: Storages::default(),
            low: low.collect(),
            moved: BTreeMap::new(),
        }
    }

    /// What came of them.
    pub(super) fn end(self) -> (TraceDocument<'d>, Told) {
        let Self { document, mut told, moved, ids, .. } = self;
        let moved = moved.into_iter().map(|((lane, recorded, node), facts)| MovedFacts {
            lane,
            recorded: recorded.map(|id| Ids::of_key((lane, id))),
            span_id: ids.text(node).to_owned(),
            facts,
        });
        told.moved_facts = moved.collect();
        (document, told)
    }

    /// Takes in all facts, in order of time.
    pub(super) fn take(&mut self, facts: &[Fact<'d>]) {
        for fact in facts {
            // Memory is the process's, whatever invocation makes use of it.
            let is_shared = matches!(fact.kind, Kind::Alloc | Kind::Free | Kind::DeviceMemory);
            // Work on a device is of the step that it was launched in, which is known by now.
            let is_launched = fact.kind == Kind::DeviceInterval;
            if !is_shared && !is_launched && self.tree.is_of_another(fact.state) {
                self.told.leave_out(LeftOut::OtherStep);
                continue;
            }
            match fact.kind {
                Kind::Op => self.op(fact),
                Kind::Tensor => self.tensor(fact),
                Kind::Scalar => self.scalar(fact),
                Kind::Gradient => self.gradient(fact),
                Kind::Alloc | Kind::Free => self.memory(fact),
                Kind::DeviceMemory => self.device_memory(fact),
                Kind::DeviceInterval => self.interval(fact),
                Kind::Range => self.told.leave_out(LeftOut::Range),
                Kind::Edge => {}
                Kind::Control | Kind::Hit | Kind::ClockSync => {
                    self.told.leave_out(LeftOut::Recorder);
                }
                _ => self.told.leave_out(LeftOut::Unknown),
            }
        }
        // Edges speak of what the others said.
        for fact in facts.iter().filter(|fact| fact.kind == Kind::Edge) {
            if !self.tree.is_of_another(fact.state) {
                self.edge(fact);
            }
        }
    }

    /// The id of the span that a fact hangs on, whose time the trace has.
    fn span(&mut self, fact: &Fact<'_>) -> Cow<'d, str> {
        self.hung(fact, self.tree.place(fact.lane, fact.within, (fact.first, fact.last)))
    }

    /// The id of the span that a fact hangs on, whose time the trace does not have.
    fn span_of_untimed(&mut self, fact: &Fact<'_>) -> Cow<'d, str> {
        self.hung(fact, self.tree.place_untimed(fact.lane, fact.within, (fact.first, fact.last)))
    }

    fn hung(&mut self, fact: &Fact<'_>, (node, moved): (Node, bool)) -> Cow<'d, str> {
        if moved {
            self.move_to(fact.lane, fact.within, node);
        }
        Cow::Borrowed(self.ids.text(node))
    }

    fn move_to(&mut self, lane: LaneId, recorded: Option<SpanId>, node: Node) {
        let count = self.moved.entry((lane, recorded, node)).or_default();
        *count = count.saturating_add(1);
    }

    fn name(&mut self, id: NameId) -> Cow<'d, str> {
        self.texts.name(id).unwrap_or_else(|| {
            self.told.unnamed = self.told.unnamed.saturating_add(1);
            Texts::unnamed(id.0.into())
        })
    }

    /// The dimensions of an operation's output. A trace has no word for those that nobody gave: it says
    /// that there are none, which is a scalar.
    fn shape_behind(&mut self, fact: &Fact<'_>) -> Vec<u64> {
        let dims = dims_behind(fact);
        self.told.unknown_shapes = self.told.unknown_shapes.saturating_add(dims.is_none().into());
        dims.unwrap_or_default()
    }

    /// The text of an identity that may be a name's.
    fn id(&mut self, id: Id) -> Cow<'d, str> {
        if id.named {
            return self.name(NameId(id.value as u32));
        }
        Texts::hex(id.value)
    }

    /// The id of a tensor, which from now on edges may speak of.
    fn known_tensor(&mut self, id: Id, fact: &Fact<'_>) -> Cow<'d, str> {
        self.tensors.extend(id.given().map(|id| (id.value, id.named)));
        self.tensor_id(id, fact)
    }

    /// The id of a tensor; of one without identity the place of the fact.
    fn tensor_id(&mut self, id: Id, fact: &Fact<'_>) -> Cow<'d, str> {
        match id.given() {
            Some(id) => self.id(id),
            None => Cow::Owned(format!("unidentified@{}", event_id(fact))),
        }
    }

    fn op(&mut self, fact: &Fact<'d>) {
        let Some((head, op)) = read::<Op>(fact) else { return };
        let shape = self.shape_behind(fact);
        let truncated = head.flags & flags::TRUNCATED != 0;
        self.told.truncated_inputs = self.told.truncated_inputs.saturating_add(truncated.into());
        let output = Id::tensor(op.output, head.flags, flags::OP_OUTPUT_NAMED).given();
        let inputs: Vec<Id> = inputs(fact.group, op.inputs).collect();
        let span_id = self.span(fact);
        let op_name = if op.op.is_none() { self.name(head.name) } else { self.name(op.op) };
        let inputs = inputs.into_iter().map(|input| self.known_tensor(input, fact)).collect();
        let output = output.map(|output| self.known_tensor(output, fact));
        let dtype = self.texts.dtype(op.dtype);
        let device = self.texts.device(op.device);
        let known = head.flags & flags::OP_INPUT_BYTES != 0;
        if !known {
            self.told.unknown_input_bytes = self.told.unknown_input_bytes.saturating_add(1);
        }
        self.document.ops.push(trace::Op {
            span_id,
            op_name,
            inputs,
            output,
            output_dense_bytes: dense_bytes(&shape, dtype),
            shape,
            dtype: Cow::Borrowed(dtype),
            device: Cow::Borrowed(device),
            duration_ns: self.time.between(fact.first, fact.last),
            timestamp_ns: self.time.at(fact.first),
            input_dense_bytes: if known { op.input_bytes } else { 0 },
        });
    }

    fn tensor(&mut self, fact: &Fact<'d>) {
        let Some((head, tensor)) = read::<Tensor>(fact) else { return };
        let Some(shape) = dims_of(fact.group, &tensor) else {
            return self.told.leave_out(LeftOut::TensorShape);
        };
        let span_id = self.span_of_untimed(fact);
        let label = (!head.name.is_none()).then(|| self.name(head.name));
        let dtype = self.texts.dtype(tensor.dtype);
        let device = self.texts.device(tensor.device);
        if head.flags & flags::TENSOR_CONTEXT == 0 {
            let id = Id::tensor(tensor.tensor, head.flags, flags::TENSOR_NAMED);
            let is_unknown = id.given().is_none();
            self.told.unidentified_tensors =
                self.told.unidentified_tensors.saturating_add(is_unknown.into());
            let tensor_id = self.known_tensor(id, fact);
            self.document.tensors.push(trace::Tensor {
                span_id: span_id.clone(),
                tensor_id,
                label: label.clone(),
                dense_bytes: dense_bytes(&shape, dtype),
                shape: shape.clone(),
                dtype: Cow::Borrowed(dtype),
                device: Cow::Borrowed(device),
                requires_grad: head.flags & flags::TENSOR_REQUIRES_GRAD != 0,
                category: category(tensor.category),
            });
        }
        let mut behind = fact.group.iter().skip(1);
        let Some(stats) = behind.find_map(|record| record.payload::<Stats>()) else { return };
        let label = label.unwrap_or_else(|| self.name(head.name));
        let range = fact.group.iter().find_map(|record| record.payload::<Range>());
        let elements = shape.iter().try_fold(1_u64, |all, &dim| all.checked_mul(dim));
        let non_finite = u64::from(stats.nan).saturating_add(stats.inf.into());
        let values = [stats.rms, stats.abs_max, stats.mean];
        let holds = values.iter().all(|value| value.is_finite())
            && stats.rms >= 0.0
            && stats.abs_max >= 0.0
            && elements == Some(stats.count)
            && non_finite <= stats.count
            && !label.trim().is_empty();
        if !holds {
            return self.told.leave_out(LeftOut::Stats);
        }
        if non_finite > 0 {
            self.told.non_finite.push(NonFinite {
                of: ValueOf::Tensor,
                label: label.clone().into_owned(),
                span_id: span_id.clone().into_owned(),
                timestamp_ns: self.time.at(fact.first),
                nan: stats.nan.into(),
                positive: range.map(|range| range.positive_inf.into()),
                infinite: stats.inf.into(),
            });
        }
        self.document.tensor_stats.push(trace::TensorStats {
            span_id,
            label,
            shape,
            dtype: Cow::Borrowed(dtype),
            elements: stats.count,
            non_finite,
            rms: stats.rms + 0.0,
            abs_max: stats.abs_max + 0.0,
            mean: stats.mean + 0.0,
        });
    }

    fn scalar(&mut self, fact: &Fact<'d>) {
        let Some((head, Scalar { value })) = read::<Scalar>(fact) else { return };
        let (span_id, label) = (self.span_of_untimed(fact), self.name(head.name));
        if label.trim().is_empty() {
            return self.told.leave_out(LeftOut::Stats);
        }
        let finite = value.is_finite();
        if !finite {
            self.told.non_finite.push(NonFinite {
                of: ValueOf::Scalar,
                label: label.clone().into_owned(),
                span_id: span_id.clone().into_owned(),
                timestamp_ns: self.time.at(fact.first),
                nan: value.is_nan().into(),
                positive: Some((value == f64::INFINITY).into()),
                infinite: value.is_infinite().into(),
            });
        }
        let mean = if finite { value + 0.0 } else { 0.0 };
        self.document.tensor_stats.push(trace::TensorStats {
            span_id,
            label,
            shape: Vec::new(),
            dtype: Cow::Borrowed("f64"),
            elements: 1,
            non_finite: (!finite).into(),
            rms: mean.abs(),
            abs_max: mean.abs(),
            mean,
        });
    }

    fn gradient(&mut self, fact: &Fact<'d>) {
        let Some((head, gradient)) = read::<Gradient>(fact) else { return };
        let given = (head.flags & flags::GRADIENT_NORM != 0).then_some(gradient.norm);
        let state = match (gradient.state, given) {
            (GradientState::PRESENT, Some(norm)) if norm.is_finite() && norm > 0.0 => {
                (trace::GradientState::Present, Some(norm))
            }
            (GradientState::ZERO, None) => (trace::GradientState::Zero, Some(0.0)),
            (GradientState::ZERO, Some(0.0)) => (trace::GradientState::Zero, Some(0.0)),
            (GradientState::MISSING, None) => (trace::GradientState::Missing, None),
            (GradientState::NON_FINITE, _) => (trace::GradientState::NonFinite, None),
            _ => return self.told.leave_out(LeftOut::Gradient),
        };
        let (root, key) = (self.name(gradient.root), self.name(head.name));
        if state.0 == trace::GradientState::NonFinite {
            let (node, _) = self.tree.place(fact.lane, fact.within, (fact.first, fact.last));
            let span_id = self.ids.text(node).to_owned();
            let is = |what: fn(f64) -> bool| u64::from(given.is_some_and(what));
            self.told.non_finite.push(NonFinite {
                of: ValueOf::Gradient,
                label: format!("{root}/{key}"),
                span_id,
                timestamp_ns: self.time.at(fact.first),
                nan: is(f64::is_nan),
                positive: given.map(|norm| (norm == f64::INFINITY).into()),
                infinite: is(f64::is_infinite),
            });
        }
        self.document.gradients.push(trace::Gradient {
            event_id: Cow::Owned(event_id(fact)),
            root,
            key,
            state: state.0,
            norm: state.1,
        });
    }

    fn memory(&mut self, fact: &Fact<'d>) {
        let (Some(head), allocates) = (fact.group.first(), fact.kind == Kind::Alloc) else {
            return;
        };
        // Both have the same fields.
        let Some(event) = head.payload::<Alloc>().or_else(|| head.payload::<Free>().map(as_alloc))
        else {
            return;
        };
        let head = head.header();
        let storage = Id::storage(event.storage, head.flags, flags::STORAGE_NAMED);
        let tensor = Id::tensor(event.tensor, head.flags, flags::TENSOR_NAMED);
        if storage.given().is_none() {
            return self.told.leave_out(LeftOut::Storage);
        }
        let storage_id = if allocates {
            let given = self.id(storage);
            let (name, is_renamed) = self.storages.allocate(&event, storage, tensor, given);
            if is_renamed {
                self.told.renamed_storages.push(name.clone().into_owned());
            }
            name
        } else {
            match self.storages.free(&event, storage) {
                Some(name) => name,
                None => return self.told.leave_out(LeftOut::Free),
            }
        };
        let span_id = if fact.carried { Cow::Borrowed(Ids::ROOT) } else { self.span(fact) };
        if fact.carried {
            let (storages, bytes) = &mut self.told.carried;
            *storages = storages.saturating_add(1);
            *bytes = bytes.saturating_add(event.bytes);
        }
        let op_name = match (fact.carried, event.op) {
            (true, _) => Some(Cow::Borrowed("carried-in")),
            (false, NameId::NONE) => None,
            (false, op) => Some(self.name(op)),
        };
        let tensor_id = self.tensor_id(tensor, fact);
        // What was there before is there from the beginning.
        let timestamp_ns = if fact.carried { 0 } else { self.time.at(fact.first) };
        self.document.memory.push(trace::Memory {
            timestamp_ns,
            storage_id,
            tensor_id,
            span_id,
            op_name,
            device: Cow::Borrowed(self.texts.device(event.device)),
            bytes: event.bytes,
            action: if allocates { MemoryAction::Alloc } else { MemoryAction::Free },
            shape: dims_behind(fact).unwrap_or_default(),
            dtype: Cow::Borrowed(self.texts.dtype(event.dtype)),
            category: category(event.category),
        });
    }

    fn device_memory(&mut self, fact: &Fact<'d>) {
        let Some((head, sample)) = read::<DeviceMemory>(fact) else { return };
        if sample.device == DeviceCode::OTHER {
            return self.told.leave_out(LeftOut::OtherDevice);
        }
        let given = |flag, bytes| (head.flags & flag != 0).then_some(bytes);
        let four = [
            given(flags::MEMORY_USED, sample.used),
            given(flags::MEMORY_FREE, sample.free),
            given(flags::MEMORY_RESERVED, sample.reserved),
            given(flags::MEMORY_CAPACITY, sample.capacity),
        ];
        if four.iter().all(Option::is_none) {
            return self.told.leave_out(LeftOut::EmptySample);
        }
        let [used_bytes, free_bytes, reserved_bytes, capacity_bytes] = four;
        self.document.device_memory.push(trace::DeviceMemory {
            timestamp_ns: self.time.at(fact.first),
            device: Cow::Borrowed(self.texts.device(sample.device)),
            used_bytes,
            free_bytes,
            reserved_bytes,
            capacity_bytes,
        });
    }

    fn interval(&mut self, fact: &Fact<'d>) {
        let Some((head, interval)) = read::<DeviceInterval>(fact) else { return };
        if StampFault::of(interval.start, interval.end).is_some() {
            return self.told.leave_out(LeftOut::InvalidInterval);
        }
        // Several may have found no code: their times cannot be added up.
        if interval.device == DeviceCode::OTHER || interval.clock == ClockCode::OTHER {
            return self.told.leave_out(LeftOut::OtherClock);
        }
        let duration_ns = interval.end.saturating_sub(interval.start);
        if duration_ns == 0 {
            return self.told.leave_out(LeftOut::EmptyInterval);
        }
        let launched = self.low.get(&(interval.lane, interval.span)).copied();
        let node = launched.and_then(|id| self.tree.named((interval.lane, id)));
        let span_id = match node {
            Some(node) => Cow::Borrowed(self.ids.text(node)),
            None if interval.span == 0 && interval.lane != fact.lane => {
                // It was launched within no span of its lane, and is told of on another.
                let at = (fact.first, fact.first);
                let (node, _) = self.tree.place_untimed(interval.lane, None, at);
                Cow::Borrowed(self.ids.text(node))
            }
            None if interval.span == 0 => self.span_of_untimed(fact),
            None => {
                self.move_to(interval.lane, None, Node::Root);
                Cow::Borrowed(Ids::ROOT)
            }
        };
        let StreamId(stream) = interval.stream;
        let stream = Id { value: stream, named: head.flags & flags::STREAM_NAMED != 0 };
        let stream_id = self.id(stream);
        let (clock_id, backend) = self.texts.clock(interval.clock);
        self.document.device_intervals.push(trace::DeviceInterval {
            span_id,
            device: Cow::Borrowed(self.texts.device(interval.device)),
            stream_id,
            clock_id,
            backend,
            start_ns: interval.start,
            duration_ns,
        });
    }

    fn edge(&mut self, fact: &Fact<'d>) {
        let Some((head, edge)) = read::<Edge>(fact) else { return };
        match edge.kind {
            EdgeKind::CALL => self.call_edge(&edge),
            EdgeKind::DATA => {
                let end = |id, flag| Id { value: id, named: head.flags & flag != 0 };
                let from = end(edge.from, flags::EDGE_FROM_NAMED);
                let to = end(edge.to, flags::EDGE_TO_NAMED);
                let known = |id: &Id| self.tensors.contains(&(id.value, id.named));
                if !known(&from) || !known(&to) {
                    return self.told.leave_out(LeftOut::DataEdge);
                }
                let (from_tensor, to_tensor) = (self.id(from), self.id(to));
                self.document.edges.push(trace::Edge::Data(DataEdge { from_tensor, to_tensor }));
            }
            EdgeKind::STATIC => self.told.leave_out(LeftOut::StaticEdge),
            _ => self.told.leave_out(LeftOut::Unknown),
        }
    }

    /// An edge between spans says what the tree says, or nothing.
    fn call_edge(&mut self, edge: &Edge) {
        let from = self.tree.rows.find((edge.from_lane, SpanId(edge.from)));
        let to = self.tree.rows.find((edge.to_lane, SpanId(edge.to)));
        let (Some(from), Some(to)) = (from, to) else {
            return self.told.leave_out(LeftOut::CallEdge);
        };
        let child = self.tree.rows.get(to).filter(|row| row.ended);
        let is_parent = self.tree.parents.get(to) == Some(&Node::Span(from));
        let Some(child) = child.filter(|_| is_parent) else {
            return self.told.leave_out(LeftOut::CallEdge);
        };
        let host_duration_ns = self.time.between(child.first, child.last);
        self.document.edges.push(trace::Edge::Call(CallEdge {
            from_span: Cow::Borrowed(self.ids.text(Node::Span(from))),
            to_span: Cow::Borrowed(self.ids.text(Node::Span(to))),
            host_duration_ns,
        }));
    }
}

/// The id of a fact: its lane and position.
fn event_id(fact: &Fact<'_>) -> String {
    EventId::at(fact.lane, fact.position).text().to_owned()
}

fn read<P: tmrun_formats::wire::Payload>(
    fact: &Fact<'_>,
) -> Option<(tmrun_formats::wire::RecordHeader, P)> {
    let head = fact.group.first()?;
    Some((head.header(), head.payload::<P>()?))
}

/// The dimensions behind an operation or an allocation; `None` when nobody gave them.
fn dims_behind(fact: &Fact<'_>) -> Option<Vec<u64>> {
    let mut dims: Option<Vec<u64>> = None;
    for record in fact.group.iter().skip(1) {
        if let Some(shape) = record.payload::<Shape>() {
            let used = shape.used(record.header().flags);
            dims.get_or_insert_default().extend_from_slice(used);
        }
    }
    dims
}

const fn category(category: Category) -> MemoryCategory {
    match category {
        Category::PARAMETER => MemoryCategory::Parameter,
        Category::ACTIVATION => MemoryCategory::Activation,
        Category::GRADIENT => MemoryCategory::Gradient,
        Category::OPTIMIZER => MemoryCategory::Optimizer,
        _ => MemoryCategory::Other,
    }
}

const fn as_alloc(free: Free) -> Alloc {
    let Free { storage, tensor, bytes, op, dtype, device, category } = free;
    Alloc { storage, tensor, bytes, op, dtype, device, category }
}
