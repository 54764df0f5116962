//! One manifest: what a plan declares is what it records.

mod support;

use candle_core::{DType, Device, Tensor, Var};
use support::{PROBE, recorded};
use tmrun_formats::wire::{Chunks, Gradient, Record, Walked};
use tmrun_probe_candle::GradientCapturePlan;
use tmrun_probe_core::session::{
    CaptureContract, CoverageLevel, GradientContract, GradientContractError as Refused,
    GradientFamilyContract, ProfileRun, TraceSession,
};
use tmrun_probe_core::{GradientState, Level};

type Tested = Result<(), Box<dyn std::error::Error>>;

fn variables(keys: &[&str]) -> candle_core::Result<Vec<(String, Var)>> {
    let variable = |key: &&str| Ok(((*key).to_owned(), Var::ones(2, DType::F32, &Device::Cpu)?));
    keys.iter().map(variable).collect()
}

fn plan(
    keys: &[&str],
    families: Vec<GradientFamilyContract>,
) -> Result<GradientCapturePlan, Refused> {
    let variables = variables(keys).expect("variables");
    let family = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
    GradientCapturePlan::from_named_vars("model", variables, family, families)
}

fn active(family: &str, least: usize) -> GradientFamilyContract {
    GradientFamilyContract::active(family, least)
}

#[test]
fn a_manifest_is_sorted_and_bound_by_its_digest() -> Tested {
    let families = vec![active("a", 2), GradientFamilyContract::inactive("b")];
    let plan = plan(&["b.z", "a.y", "a.x"], families)?;
    let entries = plan.contract().expected.iter();
    let entries: Vec<_> = entries.map(|it| (&*it.root, &*it.key, &*it.family)).collect();
    assert_eq!(entries, [("model", "a.x", "a"), ("model", "a.y", "a"), ("model", "b.z", "b")]);
    assert_eq!(
        plan.contract().manifest_sha256,
        GradientContract::digest(&plan.contract().expected)
    );
    assert_eq!(plan.root(), "model");
    let contract = plan.declared_in(CaptureContract::default());
    assert_eq!(contract.gradients, CoverageLevel::Complete);
    assert_eq!(contract.gradient_contract.as_ref(), Some(plan.contract()));
    contract.check()?;
    Ok(())
}

#[test]
fn a_manifest_that_cannot_be_kept_is_refused_when_it_is_made() {
    let refused = |keys: &[&str], families| plan(keys, families).unwrap_err();
    assert_eq!(refused(&[], vec![active("a", 1)]), Refused::NoParameters);
    let twice = refused(&["a.x", "a.x"], vec![active("a", 1)]);
    assert!(matches!(twice, Refused::ParameterTwice { .. }), "{twice}");
    let unknown = refused(&["a.x", "b.y"], vec![active("a", 1)]);
    assert!(matches!(unknown, Refused::UnknownFamily { .. }), "{unknown}");
    let empty = refused(&["a.x"], vec![active("a", 1), active("b", 1)]);
    assert!(matches!(empty, Refused::EmptyFamily { .. }), "{empty}");
    let more = refused(&["a.x"], vec![active("a", 2)]);
    assert!(matches!(more, Refused::Minimum { .. }), "{more}");
}

/// Parameters of a loss that reaches one of them whole, one in one row of many, one by zeros alone, one
/// not at all, and one with NaN.
fn update() -> candle_core::Result<(Vec<(String, Var)>, candle_core::backprop::GradStore)> {
    let device = &Device::Cpu;
    let whole = Var::new(&[3f32, 4.], device)?;
    let table = Var::ones((50, 2), DType::F32, device)?;
    let [dead, absent, broken] = [(); 3].map(|()| Var::ones(2, DType::F32, device));
    let (dead, absent, broken) = (dead?, absent?, broken?);
    let row = table.index_select(&Tensor::new(&[7u32], device)?, 0)?.sum_all()?;
    let nan = broken.affine(f64::NAN, 0.)?.sum_all()?;
    let squares = (whole.sqr()?.sum_all()? + dead.mul(&dead.zeros_like()?)?.sum_all()?)?;
    let loss = ((squares + row)? + nan)?;
    let named = [
        ("whole", whole),
        ("table", table),
        ("dead", dead),
        ("absent", absent),
        ("broken", broken),
    ];
    Ok((named.map(|(key, var)| (key.to_owned(), var)).into(), loss.backward()?))
}

const STATES: [(&str, GradientState, f64); 5] = [
    ("absent", GradientState::MISSING, 0.),
    ("broken", GradientState::NON_FINITE, 0.),
    ("dead", GradientState::ZERO, 0.),
    ("table", GradientState::PRESENT, std::f64::consts::SQRT_2),
    ("whole", GradientState::PRESENT, 10.),
];

fn states(records: &[Record]) -> Vec<(u32, GradientState, f64)> {
    let gradients =
        records.iter().filter_map(|it| Some((it.header().name, it.payload::<Gradient>()?)));
    gradients.map(|(name, it)| (name.0, it.state, it.norm)).collect()
}

#[test]
fn a_probe_and_a_session_record_one_event_an_entry_in_order() -> Tested {
    let (variables, gradients) = update()?;
    let families = vec![GradientFamilyContract::data_conditional("all", 1)];
    let plan =
        GradientCapturePlan::from_named_vars("model", variables, |_| "all".into(), families)?;

    let of_probe = plan.on(&PROBE);
    let mut counts = None;
    let records = recorded(|to| counts = of_probe.record(&to, &gradients).ok());
    let by_probe = counts.unwrap();
    assert_eq!(states(&records), STATES.map(|(key, state, norm)| (PROBE.name(key).0, state, norm)));

    let dir = tempfile::tempdir()?;
    let run = ProfileRun::training("test", 1, "cpu")
        .capture_contract(plan.declared_in(CaptureContract::default()));
    let session = TraceSession::open(dir.path().join("run.tmrun"), run)?;
    let by_session = plan.record(&session, &gradients)?;
    assert_eq!(by_session, by_probe);
    assert_eq!((by_probe.present, by_probe.missing), (2, 1));
    assert_eq!((by_probe.zero, by_probe.non_finite), (1, 1));
    let file = std::fs::read(session.finish()?)?;
    let chunks = Chunks::new(&file).filter_map(|walked| match walked {
        Walked::Chunk(chunk) => Some(chunk.records()),
        _ => None,
    });
    let records: Vec<Record> = chunks.flatten().copied().collect();
    let found = states(&records);
    assert_eq!(found.len(), STATES.len());
    for ((_, state, norm), (key, expected, of)) in found.iter().zip(STATES) {
        assert_eq!((*state, *norm), (expected, of), "{key}");
    }
    Ok(())
}

#[test]
fn below_the_level_no_gradient_is_looked_at() -> Tested {
    let (variables, gradients) = update()?;
    let families = vec![GradientFamilyContract::data_conditional("all", 1)];
    let plan =
        GradientCapturePlan::from_named_vars("model", variables, |_| "all".into(), families)?;
    let dir = tempfile::tempdir()?;
    let run = ProfileRun::training("test", 1, "cpu").level(Level::TIMING);
    let session = TraceSession::open(dir.path().join("run.tmrun"), run)?;
    assert_eq!(plan.record(&session, &gradients)?, Default::default());
    session.finish()?;
    Ok(())
}

/// It keeps no variable alive, and is as good after an optimizer's step as before.
#[test]
fn a_plan_is_good_for_every_update() -> Tested {
    let weight = Var::ones(3, DType::F32, &Device::Cpu)?;
    let plan = GradientCapturePlan::from_named_vars(
        "model",
        [("w".to_owned(), weight.clone())],
        |_| "all".into(),
        vec![active("all", 1)],
    )?
    .on(&PROBE);
    for _ in 0..2 {
        weight.set(&weight.affine(2., 0.)?)?;
        let gradients = weight.sqr()?.sum_all()?.backward()?;
        let mut counts = None;
        recorded(|to| counts = plan.record(&to, &gradients).ok());
        assert_eq!(counts.map(|counts| counts.present), Some(1));
    }
    Ok(())
}
