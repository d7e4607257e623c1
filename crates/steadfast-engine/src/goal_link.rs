//! The observer that links a run of `steadfast run` to its goal. The goal is a record like every other, under a session
//! of its own (`run-ID`). After every saved step it is updated from the run, with the evidence of the checks. Pausing or
//! completing the goal by hand ends the run.

use std::path::{Path, PathBuf};

use steadfast_model::clock::Millis;
use steadfast_model::goal::proof::Evidence;
use steadfast_model::goal::{Actor, GoalStatus, change};
use steadfast_model::host::Host;
use steadfast_model::run::{AgentKind, AttemptId, Plan, Rule, Run, RunReason, RunStatus, Stopping, name};
use steadfast_model::text;
use steadfast_store::{Origin, RunRow, Session, Store, StoreError};
use steadfast_system::bounded;
use steadfast_system::process::{self, ProcessId};

use crate::attempt::Attempt;
use crate::observer::{Observer, PromptValues, SavedStep};
use crate::run_folder::RunFolder;
use crate::{crash, outage};

/// Evidence contains only the tails of outputs.
const EVIDENCE_BYTES: u64 = 16 << 20;
const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "run" };

/// Updates the goal of a run.
pub struct GoalLink {
    store: Store,
    home: PathBuf,
    session_id: String,
    has_begun: bool,
}

/// The host whose commands the hints of a goal name.
pub fn host_of(agent: &AgentKind) -> Host {
    match agent {
        AgentKind::Host(host) => *host,
        AgentKind::Command(_) => Host::default(),
    }
}

/// The session of a run's goal, if the run pursues one.
pub fn session_of(row: &RunRow) -> Option<String> {
    row.plan.pursues_goal().then(|| name::of_goal(&row.run_id))
}

/// Whether a plan pursues a goal with verify commands.
pub fn is_verified_goal(plan: &Plan) -> bool {
    plan.pursues_goal() && plan.stages.iter().any(|stage| matches!(stage.completion, Rule::Verify(_)))
}

impl GoalLink {
    /// The link of a run to its goal, if it pursues one.
    pub fn of_run(home: &Path, store: &Path, row: &RunRow) -> Result<Option<Self>, StoreError> {
        let Some(session_id) = session_of(row) else { return Ok(None) };
        Ok(Some(Self { store: Store::open_existing(store)?, home: home.to_owned(), session_id, has_begun: false }))
    }

    /// Updates the goal from a run without an engine.
    pub fn show(&mut self, row: &RunRow, now: Millis) -> Result<(), StoreError> {
        self.update_goal(&row.run_id, &row.plan, &row.run, None, now)
    }

    /// Updates the goal from a step. Doing it again changes nothing.
    fn update(&mut self, step: &SavedStep<'_>) -> Result<(), StoreError> {
        let is_first = !self.has_begun;
        let is_over = step.run.status != RunStatus::Running;
        if is_first || is_over {
            self.put_session(step, is_over)?;
        }
        let is_resumed = is_first && !is_over;
        let resumed_by = is_resumed.then(|| if process::is_inside_agent() { Actor::Worker } else { Actor::User });
        self.update_goal(step.run_id, step.plan, step.run, resumed_by, step.now)?;
        self.has_begun = true;
        Ok(())
    }

    /// Writes evidence and numbers in one transaction, so that each counted iteration has its evidence once.
    fn update_goal(
        &mut self,
        run_id: &str,
        plan: &Plan,
        run: &Run,
        resumed_by: Option<Actor>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let evidence = self.uncounted_evidence(run_id, run)?;
        let session_id = &self.session_id;
        self.store.write(|db| {
            let live = db.goal(session_id)?.filter(|goal| goal.status.is_live());
            let Some(mut goal) = live else { return Ok(()) };
            let counted = goal.continuations_used;
            for (_, runs) in evidence.iter().filter(|(iteration, _)| i64::from(*iteration) > counted) {
                goal = db.record_evidence(&goal, runs, ORIGIN, now)?;
                crash::point(crash::CrashPoint::EvidenceKept);
            }
            if let Some(change) = change::follow_run(&goal, plan, run, resumed_by, now) {
                db.save(&goal, change, ORIGIN)?;
            }
            Ok(())
        })
    }

    /// Saves the session of the goal, with the engine as its client: while the engine lives, the goal is no orphan.
    fn put_session(&mut self, step: &SavedStep<'_>, is_over: bool) -> Result<(), StoreError> {
        let project = step.project.display().to_string();
        let agent = step.plan.stages.first().map(|stage| &stage.agent.kind);
        let session = Session {
            session_id: self.session_id.clone(),
            host: agent.map_or_else(Host::default, host_of),
            cwd: project.clone(),
            project_dir: project,
            transcript_path: String::new(),
            client: Some(ProcessId::own()),
            parent_session_id: None,
            parent_link: None,
            last_prompt_ms: None,
            started_at_ms: step.run.started_at_ms,
            last_seen_ms: step.now,
            ended_at_ms: is_over.then_some(step.now),
            end_reason: step.run.reason.clone().filter(|_| is_over),
            ..Session::default()
        };
        self.store.write(|db| db.put_session(&session))
    }

    /// The evidence of iterations that the goal has not counted yet, with their numbers.
    fn uncounted_evidence(&self, run_id: &str, run: &Run) -> Result<Vec<(u32, Vec<Evidence>)>, StoreError> {
        let Some(goal) = self.store.read().goal(&self.session_id)? else { return Ok(Vec::new()) };
        let counted = u32::try_from(goal.continuations_used).unwrap_or(u32::MAX);
        let committed = run.stages.first().map_or(0, |stage| stage.iterations);
        if goal.verify.is_empty() || committed <= counted {
            return Ok(Vec::new());
        }
        let rows = self.store.read().run_history(run_id, Some((1, counted)), usize::MAX)?;
        // The caller's state may be older than the history.
        let rows = rows.into_iter().filter(|row| row.id.iteration <= committed);
        let kept = rows.filter_map(|row| {
            let bytes = bounded::whole(&Attempt::at(&self.home, run_id, row.id).evidence(), EVIDENCE_BYTES).ok()?;
            Some((row.id.iteration, serde_json::from_slice::<Vec<Evidence>>(&bytes).ok()?))
        });
        Ok(kept.filter(|(_, runs)| !runs.is_empty()).collect())
    }
}

impl Observer for GoalLink {
    fn saved(&mut self, step: &SavedStep<'_>, notes: &mut Vec<String>) {
        let log = |message: &str| RunFolder::at(step.home, step.run_id).log(message);
        // After the last step, no later one would update the goal.
        let updated = outage::wait_for_store(|| step.pending.any(), log, || self.update(step));
        if let Err(error) = updated {
            notes.push(format!("cannot update the goal: {error}"));
        }
    }

    /// A goal that a person paused, abandoned or completed ends its run.
    fn stop_requested(&mut self, _notes: &mut Vec<String>) -> Option<Stopping> {
        let goal = self.store.read().goal(&self.session_id).ok().flatten()?;
        let (status, reason) = match goal.status {
            GoalStatus::Active => return None,
            GoalStatus::Complete => (RunStatus::Completed, RunReason::GoalCompleted),
            GoalStatus::Abandoned => (RunStatus::Killed, RunReason::GoalAbandoned),
            GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::BudgetLimited => {
                (RunStatus::Killed, RunReason::GoalPaused)
            }
        };
        Some(Stopping { status, reason: reason.into() })
    }

    fn add_prompt_values(&self, _plan: &Plan, _run: &Run, _id: AttemptId, values: &mut PromptValues) {
        let goal = self.store.read().goal(&self.session_id).ok().flatten();
        values.objective = goal.map(|goal| text::escape_xml(&goal.objective)).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::run::{RunKind, RunLimits, RunPurpose, StagePlan};

    use super::*;

    fn plan(title: &str, purpose: RunPurpose) -> Plan {
        Plan {
            name: "run-1".into(),
            kind: RunKind::Loop,
            title: title.into(),
            pipeline_file: None,
            stages: vec![StagePlan::new(title, Rule::Verify(vec!["true".into()]), 3)],
            limits: RunLimits::default(),
            purpose,
        }
    }

    #[test]
    fn a_plan_records_whether_it_pursues_a_goal() {
        let goal = plan("any title", RunPurpose::Goal);
        assert!(goal.pursues_goal() && is_verified_goal(&goal));
        assert!(!plan("work", RunPurpose::Definition).pursues_goal());
    }

    #[test]
    fn a_goal_run_of_an_earlier_version_is_recognised_by_its_title() {
        let mut stored = serde_json::to_value(plan(Plan::GOAL_TITLE, RunPurpose::Definition)).unwrap();
        stored.as_object_mut().unwrap().remove("purpose").unwrap();
        let mut earlier: Plan = serde_json::from_value(stored).unwrap();
        assert!(earlier.pursues_goal());
        earlier.stages[0].loop_type = Some("goal".into());
        assert!(!earlier.pursues_goal(), "a loop type may be called `goal`");
    }
}
