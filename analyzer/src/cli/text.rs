//! Text for people: aligned tables, readable numbers, and nothing that moves the cursor.

use std::borrow::Cow;
use std::fmt::Write;

use tmrun::escape::escaped;
pub(super) use tmrun::readable::{duration, number, plural};
use tmrun::source::Subject;

/// The longest text from a file that a line shows.
const LONGEST: usize = 120;

/// Text from a file, safe for a terminal: what would control it is escaped, and what is too long
/// for a line is cut.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    plain_up_to(text, LONGEST)
}

/// The same with another length, in characters.
pub(super) fn plain_up_to(text: &str, longest: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(longest) else { return escaped(text) };
    let shown = escaped(text.get(..end).unwrap_or_default());
    format!("{shown}… ({} bytes)", text.len()).into()
}

/// Of a text that is too long its beginning and its end, and how much is left out between them.
pub(super) fn ends(text: &str, longest: usize) -> Cow<'_, str> {
    let Some(left_out) = text.chars().count().checked_sub(longest).filter(|&n| n > 0) else {
        return text.into();
    };
    let half = longest / 2;
    let place = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let (first, last) = (place(half), place(half.saturating_add(left_out)));
    let [first, last] = [text.get(..first), text.get(last..)].map(Option::unwrap_or_default);
    format!("{first} … {} left out … {last}", plural(left_out as u64, "character")).into()
}

/// By how much a length of time changed.
pub(super) fn change(ns: f64) -> String {
    let sign = if ns < 0.0 { '-' } else { '+' };
    format!("{sign}{}", duration(ns.abs()))
}

/// Which step a subject is of, or which ones.
pub(super) fn steps(subject: &Subject<'_>) -> String {
    match subject.several_steps {
        Some((first, last)) => format!("steps {} to {}", number(first), number(last)),
        None => format!("step {}", number(subject.trace().run.capture_step)),
    }
}

/// A moment, in seconds since the first calibration.
pub(super) fn moment(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// A table whose columns are as wide as what is in them.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table with a heading.
    pub(super) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&text| text.to_owned()).collect()], right: vec![] }
    }

    /// The columns that are numbers, and end at the right.
    pub(super) fn right(mut self, columns: &[usize]) -> Self {
        self.right = columns.to_vec();
        self
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes it, every line indented by two.
    pub(super) fn write(&self, out: &mut String) {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            for (i, cell) in row.iter().enumerate() {
                let width = cell.chars().count();
                match widths.get_mut(i) {
                    Some(widest) => *widest = width.max(*widest),
                    None => widths.push(width),
                }
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match self.right.contains(&i) {
                    true => write!(line, "  {cell:>width$}"),
                    false => write!(line, "  {cell:<width$}"),
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_file_cannot_control_the_terminal() {
        assert_eq!(plain("encoder.layers.3"), "encoder.layers.3");
        assert_eq!(plain("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(plain("\u{202e}\u{2028}\u{feff}"), "\\u{202e}\\u{2028}\\u{feff}");
        assert!(plain(&"x".repeat(70_000)).len() < 200);
        assert_eq!(plain("é🙂"), "é🙂");
    }

    #[test]
    fn a_long_message_keeps_both_ends_and_says_what_is_left_out() {
        assert_eq!(ends("é🙂é🙂", 4), "é🙂é🙂");
        assert_eq!(ends("aé🙂é🙂b", 4), "aé … 2 characters left out … 🙂b");
        let long = format!("{}: no such file", "x".repeat(10_000));
        let shown = ends(&long, 100);
        assert!(shown.ends_with(": no such file") && shown.len() < 200, "{shown}");
    }

    #[test]
    fn numbers_are_readable() {
        let shown: Vec<_> = [0, 999, 1000, 1_234_567].map(number).into();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(duration(1_234.0), "1.23 us");
        assert_eq!(duration(2.5e9), "2.50 s");
        assert_eq!([-1_234.0, 0.0, 12.0].map(change), ["-1.23 us", "+0.00 ns", "+12.0 ns"]);
        assert_eq!(moment(1_500_000_123), "1.500000 s");
    }

    #[test]
    fn columns_align() {
        let mut table = Table::new(&["kind", "records"]).right(&[1]);
        table.row(["span".to_owned(), "1,000".to_owned()]);
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(out, "  kind  records\n  span    1,000\n");
    }
}
