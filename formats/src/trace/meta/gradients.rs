//! Which gradients a complete capture has, and what is expected of them.

use super::error::{GradientContractError as Error, is_blank};
use crate::words::words;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// What the digest of a manifest begins with.
pub const GRADIENT_MANIFEST_SCHEMA: &str = "candle-graph/gradient-manifest/1";

/// One parameter whose gradient is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedGradient {
    /// The variable builder it hangs under.
    pub root: String,
    /// Its key below `root`.
    pub key: String,
    /// The family it belongs to.
    pub family: String,
}

impl ExpectedGradient {
    /// The parameter `key` under `root`, of `family`.
    pub fn new(root: impl Into<String>, key: impl Into<String>, family: impl Into<String>) -> Self {
        Self { root: root.into(), key: key.into(), family: family.into() }
    }
}

words! {
    /// What is expected of the gradients of a family.
    GradientFamilyExpectation {
        /// They are there.
        Active "active",
        /// None is there, not even as zero.
        Inactive "inactive",
        /// The data decides whether any is there.
        DataConditional "data_conditional",
    }
}

/// What is expected of one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradientFamilyContract {
    /// Its name.
    pub family: String,
    /// What is expected.
    pub expectation: GradientFamilyExpectation,
    /// How many are at least present, if any may be.
    pub min_present: usize,
}

impl GradientFamilyContract {
    /// At least `min_present` are present.
    pub fn active(family: impl Into<String>, min_present: usize) -> Self {
        Self { family: family.into(), expectation: GradientFamilyExpectation::Active, min_present }
    }

    /// All are missing.
    pub fn inactive(family: impl Into<String>) -> Self {
        let expectation = GradientFamilyExpectation::Inactive;
        Self { family: family.into(), expectation, min_present: 0 }
    }

    /// None is present, or at least `min_present` are.
    pub fn data_conditional(family: impl Into<String>, min_present: usize) -> Self {
        let expectation = GradientFamilyExpectation::DataConditional;
        Self { family: family.into(), expectation, min_present }
    }
}

/// Every gradient of a complete capture, bound by a digest.
///
/// The digest is SHA-256 over [`GRADIENT_MANIFEST_SCHEMA`], one zero byte and, of each entry in
/// order, the root, the key and the family, each as its length in bytes (64 bits, little-endian) and
/// its UTF-8. What is expected of the families is not in it.
///
/// ```
/// use tmrun_formats::trace::{ExpectedGradient, GradientContract, GradientFamilyContract};
///
/// let expected = vec![ExpectedGradient::new("vb", "w", "f")];
/// let contract = GradientContract::new(expected, vec![GradientFamilyContract::active("f", 1)])?;
/// assert!(contract.manifest_sha256.starts_with("sha256:ff8aadf098ba0cf1"));
/// # Ok::<(), tmrun_formats::trace::GradientContractError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradientContract {
    /// `sha256:` and the digest in lower-case hexadecimal.
    pub manifest_sha256: String,
    /// The parameters, in order.
    pub expected: Vec<ExpectedGradient>,
    /// The families.
    pub families: Vec<GradientFamilyContract>,
}

impl GradientContract {
    /// The contract of these parameters, with its digest.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn new(
        expected: Vec<ExpectedGradient>,
        families: Vec<GradientFamilyContract>,
    ) -> Result<Self, Error> {
        let contract = Self { manifest_sha256: Self::digest(&expected), expected, families };
        contract.check()?;
        Ok(contract)
    }

    /// The digest of a manifest.
    #[must_use]
    pub fn digest(expected: &[ExpectedGradient]) -> String {
        let mut hash = Sha256::new();
        hash.update(GRADIENT_MANIFEST_SCHEMA);
        hash.update([0]);
        for ExpectedGradient { root, key, family } in expected {
            for text in [root, key, family] {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
        }
        format!("sha256:{:x}", hash.finalize())
    }

    /// Holds a contract from elsewhere: the digest is right, every text says something, parameters
    /// and families are there once, and each family has members and a minimum that they can reach.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn check(&self) -> Result<(), Error> {
        if self.expected.is_empty() {
            return Err(Error::NoParameters);
        }
        if self.families.is_empty() {
            return Err(Error::NoFamilies);
        }
        let expected = Self::digest(&self.expected);
        if self.manifest_sha256 != expected {
            return Err(Error::Digest { expected, found: self.manifest_sha256.clone() });
        }
        let members = self.members()?;
        let mut declared = BTreeSet::new();
        for family in &self.families {
            if !declared.insert(family.family.as_str()) {
                return Err(Error::FamilyTwice { family: family.family.clone() });
            }
            family.check(members.get(family.family.as_str()).copied().unwrap_or(0))?;
        }
        match members.keys().find(|family| !declared.contains(*family)) {
            Some(&family) => Err(Error::UnknownFamily { family: family.to_owned() }),
            None => Ok(()),
        }
    }

    /// How many parameters each family has.
    fn members(&self) -> Result<BTreeMap<&str, usize>, Error> {
        let mut keys = BTreeSet::new();
        let mut members = BTreeMap::<&str, usize>::new();
        for (index, ExpectedGradient { root, key, family }) in self.expected.iter().enumerate() {
            for (field, text) in [("root", root), ("key", key), ("family", family)] {
                if is_blank(text) {
                    return Err(Error::BlankParameter { index, field });
                }
            }
            if !keys.insert((root, key)) {
                return Err(Error::ParameterTwice { root: root.clone(), key: key.clone() });
            }
            let count = members.entry(family).or_default();
            *count = count.saturating_add(1);
        }
        Ok(members)
    }
}

impl GradientFamilyContract {
    fn check(&self, members: usize) -> Result<(), Error> {
        let (family, min_present) = (|| self.family.clone(), self.min_present);
        if is_blank(&self.family) {
            return Err(Error::BlankFamily);
        }
        if members == 0 {
            return Err(Error::EmptyFamily { family: family() });
        }
        match self.expectation {
            GradientFamilyExpectation::Inactive if min_present != 0 => {
                Err(Error::InactiveMinimum { family: family(), min_present })
            }
            GradientFamilyExpectation::Active | GradientFamilyExpectation::DataConditional
                if !(1..=members).contains(&min_present) =>
            {
                Err(Error::Minimum { family: family(), min_present, members })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(entries: &[(&str, &str)]) -> Vec<ExpectedGradient> {
        entries.iter().map(|&(key, family)| ExpectedGradient::new("vb", key, family)).collect()
    }

    #[test]
    fn the_digest_is_the_one_that_others_compute() {
        let worked = [
            (
                manifest(&[("w", "f")]),
                "sha256:ff8aadf098ba0cf1152c55f8d56dc7680e26751dec4693b76ba3bb079078eafe",
            ),
            (
                manifest(&[
                    ("a.bias", "trainable"),
                    ("a.weight", "trainable"),
                    ("frozen.weight", "frozen"),
                ]),
                "sha256:0d0b1efe8030b41b3b279613e1ad74e2d6a3ba415bd6db100d5bf4002df9c39f",
            ),
            (
                manifest(&[
                    ("frozen.weight", "frozen"),
                    ("layer1.bias", "trainable"),
                    ("layer1.weight", "trainable"),
                    ("layer2.weight", "trainable"),
                ]),
                "sha256:2e2b92b2bf2bf3274848cd8e0ae81eb2eb70231854c5fe0874015397625bb993",
            ),
        ];
        for (manifest, digest) in worked {
            assert_eq!(GradientContract::digest(&manifest), digest);
        }
    }

    #[test]
    fn a_boundary_between_two_texts_is_in_the_digest() {
        let apart = GradientContract::digest(&[ExpectedGradient::new("a", "bc", "d")]);
        let shifted = GradientContract::digest(&[ExpectedGradient::new("ab", "c", "d")]);
        assert_ne!(apart, shifted);
    }

    #[test]
    fn every_rule_has_its_own_error() {
        let two = || manifest(&[("a", "f"), ("b", "f")]);
        let active = |min| vec![GradientFamilyContract::active("f", min)];
        let error = |expected, families| GradientContract::new(expected, families).unwrap_err();
        let family = || "f".to_owned();

        assert!(GradientContract::new(two(), active(2)).is_ok());
        assert_eq!(error(vec![], active(1)), Error::NoParameters);
        assert_eq!(error(two(), vec![]), Error::NoFamilies);
        let minimum = |min_present| Error::Minimum { family: family(), min_present, members: 2 };
        assert_eq!(error(two(), active(0)), minimum(0));
        assert_eq!(error(two(), active(3)), minimum(3));
        let conditional = |min| vec![GradientFamilyContract::data_conditional("f", min)];
        assert_eq!(error(two(), conditional(3)), minimum(3));
        let mut inactive = vec![GradientFamilyContract::inactive("f")];
        assert!(GradientContract::new(two(), inactive.clone()).is_ok());
        inactive[0].min_present = 1;
        let expected = Error::InactiveMinimum { family: family(), min_present: 1 };
        assert_eq!(error(two(), inactive), expected);
        let twice = Error::ParameterTwice { root: "vb".into(), key: "a".into() };
        assert_eq!(error(manifest(&[("a", "f"), ("a", "f")]), active(1)), twice);
        let blank = Error::BlankParameter { index: 1, field: "key" };
        assert_eq!(error(manifest(&[("a", "f"), ("\t", "f")]), active(1)), blank);
        let both = [active(1), active(1)].concat();
        assert_eq!(error(two(), both), Error::FamilyTwice { family: family() });
        let other = [active(1), vec![GradientFamilyContract::inactive("g")]].concat();
        assert_eq!(error(two(), other), Error::EmptyFamily { family: "g".into() });
        let unknown = Error::UnknownFamily { family: "g".into() };
        assert_eq!(error(manifest(&[("a", "f"), ("b", "g")]), active(1)), unknown);
        let blank = [active(1), vec![GradientFamilyContract::inactive(" ")]].concat();
        assert_eq!(error(two(), blank), Error::BlankFamily);

        let mut foreign = GradientContract::new(two(), active(1)).unwrap();
        foreign.manifest_sha256.make_ascii_uppercase();
        assert!(matches!(foreign.check(), Err(Error::Digest { .. })));
    }
}
