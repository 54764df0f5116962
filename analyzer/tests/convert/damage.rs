//! Damaged and cut files convert as far as they are whole, and list what they lack.

use tmrun::convert::{Options, Plan};
use tmrun::scan::Recording;
use tmrun_formats::wire::{Kind, Op, Record};
use tmrun_formats::{GapReason, TensorId};

use crate::make::{BARE, convert, document, lanes, lines, op, rec, tensor, trace};
use crate::support::damaged_second_step;
use crate::support::naive::chunks;

fn file() -> Vec<u8> {
    let ops: Vec<Record> = vec![rec(BARE, 0, &op(2_100, 0)); 10];
    lanes(&[(0, &ops), (1, &ops), (0, &ops)])
}

#[test]
fn a_corrupt_chunk_is_a_gap_and_the_others_convert() {
    let whole = file();
    let second = chunks(&whole)[2];
    let mut damaged = whole.clone();
    damaged[second.offset + 100] ^= 1;
    let found = document(&damaged, Options::default());
    assert_eq!(found["operations"].as_array().map(Vec::len), Some(20));
    assert_eq!(found["gaps"][0]["reason"], "corrupt");
    assert_eq!((&found["gaps"][0]["records"], &found["gaps"][0]["lane"]), (&10.into(), &1.into()));
    let text = convert(&damaged, lines()).expect("converted");
    let meta = text.split(|&byte| byte == b'\n').next().expect("a line");
    let meta: serde_json::Value = serde_json::from_slice(meta).expect("JSON");
    assert_eq!(meta["gaps"], found["gaps"]);
}

#[test]
fn a_step_that_may_have_been_in_a_corrupt_chunk_is_lost_and_not_unknown() {
    let (whole, damaged) = damaged_second_step();
    let of = |step| Options { step: Some(step), ..Options::default() };
    convert(&whole, of(7)).expect_err("there is no such step");
    let recording = Recording::open(&damaged, "test").expect("a header");
    let plan = Plan::of(&recording, of(2)).expect("a plan");
    assert!(plan.is_gone() && plan.is_empty());
    assert_eq!(plan.lost().map(|gap| gap.records).collect::<Vec<_>>(), [2]);
    assert_eq!(document(&damaged, of(2))["gaps"][0]["reason"], "corrupt");
    let plan = Plan::of(&recording, of(3)).expect("a plan");
    assert!(!plan.is_gone(), "this one is there");
}

#[test]
fn the_end_of_a_step_whose_beginning_is_lost_leaves_no_dead_one_open_for_sure() {
    use crate::support::Builder;
    use crate::support::record::{scalar, step};
    let file = Builder::new()
        .meta(&crate::make::frames())
        .records(0, &[step(1_000, 5, false)])
        .records(0, &[step(1_900, 5, true), step(2_000, 6, false)])
        .records(0, &[step(2_900, 6, true), scalar(2_950, BARE, 0.5)])
        .records(0, &[scalar(2_960, BARE, 0.5)])
        .finish();
    let doubtful =
        |file: &[u8]| document(file, Options::default())["notes"]["doubtful_step"].clone();
    assert!(doubtful(&file).as_u64().is_none_or(|count| count == 0));
    let mut damaged = file.clone();
    damaged[chunks(&file)[2].offset + 100] ^= 1;
    assert_eq!(doubtful(&damaged), 2);
}

#[test]
fn names_of_a_corrupt_chunk_are_placeholders_and_lost() {
    let mut damaged = file();
    damaged[chunks(&file())[0].offset + 70] ^= 1;
    let recording = Recording::open(&damaged, "test").expect("a header");
    let plan = Plan::of(&recording, Options::default()).expect("a plan");
    assert!(plan.lost().any(|gap| gap.reason == GapReason::CORRUPT));
    let found = document(&damaged, Options::default());
    assert_eq!(found["operations"][0]["source"], "unnamed:4");
    assert_eq!(found["operations"][0]["op"], "unnamed:5");
    assert_eq!(found["notes"]["unnamed"], 60);
}

#[test]
fn wherever_the_file_is_cut_what_is_left_is_a_valid_trace() {
    let whole = file();
    for len in (64..whole.len()).step_by(37) {
        let cut = &whole[..len];
        let recording = Recording::open(cut, "test").expect("a header");
        let plan = Plan::of(&recording, Options::default()).expect("a plan");
        let mut out = Vec::new();
        plan.write(&mut out, &|_| ()).expect("written");
        let trace = trace(&out);
        let complete = chunks(cut).iter().filter(|chunk| chunk.kind == 1).count();
        assert_eq!(trace.operations.len(), complete * 10, "{len}");
        assert_eq!(trace.gaps.len(), recording.gaps().len());
    }
}

#[test]
fn any_flipped_bit_ends_in_a_valid_trace_or_an_error() {
    let whole = file();
    for at in (64..whole.len()).step_by(61) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        for options in [Options::default(), lines()] {
            if let Ok(out) = convert(&damaged, options) {
                trace(&out);
            }
        }
    }
}

#[test]
fn records_of_random_words_convert_to_valid_json() {
    // Whatever words the records hold, as long as the chunk is intact.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..200 {
        let mut records: Vec<Record> = Vec::new();
        for _ in 0..40 {
            let mut words: [u64; 8] = std::array::from_fn(|_| next());
            // Small names, so that some are known, and a kind of this version.
            words[1] &= !0xFFFF_FFF0;
            let kind = 1 + next() % 20;
            words[2] = kind << 32 | (next() & 0x7FFF) << 48;
            let record = Record::from_words(words);
            if !matches!(record.kind(), Some(Kind::OpInput | Kind::Shape | Kind::Stats)) {
                records.push(record);
                continue;
            }
            // Those stand behind a head: any of the two that they can belong to.
            words[2] |= 1 << 63;
            let op = next() % 2 == 0;
            records.push(if op { rec(BARE, 0, &op_of(next())) } else { rec(BARE, 0, &tensor()) });
            records.push(Record::from_words(words));
        }
        let file = lanes(&[(3, &records)]);
        let recording = Recording::open(&file, "test").expect("a header");
        assert_eq!(recording.findings(), [], "the chunk is intact");
        for phase in [tmrun_formats::Phase::TRAIN, tmrun_formats::Phase::INFER] {
            let options = Options { phase: Some(phase), ..Options::default() };
            if let Ok(out) = convert(&file, options) {
                trace(&out);
            }
        }
    }
}

fn op_of(words: u64) -> Op {
    Op { inputs: words as u8, output: TensorId(words), ..op(words, 0) }
}
