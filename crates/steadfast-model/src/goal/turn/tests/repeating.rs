//! The breaker for tool calls that bring nothing new.

use super::*;
use crate::reading::{Reading, ToolLine};

/// Calls that are made at once, with their answers: command, answer.
fn side_by_side(calls: &[(&str, &str)], seed: usize) -> Vec<ToolLine> {
    let mut reading = Reading::default();
    for (at, (command, _)) in calls.iter().enumerate() {
        reading.call(&format!("{seed}-{at}"), "Bash", command);
    }
    // Answers come in any order.
    for (at, (_, answer)) in calls.iter().enumerate().rev() {
        reading.answer(&format!("{seed}-{at}"), answer);
    }
    reading.calls
}

/// What is said about these batches with a limit of 10, and the goal after them.
fn said<'a>(goal: &Goal, batches: impl IntoIterator<Item = Vec<(&'a str, &'a str)>>) -> (Vec<BatchDecision>, Goal) {
    let mut goal = goal.clone();
    let mut said = Vec::new();
    for (seed, batch) in batches.into_iter().enumerate() {
        count_calls(&mut goal, &side_by_side(&batch, seed));
        if let Some((change, decision)) = at_repeats(&goal, 10, NOW) {
            goal = change.goal;
            said.push(decision);
        }
    }
    (said, goal)
}

const STATUS: (&str, &str) = ("git status", "clean");
const ALL: [BatchDecision; 3] = [BatchDecision::Nudge(3), BatchDecision::OtherApproach(6), BatchDecision::Repeats(10)];

#[test]
fn equal_tool_calls_lead_to_a_nudge_then_to_another_approach_then_to_the_pause() {
    let (decisions, paused) = said(&goal(), vec![vec![STATUS]; 10]);
    assert_eq!((decisions, paused.state()), (ALL.to_vec(), "paused (no_progress)".into()));
    let switched_off = Goal { status: GoalStatus::Active, ..paused };
    assert_eq!(at_repeats(&switched_off, 0, NOW), None);
    let resumed = crate::goal::change::resume(&Goal { status: GoalStatus::Paused, ..switched_off }, NOW).unwrap().goal;
    assert_eq!(said(&resumed, vec![vec![STATUS]; 2]).0, [], "it counts anew");
}

#[test]
fn alternating_and_parallel_calls_are_noticed_too() {
    let (test, log) = (("cargo test", "1 failed"), ("git log", "one"));
    let alternating = (0..20).map(|at| vec![if at % 2 == 0 { STATUS } else { test }]);
    assert_eq!(said(&goal(), alternating).0, ALL);
    let (decisions, paused) = said(&goal(), vec![vec![STATUS, test, log]; 10]);
    assert_eq!((decisions, paused.state()), (ALL.to_vec(), "paused (no_progress)".into()));
    let (decisions, _) = said(&goal(), vec![vec![STATUS; 5]; 2]);
    assert_eq!(decisions, [BatchDecision::Nudge(5), BatchDecision::Repeats(10)], "five at once are five");
    // A circle of eight calls: after thirty calls with nothing new.
    let names: Vec<String> = (0..8).map(|at| format!("cat {at}")).collect();
    let circle = (0..38).map(|at| vec![(names[at % 8].as_str(), "same")]);
    assert_eq!(said(&goal(), circle).0.last(), Some(&BatchDecision::Repeats(10)));
}

#[test]
fn anything_new_closes_the_breaker_again() {
    let answers: Vec<String> = (0..40).map(|at| format!("{at} % done")).collect();
    let poll = answers.iter().map(|answer| vec![("sleep 60; tail log", answer.as_str())]);
    assert_eq!(said(&goal(), poll).0, [], "slow work whose output changes");
    let edits: Vec<String> = (0..40).map(|at| format!("edit {at}")).collect();
    let working = edits.iter().flat_map(|edit| [vec![STATUS], vec![(edit.as_str(), "ok")]]);
    assert_eq!(said(&goal(), working).0, [], "equal calls between new ones");
    let (nudged, goal) = said(&goal(), vec![vec![STATUS]; 5]);
    assert_eq!(nudged, [BatchDecision::Nudge(3)]);
    let again = [vec![("git diff", "new")]].into_iter().chain(vec![vec![("git diff", "new")]; 2]);
    assert_eq!(said(&goal, again).0, [BatchDecision::Nudge(3)], "the next repetition is nudged again");
}

#[test]
fn a_call_and_its_answer_count_the_same_in_one_pass_and_in_two() {
    let mut goal = goal();
    for turn in 0..6 {
        let lines = side_by_side(&[STATUS], turn);
        if turn % 2 == 0 {
            count_calls(&mut goal, &lines);
        } else {
            lines.chunks(1).for_each(|line| count_calls(&mut goal, line));
        }
    }
    assert_eq!((goal.same_calls, goal.open_calls), (5, None));
}

#[test]
fn the_end_of_a_turn_pauses_a_goal_whose_last_call_was_read_there() {
    let mut goal = goal();
    (0..10).for_each(|turn| count_calls(&mut goal, &side_by_side(&[STATUS], turn)));
    let (paused, decision) = stop(&goal, &work());
    assert_eq!((decision, paused.state()), (Decision::Repeats(10), "paused (no_progress)".into()));
}

#[test]
fn what_is_kept_of_tool_calls_is_bounded() {
    let mut goal = goal();
    for turn in 0..100 {
        let mut lines = side_by_side(&[("true", "")], turn);
        lines.truncate(1 + turn % 2);
        count_calls(&mut goal, &lines);
    }
    assert!(goal.recent_calls.len() <= 32 && goal.open_calls.unwrap().len() <= 32 * 34);
}
