//! From acts to activities, timers and cancellations.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt;
use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, RunEvent};
use temporalio_workflow::{
    ActivityCancellationType, ActivityOptions, RetryPolicy, TimerOptions, WorkflowCancellationToken,
};

use super::{FlightResult, RunHost, patient, upkeep};
use crate::calls::Calls;
use crate::wire::{AttemptInput, CheckInput, ConditionInput, FinishInput, FleetAct, RUN_PLACE, attempt_key};
use crate::workflow::outcome;

/// For the repository besides the agent: fetch and push.
const SLACK: Duration = Duration::from_mins(15);
const LONGEST_CHECK: Duration = Duration::from_hours(2);

impl RunHost<'_> {
    pub(super) fn stop(&mut self, ids: &[AttemptId]) {
        for id in ids {
            if let Some(token) = self.tokens.get(&attempt_key(*id)) {
                token.cancel();
            }
        }
        // An attempt that is still held back has nothing to stop: it has ended.
        let is_held = |act: &FleetAct, id: AttemptId| matches!(act, FleetAct::Start { id: held, .. } if *held == id);
        let now = self.now();
        for id in ids {
            let before = self.acts.len();
            self.acts.retain(|(_, act)| !is_held(act, *id));
            if self.acts.len() < before {
                self.events.push_back(RunEvent::Ended { id: *id, outcome: outcome::stopped(now) });
            }
        }
    }

    pub(super) fn wake_at(&mut self, at: Millis) {
        if let Some(timer) = self.timer.take() {
            timer.cancel();
        }
        self.timers = self.timers.saturating_add(1);
        let (number, token) = (self.timers, WorkflowCancellationToken::new());
        let left = u64::try_from(at.saturating_sub(self.now())).unwrap_or(0).max(1);
        let options = TimerOptions::builder(Duration::from_millis(left)).cancellation_token(token.clone()).build();
        self.timer = Some(token);
        self.fly(self.ctx.timer(options).map(move |_| FlightResult::Woke(number)));
    }

    /// Starts what is due. While the history is about to be cut, nothing new starts.
    pub(super) fn launch(&mut self) {
        let holds = self.holds();
        let mut later = VecDeque::new();
        while let Some((after, act)) = self.acts.pop_front() {
            let is_due = match &act {
                FleetAct::Finish => self.saved >= self.seq && !self.is_finishing,
                _ => self.saved >= after && !holds,
            };
            if is_due { self.act(act) } else { later.push_back((after, act)) }
        }
        self.acts = later;
    }

    fn act(&mut self, act: FleetAct) {
        let Some(run) = self.run.clone() else { return };
        let (run_ref, heads, seq) = (self.input.run.clone(), self.heads.clone(), self.saved);
        match act {
            FleetAct::Start { id, queue, timeout_ms, deadline_ms, place, base_place } => {
                let base = self.head_of(&place, &base_place);
                self.places.insert(attempt_key(id), place);
                let notes = self.ctx.state_mut(|state| std::mem::take(&mut state.notes));
                let input = AttemptInput { run_ref, id, base, heads, seq, timeout_ms, deadline_ms, notes, run };
                let options = self.attempt_options(id, queue, timeout_ms);
                let attempted = self.ctx.execute_activity(Calls::attempt, input, options);
                self.working = self.working.saturating_add(1);
                self.fly(attempted.map(move |result| FlightResult::Attempted(id, result)));
            }
            FleetAct::Check { id, checks, queue, place, base_place } => {
                let shas = self.shas.get(&attempt_key(id)).cloned().unwrap_or_default();
                let sha = shas.sha.unwrap_or_else(|| self.head_of(&place, &base_place));
                let asked = checks.clone();
                let input = CheckInput { run_ref, id, checks, sha, heads, seq, files: shas.files, run };
                let options = self.check_options(format!("check-{}", attempt_key(id)), queue);
                let checked = self.ctx.execute_activity(Calls::check, input, options);
                self.working = self.working.saturating_add(1);
                self.fly(checked.map(move |result| FlightResult::Checked(id, asked, result)));
            }
            FleetAct::Condition { stage, queue, place, base_place } => {
                let sha = self.head_of(&place, &base_place);
                let input = ConditionInput { run_ref, stage, sha, heads, seq, run };
                let options = self.check_options(format!("condition-{stage}"), queue);
                let decided = self.ctx.execute_activity(Calls::condition, input, options);
                self.working = self.working.saturating_add(1);
                self.fly(decided.map(move |result| FlightResult::Condition(stage, result)));
            }
            FleetAct::Finish => {
                self.is_finishing = true;
                let head = self.head_of(RUN_PLACE, RUN_PLACE);
                let input = FinishInput { run_ref, head, spent: self.spent_so_far(&run, true) };
                let finished =
                    self.ctx.execute_activity(Calls::finish, input, upkeep("finish", self.input.options.heartbeat()));
                self.fly(finished.map(FlightResult::Finished));
            }
            FleetAct::Stop(_) | FleetAct::WakeAt(_) => {}
        }
    }

    pub(super) fn head_of(&self, place: &str, base_place: &str) -> String {
        let head = self.heads.get(place).or_else(|| self.heads.get(base_place)).or_else(|| self.heads.get(RUN_PLACE));
        head.unwrap_or(&self.input.run.repo.base).to_owned()
    }

    fn attempt_options(&mut self, id: AttemptId, queue: String, timeout_ms: Option<i64>) -> ActivityOptions {
        let key = attempt_key(id);
        let token = WorkflowCancellationToken::new();
        self.tokens.insert(key.clone(), token.clone());
        let timeout = timeout_ms.and_then(|timeout| u64::try_from(timeout).ok()).map(Duration::from_millis);
        let timeout = timeout.unwrap_or(Duration::from_hours(24)).saturating_add(SLACK);
        ActivityOptions::with_start_to_close_timeout(timeout)
            .activity_id(key)
            .task_queue(queue)
            .heartbeat_timeout(self.input.options.heartbeat())
            .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
            .cancellation_token(token)
            .retry_policy(handed_on())
            .build()
    }

    /// A check is repeated until it answers: it has no attempts of its own.
    fn check_options(&self, id: String, queue: String) -> ActivityOptions {
        ActivityOptions::with_start_to_close_timeout(LONGEST_CHECK)
            .activity_id(id)
            .task_queue(queue)
            .heartbeat_timeout(self.input.options.heartbeat())
            .cancellation_token(WorkflowCancellationToken::new())
            .retry_policy(patient())
            .build()
    }
}

/// A worker that cannot take an attempt hands it on; an attempt that was lost is the machine's business.
fn handed_on() -> RetryPolicy {
    RetryPolicy::builder()
        .maximum_interval(Duration::from_secs(30))
        .non_retryable_error_types(["TemporalTimeout:Heartbeat", "TemporalTimeout:StartToClose"])
        .build()
}
