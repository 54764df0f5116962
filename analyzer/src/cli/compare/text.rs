//! The comparison for people: the verdict, what speaks against it, the times, what else moved.

use std::fmt::Write;

use tmrun_formats::comparison::{Comparison, ComparisonVerdict, SampleStatistics};

use super::super::text::{Table, change, duration, number, plain, plain_up_to, plural};

/// The most rows of one table; `--json` has all.
const ROWS: usize = 12;
/// A reason is shown whole: it ends with what is to be mended.
const LONGEST_REASON: usize = 2000;

pub(super) fn page(comparison: &Comparison<'_>) -> String {
    let mut out = format!("verdict   {}\n", verdict(comparison));
    reasons(&mut out, comparison);
    times(&mut out, comparison);
    tensors(&mut out, comparison);
    out
}

fn verdict(comparison: &Comparison<'_>) -> String {
    let what = match comparison.verdict {
        ComparisonVerdict::Ineligible => {
            let reasons = plural(comparison.reasons.len() as u64, "reason");
            return format!("NOT COMPARABLE; {reasons}");
        }
        ComparisonVerdict::Inconclusive => "inconclusive",
        ComparisonVerdict::CandidateFaster => "the candidate is faster",
        ComparisonVerdict::CandidateSlower => "the candidate is slower",
    };
    let how = if comparison.paired { "pair by pair" } else { "cohort by cohort" };
    format!("{what}, {how}")
}

fn reasons(out: &mut String, comparison: &Comparison<'_>) {
    for reason in comparison.reasons.iter().take(ROWS) {
        let because = plain_up_to(&reason.message, LONGEST_REASON);
        let _ = write!(out, "\n  {}\n    {because}\n", reason.code);
    }
    more(out, comparison.reasons.len(), "reason");
}

fn times(out: &mut String, comparison: &Comparison<'_>) {
    let mut table =
        Table::new(&["", "implementation", "runs", "median", "p95", "MAD"]).right(&[2, 3, 4, 5]);
    for (name, implementation, stats) in [
        ("baseline", &comparison.baseline_implementation_id, &comparison.baseline),
        ("candidate", &comparison.candidate_implementation_id, &comparison.candidate),
    ] {
        let SampleStatistics { samples_ns, median_ns, p95_ns, mad_ns } = stats;
        table.row([
            name.to_owned(),
            implementation.as_deref().map_or_else(String::new, |id| plain(id).into_owned()),
            number(samples_ns.len() as u64),
            duration(*median_ns),
            duration(*p95_ns),
            duration(*mad_ns),
        ]);
    }
    out.push('\n');
    table.write(out);
    let percent = comparison.median_delta_percent;
    let percent = percent.map_or_else(String::new, |percent| format!(" ({percent:+.2} %)"));
    let _ = writeln!(out, "\n  difference  {}{percent}", change(comparison.median_delta_ns));
    if let Some(interval) = &comparison.confidence_interval {
        let (lower, upper) = (change(interval.lower_delta_ns), change(interval.upper_delta_ns));
        let _ = writeln!(out, "  with {:.0} %   {lower} to {upper}", interval.level * 100.0);
    }
}

fn tensors(out: &mut String, comparison: &Comparison<'_>) {
    let stats = &comparison.tensor_stats;
    if !stats.matched.is_empty() {
        let mut table =
            Table::new(&["statistics of", "rms before", "after", "ratio", "not finite", "runs"])
                .right(&[1, 2, 3, 4, 5]);
        for row in stats.matched.iter().take(ROWS) {
            table.row([
                plain(&row.label).into_owned(),
                format!("{:.4e}", row.rms_a),
                format!("{:.4e}", row.rms_b),
                row.rms_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.4}")),
                format!("{} / {}", number(row.non_finite_a), number(row.non_finite_b)),
                format!("{} / {}", number(row.runs_a), number(row.runs_b)),
            ]);
        }
        out.push('\n');
        table.write(out);
        more(out, stats.matched.len(), "label");
    }
    for (whose, labels) in [("baseline", &stats.unmatched_a), ("candidate", &stats.unmatched_b)] {
        if let Some(first) = labels.first() {
            let (count, first) = (plural(labels.len() as u64, "label"), plain(first));
            let _ = writeln!(out, "\n  {count} of the {whose} alone, the first one {first}");
        }
    }
}

fn more(out: &mut String, all: usize, noun: &str) {
    if let Some(more @ 1..) = all.checked_sub(ROWS) {
        let _ = writeln!(out, "  and {}", plural(more as u64, &format!("more {noun}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmrun::comparison::{compare, unverified};

    #[test]
    fn a_refused_comparison_says_so_first_and_why() {
        let page = page(&compare(&[], &[], unverified()));
        assert!(page.starts_with("verdict   NOT COMPARABLE; 6 reasons\n"), "{page}");
        for said in ["unverified_inputs", "no_runs", "implementation_id_missing", "difference"] {
            assert!(page.contains(said), "{said} in\n{page}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut out = String::new();
        more(&mut out, ROWS, "label");
        assert_eq!(out, "");
        more(&mut out, ROWS + 2, "label");
        assert_eq!(out, "  and 2 more labels\n");
    }
}
