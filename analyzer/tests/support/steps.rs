//! What is told of a step, by a recording and by its slice.
#![allow(dead_code, reason = "every test uses some of it")]

use tmrun::query::{Page, slow_steps};
use tmrun::scan::{Gap, Recording};
use tmrun::slice::{Region, RegionError, slice};
use tmrun::trace::Trace;
use tmrun_formats::trace::RunOutcome;
use tmrun_formats::wire::{Record, RecordHeader, Step};
use tmrun_formats::{LaneId, Phase};

/// A step as it is told.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub region: Region,
    /// Complete, or why not.
    pub outcome: String,
    pub gaps: Vec<Gap>,
    /// The planes that are not complete any more.
    pub refuted: Vec<&'static str>,
    /// The whole trace.
    pub text: String,
}

impl Told {
    /// The reasons of what is missing, with the lanes.
    pub fn missing(&self) -> Vec<(&'static str, Option<u16>)> {
        let of = |gap: &Gap| (gap.reason.name().unwrap_or_default(), gap.lane.map(|lane| lane.0));
        self.gaps.iter().map(of).collect()
    }
}

fn of(recording: &Recording<'_>, number: u64) -> Result<Told, RegionError> {
    let region = Region::of(recording, Some(number))?;
    let trace = Trace::of(recording, &region);
    let derived = trace.derive();
    let measured = derived.document.spans.iter().find(|span| span.measured).expect("the step");
    let page = Page { limit: 0, offset: 0, all: true };
    let ranked = slow_steps(page, recording).steps.rows;
    let ranked: Vec<_> = ranked.iter().filter(|row| row.step == number).collect();
    let ranked: Vec<_> = ranked.iter().map(|row| (row.lane, row.duration_ns)).collect();
    assert_eq!(ranked, [(region.lane.0, measured.duration_ns)], "slow-steps tells something else");
    let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
    let outcome = match derived.document.terminal.outcome {
        RunOutcome::Complete => "complete".to_owned(),
        RunOutcome::Failed => {
            derived.document.terminal.reason.clone().expect("a reason").into_owned()
        }
    };
    Ok(Told {
        outcome,
        gaps: derived.told.gaps.clone(),
        refuted: derived.told.refuted.iter().map(|refuted| refuted.plane).collect(),
        text: String::from_utf8(text).expect("text"),
        region,
    })
}

/// What is told of a step. Its slice tells the same, and is its own slice.
pub fn told(file: &[u8], number: u64) -> Told {
    let recording = Recording::open(file, "test").expect("a header");
    let told = of(&recording, number).expect("the step");
    let mut part = Vec::new();
    slice(&recording, &told.region, &mut part).expect("memory");
    let cut = Recording::open(&part, "slice").expect("a header");
    assert_eq!(cut.verify(), []);
    let of_slice = of(&cut, number).expect("the step");
    assert_eq!(of_slice, told, "a slice tells something else");
    let mut again = Vec::new();
    slice(&cut, &of_slice.region, &mut again).expect("memory");
    assert!(again == part, "the slice of a slice is another one");
    told
}

/// How often a step is there that is refused because of that.
pub fn repeated(file: &[u8], number: u64) -> u64 {
    let recording = Recording::open(file, "test").expect("a header");
    match Region::of(&recording, Some(number)) {
        Err(RegionError::Repeated { times, .. }) => times,
        other => panic!("{other:?}"),
    }
}

/// A step mark of this phase.
pub fn of_phase(mark: &Record, phase: Phase) -> Record {
    let step = mark.payload::<Step>().expect("a step mark");
    let header: RecordHeader = mark.header();
    Record::new(header, &Step { phase, ..step })
}

/// The lane of a region.
pub fn lane(told: &Told) -> u16 {
    let LaneId(lane) = told.region.lane;
    lane
}
