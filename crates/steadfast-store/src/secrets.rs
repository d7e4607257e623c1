//! What people and agents wrote is stored without secrets: here for JSON, where rows are written for plain text.

use std::borrow::Cow;

use serde_json::Value;
use steadfast_model::redact::redact;

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
