//! What recording costs a step that works, and what it costs when nobody drains.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tmrun_benches::{Case, Row, Table, measure, on_core, pin};
use tmrun_formats::Level;
use tmrun_probe_core::{Drain, Flush, probe, scalar, span};

use crate::Failure;
use crate::recording::{Nowhere, header};

const SLOTS: u64 = 1 << 14;
const ROUNDS: usize = 101;
/// Layers of a step, in each of which there is a span and a scalar.
const LAYERS: usize = 100;
/// In a round; their records fit the ring, however late the drain comes.
const STEPS: u64 = 40;
const _: () = assert!(STEPS * 2 * (LAYERS as u64 + 1) < SLOTS);

probe!(static DRAINED: lanes = 1, slots = 1 << 14);
probe!(static UNDRAINED: lanes = 1, slots = 1 << 14);

/// Activations of a layer, and what they are multiplied by: as much as the innermost cache holds.
struct Layer {
    values: [f32; 4096],
    weights: [f32; 4096],
}

impl Layer {
    /// About a microsecond of arithmetic.
    #[inline(never)]
    fn forward(&mut self) -> f32 {
        for _ in 0..3 {
            for (value, weight) in self.values.iter_mut().zip(&self.weights) {
                *value = *value * weight + 0.5;
            }
        }
        self.values[0]
    }
}

/// Defines a function that makes so many steps.
macro_rules! steps {
    ($name:ident, |$loss:ident| $span:expr, $scalar:expr) => {
        #[inline(never)]
        fn $name(steps: u64, layer: &mut Layer) {
            for _ in 0..steps {
                for _ in 0..LAYERS {
                    let _span = $span;
                    let $loss = f64::from(black_box(&mut *layer).forward());
                    $scalar;
                }
            }
        }
    };
}

steps!(bare, |loss| (), black_box(loss));
steps!(drained, |loss| span!(DRAINED, "layer"), scalar!(DRAINED, "loss", loss));
steps!(undrained, |loss| span!(UNDRAINED, "layer"), scalar!(UNDRAINED, "loss", loss));

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    on_core(0, || training(table))
}

fn training(table: &mut Table) -> Result<(), Failure> {
    let start = |probe| {
        let drain = Drain::start(probe, Nowhere, &header(), &[], Level::MAX);
        drain.map_err(|_| Failure::from("the probe is being recorded"))
    };
    let (mut drain, stopped) = (start(*DRAINED)?, start(*UNDRAINED)?);
    // Full from the start.
    (0..SLOTS).for_each(|_| scalar!(UNDRAINED, "loss", 0.0));
    let layer = RefCell::new(Layer { values: [0.1; 4096], weights: [0.5; 4096] });
    let case = |name, run: fn(u64, &mut Layer)| {
        let layer = &layer;
        Case::new(name, move |steps| run(steps, &mut layer.borrow_mut()))
    };
    let end = AtomicBool::new(false);
    let ([bare, drained, undrained], summary) = std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            pin(1);
            while !end.load(Ordering::Acquire) {
                let Ok(_) = drain.poll(Flush::All);
                std::thread::sleep(Duration::from_micros(50));
            }
            drain.finish(&[]).0
        });
        let cases = [
            case("nothing recorded", bare),
            case("drained", drained),
            case("drain stopped", undrained),
        ];
        let costs = measure(cases, ROUNDS, STEPS);
        end.store(true, Ordering::Release);
        (costs, consumer.join())
    });
    let summary = summary.map_err(|_| "the drain's thread panicked")?;
    let dropped = stopped.finish(&[]).0.dropped;
    if dropped != (ROUNDS as u64 + 1) * STEPS * 2 * LAYERS as u64 {
        return Err(format!("{dropped} records were dropped behind a full ring").into());
    }

    let name = "a training step of 100 spans and 100 scalars, recorded";
    if summary.dropped > 0 {
        table.miss(name, format!("{} records were dropped", summary.dropped));
        return Ok(());
    }
    table.push(Row::cost(name, drained, "nothing recorded", bare));
    let name = "the same step, the drain stopped: all is dropped";
    let row = Row::cost(name, undrained, "the drain at work", drained);
    table.push(Row { reach: Some(1.02), ..row });
    Ok(())
}
