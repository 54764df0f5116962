//! Faults on demand, and how often each function was called.

use std::collections::BTreeMap;

use crate::code::{Code, SUCCESS};

#[derive(Debug)]
struct Rule {
    function: String,
    /// Which call fails, from 1; 0 stands for every one.
    nth: u64,
    code: Code,
    sticky: bool,
}

#[derive(Debug)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    /// The error that every call returns from now on.
    pub(crate) sticky: Code,
    calls: BTreeMap<String, u64>,
    /// Calls that take longer than others: the function, which call, and nanoseconds.
    slow: Vec<(String, u64, u64)>,
}

impl Faults {
    pub(crate) fn from_environment() -> Self {
        let rules = std::env::var("FAKECU_FAIL").unwrap_or_default();
        let rules = rules.split(',').filter_map(rule).collect();
        Self { rules, sticky: SUCCESS, calls: BTreeMap::new(), slow: Vec::new() }
    }

    /// Counts a call, and says how it fails.
    pub(crate) fn call(&mut self, function: &str) -> Code {
        let nth = match self.calls.get_mut(function) {
            Some(calls) => {
                *calls += 1;
                *calls
            }
            None => *self.calls.entry(function.to_owned()).or_insert(1),
        };
        let is_hit = |rule: &&Rule| rule.function == function && (rule.nth == 0 || rule.nth == nth);
        if let Some(rule) = self.rules.iter().find(is_hit) {
            if rule.sticky {
                self.sticky = rule.code;
            }
            return rule.code;
        }
        self.sticky
    }

    pub(crate) fn calls(&self, function: &str) -> u64 {
        self.calls.get(function).copied().unwrap_or(0)
    }

    pub(crate) fn all_calls(&self) -> u64 {
        self.calls.values().sum()
    }

    /// The `nth` call from now on fails; 0 stands for every one.
    pub(crate) fn inject(&mut self, function: &str, nth: u64, code: Code, sticky: bool) {
        let nth = if nth == 0 { 0 } else { self.calls(function) + nth };
        self.rules.push(Rule { function: function.to_owned(), nth, code, sticky });
    }

    /// The `nth` call of a function from now on takes so much longer.
    pub(crate) fn slow_down(&mut self, function: &str, nth: u64, ns: u64) {
        self.slow.push((function.to_owned(), self.calls(function) + nth, ns));
    }

    /// How much longer the call takes that was counted last.
    pub(crate) fn slowness(&self, function: &str) -> u64 {
        let last = self.calls(function);
        let is_it = |(slow, nth, _): &&(String, u64, u64)| slow == function && *nth == last;
        self.slow.iter().find(is_it).map_or(0, |(_, _, ns)| *ns)
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
        self.sticky = SUCCESS;
    }
}

fn rule(text: &str) -> Option<Rule> {
    let mut parts = text.split(':');
    Some(Rule {
        function: parts.next().filter(|function| !function.is_empty())?.to_owned(),
        nth: parts.next()?.parse().ok()?,
        code: parts.next()?.parse().ok()?,
        sticky: parts.next() == Some("sticky"),
    })
}
