//! One table of `nsys stats`, by the names of its columns.

use csv::{Reader, ReaderBuilder, StringRecord};

/// Why a table is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// It is no CSV of UTF-8.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A column that there must be.
    #[error("no column {}: expected one of these names", names.join(" or "))]
    NoColumn {
        /// Its names.
        names: &'static [&'static str],
    },
    /// Something else where there must be a number.
    #[error("line {line}: {column} is {found:?}: expected a number from 0 to 18446744073709551615")]
    Number {
        /// Where.
        line: u64,
        /// The column's first name.
        column: &'static str,
        /// What is there; nothing where the cell is empty or missing.
        found: String,
    },
    /// Something that took no time.
    #[error("line {line}: {column} of {name:?} is 0: expected it to have taken time")]
    NoTime {
        /// Where.
        line: u64,
        /// The column's first name.
        column: &'static str,
        /// What it is.
        name: String,
    },
}

/// A table whose heading has been read.
pub(super) struct Table<'b> {
    headings: Vec<String>,
    reader: Reader<&'b [u8]>,
}

impl<'b> Table<'b> {
    pub(super) fn open(bytes: &'b [u8]) -> Result<Self, TableError> {
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(bytes);
        let headings = reader.headers()?.iter().map(heading).collect();
        Ok(Self { headings, reader })
    }

    /// Where the cells of a column are, which may have any of these names; the first one counts most.
    pub(super) fn column(&self, names: &'static [&'static str]) -> Column {
        let place = |name: &&str| self.headings.iter().position(|heading| heading == name);
        Column {
            name: names.first().unwrap_or(&""),
            places: names.iter().filter_map(place).collect(),
        }
    }

    /// The same of a column that there must be.
    pub(super) fn needed(&self, names: &'static [&'static str]) -> Result<Column, TableError> {
        let column = self.column(names);
        if column.places.is_empty() { Err(TableError::NoColumn { names }) } else { Ok(column) }
    }

    /// Every row that has a name.
    pub(super) fn rows<T>(
        mut self,
        name: &Column,
        mut row: impl FnMut(Row<'_>, String) -> Result<T, TableError>,
    ) -> Result<Vec<T>, TableError> {
        let mut rows = Vec::new();
        let mut record = StringRecord::new();
        while self.reader.read_record(&mut record)? {
            let text = Row(&record).text(name).unwrap_or_default().trim();
            if !text.is_empty() {
                rows.push(row(Row(&record), text.to_owned())?);
            }
        }
        Ok(rows)
    }
}

/// A heading without its unit's brackets, in lower case, with one sign for what separates words.
fn heading(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase().replace(['(', ')', '%'], "");
    text.replace([' ', '-', '/'], "_").trim_matches('_').to_owned()
}

/// Where the cells of one column are.
pub(super) struct Column {
    name: &'static str,
    places: Vec<usize>,
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row<'r>(&'r StringRecord);

impl<'r> Row<'r> {
    /// A cell as it stands there; nothing where the row is too short.
    pub(super) fn text(self, column: &Column) -> Option<&'r str> {
        column.places.iter().find_map(|&place| self.0.get(place))
    }

    /// A cell that may be empty.
    pub(super) fn number(self, column: &Column) -> Result<Option<u64>, TableError> {
        let Some(text) = self.text(column).map(str::trim) else { return Ok(None) };
        let text = if text.contains(',') { text.replace(',', "") } else { text.to_owned() };
        match number(&text) {
            _ if text.is_empty() => Ok(None),
            Some(number) => Ok(Some(number)),
            None => Err(self.no_number(column, text)),
        }
    }

    /// A cell that may not.
    pub(super) fn needed(self, column: &Column) -> Result<u64, TableError> {
        self.number(column)?.ok_or_else(|| self.no_number(column, String::new()))
    }

    /// The same of a time that must have passed.
    pub(super) fn time(self, column: &Column, name: &str) -> Result<u64, TableError> {
        let (line, name) = (self.line(), name.to_owned());
        match self.needed(column)? {
            0 => Err(TableError::NoTime { line, column: column.name, name }),
            time => Ok(time),
        }
    }

    fn no_number(self, column: &Column, found: String) -> TableError {
        TableError::Number { line: self.line(), column: column.name, found }
    }

    fn line(self) -> u64 {
        self.0.position().map_or(0, csv::Position::line)
    }
}

/// A number of 64 bits; of one with a fraction, what is before the point.
fn number(text: &str) -> Option<u64> {
    const END: f64 = (1_u128 << 64) as f64;
    let fraction = || {
        let value = text.parse::<f64>().ok()?;
        (value.is_sign_positive() && value < END).then_some(value as u64)
    };
    text.parse().ok().or_else(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_fit() {
        for (text, expected) in [
            ("18446744073709551615", Some(u64::MAX)),
            ("12.9", Some(12)),
            ("1e3", Some(1000)),
            ("+5", Some(5)),
            ("18446744073709551616", None),
            ("-1", None),
            ("-0", None),
            ("NaN", None),
            ("inf", None),
            ("1 2", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn headings_are_words() {
        assert_eq!(heading(" Total Time (ns) "), "total_time_ns");
        assert_eq!(heading("Time (%)"), "time");
        assert_eq!(heading("Corr-ID/x"), "corr_id_x");
    }
}
