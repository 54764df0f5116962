#!/usr/bin/env bash
# Runs every fuzz target for MINUTES (default 1) with the coverage-guided engine.
# Needs a nightly toolchain, a C++ compiler, and cargo-fuzz (`cargo install cargo-fuzz`).
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-1}
for target in tmrun_file rings_file salvage meta_frame runtime_document runtime_jsonl audit; do
  echo "== $target, $minutes min"
  cargo +nightly fuzz run --features engine "$target" -- -max_total_time=$((minutes * 60)) -max_len=65536
done
