//! Chunks: where they end, many of them, and long ones.

mod support;

use support::read::{File, OVERRUN, RECORDER};
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::{Chunks, IndexHead, Walked};
use tmrun_formats::{Level, NameId, TensorId};
use tmrun_probe_core::{Flush, Node, OpFact, Probe};

/// The index chunks of a file together list every chunk but the last index.
fn every_chunk_is_listed(bytes: &[u8]) -> usize {
    let (mut offsets, mut listed, mut indexes) = (Vec::new(), Vec::new(), 0);
    for walked in Chunks::new(bytes) {
        let Walked::Chunk(chunk) = walked else { continue };
        offsets.push(chunk.offset);
        if chunk.header.kind == tmrun_formats::wire::ChunkKind::INDEX {
            indexes += 1;
            let (_, entries) = IndexHead::decode(chunk.payload, chunk.payload_offset()).unwrap();
            listed.extend(entries.map(|entry| entry.offset));
        }
    }
    offsets.pop();
    assert_eq!(listed, offsets);
    indexes
}

#[test]
fn a_file_of_thousands_of_chunks_is_indexed_in_the_middle_of_everything() {
    static PROBE: Probe<Counting, 3, 32, 4096> = Probe::new();
    let view = PROBE.view();
    let lanes = ["a", "b", "c"].map(|name| view.claim(name).unwrap());
    let mut drain = start(view, Memory::default(), Level::TIMING);
    for i in 0..1200_u32 {
        // Every poll has names, claims, level changes and records of three lanes to write, so that
        // an index falls due before a chunk of each sort.
        let node = view.name(&format!("node {i}"));
        for lane in &lanes {
            (0..i % 4 + 1).for_each(|value| lane.recorder().scalar(node, f64::from(value)));
        }
        if i % 5 == 0 {
            view.set_level(Level((i % 4) as u8));
        }
        poll(&mut drain);
    }
    let (summary, sink) = drain.finish(&[support::TERMINAL]);
    let bytes = sink.unwrap().bytes;
    let file = File::finished(&bytes);
    assert_eq!(summary.dropped, 0);
    assert_eq!(file.stored(0).len(), 3000);
    assert!(file.chunks > 5000, "{} chunks", file.chunks);
    assert_eq!(every_chunk_is_listed(&bytes), file.indexes);
    assert!(file.indexes >= 5);
    let names = file.names();
    for record in file.stored(2) {
        assert!(names[&record.name].text.starts_with("node "));
    }
}

#[test]
fn an_index_that_falls_due_at_the_very_end_is_one_of_the_ends() {
    // However many chunks there are before the end: around a multiple of 1,024.
    for chunks in 1010..1030 {
        let probe = Box::new(Probe::<Counting, 1, 32, 16>::new());
        let lane = probe.view().claim("a").unwrap();
        let mut drain = start(probe.view(), Memory::default(), Level::TIMING);
        for _ in 0..chunks {
            lane.recorder().scalar(NameId::NONE, 0.0);
            poll(&mut drain);
        }
        let (_, sink) = drain.finish(&[support::TERMINAL]);
        let bytes = sink.unwrap().bytes;
        File::finished(&bytes);
        every_chunk_is_listed(&bytes);
    }
}

#[test]
fn the_smallest_ring_takes_the_largest_group_at_every_place() {
    for shift in 0..32 {
        let probe = Box::new(Probe::<Counting, 1, 32, 16>::new());
        let lane = probe.view().claim("a").unwrap();
        let mut drain = start(probe.view(), Memory::default(), Level::TIMING);
        let inputs = [TensorId(7); 75];
        let op = OpFact { inputs: &inputs, ..OpFact::default() };
        (0..shift).for_each(|i| lane.recorder().scalar(NameId::NONE, f64::from(i)));
        poll(&mut drain);
        lane.recorder().op(NameId::NONE, &op);
        lane.recorder().op(NameId::NONE, &op);
        lane.recorder().op(NameId::NONE, &op);
        drain.poll(Flush::Full).unwrap();
        lane.recorder().op(NameId::NONE, &op);
        let (summary, file) = finish(drain);
        assert_eq!((summary.dropped, file.dropped(0, OVERRUN)), (16, 16));
        assert_eq!(file.stored(0).len() as i32, shift + 48);
    }
}

#[test]
fn a_chunk_holds_a_quarter_of_its_ring_and_whole_groups() {
    let probe = Box::new(Probe::<Counting, 1, 256, 16>::new());
    let lane = probe.view().claim("a").unwrap();
    let mut drain = start(probe.view(), Memory::default(), Level::TIMING);
    let inputs = [TensorId(7); 30];
    let op = OpFact { inputs: &inputs, ..OpFact::default() };
    (0..9).for_each(|_| lane.recorder().op(NameId::NONE, &op));
    assert_eq!(drain.poll(Flush::Full).unwrap().records, 0, "what fills no chunk is left");
    lane.recorder().op(NameId::NONE, &op);
    assert_eq!(drain.poll(Flush::Full).unwrap().records, 63, "a chunk, but for half a group");
    (0..35).for_each(|_| lane.recorder().op(NameId::NONE, &op));
    poll(&mut drain);
    let (_, sink) = drain.finish(&[]);
    let bytes = sink.unwrap().bytes;
    let records = Chunks::new(&bytes).filter_map(|walked| match walked {
        Walked::Chunk(chunk) if chunk.header.lane.0 != RECORDER => Some(chunk.header.records),
        _ => None,
    });
    assert_eq!(records.collect::<Vec<_>>(), [63, 63, 63, 63, 63]);
}

#[test]
fn names_of_64_kib_are_written_whole() {
    static PROBE: Probe<Counting, 1, 32, 8192> = Probe::new();
    let view = PROBE.view();
    let lane = view.claim("a").unwrap();
    let drain = start(view, Memory::default(), Level::TIMING);
    let long = |c: char| String::from(c).repeat(65536 / c.len_utf8());
    let (name, kind, id, source) = (long('n'), long('é'), long('🦀'), long('\0'));
    let node =
        Node { name: &name, node_type: Some(&kind), static_id: Some(&id), source: Some(&source) };
    let node_id = view.node(&node);
    lane.recorder().scalar(node_id, 1.0);
    let (_, file) = finish(drain);
    let found = file.names()[&node_id.0];
    assert_eq!((found.text, found.node_type), (&*name, Some(&*kind)));
    assert_eq!((found.static_id, found.source), (Some(&*id), Some(&*source)));
}

#[test]
fn more_lanes_than_the_recorders_ring_has_slots_all_have_their_closing_gap() {
    static PROBE: Probe<Counting, 300, 32, 1024> = Probe::new();
    let view = PROBE.view();
    let drain = start(view, Memory::default(), Level::TIMING);
    let lanes: Vec<_> = (0..300).map(|i| view.claim(&format!("lane {i}")).unwrap()).collect();
    for (i, lane) in lanes.iter().enumerate() {
        (0..33 + i).for_each(|_| lane.recorder().scalar(NameId::NONE, 0.0));
    }
    let (summary, file) = finish(drain);
    let mut all = 0;
    for lane in 0..300 {
        assert_eq!(file.dropped(lane, OVERRUN), u64::from(lane) + 1);
        all += u64::from(lane) + 1;
    }
    assert_eq!(summary.dropped, all);
    assert_eq!(file.dropped(RECORDER, OVERRUN), 0);
    assert_eq!(file.lanes().len(), 300);
}

#[test]
fn level_changes_that_nobody_takes_are_counted() {
    let probe = Box::new(Probe::<Counting, 1, 32, 16>::new());
    let view = probe.view();
    let drain = start(view, Memory::default(), Level::TIMING);
    for i in 0..200_u8 {
        view.set_level(Level(i % 4));
    }
    let (summary, file) = finish(drain);
    assert_eq!(file.of(support::read::LEVEL).len(), 64);
    assert_eq!(file.dropped(RECORDER, OVERRUN), 137);
    assert_eq!(summary.dropped, 137);
    assert_eq!(file.totals(RECORDER).unwrap().dropped_records, 137);
}
