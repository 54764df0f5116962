//! The training loop.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarBuilder, VarMap, loss};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tmrun_probe_candle::GradientPlan;
use tmrun_probe_core::{Level, scalar, span};

use crate::layer::{Fault, Heads, Pass};
use crate::model::{Config, Model};
use crate::record::{self, PROBE};
use crate::text::{Batch, Corpus};

/// How many windows of text an update sees.
pub(crate) const ROWS: usize = 16;

/// A model on its way.
#[derive(Debug)]
pub struct Trainer {
    model: Model,
    parameters: BTreeMap<String, Var>,
    /// Which gradients to expect.
    plan: GradientPlan,
    optimizer: AdamW,
    corpus: Corpus,
    seed: u64,
    heads: Heads,
    fault: Option<Fault<'static>>,
}

impl Trainer {
    /// A new model with weights drawn from `seed`, to be trained on the embedded text.
    pub fn new(seed: u64, fault: Option<Fault<'static>>) -> Result<Self> {
        let corpus = Corpus::embedded();
        let variables = VarMap::new();
        let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
        let model = Model::new(Config::demo(corpus.vocabulary_size()), vb)?;

        let parameters = named(&variables);
        draw_weights(&parameters, seed)?;
        let params = ParamsAdamW { lr: 3e-3, ..Default::default() };
        let optimizer = AdamW::new(parameters.values().cloned().collect(), params)?;
        let plan = plan(&parameters);
        Ok(Self { model, parameters, plan, optimizer, corpus, seed, heads: Heads::Together, fault })
    }

    /// Adds a parameter that the model makes no use of: it is trained as all others are, but no
    /// gradient ever reaches it.
    ///
    /// # Errors
    ///
    /// The optimizer refused it.
    pub fn add_unused(&mut self, name: &str, parameter: Var) -> Result<()> {
        self.parameters.insert(name.to_owned(), parameter);
        let parameters = self.parameters.values().cloned().collect();
        self.optimizer = AdamW::new(parameters, self.optimizer.params().clone())?;
        self.plan = plan(&self.parameters);
        Ok(())
    }

    /// Has attention go about its heads in another way from now on.
    pub const fn set_heads(&mut self, heads: Heads) {
        self.heads = heads;
    }

    /// The names of the parameters, sorted.
    pub fn parameter_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.plan.names()
    }

    /// Records where the parameters are in memory.
    pub fn record_parameters(&self) {
        record::parameters(self.parameters.iter());
    }

    /// How many numbers are being trained.
    pub fn parameter_count(&self) -> usize {
        self.parameters.values().map(|parameter| parameter.elem_count()).sum()
    }

    /// One update: forward, backward, optimizer. Returns the loss before it.
    ///
    /// A parameter that gets no gradient is recorded as missing one, and training goes on: the
    /// optimizer skips it.
    ///
    /// # Errors
    ///
    /// An operation failed.
    pub fn step(&mut self, number: u64) -> Result<f32> {
        let _step = PROBE.step(number);
        let batch = {
            let _span = span!(PROBE, "data");
            let size = (ROWS, self.model.config().context);
            self.corpus.batch(self.seed, number, size)?
        };
        let loss = {
            let _span = span!(PROBE, "forward", step = FORWARD);
            self.forward(number, &batch)?
        };
        let gradients = {
            let _span = span!(PROBE, "backward", step = BACKWARD);
            loss.backward()?
        };
        self.record_gradients(&gradients)?;
        {
            let _span = span!(PROBE, "optimizer", step = OPTIMIZER);
            self.optimizer.step(&gradients)?;
        }
        let loss = loss.to_scalar()?;
        scalar!(PROBE, "loss", f64::from(loss));
        scalar!(PROBE, "learning_rate", self.optimizer.learning_rate());
        record::process_memory();
        Ok(loss)
    }

    /// The mean cross-entropy over the batch.
    fn forward(&self, number: u64, batch: &Batch) -> Result<Tensor> {
        let pass = Pass { step: number, heads: self.heads, fault: self.fault };
        let logits = self.model.forward(&pass, &batch.inputs)?;
        loss::cross_entropy(&logits.flatten_to(1)?, &batch.targets.flatten_all()?)
    }

    /// What became of every parameter's gradient (level 2).
    fn record_gradients(&self, gradients: &GradStore) -> Result<()> {
        if PROBE.records(Level::METADATA) {
            // Looking at every gradient takes its time too.
            let _span = span!(PROBE, "gradients");
            PROBE.at(Level::METADATA, |to| self.plan.record(&to, gradients)).transpose()?;
        }
        Ok(())
    }
}

fn plan(parameters: &BTreeMap<String, Var>) -> GradientPlan {
    GradientPlan::from_named_vars(&PROBE, record::ROOT, parameters)
}

/// What `variables` holds, in the order of the names.
fn named(variables: &VarMap) -> BTreeMap<String, Var> {
    let variables = variables.data().lock().expect("nobody panics while holding it");
    variables.iter().map(|(name, variable)| (name.clone(), variable.clone())).collect()
}

/// Draws the matrices; gains stay one and biases zero. candle's own generator on the CPU cannot
/// be seeded.
fn draw_weights(parameters: &BTreeMap<String, Var>, seed: u64) -> Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for parameter in parameters.values() {
        let &[rows, columns] = parameter.dims() else { continue };
        let bound = 1. / (columns as f32).sqrt();
        let values: Vec<f32> =
            (0..rows * columns).map(|_| random.random_range(-bound..bound)).collect();
        parameter.set(&Tensor::from_vec(values, (rows, columns), &Device::Cpu)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(steps: u64, seed: u64, fault: Option<Fault<'static>>) -> Vec<f32> {
        let mut trainer = Trainer::new(seed, fault).unwrap();
        (1..=steps).map(|number| trainer.step(number).unwrap()).collect()
    }

    fn loss_of_first_step(trainer: &Trainer) -> Tensor {
        let size = (ROWS, trainer.model.config().context);
        trainer.forward(1, &trainer.corpus.batch(1, 1, size).unwrap()).unwrap()
    }

    #[test]
    fn every_parameter_gets_a_gradient_that_is_not_zero() {
        let trainer = Trainer::new(1, None).unwrap();
        let gradients = loss_of_first_step(&trainer).backward().unwrap();
        assert_eq!(trainer.parameters.len(), 2 + 2 * 16 + 2 + 2);
        for (name, parameter) in &trainer.parameters {
            let gradient = gradients.get(parameter.as_tensor()).expect(name);
            assert_eq!(gradient.shape(), parameter.shape(), "{name}");
            let square = gradient.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(square > 0., "the gradient of {name} is zero");
        }
    }

    #[test]
    fn a_parameter_outside_the_graph_does_not_stop_the_training() {
        let mut trainer = Trainer::new(1, None).unwrap();
        let stray = Var::zeros(3, DType::F32, &Device::Cpu).unwrap();
        trainer.add_unused("stray.weight", stray).unwrap();
        assert!(trainer.parameter_names().any(|name| name == "stray.weight"));
        let first = trainer.step(1).unwrap();
        assert_eq!(first, losses(1, 1, None)[0]);
    }

    #[test]
    fn the_loss_starts_near_chance_and_falls() {
        let losses = losses(20, 1, None);
        let chance = (Corpus::embedded().vocabulary_size() as f32).ln();
        assert!((losses[0] - chance).abs() < 0.5, "{} against {chance}", losses[0]);
        assert!(losses[19] < losses[0] - 0.8, "{losses:?}");
    }

    #[test]
    fn heads_in_turn_learn_the_same_as_heads_together() {
        let together = losses(3, 1, None);
        let mut trainer = Trainer::new(1, None).unwrap();
        trainer.set_heads(Heads::InTurn);
        for (number, together) in (1..=3).zip(together) {
            let in_turn = trainer.step(number).unwrap();
            assert!((in_turn - together).abs() < 1e-3, "step {number}: {in_turn}, {together}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_losses() {
        assert_eq!(losses(2, 7, None), losses(2, 7, None));
        assert_ne!(losses(2, 7, None), losses(2, 8, None));
    }

    #[test]
    fn a_planted_nan_poisons_the_loss_from_its_step_on() {
        let fault = Fault { step: 3, layer: crate::run::BROKEN_LAYER };
        let losses = losses(5, 1, Some(fault));
        let finite: Vec<bool> = losses.iter().map(|loss| loss.is_finite()).collect();
        assert_eq!(finite, [true, true, false, false, false]);
    }
}
