//! Instrumented modules, recorded into a file and read back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use candle_core::{D, DType, Device, Error, Module, ModuleT, Result, Tensor};
use tmrun_formats::wire::{Chunks, Frame, Op, Record, Span, Stats, Step, Walked, flags};
use tmrun_formats::wire::{Tensor as TensorRecord, groups};
use tmrun_formats::{LaneId, NameId, SpanId, SpanKind};
use tmrun_probe_candle::nn::{
    self as candle_nn, Embedding, LayerNorm, Linear, VarBuilder, VarMap, embedding, layer_norm,
    linear, seq,
};
use tmrun_probe_candle::{Instrumented, instrument, instrument_on, instrument_t, tensor_id};
use tmrun_probe_core::{Level, ProfileRun, install, probe};

type Function = fn(&Tensor) -> Result<Tensor>;
type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

probe!(static PROBE: lanes = 16, slots = 1 << 10);
probe!(static OTHER: lanes = 2, slots = 1 << 10);

/// One at a time: it is one probe. It is installed when a layer is there already.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    LazyLock::force(&EARLY);
    one
}

/// Made before there was a probe.
static EARLY: LazyLock<Instrumented<Function>> = LazyLock::new(|| {
    let early: Function = |x| x + 1.0;
    let early = instrument("early", "plus_one", early);
    install(PROBE).unwrap();
    early
});

/// What a recording holds.
#[derive(Debug)]
struct Recorded {
    /// Of each name, its text, type and source.
    names: BTreeMap<NameId, (String, Option<String>, Option<String>)>,
    /// The records of the thread's lane.
    records: Vec<Record>,
}

impl Recorded {
    fn text(&self, name: NameId) -> &str {
        self.names.get(&name).map_or("", |(text, ..)| text)
    }

    /// The operations: layer and kind, in order.
    fn ops(&self) -> Vec<(&str, &str)> {
        let op = |record: &Record| Some((record.header().name, record.payload::<Op>()?.op));
        let ops = self.records.iter().filter_map(op);
        ops.map(|(layer, op)| (self.text(layer), self.text(op))).collect()
    }

    /// Each span of kind module with the name of the one around it, in the order in which they ended.
    fn modules(&self) -> Vec<(&str, &str)> {
        let spans = self.records.iter().filter_map(|record| {
            let (header, span) = (record.header(), record.payload::<Span>()?);
            Some((span.id(header.span), self.text(header.name), span))
        });
        let spans: Vec<_> = spans.collect();
        let by_id: BTreeMap<SpanId, &str> =
            spans.iter().map(|(id, name, _)| (*id, *name)).collect();
        let modules = spans.iter().filter(|(.., span)| span.kind == SpanKind::MODULE);
        let around = |span: &Span| by_id.get(&span.parent).copied().unwrap_or_default();
        modules.map(|(_, name, span)| (*name, around(span))).collect()
    }

    fn count<P: tmrun_formats::wire::Payload>(&self) -> usize {
        self.records.iter().filter_map(|record| record.payload::<P>()).count()
    }
}

fn recorded(level: Level, f: impl FnOnce() -> Result<()>) -> Recorded {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let recording =
        PROBE.record(&path, ProfileRun::training("test", 1, "cpu").level(level)).unwrap();
    // Another test may call its model meanwhile, on a lane of its own.
    let lane = PROBE.at(Level::PULSE, |to| to.lane()).unwrap();
    f().unwrap();
    recording.finish().unwrap();
    read(&std::fs::read(&path).unwrap(), lane)
}

fn read(file: &[u8], lane: LaneId) -> Recorded {
    let mut recorded = Recorded { names: BTreeMap::new(), records: Vec::new() };
    for walked in Chunks::new(file) {
        let Walked::Chunk(chunk) = walked else { continue };
        for frame in chunk.frames().flatten() {
            if let Ok(Frame::Name(name)) = frame.decode() {
                let of = |text: Option<&str>| text.map(str::to_owned);
                let node = (name.text.to_owned(), of(name.node_type), of(name.source));
                recorded.names.insert(name.id, node);
            }
        }
        if chunk.header.lane == lane {
            recorded.records.extend(chunk.records());
        }
    }
    recorded
}

/// A model as users of candle write them.
struct Model {
    tokens: Embedding,
    norm: LayerNorm,
    mlp: Instrumented<Mlp>,
    head: Linear,
}

struct Mlp {
    up: Linear,
    down: Linear,
}

impl Mlp {
    fn new(vb: VarBuilder) -> Result<Self> {
        Ok(Self { up: linear(4, 8, vb.pp("up"))?, down: linear(8, 4, vb.pp("down"))? })
    }
}

impl Module for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down.forward(&self.up.forward(x)?.relu()?)
    }
}

impl Model {
    fn new(vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            tokens: embedding(10, 4, vb.pp("tokens"))?,
            norm: layer_norm(4, 1e-5, vb.pp("blocks").pp(0).pp("norm"))?,
            mlp: candle_nn::instrument_in(vb.pp("blocks").pp(0).pp("mlp"), "mlp", Mlp::new)?,
            head: linear(4, 10, vb.pp("head"))?,
        })
    }
}

impl Module for Model {
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let x = self.tokens.forward(ids)?;
        self.head.forward(&(&x + self.mlp.forward(&self.norm.forward(&x)?)?)?)
    }
}

fn model() -> Result<(VarMap, Model, Tensor)> {
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
    let model = Model::new(vb)?;
    Ok((variables, model, Tensor::new(&[[1u32, 2, 3]], &Device::Cpu)?))
}

#[test]
fn layers_report_under_the_keys_of_their_parameters() -> Outcome {
    let (variables, model, ids) = model()?;
    let found = recorded(Level::METADATA, || model.forward(&ids).map(drop));
    assert_eq!(
        found.ops(),
        [
            ("tokens", "embedding"),
            ("blocks.0.norm", "layer_norm"),
            ("blocks.0.mlp.up", "linear"),
            ("blocks.0.mlp.down", "linear"),
            ("blocks.0.mlp", "mlp"),
            ("head", "linear"),
        ]
    );
    let leaves: BTreeSet<&str> = found
        .ops()
        .into_iter()
        .map(|(layer, _)| layer)
        .filter(|it| *it != "blocks.0.mlp")
        .collect();
    let variables = variables.data().lock().unwrap();
    let of_keys: BTreeSet<&str> =
        variables.keys().filter_map(|key| Some(key.rsplit_once('.')?.0)).collect();
    assert_eq!(leaves, of_keys);
    assert_eq!(
        found.modules(),
        [
            ("tokens", ""),
            ("blocks.0.norm", ""),
            ("blocks.0.mlp.up", "blocks.0.mlp"),
            ("blocks.0.mlp.down", "blocks.0.mlp"),
            ("blocks.0.mlp", ""),
            ("head", ""),
        ]
    );
    // A node says what it is, and where the model made it.
    for (text, kind, source) in found.names.values().filter(|(text, ..)| text.contains("mlp.up")) {
        assert_eq!((text.as_str(), kind.as_deref()), ("blocks.0.mlp.up", Some("linear")));
        assert!(
            source.as_ref().unwrap().starts_with("probe-candle/tests/modules.rs:"),
            "{source:?}"
        );
    }
    Ok(())
}

#[test]
fn an_operation_has_what_went_in_and_what_came_out() -> Outcome {
    let (_, model, ids) = model()?;
    let mut outputs = Vec::new();
    let found = recorded(Level::METADATA, || {
        let x = model.tokens.forward(&ids)?;
        outputs = vec![(ids.clone(), x.clone()), (x.clone(), model.norm.forward(&x)?)];
        Ok(())
    });
    let groups: Vec<&[Record]> = groups(&found.records).collect();
    let ops: Vec<_> = groups.iter().filter(|group| group[0].payload::<Op>().is_some()).collect();
    assert_eq!(ops.len(), 2);
    for (group, (input, output)) in ops.iter().zip(&outputs) {
        let input_of = group.iter().find_map(|record| {
            record.payload::<tmrun_formats::wire::OpInput>().map(|five| five.tensors[0])
        });
        assert_eq!(input_of, Some(tensor_id(input)));
        assert_eq!(group[0].payload::<Op>().unwrap().output, tensor_id(output));
    }
    // The embedding is on the way to a gradient, and what the fused norm makes of it is not.
    let tracked: Vec<bool> = found
        .records
        .iter()
        .filter(|record| record.payload::<TensorRecord>().is_some())
        .map(|record| record.header().flags & flags::TENSOR_REQUIRES_GRAD != 0)
        .collect();
    assert_eq!(tracked, [true, false]);
    Ok(())
}

#[test]
fn each_level_adds_what_it_says_and_none_changes_the_result() -> Outcome {
    let (_, model, ids) = model()?;
    let plain = model.forward(&ids)?.flatten_all()?.to_vec1::<f32>()?;
    let counts = [Level::PULSE, Level::TIMING, Level::METADATA, Level::NUMERICS].map(|level| {
        let found = recorded(level, || {
            let y = model.forward(&ids)?.flatten_all()?.to_vec1::<f32>()?;
            assert_eq!(y, plain);
            Ok(())
        });
        let [spans, ops] = [found.modules().len(), found.count::<Op>()];
        [spans, ops, found.count::<TensorRecord>(), found.count::<Stats>()]
    });
    assert_eq!(counts, [[0; 4], [6, 6, 0, 0], [6, 6, 6, 0], [6, 6, 6, 6]]);
    Ok(())
}

#[test]
fn calls_are_of_the_step_and_the_micro_batch_that_are_open() -> Outcome {
    let (_, model, ids) = model()?;
    let found = recorded(Level::TIMING, || {
        for number in 1..=2 {
            let step = PROBE.step(number);
            for micro_batch in 0..2 {
                let _micro_batch = step.micro_batch(micro_batch);
                model.forward(&ids)?;
            }
        }
        Ok(())
    });
    let mut open = Vec::new();
    let mut calls: BTreeMap<(u64, u32), usize> = BTreeMap::new();
    for record in &found.records {
        let header = record.header();
        if let Some(step) = record.payload::<Step>() {
            match header.flags & flags::STEP_END {
                0 => open.push((step.number, step.micro_batch)),
                _ => drop(open.pop()),
            }
        } else if record.payload::<Op>().is_some() {
            assert_eq!(open.len(), 2, "a step and a micro-batch");
            *calls.entry(*open.last().unwrap()).or_default() += 1;
        }
    }
    let six = |number| [((number, 0), 6), ((number, 1), 6)];
    assert_eq!(calls.into_iter().collect::<Vec<_>>(), [six(1), six(2)].concat());
    Ok(())
}

#[test]
fn an_error_stays_what_it_is_and_says_in_which_layer() -> Outcome {
    let (_, model, ids) = model()?;
    let wrong = Tensor::ones((2, 3), DType::F32, &Device::Cpu)?;
    let check = |error: Error| {
        let Error::Context { inner, context } = &error else { panic!("{error:?}") };
        let expected = "in blocks.0.mlp.up (linear) with inputs [[2, 3]]";
        // The layer around says so too.
        let Error::Context { inner, context: within } = &**inner else { panic!("{inner:?}") };
        assert!(context.to_string().starts_with("in blocks.0.mlp (mlp)"), "{context}");
        assert_eq!(within.to_string(), expected);
        let mut plain = &**inner;
        while let Error::WithBacktrace { inner, .. } = plain {
            plain = inner;
        }
        assert!(matches!(plain, Error::ShapeMismatchBinaryOp { .. }), "{plain:?}");
    };
    check(model.mlp.forward(&wrong).unwrap_err());
    let found = recorded(Level::NUMERICS, || {
        check(model.mlp.forward(&wrong).unwrap_err());
        model.forward(&ids).map(drop)
    });
    // The spans ended all the same, and there is no operation of what failed.
    assert_eq!((found.modules().len(), found.count::<Op>()), (2 + 6, 6));
    Ok(())
}

#[test]
fn modules_that_train_otherwise_than_they_infer_are_instrumented_as_such() -> Outcome {
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
    let norm = candle_nn::batch_norm(3, 1e-5, vb.pp("bn"))?;
    let dropout = instrument_t("drop", "dropout", candle_nn::Dropout::new(0.5));
    let x = Tensor::ones((2, 3), DType::F32, &Device::Cpu)?;
    let through = |module: &dyn ModuleT, train| module.forward_t(&x, train);
    let found = recorded(Level::TIMING, || {
        assert_eq!(through(&dropout, false)?.to_vec2::<f32>()?, x.to_vec2::<f32>()?);
        through(&norm, true)?;
        norm.forward_train(&x)?;
        dropout.forward(&x, true).map(drop)
    });
    let (norm, dropout) = (("bn", "batch_norm"), ("drop", "dropout"));
    assert_eq!(found.ops(), [dropout, norm, norm, dropout]);
    Ok(())
}

#[test]
fn modules_keep_their_place_in_a_sequence_and_their_own_methods() -> Outcome {
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
    let first = linear(3, 5, vb.pp("0"))?;
    assert_eq!(first.weight().dims(), [5, 3]);
    let bend = instrument("1", "relu", candle_nn::Activation::Relu);
    let layers = seq().add(first).add(bend).add_fn(|x| x * 2.0);
    let x = Tensor::ones((2, 3), DType::F32, &Device::Cpu)?;
    let found = recorded(Level::TIMING, || layers.forward(&x).map(drop));
    assert_eq!(found.ops(), [("0", "linear"), ("1", "relu")]);
    Ok(())
}

#[test]
fn operations_that_pass_no_gradient_on_report_within_the_layer_that_calls_them() -> Outcome {
    let x = Tensor::ones((2, 4), DType::F32, &Device::Cpu)?;
    let gain = Tensor::ones(4, DType::F32, &Device::Cpu)?;
    let attention = instrument("attn", "attention", |x: &Tensor| {
        let x = candle_nn::ops::rms_norm(x, &gain, 1e-5)?;
        candle_nn::ops::softmax(&candle_nn::ops::softmax_last_dim(&x)?, D::Minus1)
    });
    let found = recorded(Level::TIMING, || attention.forward(&x).map(drop));
    let within = [("rms_norm", "attn"), ("softmax_last_dim", "attn"), ("attn", "")];
    assert_eq!(found.modules(), within);
    Ok(())
}

#[test]
fn a_layer_that_was_there_before_the_probe_reports_to_it() -> Outcome {
    let x = Tensor::ones(3, DType::F32, &Device::Cpu)?;
    let found = recorded(Level::TIMING, || EARLY.forward(&x).map(drop));
    assert_eq!(found.ops(), [("early", "plus_one")]);
    Ok(())
}

#[test]
fn a_layer_of_another_probe_reports_to_that_one() -> Outcome {
    let (dir, x) = (tempfile::tempdir()?, Tensor::ones(3, DType::F32, &Device::Cpu)?);
    let layer = instrument_on(OTHER, "other", "double", |x: &Tensor| x + x);
    let (path, mut lane) = (dir.path().join("other.tmrun"), None);
    let found = recorded(Level::TIMING, || {
        let run = ProfileRun::training("test", 1, "cpu").level(Level::METADATA);
        let recording = OTHER.record(&path, run).unwrap();
        lane = OTHER.at(Level::PULSE, |to| to.lane());
        layer.forward(&x)?;
        recording.finish().unwrap();
        Ok(())
    });
    assert_eq!(found.ops(), []);
    let found = read(&std::fs::read(&path)?, lane.expect("a lane"));
    assert_eq!(found.ops(), [("other", "double")]);
    assert_eq!((found.modules(), found.count::<TensorRecord>()), (vec![("other", "")], 1));
    Ok(())
}

#[test]
fn a_level_for_some_layers_is_for_those_alone() -> Outcome {
    let (_, model, ids) = model()?;
    let found = recorded(Level::PULSE, || {
        PROBE.set_focus("blocks.**", Level::METADATA).expect("a pattern");
        let done = model.forward(&ids).map(drop);
        PROBE.clear_focus("blocks.**");
        done
    });
    let layers: Vec<&str> = found.ops().into_iter().map(|(layer, _)| layer).collect();
    assert_eq!(layers, ["blocks.0.norm", "blocks.0.mlp.up", "blocks.0.mlp.down", "blocks.0.mlp"]);
    assert_eq!(found.count::<TensorRecord>(), 4);
    Ok(())
}
