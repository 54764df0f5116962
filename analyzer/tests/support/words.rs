//! What is said in words, which are our own.

use serde_json::{Value, json};

/// Takes away why something is not there, which is said in words.
pub fn without_reasons(mut value: Value) -> Value {
    match &mut value {
        Value::Array(all) => all.iter_mut().for_each(|one| *one = without_reasons(one.take())),
        Value::Object(fields) => {
            for (key, value) in fields {
                let reasons = ["reason", "edges_reason", "correlation_reason", "definition"];
                let is_reason = reasons.contains(&&**key) && value.is_string();
                *value = if is_reason { json!("") } else { without_reasons(value.take()) };
            }
        }
        _ => {}
    }
    value
}
