//! Tool calls and their results, for the breaker that notices equal ones and for the usage of MCP servers.

use memchr::memmem;
use serde_json::Value;

use super::wire::Head;
use steadfast_model::reading::Reading;

pub(super) fn note(line: &[u8], reading: &mut Reading) {
    let Some(head) = Head::of(line).filter(|head| head.kind == b"response_item") else {
        return;
    };
    let (is_call, is_result) = (head.inner.ends_with(b"_call"), head.inner.ends_with(b"_call_output"));
    if !is_call && !is_result {
        return;
    }
    let Ok(line) = serde_json::from_slice::<Value>(line) else {
        return;
    };
    let payload = &line["payload"];
    let id = payload["call_id"].as_str().unwrap_or_default();
    if is_call {
        let input = [&payload["arguments"], &payload["input"], &payload["action"]].map(Value::to_string).join(" ");
        reading.call(id, payload["name"].as_str().unwrap_or_default(), &input);
    } else {
        let output = payload["output"].as_str().map_or_else(|| payload["output"].to_string(), str::to_owned);
        // Before this, the client writes how long the command took and an id of its own.
        reading.answer(id, output.split_once("Output:\n").map_or(&*output, |(_, printed)| printed));
    }
}

/// The MCP server that a call is for: tools of servers are named `mcp__SERVER__TOOL`.
pub(super) fn mcp_server(line: &[u8]) -> Option<String> {
    memmem::find(line, b"\"mcp__")?;
    let line: Value = serde_json::from_slice(line).ok()?;
    ["namespace", "name"].iter().find_map(|field| {
        let name = line["payload"][field].as_str()?.strip_prefix("mcp__")?;
        let server = name.split_once("__").map_or(name, |(server, _)| server);
        (!server.is_empty()).then(|| server.to_owned())
    })
}
