//! The windows of the user's plan and the use of the context, which the client gives to status lines.

use serde_json::Value;

use steadfast_model::clock::{self, Millis};
use steadfast_model::quota::{Quota, Window};

/// `{"rate_limits": {"five_hour": {"used_percentage": 83.5, "resets_at": 1794765638}, "seven_day": …}}`; absent
/// without a subscription, and before the first answer of the model.
pub(super) fn of_statusline(input: &Value, now: Millis) -> Vec<Quota> {
    let limits = &input["rate_limits"];
    let windows = [(&limits["five_hour"], Window::FiveHour), (&limits["seven_day"], Window::Weekly)];
    let one = |(quota, window): (&Value, Window)| {
        let resets_at = quota["resets_at"].as_i64().and_then(clock::from_epoch);
        Quota::read(window, quota["used_percentage"].as_f64()?, resets_at, now)
    };
    windows.into_iter().filter_map(one).collect()
}

/// `{"context_window": {"used_percentage": 37, "context_window_size": 200000, "current_usage": {…}}}`; all null before
/// the first answer of the model.
pub(super) fn context_of_statusline(input: &Value) -> Option<i64> {
    let percent = input["context_window"]["used_percentage"].as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 1,000")]
    (0.0..=1_000.0).contains(&percent).then_some(percent as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_use_of_the_context_is_read_where_the_client_reports_it() {
        let input = |percent: Value| json!({"context_window": {"used_percentage": percent}});
        assert_eq!(context_of_statusline(&input(json!(37.9))), Some(37));
        assert_eq!(context_of_statusline(&input(json!(0))), Some(0));
        for other in [input(json!(null)), input(json!("9")), input(json!(-1)), input(json!(1e300)), json!([]), json!(7)]
        {
            assert_eq!(context_of_statusline(&other), None, "{other}");
        }
    }

    #[test]
    fn windows_are_read_where_the_client_reports_them() {
        let input = json!({"session_id": "s", "rate_limits": {
            "five_hour": {"used_percentage": 83.5, "resets_at": 1_794_765_638},
            "seven_day": {"used_percentage": 41, "resets_at": 1_795_265_638},
        }});
        let quota =
            |window, used_percent, reset| Quota { window, used_percent, resets_at_ms: Some(reset), seen_at_ms: 7 };
        let [short, long] =
            [quota(Window::FiveHour, 83, 1_794_765_638_000), quota(Window::Weekly, 41, 1_795_265_638_000)];
        assert_eq!(of_statusline(&input, 7), [short, long]);
        for other in [json!({}), json!({"rate_limits": null}), json!({"rate_limits": {"five_hour": 7}})] {
            assert_eq!(of_statusline(&other, 7), [], "{other}");
        }
    }
}
