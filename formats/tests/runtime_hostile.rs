//! Samples cut and flipped at every position: no panic, and the neighbour's verdict every time.

mod runtime_support;

use runtime_support::{samples, their_verdict};
use tmrun_formats::runtime::read;

fn every_sample() -> Vec<(String, Vec<u8>)> {
    ["valid", "invalid", "audit", "."].into_iter().flat_map(samples).collect()
}

fn compare(name: &str, bytes: &[u8], what: &str) {
    let (ours, theirs) = (read(bytes), their_verdict(bytes));
    assert_eq!(
        ours.is_ok(),
        theirs.is_ok(),
        "{name} {what}: ours {:?}, theirs {:?}\n{}",
        ours.err(),
        theirs.err(),
        String::from_utf8_lossy(bytes)
    );
}

#[test]
fn a_file_cut_anywhere_gets_the_neighbours_verdict() {
    for (name, bytes) in every_sample() {
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).expect("in range");
            compare(&name, cut, &format!("cut at {end}"));
        }
    }
}

#[test]
fn a_file_with_any_byte_replaced_gets_the_neighbours_verdict() {
    const REPLACEMENTS: [u8; 14] = *b"\0\n \"\\{}[],:0e\xFF";
    for (name, bytes) in every_sample() {
        let mut mutated = bytes.clone();
        for at in 0..bytes.len() {
            let original = bytes.get(at).copied().expect("in range");
            let flips = [original ^ 0x01, original ^ 0x20, original ^ 0x80];
            for (index, byte) in flips.into_iter().chain(REPLACEMENTS).enumerate() {
                // All flips everywhere; of the replacements a rotating one, to keep the test short.
                if index >= flips.len() && (at + index) % REPLACEMENTS.len() != 0 {
                    continue;
                }
                *mutated.get_mut(at).expect("in range") = byte;
                compare(&name, &mutated, &format!("with byte {byte:#04x} at {at}"));
            }
            *mutated.get_mut(at).expect("in range") = original;
        }
    }
}
