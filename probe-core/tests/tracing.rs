//! Code that is instrumented with `tracing` and knows nothing of the probe, read back from the file.

mod support;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use support::read::{File, Rec, SCALAR, SPAN, TOO_DEEP};
use support::{Counting, Memory, finish, start};
use tmrun_formats::Level;
use tmrun_formats::wire::flags::{SPAN_DETACHED, SPAN_SEGMENT};
use tmrun_probe_core::{MAX_DEPTH, Target, TmrunLayer, detached, probe, scalar, span};
use tracing::subscriber::with_default;
use tracing::{Instrument, debug_span, info_span, trace_span};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

type Id = (u16, u64);

fn id_of(span: &Rec) -> Id {
    (span.u16_at(22), span.span_id())
}

fn parent_of(span: &Rec) -> Id {
    (span.u16_at(20), span.u64_at(8))
}

fn times(span: &Rec) -> (u64, u64) {
    (span.ticks, span.u64_at(0))
}

fn named(file: &File, name: &str) -> Vec<Rec> {
    file.of(SPAN).into_iter().filter(|span| file.name(span) == name).collect()
}

fn numbers(file: &File) -> Vec<(String, f64, u8)> {
    let scalars = file.of(SCALAR).into_iter();
    scalars.map(|record| (file.name(&record), record.f64_at(0), record.level)).collect()
}

/// Runs `f` under a layer over this probe.
fn traced<T: Target + Send + Sync + 'static, R>(target: T, f: impl FnOnce() -> R) -> R {
    with_default(registry().with(TmrunLayer::of(target)), f)
}

/// A small model, as others instrument theirs.
fn model(x: f64) -> f64 {
    let _span = info_span!("model", batch = 4, name = "text is not recorded").entered();
    (0..2_u64).fold(x, |x, index| {
        let _layer = debug_span!("layer", index, trained = true).entered();
        let x = attention(x);
        tracing::info!(name: "activation", absmax = x, heads = -2_i64, "a message");
        x
    })
}

fn attention(x: f64) -> f64 {
    let span = trace_span!("attention", late = tracing::field::Empty);
    span.in_scope(|| {
        span.record("late", x);
        tracing::warn!(x, "unnamed");
        x * 2.0
    })
}

#[test]
fn a_model_reports_its_spans_levels_and_numbers() {
    probe!(static PROBE: lanes = 1, slots = 256; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::NUMERICS);
    traced(PROBE, || {
        let _program = span!(PROBE, "program");
        assert_eq!(model(1.0), 4.0);
    });
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);

    let of = |name| named(&file, name);
    let (program, model) = (of("program")[0], of("model")[0]);
    let (layers, attentions) = (of("layer"), of("attention"));
    assert_eq!((layers.len(), attentions.len(), file.of(SPAN).len()), (2, 2, 6));
    assert_eq!(parent_of(&model), id_of(&program));
    for (layer, attention) in layers.iter().zip(&attentions) {
        assert_eq!((parent_of(layer), parent_of(attention)), (id_of(&model), id_of(layer)));
        assert_eq!([model, *layer, *attention].map(|span| span.level), [1, 2, 3]);
        assert_eq!([model, *layer, *attention].map(|span| span.u16_at(24)), [1, 2, 3]);
        assert_eq!([model, *layer, *attention].map(|span| span.flags), [0; 3]);
        assert!(model.ticks < layer.ticks && layer.ticks < attention.ticks);
        assert!(times(attention).1 < times(layer).1 && times(layer).1 < times(&model).1);
    }
    let layer = |index: f64, x: f64| {
        [
            ("layer.index", index, 2),
            ("layer.trained", 1.0, 2),
            ("attention.late", x, 3),
            ("tracing.x", x, 1),
            ("activation.absmax", 2.0 * x, 1),
            ("activation.heads", -2.0, 1),
        ]
    };
    let expected: Vec<_> = [("model.batch", 4.0, 1)]
        .into_iter()
        .chain(layer(0.0, 1.0))
        .chain(layer(1.0, 2.0))
        .collect();
    let found = numbers(&file);
    let found: Vec<_> = found.iter().map(|(name, x, level)| (name.as_str(), *x, *level)).collect();
    assert_eq!(found, expected);
    let inside: Vec<u32> = file.of(SCALAR).iter().map(|record| record.span).collect();
    let first = [model, layers[0], layers[0], attentions[0], attentions[0], layers[0], layers[0]];
    assert_eq!(inside[..7], first.map(|span| span.span), "each in its span");
}

#[test]
fn levels_follow_the_verbosity() {
    probe!(static PROBE: lanes = 1, slots = 256; clock = Counting);
    for (level, spans) in [(0, 0), (1, 1), (2, 3), (3, 5)] {
        let drain = start(*PROBE, Memory::default(), Level(level));
        traced(PROBE, || model(1.0));
        let (_, file) = finish(drain);
        assert_eq!(file.of(SPAN).len(), spans, "at level {level}");
        assert!(numbers(&file).iter().all(|(.., of)| *of <= level));
        let attention: Vec<Rec> = named(&file, "activation");
        assert!(attention.is_empty(), "an event is no span");
    }
    assert_eq!(PROBE.after_finish(), 0);
}

fn poll<F: Future>(mut future: Pin<Box<F>>) -> (Pin<Box<F>>, bool) {
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    (future, polled.is_ready())
}

/// Is ready at the third poll, and works a little at each.
struct Batch(u32);

impl Future for Batch {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let _decode = info_span!("decode").entered();
        self.0 += 1;
        tracing::info!(name: "poll", number = self.0);
        if self.0 == 3 { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn a_span_that_is_entered_again_is_a_detached_one_with_a_segment_for_each_time() {
    probe!(static PROBE: lanes = 2, slots = 256; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    traced(PROBE, || {
        let fetch = {
            let _spawner = info_span!("spawner").entered();
            Box::pin(Batch(0).instrument(info_span!("fetch", attempt = 1)))
        };
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let (fetch, _) = poll(fetch);
        let elsewhere = std::thread::spawn(move || {
            tracing::dispatcher::with_default(&dispatch, || poll(fetch).0)
        });
        let (fetch, ready) = poll(elsewhere.join().unwrap());
        assert!(ready);
        drop(fetch);
    });
    let (_, file) = finish(drain);

    let fetch = named(&file, "fetch");
    let (whole, mut segments): (Vec<Rec>, Vec<Rec>) =
        fetch.into_iter().partition(|span| span.flags == SPAN_DETACHED);
    segments.sort_by_key(|span| span.ticks);
    let [whole] = whole[..] else { panic!("one record of the span: {whole:?}") };
    // Three polls; and an instrumented future is dropped in its span.
    assert_eq!(segments.len(), 4);
    let lanes: Vec<u16> = segments.iter().map(|segment| segment.u16_at(22)).collect();
    assert_eq!(lanes, [0, 1, 0, 0]);
    assert_eq!(segments[0].lane, 1, "written by who entered it again, for the lane that it is of");
    for pair in segments.windows(2) {
        assert!(times(&pair[0]).1 < pair[1].ticks);
    }
    for segment in &segments {
        assert_eq!((segment.flags, parent_of(segment)), (SPAN_SEGMENT, id_of(&whole)));
        assert!(segment.ticks < times(segment).1);
    }
    assert_eq!(whole.ticks, segments[0].ticks);
    assert!(times(&whole).1 > times(&segments[3]).1, "until it is closed");
    let spawner = named(&file, "spawner")[0];
    assert_eq!(parent_of(&whole), id_of(&spawner), "though that was not open any more");
    let mut decode = named(&file, "decode");
    decode.sort_by_key(|span| span.ticks);
    assert_eq!(decode.len(), 3);
    for (decode, segment) in decode.iter().zip(&segments) {
        assert_eq!(parent_of(decode), id_of(segment));
    }
    let numbers: Vec<f64> = numbers(&file).iter().map(|number| number.1).collect();
    assert_eq!(numbers.len(), 4);
    let attempt = file.of(SCALAR).into_iter().find(|record| file.name(record) == "fetch.attempt");
    assert_eq!(attempt.unwrap().span, segments[0].span, "once, in the first segment");
}

#[test]
fn a_span_that_is_entered_once_is_one_record_of_its_lane_wherever_it_is_closed() {
    probe!(static PROBE: lanes = 2, slots = 256; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    traced(PROBE, || {
        let span = info_span!("here");
        span.in_scope(|| scalar!(PROBE, "inside", 1.0));
        let never = info_span!("never entered");
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let closing = std::thread::spawn(move || {
            tracing::dispatcher::with_default(&dispatch, || {
                let child = info_span!(parent: &span, "child");
                child.in_scope(|| ());
                drop((span, never));
            });
        });
        closing.join().unwrap();
    });
    let (_, file) = finish(drain);
    let here = named(&file, "here");
    assert_eq!((here.len(), here[0].flags, here[0].lane, here[0].u16_at(22)), (1, 0, 1, 0));
    assert_eq!(file.of(SCALAR)[0].span, here[0].span);
    let child = named(&file, "child")[0];
    assert_eq!((child.u16_at(22), parent_of(&child)), (1, id_of(&here[0])));
    assert!(times(&here[0]).1 < child.ticks, "as long as it was entered");
    assert!(named(&file, "never entered").is_empty());
}

#[test]
fn a_span_entered_within_itself_and_one_too_deep_leave_the_stack_as_it_was() {
    probe!(static PROBE: lanes = 1, slots = 512; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    traced(PROBE, || {
        let span = info_span!("recursive");
        span.in_scope(|| span.in_scope(|| drop(detached!(PROBE, "innermost"))));
        drop(span);
        let guards: Vec<_> = (0..MAX_DEPTH).map(|_| span!(PROBE, "deep")).collect();
        info_span!("too deep").in_scope(|| ());
        guards.into_iter().rev().for_each(drop);
        info_span!("behind").in_scope(|| ());
    });
    let (_, file) = finish(drain);
    let [inner, outer, whole] = named(&file, "recursive")[..] else { panic!("three records") };
    assert_eq!([inner, outer, whole].map(|s| s.flags), [SPAN_SEGMENT, SPAN_SEGMENT, SPAN_DETACHED]);
    assert!(outer.ticks < inner.ticks && times(&inner).1 < times(&outer).1);
    assert_eq!([inner, outer].map(|span| parent_of(&span)), [id_of(&whole); 2]);
    assert_eq!(parent_of(&named(&file, "innermost")[0]), id_of(&whole));
    assert_eq!(file.gaps().iter().filter(|gap| gap.reason == TOO_DEEP).count(), 1);
    assert!(named(&file, "too deep").is_empty());
    assert_eq!(parent_of(&named(&file, "behind")[0]), (0, 0));
}
