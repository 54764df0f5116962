//! Comparisons are the neighbour's, number by number, whatever speaks against them.

#[path = "support/bare.rs"]
mod bare;
#[path = "support/traces/mod.rs"]
mod traces;

use candle_graph_v10 as theirs;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tmrun::comparison::{self, Run, compare, unverified, verified};
use tmrun_formats::comparison::{
    Comparison, ComparisonCode as Code, ComparisonInput, ComparisonVerdict,
};
use tmrun_formats::trace::TraceDocument;
use traces::cohorts::{self, Cohorts, cohorts};
use traces::{Rng, Sketch, neighbour};

/// Both documents, each as the command prints it, but for the messages.
fn same(mut ours: Comparison<'_>, mut theirs: theirs::ReplicatedComparison, of: &str) {
    for reason in &mut ours.reasons {
        assert_ne!(reason.message, "", "every reason says why");
        reason.message = "".into();
    }
    theirs.reasons.iter_mut().for_each(|reason| reason.message.clear());
    let ours = serde_json::to_string_pretty(&ours).unwrap();
    let theirs = serde_json::to_string_pretty(&theirs).unwrap();
    let differ = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
    assert!(ours == theirs, "{differ:?} of\n{of}\n{ours}");
}

fn runs(texts: &[String]) -> Vec<Run> {
    let run = |text: &String| Run::of(&TraceDocument::parse(text).unwrap()).unwrap();
    texts.iter().map(run).collect()
}

/// Compares bundles of the cohorts and holds the answer against the neighbour's.
fn judge(cohorts: &Cohorts, rng: &mut Rng) -> (ComparisonVerdict, bool, Vec<Code>) {
    let [baseline, candidate] = cohorts.texts(rng);
    let of = || format!("{}\n{}", baseline.concat(), candidate.concat());
    let folder = tempfile::tempdir().unwrap();
    let write = |side: &str, texts: &[String]| -> Vec<PathBuf> {
        bare::write_all(&folder.path().join(side), texts)
    };
    let (before, after) = (write("a", &baseline), write("b", &candidate));
    let theirs = theirs::compare_verified_bundles(&before, &after).unwrap();
    let ((left, a), (right, b)) =
        (comparison::bundles(&before).unwrap(), comparison::bundles(&after).unwrap());
    let ours = compare(&left, &right, verified(a, b));
    let answer = (ours.verdict, ours.paired, ours.reasons.iter().map(|it| it.code).collect());
    same(ours, theirs, &of());
    answer
}

#[test]
fn eligible_cohorts_have_the_neighbours_numbers_and_all_three_verdicts() {
    let mut verdicts = BTreeMap::new();
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let cohorts = cohorts(&mut rng);
        let (verdict, paired, reasons) = judge(&cohorts, &mut rng);
        assert_eq!(reasons, [], "seed {seed}");
        *verdicts.entry((verdict, paired)).or_insert(0) += 1;
    }
    println!("{verdicts:?}");
    for paired in [false, true] {
        for verdict in [
            ComparisonVerdict::Inconclusive,
            ComparisonVerdict::CandidateFaster,
            ComparisonVerdict::CandidateSlower,
        ] {
            assert!(verdicts.get(&(verdict, paired)).is_some_and(|count| *count >= 3));
        }
    }
}

/// The reasons that runs can have.
const OF_RUNS: [Code; 17] = [
    Code::InsufficientRuns,
    Code::DuplicateRunIds,
    Code::NoRuns,
    Code::CaptureSemanticsMismatch,
    Code::IncompleteCapture,
    Code::NotProductionEquivalent,
    Code::UnsynchronizedDeviceRegion,
    Code::MeasuredRegionCountInvalid,
    Code::IdentityMissing,
    Code::IdentityInvalid,
    Code::IdentityConditionsDiffer,
    Code::ImplementationIdMissing,
    Code::ImplementationIdEmpty,
    Code::ImplementationIdInconsistent,
    Code::PairingIncomplete,
    Code::PairIdsDuplicated,
    Code::PairSetsMismatch,
];

#[test]
fn every_reason_comes_alone_or_in_its_company() {
    for code in OF_RUNS {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut cohorts = cohorts(&mut rng);
            cohorts::add(code, &mut cohorts, &mut rng);
            let (verdict, _, reasons) = judge(&cohorts, &mut rng);
            assert_eq!(verdict, ComparisonVerdict::Ineligible, "{code}");
            assert!(reasons.contains(&code), "{code} {seed}: {reasons:?}");
            let company = cohorts::company(code);
            let other = reasons.iter().find(|other| **other != code && !company.contains(other));
            assert_eq!(other, None, "{code} {seed}: {reasons:?}");
        }
    }
}

#[test]
fn reasons_together_are_in_the_neighbours_order() {
    let mut seen = BTreeMap::new();
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut cohorts = cohorts(&mut rng);
        let mut several: Vec<_> =
            OF_RUNS.into_iter().filter(|code| *code != Code::NoRuns && rng.one_in(6)).collect();
        // Fewer runs last: the others want five.
        several.sort_by_key(|code| *code == Code::InsufficientRuns);
        for &code in &several {
            // An identity that is gone cannot be made wrong.
            if code != Code::IdentityMissing {
                cohorts::add(code, &mut cohorts, &mut rng);
            }
        }
        if several.contains(&Code::IdentityMissing) {
            cohorts::add(Code::IdentityMissing, &mut cohorts, &mut rng);
        }
        for code in judge(&cohorts, &mut rng).2 {
            *seen.entry(code).or_insert(0) += 1;
        }
    }
    println!("{seen:?}");
    assert!(seen.len() >= OF_RUNS.len() - 1 && seen.values().all(|count| *count >= 5));
}

#[test]
fn traces_are_compared_and_never_eligible() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut cohorts = cohorts(&mut rng);
        let alone = seed % 2 == 0;
        if !alone {
            let code = *rng.pick(&OF_RUNS);
            cohorts::add(code, &mut cohorts, &mut rng);
        }
        let [baseline, candidate] = cohorts.texts(&mut rng);
        let documents = |texts: &[String]| -> Vec<_> {
            texts.iter().map(|text| neighbour::document(text).unwrap()).collect()
        };
        let theirs =
            theirs::compare_unverified_traces(&documents(&baseline), &documents(&candidate));
        let (left, right) = (runs(&baseline), runs(&candidate));
        let ours = compare(&left, &right, unverified());
        assert_eq!(ours.reasons[0].code, Code::UnverifiedInputs);
        assert!(!alone || ours.reasons.len() == 1);
        same(ours, theirs, &baseline.concat());
    }
}

/// The neighbour's commands make receipts and runs together, and never see these.
#[test]
fn receipts_are_one_for_each_run_and_of_it() {
    let texts: Vec<_> =
        (0..5).map(|n| cohorts::run(&format!("r{n}"), "i", 7 + n).text(&mut Rng::new(n))).collect();
    let others: Vec<_> = (5..10)
        .map(|n| cohorts::run(&format!("r{n}"), "j", 7 + n).text(&mut Rng::new(n)))
        .collect();
    let (left, right) = (runs(&texts), runs(&others));
    let receipts = |from: u64| -> Vec<_> {
        let receipt = |n| ComparisonInput {
            run_id: format!("r{n}").into(),
            manifest_sha256: "0aF"
                .repeat(21)
                .into_bytes()
                .iter()
                .chain(b"9")
                .map(|b| *b as char)
                .collect::<String>()
                .into(),
        };
        (from..from + 5).map(receipt).collect()
    };
    let reasons = |change: fn(&mut Vec<ComparisonInput<'static>>)| -> Vec<Code> {
        let mut changed = receipts(5);
        change(&mut changed);
        let comparison = compare(&left, &right, verified(receipts(0), changed));
        comparison.reasons.iter().map(|reason| reason.code).collect()
    };
    assert_eq!(reasons(|_| ()), []);
    assert_eq!(reasons(|all| drop(all.pop())), [Code::ReceiptCountMismatch]);
    assert_eq!(reasons(|all| all[2].run_id = "r0".into()), [Code::ReceiptRunIdMismatch]);
    let invalid = [Code::ReceiptDigestInvalid; 2];
    assert_eq!(
        reasons(|all| {
            all[0].manifest_sha256 = "0".repeat(63).into();
            all[4].manifest_sha256 = "g".repeat(64).into();
        }),
        invalid
    );
}

/// Where the neighbour is wrong we are not; docs/COMPATIBILITY.md lists it.
#[test]
fn a_mean_is_there_where_the_sum_of_its_values_is_too_large() {
    let run = |id: &str| {
        let mut run: Sketch = cohorts::run(id, "i", 5);
        let span = run.spans[0].id.clone();
        for value in [1.5e308, 1.25e308] {
            run.stats.push(serde_json::json!({
                "span_id": span, "label": "huge", "shape": [], "dtype": "f64", "elements": 1,
                "non_finite": 0, "rms": value, "abs_max": value, "mean": value,
            }));
        }
        run.text(&mut Rng::new(0))
    };
    let (left, right) = ([run("a")], [run("b")]);
    let document = |text: &str| neighbour::document(text).unwrap();
    let theirs = theirs::compare_unverified_traces(&[document(&left[0])], &[document(&right[0])]);
    let theirs = serde_json::to_value(theirs).unwrap();
    assert!(theirs["tensor_stats"]["matched"][0]["rms_a"].is_null());
    assert!(serde_json::from_value::<theirs::ReplicatedComparison>(theirs).is_err());
    let (left, right) = (runs(&left), runs(&right));
    let ours = compare(&left, &right, unverified());
    let row = &ours.tensor_stats.matched[0];
    assert!((row.rms_a / 1.375e308 - 1.0).abs() < 1e-15, "{row:?}");
    assert_eq!((row.rms_ratio, row.abs_max_ratio), (Some(1.0), Some(1.0)));
    serde_json::to_string(&ours).unwrap();
}
