//! The difference for people: what is missing first, then what changed most.

use std::fmt::Write;

use tmrun::diff::{Diff, PathRow, PathSide, Pooled, SideRow, StatsRow, UnderGap, Which};

use super::super::text::{Table, duration, number, plain, plural};

pub(super) fn page(diff: &Diff<'_>) -> String {
    let mut out = String::new();
    side(&mut out, "A", &diff.a);
    side(&mut out, "B", &diff.b);
    if let Some(change) = diff.change_ns {
        let _ = writeln!(out, "B takes {} than A", longer(change));
    }
    spans(&mut out, diff);
    statistics(&mut out, diff);
    out
}

fn side(out: &mut String, name: &str, side: &SideRow<'_>) {
    let mut line = format!("{name}  {}", plain(side.input.path));
    if let Some(step) = side.input.step {
        let _ = write!(line, ", step {}", number(step));
    }
    match side.wall_ns {
        Some(ns) => {
            let _ = write!(line, ": {}", time(ns));
        }
        None => line.push_str(": no measured region that ended"),
    }
    let _ = write!(line, ", {}", plural(side.spans as u64, "span"));
    if !side.capture_complete {
        line.push_str("; FAILED, its times break off");
    }
    if !side.structurally_valid {
        line.push_str("; STRUCTURALLY INVALID, its times need not mean anything");
    }
    let _ = writeln!(out, "{line}");
    if let Some(without) = without_path(side) {
        let _ = writeln!(out, "   held against nothing: {without}");
    }
    const GAPS: usize = 3;
    let gaps = side.gaps.iter().flat_map(|gaps| &gaps.rows);
    for gap in gaps.take(GAPS) {
        let class = gap.class.name().replace('_', " ");
        let planes: Vec<_> = gap.planes.names().map(|name| name.replace('_', " ")).collect();
        let of = if planes.is_empty() { "anything".to_owned() } else { planes.join(", ") };
        let records = match gap.records {
            0 => String::new(),
            records => format!("{} of ", plural(records, "record")),
        };
        let _ = writeln!(out, "   missing in it: {records}{of} ({class}: {})", gap.reason_name());
    }
    let total = side.gaps.as_ref().map_or(0, |gaps| gaps.total);
    if let Some(more) = total.checked_sub(GAPS).filter(|&more| more > 0) {
        let _ = writeln!(out, "   … and {} more", plural(more as u64, "gap"));
    }
}

/// What of a side has no path, and is held against nothing.
pub(super) fn without_path(side: &SideRow<'_>) -> Option<String> {
    let (spans, operations) = (side.spans_without_path, side.operations_without_path);
    let counts = format!(
        "{} and {} without a path",
        plural(spans as u64, "span"),
        plural(operations as u64, "operation")
    );
    (spans > 0 || operations > 0).then_some(counts)
}

/// A path in one line, without its outermost names where it is long.
fn joined(path: &[&str]) -> String {
    const LONGEST: usize = 90;
    let mut shown = String::new();
    for (at, name) in path.iter().enumerate().rev() {
        let name = plain(name);
        if at.saturating_add(1) == path.len() {
            shown = name.into_owned();
        } else if shown.len().saturating_add(name.len()) > LONGEST {
            return format!("… / {shown}");
        } else {
            shown = format!("{name} / {shown}");
        }
    }
    if shown.is_empty() { "(root)".to_owned() } else { shown }
}

fn spans(out: &mut String, diff: &Diff<'_>) {
    let rows = &diff.spans.rows;
    if rows.rows.is_empty() {
        let _ = writeln!(out, "\nno span and no operation differs");
        return;
    }
    let mut table =
        Table::new(&["change", "own A", "own B", "count", "path", ""]).right(&[0, 1, 2, 3]);
    for PathRow { path, change_ns, a, b, only_in, under_gap, .. } in &rows.rows {
        let own =
            |side: &Option<PathSide>| side.map_or_else(|| "-".to_owned(), |side| time(side.own_ns));
        let count = |side: &Option<PathSide>| side.map_or(0, |side| side.count);
        let count = match (count(a), count(b)) {
            (a, b) if a == b => number(a),
            (a, b) => format!("{} > {}", number(a), number(b)),
        };
        let note = note(*only_in, under_gap.as_ref());
        table.row([signed(*change_ns), own(a), own(b), count, joined(path), note]);
    }
    out.push('\n');
    table.write(out);
    more(out, rows.total, rows.displayed);
}

fn statistics(out: &mut String, diff: &Diff<'_>) {
    let rows = &diff.statistics.rows;
    if rows.rows.is_empty() {
        return;
    }
    let heading =
        ["statistic", "rms A", "rms B", "times", "abs max A", "abs max B", "not finite", ""];
    let mut table = Table::new(&heading).right(&[1, 2, 3, 4, 5, 6]);
    for StatsRow { label, a, b, rms_ratio, only_in, under_gap } in &rows.rows {
        let of = |side: &Option<Pooled>, value: fn(&Pooled) -> f64| {
            side.as_ref().map_or_else(|| "-".to_owned(), |side| format!("{:.4e}", value(side)))
        };
        let odd = |side: &Option<Pooled>| side.as_ref().map_or(0, |side| side.non_finite);
        let odd = match (odd(a), odd(b)) {
            (a, b) if a == b => number(a),
            (a, b) => format!("{} > {}", number(a), number(b)),
        };
        table.row([
            plain(label).into_owned(),
            of(a, |side| side.rms),
            of(b, |side| side.rms),
            rms_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            of(a, |side| side.abs_max),
            of(b, |side| side.abs_max),
            odd,
            note(*only_in, under_gap.as_ref()),
        ]);
    }
    out.push('\n');
    table.write(out);
    more(out, rows.total, rows.displayed);
}

fn note(only_in: Option<Which>, under_gap: Option<&UnderGap>) -> String {
    let name = |side| match side {
        Which::A => "A",
        Which::B => "B",
    };
    match (only_in, under_gap) {
        (_, Some(gap)) => {
            format!(
                "under a gap of {} ({}, {})",
                name(gap.side),
                gap.class.replace('_', " "),
                gap.reason
            )
        }
        (Some(side), None) => format!("only in {}", name(side)),
        (None, None) => String::new(),
    }
}

fn more(out: &mut String, total: usize, displayed: usize) {
    if let Some(more) = total.checked_sub(displayed).filter(|&more| more > 0) {
        let _ = writeln!(out, "  … and {} more; --all has them", number(more as u64));
    }
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn time(ns: u64) -> String {
    duration(ns as f64)
}

fn signed(change: i64) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", time(change.unsigned_abs()))
}

fn longer(change: i64) -> String {
    let size = time(change.unsigned_abs());
    if change < 0 { format!("{size} less") } else { format!("{size} longer") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_paths_the_inner_names_are_shown() {
        assert_eq!(joined(&[]), "(root)");
        assert_eq!(joined(&["step", "forward"]), "step / forward");
        let outer = "x".repeat(80);
        assert_eq!(joined(&[&outer, "forward", "layer.1"]), "… / forward / layer.1");
        assert_eq!(joined(&["a\u{1b}b"]), "a\\u{1b}b");
    }

    #[test]
    fn changes_have_their_signs() {
        assert_eq!([signed(0), signed(1_500), signed(-1_500)], ["0.00 ns", "+1.50 us", "-1.50 us"]);
        assert_eq!(longer(-1_500), "1.50 us less");
    }
}
