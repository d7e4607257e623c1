//! Trust in hooks, as a person gives it in the client's review dialog. Codex skips hooks without it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Events without a matcher; the client drops it.
const NO_MATCHER: [&str; 5] = ["user_prompt_submit", "stop", "interrupt", "pre_model_request", "post_model_request"];

/// The tables of `config.toml` that trust every command hook in `hooks` (`{EVENT: [{matcher?, hooks: [...]}]}`).
/// `source` names where they stand: the path of a `hooks.json` or `name@market:hooks/hooks.json` of a plugin.
pub(crate) fn tables(source: &str, hooks: &Value) -> String {
    let mut toml = String::new();
    for (event, groups) in hooks.as_object().expect("hooks by event") {
        let event = snake(event);
        for (group_at, group) in groups.as_array().into_iter().flatten().enumerate() {
            for (handler_at, handler) in group["hooks"].as_array().into_iter().flatten().enumerate() {
                let hash = hash(&event, &group["matcher"], handler);
                let key = json!(format!("{source}:{event}:{group_at}:{handler_at}"));
                let _ = writeln!(toml, "[hooks.state.{key}]\ntrusted_hash = \"sha256:{hash}\"\n");
            }
        }
    }
    toml
}

/// The client's hash over what a hook is, with the defaults it fills in.
fn hash(event: &str, matcher: &Value, handler: &Value) -> String {
    let mut normal = handler.clone();
    let quick = ["session_end", "interrupt"].contains(&event);
    let timeout = handler["timeout"].as_u64().unwrap_or(if quick { 1 } else { 600 });
    normal["timeout"] = json!(timeout.clamp(1, if quick { 3 } else { u64::MAX }));
    normal["async"] = json!(handler["async"] == true);
    normal.as_object_mut().expect("handler").remove("commandWindows");
    let mut identity = json!({"event_name": event, "hooks": [normal]});
    if !matcher.is_null() && !NO_MATCHER.contains(&event) {
        identity["matcher"] = matcher.clone();
    }
    let digest = Sha256::digest(sorted(&identity).to_string());
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            Value::Object(names.into_iter().map(|n| (n.clone(), sorted(&fields[n]))).collect::<Map<_, _>>())
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// `UserPromptSubmit` as `user_prompt_submit`.
fn snake(event: &str) -> String {
    event.chars().enumerate().fold(String::new(), |mut snake, (at, letter)| {
        if letter.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}
