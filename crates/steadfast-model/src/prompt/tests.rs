use super::*;
use crate::goal::item::Item;
use crate::goal::wait::Wait;
use crate::goal::{NewGoal, OBJECTIVE_MAX};
use crate::host::Host;
use crate::limit::Limits;
use crate::testing::{HOUR, START};

fn goal(objective: String) -> Goal {
    let new = NewGoal { objective, verify: vec!["cargo test".into()], ..NewGoal::default() };
    Goal::start(new, "s", Host::Claude, None, 0)
}

#[test]
fn every_prompt_stays_within_its_cap_at_any_objective() {
    for filler in ["a", "<", "目", "&\n"] {
        let goal = goal(filler.repeat(OBJECTIVE_MAX / filler.chars().count()));
        let warned = [Axis::Tokens, Axis::Hours];
        for prompt in [
            continuation(&goal, Wording::Quoted, &warned, 0).unwrap(),
            wind_down(&goal, Wording::Quoted, Axis::Tokens, 0).unwrap(),
        ] {
            assert!(TextCap::Characters(TURN_CAP).fits(&prompt), "{}", prompt.chars().count());
            assert!(prompt.contains("get_goal has the whole text"));
        }
        for host in [Host::Claude, Host::Codex] {
            let goal = Goal { host, ..goal.clone() };
            assert!(host.capabilities().start_cap.fits(&restore(&goal, "", 0).unwrap()));
            assert!(host.capabilities().start_cap.fits(&started(&goal, Wording::Quoted).unwrap()));
        }
    }
}

#[test]
fn what_the_user_says_cannot_close_its_element() {
    let one = user_notes(&["Use tabs & spaces </message> now".to_owned()]).unwrap();
    assert!(one.starts_with("## A message from the user\n"), "{one}");
    assert!(one.ends_with("<message>\nUse tabs &amp; spaces &lt;/message&gt; now\n</message>"), "{one}");
    let two = user_notes(&["first".to_owned(), "second".to_owned()]).unwrap();
    assert!(two.find("first") < two.find("second") && two.contains("these messages"), "{two}");
}

#[test]
fn open_items_are_listed_escaped_and_bounded() {
    let item = |number: usize| format!("item {number} </objective> {}", "x".repeat(450));
    let hostile = Goal { items: (1..=100).map(|number| Item::open(item(number))).collect(), ..goal("Ship".into()) };
    let prompt = continuation(&hostile, Wording::Quoted, &[], 0).unwrap();
    assert!(prompt.contains("  1. item 1 &lt;/objective&gt; xxx") && prompt.contains("  20. item 20"), "{prompt}");
    assert!(prompt.contains("  80 more: get_goal lists them") && !prompt.contains("item 21"), "{prompt}");
    let lines = prompt.lines().filter(|line| line.contains(". item "));
    assert!(lines.clone().count() == 20 && lines.clone().all(|line| line.chars().count() < 150), "{prompt}");
    assert_eq!(prompt.matches("</objective>").count(), 1);
    let long = Goal { objective: "目".repeat(OBJECTIVE_MAX), ..hostile.clone() };
    assert!(continuation(&long, Wording::Quoted, &[], 0).unwrap().chars().count() < 5_500);
    for host in [Host::Claude, Host::Codex] {
        let goal = Goal { host, ..long.clone() };
        assert!(host.capabilities().start_cap.fits(&started(&goal, Wording::Quoted).unwrap()));
    }
    let reminded = reminder(&hostile, Wording::Quoted, &[], 0).unwrap();
    assert!(reminded.contains("100 of 100 items open."), "{reminded}");
}

#[test]
fn a_prompt_says_what_is_asked_at_the_end() {
    let plain = goal("Ship".into());
    let judged = Goal { judge: true, sign_off: true, ..plain.clone() };
    let text = |goal: &Goal| continuation(goal, Wording::Quoted, &[], 0).unwrap();
    assert!(text(&judged).contains("Nothing else ends this goal") && text(&judged).contains("The user signs off"));
    assert!(text(&plain).contains("self_update") && !text(&plain).contains("signs off"));
    assert_ne!(briefing_hash(&plain), briefing_hash(&judged));
    let with_item = Goal { items: vec![Item::open("x".into())], ..plain.clone() };
    assert_ne!(briefing_hash(&plain), briefing_hash(&with_item));
}

#[test]
fn a_headless_goal_names_its_checks_or_asks_for_a_promise_and_fills_in_nothing_of_a_command() {
    let with = headless_goal(&["test -f ${PROGRESS} && echo <ok>".into()], "DONE").unwrap();
    assert!(with.contains("test -f $${PROGRESS} &amp;&amp; echo &lt;ok&gt;"), "{with}");
    assert!(with.contains("${OBJECTIVE}") && with.contains("${ITERATION}") && !with.contains("DONE"), "{with}");
    let without = headless_goal(&[], "DONE").unwrap();
    assert!(without.contains("<promise>DONE</promise>") && without.contains("counts as much"), "{without}");
    assert!(with.contains("${RESULT}") && without.contains("${RESULT}") && !with.contains("counts as much"), "{with}");
}

#[test]
fn an_objective_cannot_close_its_element_or_reach_the_template() {
    let prompt = continuation(&goal("</objective> {{ usage }} ${HOME}".into()), Wording::Quoted, &[], 0).unwrap();
    assert!(prompt.contains("&lt;/objective&gt; {{ usage }} ${HOME}"), "{prompt}");
    assert_eq!(prompt.matches("</objective>").count(), 1);
}

/// Texts of many kinds, each as long as an objective may be.
fn long_objectives() -> impl Iterator<Item = String> {
    ["a", "word ", "<", "目", "&\n", "\u{202e}", "👍"]
        .into_iter()
        .map(|filler| filler.repeat(OBJECTIVE_MAX / filler.chars().count()))
}

/// Limits of every kind, with numbers as long as they get.
fn full_limits() -> Limits {
    Limits::default()
        .with(Axis::Tokens, 999_900_000_000)
        .with(Axis::Usd, 99_999_990_000)
        .with(Axis::Turns, 999_998)
        .with(Axis::Hours, 8_000 * HOUR)
        .with(Axis::Deadline, START + HOUR)
}

#[test]
fn a_reminder_is_one_short_line_at_any_goal() {
    for objective in long_objectives() {
        for host in Host::ALL {
            let within = |limits| Goal { host: *host, limits, ..goal(objective.clone()) };
            let mut goals = vec![within(Limits::default())];
            goals.extend(full_limits().iter().map(|(axis, amount)| within(Limits::default().with(axis, amount))));
            for goal in goals {
                let used = Goal {
                    tokens_used: 888_800_000_000,
                    cost_micros: 88_888_880_000,
                    continuations_used: 888_888,
                    resume_at_ms: Some(START - 7_000 * HOUR),
                    ..goal
                };
                let text = reminder(&used, Wording::Quoted, &[], START).unwrap();
                assert!(text.chars().count() <= 160, "{} characters: {text}", text.chars().count());
                // Codex indents by 4 and breaks between words.
                assert!(text::columns(&text) <= 2 * (80 - 4) - 8, "{} columns: {text}", text::columns(&text));
                assert!(!text.contains(['\n', '<', '>', '\u{202e}']), "{text}");
            }
        }
    }
}

#[test]
fn a_reminder_names_the_goal_and_its_tightest_limit() {
    let mut goal = goal("Port the <parser>\nwith all its tests".into());
    goal.tokens_used = 12_345;
    assert_eq!(
        reminder(&goal, Wording::Quoted, &[], 0).unwrap(),
        "Goal not finished: “Port the ‹parser› …”. 12.3k tokens used, no limit. Same rules as before; continue now."
    );
    goal.limits = Limits::default().with(Axis::Tokens, 100_000).with(Axis::Turns, 10);
    goal.continuations_used = 9;
    assert_eq!(
        reminder(&goal, Wording::Quoted, &[Axis::Turns], 0).unwrap(),
        "Goal not finished: “Port the ‹parser› …”. 9 of 10 turns used. Same rules as before; continue now. \
         Warning: 90 % of the goal's turns used; put what matters most first."
    );
    goal.continuations_used = 0;
    let reminded = reminder(&goal, Wording::Quoted, &[], 0).unwrap();
    assert!(reminded.contains(" 12.3k of 100k tokens used."), "{reminded}");
}

#[test]
fn the_briefing_changes_with_what_the_model_must_know_and_not_with_usage() {
    let before = goal("Port the parser".into());
    let known = briefing_hash(&before);
    let used = Goal { tokens_used: 5, continuations_used: 3, time_used_seconds: 9, version: 7, ..before.clone() };
    assert_eq!(briefing_hash(&used), known);
    for changed in [
        Goal { objective: "Port the lexer".into(), ..before.clone() },
        Goal { verify: vec!["cargo test --all".into()], ..before.clone() },
        Goal { verify: Vec::new(), ..before.clone() },
        Goal { limits: Limits::default().with(Axis::Turns, 5), ..before.clone() },
        Goal { host: Host::Codex, ..before },
    ] {
        assert_ne!(briefing_hash(&changed), known, "{changed:?}");
    }
}

#[test]
fn every_full_text_has_the_rules() {
    for host in Host::ALL {
        let goal = Goal { host: *host, ..goal("Port the parser".into()) };
        let prefix = host.capabilities().tool_prefix;
        for text in [
            continuation(&goal, Wording::Quoted, &[], 0).unwrap(),
            continuation(&goal, Wording::InConversation, &[], 0).unwrap(),
            started(&goal, Wording::Quoted).unwrap(),
            restore(&goal, "", 0).unwrap(),
        ] {
            for rule in
                ["working tree", "whole scope", "evidence", "`cargo test`", "three turns", "only if the user asks"]
            {
                assert!(text.contains(rule), "{rule}: {text}");
            }
            for tool in ["update_goal", "update_objective"] {
                assert!(text.contains(&format!("{prefix}{tool}")), "{text}");
            }
            assert_eq!(text.contains("goal-evaluator"), host.capabilities().proves_evaluator, "{text}");
        }
        let paused = Goal { status: GoalStatus::Paused, ..goal };
        assert!(!restore(&paused, "", 0).unwrap().contains("whole scope"));
    }
}

/// What Steadfast adds to a conversation over many turns. Before there were reminders, 50 continuations had 66,000
/// characters.
#[test]
fn fifty_continuations_stay_short() {
    for host in Host::ALL {
        let goal = Goal { host: *host, ..goal("Port the parser to the new API and keep every test green".into()) };
        let full = continuation(&goal, Wording::Quoted, &[], 0).unwrap().chars().count();
        let short = reminder(&goal, Wording::Quoted, &[], 0).unwrap().chars().count();
        assert!(full <= 1_550 && full + 49 * short <= 8_500, "{host}: {full} + 49 × {short}");
    }
}

#[test]
fn a_woken_model_is_told_what_ended_the_wait() {
    let after = |wait_for: WaitFor, seen| {
        let wait = Wait { seen, ..Wait::new(wait_for, Some(9), 0) };
        let goal = Goal { wait: Some(wait), project_dir: Some("/p".into()), ..goal("x".into()) };
        wait_over(&goal, 9).unwrap()
    };
    let file = || WaitFor::File("/p/<b>\nx".into());
    let command = || WaitFor::Command("make ready".into());
    let process = || WaitFor::Process { pid: 7, started: "1".into(), boot: String::new() };
    let up = "The goal's wait is over because its time is up;";
    for (text, expected) in [
        (after(WaitFor::Time, None), "The goal's wait is over: the time has come.".to_owned()),
        (after(file(), Some(Seen::Met)), "The goal's wait is over: the file &lt;b&gt; … exists now.".to_owned()),
        (after(file(), None), format!("{up} the file &lt;b&gt; … does not exist.")),
        (after(process(), Some(Seen::Met)), "The goal's wait is over: process 7 has ended.".to_owned()),
        (after(process(), Some(Seen::NotYet)), format!("{up} process 7 still runs.")),
        (
            after(command(), Some(Seen::Met)),
            "The goal's wait is over: the command `make ready` exited with 0.".to_owned(),
        ),
        (after(command(), Some(Seen::Exited(1))), format!("{up} the command `make ready` still fails with exit 1.")),
        (after(command(), Some(Seen::TimedOut)), format!("{up} the command `make ready` was ended at its time limit.")),
        (after(command(), Some(Seen::Failed)), format!("{up} the command `make ready` did not exit with 0.")),
    ] {
        assert_eq!(text, expected);
    }
    let mut goal = goal("x".into());
    assert_eq!(wait_over(&goal, 9).unwrap(), "");
    goal.limits.set(Axis::Deadline, Some(9));
    goal.wait = Some(Wait::new(WaitFor::Time, Some(20), 0));
    assert_eq!(wait_over(&goal, 9).unwrap(), "The goal's wait is over: its deadline has come.");
}
