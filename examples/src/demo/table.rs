//! Columns that line up.

use std::fmt;

/// A table: the first column stands left, the others as their heading does.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<Heading>,
    rows: Vec<Vec<String>>,
}

/// A column's heading, and on which side the column stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heading {
    /// Words.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

impl Heading {
    const fn text(self) -> &'static str {
        match self {
            Self::Left(text) | Self::Right(text) => text,
        }
    }
}

impl Table {
    pub(crate) fn new(headings: impl Into<Vec<Heading>>) -> Self {
        Self { headings: headings.into(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let heading = self.headings.get(column).map_or("", |heading| heading.text());
        cells
            .map(String::as_str)
            .chain([heading])
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    }
}

impl fmt::Display for Table {
    /// Two blanks before every column, none at the end of a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> =
            (0..self.headings.len()).map(|column| self.width(column)).collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for ((cell, heading), &width) in cells.zip(&self.headings).zip(&widths) {
                text += &match heading {
                    Heading::Left(_) => format!("  {cell:<width$}"),
                    Heading::Right(_) => format!("  {cell:>width$}"),
                };
            }
            writeln!(f, "{}", text.trim_end())
        };
        line(&mut self.headings.iter().map(|heading| heading.text()))?;
        self.rows.iter().try_for_each(|row| line(&mut row.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([Heading::Left("layer"), Heading::Right("calls")]);
        table.row(["head".to_owned(), "1".to_owned()]);
        table.row(["blocks.0".to_owned(), "123456".to_owned()]);
        assert_eq!(
            table.to_string(),
            "  layer      calls\n  head           1\n  blocks.0  123456\n"
        );
    }
}
