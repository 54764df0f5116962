//! The answers for people: a few numbers, then tables.

use std::fmt::Write;

use serde_json::Value;
use tmrun::query::Kind;

use super::super::text::{Table, duration, moment, number, plain, plural};

/// The most rows of a table whose length nobody chose.
const ROWS: usize = 12;

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The name under which the row stands.
    Key,
    Text,
    Number,
    Duration,
    Moment,
    List,
}

use Cell::{Duration, Key, List, Moment, Number, Text};

/// A heading, where in a row its cells are, and what they hold.
type Column = (&'static str, &'static str, Cell);

/// A table: where its rows are, and its columns.
type Section = (&'static str, &'static [Column]);

/// The tables of a kind.
const fn sections(kind: Kind) -> &'static [Section] {
    const HEAVY: &[Column] = &[
        ("span", "/name", Text),
        ("allocated", "/allocated_bytes", Number),
        ("peak live", "/peak_live_bytes", Number),
        ("id", "/id", Text),
    ];
    match kind {
        Kind::Labels => &[(
            "/rows",
            &[("kind", "/kind", Text), ("events", "/events", Number), ("label", "/label", Text)],
        )],
        Kind::SlowestHost => &[(
            "/slowest_host_spans",
            &[
                ("own time", "/measured_overlap_self_time_ns", Duration),
                ("time", "/measured_overlap_duration_ns", Duration),
                ("span", "/name", Text),
                ("scope", "/scope", Text),
                ("id", "/id", Text),
            ],
        )],
        Kind::SlowestDevice => &[(
            "/slowest_device_spans",
            &[
                ("busy", "/device_busy_ns", Duration),
                ("span", "/name", Text),
                ("device", "/device", Text),
                ("clock", "/clock_id", Text),
                ("id", "/id", Text),
            ],
        )],
        Kind::SlowSteps => &[(
            "/rows",
            &[
                ("step", "/step", Number),
                ("time", "/duration_ns", Duration),
                ("began", "/start_ns", Moment),
                ("phase", "/phase", Text),
                ("lane", "/lane", Number),
                ("lost gaps", "/lost_gaps", Number),
            ],
        )],
        Kind::Activations => &[
            (
                "/rankings/observed_host_duration_ns/rows",
                &[
                    ("host time", "/observed_host_duration_ns", Duration),
                    ("operation", "/name", Text),
                    ("id", "/id", Text),
                ],
            ),
            (
                "/rankings/device_busy_ns_by_clock/rows",
                &[
                    ("device time", "/timing/busy_ns", Duration),
                    ("operation", "/operation/name", Text),
                    ("device", "/timing/device", Text),
                    ("clock", "/timing/clock_id", Text),
                    ("id", "/operation/id", Text),
                ],
            ),
            (
                "/rankings/dense_output_bytes/rows",
                &[
                    ("dense bytes", "/dense_output_bytes", Number),
                    ("operation", "/name", Text),
                    ("id", "/id", Text),
                ],
            ),
            (
                "/rankings/logical_allocated_bytes/rows",
                &[
                    ("allocated", "/logical_allocated_bytes", Number),
                    ("operation", "/name", Text),
                    ("id", "/id", Text),
                ],
            ),
            (
                "/rankings/logical_byte_nanoseconds/rows",
                &[
                    ("bytes x ns", "/logical_byte_nanoseconds", Text),
                    ("operation", "/name", Text),
                    ("id", "/id", Text),
                ],
            ),
        ],
        Kind::Heaviest => &[("/heaviest_spans", HEAVY), ("/heaviest_ops", HEAVY)],
        Kind::Memory => &[
            (
                "/logical/by_device",
                &[
                    ("device", "/device", Text),
                    ("allocations", "/storage_allocation_count", Number),
                    ("freed", "/matched_storage_free_count", Number),
                    ("allocated", "/total_allocated_bytes", Number),
                    ("peak live", "/peak_live_bytes", Number),
                    ("at", "/peak_timestamp_ns", Moment),
                ],
            ),
            (
                "/physical/by_device",
                &[
                    ("device", "/device", Text),
                    ("samples", "/sample_count", Number),
                    ("peak used", "/peak_used_bytes", Number),
                    ("peak reserved", "/peak_reserved_bytes", Number),
                    ("least free", "/minimum_free_bytes", Number),
                ],
            ),
            (
                "/logical/peak/live_allocations",
                &[
                    ("live at the peak", "/bytes", Number),
                    ("category", "/category", Text),
                    ("by", "/op_name", Text),
                    ("storage", "/storage_id", Text),
                    ("span", "/allocation_span_id", Text),
                ],
            ),
        ],
        Kind::Spans => &[(
            "/rows",
            &[
                ("own time", "/host_self_time_ns", Duration),
                ("time", "/host_total_time_ns", Duration),
                ("node", "/name", Text),
                ("kind", "/kind", Text),
                ("allocated", "/allocated_bytes", Number),
                ("id", "/id", Text),
            ],
        )],
        Kind::Tensors => &[(
            "/rows",
            &[
                ("label", "/label", Text),
                ("tensor", "/tensor_id", Text),
                ("shape", "/shape", List),
                ("dtype", "/dtype", Text),
                ("device", "/device", Text),
                ("category", "/category", Text),
                ("dense bytes", "/dense_bytes", Number),
            ],
        )],
        Kind::TensorStats => &[
            (
                "/rows",
                &[
                    ("label", "/label", Text),
                    ("shape", "/shape", List),
                    ("rms", "/rms", Number),
                    ("abs max", "/abs_max", Number),
                    ("mean", "/mean", Number),
                    ("not finite", "/non_finite", Number),
                ],
            ),
            (
                "/non_finite/rows",
                &[
                    ("not finite in", "/label", Text),
                    ("NaN", "/nan", Number),
                    ("+Inf", "/positive", Number),
                    ("-Inf", "/negative", Number),
                    ("Inf", "/infinite", Number),
                ],
            ),
        ],
        Kind::Gradients => &[
            (
                "/rows",
                &[
                    ("root", "/root", Text),
                    ("key", "/key", Text),
                    ("state", "/state", Text),
                    ("norm", "/norm", Number),
                ],
            ),
            (
                "/non_finite/rows",
                &[("not finite", "/norm", Text), ("root", "/root", Text), ("key", "/key", Text)],
            ),
        ],
        Kind::Capabilities => &[(
            "",
            &[("capability", "", Key), ("level", "/level", Text), ("because", "/reason", Text)],
        )],
        Kind::Gaps => &[
            (
                "/rows",
                &[
                    ("class", "/class", Text),
                    ("reason", "/reason", Text),
                    ("lane", "/lane", Number),
                    ("records", "/records", Number),
                    ("from", "/first_ns", Moment),
                    ("to", "/last_ns", Moment),
                    ("of", "/planes", List),
                ],
            ),
            (
                "/refuted",
                &[
                    ("not complete", "/plane", Text),
                    ("but", "/instead", Text),
                    ("because", "/because", Text),
                ],
            ),
            ("/unanswered/rows", &[("what cannot be said", "", Text)]),
        ],
        Kind::GpuStatus => &[(
            "/normalized_rows",
            &[
                ("report of", "", Key),
                ("status", "/status", Text),
                ("rows", "/total", Number),
                ("because", "/reason", Text),
            ],
        )],
        Kind::GpuCorrelation => &[(
            "/ledger",
            &[("labels", "", Key), ("count", "/total", Number), ("the first ones", "/rows", List)],
        )],
        Kind::GpuPhases => &[
            (
                "/attributed_phases/rows",
                &[
                    ("busy", "/gpu_busy_ns", Duration),
                    ("range", "/semantic_key", Text),
                    ("operations", "/gpu_operation_count", Number),
                ],
            ),
            (
                "/projected_ranges/rows",
                &[("projected", "/projected_duration_ns", Duration), ("range", "/name", Text)],
            ),
        ],
        Kind::GpuKernels => &[(
            "/rows",
            &[
                ("time", "/total_ns", Duration),
                ("count", "/count", Number),
                ("average", "/average_ns", Duration),
                ("kernel", "/name", Text),
            ],
        )],
        Kind::GpuAttributionGaps => &[(
            "",
            &[("labels", "", Key), ("count", "/total", Number), ("the first ones", "/rows", List)],
        )],
    }
}

/// An answer as a page.
pub(super) fn page(kind: Kind, notes: &[&str], answer: &Value) -> String {
    let mut out = String::new();
    for note in notes {
        let _ = writeln!(out, "note: {note}");
    }
    fields(&mut out, answer);
    let mut has_rows = false;
    for &(place, columns) in sections(kind) {
        has_rows |= table(&mut out, place, columns, answer);
    }
    let count = |key: &str| answer.get(key).and_then(Value::as_u64);
    if let Some((matched, shown)) = count("matched").zip(count("displayed")) {
        let _ = write!(out, "{} of {}", number(shown), plural(matched, "row"));
        if let Some(next) = count("next_offset") {
            let _ = write!(out, "; --offset {next} goes on, --all is all of them");
        }
        out.push('\n');
    } else if !has_rows {
        out.push_str("no rows\n");
    }
    out
}

/// The single values of an answer; what says which rows are shown stands below them.
fn fields(out: &mut String, answer: &Value) {
    const PAGE: [&str; 6] = ["total", "matched", "displayed", "offset", "next_offset", "truncated"];
    for (key, value) in answer.as_object().into_iter().flatten() {
        let is_single = !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
        if is_single && !PAGE.contains(&&**key) && key != "edges_reason" && key != "definition" {
            let cell = if key.ends_with("_ns") { Duration } else { Number };
            let key = key.trim_end_matches("_ns").replace('_', " ");
            let _ = writeln!(out, "{key}: {}", show(value, cell));
        }
    }
}

/// Writes a table, where it has rows; returns whether it has.
fn table(out: &mut String, place: &str, columns: &[Column], answer: &Value) -> bool {
    let rows: Vec<(&str, &Value)> = match answer.pointer(place) {
        Some(Value::Array(rows)) => rows.iter().map(|row| ("", row)).collect(),
        Some(Value::Object(rows)) => {
            let rows = rows.iter().filter(|(_, row)| row.is_object());
            rows.map(|(key, row)| (&**key, row)).collect()
        }
        _ => return false,
    };
    if rows.is_empty() {
        return false;
    }
    let heading: Vec<_> = columns.iter().map(|(heading, ..)| *heading).collect();
    let is_number = |(_, (.., cell)): &(usize, &Column)| matches!(cell, Number | Duration | Moment);
    let right: Vec<_> = columns.iter().enumerate().filter(is_number).map(|(at, _)| at).collect();
    let mut table = Table::new(&heading).right(&right);
    // Pages have the length that was asked for.
    let limit = if place == "/rows" { usize::MAX } else { ROWS };
    for (key, row) in rows.iter().take(limit) {
        table.row(columns.iter().map(|&(_, place, cell)| match (cell, row.pointer(place)) {
            (Key, _) => key.replace('_', " "),
            (_, None | Some(Value::Null)) => "-".to_owned(),
            (_, Some(value)) => show(value, cell),
        }));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    table.write(out);
    if let Some(more) = rows.len().checked_sub(limit).filter(|&more| more > 0) {
        let _ = writeln!(out, "  … and {more} more; --json has them");
    }
    true
}

fn show(value: &Value, cell: Cell) -> String {
    match (value, cell) {
        #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
        (Value::Number(n), Duration) => duration(n.as_u64().unwrap_or_default() as f64),
        (Value::Number(n), Moment) => moment(n.as_u64().unwrap_or_default()),
        (Value::Number(n), _) => match (n.as_u64(), n.as_f64()) {
            (Some(whole), _) => number(whole),
            (None, Some(float)) => format!("{float:.6e}"),
            (None, None) => n.to_string(),
        },
        (Value::String(text), _) => plain(text).into_owned(),
        (Value::Array(all), _) => {
            let all: Vec<_> = all.iter().take(ROWS).map(|one| show(one, Text)).collect();
            all.join(", ")
        }
        (value, _) => plain(&value.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_has_a_table() {
        for &kind in Kind::ALL {
            assert!(!sections(kind).is_empty(), "{}", kind.name());
        }
    }

    #[test]
    fn a_page_has_its_notes_its_numbers_its_rows_and_where_it_goes_on() {
        let row = json!({
            "step": 4711, "duration_ns": 2_500_000, "start_ns": 1_000_000_000, "phase": null,
            "lane": 0, "lost_gaps": 1,
        });
        let answer = json!({
            "total": 9, "matched": 9, "displayed": 1, "offset": 0, "next_offset": 1,
            "truncated": true, "rows": [row], "median_ns": 1_000,
        });
        let page = page(Kind::SlowSteps, &["something is odd"], &answer);
        let lines: Vec<_> = page.lines().collect();
        assert_eq!(lines[0], "note: something is odd");
        assert_eq!(lines[1], "median: 1.00 us");
        let cells: Vec<_> = lines[4].split_whitespace().collect();
        assert_eq!(cells, ["4,711", "2.50", "ms", "1.000000", "s", "-", "0", "1"]);
        assert_eq!(lines[5], "1 of 9 rows; --offset 1 goes on, --all is all of them");
    }

    #[test]
    fn an_answer_without_rows_says_so() {
        let empty = json!({ "heaviest_spans": [], "heaviest_ops": [] });
        assert_eq!(page(Kind::Heaviest, &[], &empty), "no rows\n");
        let empty = json!({ "rows": [], "matched": 0, "displayed": 0 });
        assert_eq!(page(Kind::Gaps, &[], &empty), "0 of 0 rows\n");
    }

    #[test]
    fn names_from_a_file_cannot_control_the_terminal() {
        let answer = json!({ "rows": [{ "kind": "spans", "events": 1, "label": "a\u{1b}[2J" }] });
        assert!(page(Kind::Labels, &[], &answer).contains("a\\u{1b}[2J"));
    }

    #[test]
    fn an_object_of_rows_is_a_table_too_and_long_lists_are_cut() {
        let capability = json!({ "level": "partial", "source": "trace", "reason": "no ops" });
        let shown = page(Kind::Capabilities, &[], &json!({ "outer_wall_time": capability }));
        assert!(shown.contains("outer wall time  partial  no ops"), "{shown}");
        let spans: Vec<_> = (0..20).map(|at| json!({ "name": format!("s{at}") })).collect();
        let shown = page(Kind::Heaviest, &[], &json!({ "heaviest_ops": spans }));
        assert!(shown.contains("s11") && !shown.contains("s12"), "{shown}");
        assert!(shown.contains("… and 8 more"), "{shown}");
    }
}
