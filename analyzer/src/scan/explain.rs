//! Which damaged bytes the holes in the lanes' sequences explain: those that can have held nothing else.

use tmrun_formats::wire::ChunkHeader;

/// A place in a file at which something is damaged, or not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its offset, or of a place without bytes the one before.
    pub(super) at: u64,
    /// Bytes that are no chunk; 0 where chunks are not there.
    pub(super) len: u64,
    /// How many chunks were there, if that is known.
    pub(super) chunks: Option<u64>,
}

/// The records of a hole, which lie somewhere between two offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filling {
    pub(super) bytes: (u64, u64),
    pub(super) records: u64,
}

/// A header or a record: everything in a file is so many bytes, or several times as many.
const UNIT: u64 = ChunkHeader::SIZE as u64;

/// The least that holds something: a header and as many bytes behind it.
const CHUNK: u64 = 2;

impl Place {
    const fn units(&self) -> u64 {
        self.len / UNIT
    }
}

/// Of each place, by offset, whether the holes are all that was there.
pub(super) fn explained(places: &[Place], fillings: &[Filling]) -> Vec<bool> {
    let mut explained = vec![false; places.len()];
    let mut within: Vec<(usize, usize, u64)> = fillings
        .iter()
        .map(|filling| {
            let from = places.partition_point(|place| place.at <= filling.bytes.0);
            let to = places.partition_point(|place| place.at < filling.bytes.1);
            (from, to, filling.records)
        })
        .filter(|(from, to, _)| from < to)
        .collect();
    within.sort_unstable();
    let mut rest = &within[..];
    while let Some(&(from, mut to, _)) = rest.first() {
        // Holes that may share a place are looked at together.
        let together = rest.iter().take_while(|hole| {
            let shares = hole.0 < to;
            if shares {
                to = to.max(hole.1);
            }
            shares
        });
        let (holes, others) = rest.split_at(together.count().max(1));
        rest = others;
        if let (Some(places), Some(out)) = (places.get(from..to), explained.get_mut(from..to)) {
            explain(places, from, holes, out);
        }
    }
    explained
}

/// The same of places that holes share. Of these each is between the places of two indices, which count
/// from `base`.
fn explain(places: &[Place], base: usize, holes: &[(usize, usize, u64)], out: &mut [bool]) {
    // Each hole is of a chunk at least.
    let mut here_alone = vec![0_u64; places.len()];
    for &(from, to, _) in holes {
        if let Some(count) = from.checked_sub(base).and_then(|at| here_alone.get_mut(at)) {
            *count = count.saturating_add((to.saturating_sub(from) == 1).into());
        }
    }
    let chunks = places.iter().try_fold(0_u64, |all, place| all.checked_add(place.chunks?));
    let all = chunks.is_some_and(|chunks| chunks <= holes.len() as u64);
    let room = Room::of(places);
    let records = holes.iter().fold(0_u64, |all, hole| all.saturating_add(hole.2));
    let has_bytes = places.iter().all(|place| place.len > 0);
    // Where the records of the holes do not fit, bytes are gone, and nobody knows what was in those.
    let fits = has_bytes && room.records(holes.len() as u64) >= records;
    for ((place, alone), out) in places.iter().zip(here_alone).zip(out) {
        let by_number = place.chunks.is_some_and(|chunks| 0 < alone && chunks <= alone);
        let has_other = || room.without_a_chunk(place).records(holes.len() as u64) >= records;
        *out = all || by_number || fits && !has_other();
    }
}

/// What places have room for.
#[derive(Debug, Clone, Copy)]
struct Room {
    units: u64,
    /// How many of them can hold a record.
    places: u64,
}

impl Room {
    fn of(places: &[Place]) -> Self {
        let wide = places.iter().map(Place::units).filter(|&units| units >= CHUNK);
        wide.fold(Self { units: 0, places: 0 }, |room, units| Self {
            units: room.units.saturating_add(units),
            places: room.places.saturating_add(1),
        })
    }

    /// The most records of so many holes: a place has one header at least, and so does a hole.
    fn records(&self, holes: u64) -> u64 {
        self.units.saturating_sub(self.places.max(holes))
    }

    /// The same, if there is another chunk in a place, which has two units at least. What is left of the
    /// place is of no use when it has fewer.
    fn without_a_chunk(&self, place: &Place) -> Self {
        let units = place.units();
        if units < CHUNK {
            return *self;
        }
        let is_left = units.saturating_sub(CHUNK) >= CHUNK;
        Self {
            units: self.units.saturating_sub(if is_left { CHUNK } else { units }),
            places: self.places.saturating_sub((!is_left).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn damaged(at: u64, units: u64) -> Place {
        Place { at, len: units * UNIT, chunks: None }
    }

    const fn hole(from: u64, to: u64, records: u64) -> Filling {
        Filling { bytes: (from, to), records }
    }

    #[test]
    fn a_hole_explains_what_its_records_and_a_header_fill() {
        let found =
            |units, records| explained(&[damaged(1_000, units)], &[hole(0, 9_000, records)]);
        assert_eq!(found(5, 4), [true]);
        // A header more holds nothing.
        assert_eq!(found(6, 4), [true]);
        assert_eq!(found(7, 4), [false], "a chunk of something else fits beside it");
        assert_eq!(found(4, 4), [false], "bytes are gone");
    }

    #[test]
    fn holes_between_whose_ends_a_place_does_not_lie_do_not_explain_it() {
        for (from, to) in [(0, 1_000), (1_000, 9_000), (2_000, 9_000)] {
            assert_eq!(explained(&[damaged(1_000, 5)], &[hole(from, to, 4)]), [false]);
        }
    }

    #[test]
    fn holes_of_several_lanes_share_a_place() {
        let both = [hole(0, 9_000, 4), hole(500, 9_500, 3)];
        assert_eq!(explained(&[damaged(1_000, 9)], &both), [true]);
        assert_eq!(explained(&[damaged(1_000, 11)], &both), [false]);
        let apart = [damaged(1_000, 5), damaged(2_000, 4)];
        assert_eq!(explained(&apart, &both), [true, true]);
    }

    #[test]
    fn what_one_hole_needs_of_two_places_leaves_the_rest_unexplained() {
        let places = [damaged(1_000, 5), damaged(2_000, 7)];
        assert_eq!(explained(&places, &[hole(0, 9_000, 4)]), [false, false]);
        assert_eq!(explained(&places, &[hole(0, 9_000, 10)]), [true, true]);
        // Each may be the one that it fills.
        let places = [damaged(1_000, 2), damaged(2_000, 2)];
        assert_eq!(explained(&places, &[hole(0, 9_000, 1)]), [false, false]);
    }

    #[test]
    fn numbers_of_chunks_explain_what_bytes_cannot() {
        let gone = |chunks| Place { at: 1_000, len: 0, chunks: Some(chunks) };
        assert_eq!(explained(&[gone(1)], &[hole(0, 9_000, 40)]), [true]);
        assert_eq!(explained(&[gone(2)], &[hole(0, 9_000, 40)]), [false]);
        assert_eq!(explained(&[gone(2)], &[hole(0, 9_000, 40), hole(500, 2_000, 1)]), [true]);
        assert_eq!(explained(&[gone(1)], &[]), [false]);
    }
}
