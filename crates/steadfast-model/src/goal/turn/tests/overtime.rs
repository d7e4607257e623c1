//! The turn of a goal that no longer runs.

use super::*;
use crate::goal::change::{block, resume, wait};
use crate::goal::wait::WaitFor;
use crate::host::Host;

const LATER: Millis = NOW + MINUTE;

fn waiting(goal: &Goal) -> Goal {
    wait(goal, WaitFor::Time, Some(NOW + HOUR), NOW).unwrap().goal
}

/// What the next batches lead to, and which tool calls of the worker run before each.
fn turn_on(mut goal: Goal, batches: usize) -> (Goal, Vec<(bool, BatchDecision)>) {
    let mut seen = Vec::new();
    for _ in 0..batches {
        let is_refused = before_tool(&goal, CallingAgent::Worker, NOW).is_some();
        let (change, decision) = at_batch(&goal, SharedSpend::Free, NOW);
        goal = change.map_or(goal, |change| change.goal);
        seen.push((is_refused, decision));
    }
    (goal, seen)
}

#[test]
fn a_turn_that_waits_or_is_blocked_gets_one_more_batch_and_is_ended() {
    let goal = limited(Axis::Tokens, 10_000);
    for stopped in [waiting(&goal), block(&goal, "no key", NOW).unwrap().goal] {
        let (ended, seen) = turn_on(stopped.clone(), 4);
        let expected = [
            (false, BatchDecision::Proceed),
            (false, BatchDecision::Overtime),
            (true, BatchDecision::EndOvertime),
            (false, BatchDecision::Proceed),
        ];
        assert_eq!(seen, expected, "its own call, one more, a refused one, and then the user's turn");
        assert_eq!((ended.state(), ended.overtime), (stopped.state(), None));
    }
}

#[test]
fn a_turn_whose_goal_the_user_pauses_is_asked_and_then_ended() {
    let paused = pause(&goal(), NOW).unwrap().goal;
    let (ended, seen) = turn_on(paused, 3);
    let expected =
        [(false, BatchDecision::Overtime), (true, BatchDecision::EndOvertime), (false, BatchDecision::Proceed)];
    assert_eq!((seen, ended.overtime), (expected.to_vec(), None));
    let idle = pause(&Goal { resume_at_ms: None, ..goal() }, NOW).unwrap().goal;
    assert_eq!(turn_on(idle, 1).1, [(false, BatchDecision::Proceed)], "no turn ran, so the next one is the user's");
}

#[test]
fn a_host_that_cannot_end_a_turn_refuses_its_tools_until_it_ends() {
    for (limit, at_limit) in goals_at_their_limit().into_iter().filter(|(limit, _)| *limit != Axis::Turns) {
        let (mut goal, seen) = turn_on(Goal { host: Host::Codex, ..at_limit }, 5);
        assert_eq!((seen[0].1, seen[4]), (BatchDecision::WindDown(limit), (false, BatchDecision::EndTurn(limit))));
        let mut ignored = Vec::new();
        for _ in 0..6 {
            let Some(ToolRefusal::Overtime { is_ignored }) = before_tool(&goal, CallingAgent::Worker, NOW) else {
                panic!("{limit} is not refused");
            };
            ignored.push(is_ignored);
            goal = count_refusal(&goal, NOW).unwrap().goal;
        }
        assert_eq!(ignored, [false, false, false, true, false, false], "after three refusals, once");
        // Its tokens count until it ends.
        let change = charge(&goal, Charge { worker_tokens: 7, ..Charge::default() }, NOW).unwrap();
        assert_eq!((change.goal.tokens_used, change.goal.state()), (goal.tokens_used + 7, goal.state()));
        let over = overtime_over(&goal, NOW).unwrap();
        assert_eq!((over.span, before_tool(&over.goal, CallingAgent::Worker, NOW)), (Span::Close, None));
    }
}

#[test]
fn own_tools_do_not_keep_a_turn_alive_for_ever() {
    let paused = pause(&Goal { host: Host::Codex, ..goal() }, NOW).unwrap().goal;
    let (_, seen) = turn_on(paused, 6);
    let decisions: Vec<_> = seen.into_iter().map(|(_, decision)| decision).collect();
    let ignored = decisions.iter().position(|decision| *decision == BatchDecision::OvertimeIgnored);
    assert_eq!((decisions[0], ignored), (BatchDecision::Overtime, Some(4)));
}

#[test]
fn subagents_end_at_the_limit_and_the_evaluator_may_still_judge() {
    for (limit, at_limit) in goals_at_their_limit().into_iter().filter(|(limit, _)| *limit != Axis::Turns) {
        assert_eq!(before_tool(&at_limit, CallingAgent::Subagent, NOW), Some(ToolRefusal::Limit(limit)));
        assert_eq!(before_tool(&at_limit, CallingAgent::Evaluator, NOW), None);
        assert_eq!(before_tool(&at_limit, CallingAgent::Worker, NOW), None, "it is asked to wind down first");
        let closed = Goal { budget_limit_reported: true, wind_down: None, ..at_limit };
        let is_users = closed.status == GoalStatus::BudgetLimited;
        assert_eq!(before_tool(&closed, CallingAgent::Subagent, NOW).is_none(), is_users, "a later turn of the user");
    }
    assert_eq!(before_tool(&goal(), CallingAgent::Subagent, NOW), None);
}

#[test]
fn the_limits_hold_in_the_turn_that_completed_the_goal() {
    let goal = limited(Axis::Tokens, 100);
    let done = complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), NOW).unwrap().goal;
    assert_eq!(turn_on(done.clone(), 2).1, [(false, BatchDecision::Proceed); 2]);
    let seen = turn_on(charged(&done, 100), 2).1;
    assert_eq!(seen, [(false, BatchDecision::Overtime), (true, BatchDecision::EndOvertime)]);
}

#[test]
fn a_goal_that_runs_again_is_not_in_overtime() {
    let blocked = block(&goal(), "no key", NOW).unwrap().goal;
    assert_eq!((blocked.overtime, resume(&blocked, LATER).unwrap().goal.overtime), (Some(0), None));
    let waiting = waiting(&goal());
    let over = crate::goal::change::turn_began(&waiting, false, NOW + HOUR).unwrap().goal;
    assert_eq!((waiting.overtime, over.overtime), (Some(0), None));
}
