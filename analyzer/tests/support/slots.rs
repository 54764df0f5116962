//! What a rings file holds, read slot by slot and apart from what `salvage` does.
#![allow(dead_code, reason = "every test uses some of it")]

use std::collections::BTreeMap;

use tmrun::scan::Recording;
use tmrun_formats::LaneId;
use tmrun_formats::rings::RingsHeader;
use tmrun_formats::wire::Record;

/// The records of a lane's ring with their positions: all that is published and was not stored over.
pub fn published(rings: &[u8], lane: LaneId) -> Vec<(u64, Record)> {
    let header = RingsHeader::decode(rings).expect("a whole header");
    let block = header.block(rings, lane);
    let (slots, _) = Record::slice(header.ring(rings, lane));
    let size = slots.len() as u64;
    let oldest = block.reserved.max(block.published).saturating_sub(size);
    let positions = oldest.max(block.first)..block.published;
    let records = positions.map(|position| (position, slots[(position % size) as usize]));
    let records: Vec<_> = records.collect();
    for (position, record) in &records {
        assert_eq!(record.header().seq, *position as u32, "a slot holds what was published there");
    }
    records
}

/// Holds that every record of the rings is in the recording, each once. Returns how many of the
/// application's those are.
pub fn all_in(rings: &[u8], recording: &Recording<'_>) -> u64 {
    let header = RingsHeader::decode(rings).expect("a whole header");
    let mut of_application = 0;
    for lane in (0..header.lanes as u16).map(LaneId).chain([LaneId::RECORDER]) {
        let mut found: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for chunk in recording.record_chunks().filter(|chunk| chunk.lane() == lane) {
            for (position, record) in (chunk.first_sequence()..).zip(chunk.records()) {
                found.entry(position).or_default().push(record.words());
            }
        }
        for (position, record) in published(rings, lane) {
            let expected = Some(vec![record.words()]);
            assert_eq!(found.remove(&position), expected, "{lane:?}, position {position}");
            of_application += u64::from(lane != LaneId::RECORDER);
        }
    }
    of_application
}
