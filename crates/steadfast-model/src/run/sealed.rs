//! Texts of a plan that contain secrets: the row of a run has them redacted, the private folder of the run has them whole.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::Plan;
use crate::redact::redact;

/// Fields that other rows and files repeat; a definition cannot put a prompt there.
const NAMES: [&str; 6] = ["name", "title", "kind", "lane", "loop_type", "pipeline_file"];

/// Whole texts by their place in the plan. A place whose text was changed has several.
pub type SealedTexts = BTreeMap<String, Vec<String>>;

/// Redacts the texts of a plan. Returns it as JSON with the places and the whole texts of those that had secrets.
pub fn seal(plan: &Plan) -> Result<(Value, SealedTexts), serde_json::Error> {
    let mut value = serde_json::to_value(plan)?;
    let mut texts = SealedTexts::new();
    walk(&mut value, "", &mut |place, text| {
        if let Cow::Owned(clean) = redact(text) {
            texts.entry(place.to_owned()).or_default().push(std::mem::replace(text, clean));
        }
    });
    Ok((value, texts))
}

/// Puts the whole texts back into a redacted plan; `None` if the text of a place is not known.
pub fn unseal(plan: &Plan, places: &[String], texts: &SealedTexts) -> Option<Plan> {
    let mut value = serde_json::to_value(plan).ok()?;
    for place in places {
        let found = value.pointer_mut(place)?;
        let shown = found.as_str()?;
        // Of several with the same redacted text, the last was written for the newest plan.
        let whole = texts.get(place)?.iter().rfind(|text| redact(text) == shown || *text == shown)?;
        *found = Value::String(whole.clone());
    }
    serde_json::from_value(value).ok()
}

/// Calls `each` with every text that is no name, and its place as a JSON pointer.
fn walk(value: &mut Value, place: &str, each: &mut impl FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => each(place, text),
        Value::Array(values) => {
            for (number, value) in values.iter_mut().enumerate() {
                walk(value, &format!("{place}/{number}"), each);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut().filter(|(name, _)| !NAMES.contains(&name.as_str())) {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(value, &format!("{place}/{name}"), each);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
