//! The rings of a process that is gone.

use tmrun::salvage::{self, Process, Rings};
use tmrun::scan::Recording;
use tmrun_formats::LaneId;
use tmrun_formats::rings::{
    ChangeCell, ClockCell, LaneImage, NameImage, RingsHeader, RunArea, WaitingChanges,
};
use tmrun_formats::wire::{Frames, Record};

/// Everything that can be read of them without an analyzer: nothing lies outside of the file, and no
/// list is longer than what it is made of.
pub(crate) fn read(file: &[u8]) {
    let Ok(header) = RingsHeader::decode(file) else { return };
    assert!(RingsHeader::decode(&header.encode()).is_err(), "a header alone is not all of it");
    let part = |offset, length| header.part(file, offset, length);
    let area = part(header.run_area, RunArea::SIZE);
    if let Some(frames) = RunArea::frames(area) {
        let read = Frames::new(frames, 0).map_while(Result::ok).filter(|raw| raw.decode().is_ok());
        assert!(read.count() <= frames.len() / 8, "a frame has eight bytes at least");
    }
    let cells = part(header.clock, ClockCell::COUNT * ClockCell::SIZE);
    let cells: Vec<_> = ClockCell::read(cells).collect();
    assert!(cells.is_sorted_by_key(|cell| cell.number));
    for cell in &cells {
        let encoded = cell.encode();
        assert_eq!(ClockCell::read(&encoded).next(), Some(*cell));
    }
    if let Some(changes) = WaitingChanges::read(part(header.changes, WaitingChanges::SIZE)) {
        let kept: Vec<_> = changes.kept().collect();
        assert!(kept.len() <= ChangeCell::COUNT);
        assert!(
            changes.lost() == 0 || kept.len() == ChangeCell::COUNT,
            "first all cells are taken"
        );
    }
    let entries = part(header.entries, header.names.saturating_mul(NameImage::SIZE as u64));
    let names = NameImage::table(entries, part(header.arena, header.arena_length));
    let ids: Vec<_> = names.map(|name| name.id.0).collect();
    assert!(ids.is_sorted_by(|a, b| a < b) && ids.len() as u64 <= header.names);
    // A header may say that its lanes lie over each other; then there are more than bytes.
    let lanes = header.lanes.min(64) as u16;
    for lane in (0..lanes).map(LaneId).chain([LaneId::RECORDER]) {
        let ring = header.ring(file, lane);
        assert_eq!(Record::slice(ring).0.len() * 64, ring.len(), "a ring is whole slots");
        let block = header.block(file, lane);
        assert!(block.last_claims().count() <= LaneImage::CLAIM_COUNT);
        assert!(block.open_spans().count() < LaneImage::OPEN_COUNT);
    }
}

/// What had been drained of them: a recording that breaks off.
const DRAINED: &[u8] = include_bytes!("../../testdata/v1/tiny.tmrun").split_at(384).0;

/// Joined to what had been drained, and to nothing: a recording that salvages like any other, and is
/// not much larger than what it is made of.
pub(crate) fn join(file: &[u8]) {
    let Ok(rings) = Rings::open(file) else { return };
    let drained = Recording::open(DRAINED, "drained").expect("it has a header");
    for drained in [None, Some(&drained)] {
        let mut joined = Vec::new();
        salvage::join(drained, &rings, Process::Gone, &mut joined)
            .expect("memory takes everything");
        assert!(joined.len() < 64 * (file.len() + DRAINED.len()), "{} bytes", joined.len());
        crate::salvage_bytes(&joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed rings, with `arena` as the text, to which every entry of the name table, every
    /// code and every claim refers.
    fn all_of_one_text(arena: &[u8]) -> Vec<u8> {
        const NAMES: u64 = 1_000;
        let mut file = include_bytes!("../corpus/rings_file/small").to_vec();
        file.resize(80 << 10, 0);
        let header = RingsHeader::decode(&file).unwrap();
        let (entries, length) = (file.len() as u64, arena.len() as u64);
        let words = [0, length + 1, 0, 0, 0, 0, 0, 0, 1].map(|word| word as u32);
        let entry = words.map(u32::to_le_bytes);
        (0..NAMES).for_each(|_| file.extend(entry.as_flattened()));
        let header = RingsHeader {
            names: NAMES,
            entries,
            arena: file.len() as u64,
            arena_length: length,
            codes: entries + 32,
            lanes: 16,
            blocks: file.len() as u64 + length,
            ..header
        };
        file.extend(arena);
        let mut block = vec![1; LaneImage::SIZE];
        for claim in block[LaneImage::CLAIM..LaneImage::OPEN].chunks_exact_mut(8) {
            claim.copy_from_slice(&1_u64.to_le_bytes());
        }
        (0..header.lanes).for_each(|_| file.extend(&block));
        file[..RingsHeader::SIZE].copy_from_slice(&header.encode());
        file
    }

    #[test]
    fn a_text_that_everything_refers_to_is_not_told_without_bound() {
        let file = all_of_one_text(&[b'a'; 100_000]);
        assert!(Rings::open(&file).is_ok());
        join(&file);
    }

    #[test]
    fn the_committed_changes_are_one_that_was_made_one_in_the_making_and_one_that_is_damaged() {
        let file = include_bytes!("../corpus/rings_file/changes");
        let mut file = file.to_vec();
        file.resize(80 << 10, 0);
        let header = RingsHeader::decode(&file).unwrap();
        let area = header.part(&file, header.changes, WaitingChanges::SIZE);
        let changes = WaitingChanges::read(area).unwrap();
        let armed = changes.kept().map(|cell| cell.map(|cell| cell.change.armed.0));
        assert_eq!(armed.collect::<Vec<_>>(), [Some(1010), Some(0), None]);
    }

    #[test]
    fn the_committed_rings_lead_past_every_sum() {
        let mut file = include_bytes!("../corpus/rings_file/small").to_vec();
        file.resize(80 << 10, 0);
        file[16] ^= 1;
        assert!(RingsHeader::decode(&file).is_err());
        let file = crate::seal::rings(file);
        let header = RingsHeader::decode(&file).unwrap();
        let area = header.part(&file, header.run_area, RunArea::SIZE);
        assert!(RunArea::frames(area).is_some_and(|frames| Frames::new(frames, 0).count() > 1));
        let cells = header.part(&file, header.clock, ClockCell::COUNT * ClockCell::SIZE);
        assert_eq!(ClockCell::read(cells).count(), 3);
        let names = header.part(&file, header.entries, 2 * NameImage::SIZE as u64);
        let arena = header.part(&file, header.arena, header.arena_length);
        assert_eq!(NameImage::table(names, arena).count(), 2);
        assert_eq!(header.block(&file, LaneId(0)).open_spans().count(), 2);
    }
}
