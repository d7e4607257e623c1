//! The short way through a session file, for counting tokens. It reads well-formed responses without decoding their
//! text and leaves every line it is not sure about to the parser the hooks use, so that both count alike.

use std::path::Path;

use memchr::memmem;
use serde_json::Value;

use super::{assistant_line, tier};
use crate::lines;
use crate::skim::{Skim, plain};
use steadfast_model::clock;
use steadfast_model::reading::{Position, Reading, Response, Tokens};
use steadfast_system::bounded;

/// Reads the responses that are new in a session file, and the directory it belongs to.
pub fn read_counts(path: &Path, from: &Position) -> std::io::Result<Reading> {
    let usage_key = memmem::Finder::new(br#""usage""#);
    let mut reading = lines::read_blocks(path, from, |block, offset, reading| {
        // Most lines have no usage and are never looked at, not even for their ends.
        let mut done = 0;
        while let Some(found) = block.get(done..).and_then(|rest| usage_key.find(rest)) {
            let at = done + found;
            let (before, after) = (block.get(done..at).unwrap_or_default(), block.get(at..).unwrap_or_default());
            let start = memchr::memrchr(b'\n', before).map_or(done, |newline| done + newline + 1);
            let end = memchr::memchr(b'\n', after).map_or(block.len(), |newline| at + newline + 1);
            let line = block.get(start..end).unwrap_or_default();
            if response(line, reading).is_none() {
                assistant_line(line, offset + start as u64, reading);
            }
            done = end;
        }
    })?;
    reading.agent_type = if from.offset == 0 { agent_type(path) } else { None };
    Ok(reading)
}

/// The type of a subagent, which the client writes beside its file.
fn agent_type(path: &Path) -> Option<String> {
    const MOST_BYTES: u64 = 64 * 1024;
    let name = path.file_stem()?.to_str().filter(|name| name.starts_with("agent-"))?;
    let about = bounded::whole(&path.with_file_name(format!("{name}.meta.json")), MOST_BYTES).ok()?;
    let about: Value = serde_json::from_slice(&about).ok()?;
    about["agentType"].as_str().map(str::to_owned)
}

/// The fields of a line that matter here.
#[derive(Default)]
struct TranscriptLine<'a> {
    kind: Option<&'a [u8]>,
    uuid: Option<&'a [u8]>,
    request_id: Option<&'a [u8]>,
    timestamp: Option<&'a [u8]>,
    cwd: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    model: Option<&'a [u8]>,
    tokens: Option<Tokens>,
    speed: Option<&'a [u8]>,
    service_tier: Option<&'a [u8]>,
    skill: Option<&'a [u8]>,
    mcp_server: Option<&'a [u8]>,
    agent_type: Option<&'a [u8]>,
}

/// Adds the response of a line, if it has one. `None`: the line needs a full parser.
fn response(line: &[u8], reading: &mut Reading) -> Option<()> {
    let mut fields = TranscriptLine::default();
    let mut skim = Skim::new(line);
    skim.object(|skim, key| {
        match key {
            b"type" => skim.string_into(&mut fields.kind)?,
            b"uuid" => skim.string_into(&mut fields.uuid)?,
            b"requestId" => skim.string_into(&mut fields.request_id)?,
            b"timestamp" => skim.string_into(&mut fields.timestamp)?,
            b"attributionSkill" => skim.string_into(&mut fields.skill)?,
            b"attributionMcpServer" => skim.string_into(&mut fields.mcp_server)?,
            b"attributionAgent" => skim.string_into(&mut fields.agent_type)?,
            b"cwd" if skim.is_at(b'"') => fields.cwd = Some(skim.string()?),
            b"message" => message(skim, &mut fields)?,
            _ => skim.skip()?,
        }
        Some(())
    })?;
    if !skim.at_end() {
        return None;
    }
    if reading.cwd.is_none() {
        // A path may well have escapes: quotes, backslashes, other scripts.
        reading.cwd = fields.cwd.and_then(|raw| serde_json::from_slice(&[b"\"", raw, b"\""].concat()).ok());
    }
    if fields.kind != Some(b"assistant") || fields.model == Some(b"<synthetic>") {
        return Some(());
    }
    let id = fields.id.or(fields.request_id).or(fields.uuid);
    let (Some(id), Some(tokens)) = (id, fields.tokens) else {
        return Some(());
    };
    let (id, model) = (plain(id)?, plain(fields.model.unwrap_or_default())?);
    let tier = tier(plain_or_none(fields.speed)?, plain_or_none(fields.service_tier)?);
    let tool = plain_or_none(fields.skill.or(fields.mcp_server))?;
    let agent_type = plain_or_none(fields.agent_type)?;
    reading.add_counts(id, tokens.output, || Response {
        id: id.to_owned(),
        model: model.to_owned(),
        tier,
        tokens,
        tool: tool.unwrap_or_default().to_owned(),
        agent_type: agent_type.unwrap_or_default().to_owned(),
        at_ms: fields.timestamp.and_then(plain).and_then(clock::parse_wall_rfc3339).unwrap_or_default(),
    });
    Some(())
}

/// `None`: the text has escapes.
#[expect(clippy::option_option, reason = "no text and a text that needs the full parser differ")]
fn plain_or_none(raw: Option<&[u8]>) -> Option<Option<&str>> {
    raw.map_or(Some(None), |raw| plain(raw).map(Some))
}

fn message<'a>(skim: &mut Skim<'a>, fields: &mut TranscriptLine<'a>) -> Option<()> {
    skim.object(|skim, key| {
        match key {
            b"id" => skim.string_into(&mut fields.id)?,
            b"model" => skim.string_into(&mut fields.model)?,
            b"usage" if skim.is_at(b'{') => fields.tokens = Some(usage(skim, fields)?),
            b"usage" => return None,
            _ => skim.skip()?,
        }
        Some(())
    })
}

fn usage<'a>(skim: &mut Skim<'a>, fields: &mut TranscriptLine<'a>) -> Option<Tokens> {
    let mut tokens = Tokens::default();
    skim.object(|skim, key| {
        match key {
            b"input_tokens" => tokens.input = skim.count()?,
            b"output_tokens" => tokens.output = skim.count()?,
            b"cache_creation_input_tokens" => tokens.cache_creation = skim.count()?,
            b"cache_read_input_tokens" => tokens.cache_read = skim.count()?,
            b"speed" => skim.string_into(&mut fields.speed)?,
            b"service_tier" => skim.string_into(&mut fields.service_tier)?,
            b"cache_creation" if skim.is_at(b'{') => skim.object(|skim, key| match key {
                b"ephemeral_1h_input_tokens" => {
                    tokens.cache_creation_1h = skim.count()?;
                    Some(())
                }
                _ => skim.skip(),
            })?,
            _ => skim.skip()?,
        }
        Some(())
    })?;
    Some(tokens)
}
