//! Goals and runs that ended a short while ago.

use super::{EndedCard, RecentEnding, goals};
use crate::overview::runs::RunView;
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::price::dollars;
use steadfast_model::run::{RunKind, RunReason, RunStatus, name};
use steadfast_model::text;
use steadfast_store::{Db, RunLine, StoreError};

/// The newest goals among which those that ended are found.
const GOALS_SEEN: usize = 200;

pub(super) fn ended(db: Db<'_>, runs: &[RunLine], most: usize) -> Result<Vec<EndedCard>, StoreError> {
    let mut cards = Vec::new();
    for found in db.newest_goals(None, GOALS_SEEN)? {
        // A run's goal ends with its run.
        if name::is_of_goal(&found.session_id) {
            continue;
        }
        let goal = db.goal_at_row(&found)?.filter(|goal| !goal.status.is_live());
        cards.extend(goal.as_ref().map(of_goal));
    }
    cards.extend(runs.iter().filter(|line| line.status != RunStatus::Running).cloned().map(of_run));
    cards.sort_by_key(|card| std::cmp::Reverse(card.at_ms));
    cards.truncate(most);
    Ok(cards)
}

fn of_goal(goal: &Goal) -> EndedCard {
    let ending = match goal.status {
        GoalStatus::Abandoned => RecentEnding::Abandoned,
        _ if goal.is_unverified() => RecentEnding::Unverified,
        // A person who signs off agrees with the agent; one who ends a goal by hand may know better than its checks.
        _ if goal.completed_by == Some(CompletedBy::User) && !goal.sign_off => RecentEnding::Completed,
        _ => RecentEnding::Verified,
    };
    EndedCard {
        subject: goals::subject(goal),
        title: goal.objective.clone(),
        project: goal.project_dir.clone(),
        ending,
        reason: goal.completed_by.map(|by| <&str>::from(by).replace('_', " ")),
        at_ms: goal.updated_at_ms,
        tokens: Some(goal.total_tokens()),
        cost_usd: (goal.unpriced_tokens == 0).then(|| dollars(goal.cost_micros)),
        seconds: goal.active_seconds(goal.updated_at_ms),
    }
}

fn of_run(line: RunLine) -> EndedCard {
    let at_ms = line.completed_at_ms.unwrap_or(line.updated_at_ms);
    let seconds = (at_ms - line.started_at_ms).max(0) / 1_000;
    let reason = line.reason.as_deref().and_then(RunReason::parse);
    let ending = match line.status {
        RunStatus::Killed => RecentEnding::Killed,
        RunStatus::Completed if reason.is_some_and(is_limited) => RecentEnding::Limited,
        RunStatus::Completed => RecentEnding::Completed,
        _ => RecentEnding::Failed,
    };
    let run = RunView::new(line, false);
    let kind = if run.kind == RunKind::Loop { "loop" } else { "pipeline" };
    EndedCard {
        subject: super::runs::subject(&run),
        title: format!("{kind} {}", run.name),
        project: Some(run.project.clone()),
        ending,
        reason: run.reason.as_deref().map(|reason| text::headline(reason, 120)),
        at_ms,
        tokens: run.tokens,
        cost_usd: run.cost.map(|cost| dollars(cost.0)),
        seconds,
    }
}

fn is_limited(reason: RunReason) -> bool {
    reason.is_limit() || reason == RunReason::MaxIterations
}
