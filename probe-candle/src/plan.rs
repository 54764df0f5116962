//! Which gradients are expected: one manifest, for a contract and for what is recorded.

use candle_core::backprop::GradStore;
use candle_core::{TensorId, Var};
use tmrun_probe_core::session::{
    CaptureContract, CoverageLevel, ExpectedGradient, GradientContract, GradientContractError,
    GradientFamilyContract, GradientState, TraceSession,
};
use tmrun_probe_core::{Clock, Level, NameId, ProbeRef, Recorder};

use crate::error::CandleError;
use crate::gradient::{Gradient, GradientCounts};

/// Which gradients a capture promises, prepared once from the parameters: the manifest that is declared
/// is the one that is recorded, entry by entry.
///
/// It holds the parameters' identities and keeps no tensor alive. It stays valid while the variables do,
/// across `Var::set` and so every step of an optimizer.
///
/// ```
/// use candle_core::{DType, Device, Var};
/// use tmrun_probe_candle::GradientCapturePlan;
/// use tmrun_probe_core::session::{
///     CaptureContract, GradientFamilyContract, GradientState, ProfileRun, TraceSession,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (head, stem) = (Var::ones(4, DType::F32, &Device::Cpu)?, Var::ones(4, DType::F32, &Device::Cpu)?);
/// // Of a `candle_nn::VarMap` these are the clones of `data().lock()`, in any order.
/// let variables = vec![("stem.weight".to_owned(), stem.clone()), ("head.weight".to_owned(), head.clone())];
/// let plan = GradientCapturePlan::from_named_vars(
///     "model",
///     variables,
///     |key| if key.starts_with("stem.") { "frozen".into() } else { "trained".into() },
///     vec![GradientFamilyContract::active("trained", 1), GradientFamilyContract::inactive("frozen")],
/// )?;
/// assert!(plan.contract().manifest_sha256.starts_with("sha256:"));
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("update-1.tmrun");
/// let contract = plan.declared_in(CaptureContract::default());
/// let run = ProfileRun::training("trainer::update", 1, "cpu").capture_contract(contract);
/// let session = TraceSession::open(path, run)?;
/// let gradients = (head.mul(&stem.detach())?).sum_all()?.backward()?;
/// let counts = plan.record(&session, &gradients)?;
/// assert_eq!((counts.present, counts.missing), (1, 1), "the head's, and the stem's is not there");
/// session.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GradientCapturePlan {
    root: String,
    contract: GradientContract,
    /// The variables of the contract's entries, in order.
    variables: Vec<TensorId>,
}

impl GradientCapturePlan {
    /// The plan of these parameters: sorted by key, each in the family that `assign_family` gives it,
    /// checked, and bound by a digest (see [`GradientContract`]). `root` names what they hang under.
    ///
    /// # Errors
    ///
    /// When there are no parameters, one key comes twice, a text is blank, a family is not among
    /// `families` or there twice, one has no members, or fewer than it expects.
    pub fn from_named_vars(
        root: impl Into<String>,
        vars: impl IntoIterator<Item = (String, Var)>,
        assign_family: impl Fn(&str) -> String,
        families: Vec<GradientFamilyContract>,
    ) -> Result<Self, GradientContractError> {
        let root = root.into();
        let identity = |(key, var): (String, Var)| (key, var.id());
        let manifest = sorted(vars.into_iter().map(identity));
        let entry = |(key, _): &(String, TensorId)| {
            ExpectedGradient::new(root.clone(), key.clone(), assign_family(key))
        };
        let contract = GradientContract::new(manifest.iter().map(entry).collect(), families)?;
        let variables = manifest.into_iter().map(|(_, id)| id).collect();
        Ok(Self { root, contract, variables })
    }

    /// What the parameters hang under.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The contract: every parameter once, in the order in which they are recorded.
    pub const fn contract(&self) -> &GradientContract {
        &self.contract
    }

    /// This contract with complete gradients, which are those of the plan. It serves a session's run and
    /// any other recording's.
    #[must_use]
    pub fn declared_in(&self, contract: CaptureContract) -> CaptureContract {
        CaptureContract {
            gradients: CoverageLevel::Complete,
            gradient_contract: Some(self.contract.clone()),
            ..contract
        }
    }

    /// The same plan, to be recorded by a probe. This is set-up: it interns every name.
    pub fn on<C>(&self, probe: &ProbeRef<'_, C>) -> GradientPlan {
        let keys = self.contract.expected.iter().map(|entry| entry.key.clone());
        GradientPlan::of(probe, &self.root, keys.zip(self.variables.iter().copied()))
    }

    /// Records what became of every gradient (level 2), one event an entry of the manifest, in order. A
    /// parameter for which `gradients` has nothing is missing. What the session's level does not ask for
    /// is not looked at and not counted.
    ///
    /// It waits as [`Gradient::of`] does, once for every parameter. Beside that it looks two texts up
    /// for each, and on the processor it allocates nothing.
    ///
    /// # Errors
    ///
    /// The first gradient that could not be looked at. It has no event; all others have theirs.
    pub fn record(
        &self,
        session: &TraceSession,
        gradients: &GradStore,
    ) -> Result<GradientCounts, CandleError> {
        let keys = self.contract.expected.iter().map(|entry| entry.key.as_str());
        let entries = keys.zip(self.variables.iter().copied());
        each(
            entries.filter(|(key, _)| session.wants(key, Level::METADATA)),
            gradients,
            |key, source| CandleError::Candle { label: key.to_owned(), source },
            |key, gradient| {
                let state = state_of(gradient);
                Ok(session.record_gradient(&self.root, key, state, gradient.norm)?)
            },
        )
    }
}

/// Which gradients a probe looks for, prepared once: the parameters by name, sorted. It promises
/// nothing; a [`GradientCapturePlan`] does, and gives one of these ([`GradientCapturePlan::on`]).
///
/// It holds the parameters' identities and keeps no tensor alive; it stays valid while the variables do,
/// across `Var::set` and therefore every optimizer step.
#[derive(Debug, Clone)]
pub struct GradientPlan {
    root: NameId,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone)]
struct Parameter {
    name: String,
    key: NameId,
    id: TensorId,
}

impl GradientPlan {
    /// A plan of these variables. `root` names what they belong to, such as `model`.
    ///
    /// With a `candle_nn::VarMap` it is prepared from `varmap.data().lock().unwrap().iter()`.
    /// This is set-up: it interns every name.
    pub fn from_named_vars<'v, C, N: Into<String>>(
        probe: &ProbeRef<'_, C>,
        root: &str,
        variables: impl IntoIterator<Item = (N, &'v Var)>,
    ) -> Self {
        let variables = variables.into_iter();
        Self::of(probe, root, variables.map(|(name, variable)| (name.into(), variable.id())))
    }

    fn of<C>(
        probe: &ProbeRef<'_, C>,
        root: &str,
        variables: impl Iterator<Item = (String, TensorId)>,
    ) -> Self {
        let parameter = |(name, id): (String, TensorId)| {
            let key = probe.name(&name);
            Parameter { name, key, id }
        };
        let parameters = sorted(variables).into_iter().map(parameter).collect();
        Self { root: probe.name(root), parameters }
    }

    /// The names of the parameters, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.name.as_str())
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Records what became of each gradient (level 2), in the order of the names; one record each. A
    /// parameter for which `gradients` has nothing is recorded as missing; one of which gradients
    /// are not wanted is not looked at and not counted.
    ///
    /// It waits as [`Gradient::of`] does, once for every parameter.
    ///
    /// # Errors
    ///
    /// A gradient could not be looked at. It has no record; all others have theirs.
    pub fn record<C: Clock>(
        &self,
        recorder: &Recorder<'_, C>,
        gradients: &GradStore,
    ) -> candle_core::Result<GradientCounts> {
        let entries = self.parameters.iter().map(|parameter| (parameter.key, parameter.id));
        each(
            entries.filter(|(key, _)| recorder.wants(*key)),
            gradients,
            |_, error| error,
            |key, gradient| {
                recorder.gradient(self.root, key, gradient.state, gradient.norm);
                Ok(())
            },
        )
    }
}

/// The entries of a manifest, in its order.
fn sorted<T>(entries: impl Iterator<Item = (String, T)>) -> Vec<(String, T)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}

/// Looks at the gradient of each entry, in order, and has it recorded; whatever fails, the others are
/// too. The error is the first.
fn each<K: Copy, E>(
    entries: impl Iterator<Item = (K, TensorId)>,
    gradients: &GradStore,
    failed: impl Fn(K, candle_core::Error) -> E,
    mut record: impl FnMut(K, Gradient) -> Result<(), E>,
) -> Result<GradientCounts, E> {
    let mut counts = GradientCounts::default();
    let mut first = None;
    for (key, id) in entries {
        let gradient = Gradient::of(gradients.get_id(id)).map_err(|error| failed(key, error));
        let recorded = gradient.and_then(|gradient| {
            record(key, gradient)?;
            counts.add(gradient.state);
            Ok(())
        });
        first = first.or(recorded.err());
    }
    first.map_or(Ok(counts), Err)
}

const fn state_of(gradient: Gradient) -> GradientState {
    use tmrun_probe_core::GradientState as Code;
    match gradient.state {
        Code::MISSING => GradientState::Missing,
        Code::ZERO => GradientState::Zero,
        Code::NON_FINITE => GradientState::NonFinite,
        _ => GradientState::Present,
    }
}
