//! Every sample file gets the same verdict from this reader and from the real neighbour.

mod trace_support;

use tmrun_formats::trace::{JsonFault, Place, ReadError, Refusal, TraceDocument, TracePart};
use trace_support::{Neighbour, lines, samples};

#[test]
fn every_sample_gets_the_neighbours_verdict_and_its_name_says_which() {
    let mut neighbour = Neighbour::new();
    for (name, bytes) in samples() {
        let refused = neighbour.agrees(&bytes, &name);
        let bad = match &*name {
            // Read, though no graph can be made of it.
            "bad-node-id-collision.jsonl" => false,
            // What is outside of its parent is also behind the end of the run.
            "inv-child-outside-parent.jsonl" => true,
            other => other.starts_with("bad-"),
        };
        assert_eq!(refused.is_some(), bad, "{name}: {refused:?}");
    }
}

fn rejection(name: &str) -> ReadError {
    let found = samples().into_iter().find(|(found, _)| found == name);
    let (_, bytes) = found.unwrap_or_else(|| panic!("no sample {name}"));
    TraceDocument::read(&bytes).expect_err(name)
}

#[test]
fn a_rejection_says_what_is_wrong_and_where() {
    let rejection = |name: &str| rejection(&format!("bad-{name}.jsonl"));
    assert_eq!(rejection("after-terminal"), ReadError::AfterTerminal { line: 7, terminal: 6 });
    assert_eq!(rejection("two-meta"), ReadError::SecondMeta { line: 2 });
    assert_eq!(rejection("dup-end"), ReadError::EndTwice { line: 5, first: 4, id: "s2".into() });
    assert!(matches!(rejection("dup-start"), ReadError::SpanTwice { .. }));
    assert!(matches!(rejection("end-unknown"), ReadError::EndWithoutStart { .. }));
    assert!(matches!(rejection("terminal-early"), ReadError::EndsEarly { .. }));
    assert!(matches!(rejection("stats-in-trace9"), ReadError::StatsBeforeV10 { .. }));
    let refused = |name: &str| match rejection(name) {
        ReadError::Refused { refusal, .. } => refusal,
        other => panic!("{name}: {other}"),
    };
    assert_eq!(refused("stats-blank-label"), Refusal::BlankLabel);
    assert!(matches!(refused("stats-elements"), Refusal::Elements { product: Some(_), .. }));
    let Err(ReadError::Json { place, fault: JsonFault::WrongShape, detail }) =
        TraceDocument::read(b"{\"kind\":\"op\"}")
    else {
        panic!("expected a fault of shape");
    };
    assert!(detail.contains("missing field"), "{detail}");
    assert!(matches!(place, Place::Text { line: 1, .. } | Place::Line(1)), "{place}");
}

#[test]
fn a_value_of_the_wrong_type_is_placed_at_its_column() {
    let line = " {\"kind\":\"span_end\",\"id\":7}";
    let text = format!("\n{line}\n");
    let Err(ReadError::Json { place: Place::Text { line, column, offset }, .. }) =
        TraceDocument::parse(&text)
    else {
        panic!("expected a placed fault");
    };
    assert_eq!((line, text.as_bytes().get(offset)), (2, Some(&b'7')), "column {column}");
    assert_eq!(offset, 1 + column - 1);
}

#[test]
fn inputs_that_are_no_trace_are_named() {
    assert_eq!(TraceDocument::read(b" \n\t"), Err(ReadError::Empty));
    assert_eq!(TraceDocument::read(b"\xEF\xBB\xBF{}"), Err(ReadError::ByteOrderMark));
    assert_eq!(TraceDocument::read(b"{\"\xFF\"}"), Err(ReadError::NotUtf8 { offset: 2 }));
    let start = lines::jsonl(&[lines::terminal()]);
    let found = "terminal";
    assert_eq!(TraceDocument::parse(&start), Err(ReadError::MetaNotFirst { line: 1, found }));
    let meta = lines::jsonl(&[lines::meta("candle-graph/trace/10")]);
    assert_eq!(TraceDocument::parse(&meta), Err(ReadError::NoTerminal));
    let newer = lines::jsonl(&lines::all("candle-graph/trace/11"));
    let found = "candle-graph/trace/11".to_owned();
    assert_eq!(TraceDocument::parse(&newer), Err(ReadError::UnsupportedSchema { line: 1, found }));
}

/// However a trace is cut between lines, its parts make the whole, and an error names the line of
/// the whole.
#[test]
fn parts_make_the_whole_wherever_they_are_cut() {
    for (name, bytes) in samples() {
        let text = std::str::from_utf8(&bytes).expect("a sample is text");
        let whole = TraceDocument::parse(text);
        let breaks: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for (&first, &second) in breaks.iter().zip(breaks.iter().skip(2)) {
            let cuts = [0, first, second, text.len()];
            let parts = cuts.windows(2).map(|cut| TracePart::parse(&text[cut[0]..cut[1]]));
            assert_eq!(TraceDocument::assemble(parts), whole, "{name} cut at {first}, {second}");
        }
    }
}
