//! Axes and amounts.

use super::*;

#[test]
fn amounts_as_people_write_them() {
    let tokens = |text| Axis::Tokens.parse(text, 0);
    for (text, amount) in [("1500", 1_500), ("500k", 500_000), ("10M", 10_000_000), ("1.5B", 1_500_000_000)] {
        assert_eq!(tokens(text), Ok(amount), "{text}");
    }
    for text in ["0", "0k", "0.0000001k"] {
        assert_eq!(tokens(text), Err(AmountError::NotPositive(text.to_owned())), "{text}");
    }
    for text in ["-1", "1e9", "abc", "", "k", "1.", "10 M", "99999999999999999999", "9999999999B", "１０"] {
        let read = tokens(text);
        assert!(read.is_err() || text == "1.", "{text}: {read:?}");
    }
    assert_eq!(Axis::Usd.parse("$2.5", 0), Ok(2_500_000));
    assert_eq!(Axis::Hours.parse("0.5", 0), Ok(1_800_000));
    for (text, percent) in [("90", Some(90)), ("90%", Some(90)), ("100", Some(100)), ("101", None), ("0", None)] {
        assert_eq!(Axis::Plan.parse(text, 0).ok(), percent, "{text}");
    }
    assert_eq!(Axis::Turns.parse("0", 0), Err(AmountError::NotPositive("0".into())));
    assert_eq!(Axis::Turns.parse("999999", 0), Ok(999_999));
    let too_many = Axis::Turns.parse("1000000", 0).unwrap_err();
    assert_eq!(too_many.to_string(), "`1000000` is too much; the maximum is 999,999");
    assert!(Axis::Plan.parse("101%", 0).unwrap_err().to_string().contains("the maximum is 100"));
}

#[test]
fn every_axis_has_an_entry() {
    let used = Used {
        tokens: 80,
        cost_micros: 80,
        turns: 80,
        time_ms: 80,
        now_ms: 80,
        shared: SharedSpend::Near,
        ..Used::default()
    };
    for axis in Axis::iter() {
        let limits = Limits::default().with(axis, 100);
        if axis == Axis::Plan {
            assert_eq!(limits.standing(axis, &used), None, "what a client reported is no part of what was used");
            continue;
        }
        let standing = limits.standing(axis, &used).unwrap();
        assert!(standing.is_near() && !standing.is_reached(), "{axis}: {standing:?}");
        assert_eq!(axis.to_string().parse(), Ok(axis));
        assert!(!axis.noun().is_empty() && !axis.format(1).is_empty());
        assert!(!standing.describe_near().is_empty() && !standing.describe_reached().is_empty());
    }
}

#[test]
fn the_first_reached_limit_is_money_before_the_caps() {
    let limits = Limits::default().with(Axis::Turns, 1).with(Axis::Tokens, 10);
    let used = Used { tokens: 10, turns: 1, ..Used::default() };
    assert_eq!(limits.reached(&used), Some(Axis::Tokens));
    let used = Used { tokens: 9, turns: 1, ..Used::default() };
    assert_eq!((limits.reached(&used), limits.reached_within_turn(&used)), (Some(Axis::Turns), None));
    let used = Used { shared: SharedSpend::Reached, ..Used::default() };
    assert_eq!(limits.reached(&used), Some(Axis::Shared));
}

#[test]
fn caps_are_named_as_in_the_configuration_and_the_fullest_one_is_told() {
    let cap = |scope, axis, most| Cap { scope, axis, most };
    let opus = CapScope::Model("claude-opus".into(), Period::Weekly);
    for (cap, spent, name, level, text) in [
        (cap(CapScope::Machine(Period::Daily), Axis::Tokens, 1_000), 799, "daily_tokens", SharedSpend::Free, "799 of"),
        (
            cap(CapScope::Machine(Period::Weekly), Axis::Tokens, 1_000),
            800,
            "weekly_tokens",
            SharedSpend::Near,
            "800 of",
        ),
        (
            cap(opus, Axis::Tokens, 1_000),
            1_000,
            "models.\"claude-opus\".weekly_tokens",
            SharedSpend::Reached,
            "1,000 of",
        ),
        (cap(CapScope::Session, Axis::Usd, 2_000_000), 2, "session_usd", SharedSpend::Reached, "$2.00 of $2.00"),
    ] {
        assert_eq!(cap.name(), name);
        let standing = cap.standing(Spend { tokens: spent, cost_micros: spent * 1_000_000 }, 0);
        assert_eq!(SharedSpend::of(std::slice::from_ref(&standing)), level, "{name}");
        assert!(standing.describe().starts_with(&format!("{name}: {text}")), "{}", standing.describe());
    }
    let standing = |most| cap(CapScope::Session, Axis::Tokens, most).standing(Spend { tokens: 90, cost_micros: 0 }, 0);
    let caps = [standing(1_000), standing(100), standing(110)];
    assert_eq!(fullest(&caps), Some(&caps[1]));
    assert_eq!((SharedSpend::of(&[]), fullest(&[])), (SharedSpend::Free, None));
}
