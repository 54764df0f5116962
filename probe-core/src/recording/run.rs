//! What a run is: who runs what, on which device, built how.

use std::path::{Path, PathBuf};

use tmrun_formats::trace::{
    CaptureContract, ComparisonIdentity, RunError, TimingMode, TracePhase, TraceRun,
};
use tmrun_formats::wire::{Frame, ItemV1, RunV1, TagV1};
use tmrun_formats::{Level, Phase, RunId};

use super::retain::Retain;
use super::{host, promise};

/// What a run is. Everything but entry point, step and device has a sensible default.
///
/// ```
/// use tmrun_probe_core::ProfileRun;
///
/// let run = ProfileRun::training("trainer::update", 1, "cpu")
///     .correlation_id("nightly-42")
///     .cargo_features(["cuda"])
///     .build_id("git:abc123")
///     .tag("dataset", "small");
/// assert_eq!(run.entrypoint(), "trainer::update");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRun {
    entrypoint: String,
    pub(crate) phase: Phase,
    pub(super) capture_step: u64,
    device: String,
    warmup_steps: Option<u64>,
    run_id: Option<String>,
    correlation_id: Option<String>,
    profile: String,
    cargo_features: Vec<String>,
    cfg: Vec<String>,
    analysis_id: Option<String>,
    build_id: Option<String>,
    candle_version: Option<String>,
    measured_region_synchronized: bool,
    device_synchronized: bool,
    tags: Vec<(String, String)>,
    contract: Option<CaptureContract>,
    identity: Option<ComparisonIdentity>,
    pub(super) level: Option<Level>,
    pub(super) foci: Vec<(String, Level)>,
    pub(super) replace: bool,
    pub(super) flight: bool,
    pub(super) rings_in: Option<PathBuf>,
    pub(super) retain: Retain,
}

impl ProfileRun {
    /// A training run: its entry point, the update that it begins with (from 1) and its device.
    pub fn training(entrypoint: impl Into<String>, step: u64, device: impl Into<String>) -> Self {
        Self::new(entrypoint.into(), step, device.into(), Phase::TRAIN)
    }

    /// An inference run: its entry point, the invocation that it begins with and its device.
    pub fn inference(entrypoint: impl Into<String>, step: u64, device: impl Into<String>) -> Self {
        Self::new(entrypoint.into(), step, device.into(), Phase::INFER)
    }

    fn new(entrypoint: String, step: u64, device: String, phase: Phase) -> Self {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self {
            entrypoint,
            phase,
            capture_step: step,
            device,
            warmup_steps: None,
            run_id: None,
            correlation_id: None,
            profile: profile.to_owned(),
            cargo_features: Vec::new(),
            cfg: Vec::new(),
            analysis_id: None,
            build_id: None,
            candle_version: None,
            measured_region_synchronized: false,
            device_synchronized: false,
            tags: Vec::new(),
            contract: None,
            identity: None,
            level: None,
            foci: Vec::new(),
            replace: false,
            flight: false,
            rings_in: None,
            retain: Retain::default(),
        }
    }

    /// The entry point.
    pub fn entrypoint(&self) -> &str {
        &self.entrypoint
    }

    /// The level to start with; 1 without. The environment variable TMRUN_LEVEL goes before it.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// A focus to start with: at least this level of the nodes that the pattern stands for, see
    /// [`set_focus`](crate::ProbeRef::set_focus). The environment variable TMRUN_FOCUS
    /// (`pattern=level,…`) goes before all of these.
    #[must_use]
    pub fn focus(mut self, pattern: &str, level: Level) -> Self {
        self.foci.push((pattern.to_owned(), level));
        self
    }

    /// Whether a file of that name may be written over; not without.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Keeps the rings in a mapped file, so that a crash of any kind leaves every record that was
    /// stored: `tmrun salvage` joins it to the recording. It lies in `$XDG_RUNTIME_DIR/tmrun`, where
    /// that is an absolute path to a folder of this user's, else in `/dev/shm/tmrun-<uid>`, takes as
    /// much room as the probe's rings and names, and is removed when the run is finished. (Linux, 64
    /// bits.)
    ///
    /// Both are in memory (tmpfs) as a rule, and must be if recording is never to wait: what a folder
    /// on a disk costs, [`rings_in`](Self::rings_in) says.
    #[must_use]
    pub fn flight_recorder(mut self) -> Self {
        self.flight = true;
        self
    }

    /// The same with the rings in this folder; it is made if it is not there, for this user only. One
    /// that others own or can write to is refused.
    ///
    /// Recording never waits where the folder is in memory (tmpfs), and nowhere else. On a disk the
    /// rings outlive the machine too, at a price that the threads which record pay:
    ///
    /// - The system writes dirty pages back every few seconds, and protects each of them from writing
    ///   when it does. The next record that is stored to such a page is a page fault, which may wait for
    ///   the write that runs, or for the file system's journal (ext4).
    /// - A file system that copies on write (btrfs, say) may need a new block for a page
    ///   that it has written back, whatever was reserved. On a full disk that store is a SIGBUS, and the
    ///   program dies.
    #[must_use]
    pub fn rings_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.rings_in = Some(folder.into());
        self.flight_recorder()
    }

    /// Invocations that warm up before the first one that counts; 0 without, and all before the
    /// captured one where a [session](crate::session) captures one.
    #[must_use]
    pub fn warmup_steps(mut self, steps: u64) -> Self {
        self.warmup_steps = Some(steps);
        self
    }

    /// The run's identity, when the application has one; drawn at random without.
    #[must_use]
    pub fn run_id(mut self, id: impl Into<String>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// What joins this run to others of the same work.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// The build profile, when it is not the debug or release that the probe was built with.
    #[must_use]
    pub fn profile(mut self, profile: impl Into<String>) -> Self {
        self.profile = profile.into();
        self
    }

    /// The cargo features that the application was built with.
    #[must_use]
    pub fn cargo_features<T: Into<String>>(
        mut self,
        features: impl IntoIterator<Item = T>,
    ) -> Self {
        self.cargo_features.extend(features.into_iter().map(Into::into));
        self
    }

    /// The `cfg` values that the application was built with.
    #[must_use]
    pub fn cfg<T: Into<String>>(mut self, cfg: impl IntoIterator<Item = T>) -> Self {
        self.cfg.extend(cfg.into_iter().map(Into::into));
        self
    }

    /// The static analysis that `static_id`s were copied from.
    #[must_use]
    pub fn analysis_id(mut self, id: impl Into<String>) -> Self {
        self.analysis_id = Some(id.into());
        self
    }

    /// The build that runs.
    #[must_use]
    pub fn build_id(mut self, id: impl Into<String>) -> Self {
        self.build_id = Some(id.into());
        self
    }

    /// The version of candle.
    #[must_use]
    pub fn candle_version(mut self, version: impl Into<String>) -> Self {
        self.candle_version = Some(version.into());
        self
    }

    /// The application synchronises the device right before and after the measured region.
    #[must_use]
    pub fn measured_region_device_synchronized(mut self) -> Self {
        self.measured_region_synchronized = true;
        self
    }

    /// The application synchronises the device around every span that it reports, and so before and
    /// after the measured region.
    #[must_use]
    pub fn device_synchronized(mut self) -> Self {
        self.device_synchronized = true;
        self.measured_region_synchronized = true;
        self
    }

    /// A descriptive tag; of two with one key the last holds.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.tags.retain(|(known, _)| *known != key);
        self.tags.push((key, value.into()));
        self
    }

    /// How much of each plane this run promises to observe. It is checked before the file is made.
    #[must_use]
    pub fn capture_contract(mut self, contract: CaptureContract) -> Self {
        self.contract = Some(contract);
        self
    }

    /// What has to be equal for this run to be compared with another. It is checked before the file
    /// is made.
    #[must_use]
    pub fn comparison_identity(mut self, identity: ComparisonIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The same run as one that a session captures a step of: with all that is asked for, and with
    /// what the step's number says of the rest, where the application says nothing.
    pub(crate) fn of_session(mut self) -> Self {
        let step = self.capture_step;
        let what = if self.phase == Phase::INFER { "inference" } else { "update" };
        self.level = self.level.or(Some(Level::NUMERICS));
        self.warmup_steps = self.warmup_steps.or(Some(step.saturating_sub(1)));
        self.correlation_id =
            self.correlation_id.or_else(|| Some(format!("{}/{what}-{step}", self.entrypoint)));
        self
    }

    /// What the trace of a session of this run is to say of it, but for what is not known before: its
    /// time, and its identity where the application gives none.
    pub fn planned(&self) -> TraceRun {
        self.clone().of_session().as_trace()
    }

    /// Holds all that is held of the run of a trace.
    pub(crate) fn check_as_trace(&self) -> Result<(), RunError> {
        self.as_trace().check()
    }

    fn as_trace(&self) -> TraceRun {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "drawn".to_owned());
        let infers = self.phase == Phase::INFER;
        let synchronized = self.device_synchronized;
        TraceRun {
            run_id: text(&self.run_id),
            correlation_id: text(&self.correlation_id),
            entrypoint: self.entrypoint.clone(),
            phase: if infers { TracePhase::Infer } else { TracePhase::Train },
            timestamp: "now".to_owned(),
            capture_step: self.capture_step,
            warmup_steps: self.warmup_steps.unwrap_or(0),
            device: self.device.clone(),
            measured_region_device_synchronized: self.measured_region_synchronized,
            timing_mode: if synchronized {
                TimingMode::DeviceSynchronized
            } else {
                TimingMode::Host
            },
            capture_contract: self.contract.clone().unwrap_or_default(),
            comparison_identity: self.identity.clone(),
            tags: self.tags.iter().cloned().collect(),
            candle_version: self.candle_version.clone(),
        }
    }

    /// Holds that what the run promises can be kept: its contract, and its identity.
    pub(super) fn check_promises(&self) -> Result<(), RunError> {
        self.identity.as_ref().map_or(Ok(()), ComparisonIdentity::check)?;
        Ok(self.contract.as_ref().map_or(Ok(()), CaptureContract::check)?)
    }

    /// Hands the frames that describe the run to `write`.
    pub(super) fn with_frames<R>(
        &self,
        run: RunId,
        clock: (&str, bool),
        ring_slots: u64,
        rings: Option<&Path>,
        write: impl FnOnce(&[Frame<'_>]) -> R,
    ) -> R {
        let (host, (rank, world_size)) = (host::host_name(), host::rank());
        let drawn = run.to_string();
        let rings = rings.map(|path| path.to_string_lossy());
        let mut frames = vec![Frame::Run(RunV1 {
            run,
            run_id: self.run_id.as_deref().unwrap_or(&drawn),
            correlation_id: self.correlation_id.as_deref(),
            entrypoint: &self.entrypoint,
            device: &self.device,
            phase: self.phase,
            capture_step: self.capture_step,
            warmup_steps: self.warmup_steps.unwrap_or(0),
            device_synchronized: self.device_synchronized,
            measured_region_synchronized: self.measured_region_synchronized,
            candle_version: self.candle_version.as_deref(),
            profile: &self.profile,
            analysis_id: self.analysis_id.as_deref(),
            build_id: self.build_id.as_deref(),
            host: host.as_deref(),
            pid: Some(std::process::id()),
            rank,
            world_size,
            rings: rings.as_deref(),
            clock: clock.0,
            clock_invariant: clock.1,
            ring_slots,
        })];
        frames.extend(self.tags.iter().map(|(key, value)| Frame::Tag(TagV1 { key, value })));
        let items = self.cargo_features.iter().map(|text| Frame::CargoFeature(ItemV1 { text }));
        frames.extend(items);
        frames.extend(self.cfg.iter().map(|text| Frame::Cfg(ItemV1 { text })));
        frames.extend(self.identity.as_ref().map(promise::identity_frame));
        if let Some(contract) = &self.contract {
            promise::contract_frames(contract, |frame| frames.push(frame));
        }
        write(&frames)
    }
}
