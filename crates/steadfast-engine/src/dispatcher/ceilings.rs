//! What limits more than this run: the caps of the configuration, and the quota of the user's plan.

use steadfast_hosts::stream;
use steadfast_model::clock;
use steadfast_model::limit::{Axis, CapScope, Spend};
use steadfast_model::quota;
use steadfast_model::run::{AgentKind, AttemptId, AttemptUsage, FailureKind, Outcome, RunEvent};
use steadfast_store::spend::{self, Spender};

use super::{Dispatcher, DriveError, without_agent};
use crate::attempt::Attempt;

impl Dispatcher<'_, '_> {
    /// Applies the caps before the next agent starts; `usage` is not saved yet.
    pub(super) fn check_caps(&mut self, usage: &AttemptUsage) -> Result<(), DriveError> {
        let unsaved = Spend { tokens: usage.tokens.charged(), cost_micros: usage.cost_micros };
        let spent = Spend {
            tokens: self.run.tokens.saturating_add(unsaved.tokens),
            cost_micros: self.run.cost_micros.saturating_add(unsaved.cost_micros),
        };
        let (caps, spender) = (&self.engine.config.limits.caps, Spender::Run { spent, unsaved });
        let near = self.with_store(|store| {
            let now = clock::now();
            spend::keep_periods(store, caps, now)?;
            spend::standings(store.read(), caps, spender, now)
        })?;
        if let Some(cap) = near.iter().find(|cap| cap.standing.is_reached()).filter(|_| !self.run.capped) {
            self.observers.note(&format!("cap reached: {}", cap.describe()));
            self.apply(RunEvent::CapReached)?;
        }
        Ok(())
    }

    /// Stores what an attempt used of each model and what it says about the user's plan. The agent's files are read only
    /// if a limit needs that.
    pub(super) fn note_details(&mut self, id: AttemptId, outcome: &Outcome) -> Result<(), DriveError> {
        let has_model_caps = self.engine.config.limits.caps.iter().any(|cap| matches!(cap.scope, CapScope::Model(..)));
        let Some(AgentKind::Host(host)) =
            self.plan.stage(id.stage).map(|stage| stage.agent_of(id.iteration).kind.clone())
        else {
            return Ok(());
        };
        if !has_model_caps && self.most_of_plan().is_none() {
            return Ok(());
        }
        let (started, ended) = match outcome {
            Outcome::Succeeded(success) => (success.started_at_ms, success.ended_at_ms),
            Outcome::Failed(failed) => (failed.started_at_ms.unwrap_or(failed.ended_at_ms), failed.ended_at_ms),
        };
        let output = Attempt::at(&self.engine.home, &self.run_id, id).output();
        let Ok(printed) = stream::read(host, &output) else {
            return Ok(());
        };
        let details = stream::session_details(host, &printed, started, ended);
        let models: Vec<(String, Spend)> = details.models.into_iter().collect();
        let run_id = self.run_id.clone();
        self.with_store(|store| {
            store.write(|db| {
                db.put_run_models(&run_id, id, &models, ended)?;
                db.news_of_quota(host, &details.quotas)?.iter().try_for_each(|quota| db.put_quota(host, quota))
            })
        })?;
        Ok(())
    }

    /// How much of the plan the run may use, in percent.
    fn most_of_plan(&self) -> Option<i64> {
        let own = self.plan.limits.limits.get(Axis::Plan);
        own.into_iter().chain(self.engine.config.limits.plan_percent).min()
    }

    /// The outcome of an attempt that is not started because the plan is used as far as the user allows: the run waits
    /// for the reset, as it does when the client refuses.
    pub(super) fn held_by_plan(&mut self, id: AttemptId) -> Option<Outcome> {
        let most = self.most_of_plan()?;
        let Some(AgentKind::Host(host)) =
            self.plan.stage(id.stage).map(|stage| stage.agent_of(id.iteration).kind.clone())
        else {
            return None;
        };
        // What cannot be read is unknown, and stops nothing.
        let quotas = self.with_store(|store| store.read().quotas(host)).unwrap_or_default();
        let quota = quota::fuller(&quotas, clock::now()).filter(|quota| quota.used_percent >= most)?;
        let kind = FailureKind::UsageLimit { until_ms: quota.resets_at_ms };
        Some(without_agent(kind, format!("{}, the limit is {most} %", quota.describe())))
    }
}
