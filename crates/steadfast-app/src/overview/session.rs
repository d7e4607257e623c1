//! The read model of sessions, for `steadfast session`. Scripts rely on the field names; `docs/schema/` describes them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use super::{GoalView, goal_view};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::memory::stated::{StatedGoal, StatedStatus};
use steadfast_model::memory::{Category, GoalSummary, MemoryEvent, Task};
use steadfast_model::text;
use steadfast_store::{Db, ParentLink, Session, SessionActivity, Snapshot, StoreError};
use steadfast_system::paths::Paths;

/// A session with all that is known about it.
#[derive(Debug, Clone, Serialize)]
pub struct SessionView {
    pub session_id: String,
    pub host: Host,
    pub project: Option<String>,
    pub cwd: Option<String>,
    /// Whether its client still runs, as far as the system shows it.
    pub alive: bool,
    pub goal: Option<GoalView>,
    /// The goal that the user stated in a prompt, here or in the session that this one was forked from.
    pub stated_goal: Option<StatedGoal>,
    /// All that were stated here, oldest first, whatever became of them.
    pub stated_goals: Vec<StatedGoal>,
    /// How many events of each category are kept; one that was seen several times in a row is one event.
    pub events: BTreeMap<Category, i64>,
    /// The same with the headings that people see.
    pub analytics: Vec<Counted>,
    pub tasks: Vec<Task>,
    /// Open tasks for which there was no room.
    pub tasks_left_out: i64,
    pub parent: Option<Parent>,
    pub compactions: i64,
    pub snapshot: Option<SnapshotView>,
    pub started_at_ms: Option<Millis>,
    pub last_seen_ms: Option<Millis>,
    pub last_active_ms: Millis,
    pub ended_at_ms: Option<Millis>,
    pub end_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub category: Category,
    pub label: &'static str,
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parent {
    pub session_id: String,
    pub link: Option<ParentLink>,
}

/// The stored snapshot without its text, which `session snapshot` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotView {
    pub characters: usize,
    pub written_at_ms: Millis,
    pub injected_at_ms: Option<Millis>,
    pub injected_by: Option<String>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize)]
pub struct SessionLine {
    pub session_id: String,
    pub host: Host,
    pub project: Option<String>,
    pub alive: bool,
    /// All categories together.
    pub events: i64,
    pub goal: Option<GoalLine>,
    pub stated_goal: Option<StatedLine>,
    pub parent: Option<Parent>,
    pub started_at_ms: Option<Millis>,
    pub last_active_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoalLine {
    pub goal_id: String,
    pub status: GoalStatus,
    pub objective: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedLine {
    pub status: StatedStatus,
    pub objective: String,
}

/// Builds the view of a session; `None` when nothing at all is known about it.
pub fn session_view(
    db: Db<'_>,
    session_id: &str,
    paths: &Paths,
    now: Millis,
) -> Result<Option<SessionView>, StoreError> {
    let activity = db.session_activity(session_id)?;
    let goal = db.goal(session_id)?;
    let counts = db.counts_by_category(session_id)?;
    let snapshot = db.snapshot(session_id)?;
    let stated_goal = db.stated_goal(session_id)?;
    let stated_goals = db.stated_history(session_id)?;
    let tasks = db.tasks_of(session_id)?;
    let unknown = activity.session.is_none() && goal.is_none() && counts.is_empty() && snapshot.is_none();
    if unknown && tasks.is_empty() && stated_goals.is_empty() {
        return Ok(None);
    }
    let session = activity.session.as_ref();
    Ok(Some(SessionView {
        session_id: session_id.to_owned(),
        host: host(session, goal.as_ref()),
        project: project(session, goal.as_ref()),
        cwd: session.map(|session| session.cwd.clone()).filter(|cwd| !cwd.is_empty()),
        alive: session.is_some_and(Session::is_alive),
        goal: goal.as_ref().map(|goal| goal_view(db, goal, paths, now)).transpose()?,
        stated_goal,
        stated_goals,
        events: counts.iter().copied().collect(),
        analytics: counts
            .into_iter()
            .map(|(category, count)| Counted { category, label: category.label(), count })
            .collect(),
        tasks,
        tasks_left_out: db.tasks_left_out(session_id)?,
        parent: session.and_then(parent),
        compactions: snapshot.as_ref().map_or(0, |snapshot| snapshot.compactions),
        snapshot: snapshot.and_then(snapshot_view),
        started_at_ms: session.map(|session| session.started_at_ms),
        last_seen_ms: session.map(|session| session.last_seen_ms),
        last_active_ms: activity.last_active_ms,
        ended_at_ms: session.and_then(|session| session.ended_at_ms),
        end_reason: session.and_then(|session| session.end_reason.clone()),
    }))
}

pub fn session_line(db: Db<'_>, known: &SessionActivity) -> Result<SessionLine, StoreError> {
    let session = known.session.as_ref();
    let goal = db.goal(&known.session_id)?;
    let stated = db.stated_goal(&known.session_id)?;
    Ok(SessionLine {
        session_id: known.session_id.clone(),
        host: host(session, goal.as_ref()),
        project: project(session, goal.as_ref()),
        alive: session.is_some_and(Session::is_alive),
        events: db.counts_by_category(&known.session_id)?.iter().map(|(_, count)| count).sum(),
        goal: goal.map(|goal| GoalLine { goal_id: goal.goal_id, status: goal.status, objective: goal.objective }),
        stated_goal: stated.map(|goal| StatedLine { status: goal.status, objective: goal.objective }),
        parent: session.and_then(parent),
        started_at_ms: session.map(|session| session.started_at_ms),
        last_active_ms: known.last_active_ms,
    })
}

/// An event of a session's memory as scripts see it.
pub fn remembered_view(event: &MemoryEvent) -> Value {
    json!({
        "id": event.id, "ts": clock::to_rfc3339(event.created_at_ms), "session_id": event.session_id,
        "category": event.category, "kind": event.kind, "importance": event.importance, "subject": event.subject,
        "text": event.text, "repeats": event.repeats, "resolved": event.resolved, "created_at_ms": event.created_at_ms,
    })
}

/// The names of all categories, for options and tools.
pub fn category_names() -> Vec<&'static str> {
    Category::iter().map(Into::into).collect()
}

/// The summary of a live goal for the model. It does not depend on the clock: the same state gives the same words.
pub fn kept_goal(goal: &Goal) -> Option<GoalSummary> {
    if !goal.status.is_live() {
        return None;
    }
    let budget =
        goal.limits.get(Axis::Tokens).map(|budget| format!(" of {}", text::short_number(budget))).unwrap_or_default();
    let standing = format!(
        "{} · {}{budget} tokens · {}",
        goal.state(),
        text::short_number(goal.total_tokens()),
        text::count(goal.continuations_used, "turn"),
    );
    Some(GoalSummary {
        objective: goal.objective.clone(),
        standing,
        active: goal.status == GoalStatus::Active,
        set_at_ms: goal.created_at_ms,
    })
}

fn host(session: Option<&Session>, goal: Option<&Goal>) -> Host {
    session.map(|session| session.host).or(goal.map(|goal| goal.host)).unwrap_or_default()
}

fn project(session: Option<&Session>, goal: Option<&Goal>) -> Option<String> {
    let named = session.and_then(Session::project).map(str::to_owned);
    named.or_else(|| goal.and_then(|goal| goal.project_dir.clone()))
}

fn parent(session: &Session) -> Option<Parent> {
    let session_id = session.parent_session_id.clone()?;
    Some(Parent { session_id, link: session.parent_link })
}

fn snapshot_view(snapshot: Snapshot) -> Option<SnapshotView> {
    // A row may only count compactions.
    if snapshot.text.is_empty() && snapshot.injected_at_ms.is_none() {
        return None;
    }
    Some(SnapshotView {
        characters: snapshot.text.chars().count(),
        written_at_ms: snapshot.written_at_ms,
        injected_at_ms: snapshot.injected_at_ms,
        injected_by: snapshot.injected_by,
    })
}
