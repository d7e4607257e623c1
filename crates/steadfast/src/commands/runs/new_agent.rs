//! `resume --agent` and `--model`: the rest of a run with another agent.

use steadfast_model::run::{AgentKind, AgentPlan, Plan, StagePlan, machine};
use steadfast_model::text;
use steadfast_store::RunRow;

use super::{RunContext, preflight, starting};
use crate::cli::ResumeArgs;
use crate::error::CliError;

pub(super) struct NewAgent {
    kind: Option<AgentKind>,
    model: Option<String>,
}

impl NewAgent {
    /// `None` if no flag asks for another agent.
    pub(super) fn of(context: &RunContext, arguments: &ResumeArgs) -> Result<Option<Self>, CliError> {
        let kind = arguments.agent.as_deref().map(|text| starting::parse_agent(context, text)).transpose()?;
        let model = arguments.model.clone();
        Ok((kind.is_some() || model.is_some()).then_some(Self { kind, model }))
    }

    /// The plan with the new agent in the stages that are not over and use the agent of the first of them, and a line
    /// about each of them.
    pub(super) fn put_into(&self, context: &RunContext, row: &RunRow) -> (Plan, Vec<String>) {
        let mut plan = row.plan.clone();
        let left = machine::stages_left(&row.run);
        let open = (1_u32..).zip(&mut plan.stages).filter(|(number, _)| left.contains(number));
        let mut open: Vec<&mut StagePlan> = open.map(|(_, stage)| stage).collect();
        let replaced = open.first().map(|stage| stage.agent_of(1).kind.clone());
        let mut changed = Vec::new();
        for stage in &mut open {
            let before = agent_text(stage.agent_of(1));
            for agent in std::iter::once(&mut stage.agent).chain(&mut stage.agents) {
                if Some(&agent.kind) == replaced.as_ref() {
                    *agent = self.instead_of(agent);
                    preflight::make_absolute(agent, &context.project);
                }
            }
            let after = agent_text(stage.agent_of(1));
            if before != after {
                changed.push(format!("stage {}: {after} in place of {before}", stage.name));
            }
        }
        (plan, changed)
    }

    /// A model and an effort belong to their program, so another program does not inherit them.
    fn instead_of(&self, old: &AgentPlan) -> AgentPlan {
        let kind = self.kind.clone().unwrap_or_else(|| old.kind.clone());
        let kept = (kind == old.kind).then(|| (old.model.clone(), old.effort.clone()));
        let (model, effort) = kept.unwrap_or_default();
        AgentPlan {
            kind,
            model: self.model.clone().or(model),
            effort,
            user_hooks: old.user_hooks,
            sandbox: old.sandbox,
        }
    }
}

fn agent_text(agent: &AgentPlan) -> String {
    let program = match &agent.kind {
        AgentKind::Host(host) => host.name().to_owned(),
        AgentKind::Command(words) => text::headline(&words.join(" "), 100),
    };
    let model = agent.model.as_deref().map(|model| format!(" ({})", text::headline(model, 60))).unwrap_or_default();
    format!("{program}{model}")
}
