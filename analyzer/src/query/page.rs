//! Which rows of an answer are wanted.

use serde::Serialize;

/// Labels that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelFilter {
    /// This one.
    Exact(String),
    /// All that begin with this.
    Prefix(String),
}

impl LabelFilter {
    /// Whether a label is wanted.
    pub fn matches(&self, label: &str) -> bool {
        match self {
            Self::Exact(wanted) => label == wanted,
            Self::Prefix(wanted) => label.starts_with(&**wanted),
        }
    }
}

/// Rows that are wanted, of those that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// So many at most.
    pub limit: usize,
    /// Behind so many.
    pub offset: usize,
    /// All of them, whatever the others say.
    pub all: bool,
}

impl Page {
    /// As many rows as somebody gets who does not say how many.
    pub const DEFAULT_LIMIT: usize = 50;
    /// As many rows as a page can have.
    pub const MAX_LIMIT: usize = 1000;

    /// The wanted ones of the rows that match, out of `total` rows.
    pub fn cut<T>(self, total: usize, mut rows: Vec<T>) -> Paged<T> {
        let matched = rows.len();
        let offset = if self.all { 0 } else { self.offset };
        let start = offset.min(matched);
        let end = if self.all { matched } else { start.saturating_add(self.limit).min(matched) };
        rows.truncate(end);
        rows.drain(..start);
        let displayed = rows.len();
        Paged {
            total,
            matched,
            displayed,
            offset,
            next_offset: (end < matched).then_some(end),
            truncated: displayed < matched,
            rows,
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: Self::DEFAULT_LIMIT, offset: 0, all: false }
    }
}

/// Some rows, and how many more there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paged<T> {
    /// How many there are.
    pub total: usize,
    /// How many of them match.
    pub matched: usize,
    /// How many of these are here.
    pub displayed: usize,
    /// Behind how many.
    pub offset: usize,
    /// Where the rest begins.
    pub next_offset: Option<usize>,
    /// Whether some that match are not here.
    pub truncated: bool,
    /// The rows.
    pub rows: Vec<T>,
}

/// The first rows of a list, and how many there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounded<T> {
    /// How many there are.
    pub total: usize,
    /// How many are here.
    pub displayed: usize,
    /// Whether some are not.
    pub truncated: bool,
    /// The first ones.
    pub rows: Vec<T>,
}

impl<T> Bounded<T> {
    /// The first `limit` rows of a list.
    pub fn of<I>(rows: I, limit: usize) -> Self
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        let rows = rows.into_iter();
        let total = rows.len();
        let rows: Vec<T> = rows.take(limit).collect();
        Self { total, displayed: rows.len(), truncated: rows.len() < total, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(limit: usize, offset: usize, all: bool) -> Paged<usize> {
        Page { limit, offset, all }.cut(10, (0..7).collect())
    }

    #[test]
    fn pages_join_to_all_rows() {
        let (mut rows, mut next) = (Vec::new(), Some(0));
        while let Some(offset) = next {
            let page = page(3, offset, false);
            assert_eq!((page.total, page.matched, page.offset), (10, 7, offset));
            assert!(page.truncated);
            rows.extend(page.rows);
            next = page.next_offset;
        }
        assert_eq!(rows, (0..7).collect::<Vec<_>>());
        let all = page(3, 5, true);
        assert_eq!((all.rows, all.truncated, all.offset, all.next_offset), (rows, false, 0, None));
    }

    #[test]
    fn a_page_behind_the_last_row_is_empty_and_says_where_it_is() {
        let page = page(3, 99, false);
        assert_eq!((page.displayed, page.offset, page.next_offset), (0, 99, None));
        assert!(page.truncated, "rows that match are not here");
    }
}
