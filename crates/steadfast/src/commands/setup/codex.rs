//! `steadfast setup codex`: which program, which environment, which skills.

use std::path::{Path, absolute};

use steadfast_hosts::install;
use steadfast_hosts::install::{CodexWanted, HookTrust, Plan};
use steadfast_system::env_vars;
use steadfast_system::paths::Paths;

use crate::codex_skills;
use crate::error::CliError;
use crate::plugin;

/// What decides where goals are kept. Codex runs hooks with its own environment, the tool server with almost none.
const STORE_VARIABLES: [&str; 2] = [env_vars::HOME, env_vars::DB];

pub(super) fn plan(paths: &Paths, codex_home: &Path) -> Result<Plan, CliError> {
    let program = plugin::lasting_program()?;
    let program = program.to_string_lossy();
    let mut env = Vec::new();
    // The last one tells the tool server that its client is the agent of a run.
    let mut env_vars = vec![env_vars::CODEX_HOME, env_vars::XDG_DATA_HOME, env_vars::ATTEMPT];
    for name in STORE_VARIABLES {
        match env_vars::path(name) {
            Some(path) => env.push((name, absolute(path)?.to_string_lossy().into_owned())),
            None => env_vars.push(name),
        }
    }
    let home = absolute(&paths.home)?;
    let plan = install::plan_codex(&CodexWanted {
        home: &home,
        codex_home,
        hook_command: &hook_command(&program),
        program: &program,
        env: &env,
        env_vars: &env_vars,
        skills: &codex_skills::files(),
        db: &home.join("goals.db"),
    })?;
    Ok(plan)
}

fn hook_command(program: &str) -> String {
    format!("{} hook codex", plugin::shell_word(program))
}

/// Codex's review, told plainly as long as it is still to come.
pub(super) fn trust_note(codex_home: &Path, dry_run: bool) -> Option<String> {
    let pending = || {
        let found = install::codex_hooks(codex_home).ok()?;
        Some(found.count(HookTrust::Untrusted) + found.count(HookTrust::Changed) > 0)
    };
    (dry_run || pending().unwrap_or(true)).then(|| {
        "Codex will ask you to trust these hooks the next time it starts (or type /hooks there); until you do, they are \
         silent and no goal is driven"
            .to_owned()
    })
}
