//! Step marks of one lane by time, among which those of other steps than one are found at once.

use tmrun_formats::Ticks;

/// Marks and the steps that they are of, by time.
#[derive(Debug, Default)]
pub(super) struct Timeline(Vec<Mark>);

#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Ticks,
    number: u64,
    /// Where the marks of the same step, one behind another, begin and end.
    run: (usize, usize),
}

impl FromIterator<(Ticks, u64)> for Timeline {
    fn from_iter<I: IntoIterator<Item = (Ticks, u64)>>(marks: I) -> Self {
        let mark = |(at, number)| Mark { at, number, run: (0, 0) };
        let mut all: Vec<_> = marks.into_iter().map(mark).collect();
        all.sort_by_key(|mark| mark.at);
        let mut begin = 0;
        for run in all.chunk_by_mut(|left, right| left.number == right.number) {
            let end = run.len().saturating_add(begin);
            run.iter_mut().for_each(|mark| mark.run = (begin, end));
            begin = end;
        }
        Self(all)
    }
}

impl Timeline {
    /// The last mark of another step until this moment.
    pub(super) fn last_other(&self, number: u64, until: Ticks) -> Option<Ticks> {
        let behind = self.0.partition_point(|mark| mark.at <= until);
        let last = self.0.get(behind.checked_sub(1)?)?;
        let other =
            if last.number == number { self.0.get(last.run.0.checked_sub(1)?)? } else { last };
        Some(other.at)
    }

    /// The first mark of another step from this moment on.
    pub(super) fn first_other(&self, number: u64, from: Ticks) -> Option<Ticks> {
        let first = self.0.get(self.0.partition_point(|mark| mark.at < from))?;
        let other = if first.number == number { self.0.get(first.run.1)? } else { first };
        Some(other.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_around_a_step_are_those_that_a_look_at_all_finds() {
        let numbers = [1, 1, 2, 1, 3, 3, 3, 1];
        let at = [0, 2, 2, 2, 5, 6, 6, 9].map(Ticks);
        let marks: Vec<_> = at.into_iter().zip(numbers).collect();
        let timeline: Timeline = marks.iter().copied().collect();
        for number in 0..4 {
            for at in (0..11).map(Ticks) {
                let others = || marks.iter().filter(|mark| mark.1 != number).map(|mark| mark.0);
                let last = others().filter(|&other| other <= at).max();
                assert_eq!(timeline.last_other(number, at), last, "{number} until {at:?}");
                let first = others().filter(|&other| other >= at).min();
                assert_eq!(timeline.first_other(number, at), first, "{number} from {at:?}");
            }
        }
        assert_eq!(Timeline::default().last_other(1, Ticks(5)), None);
    }
}
