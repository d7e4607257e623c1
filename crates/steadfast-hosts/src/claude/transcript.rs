//! Claude Code's session files: one JSON object a line. Only lines that can matter are parsed; the rest, most
//! of the bytes, is skipped by searching for a few words.

mod context;
mod counts;

pub(crate) use context::holds;
pub use counts::read_counts;

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{backwards, lines};
use steadfast_model::clock;
use steadfast_model::hook::acceptable_id;
use steadfast_model::reading::{InvalidField, NativeGoal, Position, Reading, Response, Tier, Tokens};
use steadfast_system::bounded;

pub fn read(path: &Path, from: &Position) -> std::io::Result<Reading> {
    let usage_key = memmem::Finder::new(br#""usage""#);
    let queue_key = memmem::Finder::new(br#""queue-operation""#);
    let goal_key = memmem::Finder::new(br#""goal_status""#);
    let result_key = memmem::Finder::new(br#""tool_result""#);
    let interrupt_key = memmem::Finder::new(b"[Request interrupted by user");
    lines::read_file(path, from, |line, offset, reading| {
        if usage_key.find(line).is_some() {
            assistant_line(line, offset, reading);
        } else if queue_key.find(line).is_some() || goal_key.find(line).is_some() || interrupt_key.find(line).is_some()
        {
            other_line(line, reading);
        } else if result_key.find(line).is_some() {
            result_line(line, reading);
        } else if line.first() != Some(&b'{') || !line.trim_ascii_end().ends_with(b"}") {
            reading.broken_lines += 1;
        }
    })
}

/// What became of the client's own goal, as the file says last, near its end.
pub fn last_goal(path: &Path) -> Option<NativeGoal> {
    let goal_key = memmem::Finder::new(br#""goal_status""#);
    let mut reading = Reading::default();
    let look = backwards::read(path, None, |line, _| {
        if goal_key.find(line).is_some() {
            other_line(line, &mut reading);
        }
        if reading.native_goal.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    look.ok().and(reading.native_goal)
}

/// The model of the newest response, near the end of the file.
pub fn last_model(path: &Path) -> Option<String> {
    let usage_key = memmem::Finder::new(br#""usage""#);
    let mut reading = Reading::default();
    let look = backwards::read(path, None, |line, _| {
        if usage_key.find(line).is_some() {
            assistant_line(line, 0, &mut reading);
        }
        if reading.responses.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    look.ok().and(reading.responses.pop()).map(|response| response.model)
}

/// The client writes some answers itself, for instance when a session is resumed.
pub fn is_model_output(line: &Value) -> bool {
    let message = &line["message"];
    line["type"] == "assistant" && message.is_object() && message["model"] != "<synthetic>"
}

/// The session whose lines this one's file began with, when the client copied them for a fork.
pub fn forked_from(path: &Path) -> Option<String> {
    const LINES_READ: usize = 20;
    // More than these lines of any file; one endless line is not read.
    const BYTES_READ: u64 = 4 * 1024 * 1024;
    let file = BufReader::new(bounded::open(path).ok()?.take(BYTES_READ));
    let lines = file.split(b'\n').take(LINES_READ).map_while(Result::ok);
    let mut parents = lines.filter_map(|line| {
        let line: Value = serde_json::from_slice(&line).ok()?;
        line.pointer("/forkedFrom/sessionId")?.as_str().filter(|id| acceptable_id(id)).map(str::to_owned)
    });
    parents.next()
}

#[derive(Deserialize)]
struct AssistantWire<'a> {
    r#type: Option<&'a str>,
    uuid: Option<String>,
    #[serde(rename = "requestId")]
    request_id: Option<String>,
    // A text with escapes cannot be borrowed, and its response must not be lost.
    timestamp: Option<String>,
    #[serde(rename = "attributionSkill")]
    skill: Option<String>,
    #[serde(rename = "attributionMcpServer")]
    mcp_server: Option<String>,
    #[serde(rename = "attributionAgent")]
    agent_type: Option<String>,
    #[serde(borrow)]
    message: Option<MessageWire<'a>>,
}

#[derive(Deserialize)]
struct MessageWire<'a> {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Value>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockWire<'a> {
    r#type: Option<&'a str>,
    text: Option<String>,
    id: Option<String>,
    tool_use_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

fn assistant_line(line: &[u8], offset: u64, reading: &mut Reading) {
    let Ok(wire) = serde_json::from_slice::<AssistantWire<'_>>(line) else {
        // Valid JSON of another shape is a line we do not know, not a broken one.
        if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
            reading.broken_lines += 1;
        }
        return;
    };
    if wire.r#type != Some("assistant") {
        return;
    }
    let Some(message) = wire.message else { return };
    if wire.uuid.is_some() {
        reading.last_uuid.clone_from(&wire.uuid);
    }
    // Plain text, as people's messages have, counts as no blocks.
    for block in blocks(message.content) {
        match block.r#type {
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                reading.tool_calls += 1;
                reading.call(
                    &block.id.unwrap_or_default(),
                    &block.name.unwrap_or_default(),
                    block.input.map_or("", RawValue::get),
                );
            }
            Some("text") => reading.last_text = block.text.or(reading.last_text.take()),
            _ => {}
        }
    }
    // The message's id is what all lines of a response share; the others are better than losing its tokens.
    let id = message.id.or(wire.request_id).or(wire.uuid);
    let (Some(id), Some(usage)) = (id, message.usage.filter(Value::is_object)) else {
        return;
    };
    let model = message.model.unwrap_or_default();
    // Synthetic messages (errors, interrupts) were never answered by a model.
    if model == "<synthetic>" {
        return;
    }
    match tokens(&usage) {
        Ok(tokens) => {
            let at_ms = wire.timestamp.as_deref().and_then(clock::parse_wall_rfc3339).unwrap_or_default();
            let word = |name: &str| (!usage[name].is_null()).then(|| usage[name].as_str().unwrap_or("not a word"));
            let tier = tier(word("speed"), word("service_tier"));
            let tool = wire.skill.or(wire.mcp_server).unwrap_or_default();
            let agent_type = wire.agent_type.unwrap_or_default();
            reading.add(Response { id, model, tier, tokens, tool, agent_type, at_ms });
        }
        Err(field) => {
            reading.invalid.get_or_insert(InvalidField { field, response_id: id, offset });
        }
    }
}

fn blocks(content: Option<&RawValue>) -> Vec<BlockWire<'_>> {
    content.and_then(|content| serde_json::from_slice(content.get().as_bytes()).ok()).unwrap_or_default()
}

/// The line on which tools answer.
fn result_line(line: &[u8], reading: &mut Reading) {
    let Ok(wire) = serde_json::from_slice::<AssistantWire<'_>>(line) else {
        return;
    };
    for block in blocks(wire.message.and_then(|message| message.content)) {
        if block.r#type == Some("tool_result") {
            reading.answer(&block.tool_use_id.unwrap_or_default(), block.content.map_or("", RawValue::get));
        }
    }
}

/// The tokens of a usage object; the name of the field that is malformed, if one is.
fn tokens(usage: &Value) -> Result<Tokens, &'static str> {
    Ok(Tokens {
        input: lines::token_count(usage, "input_tokens")?,
        output: lines::token_count(usage, "output_tokens")?,
        cache_creation: lines::token_count(usage, "cache_creation_input_tokens")?,
        cache_read: lines::token_count(usage, "cache_read_input_tokens")?,
        cache_creation_1h: lines::token_count(&usage["cache_creation"], "ephemeral_1h_input_tokens")?,
    })
}

/// The tier by which a response is priced. Fast mode is sold only beside the standard tier.
fn tier(speed: Option<&str>, service_tier: Option<&str>) -> Tier {
    let is_standard = |word: Option<&str>| matches!(word, None | Some("" | "standard"));
    match (speed, service_tier) {
        (speed, tier) if is_standard(speed) && is_standard(tier) => Tier::Standard,
        (Some("fast"), tier) if is_standard(tier) => Tier::Fast,
        (speed, Some("priority")) if is_standard(speed) => Tier::Priority,
        (speed, Some("batch")) if is_standard(speed) => Tier::Batch,
        _ => Tier::Unknown,
    }
}

fn other_line(line: &[u8], reading: &mut Reading) {
    let Ok(line) = serde_json::from_slice::<Value>(line) else {
        reading.broken_lines += 1;
        return;
    };
    match (line["type"].as_str(), line["operation"].as_str()) {
        (Some("queue-operation"), Some("enqueue")) => reading.queued += 1,
        (Some("queue-operation"), Some("dequeue" | "remove")) => reading.queued -= 1,
        (Some("queue-operation"), Some("popAll")) => {
            reading.queued = 0;
            reading.queue_emptied = true;
        }
        (Some("user"), _) => {
            let blocks = line["message"]["content"].as_array();
            let mut texts = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str());
            if texts.any(|text| text.starts_with("[Request interrupted by user")) {
                reading.interrupted_at = line["timestamp"].as_str().and_then(clock::parse_wall_rfc3339);
            }
        }
        (Some("attachment"), _) => {
            let attachment = &line["attachment"];
            if attachment["type"] == "goal_status" {
                reading.native_goal = Some(match (attachment["met"].as_bool(), attachment["condition"].as_str()) {
                    (Some(false), Some(condition)) => NativeGoal::Active(condition.to_owned()),
                    _ => NativeGoal::Over,
                });
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
