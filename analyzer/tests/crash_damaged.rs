//! A process that died, and whose recording or rings were damaged too: every intact chunk and every
//! slot that holds its record is in what is salvaged, and all else is counted.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::collections::BTreeMap;
use std::ops::Range;

use support::dying::{self, LANES, rings};
use tmrun::salvage::{Process, Rings, join, salvage};
use tmrun::scan::Recording;
use tmrun_formats::rings::{LaneImage, RingsHeader};
use tmrun_formats::wire::{Chunk, ChunkKind, Chunks, GROUP_MAX, Record, Walked};
use tmrun_formats::{GapReason, LaneId};

#[test]
#[ignore = "the child of the other tests"]
fn records_until_it_dies() {
    if let Some(task) = dying::task() {
        dying::record_until_it_dies(&task);
    }
}

/// The two files of a process that died.
#[derive(Clone)]
struct Left {
    drained: Vec<u8>,
    rings: Vec<u8>,
}

impl Left {
    fn by(policy: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = dying::test("records_until_it_dies");
        dying::died(program, folder.path(), policy, "abort", 5_000);
        let read = |path| std::fs::read(path).expect("it is left");
        Self { drained: read(folder.path().join("run.tmrun")), rings: read(rings(folder.path())) }
    }

    fn header(&self) -> RingsHeader {
        RingsHeader::decode(&self.rings).expect("a header")
    }

    fn block(&self, lane: LaneId) -> LaneImage {
        self.header().block(&self.rings, lane)
    }

    /// The bytes of a word of a lane's counters.
    fn word(&mut self, LaneId(lane): LaneId, word: usize) -> &mut [u8] {
        let header = self.header();
        let block = header.blocks as usize + usize::from(lane) * LaneImage::SIZE + word;
        &mut self.rings[block..][..8]
    }

    fn slots(&self, LaneId(lane): LaneId) -> Range<usize> {
        let header = self.header();
        let size = header.slots as usize * 64;
        let first = header.rings as usize + usize::from(lane) * size;
        first..first + size
    }

    /// The chunks of the threads' records, where they are, but for the last chunk of all.
    fn chunks(&self) -> Vec<(LaneId, Range<usize>)> {
        let chunks = Chunks::new(&self.drained).filter_map(|walked| match walked {
            Walked::Chunk(chunk) => Some(chunk),
            _ => None,
        });
        let mut all: Vec<_> = chunks.collect();
        all.pop();
        let is_theirs = |chunk: &Chunk<'_>| {
            chunk.header.kind == ChunkKind::RECORDS && LANES.contains(&chunk.header.lane)
        };
        let records = all.into_iter().filter(is_theirs);
        let place =
            |offset: u64, payload: &[u8]| offset as usize..offset as usize + 64 + payload.len();
        records.map(|chunk| (chunk.header.lane, place(chunk.offset, chunk.payload))).collect()
    }

    /// What the two files hold of a lane, read apart from what `salvage` does. Where a full ring drops,
    /// nothing tells of a group that is being stored: to the slots of the oldest records, if those are
    /// in the file. With `surely` those slots are left out.
    fn held(&self, lane: LaneId, surely: bool) -> BTreeMap<u64, Record> {
        let mut held = BTreeMap::new();
        for walked in Chunks::new(&self.drained) {
            let Walked::Chunk(chunk) = walked else { continue };
            if chunk.header.lane == lane && chunk.check().is_ok() {
                held.extend((chunk.header.first_sequence..).zip(chunk.records().iter().copied()));
            }
        }
        let (block, header) = (self.block(lane), self.header());
        let (slots, _) = Record::slice(header.ring(&self.rings, lane));
        let size = slots.len() as u64;
        let in_flight = if surely && header.overwrite == 0 { GROUP_MAX as u64 } else { 0 };
        let stored_to = block.published.max(block.reserved) + in_flight;
        let oldest = stored_to.saturating_sub(size);
        for position in oldest..block.published {
            let record = slots[(position % size) as usize];
            if record.header().seq == position as u32 && record.header().kind != 0 {
                // Of an oldest record the file has, the first words may be those of one in flight.
                held.entry(position).or_insert(record);
            }
        }
        held
    }

    fn salvaged(&self) -> Vec<u8> {
        let drained = Recording::open_damaged(&self.drained, "drained", &|_| ()).expect("a header");
        let rings = Rings::open(&self.rings).expect("a header");
        let mut joined = Vec::new();
        join(Some(&drained), &rings, Process::Gone, &mut joined).expect("memory takes it");
        let joined = Recording::open_damaged(&joined, "joined", &|_| ()).expect("a header");
        let mut whole = Vec::new();
        salvage(&joined, &mut whole, &|_| ()).expect("memory takes it");
        whole
    }

    /// Holds what is salvaged against what is there. Returns what is lost of a lane, but for what the
    /// full ring dropped.
    fn check(&self) -> BTreeMap<LaneId, BTreeMap<GapReason, u64>> {
        let whole = self.salvaged();
        let whole = Recording::open(&whole, "whole").expect("a header");
        assert_eq!(whole.verify(), []);
        let lost = |lane| {
            let mut lost = BTreeMap::new();
            for gap in whole.lost().filter(|gap| gap.lane == Some(lane)) {
                *lost.entry(gap.reason).or_default() += gap.records;
            }
            lost.remove(&GapReason::OVERRUN);
            lost
        };
        LANES
            .map(|lane| (lane, lost(lane)))
            .into_iter()
            .inspect(|(lane, lost)| {
                let mut found = BTreeMap::new();
                for chunk in whole.record_chunks().filter(|chunk| chunk.lane() == *lane) {
                    for (position, record) in (chunk.first_sequence()..).zip(chunk.records()) {
                        assert!(found.insert(position, record.words()).is_none(), "each once");
                    }
                }
                let held = self.held(*lane, false);
                for (position, words) in &found {
                    let there = held.get(position).map(Record::words);
                    assert_eq!(there.as_ref(), Some(words), "{lane:?}, position {position}");
                }
                // What continues a record that is gone belongs to nothing.
                let sure = self.held(*lane, true).into_iter();
                for (position, _) in sure.filter(|(_, record)| !record.continues()) {
                    assert!(found.contains_key(&position), "{lane:?}, position {position}");
                }
                let (block, count) = (self.block(*lane), found.len() as u64);
                let end = held.last_key_value().map_or(0, |(&last, _)| last + 1);
                let missing = end.max(block.published) - block.first - count;
                let torn = lost.get(&GapReason::TORN).copied().unwrap_or_default();
                assert_eq!(lost.values().sum::<u64>(), missing + torn, "{lane:?}: {lost:?}");
            })
            .collect()
    }
}

#[test]
fn a_damaged_chunk_comes_out_of_the_ring_as_far_as_that_still_has_it() {
    let mut recovered = 0;
    for policy in ["drop", "newest"] {
        let left = Left::by(policy);
        let whole = left.check();
        for (lane, chunk) in left.chunks() {
            // Its payload, then its header, which says whose records it had.
            for at in [chunk.end - 1, chunk.start + 24] {
                let mut damaged = left.clone();
                damaged.drained[at] ^= 1;
                let lost = damaged.check();
                let corrupt = lost[&lane].get(&GapReason::CORRUPT).copied().unwrap_or_default();
                let records = (chunk.len() / 64 - 1) as u64;
                assert!(corrupt <= records);
                recovered += records - corrupt;
                let other = LANES.into_iter().filter(|other| *other != lane);
                other.for_each(|other| assert_eq!(lost[&other], whole[&other]));
            }
        }
    }
    assert!(recovered > 0, "the rings still had some of what was drained");
}

#[test]
fn a_published_slot_that_holds_something_else_is_counted() {
    for policy in ["drop", "newest"] {
        let left = Left::by(policy);
        for lane in LANES {
            let drained = |left: &Left| {
                let mut zeroed = left.clone();
                let slots = zeroed.slots(lane);
                zeroed.rings[slots].fill(0);
                zeroed.held(lane, true).last_key_value().map_or(0, |(&last, _)| last + 1)
            };
            let undrained = left.block(lane).published - drained(&left);
            // All of them, and all but that of the last record.
            for spared in [None, Some(left.block(lane).published - 1)] {
                let size = left.header().slots;
                if spared.is_none() && undrained > size {
                    continue; // a count that nothing bears out
                }
                let mut damaged = left.clone();
                let slots = damaged.slots(lane);
                let count = (slots.len() / 64) as u64;
                let spare = spared.map(|position| slots.start + (position % count) as usize * 64);
                for slot in slots.step_by(64).filter(|slot| Some(*slot) != spare) {
                    damaged.rings[slot..slot + 64].fill(0);
                }
                let lost = damaged.check();
                let corrupt = lost[&lane].get(&GapReason::CORRUPT).copied().unwrap_or_default();
                let in_ring = undrained.min(count);
                let expected = in_ring.saturating_sub(u64::from(spared.is_some() && undrained > 0));
                assert!(corrupt.abs_diff(expected) <= 1, "{corrupt} of {expected}, {policy}");
                assert!(!lost[&lane].contains_key(&GapReason::SINK_FAILED), "no sink failed");
            }
        }
    }
}

#[test]
fn a_lane_whose_count_was_written_to_has_lost_nobody_knows_how_much() {
    let left = Left::by("drop");
    let (lane, published) = (LANES[0], left.block(LANES[0]).published);
    for scribble in [0, published + (1 << 40) + 5_000, u64::MAX] {
        let mut damaged = left.clone();
        damaged.word(lane, LaneImage::PUBLISHED).copy_from_slice(&scribble.to_le_bytes());
        let whole = damaged.salvaged();
        let whole = Recording::open(&whole, "whole").expect("a header");
        assert_eq!(whole.verify(), []);
        let gap =
            whole.lost().find(|gap| gap.lane == Some(lane) && gap.reason == GapReason::CORRUPT);
        let gap = gap.unwrap_or_else(|| panic!("{scribble:#x}: {:?}", whole.gaps()));
        assert_eq!(gap.records, 0, "nobody knows how many");
    }
}
