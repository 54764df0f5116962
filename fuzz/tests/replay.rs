//! Replays every committed input, and small mutations of each, through its target.

use std::path::Path;

use tmrun_fuzz::TARGETS;

/// The inputs of a target: its corpus, and what lies in `testdata` for the same parser.
fn inputs(target: &str) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared: &[&str] = match target {
        "tmrun_file" | "tmrun_salvage" => &["../testdata/v1"],
        "meta_frame" | "bundle_manifest" | "nsight_csv" => &[],
        "trace_jsonl" | "evidence" => &["../testdata/trace"],
        _ => &["../testdata/runtime/valid", "../testdata/runtime/audit"],
    };
    let folders = shared.iter().map(|folder| here.join(folder));
    let folders = folders.chain([here.join("corpus").join(target)]);
    folders
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .map(|entry| std::fs::read(entry.expect("readable folder").path()).expect("readable file"))
        .collect()
}

#[test]
fn every_target_has_inputs_and_survives_them_and_their_mutations() {
    for (name, target) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "{name} has no inputs");
        for input in inputs {
            target(&input);
            let step = (input.len() / 64).max(1);
            for at in (0..input.len()).step_by(step) {
                target(&input[..at]);
                for bit in [1, 0x10, 0x80] {
                    let mut flipped = input.clone();
                    flipped[at] ^= bit;
                    target(&flipped);
                }
            }
        }
    }
}
