//! Claude Code. Measured with 2.1.197.

mod agents;
mod command;
mod doctor;
pub(crate) mod files;
mod headless;
pub(crate) mod hook;
pub(crate) mod install;
mod observe;
mod project;
mod quota;
mod stream;
pub mod transcript;

use super::HostAdapter;
use super::context::Since;
use steadfast_model::host::Host;
use steadfast_system::env_vars;

pub(super) static ADAPTER: HostAdapter = HostAdapter {
    host: Host::Claude,
    read_hook: hook::read_hook,
    write_reply: hook::write_reply,
    block_cap,
    // Only the terminal client can be woken.
    can_rewake: || env_vars::text(env_vars::CLAUDE_CODE_ENTRYPOINT).as_deref() == Some("cli"),
    end_turn: |_| Ok(false),
    wake_command: |_| None,
    config_dirs: files::config_dirs,
    transcript_roots: || files::below_config_dirs("projects"),
    transcript_owner: files::owner,
    session_files: |roots, session| files::session_files(roots, session.session_id),
    read_transcript: transcript::read,
    read_counts: transcript::read_counts,
    agent_type: files::agent_type,
    subagent_files: |transcript| Some(files::subagent_files(transcript)),
    fork_parent: transcript::forked_from,
    holds: |transcript, statement, since| match since {
        Since::Resume => transcript::holds(transcript, statement),
        // The client writes its file after this hook.
        Since::Compaction { .. } => Ok(false),
    },
    turn_runs: |_| None,
    statusline_quotas: quota::of_statusline,
    statusline_context: quota::context_of_statusline,
    last_model: transcript::last_model,
    is_model_output: transcript::is_model_output,
    native_goal_database: |_| None,
    native_goal_in_transcript: transcript::last_goal,
    tool_call_origin: hook::tool_call_origin,
    session_of_client: files::session_of_client,
    is_evaluator: hook::is_evaluator,
    // Only the plugin can define an agent of that name.
    has_evaluator_rules: |_| true,
    evaluator_hidden_by: agents::hiding_evaluator,
    headless_command: headless::command,
    project_files: project::files,
    trusts_project: project::is_trusted,
    resume_arguments: |request| Ok(Some(headless::resume_arguments(request))),
    read_event: stream::read_event,
    readable_event: stream::readable,
    plan_reset: |_| None,
    command_files: install::command_files,
    typed_prefix: install::typed_prefix,
    plan_install: install::plan_request,
    install_note: |_, _| None,
    plugin_data_dirs: || files::below_config_dirs("plugins/data"),
    directories_made_for_us: install::plugin_dirs,
    hook_state: doctor::hook_state,
    checks: |_| doctor::checks(block_cap()),
};

/// The user can change the default or lift the cap.
fn block_cap() -> Option<i64> {
    const DEFAULT: i64 = 8;
    match env_vars::text(env_vars::STOP_HOOK_BLOCK_CAP).and_then(|text| text.parse::<i64>().ok()) {
        Some(0) => None,
        Some(cap) if cap > 0 => Some(cap),
        _ => Some(DEFAULT),
    }
}
