//! `evidence.json`.

use crate::support::{assert_same_text, assert_same_verdicts, trace, traces};
use candle_graph_v10::evidence::{EvidencePacket, build_evidence};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tmrun_formats::evidence::{
    CapabilityKind, Evidence, FactCode, FindingCode, GpuBinding, GpuStatus, HealthCode,
};
use tmrun_formats::published::Coded;

type Ours = Evidence<'static>;

fn packet(trace: &Path, nsight: Option<&Path>) -> String {
    let packet = build_evidence(trace, nsight).expect("evidence");
    serde_json::to_string_pretty(&packet).expect("text")
}

fn read(text: &str) -> Ours {
    serde_json::from_str(text).expect("evidence")
}

/// Tables and manifest of Nsight beside a trace with one label for the GPU and one for the CPU.
/// With `spoiled`, ranges are there twice, are where none may be, and the manifest is of another run.
fn nsight(at: &Path, spoiled: bool) -> String {
    let trace_path = at.join("trace.jsonl");
    let labels = r#""required_semantic_labels":["e","m"],"gpu_expected_semantic_labels":["m"],"cpu_only_semantic_labels":["e"]"#;
    let text = fs::read_to_string(trace("ok-label.jsonl")).expect("trace");
    fs::write(&trace_path, text.replace(r#""required_semantic_labels": ["m"]"#, labels))
        .expect("written");
    let folder = at.join("nsight");
    fs::create_dir(&folder).expect("folder");
    let summary = "Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Category,Name\n200,2,100,90,110,CUDA,gemm\n7,,,,,,copy\n";
    for table in ["cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum"] {
        fs::write(folder.join(format!("r_{table}.csv")), summary).expect("table");
    }
    let again = if spoiled {
        "m,9,9,9,9,1,0,1,13,42\ne,9,9,9,9,1,0,1,13,43\nx,9,9,9,9,1,0,1,13,44\n"
    } else {
        ""
    };
    let ranges = format!(
        "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration (ns),Num GPU Ops,Device,Context,Stream,CorrId\n\
         m,1000,250,700,600,1,0,1,13,41\n{again}"
    );
    fs::write(folder.join("r_nvtx_gpu_proj_trace.csv"), ranges).expect("table");
    let work = "Start (ns),Duration (ns),CorrId,Device,Ctx,Strm,Name\n1010,200,41,0,1,13,gemm\n";
    fs::write(folder.join("r_cuda_gpu_trace.csv"), work).expect("table");
    fs::write(folder.join("r.nsys-rep"), "binary").expect("report");

    let without = read(&packet(&trace_path, Some(&folder)));
    let artifacts: Vec<_> = without.gpu.source_csv.iter().chain(&without.gpu.raw_report).collect();
    assert_eq!(artifacts.len(), 6);
    let manifest = json!({
        "schema": "candle-graph/nsight-capture/1",
        "run": {"id": if spoiled { "another" } else { "run-1" }, "started_at": "today"},
        "correlation": {"id": "c/1"},
        "tool": {"name": "nsys", "version": "1"},
        "commands": ["nsys profile"],
        "hardware": {"host": "h", "devices": ["H200"]},
        "source_revisions": {"repository": "revision"},
        "required_semantic_labels": ["e", "m"],
        "gpu_expected_semantic_labels": ["m"],
        "cpu_only_semantic_labels": ["e"],
        "artifacts": artifacts,
    });
    fs::write(folder.join("capture-manifest.json"), manifest.to_string()).expect("manifest");
    packet(&trace_path, Some(&folder))
}

#[test]
fn the_neighbours_evidence_of_every_trace_is_written_again_byte_for_byte() {
    for path in traces() {
        assert_same_text::<Ours>(&packet(&path, None), &path.display().to_string());
    }
}

#[test]
fn evidence_with_nsight_is_written_again_byte_for_byte() {
    for spoiled in [false, true] {
        let at = tempfile::tempdir().expect("folder");
        let text = nsight(at.path(), spoiled);
        assert_same_text::<Ours>(&text, "with nsight");
        let gpu = read(&text).gpu;
        assert_eq!(gpu.status, GpuStatus::Available);
        let binding = if spoiled { GpuBinding::Mismatch } else { GpuBinding::Bound };
        assert_eq!(gpu.provenance.binding, binding);
        assert_eq!(gpu.correlation.complete, !spoiled);
        assert_eq!(gpu.correlation.ledger.duplicates.len(), usize::from(spoiled));
        assert_eq!(gpu.correlation.ledger.unexpected_cpu_only.len(), usize::from(spoiled));
        assert_eq!(gpu.phase_attribution.len(), 1, "the range with work in it");
        let all = [gpu.kernels, gpu.runtime_calls, gpu.memory_operations];
        assert!(all.iter().all(|rows| rows.len() == 2));
        assert!(!gpu.nvtx_ranges.is_empty() && !gpu.gpu_timeline.is_empty());
        assert!(
            gpu.nvtx_ranges.iter().chain(&gpu.gpu_timeline).all(|row| row.kind.known().is_some())
        );
    }
}

#[test]
fn a_change_anywhere_in_evidence_is_taken_or_refused_as_the_neighbour_does() {
    let at = tempfile::tempdir().expect("folder");
    let texts = [
        packet(&trace("train.trace.jsonl"), None),
        packet(&trace("ok-devint.jsonl"), None),
        nsight(at.path(), true),
    ];
    for text in texts {
        assert_same_verdicts::<Ours, EvidencePacket>(&text, &[]);
    }
}

#[test]
fn every_code_that_the_neighbour_writes_is_known() {
    let at = tempfile::tempdir().expect("folder");
    let mut packets: Vec<_> = traces().iter().map(|path| packet(path, None)).collect();
    packets.push(nsight(at.path(), false));
    let mut seen = Vec::new();
    for text in packets {
        let evidence = read(&text);
        for issue in &evidence.health.issues {
            let code = issue.code.known().unwrap_or_else(|| panic!("{}", issue.code));
            let rule = code.severity().of(!evidence.health.capture_complete);
            assert_eq!(issue.severity, rule, "{code}");
            seen.push(code.name());
        }
        seen.extend(evidence.facts.iter().map(|fact| fact.code.known().expect("a fact").name()));
        seen.extend(
            evidence.findings.iter().map(|found| found.code.known().expect("a finding").name()),
        );
        for &kind in CapabilityKind::ALL {
            assert!(!evidence.capabilities.get(kind).source.is_empty(), "{kind}");
        }
    }
    for fact in FactCode::ALL {
        assert!(seen.contains(&fact.name()), "no sample has {fact}");
    }
    for finding in FindingCode::ALL {
        let device = *finding == FindingCode::LargestObservedDeviceBusyTime;
        assert!(seen.contains(&finding.name()) || device, "no sample has {finding}");
    }
    let issues = HealthCode::ALL.iter().filter(|code| seen.contains(&code.name())).count();
    assert!(issues >= 25, "the samples have {issues} of the codes");
}

#[test]
fn no_two_health_codes_have_one_name() {
    let mut names: Vec<_> = HealthCode::ALL.iter().map(|code| code.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), HealthCode::ALL.len());
    assert!(names.iter().all(|name| !name.contains(|c: char| !c.is_ascii_lowercase() && c != '_')));
}

#[test]
fn a_code_of_a_later_version_survives_where_the_neighbour_has_a_string() {
    let text = packet(&trace("ok-label.jsonl"), None);
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    value["facts"][0]["code"] = json!("of_a_later_version");
    let evidence = read(&value.to_string());
    assert_eq!(evidence.facts[0].code, Coded::Unknown("of_a_later_version".into()));
    assert_eq!(serde_json::to_value(&evidence).expect("value"), value);
}

#[test]
fn a_float_that_is_not_finite_is_not_written() {
    let text = packet(&trace("ok-stats.jsonl"), None);
    let mut evidence = read(&text);
    assert!(serde_json::to_string(&evidence).is_ok());
    evidence.tensor_stats[0].rms = f64::NAN;
    let error = serde_json::to_string(&evidence).expect_err("refused");
    assert!(error.to_string().contains("expected a finite number, found NaN"), "{error}");
}
