//! What clients say to hooks, tools and status lines.

use serde_json::Value;
use steadfast_hosts::{HostAdapter, ToolCallOrigin, adapter, adapters};
use steadfast_memory::extract;
use steadfast_model::hook::{HookReply, acceptable_id};
use steadfast_model::host::Host;

pub(crate) fn claude(data: &[u8]) {
    read_and_reply(adapter(Host::Claude), data);
}

pub(crate) fn codex(data: &[u8]) {
    read_and_reply(adapter(Host::Codex), data);
}

fn read_and_reply(adapter: &HostAdapter, data: &[u8]) {
    let Ok(Some(input)) = (adapter.read_hook)(data) else { return };
    assert_eq!(input.host, adapter.host);
    assert!(acceptable_id(&input.session_id), "{:?}", input.session_id);
    let again = (adapter.read_hook)(data).ok().flatten();
    assert_eq!(again.as_ref(), Some(&input), "two readings of one input differ");
    extract::findings(&input.observations);
    let words = Some(String::from_utf8_lossy(data).into_owned());
    let full = HookReply {
        block: words.clone(),
        context: words.clone(),
        message: words.clone(),
        allow_tool: true,
        refuse_tool: words,
        ..HookReply::default()
    };
    for reply in [&full, &HookReply { block: None, refuse_tool: None, ..full.clone() }, &HookReply::default()] {
        assert_reply(adapter, &input.event_name, reply);
    }
}

/// A reply is one line with a JSON object, or nothing.
pub(crate) fn assert_reply(adapter: &HostAdapter, event_name: &str, reply: &HookReply) {
    let Some(text) = (adapter.write_reply)(event_name, reply) else { return };
    assert!(!text.contains('\n'), "{text}");
    let value: Value = serde_json::from_str(&text).expect("a reply is JSON");
    assert!(value.is_object(), "{text}");
}

/// The metadata of a tool call.
pub(crate) fn tool_call(data: &[u8]) {
    let Ok(Value::Object(meta)) = serde_json::from_slice(data) else { return };
    for adapter in adapters() {
        let ids = match (adapter.tool_call_origin)(&meta) {
            Some(ToolCallOrigin::Session { session_id, agent }) => {
                let agent = agent.map(|agent| [agent.agent_id, agent.tool_use_id]);
                agent.into_iter().flatten().chain([session_id]).collect()
            }
            Some(ToolCallOrigin::ToolUse(id)) => vec![id],
            None => Vec::new(),
        };
        assert!(ids.iter().all(|id| !id.is_empty()), "{ids:?}");
    }
}

/// What the client says about the user's plan.
pub(crate) fn statusline(data: &[u8]) {
    const NOW: i64 = 1_800_000_000_000;
    let Ok(input) = serde_json::from_slice::<Value>(data) else { return };
    for adapter in adapters() {
        for quota in (adapter.statusline_quotas)(&input, NOW) {
            assert!((0..=1_000).contains(&quota.used_percent), "{quota:?}");
        }
        if let Some(percent) = (adapter.statusline_context)(&input) {
            assert!((0..=1_000).contains(&percent), "{percent}");
        }
    }
}
