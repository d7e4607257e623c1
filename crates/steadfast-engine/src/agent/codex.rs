//! Codex without a terminal: `codex exec --json`, the prompt on stdin. Unless the plan wants them, hooks and plugins are
//! switched off; its own goals always are, since the run is what drives it.

use steadfast_model::run::AgentPlan;
use steadfast_system::config::AgentConfig;

use crate::attempt::Attempt;

pub(super) fn argv(plan: &AgentPlan, config: &AgentConfig, attempt: &Attempt) -> Vec<String> {
    let mut argv = vec![config.program.clone().unwrap_or_else(|| "codex".to_owned())];
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    // The user started the run in this directory, with a repository or without one.
    add(&["exec", "--json", "--skip-git-repo-check"]);
    if let Some(model) = &plan.model {
        add(&["-m", model]);
    }
    if let Some(effort) = &plan.effort {
        // A JSON string is a TOML string.
        add(&["-c", &format!("model_reasoning_effort={}", serde_json::json!(effort))]);
    }
    add(&["-c", "features.goals=false", "-c", "check_for_update_on_startup=false"]);
    if !plan.user_hooks {
        add(&["-c", "features.hooks=false", "-c", "features.plugins=false"]);
    }
    match &config.permission_flags {
        Some(flags) => add(&flags.iter().map(String::as_str).collect::<Vec<_>>()),
        None => add(&["--dangerously-bypass-approvals-and-sandbox"]),
    }
    // The result is written there, also by an agent that may not do everything.
    add(&["--add-dir", &attempt.directory().display().to_string()]);
    add(&config.flags.iter().map(String::as_str).collect::<Vec<_>>());
    add(&["-"]);
    argv
}
