//! `docs/FORMAT.md` says what the code does: its dump, and every table of codes, flags and places.

mod wire_support;

use tmrun_formats::wire::*;
use tmrun_formats::*;

const PAGE: &str = include_str!("../../docs/FORMAT.md");

/// The rows of the first table below a heading: its cells without backticks.
fn table(heading: &str) -> Vec<Vec<String>> {
    let is_heading = |line: &&str| {
        let text = line.trim_start_matches('#').trim_start();
        let number = |c: char| c.is_ascii_digit() || c == '.' || c == ' ';
        line.starts_with('#') && text.trim_start_matches(number).replace('`', "") == heading
    };
    let mut lines = PAGE.lines().skip_while(|line| !is_heading(line));
    assert!(lines.next().is_some(), "no heading {heading:?}");
    lines
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|row| {
            let cells = row.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().replace('`', "")).collect()
        })
        .collect()
}

/// Some columns of a table.
fn columns<const N: usize>(heading: &str, columns: [usize; N]) -> Vec<[String; N]> {
    table(heading).iter().map(|row| columns.map(|column| row[column].clone())).collect()
}

#[test]
fn the_dump_is_what_the_code_writes() {
    let file = wire_support::tiny();
    let lines = PAGE.lines().skip_while(|line| *line != "# File header");
    let mut at = 0;
    for line in lines.take_while(|line| *line != "```") {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (offset, rest) = line.split_once("  ").expect("an offset");
        assert_eq!(usize::from_str_radix(offset, 16), Ok(at), "{line}");
        let bytes = rest.split("  ").next().expect("bytes");
        let bytes: Vec<u8> = match bytes.split_once(" * ") {
            Some(("00", count)) => vec![0; count.trim().parse().expect("a count")],
            _ => {
                let byte = |text| u8::from_str_radix(text, 16).expect("a byte");
                bytes.split_whitespace().map(byte).collect()
            }
        };
        assert_eq!(file.get(at..at + bytes.len()), Some(&bytes[..]), "{line}");
        at += bytes.len();
    }
    assert_eq!(at, file.len(), "the dump ends where the file does");
}

#[test]
fn the_page_names_every_code() {
    macro_rules! codes {
        ($($codes:ident),*) => {$(
            let known = $codes::KNOWN.iter().map(|code| {
                [code.0.to_string(), code.name().expect("known").to_string()]
            });
            assert_eq!(
                columns(stringify!($codes), [0, 1]),
                known.collect::<Vec<_>>(),
                stringify!($codes)
            );
        )*};
    }
    codes!(
        ChunkKind,
        Phase,
        ExecutionStep,
        SpanKind,
        Category,
        GradientState,
        EdgeKind,
        LevelSource,
        DType,
        DeviceCode,
        ClockCode,
        GapReason
    );
}

#[test]
fn the_page_names_every_plane() {
    let named = (0..32).flat_map(|bit| {
        let plane = Planes(1 << bit);
        plane.names().map(move |name| [bit.to_string(), name.to_string()]).collect::<Vec<_>>()
    });
    assert_eq!(columns("Planes", [0, 1]), named.collect::<Vec<_>>());
}

#[test]
fn the_page_names_every_kind_with_its_level_and_plane() {
    let known = Kind::ALL.iter().map(|&kind| {
        let plane = kind.plane().names().collect::<Vec<_>>().join(" ");
        let (code, level) = (kind as u8, kind.level().0);
        [code.to_string(), kind.name().to_string(), level.to_string(), plane]
    });
    assert_eq!(columns("Kinds", [0, 1, 2, 3]), known.collect::<Vec<_>>());
}

/// Name and type or value of each declaration `pub NAME: TYPE` in a source file, by the item that
/// they are in.
fn declared<'a>(source: &'a str, item: &str) -> Vec<(&'a str, &'a str)> {
    let body = source.split_once(item).unwrap_or_else(|| panic!("no {item:?}")).1;
    let body = body.lines().skip(1).take_while(|line| line.trim() != "}");
    body.filter_map(|line| line.trim().trim_end_matches(',').split_once(": "))
        .filter(|(name, _)| !name.starts_with("//") && !name.starts_with('#'))
        .map(|(name, value)| (name.trim_start_matches("pub "), value))
        .collect()
}

#[test]
fn the_page_places_every_field_of_every_payload() {
    const SOURCE: &str = include_str!("../src/wire/payload.rs");
    macro_rules! payloads {
        ($($payload:ident),*) => {$(
            let kind = format!("{:?}", $payload::KIND);
            let rows = columns::<4>(&kind, [0, 1, 2, 3]);
            let item = format!(" {}: {kind} {{", stringify!($payload));
            let in_code = declared(SOURCE, &item).into_iter().map(|(name, value)| {
                let (kind, offset) = value.split_once(" = ").expect("an offset");
                [offset, kind, name].map(str::to_string)
            });
            let written = rows.iter().map(|[offset, _, kind, name]| [offset, kind, name].map(String::clone));
            assert_eq!(written.collect::<Vec<_>>(), in_code.collect::<Vec<_>>(), "{kind}");

            let mut places = [0; 40];
            for [offset, size, ..] in &rows {
                let (offset, size): (usize, usize) =
                    (offset.parse().expect("an offset"), size.parse().expect("a size"));
                places[offset..offset + size].fill(0xFF);
            }
            let used = $payload::from_words(&[u64::MAX; 5]).words().map(u64::to_le_bytes);
            assert_eq!(used.as_flattened(), places, "{kind}");
        )*};
    }
    payloads!(
        Span,
        Step,
        Op,
        OpInput,
        Tensor,
        Shape,
        Stats,
        Range,
        Scalar,
        Gradient,
        Alloc,
        Free,
        DeviceMemory,
        DeviceInterval,
        Edge,
        LevelChange,
        Control,
        Gap,
        Hit,
        ClockSync
    );
}

#[test]
fn the_page_gives_every_flag_its_bits() {
    const SOURCE: &str = include_str!("../src/wire/flags.rs");
    let declared = SOURCE.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("pub const ")?.split_once(": u16 = ")?;
        let value = value.trim_end_matches(';');
        let number = |text: &str| match text.strip_prefix("0b") {
            Some(bits) => u16::from_str_radix(bits, 2).expect("bits"),
            None => text.parse().expect("a number"),
        };
        let value = match value.split_once(" << ") {
            Some((bits, by)) => number(bits) << number(by),
            None => number(value),
        };
        Some([name.to_string(), format!("{value:#06x}")])
    });
    let written = columns("Flags", [0, 1]);
    assert_eq!(written, declared.collect::<Vec<_>>());
    assert!(written.contains(&["CONTINUES".into(), format!("{:#06x}", flags::CONTINUES)]));
    assert!(written.contains(&["SHAPE_DIMS".into(), format!("{:#06x}", flags::SHAPE_DIMS)]));
}

#[test]
fn the_page_lists_every_frame_field_by_field() {
    const FRAMES: &str = include_str!("../src/wire/frame/mod.rs");
    const BODIES: &str = include_str!("../src/wire/frame/body.rs");
    let frames = FRAMES.split_once("\nframes! {").expect("the list of frames").1;
    let mut listed = 0;
    for line in frames.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        let Some((name, rest)) = line.split_once(" = ") else { continue };
        let (numbers, body) = rest.trim_end_matches(';').split_once(": ").expect("a body");
        let (kind, version) = numbers.split_once(", ").expect("kind and version");
        let written = columns::<2>(&format!("{name}: kind {kind}, version {version}"), [0, 1]);
        let declared = declared(BODIES, &format!("pub struct {body} {{"));
        let declared = declared.iter().map(|(name, kind)| {
            let kind = kind.replace("&'a str", "string").replace("&'a [u8]", "bytes");
            let optional = kind.strip_prefix("Option<").map(|kind| kind.replace('>', "?"));
            [name.to_string(), optional.unwrap_or(kind)]
        });
        assert_eq!(written, declared.collect::<Vec<_>>(), "{name}");
        listed += 1;
    }
    assert_eq!(listed, wire_support::every::frames().len());
    let headings = PAGE.lines().filter(|line| line.contains(": kind ") && line.starts_with("####"));
    assert_eq!(headings.count(), listed);
}

/// Which bytes differ, as offset and size.
fn place(plain: &[u8], changed: &[u8], sealed: usize) -> [String; 2] {
    let differs = |i: &usize| plain[*i] != changed[*i];
    let first = (0..sealed).find(differs).expect("something changed");
    let last = (0..sealed).rfind(differs).expect("something changed");
    assert!((first..=last).all(|i| differs(&i)), "the field is in one piece");
    [first.to_string(), (last + 1 - first).to_string()]
}

/// Holds the rows of a table against which bytes change when a field does.
macro_rules! places {
    ($heading:literal, $sealed:literal, $plain:expr, $encode:expr, $($name:literal: |$value:ident| $change:expr;)*) => {{
        let rows = columns::<3>($heading, [2, 0, 1]);
        let encode = $encode;
        let mut found = Vec::new();
        $(
            let mut $value = $plain;
            $change;
            let [offset, size] = place(&encode($plain), &encode($value), $sealed);
            found.push([$name.to_string(), offset, size]);
        )*
        let fixed = ["magic", "version", "record size", "CRC", "", "payload"];
        let rows = rows.into_iter().filter(|[name, ..]| !fixed.contains(&name.as_str()));
        assert_eq!(rows.collect::<Vec<_>>(), found, $heading);
    }};
}

#[test]
fn the_page_places_every_field_of_the_headers() {
    const ONES: u64 = u64::MAX;
    let file = FileHeader { run: RunId([0; 16]), created_ns: 0, ticks_per_second: 0 };
    places!("File header", 60, file, |h: FileHeader| h.encode(),
        "run": |h| h.run = RunId([0xFF; 16]);
        "created_ns": |h| h.created_ns = ONES;
        "ticks_per_second": |h| h.ticks_per_second = ONES;
    );
    let chunk = ChunkHeader {
        kind: ChunkKind(0),
        flags: 0,
        lane: LaneId(0),
        number: 0,
        payload_len: 0,
        records: 0,
        first_sequence: 0,
        first_span: 0,
        least: Ticks(0),
        greatest: Ticks(0),
        payload_crc: 0,
    };
    places!("Chunk", 60, chunk, |h: ChunkHeader| h.encode(),
        "kind": |h| h.kind = ChunkKind(0xFF);
        "flags": |h| h.flags = 0xFF;
        "lane": |h| h.lane = LaneId(0xFFFF);
        "number": |h| h.number = ONES;
        "payload_len": |h| h.payload_len = u32::MAX;
        "records": |h| h.records = u32::MAX;
        "first_sequence": |h| h.first_sequence = ONES;
        "first_span": |h| h.first_span = ONES;
        "least": |h| h.least = Ticks(ONES);
        "greatest": |h| h.greatest = Ticks(ONES);
        "payload_crc": |h| h.payload_crc = u32::MAX;
    );
    let head = IndexHead { previous: 0, least: Ticks(0) };
    places!("Index head", 64, head, |h: IndexHead| h.encode(),
        "previous": |h| h.previous = ONES;
        "least": |h| h.least = Ticks(ONES);
    );
    let entry = IndexEntry::of(&chunk, 0);
    places!("Index entry", 64, entry, |e: IndexEntry| e.encode(),
        "offset": |e| e.offset = ONES;
        "number": |e| e.number = ONES;
        "first_sequence": |e| e.first_sequence = ONES;
        "least": |e| e.least = Ticks(ONES);
        "greatest": |e| e.greatest = Ticks(ONES);
        "running_least": |e| e.running_least = Ticks(ONES);
        "payload_len": |e| e.payload_len = u32::MAX;
        "records": |e| e.records = u32::MAX;
        "lane": |e| e.lane = LaneId(0xFFFF);
        "kind": |e| e.kind = ChunkKind(0xFF);
    );
    let trailer = Trailer { chunks: 0, records: 0, last_index: 0, offset: 0 };
    places!("Trailer", 60, trailer, |t: Trailer| t.encode(),
        "chunks": |t| t.chunks = ONES;
        "records": |t| t.records = ONES;
        "last_index": |t| t.last_index = ONES;
        "offset": |t| t.offset = ONES;
    );
    let header = RecordHeader { kind: 0, ..RecordHeader::of::<Scalar>(Level(0)) };
    let encode = |h: RecordHeader| {
        let [a, b, c] = h.words();
        *Record::from_words([a, b, c, 0, 0, 0, 0, 0]).as_bytes()
    };
    places!("The record", 64, header, encode,
        "ticks": |h| h.ticks = Ticks(ONES);
        "name": |h| h.name = NameId(u32::MAX);
        "span": |h| h.span = u32::MAX;
        "seq": |h| h.seq = u32::MAX;
        "kind": |h| h.kind = 0xFF;
        "level": |h| h.level = Level(0xFF);
        "flags": |h| h.flags = 0xFFFF;
    );
}

#[test]
fn the_page_gives_the_constants_of_the_code() {
    let hex =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ");
    for magic in [&FILE_MAGIC[..], &CHUNK_MAGIC, &TRAILER_MAGIC] {
        assert!(PAGE.contains(&hex(magic)), "{magic:?}");
    }
    assert!(PAGE.contains(&format!("as soon as there are {INDEX_EVERY} to list")));
    assert!(PAGE.contains(&format!("1 to\n  {GROUP_MAX}: its **head**")));
    assert!(PAGE.starts_with(&format!("# The `.tmrun` file, version {VERSION}")));
    assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
    assert!(PAGE.contains("0xCBF43926"));
}

#[test]
fn the_page_places_every_field_of_the_rings_header_and_the_lane_block() {
    let written = columns("Rings header", [0, 2]);
    let placed = rings::RingsHeader::FIELDS.iter();
    let placed = placed.map(|(field, offset)| [offset.to_string(), (*field).to_owned()]);
    let fields = written.iter().skip(3).take(placed.len());
    assert_eq!(fields.cloned().collect::<Vec<_>>(), placed.collect::<Vec<_>>());
    let magic = rings::RINGS_MAGIC.map(|byte| format!("{byte:02X}")).join(" ");
    assert!(PAGE.contains(&magic));
    let header = rings::RingsHeader { slots: 64, recorder_slots: 64, ..Default::default() };
    let bytes = header.encode();
    assert_eq!(u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes")), rings::RINGS_VERSION);
    assert_eq!(crc32fast::hash(&bytes[..252]).to_le_bytes(), bytes[252..]);

    use rings::LaneImage as Lane;
    let placed = [
        ("published", Lane::PUBLISHED),
        ("reserved", Lane::RESERVED),
        ("first", Lane::FIRST),
        ("base", Lane::BASE),
        ("dropped", Lane::DROPPED),
        ("drops_at", Lane::DROPPED + 16),
        ("drop_planes", Lane::DROPPED + 32),
        ("claims", Lane::CLAIMS),
        ("claim", Lane::CLAIM),
        ("left_out", Lane::LEFT_OUT),
        ("truncated", Lane::TRUNCATED),
        ("out_of_order", Lane::OUT_OF_ORDER),
        ("open", Lane::OPEN),
        ("origin", Lane::ORIGIN),
        ("high_water", Lane::HIGH_WATER),
    ];
    let placed = placed.map(|(field, offset)| [offset.to_string(), field.to_owned()]);
    assert_eq!(columns("Lane block", [0, 2]), placed);
    assert_eq!(Lane::SIZE, 5_888);
}
