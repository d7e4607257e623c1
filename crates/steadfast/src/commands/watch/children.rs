//! Processes that `steadfast watch` started and that work on their own: engines, and agents without a terminal. They
//! live on when it ends; while it works, it collects their exit codes.

use std::process::Child;

use steadfast_model::clock::Millis;

#[derive(Debug, Default)]
pub(super) struct Children(Vec<Kept>);

#[derive(Debug)]
struct Kept {
    child: Child,
    agent: Option<HeadlessAgent>,
}

/// An agent that continues a closed session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeadlessAgent {
    pub(super) session_id: String,
    /// The wake-up that it was started for.
    pub(super) woken_at: Millis,
}

impl Children {
    /// An engine, or a process that makes a backup.
    pub(super) fn add_engine(&mut self, child: Child) {
        self.0.push(Kept { child, agent: None });
    }

    pub(super) fn add_agent(&mut self, child: Child, agent: HeadlessAgent) {
        self.0.push(Kept { child, agent: Some(agent) });
    }

    /// Whether an agent works on this session now.
    pub(super) fn has_agent_of(&self, session_id: &str) -> bool {
        self.0.iter().filter_map(|kept| kept.agent.as_ref()).any(|agent| agent.session_id == session_id)
    }

    /// Agents that have ended since the last call, each with how it ended.
    pub(super) fn ended_agents(&mut self) -> Vec<(HeadlessAgent, String)> {
        let mut ended = Vec::new();
        self.0.retain_mut(|kept| match kept.child.try_wait() {
            Ok(None) => true,
            outcome => {
                let how = outcome.map(|status| status.map(|status| status.to_string()).unwrap_or_default());
                ended.extend(kept.agent.take().map(|agent| (agent, how.unwrap_or_else(|error| error.to_string()))));
                false
            }
        });
        ended
    }
}
