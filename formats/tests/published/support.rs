//! What these tests share: traces, bundles of the real neighbour, and the two comparisons.

use candle_graph_v10 as theirs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every trace that the neighbour makes evidence of, by name.
pub fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/trace");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("traces").map(|entry| entry.expect("entry").path()).collect();
    paths.retain(|path| theirs::build_evidence(path, None).is_ok());
    paths.sort();
    assert!(paths.len() > 30, "the neighbour takes {} traces", paths.len());
    paths
}

pub fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/trace").join(name)
}

/// A bundle of the neighbour, of a trace whose text was edited.
pub fn publish(at: &Path, trace: &Path, edit: impl Fn(&str) -> String) {
    let edited = at.with_extension("jsonl");
    fs::write(&edited, edit(&fs::read_to_string(trace).expect("trace"))).expect("written");
    theirs::publish_bundle(at, &edited, None).expect("published");
}

/// What is read is written again byte for byte: keys, their order, what is omitted and what is null.
pub fn assert_same_text<Ours: DeserializeOwned + Serialize>(text: &str, what: &str) {
    let ours: Ours = serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}"));
    let again = serde_json::to_string_pretty(&ours).expect("written");
    assert_eq!(again, text.trim_end(), "{what}");
}

/// Every key deleted and every value replaced, one at a time: both types accept or both refuse, and
/// what both accept is the same. `labels` says where the label is looked at here alone.
pub fn assert_same_verdicts<Ours, Theirs>(text: &str, labels: &[(&str, &str)])
where
    Ours: DeserializeOwned + Serialize,
    Theirs: DeserializeOwned + Serialize,
{
    let whole: Value = serde_json::from_str(text).expect("JSON");
    let (mut accepted, mut refused) = (0, 0);
    let mut compare = |text: &str, what: &str| {
        let right = serde_json::from_str::<Value>(text).is_ok_and(|value| {
            labels
                .iter()
                .all(|&(at, label)| value.pointer(at).and_then(Value::as_str) == Some(label))
        });
        let ours = serde_json::from_str::<Ours>(text);
        match serde_json::from_str::<Theirs>(text) {
            Ok(theirs) if right => {
                let ours = ours.unwrap_or_else(|error| panic!("{what}: accepted by them: {error}"));
                assert_eq!(
                    without_defaults(serde_json::to_value(ours).expect("value")),
                    without_defaults(serde_json::to_value(theirs).expect("value")),
                    "{what}"
                );
                accepted += 1;
            }
            Ok(_) => assert!(ours.is_err(), "{what}: accepted with another label"),
            Err(error) => {
                assert!(ours.is_err(), "{what}: refused by them: {error}");
                refused += 1;
            }
        }
    };
    compare(text, "as it is");
    each_change(&whole, &mut |changed, what| compare(&changed.to_string(), what));
    each_duplicate(text, &mut compare);
    assert!(accepted > 1 && refused > 1, "{accepted} accepted, {refused} refused");
}

/// Why a capability that is not there is not there: a sentence of whoever reads it.
fn without_defaults(mut value: Value) -> Value {
    if let Some(capabilities) = value.get_mut("capabilities").and_then(Value::as_object_mut) {
        for capability in capabilities.values_mut().filter_map(Value::as_object_mut) {
            let absent = capability.get("level") == Some(&json!("unavailable"))
                && capability.get("source") == Some(&json!("none"));
            if absent {
                capability.remove("reason");
            }
        }
    }
    value
}

/// Every change of one place. Of an array one element of each form stands for all.
fn each_change(whole: &Value, each: &mut impl FnMut(&Value, &str)) {
    let mut places = Vec::new();
    collect(whole, String::new(), &mut places);
    for place in places {
        let (parent, key) = place.rsplit_once('/').expect("below the root");
        let mut deleted = whole.clone();
        match deleted.pointer_mut(parent) {
            Some(Value::Object(map)) => drop(map.remove(&unescape(key))),
            Some(Value::Array(array)) => drop(array.remove(key.parse().expect("index"))),
            _ => unreachable!("{place} has a parent"),
        }
        each(&deleted, &format!("{place} deleted"));
        for value in replacements() {
            let mut replaced = whole.clone();
            let what = format!("{place} = {value}");
            *replaced.pointer_mut(&place).expect("a place") = value;
            each(&replaced, &what);
        }
    }
}

fn replacements() -> [Value; 12] {
    [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(2.0),
        json!(u64::MAX),
        json!("word"),
        json!("17"),
        json!([]),
        json!(["none"]),
        json!({"none": null}),
    ]
}

fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (escape(key), value)).collect(),
        Value::Array(array) => {
            let mut forms = HashSet::new();
            let indexed = array.iter().enumerate();
            let first = indexed.filter(|(_, element)| forms.insert(form(element)));
            first.map(|(index, element)| (index.to_string(), element)).collect()
        }
        _ => Vec::new(),
    };
    for (key, child) in children {
        let place = format!("{at}/{key}");
        places.push(place.clone());
        collect(child, place, places);
    }
}

/// What elements of one array differ in, apart from their values.
fn form(element: &Value) -> String {
    let keys = element.as_object().map(|map| map.keys().collect::<Vec<_>>());
    format!("{keys:?} {:?}", element.get("kind"))
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescape(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

/// Every line of one key and a value given twice, and one with a key that nobody knows.
fn each_duplicate(text: &str, each: &mut impl FnMut(&str, &str)) {
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if !line.contains("\": ") || !line.ends_with(',') {
            continue;
        }
        for added in [line.to_owned(), "\"of_a_later_version\": [{}],"] {
            let mut changed = lines.clone();
            changed.insert(index, added);
            each(&changed.join("\n"), &format!("{added} before line {index}"));
        }
    }
}
