//! Spans and steps: parents, depths, order, and what is open at the end.

mod support;

use std::collections::BTreeMap;

use support::read::{File, Rec, SCALAR, SPAN, STEP, TOO_DEEP};
use support::{Counting, Memory, finish, start};
use tmrun_formats::wire::{Frame, OpenSpanV1, flags};
use tmrun_formats::{ExecutionStep, Level, Phase, Planes, SpanKind};
use tmrun_probe_core::{
    AutoClock, MAX_DEPTH, Probe, SpanGuard, Target, measured, probe, scalar, span,
};

type Small = Probe<Counting, 2, 1024, 64>;

fn by_name(file: &File) -> BTreeMap<String, Rec> {
    file.of(SPAN).iter().map(|span| (file.name(span), *span)).collect()
}

fn open_spans(file: &File) -> Vec<OpenSpanV1> {
    let open = file.frames().into_iter().filter_map(|frame| match frame {
        Frame::OpenSpan(open) => Some(open),
        _ => None,
    });
    open.collect()
}

fn parent(span: &Rec) -> u64 {
    span.u64_at(8)
}

fn depth(span: &Rec) -> u16 {
    span.u16_at(24)
}

#[test]
fn nested_spans_know_their_parents_depths_times_and_parts() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let node = PROBE.view().name("encoder.layers.3");
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    {
        let _outer = measured!(lane, "update");
        {
            let forward = span!(lane, "forward", step = FORWARD);
            assert_ne!(forward.id().0, 0);
            let _layer = span!(lane, node, kind = MODULE);
            scalar!(lane, "inside", 1.0);
        }
        let _backward = span!(lane, "backward", kind = FUNCTION, step = BACKWARD);
    }
    let (_, file) = finish(drain);
    let spans = by_name(&file);
    let (update, forward) = (spans["update"], spans["forward"]);
    let (layer, backward) = (spans["encoder.layers.3"], spans["backward"]);
    assert_eq!([update, forward, layer, backward].map(|s| depth(&s)), [0, 1, 2, 1]);
    assert_eq!(parent(&update), 0);
    assert_eq!([forward, backward].map(|s| parent(&s)), [update.span_id(); 2]);
    assert_eq!(parent(&layer), forward.span_id());
    for span in [update, forward, layer, backward] {
        assert!(span.ticks < span.u64_at(0), "it ends behind its start");
        assert_eq!([span.u16_at(20), span.u16_at(22)], [0, 0], "on lane 0");
    }
    assert!(update.ticks < forward.ticks && forward.ticks < layer.ticks);
    assert!(layer.u64_at(0) < forward.u64_at(0) && forward.u64_at(0) < backward.ticks);
    assert_eq!([update.flags, forward.flags], [flags::SPAN_MEASURED, 0]);
    assert_eq!([update.level, forward.level], [0, 1]);
    let part = |span: &Rec| (ExecutionStep(span.payload[26]), SpanKind(span.payload[27]));
    assert_eq!(part(&forward), (ExecutionStep::FORWARD, SpanKind::FUNCTION));
    assert_eq!(part(&layer), (ExecutionStep(0), SpanKind::MODULE));
    assert_eq!(part(&backward), (ExecutionStep::BACKWARD, SpanKind::FUNCTION));
    assert_eq!(file.of(SCALAR)[0].span, layer.span, "a record is in the innermost span");
    assert!(open_spans(&file).is_empty());
}

#[test]
fn guards_dropped_out_of_order_leave_the_stack_as_it_should_be() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    let outer = span!(lane, "outer");
    let first = span!(lane, "first");
    let second = span!(lane, "second");
    let third = span!(lane, "third");
    drop(first);
    drop(second);
    drop(span!(lane, "in third"));
    drop(third);
    drop(span!(lane, "in outer"));
    drop(outer);
    drop(span!(lane, "in nothing"));
    let (_, file) = finish(drain);
    let spans = by_name(&file);
    assert_eq!(spans.len(), 7);
    let id = |name: &str| spans[name].span_id();
    let expected = [
        ("first", id("outer")),
        ("second", id("first")),
        ("third", id("second")),
        ("in third", id("third")),
        ("in outer", id("outer")),
        ("in nothing", 0),
    ];
    for (name, around) in expected {
        assert_eq!(parent(&spans[name]), around, "around {name}");
    }
    assert_eq!(file.totals(0).unwrap().out_of_order, 2);
    assert!(open_spans(&file).is_empty());
}

#[test]
fn a_leaked_guard_is_an_open_span_and_keeps_its_lane() {
    static PROBE: Small = Small::new();
    let view = PROBE.view();
    let lane = view.claim("a").unwrap();
    let drain = start(view, Memory::default(), Level::TIMING);
    let outer = span!(lane, "outer");
    let leaked = span!(lane, "leaked");
    let id = leaked.id();
    std::mem::forget(leaked);
    drop(outer);
    drop(span!(lane, "later"));
    drop(lane);
    let other = view.claim("b").unwrap();
    drop(span!(other, "elsewhere"));
    assert!(view.claim("c").is_err(), "the lane of the leaked guard is not given to another");
    let (_, file) = finish(drain);
    let spans = by_name(&file);
    let open = open_spans(&file);
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].span, open[0].lane.0, open[0].depth), (id, 0, 1));
    assert_eq!(open[0].parent.0, spans["outer"].span_id());
    assert_eq!(file.names()[&open[0].name.0].text, "leaked");
    assert_eq!(parent(&spans["later"]), id.0);
    assert_eq!(spans["elsewhere"].lane, 1);
}

#[test]
fn spans_open_at_the_end_are_in_the_file_and_end_behind_it() {
    static PROBE: Small = Small::new();
    let view = PROBE.view();
    let lane = view.claim("a").unwrap();
    let drain = start(view, Memory::default(), Level::TIMING);
    let outer = span!(lane, "outer");
    let inner = span!(lane, "inner");
    let (_, file) = finish(drain);
    let open: Vec<_> = open_spans(&file).iter().map(|open| (open.span, open.depth)).collect();
    assert_eq!(open, [(outer.id(), 0), (inner.id(), 1)]);
    drop(inner);
    assert_eq!(view.after_finish(), 1, "its record came after the end");
    let drain = start(view, Memory::default(), Level::TIMING);
    let (outer_id, number) = (outer.id(), outer.id().0);
    drop(outer);
    let (_, file) = finish(drain);
    assert_eq!(by_name(&file)["outer"].span_id(), number);
    assert_ne!(outer_id.0, 0);
    assert_eq!(view.after_finish(), 1);
}

#[test]
fn spans_deeper_than_the_stack_are_gaps_of_one_each() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    let guards: Vec<_> = (0..MAX_DEPTH).map(|_| span!(lane, "deep")).collect();
    for _ in 0..3 {
        let too_deep = span!(lane, "too deep");
        assert_eq!(too_deep.id().0, 0);
    }
    scalar!(lane, "inside", 1.0);
    guards.into_iter().rev().for_each(drop);
    let (_, file) = finish(drain);
    assert_eq!(file.of(SPAN).len(), MAX_DEPTH);
    let gaps = file.gaps();
    assert_eq!(gaps.len(), 3);
    for gap in gaps {
        assert_eq!((gap.reason, gap.records, gap.groups), (TOO_DEEP, 1, 1));
        assert_eq!((gap.lane, Planes(gap.planes)), (0, Planes::HOST_TIME));
    }
    let deepest = file.of(SPAN)[0];
    assert_eq!(usize::from(depth(&deepest)), MAX_DEPTH - 1);
    assert_eq!(file.of(SCALAR)[0].span, deepest.span);
    assert_eq!(file.name(&file.of(support::read::GAP)[0]), "too deep");
}

#[test]
fn steps_have_phase_and_micro_batches_and_mark_their_lane_alone() {
    static PROBE: Small = Small::new();
    let lanes = [PROBE.view().claim("a").unwrap(), PROBE.view().claim("b").unwrap()];
    let drain = start(PROBE.view(), Memory::default(), Level::PULSE);
    {
        let step = lanes[0].step_as(7, Phase::INFER);
        assert_eq!((step.number(), lanes[0].recorder().open_step()), (7, 7));
        assert_eq!(lanes[1].recorder().open_step(), 0);
        for batch in 0..2 {
            let _batch = step.micro_batch(batch);
        }
        let _joined = lanes[1].enter_step(7);
    }
    assert_eq!(lanes[0].recorder().open_step(), 0);
    let (_, file) = finish(drain);
    let marks: Vec<_> = file
        .of(STEP)
        .iter()
        .map(|r| (r.lane, r.u64_at(0), r.u32_at(8), Phase(r.payload[12]), r.flags))
        .collect();
    let (end, batch) = (flags::STEP_END, flags::STEP_MICRO_BATCH);
    let phase = Phase::INFER;
    let expected = [
        (0, 7, 0, phase, 0),
        (0, 7, 0, phase, batch),
        (0, 7, 0, phase, batch | end),
        (0, 7, 1, phase, batch),
        (0, 7, 1, phase, batch | end),
        (0, 7, 0, phase, end),
        (1, 7, 0, Phase::default(), 0),
        (1, 7, 0, Phase::default(), end),
    ];
    assert_eq!(marks, expected);
}

#[test]
fn a_step_assigned_over_leaves_the_lane_in_the_new_one() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let drain = start(PROBE.view(), Memory::default(), Level::PULSE);
    let mut _step = lane.step(1);
    for number in 2..5 {
        _step = lane.step(number);
        assert_eq!(lane.recorder().open_step(), number);
    }
    drop(_step);
    assert_eq!(lane.recorder().open_step(), 0);
    let _outer = lane.step(10);
    drop(lane.step(11));
    assert_eq!(lane.recorder().open_step(), 10);
    drop(finish(drain));
}

#[test]
fn a_guard_is_as_safe_to_unwind_through_as_to_drop_and_lives_as_short_as_one_likes() {
    const fn unwind_safe<T: std::panic::UnwindSafe>() {}
    unwind_safe::<SpanGuard<'static, AutoClock>>();
    const fn shorter<'a>(
        guard: SpanGuard<'static, AutoClock>,
        _: &'a u8,
    ) -> SpanGuard<'a, AutoClock> {
        guard
    }
    probe!(static PROBE: lanes = 1, slots = 64);
    drop(shorter(span!(PROBE, "nothing is recording"), &0));
}
