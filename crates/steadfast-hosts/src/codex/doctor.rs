//! Are our hooks in Codex's configuration, and will Codex run them?

use std::path::Path;

use super::files;
use super::install::evaluator;
use super::install::trust::{COMMAND_END, CodexHooks, HookTrust, codex_hooks};
use crate::doctor::{CheckStatus, DoctorCheck, HookState, fail, ok, warn};
use crate::install::apply::read;
use crate::install::codex_config as config;
use crate::install::codex_tables::EVALUATOR;

const HOOKS: &str = "codex_hooks";

/// No checks where there is no Codex.
pub(super) fn checks(program: Option<&Path>) -> Vec<DoctorCheck> {
    match (files::home().filter(|home| home.is_dir()), program) {
        (Some(home), _) => [Some(hooks(&home)), evaluator_check(&home)].into_iter().flatten().collect(),
        (None, Some(_)) => vec![not_set_up("no Codex directory yet")],
        (None, None) => Vec::new(),
    }
}

/// A file that cannot be read has no hooks that Codex could run.
pub(super) fn hook_state() -> HookState {
    let Some(home) = files::home().filter(|home| home.is_dir()) else { return HookState::Absent };
    match codex_hooks(&home) {
        Ok(found) if found.hooks.is_empty() => HookState::Absent,
        _ => match hooks(&home) {
            check if check.status == CheckStatus::Ok => HookState::Ready,
            check => HookState::Silent(check),
        },
    }
}

fn not_set_up(detail: &str) -> DoctorCheck {
    warn(HOOKS, format!("not set up: {detail}"), "`steadfast setup codex`, if you want goals there")
}

fn hooks(codex_home: &Path) -> DoctorCheck {
    let found = match codex_hooks(codex_home) {
        Ok(found) => found,
        Err(error) => return fail(HOOKS, error.to_string(), "repair the file; Codex does not start with it as it is"),
    };
    if found.hooks.is_empty() {
        return not_set_up(&format!("no hook of ours in {}", codex_home.display()));
    }
    if found.switched_off {
        return fail(
            HOOKS,
            "hooks are switched off in Codex: no goal can be driven",
            format!("remove `hooks = false` below [features] in {}", codex_home.join("config.toml").display()),
        );
    }
    judge(&found)
}

/// Whether goals can be judged there; nothing to say where we are not set up.
fn evaluator_check(codex_home: &Path) -> Option<DoctorCheck> {
    const ID: &str = "codex_evaluator";
    const FIX: &str = "run `steadfast setup codex`";
    let file = codex_home.join("config.toml");
    let config = config::content(&file, read(&file).ok()?.as_deref()).ok()?;
    if codex_hooks(codex_home).ok()?.hooks.is_empty() {
        return None;
    }
    let found = EVALUATOR.found(&config)["config_file"].as_str();
    Some(match found.map(Path::new) {
        None => warn(ID, format!("no `{}` in {}: no goal is judged there", EVALUATOR.key(), file.display()), FIX),
        Some(path) => match read(path) {
            Ok(Some(text)) if text == evaluator::file() => ok(ID, format!("{} judges goals", EVALUATOR.name)),
            Ok(Some(_)) => {
                let detail = format!("{} has other instructions than ours: its verdicts do not count", path.display());
                warn(ID, detail, "remove it and run `steadfast setup codex`")
            }
            _ => warn(ID, format!("{} cannot be read: no goal is judged there", path.display()), FIX),
        },
    })
}

fn judge(found: &CodexHooks) -> DoctorCheck {
    let all = found.hooks.len();
    let silent = found.count(HookTrust::Untrusted) + found.count(HookTrust::Changed);
    if silent > 0 {
        return warn(
            HOOKS,
            format!("NOT TRUSTED: Codex skips {silent} of {all} hooks, so no goal is driven there"),
            "start `codex`, type /hooks, look at the hooks of steadfast and trust them",
        );
    }
    let disabled: Vec<&str> = found
        .hooks
        .iter()
        .filter(|(_, _, trust)| *trust == HookTrust::Disabled)
        .map(|(event, _, _)| event.as_str())
        .collect();
    if !disabled.is_empty() {
        return warn(
            HOOKS,
            format!("DISABLED in Codex: {}", disabled.join(", ")),
            "start `codex`, type /hooks and enable them",
        );
    }
    if !found.missing.is_empty() {
        return warn(
            HOOKS,
            format!("no hook for {}", found.missing.join(", ")),
            "`steadfast setup codex` adds what is missing; Codex will ask you to trust it",
        );
    }
    if let Some(program) = found.hooks.iter().find_map(|(_, command, _)| gone_program(command)) {
        return warn(
            HOOKS,
            format!("the program is gone: {program}"),
            "`steadfast setup codex` names this one instead",
        );
    }
    ok(HOOKS, format!("{all} hooks, trusted"))
}

/// The program of a hook, if it is not there. Only for a path without quotes: others would need a shell to parse.
fn gone_program(command: &str) -> Option<&str> {
    let program = command.strip_suffix(COMMAND_END)?.rsplit(' ').next()?;
    (program.starts_with('/') && !Path::new(program).exists()).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::super::install::EVENTS;
    use super::*;

    #[test]
    fn a_program_that_is_gone_is_named_whatever_hook_calls_it() {
        for event in &EVENTS {
            let judged = |program: &str| {
                let command = event.lasting_command(Path::new(program));
                let hooks = vec![(event.name.to_owned(), command, HookTrust::Trusted)];
                judge(&CodexHooks { hooks, ..CodexHooks::default() })
            };
            let gone = judged("/gone/steadfast");
            assert_eq!((gone.status, &*gone.detail), (CheckStatus::Warn, "the program is gone: /gone/steadfast"));
            assert_eq!(judged("/bin/sh").status, CheckStatus::Ok);
        }
    }
}
