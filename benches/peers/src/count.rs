//! Instructions of a span, on the thread that records it: this program again, under callgrind.

use tmrun_benches::Callgrind;

use crate::{Failure, spans};

/// The argument by which this program is told to repeat one of them.
pub const COUNT: &str = "count";

/// Repetitions: whole frames and traces of those that have such.
const CALLS: u64 = 4000;

/// Whose span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Ours,
    Puffin,
    Fastrace,
    Tracing,
    CandleGraph,
    OurLayer,
    TheirLayer,
    Zones,
    Spans,
    SpansByClient,
}

/// All of them, by the argument and the function that repeats them.
const ALL: [(Counted, &str, &str); 10] = [
    (Counted::Ours, "ours", "ours"),
    (Counted::Puffin, "puffin", "puffins"),
    (Counted::Fastrace, "fastrace", "fastraces"),
    (Counted::Tracing, "tracing", "tracings"),
    (Counted::CandleGraph, "candle-graph", "graphs"),
    (Counted::OurLayer, "our layer", "tracings"),
    (Counted::TheirLayer, "their layer", "tracings"),
    (Counted::Zones, "zones", "tracy_zone_loop"),
    (Counted::Spans, "tracy-client", "tracy_span_loop"),
    (Counted::SpansByClient, "tracy-client at hand", "tracy_client_span_loop"),
];

impl Counted {
    /// For one, the loop included; none where valgrind is missing.
    pub fn instructions(self) -> Option<f64> {
        let (_, argument, function) = ALL.iter().find(|(counted, ..)| *counted == self)?;
        match Callgrind::of(CALLS).count(function, &[COUNT, argument]) {
            Ok(count) => Some(count),
            Err(error) => {
                eprintln!("{argument}: {error}");
                None
            }
        }
    }
}

/// Repeats one of them, while it is recorded.
pub fn repeat(argument: &str, calls: u64) -> Result<(), Failure> {
    let Some((counted, ..)) = ALL.iter().find(|(_, known, _)| *known == argument) else {
        return Err(format!("{argument}: nothing of that name is counted").into());
    };
    let _drain = spans::start()?;
    match counted {
        Counted::Ours => spans::ours(calls),
        Counted::Puffin => {
            spans::start_puffin();
            spans::puffins(calls);
        }
        Counted::Fastrace => {
            spans::start_fastrace();
            spans::fastraces(calls);
        }
        Counted::Tracing => spans::tracings(calls),
        Counted::CandleGraph => {
            let dir = tempfile::tempdir_in(spans::memory_folder())?;
            spans::graphs(&spans::start_graph(dir.path())?, calls);
        }
        Counted::OurLayer => spans::through(&spans::our_layer(), calls),
        Counted::TheirLayer => spans::through(&spans::their_layer(), calls),
        Counted::Zones | Counted::Spans | Counted::SpansByClient => tracy(*counted, calls)?,
    }
    Ok(())
}

#[cfg(feature = "tracy")]
fn tracy(counted: Counted, calls: u64) -> Result<(), Failure> {
    let drained = crate::tracy::Drained::start()?;
    match counted {
        Counted::Zones => drained.zones(calls),
        Counted::Spans => drained.spans(calls),
        _ => drained.spans_by_client(calls),
    }
    Ok(())
}

#[cfg(not(feature = "tracy"))]
fn tracy(_: Counted, _: u64) -> Result<(), Failure> {
    Err("Tracy is not compiled in".into())
}
