//! Amounts, moments and names as users type them.

use jiff::civil::date;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::wait::WaitRequest;
use steadfast_model::limit::Axis;
use steadfast_model::outbox::quiet::QuietHours;
use steadfast_model::run::name::RunName;
use strum::IntoEnumIterator as _;

const NOW: Millis = 1_800_000_000_000;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for axis in Axis::iter() {
        if let Ok(amount) = axis.parse(text, NOW) {
            assert!(amount > 0, "{axis}: {amount}");
            axis.format(amount);
            assert!(axis != Axis::Deadline || amount > NOW);
        }
    }
    if let Ok(budget) = Budget::parse(text, text) {
        assert!(budget.limits.iter().all(|(_, amount)| amount > 0) && !budget.limits.is_empty());
        budget.limits.describe();
    }
    if let Some(moment) = clock::parse_moment(text, NOW) {
        clock::to_local_short(moment, NOW);
        let shown = clock::to_rfc3339(moment);
        // The years that have four digits.
        if (0..253_402_300_799_000).contains(&moment) {
            assert_eq!(clock::parse_rfc3339(&shown), Some(moment.div_euclid(1_000) * 1_000), "{shown}");
        }
    }
    assert!(clock::parse_duration(text).is_none_or(|length| length > 0));
    clock::parse_day(text, date(2026, 11, 16));
    assert!(
        WaitRequest::parse_until(text, NOW).is_ok_and(|at| at > NOW) || WaitRequest::parse_until(text, NOW).is_err()
    );
    assert!(WaitRequest::parse_for(text, NOW).is_ok_and(|at| at > NOW) || WaitRequest::parse_for(text, NOW).is_err());
    let _: Result<QuietHours, _> = text.parse();
    match text.parse::<RunName>() {
        Ok(name) => assert!(!name.as_str().contains(['/', '\0', ' ']) && !name.as_str().contains("..")),
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
    }
}
