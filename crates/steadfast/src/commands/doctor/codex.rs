//! Codex: are our hooks there, will it run them, and is it new enough?

use std::path::Path;
use std::time::Duration;

use steadfast_core::host::codex;
use steadfast_core::host::install::{self, CodexHooks, HookTrust};
use steadfast_engine::process::LimitedCommand;

use super::{Check, fail, ok, warn};
use crate::programs;

/// Older ones do not run hooks in `codex exec`, trusted or not.
const OLDEST: (u32, u32) = (0, 141);
/// `codex --version` answers at once, unless something is wrong with it.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
const HOOKS: &str = "codex_hooks";
const VERSION: &str = "codex_version";

/// Nothing, where there is no Codex.
pub(super) fn checks() -> Vec<Check> {
    let program = programs::on_path("codex");
    let home = codex::home().filter(|home| home.is_dir());
    let mut checks = Vec::new();
    checks.extend(program.as_deref().map(version));
    match (home, program) {
        (Some(home), _) => checks.push(hooks(&home)),
        (None, Some(_)) => checks.push(not_set_up("no Codex directory yet")),
        (None, None) => {}
    }
    checks
}

fn not_set_up(detail: &str) -> Check {
    warn(HOOKS, format!("not set up: {detail}"), "`steadfast setup codex`, if you want goals there")
}

fn hooks(codex_home: &Path) -> Check {
    let found = match install::codex_hooks(codex_home) {
        Ok(found) => found,
        Err(error) => return fail(HOOKS, error.to_string(), "Codex does not start with a broken file; mend it"),
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

fn judge(found: &CodexHooks) -> Check {
    let all = found.hooks.len();
    let silent = found.count(HookTrust::Untrusted) + found.count(HookTrust::Changed);
    if silent > 0 {
        return warn(
            HOOKS,
            format!("NOT TRUSTED: Codex skips {silent} of {all} hooks without a word, so no goal is driven there"),
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
    let gone = found.hooks.iter().find(|(_, command, _)| program_is_gone(command));
    if let Some((_, command, _)) = gone {
        return warn(
            HOOKS,
            format!("the program is gone: {command}"),
            "`steadfast setup codex` names this one instead",
        );
    }
    ok(HOOKS, format!("{all} hooks, trusted"))
}

/// Only for a command without quotes: the others would need a shell to tell.
fn program_is_gone(command: &str) -> bool {
    let program = command.split(' ').next().unwrap_or_default();
    program.starts_with('/') && !Path::new(program).exists()
}

fn version(program: &Path) -> Check {
    let shown = program.display();
    let directory = program.parent().unwrap_or(Path::new("/"));
    let outcome =
        match LimitedCommand::new(&program.to_string_lossy(), directory, VERSION_LIMIT).args(["--version"]).run() {
            Ok(outcome) => outcome,
            Err(error) => return warn(VERSION, format!("{shown} does not start: {error}"), "install Codex again"),
        };
    let found = outcome.output_tail.lines().find_map(parse);
    match found {
        Some((version, text)) if version < OLDEST => warn(
            VERSION,
            format!("{text} is too old: its hooks do not run everywhere"),
            format!("update Codex to {}.{} or later", OLDEST.0, OLDEST.1),
        ),
        Some((_, text)) => ok(VERSION, text),
        None if outcome.timed_out => warn(VERSION, format!("{shown} --version did not answer"), "install Codex again"),
        None => warn(VERSION, format!("{shown} names no version"), "install Codex again"),
    }
}

/// `codex-cli 0.166.0`.
fn parse(line: &str) -> Option<((u32, u32), String)> {
    let text = line.strip_prefix("codex-cli ")?.trim();
    let mut numbers = text.split(['.', '-']).map(|part| part.parse().ok());
    Some(((numbers.next()??, numbers.next()??), text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse("codex-cli 0.166.0"), Some(((0, 166), "0.166.0".to_owned())));
        assert_eq!(parse("codex-cli 1.2-alpha.3").map(|(version, _)| version > OLDEST), Some(true));
        assert_eq!(parse("codex-cli 0.99.9").map(|(version, _)| version < OLDEST), Some(true));
        assert_eq!(parse("WARNING: proceeding"), None);
    }
}
