//! The probe, and what of the demo is recorded at which level.

use candle_core::Var;
use tmrun_probe_candle::CandleRecorder;
use tmrun_probe_core::session::{
    CaptureContract, ComparisonIdentity, CoverageLevel, ExpectedGradient, GradientContract,
    GradientContractError, GradientFamilyContract, MeasurementScope,
};
use tmrun_probe_core::{Category, DeviceMemoryFact, DevicePlace, Level, ProfileRun, probe};

use crate::args::Args;
use crate::train::ROWS;

probe! {
    /// The demo's probe. One thread trains, so a few lanes are plenty.
    pub static PROBE: lanes = 4
}

/// The version of candle; it has no constant that says so.
const CANDLE: &str = "0.11.1";

/// What the run is, as it stands in the recording.
pub fn run_of(args: &Args) -> ProfileRun {
    ProfileRun::training("demo::train", 1, "cpu")
        .level(Level(args.level))
        .replace(true)
        .correlation_id(format!("demo-seed-{}", args.seed))
        .candle_version(CANDLE)
        .tag("model", "transformer")
        .tag("seed", args.seed.to_string())
        .tag("steps", args.steps.to_string())
        .tag("planted_nan", if args.plant_nan { "yes" } else { "no" })
        .comparison_identity(identity_of(args))
}

/// What has to be equal for two runs to be compared, and what they are compared by.
fn identity_of(args: &Args) -> ComparisonIdentity {
    let implementation = if args.heads_in_turn { "heads-in-turn" } else { "heads-together" };
    ComparisonIdentity {
        implementation_id: Some(implementation.to_owned()),
        workload_id: "demo::train".to_owned(),
        model_id: "transformer".to_owned(),
        config_id: "demo".to_owned(),
        data_id: "licences".to_owned(),
        seed_policy: format!("fixed-{}", args.seed),
        physical_batch: ROWS as u64,
        accumulation_steps: 1,
        precision: "f32".to_owned(),
        device_state: "shared".to_owned(),
        pair_id: None,
    }
}

/// The root of the parameters.
pub(crate) const ROOT: &str = "model";

/// What a recording promises to hold of every step, where this level is asked for of every node, and this
/// one of those in focus. From level 2 on the demo looks at gradients, and so does more than training; at
/// those in focus alone it looks at some.
///
/// # Errors
///
/// When two parameters have one name.
pub fn contract_of<'p>(
    level: Level,
    in_focus: Level,
    parameters: impl ExactSizeIterator<Item = &'p str>,
) -> Result<CaptureContract, GradientContractError> {
    if level.max(in_focus) < Level::METADATA {
        let measurement_scope = MeasurementScope::ProductionEquivalent;
        return Ok(CaptureContract { measurement_scope, ..CaptureContract::default() });
    }
    let some = CaptureContract {
        measurement_scope: MeasurementScope::ProfiledWork,
        operations: CoverageLevel::Partial,
        tensors: CoverageLevel::Partial,
        gradients: CoverageLevel::Partial,
        logical_memory: CoverageLevel::Partial,
        ..CaptureContract::default()
    };
    if level < Level::METADATA {
        return Ok(some);
    }
    let family = GradientFamilyContract::active("trained", parameters.len());
    let expected = parameters.map(|name| ExpectedGradient::new(ROOT, name, "trained")).collect();
    Ok(CaptureContract {
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(GradientContract::new(expected, vec![family])?),
        physical_memory: CoverageLevel::Partial,
        ..some
    })
}

/// The storages of the parameters, which live as long as the model (level 2). Those of activations
/// are not recorded: candle tells nobody when it drops one.
pub(crate) fn parameters<'v>(parameters: impl Iterator<Item = (&'v String, &'v Var)>) {
    if PROBE.records(Level::METADATA) {
        let init = PROBE.name("init");
        for (name, parameter) in parameters {
            let node = PROBE.name(name);
            PROBE.at(Level::METADATA, |to| {
                to.candle_alloc(node, init, parameter, Category::PARAMETER)
            });
        }
    }
}

/// What the process has in memory (level 2). Asking the system is not free, so it is done once a
/// step.
pub(crate) fn process_memory() {
    PROBE.at(Level::METADATA, |to| {
        if let Some(used) = resident_bytes() {
            let device = to.probe().device_at(DevicePlace::Cpu);
            let fact = DeviceMemoryFact { device, used: Some(used), ..Default::default() };
            to.device_memory(&fact);
        }
    });
}

/// The bytes of this process that are in memory, where the system has a file that says so.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_candle_is_the_one_that_is_built() {
        let lock = include_str!("../../../Cargo.lock");
        let package = format!("name = \"candle-core\"\nversion = \"{CANDLE}\"\n");
        assert!(lock.contains(&package));
    }

    #[test]
    fn a_contract_promises_what_level_and_focus_hold() {
        let of = |level, in_focus| {
            contract_of(level, in_focus, ["a", "b"].into_iter()).expect("two names")
        };
        let plain = of(Level::TIMING, Level::TIMING);
        assert_eq!(plain.measurement_scope, MeasurementScope::ProductionEquivalent);
        let focused = of(Level::TIMING, Level::NUMERICS);
        assert_eq!(focused.measurement_scope, MeasurementScope::ProfiledWork);
        assert_eq!(focused.gradients, CoverageLevel::Partial);
        assert_eq!(focused.physical_memory, CoverageLevel::None);
        let all = of(Level::METADATA, Level::TIMING);
        assert_eq!(all.gradients, CoverageLevel::Complete);
        for contract in [plain, focused, all] {
            contract.check().expect("one that can be kept");
        }
    }

    #[test]
    fn the_process_has_some_memory() {
        if cfg!(target_os = "linux") {
            assert!(resident_bytes().unwrap() > 1 << 16);
        }
    }
}
