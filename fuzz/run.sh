#!/usr/bin/env bash
# Runs every fuzz target, or those named, with the coverage-guided engine: run.sh [MINUTES [TARGET...]].
# Starts from the committed corpus and the files in testdata; what it finds stays in fuzz/target.
# Needs a nightly toolchain, a C++ compiler, and cargo-fuzz (`cargo install cargo-fuzz`).
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-1}
shift || true
(($#)) || set -- tmrun_salvage rings_file tmrun_file meta_frame runtime_document runtime_jsonl trace_jsonl evidence bundle_manifest nsight_csv audit
for target; do
  echo "== $target, $minutes min"
  case $target in
    tmrun_file | tmrun_salvage) seeds=(testdata/v1) ;;
    runtime_* | audit) seeds=(testdata/runtime/{valid,invalid,audit}) ;;
    trace_jsonl | evidence) seeds=(testdata/trace) ;;
    *) seeds=() ;;
  esac
  mkdir -p "fuzz/target/corpus/$target" "fuzz/corpus/$target"
  cargo +nightly fuzz run --features engine "$target" \
    "fuzz/target/corpus/$target" "fuzz/corpus/$target" "${seeds[@]}" -- \
    -max_total_time=$((minutes * 60)) -max_len=65536 -rss_limit_mb=2048 -timeout=20 -print_final_stats=1
done
