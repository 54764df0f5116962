//! Traces cut, flipped and spoilt: no panic, and the neighbour's verdict every time.

mod trace_support;

use proptest::prelude::*;
use trace_support::{Neighbour, lines, samples};

const SCHEMAS: [&str; 3] =
    ["candle-graph/trace/10", "candle-graph/trace/9", "candle-graph/trace/8"];

/// The small samples; the large ones are made of the same lines.
fn small_samples() -> Vec<(String, Vec<u8>)> {
    samples().into_iter().filter(|(_, bytes)| bytes.len() < 2_000).step_by(6).collect()
}

#[test]
fn a_file_cut_anywhere_gets_the_neighbours_verdict() {
    let mut neighbour = Neighbour::new();
    let every = lines::jsonl(&lines::all(SCHEMAS[0])).into_bytes();
    assert_eq!(neighbour.agrees(&every, "every kind of line"), None);
    for (name, bytes) in small_samples().into_iter().chain([("every".to_owned(), every)]) {
        for end in (0..bytes.len()).step_by(3) {
            neighbour.agrees(&bytes[..end], &format!("{name} cut at {end}"));
        }
    }
}

#[test]
fn a_file_with_any_byte_replaced_gets_the_neighbours_verdict() {
    const REPLACEMENTS: [u8; 14] = *b"\0\n \"\\{}[],:0e\xFF";
    let mut neighbour = Neighbour::new();
    let every = lines::jsonl(&lines::all(SCHEMAS[0])).into_bytes();
    for at in 0..every.len() {
        let original = every[at];
        let rotating = REPLACEMENTS[at % REPLACEMENTS.len()];
        for byte in [original ^ 1, original ^ 0x20, original ^ 0x80, rotating] {
            let mut spoilt = every.clone();
            spoilt[at] = byte;
            neighbour.agrees(&spoilt, &format!("byte {byte:#04x} at {at}"));
        }
    }
}

/// What may stand in the place of a value.
fn value() -> impl Strategy<Value = String> {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let values = [
        "null",
        "true",
        "0",
        "1",
        "-1",
        "-0",
        "1.0",
        "1e2",
        "0.0",
        "-0.0",
        "5e-324",
        "1e999",
        "18446744073709551615",
        "18446744073709551616",
        "9007199254740993",
        "0.1",
        "\"\"",
        "\" \\u00a0\"",
        "\"s1\"",
        "\"s2\"",
        "\"t\\u0031\"",
        "\"\\ud800\"",
        "\"complete\"",
        "\"failed\"",
        "\"partial\"",
        "\"function\"",
        "\"Function\"",
        "\"alloc\"",
        "\"call\"",
        "\"zero\"",
        "\"train\"",
        "\"host\"",
        "[]",
        "{}",
        "[1]",
        "[\"a\"]",
        "[0, 18446744073709551615]",
        "[18446744073709551615, 2, 0]",
        "[null]",
        "[1.5]",
        "{\"a\":1}",
        "{\"function\":null}",
        "{\"function\":{}}",
        "{\"present\":{}}",
        "{\"forward\":[]}",
        "{\"alloc\":null}",
        "[\"vb\",\"w\",\"f\"]",
        "[[\"vb\",\"w\",\"f\"]]",
        "{\"train\":{}}",
        "{\"call\":null}",
        "{\"x\":1e999}",
        "{\"x\":\"\\udc00\"}",
    ];
    let mut values: Vec<String> = values.map(str::to_owned).to_vec();
    values.extend([deep(126), deep(127), deep(128)]);
    prop::sample::select(values)
}

#[derive(Debug, Clone)]
enum Spoil {
    Remove,
    Replace(String),
    /// The same key again, at the end or beside itself.
    Twice(String, bool),
    Rename(String),
    /// A key that nobody knows, or that another kind has, at the front or the end.
    Add(String, String, bool),
    /// The keys in another order.
    Rotate(usize),
    /// The line as an array of its values.
    Array,
    /// Space, or what Unicode takes for it, around the line.
    Space(String),
    /// The same inside a nested object.
    Inside(Box<Spoil>),
}

fn spoil() -> impl Strategy<Value = Spoil> {
    let key = || {
        prop::sample::select(vec![
            "x",
            "kind",
            "edge_kind",
            "id",
            "span_id",
            "shape",
            "norm",
            "reason",
            "schema",
            "label",
            "k\u{131}nd",
            "",
            "timestamp_ns",
            "step",
            "run",
        ])
        .prop_map(str::to_owned)
    };
    let spaces = vec![" ", "\t", "\r", "\u{a0}", "\u{85}", "\u{2028}", "\u{feff}", "\u{b}", "\n"];
    let leaf = prop_oneof![
        2 => Just(Spoil::Remove),
        6 => value().prop_map(Spoil::Replace),
        2 => (value(), any::<bool>()).prop_map(|(value, end)| Spoil::Twice(value, end)),
        1 => key().prop_map(Spoil::Rename),
        3 => (key(), value(), any::<bool>()).prop_map(|(k, v, end)| Spoil::Add(k, v, end)),
        2 => (1..9_usize).prop_map(Spoil::Rotate),
        1 => Just(Spoil::Array),
        1 => prop::sample::select(spaces).prop_map(|space| Spoil::Space(space.to_owned())),
    ];
    leaf.prop_recursive(2, 4, 1, |inner| inner.prop_map(|spoil| Spoil::Inside(Box::new(spoil))))
}

/// Spoils the field of an object that is `pick`ed.
fn apply(text: &str, pick: usize, spoil: &Spoil) -> String {
    let Ok(serde_json::Value::Object(object)) = serde_json::from_str(text) else {
        return text.to_owned();
    };
    let mut fields = lines::fields(&object);
    if fields.is_empty() {
        return text.to_owned();
    }
    let at = pick % fields.len();
    match spoil {
        Spoil::Remove => drop(fields.remove(at)),
        Spoil::Replace(value) => fields[at].1.clone_from(value),
        Spoil::Twice(value, end) => {
            let again = (fields[at].0.clone(), value.clone());
            fields.insert(if *end { fields.len() } else { at }, again);
        }
        Spoil::Rename(key) => fields[at].0.clone_from(key),
        Spoil::Add(key, value, end) => {
            let place = if *end { fields.len() } else { 0 };
            fields.insert(place, (key.clone(), value.clone()));
        }
        Spoil::Rotate(by) => {
            let by = by % fields.len();
            fields.rotate_left(by);
        }
        Spoil::Array => {
            let values: Vec<String> = fields.into_iter().map(|(_, value)| value).collect();
            return format!("[{}]", values.join(","));
        }
        Spoil::Space(space) => return format!("{space}{text}{space}"),
        Spoil::Inside(spoil) => {
            let nested = fields.iter_mut().filter(|(_, value)| value.starts_with(['{', '[']));
            let nested: Vec<_> = nested.collect();
            let count = nested.len().max(1);
            if let Some((_, value)) = nested.into_iter().nth(pick % count) {
                *value = apply(value.trim_matches(['[', ']']), pick / count, spoil);
            }
        }
    }
    lines::text(&fields)
}

#[derive(Debug, Clone)]
enum Move {
    Swap(usize, usize),
    Repeat(usize, usize),
    Drop(usize),
    Blank(usize),
}

fn moves() -> impl Strategy<Value = Move> {
    let at = || 0..16_usize;
    prop_oneof![
        (at(), at()).prop_map(|(a, b)| Move::Swap(a, b)),
        (at(), at()).prop_map(|(a, b)| Move::Repeat(a, b)),
        at().prop_map(Move::Drop),
        at().prop_map(Move::Blank),
    ]
}

fn moved(mut lines: Vec<String>, moves: &[Move]) -> Vec<String> {
    for step in moves {
        let len = lines.len();
        if len == 0 {
            break;
        }
        match *step {
            Move::Swap(a, b) => lines.swap(a % len, b % len),
            Move::Repeat(from, to) => lines.insert(to % len, lines[from % len].clone()),
            Move::Drop(at) => drop(lines.remove(at % len)),
            Move::Blank(at) => lines.insert(at % len, " \u{2003}\r".to_owned()),
        }
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn one_spoilt_field_gets_the_neighbours_verdict(
        (line, pick, spoil) in (0..16_usize, any::<usize>(), spoil()),
    ) {
        let mut all = lines::all(SCHEMAS[0]);
        let line = line % all.len();
        let mut texts: Vec<String> = all.drain(..).map(|line| lines::jsonl(&[line])).collect();
        texts[line] = apply(texts[line].trim_end(), pick, &spoil) + "\n";
        let text = texts.concat();
        Neighbour::new().agrees(text.as_bytes(), &format!("line {}: {spoil:?}", line + 1));
    }

    #[test]
    fn several_spoilt_fields_and_lines_get_the_neighbours_verdict(
        schema in prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(2)],
        spoils in prop::collection::vec((0..16_usize, any::<usize>(), spoil()), 0..3),
        moves in prop::collection::vec(moves(), 0..3),
    ) {
        let mut texts: Vec<String> = lines::all(SCHEMAS[schema])
            .iter()
            .map(|line| lines::jsonl(std::slice::from_ref(line)).trim_end().to_owned())
            .filter(|line| schema == 0 || !line.contains("tensor_stats"))
            .collect();
        for (line, pick, spoil) in &spoils {
            let at = line % texts.len();
            texts[at] = apply(&texts[at], *pick, spoil);
        }
        let text = moved(texts, &moves).join("\n");
        Neighbour::new().agrees(text.as_bytes(), "spoilt");
    }
}
