//! The one place that a layer's call goes through.

mod instrumented;
#[cfg(feature = "nn")]
pub mod nn;

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

use candle_core::{Error, Result, Tensor};
use tmrun_probe_core::{Category, Global, Level, NameId, Node, Target, span};

use crate::recorder::CandleRecorder;

pub use instrumented::{
    Instrumented, InstrumentedT, instrument, instrument_on, instrument_t, instrument_t_on,
};

/// Stands for names that no probe has interned yet. (Of ids that are given out it would be the last.)
const NOT_YET: u32 = u32::MAX;

/// A layer's address and kind, and the probe that its calls are recorded by.
///
/// The address is that of its parameters without their last part: `blocks.0.attn.q_proj` holds
/// `blocks.0.attn.q_proj.weight`. The kind is what the recording calls the operation. The kinds of
/// candle-nn's layers are the names of their functions (`linear`, `layer_norm`, …): by them the analyzer
/// knows those that pass no gradient on.
///
/// What a call records, of the calling thread's lane and so in its open step and micro-batch:
///
/// | level | what |
/// | --- | --- |
/// | 0 | nothing: one load and a branch |
/// | 1 | a span of kind module, and the operation with its output and inputs |
/// | 2 | the output's metadata |
/// | 3 | with its statistics, for which every element is looked at; a span `statistics` has that time |
///
/// It allocates nothing: at levels 0 to 2, and on the processor at level 3. It waits for the read lock of the
/// output's storage, and at level 3 on an accelerator until all work before it is done. A type that has no
/// statistics has its metadata alone.
pub struct Layer<T = Global> {
    address: Cow<'static, str>,
    kind: Cow<'static, str>,
    /// Where it was made; of an operation without parameters nowhere in particular.
    made_at: Option<&'static Location<'static>>,
    /// The address in the recording, with the kind and the place in the source.
    node: AtomicU32,
    /// What the recording calls the operation.
    op: AtomicU32,
    target: T,
}

impl Layer {
    /// A layer that is recorded by the probe that the program installs
    /// ([`install`](tmrun_probe_core::install)), be it before or after this. An empty address becomes the
    /// kind.
    ///
    /// This is set-up, and so is a layer's first call where the probe is installed later: it interns names.
    #[track_caller]
    pub fn new(address: impl Into<Cow<'static, str>>, kind: impl Into<Cow<'static, str>>) -> Self {
        Self::on(Global, address, kind)
    }

    /// An operation without parameters and without an address of its own: it has its kind's name, and the
    /// spans around it say where it was called. It can be a `static`.
    pub const fn of_op(kind: &'static str) -> Self {
        Self {
            address: Cow::Borrowed(kind),
            kind: Cow::Borrowed(kind),
            made_at: None,
            node: AtomicU32::new(NOT_YET),
            op: AtomicU32::new(NOT_YET),
            target: Global,
        }
    }
}

impl<T: Target> Layer<T> {
    /// A layer that is recorded by this probe, or on this lane.
    #[track_caller]
    pub fn on(
        target: T,
        address: impl Into<Cow<'static, str>>,
        kind: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (mut address, kind) = (address.into(), kind.into());
        if address.is_empty() {
            address = kind.clone();
        }
        let layer = Self {
            address,
            kind,
            made_at: Some(Location::caller()),
            node: AtomicU32::new(NOT_YET),
            op: AtomicU32::new(NOT_YET),
            target,
        };
        // Until a probe is installed there is none with a lane.
        if layer.target.probe().lanes() > 0 {
            layer.intern();
        }
        layer
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Runs `body`, which is the layer, and records the call.
    ///
    /// # Errors
    ///
    /// What `body` gives, with the layer and the shapes it met as context.
    #[inline]
    pub fn call(
        &self,
        inputs: &[&Tensor],
        body: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.call_for(inputs, |output| output, body)
    }

    /// The same for a layer that gives more than a tensor: `output` picks the one that is recorded.
    ///
    /// ```
    /// # use candle_core::{DType, Device, Result, Tensor};
    /// # use tmrun_probe_candle::Layer;
    /// # fn main() -> Result<()> {
    /// let attention = Layer::new("blocks.0.attn", "attention");
    /// let x = Tensor::ones((2, 3), DType::F32, &Device::Cpu)?;
    /// let (mixed, weights) = attention.call_for(&[&x], |(mixed, _)| mixed, || {
    ///     Ok((x.affine(2., 0.)?, x.copy()?))
    /// })?;
    /// # let _ = (mixed, weights);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn call_for<R>(
        &self,
        inputs: &[&Tensor],
        output: impl FnOnce(&R) -> &Tensor,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if T::MAX_LEVEL < Level::TIMING || !self.target.probe().records(Level::TIMING) {
            return body().map_err(|error| self.explain(inputs, error));
        }
        let (node, op) = self.names();
        let span = span!(self.target, node, kind = MODULE);
        let start = self.target.at(Level::TIMING, |to| to.now());
        let result = body().map_err(|error| self.explain(inputs, error))?;
        let output = output(&result);
        if let Some(start) = start {
            self.target.at(Level::TIMING, |to| {
                to.candle_op(node, op, start..to.now(), output, inputs);
            });
        }
        drop(span);
        self.record_output(node, output);
        Ok(result)
    }

    fn record_output(&self, node: NameId, output: &Tensor) {
        if self.target.probe().wants(node, Level::NUMERICS) {
            // Looking at every element takes its time: this span keeps it apart from the layers around.
            let _span = span!(self.target, "statistics");
            let looked = self.target.at(Level::NUMERICS, |to| {
                to.candle_stats(node, output, Category::ACTIVATION, true)
            });
            if let Some(Ok(_)) = looked {
                return;
            }
        }
        self.target.at(Level::METADATA, |to| to.candle_tensor(node, output, Category::ACTIVATION));
    }

    /// Its names in the recording: the node and the operation.
    #[inline]
    fn names(&self) -> (NameId, NameId) {
        match self.node.load(Ordering::Acquire) {
            NOT_YET => self.intern(),
            node => (NameId(node), NameId(self.op.load(Ordering::Relaxed))),
        }
    }

    /// Makes its names known to the probe. (Whoever does so at the same moment gets the same ones.)
    #[cold]
    #[inline(never)]
    fn intern(&self) -> (NameId, NameId) {
        let probe = self.target.probe();
        let source = self.made_at.map(|place| format!("{}:{}", place.file(), place.line()));
        let node = probe.node(&Node {
            name: &self.address,
            node_type: Some(&self.kind),
            static_id: self.made_at.map(|_| &*self.address),
            source: source.as_deref(),
        });
        let op = probe.name(&self.kind);
        self.op.store(op.0, Ordering::Relaxed);
        self.node.store(node.0, Ordering::Release);
        (node, op)
    }

    #[cold]
    fn explain(&self, inputs: &[&Tensor], error: Error) -> Error {
        let shapes: Vec<_> = inputs.iter().map(|input| input.shape()).collect();
        error.context(format!("in {} ({}) with inputs {shapes:?}", self.address, self.kind))
    }
}

impl<T: Clone> Clone for Layer<T> {
    fn clone(&self) -> Self {
        // What was interned is the same for both; what was not will be, twice.
        let node = self.node.load(Ordering::Acquire);
        Self {
            address: self.address.clone(),
            kind: self.kind.clone(),
            made_at: self.made_at,
            node: AtomicU32::new(node),
            op: AtomicU32::new(self.op.load(Ordering::Relaxed)),
            target: self.target.clone(),
        }
    }
}

impl<T> fmt::Debug for Layer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer")
            .field("address", &self.address)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
