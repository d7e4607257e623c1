//! When a used-up plan comes back, to the second. The rollout has the time that the service sent with its refusal;
//! the message for the user names only the minute.

use std::path::Path;

use serde_json::Value;

use steadfast_model::clock::{self, Millis};
use steadfast_system::bounded;

/// The refusal is among the last lines of a thread that it ended.
const TAIL_BYTES: u64 = 256 * 1024;
const USED_UP_PERCENT: f64 = 100.0;

/// The reset of the windows that a thread ended in, the last one if several are used up.
pub(super) fn reset_of(rollout: &Path) -> Option<Millis> {
    let tail = bounded::end_of(rollout, TAIL_BYTES).ok()?.bytes;
    tail.rsplit(|byte| *byte == b'\n').find_map(limits).as_ref().and_then(reset)
}

/// `{"type":"event_msg","payload":{"type":"token_count","rate_limits":{…}}}`
fn limits(line: &[u8]) -> Option<Value> {
    let mut event: Value = serde_json::from_slice(line).ok()?;
    let is_count = event["payload"]["type"] == "token_count";
    let limits = event.pointer_mut("/payload/rate_limits").map(Value::take)?;
    (is_count && limits.is_object()).then_some(limits)
}

fn reset(limits: &Value) -> Option<Millis> {
    let windows = [&limits["primary"], &limits["secondary"]].into_iter();
    let used_up = windows.filter(|window| window["used_percent"].as_f64().is_some_and(|used| used >= USED_UP_PERCENT));
    used_up.filter_map(|window| clock::from_epoch(window["resets_at"].as_i64()?)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_reset_is_that_of_the_windows_that_are_used_up() {
        let window =
            |used: f64, resets_at: i64| json!({"used_percent": used, "window_minutes": 300, "resets_at": resets_at});
        let count = |limits: Value| {
            json!({"timestamp": "2026-11-15T18:00:34.777Z", "ordinal": 9, "type": "event_msg",
                "payload": {"type": "token_count", "info": null, "rate_limits": limits}})
        };
        let end = json!({"type": "event_msg", "payload": {"type": "task_complete", "last_agent_message": null}});
        let (now, week) = (1_794_765_638, 1_795_265_638);
        let table = [
            (count(json!({"primary": window(100.0, now), "secondary": window(40.0, week)})), Some(now)),
            (count(json!({"primary": window(100.0, now), "secondary": window(101.0, week)})), Some(week)),
            (count(json!({"primary": window(99.5, now), "secondary": null})), None),
            (count(json!({"primary": null, "secondary": null})), None),
            (count(json!({"primary": {"used_percent": 100.0, "resets_at": "soon"}})), None),
            (count(Value::Null), None),
        ];
        for (event, expected) in table {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs_err::write(file.path(), format!("not JSON\n{event}\n{end}\n")).unwrap();
            assert_eq!(reset_of(file.path()), expected.map(|seconds| seconds * 1000), "{event}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let (old, new) = (count(json!({"primary": window(100.0, now)})), count(json!({"primary": window(3.0, week)})));
        fs_err::write(file.path(), format!("{old}\n{}\n{new}\n", "x".repeat(300 * 1024))).unwrap();
        assert_eq!(reset_of(file.path()), None, "what was used up once is not used up now");
        assert_eq!(reset_of(Path::new("/nowhere")), None);
    }
}
