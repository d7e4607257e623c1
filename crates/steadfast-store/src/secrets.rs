//! What people and agents wrote is stored without secrets: here for JSON, where rows are written for plain text.

use std::borrow::Cow;

use serde_json::Value;
use steadfast_model::goal::OBJECTIVE_MAX;
use steadfast_model::redact::redact;
use steadfast_model::text;

/// Tables and columns in which other programs and earlier versions wrote texts as they were.
pub(crate) const TEXTS: [(&str, &str); 3] =
    [("goals", "objective"), ("goal_history", "objective"), ("goal_events", "payload_json")];

/// Removes the secrets from every text in a value.
pub(crate) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text or a JSON value without its secrets; `None` if it has none.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_slice(text.as_bytes()) {
        let mut clean = value.clone();
        self::clean(&mut clean);
        return (clean != value).then(|| clean.to_string());
    }
    match redact(text) {
        Cow::Owned(clean) => Some(text::cut(&clean, OBJECTIVE_MAX)),
        Cow::Borrowed(_) => None,
    }
}
