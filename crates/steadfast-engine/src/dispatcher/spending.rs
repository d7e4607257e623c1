//! What is spent while agents work: by the runs that they started, and by the agents themselves as far as their session
//! files show it. Attempts are counted when they end; this only stops them in time.

use std::time::{Duration, Instant};

use steadfast_model::host::Host;
use steadfast_model::limit::Spend;
use steadfast_model::run::{AgentKind, AttemptId, Phase, RunEvent};

use super::{Dispatcher, DriveError, EngineMessage};
use crate::agent;
use crate::attempt::Attempt;

/// How often to look. Reading long session files takes a while, so a look is followed by a rest of many times its length.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const REST_FACTOR: u32 = 20;

/// When to look next.
#[derive(Debug, Default)]
pub(super) struct Looks {
    nested: Option<Instant>,
    using: Option<Instant>,
    /// Whether a thread reads session files now, and since when.
    reading: Option<Instant>,
    /// Whether running attempts are being stopped because of what they used.
    has_stopped: bool,
}

fn is_due(at: Option<Instant>) -> bool {
    at.is_none_or(|at| at <= Instant::now())
}

impl Dispatcher<'_, '_> {
    pub(super) fn look_at_spending(&mut self) -> Result<(), DriveError> {
        if is_due(self.looks.nested) {
            self.looks.nested = Instant::now().checked_add(LOOK_EVERY);
            self.count_nested()?;
        }
        let has_budget = self.plan.limits.limits.has_budget();
        if has_budget && !self.looks.has_stopped && self.looks.reading.is_none() && is_due(self.looks.using) {
            self.read_usage();
        }
        Ok(())
    }

    /// Counts what the runs below this one spent, by their own rows, so that a crash loses and doubles nothing.
    pub(super) fn count_nested(&mut self) -> Result<(), DriveError> {
        let run_id = self.run_id.clone();
        let spent = self.with_store(|store| store.read().spent_below(&run_id))?;
        if (spent.tokens, spent.cost_micros) == (self.run.nested_tokens, self.run.nested_cost_micros) {
            return Ok(());
        }
        self.apply(RunEvent::NestedSpent { tokens: spent.tokens, cost_micros: spent.cost_micros })
    }

    pub(super) fn running(&self) -> Vec<AttemptId> {
        self.run.active.iter().filter(|active| active.phase == Phase::Running).map(|active| active.id).collect()
    }

    /// Reads on another thread what the running attempts used so far.
    fn read_usage(&mut self) {
        let ids = self.running();
        let readable: Vec<(Host, Attempt)> = ids.iter().filter_map(|id| self.readable(*id)).collect();
        self.looks.using = Instant::now().checked_add(LOOK_EVERY);
        if readable.is_empty() {
            return;
        }
        self.looks.reading = Some(Instant::now());
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let mut used = Spend::default();
            for (host, attempt) in &readable {
                let one = agent::used_in_session(*host, attempt).unwrap_or_default();
                used.tokens = used.tokens.saturating_add(one.tokens.charged());
                used.cost_micros = used.cost_micros.saturating_add(one.cost_micros);
            }
            // The receiver is gone once the run has ended.
            let _ = sender.send(EngineMessage::Using { ids, used });
        });
    }

    /// An attempt whose agent writes session files.
    fn readable(&self, id: AttemptId) -> Option<(Host, Attempt)> {
        match self.plan.stage(id.stage)?.agent_of(id.iteration).kind {
            AgentKind::Host(host) => Some((host, self.attempt(id))),
            AgentKind::Command(_) => None,
        }
    }

    pub(super) fn used_so_far(&mut self, ids: &[AttemptId], used: Spend) -> Result<(), DriveError> {
        if let Some(since) = self.looks.reading.take() {
            self.looks.using = Instant::now().checked_add((since.elapsed() * REST_FACTOR).max(LOOK_EVERY));
        }
        // What ended meanwhile is counted already.
        if self.looks.has_stopped || self.running() != ids {
            return Ok(());
        }
        let was_stopping = self.stopping.is_cancelled();
        self.apply(RunEvent::Using { tokens: used.tokens, cost_micros: used.cost_micros })?;
        self.looks.has_stopped = !was_stopping && self.stopping.is_cancelled();
        Ok(())
    }
}
