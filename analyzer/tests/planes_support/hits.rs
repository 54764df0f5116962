//! How often each rule was met.

use std::collections::BTreeMap;

/// How often each rule was met.
#[derive(Default)]
pub struct Hits(BTreeMap<String, u64>);

impl Hits {
    /// Knows of a rule, and that it was met if it was.
    pub fn see(&mut self, rule: &str, is_met: bool) {
        *self.0.entry(rule.to_owned()).or_default() += u64::from(is_met);
    }

    /// Prints every rule; panics where one was never met.
    pub fn hold(&self) {
        for (rule, count) in &self.0 {
            println!("{count:7} {rule}");
        }
        let never: Vec<_> = self.0.iter().filter(|(_, count)| **count == 0).collect();
        assert!(never.is_empty(), "never met: {never:?}");
    }
}
