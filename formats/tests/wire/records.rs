//! Records, payloads and groups.

use proptest::prelude::*;
use tmrun_formats::wire::*;
use tmrun_formats::{Level, NameId, SpanId, Ticks};

/// Calls a macro once for the payload of every kind.
macro_rules! every_payload {
    ($call:ident) => {
        $call!(
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
        )
    };
}

fn headers() -> impl Strategy<Value = RecordHeader> {
    let numbers = any::<(u64, u32, u32, u32, u8, u8, u16)>();
    numbers.prop_map(|(ticks, name, span, seq, kind, level, flags)| RecordHeader {
        ticks: Ticks(ticks),
        name: NameId(name),
        span,
        seq,
        kind,
        level: Level(level),
        flags,
    })
}

/// Any bits, often those of a special float.
fn words() -> impl Strategy<Value = [u64; 5]> {
    let special = prop_oneof![
        Just(f64::NAN.to_bits()),
        Just(0x7FF0_0000_0000_0001), // A signalling NaN.
        Just(0xFFFF_FFFF_FFFF_FFFF),
        Just(f64::NEG_INFINITY.to_bits()),
        Just((-0.0_f64).to_bits()),
    ];
    prop::array::uniform5(prop_oneof![3 => any::<u64>(), 1 => special])
}

/// The bits that some field of the payload holds.
fn used<P: Payload>() -> [u64; 5] {
    P::from_words(&[u64::MAX; 5]).words()
}

fn decode_after_encode<P: Payload>(header: RecordHeader, words: [u64; 5]) {
    let payload = P::from_words(&words);
    let kept: [u64; 5] = core::array::from_fn(|i| words[i] & used::<P>()[i]);
    assert_eq!(payload.words(), kept, "{}: fields keep their bits, the rest is 0", P::KIND.name());

    let record = Record::new(header, &payload);
    assert_eq!(record.header(), RecordHeader { kind: P::KIND as u8, ..header });
    assert_eq!(record.kind(), Some(P::KIND));
    assert_eq!(record.payload::<P>().expect("of its kind").words(), kept);
    assert_eq!(Record::from_words(record.words()), record);
    let mut unaligned = vec![0xA5];
    unaligned.extend(record.as_bytes());
    assert_eq!(Record::slice(&unaligned[1..]), (&[record][..], &[][..]));
}

proptest! {
    #[test]
    fn a_payload_of_every_kind_survives_encoding_bit_for_bit(header in headers(), words in words()) {
        macro_rules! all { ($($payload:ident),*) => { $(decode_after_encode::<$payload>(header, words);)* } }
        every_payload!(all);
    }

    #[test]
    fn the_header_of_any_record_survives_encoding(header in headers(), words in words()) {
        let [ticks, name, rest] = header.words();
        let [a, b, c, d, e] = words;
        let record = Record::from_words([ticks, name, rest, a, b, c, d, e]);
        prop_assert_eq!(record.header(), header);
        prop_assert_eq!(record.header().words(), [ticks, name, rest]);
    }

    #[test]
    fn any_bytes_are_records_and_a_rest_shorter_than_one(bytes: Vec<u8>) {
        let (records, rest) = Record::slice(&bytes);
        let again: Vec<u8> = records.iter().flat_map(|r| *r.as_bytes()).chain(rest.to_vec()).collect();
        prop_assert_eq!(&again, &bytes);
        prop_assert!(rest.len() < RECORD_SIZE);
    }

    #[test]
    fn the_edges_of_any_record_enclose_every_tick_of_its_payload(header in headers(), words in words()) {
        fn enclosed<P: Payload>(header: RecordHeader, words: [u64; 5], ticks: impl Fn(&P) -> Vec<Ticks>) {
            let payload = P::from_words(&words);
            let (first, last) = Record::new(header, &payload).edges();
            let mut all = ticks(&payload);
            all.push(header.ticks);
            assert_eq!(all.iter().min(), Some(&first));
            assert_eq!(all.iter().max(), Some(&last));
        }
        enclosed::<Span>(header, words, |p| vec![p.end]);
        enclosed::<Op>(header, words, |p| vec![p.end]);
        enclosed::<DeviceInterval>(header, words, |p| vec![p.seen]);
        enclosed::<LevelChange>(header, words, |p| vec![p.asked, p.armed]);
        enclosed::<Gap>(header, words, |p| vec![p.first, p.last]);
        enclosed::<ClockSync>(header, words, |p| vec![p.before, p.after]);
        enclosed::<Scalar>(header, words, |_| vec![]);
        enclosed::<Tensor>(header, words, |_| vec![]);
    }

    #[test]
    fn groups_neither_lose_nor_repeat_a_record(continues in prop::collection::vec(prop::bool::weighted(0.8), 0..200)) {
        let records: Vec<Record> = continues.iter().enumerate().map(|(i, &continues)| {
            let flags = if continues { flags::CONTINUES } else { 0 };
            let header = RecordHeader { ticks: Ticks(i as u64), flags, ..RecordHeader::of::<Scalar>(Level::PULSE) };
            Record::new(header, &Scalar { value: 0.0 })
        }).collect();
        let groups: Vec<&[Record]> = groups(&records).collect();
        prop_assert_eq!(&groups.concat(), &records);
        let mut full = true;
        for group in groups {
            let (head, behind) = group.split_first().expect("no group is empty");
            prop_assert!(behind.len() < GROUP_MAX);
            prop_assert!(behind.iter().all(Record::continues));
            prop_assert!(full || !head.continues(), "a group ends only before a head, or when full");
            full = group.len() == GROUP_MAX;
        }
    }

    #[test]
    fn a_span_id_is_completed_from_any_id_of_its_neighbourhood(id in 1_u64.., first: u64, step: i32) {
        let near = id.saturating_add_signed(step.into());
        for first_span in [near, first] {
            let header = chunk(first_span);
            let found = header.span_of(id as u32);
            prop_assert_eq!(found.0 as u32, id as u32, "the low half is the record's");
            if first_span == near && id as u32 != 0 {
                prop_assert_eq!(found, SpanId(id));
            }
        }
    }
}

fn chunk(first_span: u64) -> ChunkHeader {
    let place = Place { lane: tmrun_formats::LaneId(0), sequence: 0, span: SpanId(first_span) };
    Assembler::new().records_header(place, [&[], &[]])
}

#[test]
fn span_ids_are_completed_across_the_turn_of_their_low_half() {
    const TURN: u64 = 1 << 32;
    let cases = [
        (TURN - 1, 1, TURN + 1),
        (TURN + 1, u32::MAX, TURN - 1),
        (3 * TURN - 2, 5, 3 * TURN + 5),
        (5, 7, 7),
        (1, u32::MAX, u64::from(u32::MAX)),
        (0, u32::MAX, u64::from(u32::MAX)),
        (u64::MAX, 1, u64::MAX - TURN + 2),
        (7 * TURN + 9, 0, 0),
    ];
    for (first_span, low, id) in cases {
        assert_eq!(chunk(first_span).span_of(low), SpanId(id), "{low} near {first_span}");
    }
}

#[test]
fn every_kind_has_one_payload_and_one_code() {
    let mut kinds = Vec::new();
    macro_rules! all { ($($payload:ident),*) => { kinds.extend([$($payload::KIND),*]) } }
    every_payload!(all);
    assert_eq!(kinds, Kind::ALL);
    let codes: Vec<Kind> = (0..=u8::MAX).filter_map(Kind::from_code).collect();
    assert_eq!(codes, Kind::ALL, "no other code is known");
    assert_eq!(Record::default().kind(), None, "a zeroed slot is empty");
}

#[test]
fn a_payload_is_read_only_from_a_record_of_its_kind() {
    let record = Record::new(RecordHeader::of::<Scalar>(Level::PULSE), &Scalar { value: 1.0 });
    assert_eq!(record.payload::<Scalar>(), Some(Scalar { value: 1.0 }));
    assert_eq!(record.payload::<Hit>(), None);
}

#[test]
fn a_shape_never_has_more_than_five_dimensions() {
    let shape = Shape { dims: [1, 2, 3, 4, 5] };
    let lengths: Vec<usize> = (0..8).map(|flags| shape.used(flags).len()).collect();
    assert_eq!(lengths, [0, 1, 2, 3, 4, 5, 5, 5]);
    assert_eq!(shape.used(flags::CONTINUES | 2), [1, 2]);
}
