//! `steadfast run`: a goal that a loop pursues. The goal is a record like every other, under a session of its own
//! (`run-ID`); after every saved step it is brought up to date with the run, with the evidence of the checks. Pausing
//! or completing the goal by hand ends the run.

use std::path::{Path, PathBuf};

use steadfast_core::action;
use steadfast_core::bounded;
use steadfast_core::clock::Millis;
use steadfast_core::goal::{Actor, GoalStatus, change};
use steadfast_core::host::Host;
use steadfast_core::host::process::{self, ProcessId};
use steadfast_core::run::name;
use steadfast_core::run::{AgentKind, AttemptId, Plan, Rule, Run, RunKind, RunStatus, Stopping};
use steadfast_core::store::{Origin, RunRow, Session, Store, StoreError, Verification};
use steadfast_core::text;

use crate::attempt::Attempt;
use crate::crash;
use crate::dispatcher::Saved;
use crate::processes::Identity;

/// What loops of this kind are called where others show their type.
pub const TITLE: &str = "goal";
/// Outputs in it are tails.
const MOST_EVIDENCE: u64 = 16 << 20;
const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "run" };

/// Keeps the goal of a run up to date.
pub struct Pursuit {
    store: Store,
    home: PathBuf,
    session_id: String,
    has_begun: bool,
}

/// Whose words a goal's hints are in.
pub fn host_of(agent: &AgentKind) -> Host {
    match agent {
        AgentKind::Host(host) => *host,
        AgentKind::Command(_) => Host::default(),
    }
}

/// Loop types have names; the loop behind a goal is of none.
fn is_goal(plan: &Plan) -> bool {
    plan.kind == RunKind::Loop && plan.title == TITLE && plan.stages.iter().all(|stage| stage.loop_type.is_none())
}

/// The session that a run's goal belongs to, if the run pursues one.
pub fn session_of(row: &RunRow) -> Option<String> {
    is_goal(&row.plan).then(|| name::of_goal(&row.run_id))
}

impl Pursuit {
    /// The goal of a run, if it pursues one.
    pub fn of_run(home: &Path, store: &Path, row: &RunRow) -> Result<Option<Self>, StoreError> {
        let Some(session_id) = session_of(row) else { return Ok(None) };
        Ok(Some(Self { store: Store::open_existing(store)?, home: home.to_owned(), session_id, has_begun: false }))
    }

    /// Whether a plan is that of a goal with checks.
    pub fn is_verified_goal(plan: &Plan) -> bool {
        is_goal(plan) && plan.stages.iter().any(|stage| matches!(stage.completion, Rule::Verify(_)))
    }

    /// The objective as prompts may show it.
    pub fn objective(&self) -> String {
        let goal = self.store.read().goal(&self.session_id).ok().flatten();
        goal.map(|goal| text::escape_xml(&goal.objective)).unwrap_or_default()
    }

    /// Brings the goal up to date with a step. Doing it again changes nothing.
    pub fn stepped(&mut self, saved: &Saved<'_>) -> Result<(), StoreError> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let is_over = saved.run.status != RunStatus::Running;
        if is_first || is_over {
            self.put_session(saved, is_over)?;
        }
        let is_taken_up = is_first && !is_over;
        let taken_up_by = is_taken_up.then(|| if process::is_inside_agent() { Actor::Worker } else { Actor::User });
        self.follow(saved.run_id, saved.plan, saved.run, taken_up_by, saved.now)
    }

    /// Brings the goal up to date with a run that nobody drives any more.
    pub fn show(&mut self, row: &RunRow, now: Millis) -> Result<(), StoreError> {
        self.follow(&row.run_id, &row.plan, &row.run, None, now)
    }

    /// Evidence and count are written as one: what is counted has its evidence, and has it once.
    fn follow(
        &mut self,
        run_id: &str,
        plan: &Plan,
        run: &Run,
        taken_up_by: Option<Actor>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let evidence = self.uncounted_evidence(run_id, run)?;
        let session_id = &self.session_id;
        self.store.write(|db| {
            let live = db.goal(session_id)?.filter(|goal| goal.status.is_live());
            let Some(mut goal) = live else { return Ok(()) };
            let counted = goal.continuations_used;
            for (_, runs) in evidence.iter().filter(|(iteration, _)| i64::from(*iteration) > counted) {
                goal = action::record_evidence(db, &goal, runs, ORIGIN, now)?;
                crash::point(crash::Point::EvidenceKept);
            }
            if let Some(change) = change::follow_run(&goal, plan, run, taken_up_by, now) {
                db.save(&goal, change, ORIGIN)?;
            }
            Ok(())
        })
    }

    /// While the engine lives, so does the goal's session: it is nobody's orphan.
    fn put_session(&mut self, saved: &Saved<'_>, is_over: bool) -> Result<(), StoreError> {
        let own = Identity::own();
        let project = saved.project.display().to_string();
        let agent = saved.plan.stages.first().map(|stage| &stage.agent.kind);
        let session = Session {
            session_id: self.session_id.clone(),
            host: agent.map_or_else(Host::default, host_of),
            cwd: project.clone(),
            project_dir: project,
            transcript_path: String::new(),
            client: Some(ProcessId { pid: i64::from(own.pid), started: own.started.parse().unwrap_or(0) }),
            parent_session_id: None,
            parent_link: None,
            last_prompt_ms: None,
            started_at_ms: saved.run.started_at_ms,
            last_seen_ms: saved.now,
            ended_at_ms: is_over.then_some(saved.now),
            end_reason: saved.run.reason.clone().filter(|_| is_over),
        };
        self.store.write(|db| db.put_session(&session))
    }

    /// The evidence of iterations that the goal has not counted yet, with their numbers.
    fn uncounted_evidence(&self, run_id: &str, run: &Run) -> Result<Vec<(u32, Vec<Verification>)>, StoreError> {
        let Some(goal) = self.store.read().goal(&self.session_id)? else { return Ok(Vec::new()) };
        let counted = u32::try_from(goal.continuations_used).unwrap_or(u32::MAX);
        let committed = run.stages.first().map_or(0, |stage| stage.iterations);
        if goal.verify.is_empty() || committed <= counted {
            return Ok(Vec::new());
        }
        let rows = self.store.read().run_history(run_id, Some((1, counted)), usize::MAX)?;
        // Only what the caller's state has is counted with it.
        let rows = rows.into_iter().filter(|row| row.id.iteration <= committed);
        let kept = rows.map(|row| (row.id.iteration, self.evidence(run_id, row.id)));
        Ok(kept.filter(|(_, runs)| !runs.is_empty()).collect())
    }

    fn evidence(&self, run_id: &str, id: AttemptId) -> Vec<Verification> {
        let kept = bounded::whole(&Attempt::at(&self.home, run_id, id).evidence(), MOST_EVIDENCE).ok();
        kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// A goal that a person paused, gave up or completed is not pursued any more.
    pub fn stop_requested(&mut self) -> Option<Stopping> {
        let goal = self.store.read().goal(&self.session_id).ok().flatten()?;
        let (status, reason) = match goal.status {
            GoalStatus::Active => return None,
            GoalStatus::Complete => (RunStatus::Completed, "goal_completed"),
            GoalStatus::Abandoned => (RunStatus::Killed, "goal_abandoned"),
            GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::BudgetLimited => (RunStatus::Killed, "goal_paused"),
        };
        Some(Stopping { status, reason: reason.to_owned() })
    }
}
