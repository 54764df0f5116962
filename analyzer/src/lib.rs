//! Reads `.tmrun` recordings.
