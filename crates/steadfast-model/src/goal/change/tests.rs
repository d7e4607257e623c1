//! Every change from every state: what it leads to, and which are refused.

use proptest::prelude::*;
use strum::IntoEnumIterator as _;

use super::*;
use crate::goal::Actor;
use crate::goal::budget::{Budget, BudgetSource};
use crate::goal::proof::{Basis, CompletedBy, Evidence, Proof, Verdict, Verified};
use crate::goal::turn::{self, Charge, TurnEnd};
use crate::limit::Limits;
use crate::testing::{HOUR, MINUTE, SECOND, START, goal, goal_with, goal_within};
use crate::text;

const NOW: Millis = START + 90 * SECOND;

/// A goal in any state with ten active seconds; an active one runs since [`START`].
fn goal_in(status: GoalStatus, reason: Option<PausedReason>) -> Goal {
    Goal {
        status,
        paused_reason: reason,
        time_used_seconds: 10,
        resume_at_ms: (status == GoalStatus::Active).then_some(START),
        ..goal()
    }
}

fn paused(reason: PausedReason) -> Goal {
    goal_in(GoalStatus::Paused, Some(reason))
}

/// The goal with one more limit.
fn limited(axis: Axis, amount: i64, goal: Goal) -> Goal {
    Goal { limits: goal.limits.with(axis, amount), ..goal }
}

fn all_states() -> Vec<Goal> {
    let unpaused = GoalStatus::iter().filter(|status| *status != GoalStatus::Paused);
    let paused = PausedReason::iter().map(paused);
    unpaused.map(|status| goal_in(status, None)).chain(paused).collect()
}

/// `no` for a refusal, `same` for a change that keeps the state, else the new state and what happens to the span.
fn outcome(before: &Goal, result: &Result<Change, Refusal>) -> String {
    match result {
        Err(_) => "no".into(),
        Ok(change) if change.goal.state() == before.state() && change.span == Span::Keep => "same".into(),
        Ok(change) => format!("{} {:?}", change.goal.state(), change.span),
    }
}

fn by_self(goal: &Goal) -> Proof {
    Proof::from_agent(goal, &Basis::default()).unwrap()
}

fn by_evaluator(goal: &Goal) -> Proof {
    let objective_hash = text::fingerprint(&goal.objective);
    let verdict = Verdict { verdict: "complete".into(), reason: None, objective_hash };
    Proof::from_agent(goal, &Basis { verdicts: vec![verdict], ..Basis::default() }).unwrap()
}

/// The goal has no verification commands, so the proof is made as if it had one.
fn by_checks(goal: &Goal) -> Proof {
    let command = "cargo test".to_owned();
    let run = Evidence {
        command: command.clone(),
        exit_code: Some(0),
        timed_out: false,
        duration_ms: 1,
        output_sha256: String::new(),
        output_tail: String::new(),
        git_commit: None,
        git_dirty: None,
        created_at_ms: START,
    };
    let checked = Goal { verify: vec![command], ..goal.clone() };
    let verified = Verified::from_evidence(&checked, &[run]).ok();
    Proof::from_agent(&checked, &Basis { verified, ..Basis::default() }).unwrap()
}

fn by_user(goal: &Goal) -> Proof {
    Proof::from_user(goal, Actor::User).unwrap()
}

type Verb = fn(&Goal, Millis) -> Result<Change, Refusal>;

const VERBS: [(&str, Verb); 11] = [
    ("pause", |goal, now| pause(goal, now)),
    ("resume", |goal, now| resume(goal, now)),
    ("abandon", |goal, now| abandon(goal, now)),
    ("edit", |goal, now| edit(goal, "Other".into(), now)),
    ("block", |goal, now| block(goal, "no key", now)),
    ("by self", |goal, now| complete(goal, &by_self(goal), now)),
    ("by evaluator", |goal, now| complete(goal, &by_evaluator(goal), now)),
    ("by checks", |goal, now| complete(goal, &by_checks(goal), now)),
    ("by user", |goal, now| complete(goal, &by_user(goal), now)),
    ("reconcile", |goal, now| reconcile(goal, 77, now)),
    ("verdict", |goal, now| verdict(goal, "incomplete", None, &[], now)),
];

#[test]
fn every_verb_from_every_state_leads_to_the_specified_state() {
    const PAUSE: &str = "paused (user) Close";
    const RUN: &str = "active Open";
    const GIVE_UP: &str = "abandoned Close";
    const DONE: &str = "complete Keep";
    const SAID: &str = "complete (unverified) Keep";
    const CLOSED: &str = "complete Close";
    // pause, resume, abandon, edit, block, complete by self, evaluator, checks, user; reconcile, verdict
    let paused = ["no", RUN, GIVE_UP, "same", "no", "no", "no", "no", CLOSED, "no", "same"];
    let doubtful = ["no", "no", GIVE_UP, "same", "no", "no", DONE, DONE, CLOSED, RUN, "same"];
    let waiting = [PAUSE, RUN, GIVE_UP, "same", "no", "no", "no", "no", CLOSED, "no", "same"];
    for before in all_states() {
        let expected = match (before.status, before.paused_reason) {
            (GoalStatus::Active, _) => {
                [PAUSE, "no", GIVE_UP, "same", "blocked Keep", SAID, DONE, DONE, CLOSED, "no", "same"]
            }
            (GoalStatus::Blocked, _) => paused,
            (GoalStatus::BudgetLimited, _) => {
                [PAUSE, "no", GIVE_UP, "same", "no", "no", DONE, DONE, CLOSED, "no", "same"]
            }
            (GoalStatus::Complete | GoalStatus::Abandoned, _) => ["no"; 11],
            (_, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain)) => doubtful,
            (_, Some(PausedReason::UsageLimit | PausedReason::Waiting | PausedReason::Interrupted)) => waiting,
            _ => paused,
        };
        for ((verb, change), expected) in VERBS.iter().zip(expected) {
            let result = change(&before, NOW);
            assert_eq!(outcome(&before, &result), expected, "{verb} of {}", before.state());
            if let Ok(change) = result {
                assert_eq!(change.goal.updated_at_ms, NOW, "{verb}");
                assert_eq!(change.events.len(), 1, "{verb} is logged once");
            }
        }
    }
}

#[test]
fn a_refusal_names_the_state_and_says_what_to_type() {
    for before in all_states() {
        for (verb, change) in VERBS {
            let Err(refusal) = change(&before, NOW) else { continue };
            assert_eq!(refusal.to_string(), format!("the goal is {}", before.state()), "{verb}");
            assert!(!refusal.hint().is_empty(), "{verb}");
        }
    }
}

#[test]
fn leaving_the_active_state_adds_the_running_time_once() {
    for (verb, change) in VERBS {
        for before in all_states() {
            let Ok(change) = change(&before, NOW) else { continue };
            let stopped = before.status == GoalStatus::Active && change.goal.status != GoalStatus::Active;
            let banked = if stopped { 100 } else { 10 };
            assert_eq!(change.goal.time_used_seconds, banked, "{verb} of {}", before.state());
            let runs = (change.goal.status == GoalStatus::Active).then(|| before.resume_at_ms.unwrap_or(NOW));
            assert_eq!(change.goal.resume_at_ms, runs, "{verb} of {}", before.state());
        }
    }
    // A clock that was set back does not reduce the active time.
    let early = pause(&goal_in(GoalStatus::Active, None), START - HOUR).unwrap();
    assert_eq!(early.goal.time_used_seconds, 10);
}

#[test]
fn a_paused_and_resumed_goal_differs_only_in_its_clock() {
    let before = goal_in(GoalStatus::Active, None);
    let after = resume(&pause(&before, NOW).unwrap().goal, NOW + HOUR).unwrap();
    let expected = Goal { time_used_seconds: 100, resume_at_ms: Some(NOW + HOUR), updated_at_ms: NOW + HOUR, ..before };
    assert_eq!(after.goal, expected);
    assert_eq!(after.events, [Event::new(EventKind::GoalResumed, json!({"from": "paused (user)"}))]);
}

#[test]
fn a_goal_at_a_cap_must_be_extended_before_it_resumes() {
    let turns = Goal { continuations_used: 5, ..limited(Axis::Turns, 5, paused(PausedReason::ContinuationCap)) };
    let hours = limited(Axis::Hours, 10 * SECOND, paused(PausedReason::WallClockCap));
    let deadline = limited(Axis::Deadline, START + MINUTE, paused(PausedReason::Deadline));
    for (goal, hint) in [(turns, "--add-turns"), (hours, "--add-hours"), (deadline, "--add-hours")] {
        let refusal = resume(&goal, NOW).unwrap_err();
        assert!(refusal.hint().contains(hint), "{refusal:?}");
        // An additional pause by the user does not hide the cap.
        let by_user = Goal { paused_reason: Some(PausedReason::User), ..goal };
        assert!(resume(&by_user, NOW).is_err());
    }
}

/// Bug 28 of the plugin: a pause and a resume gave a spent goal another turn.
#[test]
fn a_spent_goal_that_is_paused_and_resumed_is_spent_again() {
    let spent = Goal {
        status: GoalStatus::BudgetLimited,
        tokens_used: 100,
        resume_at_ms: None,
        budget_limit_reported: true,
        ..goal_within(Budget::parse("100", "").unwrap())
    };
    let resumed = resume(&pause(&spent, NOW).unwrap().goal, NOW).unwrap();
    assert_eq!(resumed.goal, Goal { updated_at_ms: NOW, ..spent });
    assert_eq!(resumed.span, Span::Keep);
    let next = turn::at_stop(&resumed.goal, &TurnEnd::default(), crate::testing::rules(3), NOW);
    assert_eq!(next, (None, turn::Decision::Silent));
}

#[test]
fn completion_records_who_confirmed_it_and_the_previous_status() {
    let cases = [
        (by_self as fn(&Goal) -> Proof, "goal_completed_by_self_update", "self_update"),
        (by_checks, "goal_completed_by_self_update", "verification"),
        (by_evaluator, "goal_completed_by_evaluator", "evaluator"),
        (by_user, "goal_completed_by_user", "user"),
    ];
    for (prove, kind, name) in cases {
        let goal = goal();
        let change = complete(&goal, &prove(&goal), NOW).unwrap();
        assert_eq!(change.events, [Event::new(kind.parse().unwrap(), json!({"completed_by": name}))]);
        assert_eq!(change.goal.completed_by, Some(name.parse().unwrap()));
        let state = if name == "self_update" { "complete (unverified)" } else { "complete" };
        assert_eq!((change.goal.state().as_str(), change.goal.is_verified()), (state, name != "self_update"));
    }
    let uncertain = Goal { accounting_uncertain: true, ..paused(PausedReason::AccountingError) };
    let change = complete(&uncertain, &by_evaluator(&uncertain), NOW).unwrap();
    let payload = json!({"completed_by": "evaluator", "from_status": "paused", "paused_reason": "accounting_error"});
    assert_eq!(change.events, [Event::new(EventKind::GoalCompletedByEvaluator, payload)]);
    assert!(!change.goal.accounting_uncertain, "a finished goal keeps no stale flag");
}

#[test]
fn an_edit_keeps_everything_but_the_text() {
    let before = goal_in(GoalStatus::Active, None);
    let change = edit(&before, "Other".into(), NOW).unwrap();
    assert_eq!(
        change.events,
        [Event::new(EventKind::GoalObjectiveUpdated, json!({"previous_objective": before.objective}))]
    );
    let expected = Goal { objective: "Other".into(), updated_at_ms: NOW, ..before };
    assert_eq!(change.goal, expected);
}

#[test]
fn reconciling_clears_the_flag_moves_the_cursor_and_keeps_the_old_one_in_the_log() {
    let before = Goal {
        accounting_uncertain: true,
        last_accounted_byte_offset: 500,
        last_accounted_uuid: Some("u-1".into()),
        ..paused(PausedReason::AccountingUncertain)
    };
    let change = reconcile(&before, 900, NOW).unwrap();
    let payload = json!({"old_cursor": 500, "old_uuid": "u-1", "new_cursor": 900});
    assert_eq!(change.events, [Event::new(EventKind::GoalReconciled, payload)]);
    let expected = Goal {
        status: GoalStatus::Active,
        paused_reason: None,
        accounting_uncertain: false,
        last_accounted_byte_offset: 900,
        last_accounted_uuid: None,
        resume_at_ms: Some(NOW),
        updated_at_ms: NOW,
        ..before
    };
    assert_eq!(change.goal, expected);
}

#[test]
fn reconciling_a_flagged_goal_does_not_undo_a_users_pause() {
    let flagged = Goal { accounting_uncertain: true, ..paused(PausedReason::User) };
    let change = reconcile(&flagged, 1, NOW).unwrap();
    assert_eq!(change.goal.state(), "paused (user)");
    assert_eq!((change.goal.accounting_uncertain, change.span), (false, Span::Keep));
}

mod extending;
mod items;
mod sequences;
mod sessions;
mod waiting;
