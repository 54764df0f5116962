//! Gradients that stop: a small model of candle-nn's layers, moved over by its imports, trained and
//! recorded; and what its recording, its runtime JSON and its bundle say of it.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use candle_core::{D, DType, Device, Module, Result, Tensor, Var};
use tempfile::TempDir;
use tmrun::audit::{AuditReport, audit};
use tmrun::bundle::{Request, publish};
use tmrun::convert::{Options, Plan};
use tmrun::input::Input;
use tmrun::scan::Recording;
use tmrun::severed::{CUTS, Severed, cut_of, of_recording};
use tmrun::slice::Region;
use tmrun_demo::write_report;
use tmrun_probe_candle::nn as candle_nn;
use tmrun_probe_candle::{GradientPlan, Layer};
use tmrun_probe_core::session::{
    CaptureContract, CoverageLevel, ExpectedGradient, GradientContract, GradientFamilyContract,
};
use tmrun_probe_core::{Level, ProfileRun, install, probe};

use candle_nn::{
    Conv1dConfig, Conv2dConfig, Embedding, LayerNorm, Linear, RmsNorm, VarBuilder, VarMap,
    embedding, layer_norm, linear, rms_norm,
};

type Tested = std::result::Result<(), Box<dyn Error>>;

probe!(static PROBE: lanes = 4, slots = 1 << 12);

const STEPS: u64 = 3;
const WIDTH: usize = 4;

/// How the model is made, and what is wrong with it.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    /// Norms and attention of the fast operations, which pass no gradient on.
    norm: Passing,
    softmax: Passing,
    /// The output of `blocks.0.up` has a NaN in it from this step on.
    nan_from: Option<u64>,
    /// What `blocks.0.up` makes counts for nothing.
    is_zeroed: bool,
    /// There is a layer that is never called.
    has_dead: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Passing {
    #[default]
    All,
    None,
}

struct Model {
    made: Made,
    tokens: Embedding,
    query: Linear,
    key: Linear,
    value: Linear,
    up: Linear,
    norm: Norm,
    head: Linear,
}

enum Norm {
    Fused(LayerNorm),
    Slow { layer: Layer, weight: Tensor, bias: Tensor },
}

impl Model {
    fn new(made: Made, vb: VarBuilder) -> Result<Self> {
        let attention = vb.pp("blocks.0.attn");
        if made.has_dead {
            linear(WIDTH, WIDTH, vb.pp("blocks.0.dead"))?;
        }
        Ok(Self {
            made,
            tokens: embedding(10, WIDTH, vb.pp("tokens"))?,
            query: linear(WIDTH, WIDTH, attention.pp("q"))?,
            key: linear(WIDTH, WIDTH, attention.pp("k"))?,
            value: linear(WIDTH, WIDTH, attention.pp("v"))?,
            up: linear(WIDTH, WIDTH, vb.pp("blocks.0.up"))?,
            norm: Norm::new(made.norm, vb.pp("norm"))?,
            head: linear(WIDTH, 10, vb.pp("head"))?,
        })
    }

    fn forward(&self, step: u64, ids: &Tensor) -> Result<Tensor> {
        let x = self.tokens.forward(ids)?;
        let scores = self.query.forward(&x)?.matmul(&self.key.forward(&x)?.t()?.contiguous()?)?;
        let weights = match self.made.softmax {
            Passing::All => candle_nn::ops::softmax(&scores, D::Minus1)?,
            Passing::None => candle_nn::ops::softmax_last_dim(&scores)?,
        };
        let x = (&x + weights.matmul(&self.value.forward(&x)?)?)?;
        let up = match self.made.nan_from {
            Some(from) if from <= step => self.up.layer().call(&[&x], || {
                let nan = Tensor::full(f32::NAN, x.shape(), x.device())?;
                Module::forward(&*self.up, &x)? * nan
            })?,
            _ => self.up.forward(&x)?,
        };
        let up = if self.made.is_zeroed { (&up * up.zeros_like()?)? } else { up };
        self.head.forward(&self.norm.forward(&(x + up)?)?)
    }
}

impl Norm {
    fn new(passing: Passing, vb: VarBuilder) -> Result<Self> {
        if passing == Passing::None {
            return Ok(Self::Fused(layer_norm(WIDTH, 1e-5, vb)?));
        }
        let layer = Layer::new(vb.prefix(), "layer_norm_slow");
        let weight = vb.get_with_hints(WIDTH, "weight", candle_nn::Init::Const(1.))?;
        Ok(Self::Slow { layer, weight, bias: vb.get(WIDTH, "bias")? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Fused(norm) => norm.forward(x),
            Self::Slow { layer, weight, bias } => {
                layer.call(&[x], || candle_nn::ops::layer_norm_slow(x, weight, bias, 1e-5))
            }
        }
    }
}

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    static INSTALLED: Once = Once::new();
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    INSTALLED.call_once(|| install(PROBE).expect("the only one"));
    one
}

/// A recording of the model's first steps. `frozen` says of which parameters the run declares that they have
/// no gradient; without it the run declares nothing.
fn recorded(
    made: Made,
    frozen: Option<fn(&str) -> bool>,
) -> std::result::Result<(TempDir, PathBuf), Box<dyn Error>> {
    let _one = one_at_a_time();
    let variables = VarMap::new();
    let model = Model::new(made, VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu))?;
    let parameters: BTreeMap<String, Var> =
        variables.data().lock().expect("nobody panicked").clone().into_iter().collect();
    let plan = GradientPlan::from_named_vars(&PROBE, "model", &parameters);
    let mut run = ProfileRun::training("test::train", 1, "cpu").level(Level::NUMERICS);
    if let Some(frozen) = frozen {
        let family = |name: &str| if frozen(name) { "frozen" } else { "trained" };
        let expected = parameters.keys().map(|it| ExpectedGradient::new("model", it, family(it)));
        let trained = parameters.keys().filter(|name| !frozen(name)).count();
        let families = vec![
            GradientFamilyContract::inactive("frozen"),
            GradientFamilyContract::active("trained", trained),
        ];
        run = run.capture_contract(CaptureContract {
            gradients: CoverageLevel::Complete,
            gradient_contract: Some(GradientContract::new(expected.collect(), families)?),
            ..CaptureContract::default()
        });
    }
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("run.tmrun");
    let recording = PROBE.record(&path, run)?;
    let ids = Tensor::new(&[1u32, 2, 3], &Device::Cpu)?;
    for number in 1..=STEPS {
        let _step = PROBE.step(number);
        let loss = model.forward(number, &ids)?.sqr()?.mean_all()?;
        let gradients = loss.backward()?;
        PROBE.at(Level::METADATA, |to| plan.record(&to, &gradients)).transpose()?;
    }
    recording.finish()?;
    Ok((dir, path))
}

fn read<R>(
    path: &Path,
    f: impl FnOnce(&Recording<'_>) -> std::result::Result<R, Box<dyn Error>>,
) -> std::result::Result<R, Box<dyn Error>> {
    let input = Input::open(path)?;
    f(&Recording::open(&input, input.name())?)
}

/// What the audit says of the runtime JSON that a recording is converted to.
fn audited(path: &Path) -> std::result::Result<AuditReport, Box<dyn Error>> {
    read(path, |recording| {
        let mut json = Vec::new();
        Plan::of(recording, Options::default())?.write(&mut json, &|_| ())?;
        Ok(audit(&tmrun_formats::runtime::read(&json)?, None))
    })
}

/// The report of the bundle of a step.
fn report_of(path: &Path, step: u64) -> std::result::Result<String, Box<dyn Error>> {
    let destination = path.with_file_name(format!("step-{step}"));
    read(path, |recording| {
        let region = Region::of(recording, Some(step))?;
        let (destination, nsight) = (&*destination, None);
        publish(&Request { recording, region: &region, destination, nsight }, &mut |_| Ok(()))?;
        Ok(())
    })?;
    Ok(std::fs::read_to_string(destination.join("report.md"))?)
}

/// The layers that are named, each with its parameters.
fn named(severed: &[Severed]) -> Vec<(&str, Vec<&str>)> {
    let mut named = Vec::new();
    for it in severed {
        let keys = it.parameters.iter().map(|it| it.key.as_str());
        named.push((it.layer.as_str(), keys.collect()));
    }
    named
}

const BELOW_NORM: [&str; 11] = [
    "blocks.0.attn.k.bias",
    "blocks.0.attn.k.weight",
    "blocks.0.attn.q.bias",
    "blocks.0.attn.q.weight",
    "blocks.0.attn.v.bias",
    "blocks.0.attn.v.weight",
    "blocks.0.up.bias",
    "blocks.0.up.weight",
    "norm.bias",
    "norm.weight",
    "tokens.weight",
];

#[test]
fn the_norm_before_the_head_is_named_for_all_that_it_cuts_off() -> Tested {
    let (_dir, path) = recorded(Made { norm: Passing::None, ..Made::default() }, None)?;
    let found = read(&path, |recording| Ok(of_recording(recording)))?;
    assert_eq!(named(&found), [("norm", BELOW_NORM.to_vec())]);
    assert_eq!((found[0].step, found[0].op.as_str(), found[0].seen), (Some(1), "layer_norm", true));

    let report = audited(&path)?;
    assert_eq!(report.extra.severed, found);
    let said = report.to_string();
    let sentence = "severed: from step 1 on 11 parameters get no gradient, which likely stops at norm \
                    (layer_norm): model:blocks.0.attn.k.bias, ";
    assert!(said.contains(sentence), "{said}");
    assert!(said.contains("`ops::layer_norm_slow` passes it on"), "{said}");
    assert!(said.contains("missing: gradient model:tokens.weight since step 1"), "{said}");

    for step in [1, STEPS] {
        let page = report_of(&path, step)?;
        let row = "| norm | layer\\_norm | its output has none | `ops::layer_norm_slow` | 11 | \
                   model:blocks.0.attn.k.bias ";
        assert!(page.contains("It likely stops here") && page.contains(row), "{page}");
    }
    let mut table = Vec::new();
    read(&path, |recording| Ok(write_report(recording, &mut table)?))?;
    let table = String::from_utf8(table)?;
    assert!(table.contains("11 parameters get no gradient, which likely stops at norm"), "{table}");
    Ok(())
}

#[test]
fn a_softmax_is_named_for_the_queries_and_keys_before_it() -> Tested {
    let (_dir, path) = recorded(Made { softmax: Passing::None, ..Made::default() }, None)?;
    let found = read(&path, |recording| Ok(of_recording(recording)))?;
    assert_eq!(named(&found), [("softmax_last_dim", BELOW_NORM[..4].to_vec())]);
    assert_eq!(audited(&path)?.extra.severed, found);
    Ok(())
}

#[test]
fn a_healthy_model_has_no_findings_at_all() -> Tested {
    let (_dir, path) = recorded(Made::default(), None)?;
    assert_eq!(read(&path, |recording| Ok(of_recording(recording)))?, []);
    let report = audited(&path)?;
    assert!(!report.has_findings(), "{report}");
    let page = report_of(&path, 2)?;
    assert!(!page.contains("likely"), "{page}");
    Ok(())
}

#[test]
fn parameters_that_are_declared_frozen_are_not_missed() -> Tested {
    let made = Made { norm: Passing::None, ..Made::default() };
    let (_dir, path) = recorded(made, Some(|name| !name.starts_with("head")))?;
    assert_eq!(read(&path, |recording| Ok(of_recording(recording)))?, []);
    let page = report_of(&path, 1)?;
    assert!(!page.contains("likely"), "{page}");

    // Of a declaration for some, the others are missed.
    let (_dir, path) = recorded(made, Some(|name| name.starts_with("tokens")))?;
    let found = read(&path, |recording| Ok(of_recording(recording)))?;
    assert_eq!(named(&found), [("norm", BELOW_NORM[..10].to_vec())]);
    let page = report_of(&path, 1)?;
    assert!(page.contains("| norm |") && page.contains("| 10 | model:blocks"), "{page}");
    Ok(())
}

#[test]
fn a_layer_that_is_never_called_is_missed_and_laid_to_no_other() -> Tested {
    let (_dir, path) = recorded(Made { has_dead: true, ..Made::default() }, None)?;
    let said = audited(&path)?.to_string();
    assert!(said.contains("missing: gradient model:blocks.0.dead.weight since step 1"), "{said}");
    assert!(!said.contains("severed"), "{said}");
    let made = Made { has_dead: true, norm: Passing::None, ..Made::default() };
    let (_dir, path) = recorded(made, None)?;
    let found = read(&path, |recording| Ok(of_recording(recording)))?;
    assert_eq!(named(&found), [("norm", BELOW_NORM.to_vec())]);
    Ok(())
}

#[test]
fn a_gradient_of_zeros_is_named_with_its_step() -> Tested {
    let (_dir, path) = recorded(Made { is_zeroed: true, ..Made::default() }, None)?;
    let report = audited(&path)?;
    let said = report.to_string();
    assert!(said.contains("zero: gradient model:blocks.0.up.weight since step 1"), "{said}");
    assert!(report.missing_gradients.is_empty() && report.extra.severed.is_empty());
    Ok(())
}

#[test]
fn a_nan_is_named_with_its_step_and_layer() -> Tested {
    let (_dir, path) = recorded(Made { nan_from: Some(2), ..Made::default() }, None)?;
    let report = audited(&path)?;
    let said = report.to_string();
    let elements = (STEPS - 1) * 3 * WIDTH as u64;
    let line =
        format!("non-finite: {elements} elements at blocks.0.up since step 2, before any other\n");
    assert!(said.contains(&line), "{said}");
    assert!(said.contains("non-finite: gradient model:blocks.0.up.weight since step 2"), "{said}");
    assert_eq!(said.matches("before any other").count(), 1, "{said}");
    assert_eq!(report.extra.earliest_non_finite_step, Some(2));
    Ok(())
}

/// The table of the analyzer is that of the candle that is built.
#[test]
fn the_kinds_that_are_known_to_cut_are_those_that_do() -> Tested {
    let _one = one_at_a_time();
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
    let var = |shape: &[usize]| Var::rand(0f32, 1., shape, &Device::Cpu);
    let (x, wide, image) = (var(&[2, 3, 4])?, var(&[1, 2, 3, 4])?, var(&[1, 2, 5, 5])?);
    let (cos, sin) = (var(&[3, 2])?, var(&[3, 2])?);
    let turned = wide.transpose(1, 2)?.contiguous()?;
    let norm: RmsNorm = rms_norm(4, 1e-5, vb.pp("rms"))?;
    let plain = || candle_nn::layer_norm_no_bias(4, 1e-5, vb.pp("plain"));
    let conv1d = || candle_nn::conv1d(3, 2, 3, Conv1dConfig::default(), vb.pp("c1"));
    let conv2d = || candle_nn::conv2d(2, 2, 3, Conv2dConfig::default(), vb.pp("c2"));
    let batch_norm = || candle_nn::batch_norm(2, 1e-5, vb.pp("bn"));
    let ids = Tensor::new(&[1u32, 2], &Device::Cpu)?;
    let outputs = [
        ("layer_norm", layer_norm(4, 1e-5, vb.pp("ln"))?.forward(&x)?),
        ("layer_norm_no_bias", plain()?.forward(&x)?),
        ("rms_norm", norm.forward(&x)?),
        ("forward_diff", norm.forward_diff(&x)?),
        ("softmax_last_dim", candle_nn::ops::softmax_last_dim(&x)?),
        ("softmax", candle_nn::ops::softmax(&x, D::Minus1)?),
        ("rope", candle_nn::rotary_emb::rope(&wide, &cos, &sin)?),
        ("rope_i", candle_nn::rotary_emb::rope_i(&wide, &cos, &sin)?),
        ("rope_thd", candle_nn::rotary_emb::rope_thd(&turned, &cos, &sin)?),
        ("rope_slow", candle_nn::rotary_emb::rope_slow(&wide, &cos, &sin)?),
        ("linear", linear(4, 2, vb.pp("lin"))?.forward(&x)?),
        ("embedding", embedding(4, 2, vb.pp("emb"))?.forward(&ids)?),
        ("group_norm", candle_nn::group_norm(1, 2, 1e-5, vb.pp("gn"))?.forward(&image)?),
        ("batch_norm", batch_norm()?.forward_t(&image, true)?),
        ("conv1d", conv1d()?.forward(&x)?),
        ("conv2d", conv2d()?.forward(&image)?),
        ("prelu", candle_nn::prelu(None, vb.pp("prelu"))?.forward(&x)?),
    ];
    for (kind, output) in &outputs {
        assert_eq!(output.track_op(), cut_of(kind).is_none(), "{kind}");
    }
    // All but the one that there is on accelerators alone.
    let untried = CUTS.iter().filter(|cut| !outputs.iter().any(|(kind, _)| kind == &cut.op));
    assert_eq!(untried.map(|cut| cut.op).collect::<Vec<_>>(), ["sdpa"]);
    Ok(())
}
