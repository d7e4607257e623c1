//! Whether a session's file holds a message that Claude Code will send again when the session is resumed or forked. By
//! experiment (2.1.197), the client sends what follows the last `compact_boundary`, along the chain of `parentUuid`:
//! prompts and what hooks said. It does not send `hook_success`, `queue-operation`, `last-prompt` or the `system` line of
//! a blocked prompt, all of which repeat the same words.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use serde_json::Value;

use crate::backwards;
use crate::context::Statement;
use crate::skim::Skim;

/// Whether the conversation that the file ends with states the goal. A part that the user went back from does not count.
pub(crate) fn holds(path: &Path, statement: &Statement) -> std::io::Result<bool> {
    let mut chain = Chain::default();
    backwards::read(path, None, |line, _| {
        let Some(link) = Link::of(line) else {
            return ControlFlow::Continue(());
        };
        if !link.is_boundary {
            chain.add(&link, statement.may_be_in(line) && message_states(line, statement));
        }
        if link.is_boundary || chain.states { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(chain.states)
}

/// What ties a line to the one before it in the conversation.
#[derive(Default)]
struct Link<'a> {
    uuid: &'a [u8],
    parent: Option<&'a [u8]>,
    is_boundary: bool,
}

impl<'a> Link<'a> {
    /// `None` for lines that are no part of a conversation, and for a subagent's.
    fn of(line: &'a [u8]) -> Option<Self> {
        let (mut uuid, mut parent, mut subtype, mut is_sidechain) = (None, None, None, false);
        Skim::new(line).object(|skim, key| match key {
            b"uuid" => skim.string_into(&mut uuid),
            b"parentUuid" => skim.string_into(&mut parent),
            b"subtype" if skim.is_at(b'"') => skim.string_into(&mut subtype),
            b"isSidechain" => skim.truth().map(|truth| is_sidechain = truth),
            _ => skim.skip(),
        })?;
        if is_sidechain {
            return None;
        }
        Some(Self { uuid: uuid?, parent, is_boundary: subtype == Some(b"compact_boundary") })
    }
}

/// The conversation from its last line back. What the user rewound is in the file too, but not in the chain.
#[derive(Default)]
struct Chain {
    /// The line that comes next, going back; `None` before the first and after the last.
    next: Option<Vec<u8>>,
    begun: bool,
    /// Lines that may be in the chain: some children stand before their parents.
    others: HashMap<Vec<u8>, (Option<Vec<u8>>, bool)>,
    states: bool,
}

impl Chain {
    fn add(&mut self, link: &Link<'_>, states: bool) {
        if !self.begun {
            self.begun = true;
            self.next = Some(link.uuid.to_vec());
        }
        self.others.insert(link.uuid.to_vec(), (link.parent.map(<[u8]>::to_vec), states));
        while let Some((parent, states)) = self.next.as_ref().and_then(|next| self.others.remove(next)) {
            self.states |= states;
            self.next = parent;
        }
    }
}

fn message_states(line: &[u8], statement: &Statement) -> bool {
    // What tools answered is most of a file and states nothing; the words of a short goal may be all over it.
    if memmem::find(line, br#""type":"tool_result""#).is_some() && memmem::find(line, br#""type":"text""#).is_none() {
        return false;
    }
    let Ok(line) = serde_json::from_slice::<Value>(line) else {
        return false;
    };
    // A summary is the model's own words, whatever it quotes.
    if line["isSidechain"] == true || line["isCompactSummary"] == true || line["isVisibleInTranscriptOnly"] == true {
        return false;
    }
    let content = match (line["type"].as_str(), line.pointer("/attachment/type").and_then(Value::as_str)) {
        (Some("user"), _) => &line["message"]["content"],
        (Some("attachment"), Some("hook_additional_context")) => &line["attachment"]["content"],
        _ => return false,
    };
    let said = |part: &Value| match part {
        Value::String(text) => statement.is_in(text),
        part => part["type"] == "text" && part["text"].as_str().is_some_and(|text| statement.is_in(text)),
    };
    match content {
        Value::Array(parts) => parts.iter().any(said),
        content => said(content),
    }
}

#[cfg(test)]
mod tests;
