//! Prints what agents may do without asking, at the first run in a project. What was printed is recorded in the home
//! folder, so that a project gets the note again only for another agent or other flags.

use steadfast_model::run::{AgentKind, Plan};
use steadfast_model::text;
use steadfast_system::config::AgentsConfig;

use super::{RunContext, trust};
use crate::output;

pub(super) fn print_once(context: &RunContext, plan: &Plan) {
    let ledger = context.paths.home.join("permissions.json");
    // An error here only means that the note is printed again.
    let mut printed = trust::read(&ledger).unwrap_or_default();
    let known = printed.entry(context.project_dir()).or_default();
    let mut lines = Vec::new();
    for agent in plan.stages.iter().flat_map(|stage| std::iter::once(&stage.agent).chain(&stage.judge)) {
        let line = permissions(&agent.kind, &context.paths.config.agents);
        if !known.lines().any(|known| known == line) {
            known.push_str(&line);
            known.push('\n');
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return;
    }
    if plan.stages.iter().any(|stage| !matches!(stage.agent.kind, AgentKind::Command(_))) {
        let config = context.paths.home.join("config.toml");
        lines.push(format!("to change that, set `permission_flags` in {}", config.display()));
    }
    output::note(&format!("note: what agents may do in this project (printed once):\n  {}", lines.join("\n  ")));
    let _ = trust::write(&ledger, &printed);
}

fn permissions(agent: &AgentKind, config: &AgentsConfig) -> String {
    let AgentKind::Host(host) = agent else {
        return "a command given as agent may do everything that you may do".to_owned();
    };
    let (name, all) = (host.capabilities().program, host.capabilities().all_permissions_flag);
    match &config.of(*host).permission_flags {
        None => format!("{name} may run any command and change any file without asking ({all})"),
        Some(flags) => {
            format!("{name} may do what your `permission_flags` allow: {}", text::one_line(&flags.join(" ")))
        }
    }
}
