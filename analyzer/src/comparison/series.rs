//! How numbers went from step to step.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use tmrun_formats::bundle::BundleReceipt;
use tmrun_formats::comparison::{
    COORDINATE, Series, SeriesGradient, SeriesInput, SeriesSchema, SeriesStats, SeriesTime,
};
use tmrun_formats::trace::{TraceDocument, TracePhase, TraceRun};

use super::load::{Bundle, LoadError, bundle, each};
use super::run::measured;

/// Why bundles are no series.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// There are none.
    #[error("no bundles: expected at least one")]
    Empty,
    /// One that cannot be had.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Of several entrypoints or phases.
    #[error("{bundle}: {field} is {found:?}: expected {expected:?}, as of {first}")]
    Differs {
        /// The bundle.
        bundle: String,
        /// In what it differs.
        field: &'static str,
        /// What it has.
        found: String,
        /// What the first one has.
        expected: String,
        /// The first one.
        first: String,
    },
    /// Of one step twice.
    #[error(
        "{bundle}: capture_step {capture_step} is that of {first} too: expected each step once"
    )]
    StepTwice {
        /// The bundle.
        bundle: String,
        /// The step.
        capture_step: u64,
        /// The one that was there before.
        first: String,
    },
}

/// The numbers of bundles over the steps that they captured. Of labels, and of gradients as
/// `root/key`, those that start with the prefix.
///
/// # Errors
/// Bundles that are no series.
pub fn series(
    bundles: &[PathBuf],
    label_prefix: Option<&str>,
) -> Result<Series<'static>, SeriesError> {
    let wanted = |label: &str| label_prefix.is_none_or(|prefix| label.starts_with(prefix));
    let entries = each(bundles, |root| {
        let name = root.display().to_string();
        bundle(root, |bundle| Ok(Entry::of(bundle, name, wanted)))
    });
    let mut entries = entries?;
    let first = entries.first().ok_or(SeriesError::Empty)?;
    for entry in &entries {
        entry.go_with(first)?;
    }
    let mut steps = HashMap::new();
    for Entry { input, .. } in &entries {
        if let Some(first) = steps.insert(input.capture_step, &input.bundle) {
            let (bundle, first) = (input.bundle.to_string(), first.to_string());
            return Err(SeriesError::StepTwice { bundle, capture_step: input.capture_step, first });
        }
    }
    let mut series = Series {
        schema: SeriesSchema,
        entrypoint: first.entrypoint.clone().into(),
        coordinate: COORDINATE.into(),
        label_prefix: label_prefix.map(|prefix| prefix.to_owned().into()),
        inputs: Vec::new(),
        outer_wall_time: Vec::new(),
        tensor_stats: BTreeMap::new(),
        gradients: BTreeMap::new(),
    };
    entries.sort_by_key(|entry| entry.input.capture_step);
    for entry in entries {
        series.inputs.push(entry.input);
        series.outer_wall_time.push(entry.time);
        for (label, stats) in entry.stats {
            series.tensor_stats.entry(label.into()).or_default().push(stats);
        }
        for (gradient, point) in entry.gradients {
            series.gradients.entry(gradient.into()).or_default().push(point);
        }
    }
    Ok(series)
}

/// One bundle, reduced to its points.
struct Entry {
    entrypoint: String,
    phase: TracePhase,
    input: SeriesInput<'static>,
    time: SeriesTime<'static>,
    stats: Vec<(String, SeriesStats<'static>)>,
    gradients: Vec<(String, SeriesGradient<'static>)>,
}

impl Entry {
    fn of(of: &Bundle<'_>, bundle: String, wanted: impl Fn(&str) -> bool) -> Self {
        let BundleReceipt { manifest_sha256, .. } = of.receipt.clone();
        let TraceDocument { run, tensor_stats, gradients, .. } = of.trace;
        let &TraceRun { capture_step, phase, .. } = run;
        let run_id = || run.run_id.clone().into();
        let mut times = measured(of.trace);
        let outer_wall_time_ns = times.next().filter(|_| times.next().is_none());
        let stats = tensor_stats.iter().filter(|stats| wanted(&stats.label)).map(|stats| {
            let point = SeriesStats {
                capture_step,
                run_id: run_id(),
                rms: stats.rms,
                abs_max: stats.abs_max,
                mean: stats.mean,
                non_finite: stats.non_finite,
                elements: stats.elements,
            };
            (stats.label.clone().into_owned(), point)
        });
        let gradients = gradients.iter().filter_map(|gradient| {
            let key = format!("{}/{}", gradient.root, gradient.key);
            let (state, norm) = (gradient.state, gradient.norm);
            let point = SeriesGradient { capture_step, run_id: run_id(), state, norm };
            wanted(&key).then_some((key, point))
        });
        Self {
            entrypoint: run.entrypoint.clone(),
            phase,
            stats: stats.collect(),
            gradients: gradients.collect(),
            time: SeriesTime { capture_step, run_id: run_id(), outer_wall_time_ns },
            input: SeriesInput {
                capture_step,
                run_id: run_id(),
                bundle: bundle.into(),
                manifest_sha256,
            },
        }
    }

    /// Whether it is of the entrypoint and the phase that another one is of.
    fn go_with(&self, first: &Self) -> Result<(), SeriesError> {
        let fields = [
            ("entrypoint", &*self.entrypoint, &*first.entrypoint),
            ("phase", self.phase.name(), first.phase.name()),
        ];
        match fields.into_iter().find(|(_, found, expected)| found != expected) {
            None => Ok(()),
            Some((field, found, expected)) => Err(SeriesError::Differs {
                bundle: self.input.bundle.to_string(),
                field,
                found: found.to_owned(),
                expected: expected.to_owned(),
                first: first.input.bundle.to_string(),
            }),
        }
    }
}
