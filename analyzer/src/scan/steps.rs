//! Which step is open on a lane, carried across chunks that are read in parallel.

use tmrun_formats::Phase;
use tmrun_formats::wire::{RecordHeader, Step, flags};
pub use tmrun_formats::wire::{StepMark, StepState};

/// What a run of records does to whatever step state it begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StepEffect {
    /// What there is before the first step begins here: what it does depends on the state before.
    leading: Leading,
    /// The state at the end, behind the first step that begins here.
    known: Option<StepState>,
    /// The number of the first step that begins here, and of the last.
    first: Option<(u64, Phase)>,
    last: Option<u64>,
    /// Steps that begin here behind the first.
    more: StepCounts,
}

/// Events in order. Most chunks have one or none, which takes no memory of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Leading {
    first: Option<Event>,
    rest: Vec<Event>,
}

impl Leading {
    fn push(&mut self, event: Event) {
        match self.first {
            None => self.first = Some(event),
            Some(_) => self.rest.push(event),
        }
    }

    fn last(&self) -> Option<&Event> {
        self.rest.last().or(self.first.as_ref())
    }

    fn iter(&self) -> impl Iterator<Item = &Event> {
        self.first.iter().chain(&self.rest)
    }
}

/// What changes a step state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Begin(StepMark),
    End(StepMark),
    /// Marks may be lost.
    Doubt,
}

impl Event {
    fn apply(&self, before: StepState) -> StepState {
        match *self {
            Self::Begin(mark) => before.behind_mark(mark, false),
            Self::End(mark) => before.behind_mark(mark, true),
            Self::Doubt => before.doubted(),
        }
    }
}

impl StepEffect {
    pub(super) fn mark(&mut self, header: &RecordHeader, step: &Step) {
        let mark = StepMark::of(header, step);
        if header.flags & flags::STEP_END != 0 {
            return self.push(Event::End(mark));
        }
        self.push(Event::Begin(mark));
        if header.flags & flags::STEP_RESUMED == 0 {
            self.begin(step.number, step.phase);
        }
    }

    pub(super) fn doubt(&mut self) {
        self.push(Event::Doubt);
    }

    fn push(&mut self, event: Event) {
        match (event, self.known) {
            (Event::Begin(mark), _) if mark.micro_batch.is_none() => {
                self.leading = Leading::default();
                self.known = Some(event.apply(StepState::START));
            }
            (_, Some(known)) => self.known = Some(event.apply(known)),
            (Event::Doubt, None) if self.leading.last() == Some(&Event::Doubt) => {}
            (_, None) => self.leading.push(event),
        }
    }

    fn begin(&mut self, number: u64, phase: Phase) {
        match self.last {
            None => self.first = Some((number, phase)),
            Some(last) if last != number => self.more.add(phase),
            Some(_) => {}
        }
        self.last = Some(number);
    }

    pub(super) fn apply(&self, before: StepState) -> StepState {
        let leading = || self.leading.iter().fold(before, |state, event| event.apply(state));
        self.known.unwrap_or_else(leading)
    }
}

/// How many steps began on a lane. Micro-batches of one step count as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// All steps.
    pub steps: u64,
    /// Those that say that they train. A step that says nothing has the run's phase.
    pub train: u64,
    /// Those that say that they infer.
    pub infer: u64,
}

impl StepCounts {
    fn add(&mut self, phase: Phase) {
        self.steps = self.steps.saturating_add(1);
        match phase {
            Phase::TRAIN => self.train = self.train.saturating_add(1),
            Phase::INFER => self.infer = self.infer.saturating_add(1),
            _ => {}
        }
    }
}

/// The steps of one lane, chunk by chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneSteps {
    /// How many began.
    pub counts: StepCounts,
    /// Number of the first.
    pub first: Option<u64>,
    /// Number of the last.
    pub last: Option<u64>,
}

impl LaneSteps {
    pub(super) fn extend(&mut self, effect: &StepEffect) {
        let Some((number, phase)) = effect.first else { return };
        if self.last != Some(number) {
            self.counts.add(phase);
        }
        let (sum, more) = (&mut self.counts, effect.more);
        sum.steps = sum.steps.saturating_add(more.steps);
        sum.train = sum.train.saturating_add(more.train);
        sum.infer = sum.infer.saturating_add(more.infer);
        self.first = self.first.or(Some(number));
        self.last = effect.last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmrun_formats::Level;

    fn mark(number: u64, micro_batch: Option<u32>, end: bool) -> (RecordHeader, Step) {
        let mut header = RecordHeader::of::<Step>(Level::PULSE);
        header.flags |= if end { flags::STEP_END } else { 0 };
        header.flags |= if micro_batch.is_some() { flags::STEP_MICRO_BATCH } else { 0 };
        let micro_batch = micro_batch.unwrap_or_default();
        (header, Step { number, micro_batch, phase: Phase::TRAIN })
    }

    /// Two steps of two micro-batches, one micro-batch without a step around it, and steps that
    /// overlap.
    fn marks() -> Vec<(RecordHeader, Step)> {
        let mut marks = Vec::new();
        for number in [1, 2] {
            marks.push(mark(number, None, false));
            for micro_batch in [0, 1] {
                marks.push(mark(number, Some(micro_batch), false));
                marks.push(mark(number, Some(micro_batch), true));
            }
            marks.push(mark(number, None, true));
        }
        marks.extend([mark(3, Some(0), false), mark(3, Some(0), true)]);
        // Assigned over: the next begins before the last ends.
        marks.extend([mark(4, None, false), mark(5, None, false)]);
        marks.extend([mark(4, None, true), mark(5, None, true)]);
        // Interrupted: the outer one goes on behind the inner one.
        let (mut resumed, outer) = mark(6, None, false);
        marks.extend([(resumed, outer), mark(7, None, false), mark(7, None, true)]);
        resumed.flags |= flags::STEP_RESUMED;
        marks.extend([(resumed, outer), mark(6, None, true)]);
        marks
    }

    /// The states before and behind each of the marks; marks are lost before `lost`.
    fn states(marks: &[(RecordHeader, Step)], lost: Option<usize>) -> Vec<StepState> {
        let mut states = vec![StepState::START];
        for (at, (header, step)) in marks.iter().enumerate() {
            let state = states[at];
            let state = if lost == Some(at) { state.doubted() } else { state };
            states.push(state.after(header, step));
        }
        states
    }

    #[test]
    fn wherever_a_chunk_ends_the_state_is_the_same() {
        let whole = marks();
        // All of them, and every one of them lost in turn.
        for lost in [None].into_iter().chain((0..whole.len()).map(Some)) {
            let mut marks = whole.clone();
            if let Some(lost) = lost {
                marks.remove(lost);
            }
            let states = states(&marks, lost);
            for from in 0..marks.len() {
                for to in from..=marks.len() {
                    let mut effect = StepEffect::default();
                    for (at, (header, step)) in marks[..to].iter().enumerate().skip(from) {
                        if lost == Some(at) {
                            effect.doubt();
                        }
                        effect.mark(header, step);
                    }
                    let state = effect.apply(states[from]);
                    assert_eq!(state, states[to], "marks {from}..{to}, {lost:?} is lost");
                }
            }
        }
    }

    #[test]
    fn micro_batches_open_in_their_step_and_count_once() {
        let state = |n: usize| {
            marks()[..n].iter().fold(StepState::START, |state, (h, s)| state.after(h, s)).open
        };
        assert_eq!(state(2).and_then(|open| open.micro_batch), Some(0));
        assert_eq!(state(3).map(|open| (open.number, open.micro_batch)), Some((1, None)));
        assert_eq!(state(6), None, "the step has ended");
        assert_eq!(state(14), None, "nothing was around the last micro-batch");
        let mut lane = LaneSteps::default();
        for (header, step) in &marks() {
            let mut effect = StepEffect::default();
            effect.mark(header, step);
            lane.extend(&effect);
        }
        assert_eq!((lane.counts.steps, lane.counts.train), (7, 7));
        assert_eq!((lane.first, lane.last), (Some(1), Some(7)));
    }

    #[test]
    fn the_end_of_a_step_closes_that_step_alone() {
        let open = |n: usize| {
            let state = StepState::START;
            marks()[..n]
                .iter()
                .fold(state, |state, (h, s)| state.after(h, s))
                .open
                .map(|o| o.number)
        };
        assert_eq!((open(16), open(17), open(18)), (Some(5), Some(5), None));
        assert_eq!((open(20), open(21), open(22), open(23)), (Some(7), None, Some(6), None));
    }

    #[test]
    fn doubt_lasts_until_a_mark_says_which_step_is_open() {
        let after = |state: StepState, (header, step): (RecordHeader, Step)| {
            let mut effect = StepEffect::default();
            effect.doubt();
            effect.mark(&header, &step);
            let behind = state.doubted().after(&header, &step);
            assert_eq!(effect.apply(state), behind);
            (behind.open.map(|open| open.number), behind.sure)
        };
        let (header, step) = mark(4, None, false);
        let open = StepState::START.after(&header, &step);
        assert!(open.sure && !open.doubted().sure);
        assert_eq!(after(open, mark(5, None, false)), (Some(5), true));
        assert_eq!(after(open, mark(4, None, true)), (None, true));
        assert_eq!(after(open, mark(4, Some(0), true)), (Some(4), true));
        // The end of step 4 is lost, and so is the beginning of step 5.
        assert_eq!(after(open, mark(5, None, true)), (Some(4), false));
        assert_eq!(after(open, mark(5, Some(0), true)), (None, false));
        assert_eq!(after(StepState::START, mark(4, None, true)), (None, false));
    }
}
