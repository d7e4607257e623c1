//! Codex. Measured with 0.166.0. One session file a thread, called a rollout; subagents and forks have files of their
//! own beside it.

mod doctor;
pub(crate) mod files;
mod headless;
pub(crate) mod hook;
pub(crate) mod install;
mod interrupt;
mod observe;
mod project;
mod quota;
mod reset;
pub mod rollout;
mod skill;
mod stream;
mod wake;

use super::HostAdapter;
use steadfast_model::host::Host;

pub(super) static ADAPTER: HostAdapter = HostAdapter {
    host: Host::Codex,
    read_hook: hook::read_hook,
    write_reply: hook::write_reply,
    block_cap: || None,
    can_rewake: || false,
    end_turn: interrupt::end_turn,
    wake_command: |request| Some(wake::command(request)),
    config_dirs: || files::home().into_iter().collect(),
    transcript_roots: files::session_dirs,
    transcript_owner: |_, path| files::owner(path),
    session_files: files::session_files,
    read_transcript: rollout::read,
    read_counts: rollout::read_counts,
    agent_type: rollout::agent_type,
    subagent_files: |_| None,
    fork_parent: rollout::forked_from,
    holds: rollout::holds,
    turn_runs: rollout::turn_runs,
    statusline_quotas: |_, _| Vec::new(),
    statusline_context: |_| None,
    last_model: rollout::last_model,
    is_model_output: rollout::is_model_output,
    native_goal_database: |transcript| files::goal_database(&files::home_of(transcript)?),
    native_goal_in_transcript: |_| None,
    tool_call_origin: files::tool_call_origin,
    session_of_client: |_| None,
    is_evaluator: |agent_type| Host::Codex.is_evaluator(agent_type),
    // The instructions in the rollout show it.
    evaluator_hidden_by: |_| None,
    has_evaluator_rules: |rollout| rollout::instructions::are(rollout, install::evaluator::instructions()),
    headless_command: headless::command,
    project_files: project::files,
    // It ignores what is in a project that it does not trust, and its yes covers later changes too.
    trusts_project: |_| false,
    resume_arguments: |request| headless::resume_arguments(request).map(Some),
    read_event: stream::read_event,
    readable_event: stream::readable,
    plan_reset: reset::reset_of,
    command_files: install::skill_files,
    typed_prefix: || Host::Codex.capabilities().command_prefix,
    plan_install: install::plan_request,
    install_note: install::trust_note,
    plugin_data_dirs: Vec::new,
    directories_made_for_us: |_| Vec::new(),
    hook_state: doctor::hook_state,
    checks: doctor::checks,
};
