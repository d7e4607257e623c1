//! Claude Code without a terminal: `claude -p`, events on stdout. Unless the plan wants them, the user's own settings
//! stay out, and with them their hooks and plugins; the project's settings count. What the client needs to reach its
//! model is handed on in a file that lives as long as the attempt.

use steadfast_hosts::claude;
use steadfast_model::run::AgentPlan;
use steadfast_system::config::AgentConfig;

use crate::attempt::Attempt;

pub(super) const SETTINGS: &str = "settings.json";

pub(super) fn argv(
    plan: &AgentPlan,
    config: &AgentConfig,
    attempt: &Attempt,
) -> (Vec<String>, Vec<(&'static str, String)>) {
    let mut argv = vec![config.program.clone().unwrap_or_else(|| "claude".to_owned())];
    let mut files = Vec::new();
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-p", "--output-format", "stream-json", "--verbose"]);
    if let Some(model) = &plan.model {
        add(&["--model", model]);
    }
    if let Some(effort) = &plan.effort {
        add(&["--effort", effort]);
    }
    if !plan.user_hooks {
        add(&["--setting-sources", "project,local"]);
        if let Some(settings) = claude::login_settings() {
            add(&["--settings", &attempt.directory().join(SETTINGS).display().to_string()]);
            files.push((SETTINGS, settings));
        }
    }
    // The result is written there, also by an agent that may not do everything.
    add(&["--add-dir", &attempt.directory().display().to_string()]);
    match &config.permission_flags {
        Some(flags) => add(&flags.iter().map(String::as_str).collect::<Vec<_>>()),
        None => add(&["--dangerously-skip-permissions"]),
    }
    add(&config.flags.iter().map(String::as_str).collect::<Vec<_>>());
    (argv, files)
}
