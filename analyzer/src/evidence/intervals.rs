//! Time that is counted once.

/// How long intervals are together, where they overlap once. They come by their starts; one that
/// ends before it starts is empty.
pub(super) fn union(sorted: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    let (mut total, mut until) = (0_u64, 0_u64);
    for (start, end) in sorted {
        total = total.saturating_add(end.saturating_sub(start.max(until)));
        until = until.max(end);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_or_touches_counts_once() {
        assert_eq!(union([]), 0);
        assert_eq!(union([(0, 10), (5, 20), (20, 21), (30, 35)]), 26);
        assert_eq!(union([(3, 9), (4, 5), (8, 10)]), 7);
        assert_eq!(union([(7, 7), (9, 8)]), 0);
        assert_eq!(union([(0, u64::MAX), (1, u64::MAX)]), u64::MAX);
    }
}
