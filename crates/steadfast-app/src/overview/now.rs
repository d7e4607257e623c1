//! The read model of the first page, of `steadfast top` and of the metrics: what needs the user, what works, what waits
//! and what ended. Times are steady times; a view converts them when it shows them.

mod ended;
pub mod fleet;
mod goals;
mod header;
pub(crate) mod pace;
mod runs;

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use super::runs::RunView;
use super::{GoalView, ItemView, Today};
use crate::liveness;
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::run::{RunKind, RunStatus, StageStatus, name};
use steadfast_store::{Db, RunFilter, RunLine, StoreError};
use steadfast_system::paths::Paths;

pub use pace::{Point, SpendPace};

/// Live goals and runs that are shown with all their details; the rest is counted.
const SHOWN: usize = 60;
/// Goals and runs that ended.
const ENDED_SHOWN: usize = 20;
/// The newest runs among which those that ended are found.
const RUNS_SEEN: usize = 200;

/// Everything on the first page.
#[derive(Debug, Clone, Serialize)]
pub struct Now {
    pub at_ms: Millis,
    pub header: Header,
    /// Oldest first.
    pub needs: Vec<UserNeed>,
    pub working: Vec<GoalCard>,
    pub runs: Vec<RunCard>,
    /// The next to wake first.
    pub waiting: Vec<WaitCard>,
    /// Newest first.
    pub ended: Vec<EndedCard>,
    /// Live goals that are in none of the lists, because there are too many.
    pub goals_left_out: usize,
    pub runs_left_out: usize,
    /// Runs on the fleet, if this machine belongs to one. The view asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<fleet::FleetCard>,
}

/// What everything on this machine used today.
#[derive(Debug, Clone, Serialize)]
pub struct Header {
    pub live_goals: usize,
    pub live_runs: usize,
    pub today_tokens: i64,
    /// Null if a part of it is not known.
    pub today_cost_usd: Option<f64>,
    /// All caps of `[limits]` over the machine, also those that are far away.
    pub caps: Vec<CapView>,
    pub plan: Vec<PlanView>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CapView {
    pub name: String,
    pub used: String,
    pub most: String,
    pub percent: i64,
    pub is_reached: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct PlanView {
    pub host: Host,
    /// `five_hour` or `weekly`.
    pub window: &'static str,
    pub noun: &'static str,
    pub used_percent: i64,
    pub resets_at_ms: Option<Millis>,
}

/// What a card is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum Subject {
    Goal {
        goal_id: String,
        session_id: String,
        host: Host,
    },
    Run {
        run_id: String,
        name: String,
        /// A card may have a kind of its own.
        #[serde(rename = "run_kind")]
        kind: RunKind,
    },
    /// A run that `steadfast watch` starts later.
    Appointment {
        name: String,
        #[serde(rename = "run_kind")]
        kind: RunKind,
    },
}

/// What a person can do from a view. `steadfast-views` turns it into a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Pause,
    Resume,
    Extend,
    Verify,
    /// Complete by the person's word; for a goal that waits for a sign-off, sign it off.
    Complete,
    Abandon,
    Reconcile,
    Adopt,
    QueueMove,
    QueueDrop,
    Kill,
    Approve,
    Reject,
    Say,
}

/// Why a goal or run needs the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    Blocked,
    SignOff,
    Approval,
    Stalled,
    Limit,
    /// A completion was refused at least twice in a row.
    Refused,
    /// Paused for a reason that only a person can settle: no progress, accounting, an error.
    Paused,
    EngineGone,
}

#[derive(Debug, Clone, Serialize)]
pub struct UserNeed {
    pub kind: NeedKind,
    #[serde(flatten)]
    pub subject: Subject,
    /// The objective or the name of the run.
    pub title: String,
    pub project: Option<String>,
    pub since_ms: Millis,
    /// What is the matter, in a sentence.
    pub why: String,
    /// What to type in a terminal, or to do in the client.
    pub hint: String,
    /// Of a sign-off.
    pub items: Vec<ItemView>,
    /// The stage that waits, of an approval.
    pub stage: Option<u32>,
    pub actions: Vec<Action>,
}

/// How much of one limit is used.
#[derive(Debug, Clone, Serialize)]
pub struct LimitBar {
    pub axis: Axis,
    pub used: String,
    pub most: String,
    /// 0 to 100, or more.
    pub percent: i64,
}

/// The last thing that the agent was seen to do.
#[derive(Debug, Clone, Serialize)]
pub struct Doing {
    pub what: String,
    pub at_ms: Millis,
}

/// A goal that works.
#[derive(Debug, Clone, Serialize)]
pub struct GoalCard {
    pub goal: GoalView,
    /// The limit that will be reached first comes first.
    pub limits: Vec<LimitBar>,
    /// Null while nothing was spent.
    pub pace: Option<SpendPace>,
    /// Tokens spent so far, over time; at most 60 points.
    pub burn: Vec<Point>,
    pub doing: Option<Doing>,
    pub actions: Vec<Action>,
}

/// One stage in the row of a run.
#[derive(Debug, Clone, Serialize)]
pub struct StageDot {
    pub name: String,
    pub status: StageStatus,
}

#[derive(Debug, Clone, Serialize)]
pub struct RunCard {
    #[serde(flatten)]
    pub run: RunView,
    pub stages: Vec<StageDot>,
    /// What the last iteration reported.
    pub last_summary: Option<String>,
    pub actions: Vec<Action>,
}

/// Who wakes what waits.
#[derive(Debug, Clone, Serialize)]
pub struct WaitCard {
    #[serde(flatten)]
    pub subject: Subject,
    pub title: String,
    pub project: Option<String>,
    /// `a usage limit`, `the file build.done`, `its time`.
    pub what: String,
    /// The latest moment at which it continues.
    pub until_ms: Option<Millis>,
    /// `Claude Code`, `steadfast watch`, `its engine`.
    pub woken_by: String,
    pub actions: Vec<Action>,
}

/// How a goal or run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RecentEnding {
    Verified,
    Unverified,
    Limited,
    Abandoned,
    Completed,
    Failed,
    Killed,
}

#[derive(Debug, Clone, Serialize)]
pub struct EndedCard {
    #[serde(flatten)]
    pub subject: Subject,
    pub title: String,
    pub project: Option<String>,
    pub ending: RecentEnding,
    /// The reason of a run, or who completed the goal.
    pub reason: Option<String>,
    pub at_ms: Millis,
    pub tokens: Option<i64>,
    pub cost_usd: Option<f64>,
    pub seconds: i64,
}

/// Builds the first page. `is_live` says whether an engine drives a run.
pub fn now(db: Db<'_>, paths: &Paths, is_live: &dyn Fn(&RunLine) -> bool, at: Millis) -> Result<Now, StoreError> {
    let today = Today::of(db, at)?;
    let mut page = Now {
        at_ms: at,
        header: header::header(db, paths, &today, (0, 0), at)?,
        needs: Vec::new(),
        working: Vec::new(),
        runs: Vec::new(),
        waiting: Vec::new(),
        ended: Vec::new(),
        goals_left_out: 0,
        runs_left_out: 0,
        fleet: None,
    };
    let live_runs = page.add_runs(db, is_live, at)?;
    page.add_goals(db, paths, &today, &live_runs, at)?;
    page.waiting.extend(db.appointments(None, None)?.iter().filter_map(runs::appointment));
    page.waiting.sort_by_key(|card| card.until_ms.unwrap_or(Millis::MAX));
    page.needs.sort_by_key(|need| need.since_ms);
    page.ended = ended::ended(db, &db.runs(RunFilter::default(), RUNS_SEEN)?, ENDED_SHOWN)?;
    Ok(page)
}

impl Now {
    /// Adds the runs that are not over, and returns the ids of those that an engine drives.
    fn add_runs(
        &mut self,
        db: Db<'_>,
        is_live: &dyn Fn(&RunLine) -> bool,
        at: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let filter = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
        let lines = db.runs(filter, usize::MAX)?;
        let (mut driven, shown) = (Vec::new(), lines.len().min(SHOWN));
        self.runs_left_out = lines.len() - shown;
        for (index, line) in lines.into_iter().enumerate() {
            let is_live = is_live(&line);
            driven.extend(is_live.then(|| line.run_id.clone()));
            if index >= shown {
                continue;
            }
            if let Some(live) = runs::live(db, line, is_live, at)? {
                self.needs.extend(live.needs);
                self.waiting.extend(live.wait);
                self.runs.push(live.card);
            }
        }
        self.header.live_runs = driven.len();
        Ok(driven)
    }

    fn add_goals(
        &mut self,
        db: Db<'_>,
        paths: &Paths,
        today: &Today,
        live_runs: &[String],
        at: Millis,
    ) -> Result<(), StoreError> {
        let goals = db.live_goals()?;
        self.header.live_goals = goals.len();
        let mut shown = [0_usize; 3];
        for goal in &goals {
            let goal = &liveness::by_now(db, goal, at)?;
            let runs_live = live_runs.iter().any(|run_id| name::of_goal(run_id) == goal.session_id);
            let place = goals::place(db, goal, paths, runs_live, at)?;
            let list = match place {
                Some(goals::GoalPlace::Working) => 0,
                Some(goals::GoalPlace::Waiting(_)) => 1,
                Some(goals::GoalPlace::Needs(_)) => 2,
                None => continue,
            };
            let is_full = shown.get(list).is_none_or(|count| *count >= SHOWN);
            if is_full {
                self.goals_left_out += 1;
                continue;
            }
            shown.iter_mut().skip(list).take(1).for_each(|count| *count += 1);
            match place {
                Some(goals::GoalPlace::Working) => {
                    self.needs.extend(goals::refused(db, goal, paths, at)?);
                    self.working.push(goals::card(db, goal, paths, today, at)?);
                }
                Some(goals::GoalPlace::Waiting(card)) => self.waiting.push(*card),
                Some(goals::GoalPlace::Needs(need)) => self.needs.push(*need),
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
