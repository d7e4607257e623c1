//! Claude Code's `--output-format stream-json`: `system` at the start, the conversation, and one `result` at the end.

use serde_json::Value;

use crate::stream::{AgentStream, LONGEST_DETAIL, StreamError, field, text};
use steadfast_model::clock::Millis;
use steadfast_model::hook::acceptable_id;
use steadfast_model::price;
use steadfast_model::reading::Tokens;
use steadfast_model::run::AttemptUsage;
use steadfast_model::text::headline;

pub(super) fn read_event(event: &Value, stream: &mut AgentStream) {
    if let Some(id) = text(event, "session_id").filter(|id| acceptable_id(id)) {
        stream.session_id = Some(id.to_owned());
    }
    match text(event, "type") {
        // A subagent's words are not the agent's.
        Some("assistant") if event.get("parent_tool_use_id").is_none_or(Value::is_null) => message(event, stream),
        Some("rate_limit_event") => rate_limit(event, stream),
        Some("result") => result(event, stream),
        _ => {}
    }
}

fn message(event: &Value, stream: &mut AgentStream) {
    // The client speaks in the model's place when a request failed.
    if event.pointer("/message/model").and_then(Value::as_str) == Some("<synthetic>") {
        return;
    }
    let blocks = event.pointer("/message/content").and_then(Value::as_array);
    let texts: Vec<&str> = blocks.into_iter().flatten().filter_map(|block| text(block, "text")).collect();
    if !texts.is_empty() {
        stream.final_text = Some(texts.join("\n"));
    }
}

/// `{"rate_limit_info": {"status": "rejected", "resetsAt": 1763211600}}`; other states are news, not errors.
fn rate_limit(event: &Value, stream: &mut AgentStream) {
    let Some(info) = event.get("rate_limit_info") else { return };
    let error = stream.error.get_or_insert_default();
    if text(info, "status") == Some("rejected") {
        let seconds = info.get("resetsAt").and_then(Value::as_i64);
        let until: Option<Millis> = seconds.and_then(|seconds| seconds.checked_mul(1000));
        error.limit = Some(until);
    } else {
        error.limit = None;
    }
    if *error == StreamError::default() {
        stream.error = None;
    }
}

fn result(event: &Value, stream: &mut AgentStream) {
    stream.is_complete = true;
    let said = text(event, "result").filter(|said| !said.trim().is_empty());
    stream.structured = event.get("structured_output").filter(|value| !value.is_null()).map(Value::to_string);
    stream.usage = usage(event);
    if event.get("is_error").and_then(Value::as_bool) != Some(true) {
        // What was refused in between went through in the end.
        stream.error = None;
        if let Some(said) = said {
            stream.final_text = Some(said.to_owned());
        }
        return;
    }
    let errors = event.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let errors = errors.collect::<Vec<_>>().join("; ");
    let error = stream.error.get_or_insert_default();
    error.message = match said {
        Some(said) => said.to_owned(),
        None if errors.is_empty() => text(event, "subtype").unwrap_or("error").to_owned(),
        None => errors,
    };
    error.status = event.get("api_error_status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
}

/// By model, which counts subagents and side calls too; else the conversation's own.
fn usage(event: &Value) -> Option<AttemptUsage> {
    let tokens_of = |value: &Value, names: [&str; 4]| {
        let count = |name: &str| value.get(name).and_then(Value::as_i64).unwrap_or(0).max(0);
        let [input, output, cache_creation, cache_read] = names.map(count);
        Tokens { input, output, cache_creation, cache_creation_1h: 0, cache_read }
    };
    let mut tokens = Tokens::default();
    let models = event.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    if let Some(models) = models {
        for model in models.values() {
            let names = ["inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens"];
            tokens += tokens_of(model, names);
        }
    } else {
        let names = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        tokens = tokens_of(event.get("usage")?, names);
    }
    let dollars = event.get("total_cost_usd").and_then(Value::as_f64).filter(|usd| (0.0..1e9).contains(usd));
    let cost_micros = dollars.map_or(0, price::micros);
    Some(AttemptUsage { tokens, cost_micros, cost_unknown: dollars.is_none(), tokens_unknown: false })
}

pub(super) fn readable(event: &Value) -> Vec<String> {
    match field(event, "type") {
        "assistant" => {
            let blocks = event.pointer("/message/content").and_then(Value::as_array);
            blocks.into_iter().flatten().filter_map(readable_block).collect()
        }
        "result" if event.get("is_error").and_then(Value::as_bool) == Some(true) => {
            vec![format!("! {}", headline(field(event, "result"), LONGEST_DETAIL))]
        }
        _ => Vec::new(),
    }
}

fn readable_block(block: &Value) -> Option<String> {
    match field(block, "type") {
        "text" => Some(field(block, "text").trim().to_owned()).filter(|said| !said.is_empty()),
        "tool_use" => {
            let input = block.get("input").and_then(Value::as_object);
            // The first words of a call say most: a command, a path, a pattern.
            let detail = input.into_iter().flatten().find_map(|(_, value)| value.as_str()).unwrap_or_default();
            Some(format!("· {} {}", field(block, "name"), headline(detail, LONGEST_DETAIL)).trim_end().to_owned())
        }
        _ => None,
    }
}
