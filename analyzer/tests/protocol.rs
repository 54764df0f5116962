//! `tmrun protocol`: every command, every kind of question, every schema that any of them prints.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use support::command::{Folder, tmrun};
use tmrun::query::Kind;

fn protocol() -> Value {
    let output = tmrun(&["protocol"]);
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn texts(list: &Value, key: &str) -> Vec<String> {
    let all = list.as_array().expect("a list").iter();
    all.map(|one| one[key].as_str().expect("text").to_owned()).collect()
}

/// The commands that the help lists.
fn commands_of_help() -> Vec<String> {
    let output = tmrun(&["--help"]);
    let help = String::from_utf8(output.stdout).expect("text");
    let (_, list) = help.split_once("\nCommands:\n").expect("its list");
    let list = list.lines().take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

#[test]
fn it_has_every_command_every_kind_and_every_exit_code() {
    let found = protocol();
    assert_eq!(texts(&found["commands"], "name"), commands_of_help());
    let kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
    assert_eq!(texts(&found["queries"], "kind"), kinds);
    let codes = found["exit_codes"].as_array().expect("codes").iter();
    let codes: Vec<_> = codes.map(|one| &one["code"]).collect();
    assert_eq!(codes, [0, 1, 2, 3].map(Value::from).iter().collect::<Vec<_>>());
    let commands = found["commands"].as_array().expect("commands");
    let query = commands.iter().find(|one| one["name"] == "query").expect("it");
    let mut arguments = query["arguments"].as_array().expect("arguments").iter();
    let kind = arguments.find(|one| one["option"] == "--kind").expect("it");
    assert_eq!(kind["one_of"].as_array().expect("kinds").len(), kinds.len());
}

#[test]
fn what_a_question_needs_is_what_it_can_be_asked_of() {
    let folder = Folder::with(&bundles::steps());
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "2", "-o", "bundle"]);
    assert_eq!(code, 0, "{err}");
    for query in protocol()["queries"].as_array().expect("questions") {
        let kind = query["kind"].as_str().expect("its name");
        let of = |input| folder.tmrun(&["query", input, "--kind", kind]).0;
        // The recording has several steps, and the bundle one.
        let (recording, invocation) = match query["needs"].as_str().expect("text") {
            "a recording" => (0, 2),
            "a recording, or one invocation" => (0, 0),
            "one invocation" | "one invocation, complete and valid" => (2, 0),
            other => panic!("{other}"),
        };
        assert_eq!((of("in.tmrun"), of("bundle")), (recording, invocation), "{kind}");
    }
}

/// Every schema that a document names, at whatever depth.
fn schemas_in(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_schema = ["schema", "bundle_schema", "follows"].contains(&&**key);
                into.extend(value.as_str().filter(|_| is_schema).map(str::to_owned));
                schemas_in(value, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| schemas_in(value, into)),
        _ => {}
    }
}

/// What each command is asked, to get a document.
const ASKED: &[&[&str]] = &[
    &["bundle", "in.tmrun", "--step", "2", "-o", "bundle"],
    &["info", "--json", "in.tmrun"],
    &["convert", "in.tmrun"],
    &["convert", "in.tmrun", "--schema", "1", "--step", "2"],
    &["convert", "in.tmrun", "--schema", "2"],
    &["verify", "--json", "in.tmrun"],
    &["verify", "--semantic", "bundle"],
    &["salvage", "--json", "in.tmrun", "-o", "out.tmrun"],
    &["audit", "--json", "runtime.json"],
    &["summary", "--json", "bundle"],
    &["query", "bundle", "--kind", "labels"],
    &["overview", "bundle"],
    &["diff", "bundle", "bundle"],
    &["protocol"],
    &["compare", "--json", "--baseline", "bundle", "--candidate", "bundle"],
    &["series", "--json", "bundle"],
    &["campaign-status", "--json", "plan.json"],
];

#[test]
fn it_has_every_schema_that_a_command_prints_or_writes() {
    let folder = Folder::with(&bundles::steps());
    let (_, runtime, _) = folder.tmrun(&["convert", "in.tmrun"]);
    std::fs::write(folder.path("runtime.json"), runtime).expect("written");
    let plan = json!({
        "schema": "candle-graph/campaign/1", "campaign_id": "c", "entrypoint": "trainer::update",
        "planned": [{ "capture_step": 2, "bundle": "bundle" }],
    });
    std::fs::write(folder.path("plan.json"), plan.to_string()).expect("written");

    let mut declared = BTreeSet::new();
    match &protocol()["schemas"] {
        Value::Object(schemas) => {
            for value in schemas.values() {
                let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                declared.extend(all.iter().map(|label| label.as_str().expect("text").to_owned()));
            }
        }
        other => panic!("{other}"),
    }
    let mut asked = BTreeSet::new();
    let mut whose = BTreeMap::new();
    for arguments in ASKED {
        let (code, out, err) = folder.tmrun(arguments);
        assert_eq!(code, 0, "{arguments:?}: {err}");
        let mut found = BTreeSet::new();
        let document: Value = serde_json::from_str(&out).expect("JSON");
        schemas_in(&document, &mut found);
        let schema = document["schema"].as_str().expect("a schema of its own").to_owned();
        let first = *whose.entry(schema).or_insert(arguments[0]);
        assert_eq!(first, arguments[0], "a schema says which command wrote the document");
        assert!(found.is_subset(&declared), "{arguments:?}: {found:?} in {declared:?}");
        asked.insert(arguments[0].to_owned());
    }
    let commands: BTreeSet<_> = commands_of_help().into_iter().collect();
    assert_eq!(asked, commands, "every command is asked");

    for (name, bytes) in bundles::files(&folder.path("bundle")) {
        let Some(line) = name.contains(".json").then(|| String::from_utf8_lossy(&bytes)) else {
            continue;
        };
        let text = if name.ends_with("l") { line.lines().next().expect("a line") } else { &line };
        let mut found = BTreeSet::new();
        schemas_in(&serde_json::from_str(text).expect("JSON"), &mut found);
        assert!(!found.is_empty() && found.is_subset(&declared), "{name}: {found:?}");
    }
}
