//! The schemas of documents that are commands' alone: for the answers, and for `tmrun protocol`.

pub(super) const AUDIT: &str = "tmrun/audit/1";
pub(super) const INFO: &str = "tmrun/info/1";
pub(super) const PROTOCOL: &str = "tmrun/protocol/1";
pub(super) const SALVAGE: &str = "tmrun/salvage/1";
pub(super) const SUMMARY: &str = "tmrun/summary/1";
pub(super) const VERIFY: &str = "tmrun/verify/1";
pub(super) const VERIFY_BUNDLE: &str = "tmrun/verify-bundle/1";
