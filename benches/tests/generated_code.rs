//! What the compiler makes of a site that records nothing, read from its assembly.
//! (`examples/sites.rs`, without link-time optimisation: what is not inlined there is not anywhere.)

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// A function's body: its instructions and labels, in order.
type Body = Vec<Line>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Label(String),
    Code(String),
}

type Functions = BTreeMap<String, Body>;

static PROBED: LazyLock<Functions> = LazyLock::new(|| functions(&assembly(&[])));
/// The same with the feature `off`.
static OFF: LazyLock<Functions> = LazyLock::new(|| functions(&assembly(&["--features", "off"])));

/// Compiles `examples/sites.rs` with optimisation.
fn assembly(features: &[&str]) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let text = target.join(format!("sites{}.s", features.concat()));
    // A file that cargo believes to be there is not made again.
    let generation = if text.exists() { "first" } else { "again" };
    let ran = Command::new(env!("CARGO"))
        .args(["rustc", "--locked", "-p", "tmrun-benches", "--example", "sites"])
        .args(features)
        .args(["--config", "profile.dev.package.tmrun-benches.opt-level=3"])
        .args(["--config", "profile.dev.package.tmrun-benches.codegen-units=1"])
        .args(["--config", "profile.dev.package.tmrun-benches.overflow-checks=false"])
        .args(["--config", "profile.dev.package.tmrun-benches.debug-assertions=false"])
        .args(["--config", "profile.dev.package.tmrun-benches.debug=false"])
        .arg("--target-dir")
        .arg(target.parent().expect("cargo's folder for tests lies in its target folder"))
        .arg("--")
        .arg(format!("--emit=asm={}", text.display()))
        // Calls by name, so that they can be told apart.
        .args(["-C", "relocation-model=static"])
        .args(["-C", &format!("metadata={generation}")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be run");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::fs::read_to_string(&text).expect("the compiler has written it")
}

fn functions(assembly: &str) -> BTreeMap<String, Body> {
    let mut functions: BTreeMap<String, Body> = BTreeMap::new();
    let mut same = Vec::new();
    let mut open: Option<String> = None;
    for line in assembly.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(label) = line.strip_suffix(':') {
            if !label.starts_with('.') {
                open = Some(label.to_owned());
            }
            let name = open.clone().unwrap_or_default();
            functions.entry(name).or_default().push(Line::Label(label.to_owned()));
        } else if let Some((name, kept)) = line.split_once(" = ") {
            same.push((name.to_owned(), kept.to_owned()));
        } else if !line.is_empty() && !line.starts_with('.') {
            let code = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let name = open.clone().unwrap_or_default();
            functions.entry(name).or_default().push(Line::Code(code));
        }
    }
    // Of functions that are the same code the compiler may keep one.
    for (name, kept) in same {
        if let Some(body) = functions.get(&kept).cloned() {
            functions.insert(name, body);
        }
    }
    functions
}

/// The instructions of a function, its labels by number.
fn code(of: &Functions, name: &str) -> Vec<String> {
    let body = of.get(name).unwrap_or_else(|| panic!("{name} is in the assembly"));
    let labels: BTreeSet<&String> = body
        .iter()
        .filter_map(|line| match line {
            Line::Label(label) if label.starts_with(".LBB") => Some(label),
            _ => None,
        })
        .collect();
    let instructions = body.iter().filter_map(|line| match line {
        Line::Code(code) => Some(code.clone()),
        Line::Label(_) => None,
    });
    let numbered = |code: String| {
        let find = |label: &&&String| code.ends_with(label.as_str());
        match labels.iter().find(find) {
            Some(label) => {
                let number = labels.iter().position(|other| other == label).unwrap_or_default();
                code.replace(label.as_str(), &number.to_string())
            }
            None => code,
        }
    };
    instructions.map(numbered).collect()
}

fn calls_work(code: &str) -> bool {
    code.starts_with("call")
        && code.split(|c: char| !c.is_alphanumeric()).any(|word| word == "work")
}

/// The fewest instructions from one call of `work` to the next with no other call between: what the
/// loop executes while its site records nothing, for a site that records or is new calls something.
fn instructions_a_turn(of: &Functions, name: &str) -> usize {
    let body = of.get(name).unwrap_or_else(|| panic!("{name} is in the assembly"));
    let at: BTreeMap<&str, usize> = (0..)
        .zip(body)
        .filter_map(|(i, line)| match line {
            Line::Label(label) => Some((label.as_str(), i)),
            Line::Code(_) => None,
        })
        .collect();
    let starts = (0..).zip(body).filter_map(|(i, line)| match line {
        Line::Code(code) if calls_work(code) => Some(i + 1),
        _ => None,
    });
    // Breadth first: all ways of so many instructions, then those of one more.
    let mut ways: BTreeSet<usize> = starts.collect();
    for executed in 0..200 {
        let mut next = BTreeSet::new();
        let mut open: Vec<usize> = ways.into_iter().collect();
        while let Some(i) = open.pop() {
            let code = match body.get(i) {
                Some(Line::Label(_)) => {
                    open.push(i + 1);
                    continue;
                }
                Some(Line::Code(code)) => code.as_str(),
                None => continue,
            };
            let target = code.split_whitespace().last().and_then(|label| at.get(label));
            match code.split_whitespace().next().unwrap_or_default() {
                call if call.starts_with("call") => {
                    if calls_work(code) {
                        // The call itself is one of them.
                        return executed + 1;
                    }
                }
                ret if ret.starts_with("ret") || ret.starts_with("ud") => {}
                "jmp" => next.extend(target),
                jump if jump.starts_with('j') => {
                    next.extend(target);
                    next.insert(i + 1);
                }
                _ => {
                    next.insert(i + 1);
                }
            }
        }
        ways = next;
    }
    panic!("{name} does not call `work` again and again:\n{}", code(of, name).join("\n"))
}

#[test]
fn a_compiled_out_site_is_no_code_at_all() {
    is_no_code(&PROBED, "loop_compiled_out");
    assert_eq!(code(&PROBED, "call_compiled_out"), code(&PROBED, "call_alone"));
}

#[test]
fn with_the_feature_off_nothing_of_a_probe_is_any_code() {
    for name in ["", "_library", "_measured", "_scalar", "_step"] {
        is_no_code(&OFF, &format!("loop_disarmed{name}"));
    }
    assert_eq!(code(&OFF, "call_disarmed"), code(&OFF, "call_alone"));
    assert_ne!(code(&PROBED, "call_disarmed"), code(&PROBED, "call_alone"));
}

/// Behind the optimiser's passes the registers of a loop may be others.
fn is_no_code(of: &Functions, name: &str) {
    assert_eq!(code(of, name).len(), code(of, "loop_alone").len(), "{name}");
    assert_eq!(instructions_a_turn(of, name), instructions_a_turn(of, "loop_alone"), "{name}");
}

/// Load, test and branch; a span has to remember the answer until it ends (one more), and to ask
/// then (two more), where what it is around is not compiled twice.
#[test]
fn a_disarmed_site_is_a_load_and_a_branch() {
    let alone = instructions_a_turn(&PROBED, "loop_alone");
    assert!((3..6).contains(&alone), "a call, a count and a jump, but not {alone} instructions");
    let limits = [
        ("loop_disarmed_scalar", 5),
        ("loop_disarmed", 8),
        ("loop_disarmed_library", 9),
        ("loop_disarmed_measured", 8),
    ];
    for (name, limit) in limits {
        let added = instructions_a_turn(&PROBED, name) - alone;
        println!("{name} adds {added}");
        assert!(
            (1..=limit).contains(&added),
            "{name} adds {added}:\n{}",
            code(&PROBED, name).join("\n")
        );
    }
}
