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

use crate::{backwards, lines};
use steadfast_model::clock;
use steadfast_model::hook::acceptable_id;
use steadfast_model::reading::{InvalidField, NativeGoal, Position, Reading, Response, Tokens};

/// Reads what is new in a session file.
pub fn read(path: &Path, from: &Position) -> std::io::Result<Reading> {
    let usage_key = memmem::Finder::new(br#""usage""#);
    let queue_key = memmem::Finder::new(br#""queue-operation""#);
    let goal_key = memmem::Finder::new(br#""goal_status""#);
    let interrupt_key = memmem::Finder::new(b"[Request interrupted by user");
    lines::read_file(path, from, |line, offset, reading| {
        if usage_key.find(line).is_some() {
            assistant_line(line, offset, reading);
        } else if queue_key.find(line).is_some() || goal_key.find(line).is_some() || interrupt_key.find(line).is_some()
        {
            other_line(line, reading);
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

/// Whether a line is an answer of the model. The client writes some answers itself, for instance when a session is
/// resumed.
pub fn is_model_output(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct LineWire<'a> {
        r#type: Option<&'a str>,
        #[serde(borrow)]
        message: Option<ModelWire<'a>>,
    }
    #[derive(Deserialize)]
    struct ModelWire<'a> {
        model: Option<&'a str>,
    }
    let line = serde_json::from_slice::<LineWire<'_>>(line);
    line.is_ok_and(|line| {
        line.r#type == Some("assistant") && line.message.is_some_and(|message| message.model != Some("<synthetic>"))
    })
}

/// The session whose lines this one's file began with, when the client copied them for a fork.
pub fn forked_from(path: &Path) -> Option<String> {
    const LINES_READ: usize = 20;
    let file = BufReader::new(fs_err::File::open(path).ok()?.take(BYTES_READ));
    let lines = file.split(b'\n').take(LINES_READ).map_while(Result::ok);
    let mut parents = lines.filter_map(|line| {
        let line: Value = serde_json::from_slice(&line).ok()?;
        line.pointer("/forkedFrom/sessionId")?.as_str().filter(|id| acceptable_id(id)).map(str::to_owned)
    });
    parents.next()
}

/// More than the first lines of any file; one endless line is not read.
const BYTES_READ: u64 = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct AssistantWire<'a> {
    r#type: Option<&'a str>,
    uuid: Option<String>,
    #[serde(rename = "requestId")]
    request_id: Option<String>,
    timestamp: Option<&'a str>,
    #[serde(borrow)]
    message: Option<MessageWire<'a>>,
}

#[derive(Deserialize)]
struct MessageWire<'a> {
    id: Option<String>,
    model: Option<&'a str>,
    usage: Option<UsageWire>,
    #[serde(default)]
    content: ContentWire,
}

/// Token fields as sent, to distinguish malformed ones from absent ones.
#[derive(Deserialize)]
struct UsageWire {
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
    cache_creation_input_tokens: Option<Value>,
    cache_read_input_tokens: Option<Value>,
    cache_creation: Option<Value>,
}

/// The blocks of a message. Plain text, as people's messages have, counts as no blocks.
#[derive(Default)]
struct ContentWire(Vec<BlockWire>);

impl<'de> Deserialize<'de> for ContentWire {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> serde::de::Visitor<'de> for Blocks {
            type Value = ContentWire;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("text or a list of blocks")
            }

            fn visit_str<E>(self, _: &str) -> Result<ContentWire, E> {
                Ok(ContentWire::default())
            }

            fn visit_unit<E>(self) -> Result<ContentWire, E> {
                Ok(ContentWire::default())
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<ContentWire, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = list.next_element()? {
                    blocks.push(block);
                }
                Ok(ContentWire(blocks))
            }
        }
        deserializer.deserialize_any(Blocks)
    }
}

#[derive(Deserialize)]
struct BlockWire {
    r#type: Option<String>,
    text: Option<String>,
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
    for block in message.content.0 {
        match block.r#type.as_deref() {
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => reading.tool_calls += 1,
            Some("text") => reading.last_text = block.text.or(reading.last_text.take()),
            _ => {}
        }
    }
    // The message's id is what all lines of a response share; the others are better than losing its tokens.
    let id = message.id.or(wire.request_id).or(wire.uuid);
    let (Some(id), Some(usage)) = (id, message.usage) else {
        return;
    };
    let model = message.model.unwrap_or_default();
    // Synthetic messages (errors, interrupts) were never answered by a model.
    if model == "<synthetic>" {
        return;
    }
    let hour = usage.cache_creation.as_ref().and_then(|split| split.get("ephemeral_1h_input_tokens")).cloned();
    let fields = [
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("cache_creation_input_tokens", usage.cache_creation_input_tokens),
        ("cache_read_input_tokens", usage.cache_read_input_tokens),
        ("ephemeral_1h_input_tokens", hour),
    ];
    let mut counts = [0_i64; 5];
    for (count, (field, value)) in counts.iter_mut().zip(fields) {
        let Some(number) = whole_number(value.as_ref()) else {
            let invalid = InvalidField { field, response_id: id, offset };
            reading.invalid.get_or_insert(invalid);
            return;
        };
        *count = number;
    }
    let [input, output, cache_creation, cache_read, cache_creation_1h] = counts;
    let at_ms = wire.timestamp.and_then(clock::parse_rfc3339).unwrap_or_default();
    let tokens = Tokens { input, output, cache_creation, cache_creation_1h, cache_read };
    reading.add(Response { id, model: model.to_owned(), tokens, at_ms });
}

/// Absent and null count as zero; anything but a whole number that a counter can hold is malformed.
fn whole_number(value: Option<&Value>) -> Option<i64> {
    const MOST: i64 = 1 << 53;
    match value {
        None | Some(Value::Null) => Some(0),
        Some(value) => value.as_i64().filter(|number| (0..=MOST).contains(number)),
    }
}

#[derive(Deserialize)]
struct OtherWire<'a> {
    r#type: Option<&'a str>,
    operation: Option<&'a str>,
    timestamp: Option<&'a str>,
    attachment: Option<AttachmentWire>,
    message: Option<UserMessageWire>,
}

#[derive(Deserialize)]
struct AttachmentWire {
    r#type: Option<String>,
    met: Option<bool>,
    condition: Option<String>,
}

#[derive(Deserialize)]
struct UserMessageWire {
    #[serde(default)]
    content: ContentWire,
}

fn other_line(line: &[u8], reading: &mut Reading) {
    let Ok(wire) = serde_json::from_slice::<OtherWire<'_>>(line) else {
        if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
            reading.broken_lines += 1;
        }
        return;
    };
    match (wire.r#type, wire.operation) {
        (Some("queue-operation"), Some("enqueue")) => reading.queued += 1,
        (Some("queue-operation"), Some("dequeue" | "remove")) => reading.queued -= 1,
        (Some("queue-operation"), Some("popAll")) => {
            reading.queued = 0;
            reading.queue_emptied = true;
        }
        (Some("user"), _) => {
            let marks_interrupt = |text: &String| text.starts_with("[Request interrupted by user");
            let blocks = wire.message.map(|message| message.content.0).unwrap_or_default();
            let interrupted = blocks.iter().any(|block| block.text.as_ref().is_some_and(marks_interrupt));
            if interrupted {
                reading.interrupted_at = wire.timestamp.and_then(clock::parse_rfc3339);
            }
        }
        (Some("attachment"), _) => {
            let Some(attachment) = wire.attachment else { return };
            if attachment.r#type.as_deref() == Some("goal_status") {
                reading.native_goal = Some(match (attachment.met, attachment.condition) {
                    (Some(false), Some(condition)) => NativeGoal::Active(condition),
                    _ => NativeGoal::Over,
                });
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
