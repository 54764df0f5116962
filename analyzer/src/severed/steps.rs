//! The steps in which parameters first lacked their gradient.

use std::collections::{BTreeMap, BTreeSet};

use super::{Parameter, Severed};
use crate::audit::ParamIdentity;

/// What became of each parameter's gradient, step by step.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a> {
    facts: BTreeMap<(&'a str, &'a str), Facts>,
}

/// Of one parameter.
#[derive(Debug, Default)]
struct Facts {
    /// The steps in which somebody looked.
    seen: BTreeSet<Option<u64>>,
    /// The first in which there was no gradient.
    first_without: Option<Option<u64>>,
    /// There was one at least once.
    ever: bool,
}

impl<'a> Parameters<'a> {
    pub(super) fn add(&mut self, root: &'a str, key: &'a str, step: Option<u64>, is_missing: bool) {
        let facts = self.facts.entry((root, key)).or_default();
        facts.seen.insert(step);
        if is_missing {
            facts.first_without = Some(facts.first_without.map_or(step, |first| first.min(step)));
        } else {
            facts.ever = true;
        }
    }

    /// Looks at each step that is the first without a gradient of some parameter that never had one, in
    /// order. What is found of a parameter at its first step is kept, and nothing later.
    pub(super) fn in_each_step(
        &self,
        mut find: impl FnMut(Option<u64>, &[Parameter<'a>]) -> Vec<Severed>,
    ) -> Vec<Severed> {
        let firsts = self.first_steps();
        let mut steps: BTreeMap<Option<u64>, Vec<Parameter<'a>>> = BTreeMap::new();
        for ((root, key), facts) in &self.facts {
            for step in facts.seen.intersection(&firsts) {
                let parameter = Parameter { root, key, lacks: !facts.ever };
                steps.entry(*step).or_default().push(parameter);
            }
        }
        let mut found = Vec::new();
        for (step, parameters) in steps {
            for mut severed in find(step, &parameters) {
                severed.parameters.retain(|it| self.first_without(it) == Some(step));
                if !severed.parameters.is_empty() {
                    found.push(severed);
                }
            }
        }
        found
    }

    /// The steps that [`in_each_step`](Self::in_each_step) looks at.
    pub(super) fn first_steps(&self) -> BTreeSet<Option<u64>> {
        let without = self.facts.values().filter(|facts| !facts.ever);
        without.filter_map(|facts| facts.first_without).collect()
    }

    fn first_without(&self, parameter: &ParamIdentity) -> Option<Option<u64>> {
        self.facts.get(&(&*parameter.root, &*parameter.key))?.first_without
    }
}
