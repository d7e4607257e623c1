//! What agents may do without asking: the note at the first run in a project, and `--sandbox`.

use std::collections::BTreeMap;
use std::path::Path;

use steadfast_engine::durable;
use steadfast_model::run::{AgentKind, AgentPlan, Plan};
use steadfast_model::text;
use steadfast_system::bounded;
use steadfast_system::config::AgentsConfig;

use super::RunContext;
use crate::error::{CliError, code};
use crate::output;

/// Makes the agents of a plan work in their client's own sandbox if the user asks for it. A command has none: the flag is
/// refused, and the configuration does not apply to it.
pub(super) fn apply_sandbox(context: &RunContext, plan: &mut Plan, is_asked: bool) -> Result<(), CliError> {
    if !is_asked && !context.paths.config.agents.sandbox {
        return Ok(());
    }
    for agent in plan.agents_mut() {
        match &agent.kind {
            AgentKind::Host(_) => agent.sandbox = true,
            AgentKind::Command(words) if is_asked => {
                let program = text::headline(words.first().map_or("", String::as_str), 100);
                let message =
                    format!("--sandbox cannot hold: the agent `{program}` is a command, which has no sandbox");
                return Err(CliError::new(code::USAGE, message, "leave --sandbox out, or use --agent claude or codex"));
            }
            AgentKind::Command(_) => {}
        }
    }
    Ok(())
}

/// Prints what agents may do without asking, at the first run in a project and after a change of the agent or its flags.
pub(super) fn print_once(context: &RunContext, plan: &Plan) {
    let ledger = context.paths.home.join("permissions.json");
    // An error here only means that the note is printed again.
    let mut printed = read(&ledger).unwrap_or_default();
    let known = printed.entry(context.project_dir()).or_default();
    let mut lines = Vec::new();
    for agent in plan.agents() {
        let line = permissions(agent, &context.paths.config.agents);
        if !known.lines().any(|known| known == line) {
            known.push_str(&line);
            known.push('\n');
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return;
    }
    let has_client = |agent: &AgentPlan| matches!(agent.kind, AgentKind::Host(_));
    if plan.agents().any(has_client) {
        let config = context.paths.home.join("config.toml");
        if plan.agents().any(|agent| has_client(agent) && !agent.sandbox) {
            lines.push(
                "to start it in its own sandbox instead, add `--sandbox` or set `sandbox = true` under [agents]".into(),
            );
        }
        lines.push(format!("to change that, set `permission_flags` in {}", config.display()));
    }
    output::note(&format!("note: what agents may do in this project (printed once):\n  {}", lines.join("\n  ")));
    let _ = write(&ledger, &printed);
}

fn permissions(agent: &AgentPlan, config: &AgentsConfig) -> String {
    let AgentKind::Host(host) = &agent.kind else {
        return "a command given as agent may do everything that you may do".to_owned();
    };
    let facts = host.capabilities();
    let name = facts.program;
    match &config.of(*host).permission_flags {
        _ if agent.sandbox => {
            let flags = facts.sandbox_flags.join(" ");
            format!("{name} may change files of this project and run commands in its own sandbox ({flags})")
        }
        None => {
            format!("{name} may run any command and change any file without asking ({})", facts.all_permissions_flag)
        }
        Some(flags) => {
            format!("{name} may do what your `permission_flags` allow: {}", text::one_line(&flags.join(" ")))
        }
    }
}

fn read(ledger: &Path) -> std::io::Result<BTreeMap<String, String>> {
    let text = bounded::text_if_exists(ledger, 16 * 1024 * 1024)?.unwrap_or_else(|| "{}".to_owned());
    Ok(serde_json::from_slice(text.as_bytes())?)
}

fn write(ledger: &Path, printed: &BTreeMap<String, String>) -> std::io::Result<()> {
    steadfast_system::paths::create_private_dir(ledger.parent().unwrap_or(Path::new(".")))?;
    let mut text = serde_json::to_vec_pretty(printed)?;
    text.push(b'\n');
    durable::replace(ledger, &text)
}
