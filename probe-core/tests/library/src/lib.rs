//! A library that records on the probe of whatever program it is part of, and has one of its own.

use tmrun_probe_core::{
    AutoClock, Global, Level, ProbeRef, Range, Recorder, TensorFact, probe, scalar, span,
};

probe!(static OWN: lanes = 1, slots = 64, max_level = 0);
probe!(static LOUD: lanes = 1, slots = 64, max_level = 3);

/// Records one fact of each level on the program's probe, and returns which of them it evaluated.
pub fn layer() -> Vec<Level> {
    let mut evaluated = Vec::new();
    let _span = span!("library/layer", kind = MODULE);
    scalar!("library/loss", {
        evaluated.push(Level::PULSE);
        0.5
    });
    let node = Global.name("library/node");
    let mut fact = |level, record: &dyn Fn(Recorder<'_, AutoClock>)| {
        Global.at(level, |recorder| {
            evaluated.push(level);
            record(recorder);
        });
    };
    fact(Level::METADATA, &|recorder| recorder.tensor(node, &TensorFact::default()));
    fact(Level::NUMERICS, &|recorder| recorder.range(node, &Range::default()));
    evaluated
}

/// Uses the library's own probes, of which one has everything compiled out and one nothing.
pub fn own() {
    let _span = span!(OWN, "own/layer");
    let _loud = span!(LOUD, "loud/layer");
    scalar!(OWN, "own/loss", 0.5);
}

/// The library's own probe.
pub fn own_probe() -> ProbeRef<'static, AutoClock> {
    *OWN
}
