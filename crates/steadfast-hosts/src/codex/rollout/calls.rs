//! Tool calls and their results, for the breaker that notices equal ones.

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
