//! The rests between two looks, and what may be asked for.

use super::*;

const NOW: Millis = 1_794_744_000_000;
/// How long a look takes at most.
const LEASE: Millis = 62_000;

fn wait(wait_for: WaitFor) -> Wait {
    Wait::new(wait_for, None, NOW)
}

fn command() -> Wait {
    wait(WaitFor::Command("make ready".into()))
}

/// The rests after the first looks, in seconds.
fn rests(wait: &Wait, looks: usize) -> Vec<Millis> {
    let mut wait = wait.clone();
    let mut rests = Vec::new();
    for _ in 0..looks {
        wait = wait.after_check(Seen::NotYet, NOW);
        rests.push((wait.next_check_ms - NOW) / 1_000);
    }
    rests
}

#[test]
fn the_rest_between_looks_grows_up_to_a_maximum() {
    assert_eq!(rests(&command(), 6), [5, 10, 20, 40, 60, 60]);
    assert_eq!(rests(&wait(WaitFor::File("/x".into())), 5), [1, 2, 4, 5, 5]);
    let process = WaitFor::Process { pid: 1, started: "2".into(), boot: String::new() };
    assert_eq!(rests(&wait(process), 5), [1, 2, 4, 5, 5]);
    let long = Wait { checks: i64::MAX, ..command() };
    assert_eq!(rests(&long, 2), [60, 60]);
}

#[test]
fn a_condition_is_looked_at_at_once_and_then_after_each_rest() {
    let wait = command();
    assert!(wait.check_due(LEASE, NOW));
    let wait = wait.after_check(Seen::Exited(1), NOW);
    assert_eq!((wait.checks, wait.seen), (1, Some(Seen::Exited(1))));
    assert!(!wait.check_due(LEASE, NOW + 4_999));
    assert!(wait.check_due(LEASE, NOW + 5_000));
    assert!(!wait.after_check(Seen::Met, NOW).check_due(LEASE, NOW + clock::DAY), "nothing is looked for any more");
    assert_eq!(self::wait(WaitFor::Time).next_check(), None);
}

#[test]
fn one_look_keeps_others_away_until_its_time_limit() {
    let looking = command().during_check(LEASE, NOW);
    assert!(!looking.check_due(LEASE, NOW + LEASE - 1));
    assert!(looking.check_due(LEASE, NOW + LEASE));
}

#[test]
fn a_clock_that_was_set_back_does_not_stop_the_looks() {
    let wait = command().after_check(Seen::NotYet, NOW);
    assert!(wait.check_due(LEASE, NOW - clock::DAY));
}

#[test]
fn a_wait_is_read_back_from_its_json() {
    let process = WaitFor::Process { pid: 7, started: "88".into(), boot: "b".into() };
    for wait_for in [WaitFor::Time, WaitFor::Command("x".into()), WaitFor::File("/x".into()), process] {
        let wait = Wait { seen: Some(Seen::Exited(3)), ..wait(wait_for) };
        let json = serde_json::to_string(&wait).unwrap();
        assert_eq!(serde_json::from_str::<Wait>(&json).unwrap(), wait, "{json}");
    }
    assert_eq!(serde_json::from_str::<Wait>(r#"{"for":"time"}"#).unwrap().wait_for, WaitFor::Time);
}

#[test]
fn what_is_waited_for_is_one_printable_line() {
    let hostile = WaitFor::File("/project/a\nb\u{1b}[31m".into()).describe(Some("/project"));
    assert_eq!(hostile, "the file a …");
    assert_eq!(WaitFor::File("/x\u{1b}[31m\u{202e}y".into()).describe(None), "the file /xy");
    assert_eq!(WaitFor::File("/projects/x".into()).describe(Some("/project")), "the file /projects/x");
    assert_eq!(WaitFor::Command("make ready".into()).describe(None), "the command `make ready`");
}

#[test]
fn times_and_durations_are_read_as_people_write_them() {
    for (text, seconds) in [("in 3h", 10_800), ("90s", 90), (" in 2h 30m ", 9_000), ("1d", 86_400)] {
        assert_eq!(WaitRequest::parse_until(text, NOW), Ok(NOW + seconds * 1_000), "{text}");
    }
    for (text, seconds) in [("90s", 90), ("15m", 900), ("2h", 7_200), ("1d", 86_400)] {
        assert_eq!(WaitRequest::parse_for(text, NOW), Ok(NOW + seconds * 1_000), "{text}");
    }
    for text in ["", "0s", "-5m", "in", "in 17:30", "in -3h", "soon", "99999999999999999999h"] {
        assert_eq!(WaitRequest::parse_until(text, NOW), Err(WaitError::NotATime(text.into())), "{text}");
        assert_eq!(WaitRequest::parse_for(text, NOW), Err(WaitError::NotADuration(text.into())), "{text}");
    }
    assert_eq!(WaitRequest::parse_until("2020-01-01", NOW), Err(WaitError::Passed("2020-01-01".into())));
}

#[test]
fn a_request_is_bounded_and_an_agents_more_so() {
    let until = |length| WaitRequest { until: Some(NOW + length), condition: None };
    assert_eq!(WaitRequest::default().check(false, NOW), Err(WaitError::Nothing));
    assert_eq!(until(7 * clock::DAY).check(true, NOW), Ok(()));
    assert_eq!(until(7 * clock::DAY + 1).check(true, NOW), Err(WaitError::TooLongForAgent(7)));
    assert_eq!(until(8 * clock::DAY).check(false, NOW), Ok(()));
    assert_eq!(until(367 * clock::DAY).check(false, NOW), Err(WaitError::TooLong(366)));
    let condition = |condition| WaitRequest { until: None, condition: Some(condition) }.check(false, NOW);
    assert_eq!(condition(WaitCondition::Command(" ".into())), Err(WaitError::Empty("command")));
    assert_eq!(condition(WaitCondition::File("a\0b".into())), Err(WaitError::Nul("path")));
    let long = WaitCondition::File("x".repeat(4_097));
    assert_eq!(condition(long), Err(WaitError::TooManyCharacters { what: "path", most: 4_096 }));
}
