//! What a rings file holds, read slot by slot and apart from what `salvage` does.
#![allow(dead_code, reason = "every test uses some of it")]

use std::collections::BTreeMap;

use tmrun::scan::Recording;
use tmrun_formats::LaneId;
use tmrun_formats::rings::RingsHeader;
use tmrun_formats::wire::Record;

/// So many records of a lane may have been on their way into its ring when the process died.
const IN_FLIGHT: u64 = 3;

/// The records of a lane's ring with their positions: all that is published and was not stored over. None
/// where a slot that was given back may have been stored to once more.
pub fn published(rings: &[u8], lane: LaneId) -> Vec<(u64, Option<Record>)> {
    let header = RingsHeader::decode(rings).expect("a whole header");
    let block = header.block(rings, lane);
    let (slots, _) = Record::slice(header.ring(rings, lane));
    let size = slots.len() as u64;
    // Rings that keep the newest say how far they are being stored to, and keep no slot back.
    let keeps_newest = header.overwrite != 0 && lane != LaneId::RECORDER;
    let in_flight = if keeps_newest { 0 } else { IN_FLIGHT };
    let oldest = block.reserved.max(block.published).saturating_sub(size);
    let positions = oldest.max(block.first)..block.published;
    let records = positions.map(|position| {
        let record = slots[(position % size) as usize];
        let is_sure = position + size >= block.published + in_flight;
        if is_sure {
            let found = record.header().seq;
            assert_eq!(found, position as u32, "a slot holds what was published there");
        }
        (position, is_sure.then_some(record))
    });
    // Of a group whose head was stored over, what continues it belongs to nothing.
    let is_rest = |record: &Option<Record>| record.is_some_and(|record| record.continues());
    records.skip_while(|(_, record)| keeps_newest && is_rest(record)).collect()
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
            let found = found.remove(&position).unwrap_or_default();
            assert_eq!(found.len(), 1, "{lane:?}, position {position}");
            if let Some(record) = record {
                assert_eq!(found, [record.words()], "{lane:?}, position {position}");
            }
            of_application += u64::from(lane != LaneId::RECORDER);
        }
    }
    of_application
}
