//! Parameters that get no gradient, and the layer where it likely stops.
//!
//! Some operations of candle-nn pass no gradient on and report no error: what lies before them is not
//! trained. A recording shows it from two sides. The gradients of the parameters are missing from the first
//! step on; and the calls of the layers say, in their order, what each one was ([`CUTS`] lists the kinds that
//! cut) and whether what came out of it was still on the way to a gradient.
//!
//! A layer is suspected when its kind is one that cuts, unless what came out of it was seen to be on the way to a
//! gradient; and when what came out of it was seen not to be, though something that went in was. It is named for the parameters that can have lost their gradient there:
//!
//! 1. the last suspect at and before which *every* parameter lacks its gradient, for all of these;
//! 2. else the suspect that what came out of the parameter's layer went into, or the next one in order.
//!
//! So it is evidence and no proof, and is called *likely* everywhere. A parameter that ever had a gradient,
//! one that was declared to have none, and one whose layer was never called are none of its business.

mod kinds;
mod recorded;
mod runtime;
mod steps;
mod traced;

pub use kinds::{CUTS, Cut, cut_of};
pub use recorded::of_recording;
pub use runtime::of_runtime;
pub use traced::of_trace;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::Hash;

use serde::Serialize;

use crate::audit::ParamIdentity;
use crate::escape::escaped;

/// Where the gradient of some parameters likely stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Severed {
    /// The first step in which they had none, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The layer.
    pub layer: String,
    /// What the recording calls its operation: its kind.
    pub op: String,
    /// Whether it was seen that what came out was not on the way to a gradient. Else its kind is all that
    /// speaks against it.
    pub seen: bool,
    /// The parameters that are cut off, sorted.
    pub parameters: Vec<ParamIdentity>,
}

impl Severed {
    /// What to use instead, where the kind is known.
    #[must_use]
    pub fn instead(&self) -> Option<&'static str> {
        cut_of(&self.op).map(|cut| cut.instead)
    }
}

/// Parameters that are named where there is no room for all.
const NAMED: usize = 6;

impl fmt::Display for Severed {
    /// A sentence without its full stop; text from a recording is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "from step {step} on ")?;
        }
        let (layer, op, count) = (escaped(&self.layer), escaped(&self.op), self.parameters.len());
        let parameters = if count == 1 { "parameter gets" } else { "parameters get" };
        write!(f, "{count} {parameters} no gradient, which likely stops at {layer} ({op}): ")?;
        for (index, parameter) in self.parameters.iter().take(NAMED).enumerate() {
            write!(f, "{}{parameter}", if index == 0 { "" } else { ", " })?;
        }
        match count.saturating_sub(NAMED) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        match self.instead() {
            Some(instead) => write!(f, "; {instead} passes it on"),
            None => Ok(()),
        }
    }
}

/// A call of a layer, or of an operation, in one step.
#[derive(Debug, Clone)]
struct Call<'a, Id> {
    /// The layer's address.
    layer: &'a str,
    /// Its kind.
    op: &'a str,
    inputs: Vec<Id>,
    output: Option<Id>,
    /// Whether what came out was on the way to a gradient, where somebody looked.
    tracked: Option<bool>,
}

/// A parameter in one step.
#[derive(Debug, Clone, Copy)]
struct Parameter<'a> {
    root: &'a str,
    key: &'a str,
    /// It has no gradient in this step, nor in any other.
    lacks: bool,
}

/// What the calls of a step, in the order in which they ended, say of the parameters that lack their gradient.
/// Parameters that should have none, or of which nothing is known, are not among `parameters`.
fn find<Id: Hash + Eq>(
    step: Option<u64>,
    calls: &[Call<'_, Id>],
    parameters: &[Parameter<'_>],
) -> Vec<Severed> {
    let order = Order::of(calls);
    let users: Vec<Option<usize>> = parameters.iter().map(|it| order.user_of(it.key)).collect();
    let suspects = suspects(calls);
    // The last suspect at and before which nothing has a gradient.
    let first_with = parameters.iter().zip(&users).filter(|(it, _)| !it.lacks);
    let first_with = first_with.filter_map(|(_, user)| *user).min().unwrap_or(usize::MAX);
    let below_all = suspects.iter().copied().rfind(|at| *at < first_with);

    // The suspects that each tensor went into.
    let mut fed_by: HashMap<&Id, Vec<usize>> = HashMap::new();
    for &at in &suspects {
        for input in calls.get(at).iter().flat_map(|call| &call.inputs) {
            fed_by.entry(input).or_default().push(at);
        }
    }
    let mut found: BTreeMap<usize, Vec<ParamIdentity>> = BTreeMap::new();
    for (parameter, user) in parameters.iter().zip(&users).filter(|(it, _)| it.lacks) {
        let Some(user) = *user else { continue };
        let of_all = below_all.filter(|at| user <= *at);
        let fed = || next(fed_by.get(calls.get(user)?.output.as_ref()?)?, user);
        let suspect = of_all.or_else(fed).or_else(|| next(&suspects, user));
        let Some(suspect) = suspect else { continue };
        let (root, key) = (parameter.root.to_owned(), parameter.key.to_owned());
        found.entry(suspect).or_default().push(ParamIdentity { root, key });
    }
    let severed = found.into_iter().filter_map(|(at, mut parameters)| {
        let call = calls.get(at)?;
        parameters.sort();
        let (layer, op) = (call.layer.to_owned(), call.op.to_owned());
        Some(Severed { step, layer, op, seen: call.tracked == Some(false), parameters })
    });
    joined(severed)
}

/// One entry a layer, whichever of its calls it was.
fn joined(severed: impl Iterator<Item = Severed>) -> Vec<Severed> {
    let mut found: Vec<Severed> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for one in severed {
        let place = places.entry((one.layer.clone(), one.op.clone())).or_insert(found.len());
        match found.get_mut(*place) {
            Some(same) => {
                same.seen |= one.seen;
                same.parameters.extend(one.parameters);
                same.parameters.sort();
            }
            None => found.push(one),
        }
    }
    found
}

/// The calls that no gradient seems to come back through, in order. A layer that is made of others is none
/// where one of those is.
fn suspects<Id: Hash + Eq>(calls: &[Call<'_, Id>]) -> Vec<usize> {
    let outputs = calls.iter().filter_map(|call| Some((call.output.as_ref()?, call.tracked?)));
    let tracked: HashMap<&Id, bool> = outputs.collect();
    let is_suspect = |call: &Call<'_, Id>| {
        let fed = || call.inputs.iter().any(|input| tracked.get(input) == Some(&true));
        match call.tracked {
            Some(true) => false,
            Some(false) => cut_of(call.op).is_some() || fed(),
            None => cut_of(call.op).is_some(),
        }
    };
    let suspects = calls.iter().enumerate().filter(|(_, call)| is_suspect(call));
    let suspects: Vec<(usize, &str)> = suspects.map(|(at, call)| (at, call.layer)).collect();
    let mut holders: HashSet<&str> = HashSet::new();
    for (_, layer) in &suspects {
        holders.extend(above(layer));
    }
    suspects.into_iter().filter(|(_, layer)| !holders.contains(layer)).map(|(at, _)| at).collect()
}

/// The first of these that is not before that call.
fn next(sorted: &[usize], user: usize) -> Option<usize> {
    sorted.get(sorted.partition_point(|at| *at < user)).copied()
}

/// How many addresses above one are looked at: no model is deeper, and a text from a file may be.
const DEPTH: usize = 64;

/// The addresses above an address, the nearest first.
fn above(address: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(parent(address), |address| parent(address)).take(DEPTH)
}

fn parent(address: &str) -> Option<&str> {
    address.rsplit_once('.').map(|(parent, _)| parent)
}

/// Where the layers are among the calls.
struct Order<'a> {
    /// The first call of each.
    first: HashMap<&'a str, usize>,
    /// The layers that others lie within.
    holders: HashSet<&'a str>,
}

impl<'a> Order<'a> {
    fn of<Id>(calls: &[Call<'a, Id>]) -> Self {
        let (mut first, mut holders) = (HashMap::new(), HashSet::new());
        for (at, call) in calls.iter().enumerate() {
            if !first.contains_key(call.layer) {
                first.insert(call.layer, at);
                holders.extend(above(call.layer));
            }
        }
        Self { first, holders }
    }

    /// The call that uses a parameter: the first one of its layer. A layer that others lie within uses
    /// what is directly its own; where nothing within it is known, it stands for all of it.
    fn user_of(&self, key: &str) -> Option<usize> {
        let mut layers = above(key);
        let own = layers.next()?;
        match self.first.get(own) {
            Some(at) => Some(*at),
            None if self.holders.contains(own) => None,
            None => {
                let layer = layers.find(|layer| self.first.contains_key(layer))?;
                let is_whole = !self.holders.contains(layer);
                is_whole.then(|| self.first.get(layer).copied()).flatten()
            }
        }
    }
}

#[cfg(test)]
mod tests;
