//! The table: what is printed, and what is written for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Cost;

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A cost.
    Lower,
    /// A speed.
    Higher,
}

/// One number, with what it is a ratio to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// What 1.0 is.
    pub ruler: String,
    /// Median to median.
    pub ratio: f64,
    /// Least to least, where both were measured in rounds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub least: Option<f64>,
    /// Which way is good.
    pub better: Better,
    /// The goal.
    pub reach: Option<f64>,
    /// The least that is asked for.
    pub must: Option<f64>,
    /// Instructions for one, the loop included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instructions: Option<f64>,
    /// Nanoseconds for one, which compare with nothing but other rows of the same run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ns: Option<f64>,
}

impl Row {
    /// A row of this ratio; lower is better, and nothing is asked for.
    pub fn new(name: impl Into<String>, ruler: impl Into<String>, ratio: f64) -> Self {
        Self {
            name: name.into(),
            ruler: ruler.into(),
            ratio,
            least: None,
            better: Better::Lower,
            reach: None,
            must: None,
            instructions: None,
            ns: None,
        }
    }

    /// What costs so much, beside a ruler that costs so much.
    pub fn cost(name: impl Into<String>, cost: Cost, ruler: &str, one: Cost) -> Self {
        Self {
            least: Some(cost.least / one.least),
            ns: Some(cost.median),
            ..Self::new(name, ruler, cost.median / one.median)
        }
    }

    /// The speed of what costs so much, beside the speed of a ruler that costs so much.
    pub fn speed(name: impl Into<String>, cost: Cost, ruler: &str, one: Cost) -> Self {
        Self { better: Better::Higher, ns: Some(cost.median), ..Self::cost(name, one, ruler, cost) }
    }

    /// With the goal and the least that is asked for.
    #[must_use]
    pub fn asked(self, reach: f64, must: f64) -> Self {
        Self { reach: Some(reach), must: Some(must), ..self }
    }

    /// With the instructions for one, where they could be counted.
    #[must_use]
    pub fn counted(self, instructions: Option<f64>) -> Self {
        Self { instructions, ..self }
    }

    fn is_within(&self, limit: Option<f64>) -> Option<bool> {
        limit.map(|limit| match self.better {
            Better::Lower => self.ratio <= limit,
            Better::Higher => self.ratio >= limit,
        })
    }

    /// What became of what was asked for.
    fn verdict(&self) -> &'static str {
        match (self.is_within(self.reach), self.is_within(self.must)) {
            (_, Some(false)) => "MISSED",
            (Some(true), _) => "reached",
            (_, Some(true)) => "met",
            _ => "",
        }
    }
}

/// A row that could not be measured here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// What was to be measured.
    pub name: String,
    /// Why it was not.
    pub why: String,
    /// Whether nothing but a program that is not installed stands in the way.
    pub lacks_program: bool,
}

/// All rows of a run, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was not, and why.
    pub missing: Vec<Missing>,
}

impl Table {
    /// The rows that do not meet what is asked for at least, and what failed to be measured.
    pub fn missed(&self) -> Vec<&str> {
        let missed = self.rows.iter().filter(|row| row.is_within(row.must) == Some(false));
        let failed = self.missing.iter().filter(|missing| !missing.lacks_program);
        missed.map(|row| &*row.name).chain(failed.map(|missing| &*missing.name)).collect()
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds what failed to be measured.
    pub fn miss(&mut self, name: impl Into<String>, why: impl fmt::Display) {
        self.missing.push(Missing {
            name: name.into(),
            why: why.to_string(),
            lacks_program: false,
        });
    }

    /// Adds what cannot be measured without a program that is not installed.
    pub fn lack(&mut self, name: impl Into<String>, why: impl fmt::Display) {
        self.missing.push(Missing { name: name.into(), why: why.to_string(), lacks_program: true });
    }

    /// Adds another table's rows behind these.
    pub fn append(&mut self, mut other: Self) {
        self.rows.append(&mut other.rows);
        self.missing.append(&mut other.missing);
    }
}

/// Decimals for about three digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = |value: Option<f64>| value.map(digits).unwrap_or_default();
        writeln!(
            f,
            "| what | 1.0 is | ratio | least | reach | must | | instructions | ns |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        )?;
        for row in &self.rows {
            let sign = if row.better == Better::Lower { "≤" } else { "≥" };
            let limit = |value: Option<f64>| {
                value.map(|value| format!("{sign} {}", digits(value))).unwrap_or_default()
            };
            writeln!(
                f,
                "| {} | {} | **{}** | {} | {} | {} | {} | {} | {} |",
                row.name,
                row.ruler,
                digits(row.ratio),
                optional(row.least),
                limit(row.reach),
                limit(row.must),
                row.verdict(),
                optional(row.instructions),
                optional(row.ns),
            )?;
        }
        for missing in &self.missing {
            writeln!(f, "| {} | not measured: {} | | | | | | | |", missing.name, missing.why)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_missed_and_what_a_program_is_not_there_for_is_not() {
        let mut table = Table::default();
        table.push(Row::new("held", "one", 1.0).asked(0.5, 1.0));
        table.push(Row::new("too much", "one", 1.1).asked(0.5, 1.0));
        table.miss("stopped", "exit status 1");
        table.lack("uncounted", "valgrind is not installed");
        assert_eq!(table.missed(), ["too much", "stopped"]);
    }
}
