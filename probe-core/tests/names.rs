//! The name table: the same name is the same id, whoever asks; what finds no room is counted.

mod support;

use std::sync::Barrier;

use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::{Frame, RecorderCostV1};
use tmrun_formats::{DType, DeviceCode, Level, NameId};
use tmrun_probe_core::{Node, Probe, scalar};

fn unnamed(file: &support::read::File) -> u64 {
    let mut costs = file.frames().into_iter().filter_map(|frame| match frame {
        Frame::RecorderCost(RecorderCostV1 { unnamed, .. }) => Some(unnamed),
        _ => None,
    });
    costs.next_back().unwrap()
}

#[test]
fn the_same_node_is_the_same_id_and_anything_else_beside_the_name_is_another() {
    let probe = Box::new(Probe::<Counting, 1, 32, 64>::new());
    let view = probe.view();
    let plain = Node::named("layer");
    let nodes = [
        plain,
        Node { node_type: Some(""), ..plain },
        Node { node_type: Some("attention"), ..plain },
        Node { static_id: Some("attention"), ..plain },
        Node { source: Some("attention"), ..plain },
        Node { node_type: Some("att"), static_id: Some("ention"), ..plain },
        Node::named("layerattention"),
        Node::named(""),
    ];
    let ids = nodes.map(|node| view.node(&node));
    assert_eq!(ids.map(|id| id.0), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(nodes.map(|node| view.node(&node)), ids);
    assert_eq!(view.name("layer"), ids[0]);
    let drain = start(view, Memory::default(), Level::PULSE);
    let lane = view.claim("layer").unwrap();
    lane.recorder().scalar(ids[5], 1.0);
    let (_, file) = finish(drain);
    let found = file.names()[&6];
    assert_eq!((found.text, found.node_type), ("layer", Some("att")));
    assert_eq!((found.static_id, found.source), (Some("ention"), None));
}

#[test]
fn eight_threads_that_intern_the_same_names_get_one_id_for_each() {
    static PROBE: Probe<Counting, 8, 32, 4096> = Probe::new();
    const NAMES: usize = 256;
    let view = PROBE.view();
    let barrier = &Barrier::new(8);
    let ids: Vec<Vec<NameId>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                scope.spawn(move || {
                    let mut ids = vec![NameId::NONE; NAMES];
                    barrier.wait();
                    for i in 0..NAMES {
                        // Half of the threads come from the other end.
                        let i = if thread % 2 == 0 { i } else { NAMES - 1 - i };
                        ids[i] = view.name(&format!("name {i}"));
                    }
                    ids
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|other| *other == ids[0]), "everybody has the same ids");
    let distinct: std::collections::BTreeSet<_> = ids[0].iter().collect();
    assert_eq!((distinct.len(), distinct.contains(&NameId::NONE)), (NAMES, false));
    let drain = start(view, Memory::default(), Level::PULSE);
    let lane = view.claim("name 0").unwrap();
    for id in &ids[0] {
        lane.recorder().scalar(*id, 0.0);
    }
    let (_, file) = finish(drain);
    for (i, id) in ids[0].iter().enumerate() {
        assert_eq!(file.names()[&id.0].text, format!("name {i}"));
    }
    assert_eq!(unnamed(&file), 0);
}

#[test]
fn names_that_come_as_the_file_is_written_are_in_it_before_their_records() {
    static PROBE: Probe<Counting, 3, 1024, 4096> = Probe::new();
    let view = PROBE.view();
    let mut drain = start(view, Memory::default(), Level::PULSE);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                scope.spawn(move || {
                    let lane = view.claim("interns").unwrap();
                    for i in 0..500_u32 {
                        let name = view.name(&format!("{}", i * 2 + thread % 2));
                        lane.recorder().scalar(name, f64::from(i * 2 + thread % 2));
                    }
                })
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            poll(&mut drain);
        }
    });
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);
    let records = file.of(support::read::SCALAR);
    assert_eq!(records.len(), 1000);
    for record in records {
        assert_eq!(file.name(&record), format!("{}", record.f64_at(0)));
    }
}

#[test]
fn a_full_table_is_counted_and_the_record_goes_out_unnamed() {
    static PROBE: Probe<Counting, 1, 64, 4> = Probe::new();
    let view = PROBE.view();
    let lane = view.claim("lane").unwrap();
    let drain = start(view, Memory::default(), Level::PULSE);
    let ids = ["a", "b", "c", "d", "e"].map(|name| view.name(name).0);
    assert_eq!(ids, [2, 3, 4, 0, 0]);
    assert_eq!(view.name("c"), NameId(4), "what is there is found");
    scalar!(lane, "no room for this one", 5.0);
    lane.recorder().scalar(view.name("d"), 6.0);
    assert_eq!(view.device("cuda:0"), DeviceCode::OTHER);
    let (_, file) = finish(drain);
    let records = file.stored(0);
    assert_eq!(
        records.iter().map(|r| (r.name, r.f64_at(0))).collect::<Vec<_>>(),
        [(0, 5.0), (0, 6.0)]
    );
    assert_eq!(unnamed(&file), 5);
}

#[test]
fn a_full_arena_is_counted_and_takes_what_still_fits() {
    let probe = Box::new(Probe::<Counting, 1, 64, 4>::new());
    let view = probe.view();
    let (half, whole) = ("h".repeat(200), "w".repeat(256));
    assert_eq!(view.name(&half), NameId(1));
    assert_eq!(view.name(&whole), NameId::NONE);
    assert_eq!(view.name(&whole), NameId::NONE);
    assert_eq!(view.name(&"f".repeat(56)), NameId(2), "an exact fit");
    assert_eq!(view.name("x"), NameId::NONE);
    assert_eq!(view.name(""), NameId(3), "nothing needs no room");
    let (_, file) = finish(start(view, Memory::default(), Level::PULSE));
    assert_eq!(unnamed(&file), 3);
}

#[test]
fn names_of_any_characters_survive() {
    let probe = Box::new(Probe::<Counting, 1, 64, 64>::new());
    let view = probe.view();
    let hostile = [
        "\0",
        "\u{1}\u{7f}\r\n\t",
        "\"quoted\\\"",
        "../../etc/passwd",
        "</script>",
        "\u{202e}rtl",
        "\u{1f980}\u{1f469}\u{200d}\u{1f4bb}",
        "\u{feff}",
        "tmCK",
        "\u{10ffff}",
        "{}%s%n",
    ];
    let ids = hostile.map(|name| view.name(name));
    let lane = view.claim("\u{1b}[31m").unwrap();
    let drain = start(view, Memory::default(), Level::PULSE);
    ids.iter().for_each(|id| lane.recorder().scalar(*id, 0.0));
    let (_, file) = finish(drain);
    for (record, name) in file.stored(0).iter().zip(hostile) {
        assert_eq!(file.name(record), name);
    }
    assert_eq!(file.lanes()[0].name, "\u{1b}[31m");
}

#[test]
fn devices_and_dtypes_have_codes_until_there_are_no_more() {
    static PROBE: Probe<Counting, 1, 64, 1024> = Probe::new();
    let view = PROBE.view();
    let drain = start(view, Memory::default(), Level::PULSE);
    let lane = view.claim("a").unwrap();
    let devices: Vec<_> = (0..300).map(|i| view.device(&format!("device {i}"))).collect();
    assert_eq!((devices[0], devices[253]), (DeviceCode(1), DeviceCode(254)));
    assert!(devices[254..].iter().all(|code| *code == DeviceCode::OTHER));
    assert_eq!(view.device("device 7"), devices[7]);
    let dtypes: Vec<_> = (0..200).map(|i| view.dtype(&format!("dtype {i}"))).collect();
    assert_eq!((dtypes[0], dtypes[126]), (DType(128), DType(254)));
    assert!(dtypes[127..].iter().all(|code| *code == DType::OTHER));
    let known = DType::KNOWN[0];
    assert_eq!(view.dtype(known.name().unwrap()), known);
    lane.recorder().scalar(NameId::NONE, 0.0);
    let (_, file) = finish(drain);
    let frames = file.frames();
    for (i, code) in devices.iter().enumerate().take(254) {
        let name = format!("device {i}");
        let named = frames.iter().filter(|frame| {
            matches!(frame, Frame::Device(device) if device.code == *code && device.name == name)
        });
        assert_eq!(named.count(), 2, "where it is new, and at the end");
    }
    let named = frames.iter().filter(|frame| matches!(frame, Frame::DType(_))).count();
    assert_eq!(named, 2 * 127);
}
