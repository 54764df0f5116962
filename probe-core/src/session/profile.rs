//! A session of timed operations, step by step.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tmrun_formats::trace::TracePhase;
use tmrun_formats::wire::{Op, Step, flags};
use tmrun_formats::{Level, NameId, Phase, TensorId, Ticks};

use super::ground::Ground;
use super::{SessionBuilder, SessionClock, SessionError};
use crate::clock::Clock;
use crate::facts::OpFact;
use crate::names::Node;
use crate::recording::ProfileRun;
use crate::step::OpenStep;

/// What a profile is of.
#[derive(Debug, Clone)]
pub struct ProfileConfig {
    /// The entry point.
    pub entrypoint: String,
    /// What its steps do.
    pub phase: TracePhase,
    /// The build profile.
    pub profile: String,
    /// The cargo features that it was built with.
    pub cargo_features: Vec<String>,
    /// The static analysis that ids were copied from.
    pub analysis_id: Option<String>,
    /// The build that runs.
    pub build_id: Option<String>,
}

impl ProfileConfig {
    /// Of training.
    pub fn train(entrypoint: impl Into<String>) -> Self {
        Self::new(entrypoint.into(), TracePhase::Train)
    }

    /// Of inference.
    pub fn infer(entrypoint: impl Into<String>) -> Self {
        Self::new(entrypoint.into(), TracePhase::Infer)
    }

    fn new(entrypoint: String, phase: TracePhase) -> Self {
        Self {
            entrypoint,
            phase,
            profile: "release".to_owned(),
            cargo_features: Vec::new(),
            analysis_id: None,
            build_id: None,
        }
    }

    fn run(self) -> ProfileRun {
        let run = match self.phase {
            TracePhase::Train => ProfileRun::training(self.entrypoint, 1, ""),
            TracePhase::Infer => ProfileRun::inference(self.entrypoint, 1, ""),
        };
        let run = run.profile(self.profile).cargo_features(self.cargo_features);
        let run = self.analysis_id.into_iter().fold(run, ProfileRun::analysis_id);
        self.build_id.into_iter().fold(run, ProfileRun::build_id)
    }
}

/// A session of timed operations and edges between the nodes of a static analysis, step by step.
///
/// ```
/// use tmrun_probe_core::session::{ProfileConfig, ProfileSession, TimedOperation};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("profile.tmrun");
/// let mut session = ProfileSession::open(&path, ProfileConfig::train("model::train_step"))?;
/// for step in 1..=2 {
///     session.set_step(step);
///     let matmul = session.begin_operation("op:encoder/matmul", "matmul", &["x".into()])?;
///     let took_ns = session.end_operation(&matmul, Some("y".into()))?;
///     session.record_edge_timing("tensor:x", "op:encoder/matmul", took_ns)?;
///     let _softmax = TimedOperation::begin(&mut session, "op:encoder/softmax", "softmax", &[])?;
/// }
/// session.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The file converts to `candle-graph/runtime/3` (`tmrun convert`).
#[derive(Debug)]
#[must_use = "a session that is dropped is marked as failed"]
pub struct ProfileSession {
    ground: Ground,
    phase: TracePhase,
    step: Option<OpenStep>,
    number: u64,
    active: HashMap<String, Active>,
    events: u64,
}

/// An operation that is under way.
#[derive(Debug)]
struct Active {
    node: NameId,
    op: NameId,
    inputs: Vec<TensorId>,
    start: Ticks,
}

impl ProfileSession {
    /// Opens a session into a new file; the folder is made if it is not there.
    ///
    /// # Errors
    ///
    /// When there is no memory for it, the file exists, or it cannot be recorded.
    pub fn open(path: impl AsRef<Path>, config: ProfileConfig) -> Result<Self, SessionError> {
        let phase = config.phase;
        let ground = Ground::open(path.as_ref(), config.run(), SessionBuilder::default().sizes())?;
        Ok(Self { ground, phase, step: None, number: 0, active: HashMap::new(), events: 0 })
    }

    /// What its steps do.
    pub const fn phase(&self) -> TracePhase {
        self.phase
    }

    /// The step that it is in, 0 for none.
    pub const fn step(&self) -> u64 {
        self.number
    }

    /// Goes on in this step, from 1; 0 is none.
    pub fn set_step(&mut self, step: u64) {
        self.leave_step();
        self.number = step;
        if step != 0 && self.ground.wants(NameId::NONE, Level::PULSE) {
            let step = Step { number: step, micro_batch: 0, phase: Phase(0) };
            self.step = Some(OpenStep::begin(self.ground.recorder(), step, 0));
        }
    }

    fn leave_step(&mut self) {
        if let Some(step) = self.step.take() {
            step.end(self.ground.recorder());
        }
    }

    /// An operation of this node begins. Returns what to end it by.
    ///
    /// # Errors
    ///
    /// None that there are today.
    pub fn begin_operation(
        &mut self,
        static_id: impl AsRef<str>,
        op: impl AsRef<str>,
        inputs: &[String],
    ) -> Result<String, SessionError> {
        self.events = self.events.saturating_add(1);
        let event_id = format!("{}-op-{}-{}", self.phase, self.number, self.events);
        let active = Active {
            node: self.node(static_id.as_ref()),
            op: self.ground.name(op.as_ref()),
            inputs: inputs.iter().map(|id| TensorId(self.ground.name(id).0.into())).collect(),
            start: SessionClock::ticks(),
        };
        self.active.insert(event_id.clone(), active);
        Ok(event_id)
    }

    /// It ends. Returns how many nanoseconds it took.
    ///
    /// # Errors
    ///
    /// When no operation of this name is under way.
    pub fn end_operation(
        &mut self,
        event_id: &str,
        output: Option<String>,
    ) -> Result<u64, SessionError> {
        let end = SessionClock::ticks();
        let unknown = || SessionError::UnknownOperation { event_id: event_id.to_owned() };
        let Active { node, op, inputs, start } =
            self.active.remove(event_id).ok_or_else(unknown)?;
        let ground = &self.ground;
        if ground.wants(node, Level::TIMING) {
            let output = output.map_or(NameId::NONE, |id| ground.name(&id));
            let (inputs, output) = (&inputs[..], TensorId(output.0.into()));
            let fact = OpFact { op, start, end, output, inputs, ..OpFact::default() };
            let mut header = ground.header::<Op>(ground.enclosing(), start, node);
            header.flags |= if output.is_none() { 0 } else { flags::OP_OUTPUT_NAMED };
            ground.recorder().store_op(header, &fact, true);
        }
        Ok(end.since(start))
    }

    /// Records how long an edge between two nodes took.
    ///
    /// # Errors
    ///
    /// None that there are today.
    pub fn record_edge_timing(
        &mut self,
        from_static_id: impl AsRef<str>,
        to_static_id: impl AsRef<str>,
        duration_ns: u64,
    ) -> Result<(), SessionError> {
        let (from, to) = (self.node(from_static_id.as_ref()), self.node(to_static_id.as_ref()));
        if self.ground.wants(from, Level::TIMING) || self.ground.wants(to, Level::TIMING) {
            self.ground.recorder().static_edge(from, to, duration_ns);
        }
        Ok(())
    }

    /// A node of the static analysis, which has its id for an address.
    fn node(&self, static_id: &str) -> NameId {
        let id = Some(static_id);
        self.ground.probe().node(&Node { static_id: id, ..Node::named(static_id) })
    }

    /// Waits until what was recorded so far is written, a tenth of a second at most.
    ///
    /// # Errors
    ///
    /// In a process that was forked from the one that records.
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.ground.flush()
    }

    /// Ends the session. Returns its file.
    ///
    /// # Errors
    ///
    /// When the file could not be written to its end, now or earlier.
    pub fn finish(mut self) -> Result<PathBuf, SessionError> {
        self.leave_step();
        Ok(self.ground.finish(None)?.0)
    }
}

/// An operation of a [`ProfileSession`] that ends when this is dropped.
#[must_use = "an operation ends when its guard is dropped"]
#[derive(Debug)]
pub struct TimedOperation<'s> {
    session: &'s mut ProfileSession,
    event_id: String,
}

impl<'s> TimedOperation<'s> {
    /// An operation of this node begins.
    ///
    /// # Errors
    ///
    /// As [`ProfileSession::begin_operation`].
    pub fn begin(
        session: &'s mut ProfileSession,
        static_id: impl AsRef<str>,
        op: impl AsRef<str>,
        inputs: &[String],
    ) -> Result<Self, SessionError> {
        let event_id = session.begin_operation(static_id, op, inputs)?;
        Ok(Self { session, event_id })
    }
}

impl Drop for TimedOperation<'_> {
    fn drop(&mut self) {
        // It is under way: nobody else knows what it is called.
        let _ = self.session.end_operation(&self.event_id, None);
    }
}
