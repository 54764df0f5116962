//! Directories as Nsight leaves them, whole and broken.
#![allow(dead_code, reason = "every test uses some of it")]

use super::traces::Rng;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The files of a directory.
#[derive(Debug, Clone, Default)]
pub struct Reports(pub BTreeMap<String, String>);

/// What is left of a run with one label, whose range is projected once, with two pieces of work in it,
/// and one beside it.
pub fn whole(run_id: &str, correlation_id: &str, label: &str) -> Reports {
    let ranges = format!(
        "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration (ns),\
         NumGPUOps,CorrId\n{label},1000,250,700,600,2,41\n"
    );
    let work = "Start (ns),Duration (ns),CorrId,Device,Ctx,Strm,Name\n\
        1010,25,41,GPU (0),7,13,first\n1020,100,41,GPU (0),7,14,second\n1030,9,42,GPU (0),7,13,other\n";
    let kernels = "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name\n\
        74.6,100,1,100,100,100,second\n25.4,34,2,17,9,25,first\n";
    let mut files = BTreeMap::from([
        ("r_nvtx_gpu_proj_trace.csv".to_owned(), ranges),
        ("r_cuda_gpu_trace.csv".to_owned(), work.to_owned()),
        ("r_cuda_gpu_kern_sum.csv".to_owned(), kernels.to_owned()),
        ("r.nsys-rep".to_owned(), "binary".to_owned()),
    ]);
    let artifact = |(path, text): (&String, &String)| {
        let sha256 = format!("{:X}", Sha256::digest(text));
        json!({ "path": path, "size_bytes": text.len(), "sha256": sha256 })
    };
    let artifacts: Vec<_> = files.iter().map(artifact).collect();
    let manifest = json!({
        "schema": "candle-graph/nsight-capture/1", "run": { "id": run_id },
        "correlation": { "id": correlation_id }, "tool": { "name": "nsys", "version": "1" },
        "commands": [], "hardware": {}, "source_revisions": {},
        "required_semantic_labels": [label], "artifacts": artifacts,
    });
    files.insert("capture-manifest.json".to_owned(), manifest.to_string());
    Reports(files)
}

const HEADINGS: [(&str, [&str; 3]); 12] = [
    ("name", ["Name", "Operation", "Kernel Name"]),
    ("total", ["Total Time (ns)", "Total (ns)", "total_time_ns"]),
    ("count", ["Instances", "Num Calls", "Count"]),
    ("average", ["Avg (ns)", "Average (ns)", "Med (ns)"]),
    ("category", ["Category", "category", "Time (%)"]),
    ("start", ["Start (ns)", "Start", "start-ns"]),
    ("duration", ["Duration (ns)", "Duration", "Dur (ns)"]),
    ("projected start", ["Projected Start (ns)", "Projected Start", "Proj Start (ns)"]),
    ("projected duration", ["Projected Duration (ns)", "Projected Duration", "Proj Dur (ns)"]),
    ("operations", ["NumGPUOps", "Num GPU Ops", "GPU Operations"]),
    ("correlation", ["CorrId", "Correlation ID", "Corr-Id"]),
    ("stream", ["Strm", "Stream", "Stream/ID"]),
];

/// A table under construction.
struct Csv {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    /// Columns in any order, one in forty left out, under any of their headings.
    fn text(&self, rng: &mut Rng) -> String {
        let mut order: Vec<_> = (0..self.columns.len()).filter(|_| !rng.one_in(40)).collect();
        rng.shuffle(&mut order);
        let heading = |at: &usize, rng: &mut Rng| {
            let names = HEADINGS.iter().find(|(name, _)| *name == self.columns[*at]);
            names.map_or("Device", |(_, names)| *rng.pick(names))
        };
        let headings: Vec<_> = order.iter().map(|at| heading(at, rng)).collect();
        let mut text = format!("{}\n", headings.join(","));
        for row in &self.rows {
            let mut cells: Vec<_> = order.iter().map(|&at| row[at].clone()).collect();
            if rng.one_in(30) {
                cells.pop();
            }
            text += &format!("{}\n", cells.join(","));
        }
        text
    }
}

/// A number as the tool or a spreadsheet writes it; seldom one that is none.
fn number(n: u64, rng: &mut Rng) -> String {
    let grouped = || {
        let digits = n.to_string();
        let groups: Vec<_> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|group| str::from_utf8(group).unwrap())
            .collect();
        format!("\"{}\"", groups.join(","))
    };
    match rng.below(4000) {
        0 => rng.pick(&["-1", "NaN", "inf", "x", "18446744073709551616", "1e99"]).to_string(),
        1 => "-0".to_owned(),
        2..300 => grouped(),
        300..500 => format!("{n}.9"),
        500..700 => format!(" {n} "),
        700..800 => "1e3".to_owned(),
        _ => n.to_string(),
    }
}

/// The same where a cell may be empty.
fn optional(n: u64, rng: &mut Rng) -> String {
    if rng.one_in(12) { String::new() } else { number(n, rng) }
}

fn summary(rng: &mut Rng) -> String {
    let mut csv =
        Csv { columns: vec!["name", "total", "count", "average", "category"], rows: vec![] };
    let count = *rng.pick(&[0, 1, 3, 99, 100, 101, 130]);
    for n in 0..count {
        let name = match rng.below(20) {
            0 => "  ".to_owned(),
            1 => "\"void f<a, b>(c)\"".to_owned(),
            _ => format!("kernel {n}"),
        };
        let category = *rng.pick(&["", "CUDA", " x"]);
        let total = number(rng.below(40), rng);
        csv.rows.push(vec![name, total, optional(n, rng), optional(7, rng), category.to_owned()]);
    }
    csv.text(rng)
}

fn key(rng: &mut Rng) -> String {
    rng.pick(&["1", "2", "2", "3", ""]).to_string()
}

fn ranges(labels: &[String], rng: &mut Rng) -> String {
    let mut columns =
        vec!["name", "start", "duration", "projected start", "projected duration", "operations"];
    // Of the keys that ranges and work may have in common, any.
    let mut joined = vec!["correlation", "stream", "device"];
    joined.retain(|_| rng.one_in(2));
    columns.extend(&joined);
    let mut csv = Csv { columns, rows: vec![] };
    let mut row = |name: &str, rng: &mut Rng| {
        let start = rng.below(60);
        let end = if rng.one_in(30) { u64::MAX } else { 1 + rng.below(60) };
        let mut cells = vec![
            name.to_owned(),
            number(start, rng),
            number(1 + rng.below(9), rng),
            number(start, rng),
            number(end, rng),
            optional(rng.below(4), rng),
        ];
        cells.extend(joined.iter().map(|_| key(rng)));
        csv.rows.push(cells);
    };
    for label in labels {
        for _ in 0..*rng.pick(&[1, 1, 1, 1, 0, 2]) {
            row(label, rng);
        }
    }
    for _ in 0..*rng.pick(&[0, 0, 1, 3, 520]) {
        let name = format!("other {}", rng.below(4));
        row(&name, rng);
    }
    csv.text(rng)
}

fn work(rng: &mut Rng) -> String {
    let columns = vec!["name", "start", "duration", "correlation", "stream", "device"];
    let mut csv = Csv { columns, rows: vec![] };
    for n in 0..*rng.pick(&[0, 1, 4, 20, 40, 510]) {
        let start = if rng.one_in(40) { u64::MAX } else { rng.below(100) };
        let duration = if rng.one_in(200) { 0 } else { 1 + rng.below(30) };
        csv.rows.push(vec![
            format!("work {}", n % 7),
            number(start, rng),
            number(duration, rng),
            key(rng),
            key(rng),
            key(rng),
        ]);
    }
    csv.text(rng)
}

/// A directory for a trace of this first line, seldom without anything wrong.
pub fn reports(meta: &Value, rng: &mut Rng) -> Reports {
    let mut files = BTreeMap::new();
    let contract = &meta["capture_contract"];
    let labels = |field: &str| -> Vec<String> {
        let labels = contract[field].as_array().into_iter().flatten();
        labels.map(|label| label.as_str().unwrap().to_owned()).collect()
    };
    let (required, gpu, cpu) = (
        labels("required_semantic_labels"),
        labels("gpu_expected_semantic_labels"),
        labels("cpu_only_semantic_labels"),
    );
    let mut projected =
        if gpu.is_empty() && cpu.is_empty() { required.clone() } else { gpu.clone() };
    if rng.one_in(6) {
        projected.extend(cpu.iter().cloned());
    }
    for report in ["cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum"] {
        for part in 0..*rng.pick(&[0, 1, 1, 2]) {
            files.insert(format!("{part}_{report}.csv"), summary(rng));
        }
    }
    for part in 0..*rng.pick(&[0, 1, 1, 1, 2]) {
        files.insert(format!("r{part}_nvtx_gpu_proj_trace.csv"), ranges(&projected, rng));
    }
    for part in 0..*rng.pick(&[0, 1, 1, 1, 2]) {
        files.insert(format!("r{part}_cuda_gpu_trace.csv"), work(rng));
    }
    if !rng.one_in(5) {
        files.insert("r.nsys-rep".to_owned(), "binary".to_owned());
    }
    for (name, text) in [
        ("cuda_gpu_kern_sum.txt", "no table"),
        ("osrt_sum.csv", "Name\nread\n"),
        ("status.txt", "tool=nsys\nreason=the driver said no\n"),
        ("empty_cuda_api_sum.csv", ""),
        ("z_cuda_gpu_trace.csv", "Name,Start (ns)\n\"open"),
    ] {
        if rng.one_in(8) {
            files.insert(name.to_owned(), text.to_owned());
        }
    }
    if !rng.one_in(5) {
        let manifest = manifest(meta, [&required, &gpu, &cpu], &files, rng);
        files.insert("capture-manifest.json".to_owned(), manifest);
    }
    Reports(files)
}

fn manifest(
    meta: &Value,
    [required, gpu, cpu]: [&Vec<String>; 3],
    files: &BTreeMap<String, String>,
    rng: &mut Rng,
) -> String {
    let artifacts = files.iter().map(|(path, text)| {
        let sha256 = format!("{:x}", Sha256::digest(text));
        json!({ "path": path, "size_bytes": text.len(), "sha256": sha256 })
    });
    let mut manifest = json!({
        "schema": "candle-graph/nsight-capture/1", "run": { "id": meta["run_id"] },
        "correlation": { "id": meta["correlation_id"] },
        "tool": { "name": "nsys", "version": "2026.1" }, "commands": ["nsys profile"],
        "hardware": { "devices": ["cuda:0"] }, "source_revisions": { "app": "abc" },
        "required_semantic_labels": required, "gpu_expected_semantic_labels": gpu,
        "cpu_only_semantic_labels": cpu, "artifacts": artifacts.collect::<Vec<_>>(),
    });
    for _ in 0..*rng.pick(&[0, 0, 1, 2]) {
        spoil(&mut manifest, rng);
    }
    if rng.one_in(15) { "{".to_owned() } else { manifest.to_string() }
}

/// Makes something in a manifest wrong.
fn spoil(manifest: &mut Value, rng: &mut Rng) {
    let list = |manifest: &mut Value, field: &str, value: Value| {
        manifest[field].as_array_mut().unwrap().push(value);
    };
    let file = |path: &str| json!({ "path": path, "size_bytes": 3, "sha256": "0" });
    match rng.below(13) {
        0 => manifest["schema"] = json!("candle-graph/nsight-capture/2"),
        1 => manifest["run"]["id"] = json!("another"),
        2 => manifest["correlation"]["id"] = json!("another"),
        3 => list(manifest, "required_semantic_labels", json!("another")),
        4 => list(manifest, "cpu_only_semantic_labels", json!("another")),
        5 => list(manifest, "gpu_expected_semantic_labels", json!("another")),
        6 => {
            for field in [
                "required_semantic_labels",
                "gpu_expected_semantic_labels",
                "cpu_only_semantic_labels",
            ] {
                let first = manifest[field][0].clone();
                if !first.is_null() {
                    list(manifest, field, first);
                }
            }
        }
        7 => list(manifest, "artifacts", file("missing")),
        8 => list(manifest, "artifacts", file("../outside")),
        9 => {
            let first = manifest["artifacts"][0].clone();
            if !first.is_null() {
                list(manifest, "artifacts", first);
            }
        }
        10 => drop(manifest["artifacts"].as_array_mut().unwrap().pop()),
        field => {
            let field = if field == 11 { "size_bytes" } else { "sha256" };
            let value = if field == "sha256" { json!("0".repeat(64)) } else { json!(1) };
            if let Some(first) = manifest["artifacts"].as_array_mut().unwrap().first_mut() {
                first[field] = value;
            }
        }
    }
}

impl Reports {
    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in &self.0 {
            fs::write(folder.join(name), text).unwrap();
        }
    }
}
