//! The windows of the user's plan, as the service reports them with every count of tokens.

use serde_json::Value;

use steadfast_model::clock::Millis;
use steadfast_model::quota::{Quota, Window};

/// `{"primary": {"used_percent": 83.0, "window_minutes": 300, "resets_at": 1794765638}, "secondary": …}`
pub(super) fn read(limits: &Value, seen_at_ms: Millis) -> Vec<Quota> {
    let windows = [(&limits["primary"], Window::FiveHour), (&limits["secondary"], Window::Weekly)];
    windows.into_iter().filter_map(|(window, default)| one(window, default, seen_at_ms)).collect()
}

fn one(window: &Value, default: Window, seen_at_ms: Millis) -> Option<Quota> {
    let used = window["used_percent"].as_f64()?;
    let at = window["resets_at"].as_i64().and_then(|seconds| seconds.checked_mul(1_000));
    let after = || window["resets_in_seconds"].as_i64()?.checked_mul(1_000)?.checked_add(seen_at_ms);
    let name = window["window_minutes"].as_i64().map_or(default, Window::of_minutes);
    Quota::read(name, used, at.or_else(after), seen_at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn windows_are_read_as_newer_and_older_clients_write_them() {
        let seen = 1_794_765_000_000;
        let newer = json!({
            "limit_id": "codex", "credits": null,
            "primary": {"used_percent": 83.6, "window_minutes": 300, "resets_at": 1_794_765_638},
            "secondary": {"used_percent": 12.0, "window_minutes": 10_080, "resets_at": 1_795_265_638},
        });
        let quota = |window, used_percent, resets_at_ms| Quota { window, used_percent, resets_at_ms, seen_at_ms: seen };
        let short = quota(Window::FiveHour, 83, Some(1_794_765_638_000));
        assert_eq!(read(&newer, seen), [short, quota(Window::Weekly, 12, Some(1_795_265_638_000))]);
        let older = json!({"primary": {"used_percent": 5.0, "resets_in_seconds": 60}, "secondary": null});
        assert_eq!(read(&older, seen), [quota(Window::FiveHour, 5, Some(seen + 60_000))]);
        // Some plans have only the long window, and it comes first.
        let long = json!({"primary": {"used_percent": 40, "window_minutes": 10_080}, "secondary": null});
        assert_eq!(read(&long, seen), [quota(Window::Weekly, 40, None)]);
        for nothing in [json!(null), json!({"primary": null}), json!({"primary": {"used_percent": "many"}}), json!(7)] {
            assert_eq!(read(&nothing, seen), [], "{nothing}");
        }
    }
}
