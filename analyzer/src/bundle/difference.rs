//! Where two JSON documents differ.

use serde::Serialize;
use serde_json::Value;

/// A value that is not what was derived anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The file.
    pub file: &'static str,
    /// Its line, counted from 1, where it has lines that are documents or text.
    pub line: Option<u64>,
    /// Where in the document, as a JSON pointer.
    pub at: String,
    /// What was derived; `None` where it has nothing.
    pub derived: Option<String>,
    /// What is published.
    pub published: Option<String>,
}

/// No more of a value is shown.
const LONGEST: usize = 200;

/// A value in short.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Is told of a place, what was derived, and what is published.
type Tell<'t> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 't;

/// A document against another, from one place of theirs on.
pub(super) struct Compare<'t> {
    at: String,
    /// Whether what is at a place does not count.
    skip: fn(&str) -> bool,
    /// Is told of every place, what was derived, and what is published.
    tell: &'t mut Tell<'t>,
}

impl<'t> Compare<'t> {
    pub(super) fn new(skip: fn(&str) -> bool, tell: &'t mut Tell<'t>) -> Self {
        Self { at: String::new(), skip, tell }
    }

    /// Compares values. (What serde_json reads is not nested deeply.)
    pub(super) fn values(&mut self, derived: &Value, published: &Value) {
        match (derived, published) {
            (Value::Object(derived), Value::Object(published)) => {
                for (key, value) in derived {
                    self.pair(key, Some(value), published.get(key));
                }
                for (key, value) in published.iter().filter(|(key, _)| !derived.contains_key(*key))
                {
                    self.pair(key, None, Some(value));
                }
            }
            (Value::Array(derived), Value::Array(published)) => {
                for at in 0..derived.len().max(published.len()) {
                    self.pair(&at.to_string(), derived.get(at), published.get(at));
                }
            }
            _ if derived == published => {}
            _ => self.differ(Some(derived), Some(published)),
        }
    }

    fn pair(&mut self, key: &str, derived: Option<&Value>, published: Option<&Value>) {
        let len = self.at.len();
        self.at.push('/');
        self.at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        match (derived, published) {
            (Some(derived), Some(published)) => self.values(derived, published),
            _ => self.differ(derived, published),
        }
        self.at.truncate(len);
    }

    fn differ(&mut self, derived: Option<&Value>, published: Option<&Value>) {
        if !(self.skip)(&self.at) {
            (self.tell)(&self.at, derived, published);
        }
    }
}

/// Nothing is skipped.
pub(super) fn nothing(_: &str) -> bool {
    false
}

/// The parts of evidence that are words for people: every program has its own.
pub(super) fn is_prose(at: &str) -> bool {
    let parts: Vec<&str> = at.split('/').skip(1).collect();
    matches!(
        parts[..],
        ["gaps", ..]
            | ["health", "issues", _, "message"]
            | ["capabilities", _, "reason"]
            | ["findings", _, "summary"]
            | ["facts", _, "label"]
            | ["activations", "definition"]
            | ["activations", _, "reason"]
            | ["gpu", "reason"]
            | ["gpu", "diagnostics", ..]
            | ["gpu", "provenance", "diagnostics", ..]
            | ["gpu", "correlation", "reason"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(derived: &Value, published: &Value, skip: fn(&str) -> bool) -> Vec<String> {
        let mut places = Vec::new();
        Compare::new(skip, &mut |at, _, _| places.push(at.to_owned())).values(derived, published);
        places
    }

    #[test]
    fn every_place_that_differs_is_told_once() {
        let one = json!({"a": [1, 2, {"b/c": 1}], "d": 1, "e": null, "f": 1});
        let other = json!({"a": [1, 3, {"b/c": 1.0}, 4], "d": 1, "f": 1, "g": 2});
        let found = places(&one, &other, nothing);
        assert_eq!(found, ["/a/1", "/a/2/b~1c", "/a/3", "/e", "/g"]);
        assert_eq!(places(&one, &one, nothing), Vec::<String>::new());
    }

    #[test]
    fn words_for_people_are_no_difference_and_what_they_are_of_is() {
        let of = |reason, level| json!({"capabilities": {"x": {"reason": reason, "level": level}}});
        assert_eq!(places(&of("a", "b"), &of("c", "b"), is_prose), Vec::<String>::new());
        assert_eq!(places(&of("a", "b"), &of("c", "d"), is_prose), ["/capabilities/x/level"]);
    }
}
