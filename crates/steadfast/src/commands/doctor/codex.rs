//! The checks of Codex: version, hooks, and whether Codex trusts them.

use std::path::Path;
use std::time::Duration;

use steadfast_engine::process::LimitedCommand;
use steadfast_hosts::codex;
use steadfast_hosts::install;
use steadfast_hosts::install::{CodexHooks, HookTrust};

use super::{DoctorCheck, fail, ok, warn};
use crate::programs;

/// Older versions do not run hooks in `codex exec`, even trusted ones.
const OLDEST: (u32, u32) = (0, 141);
/// A working `codex --version` answers at once.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
const HOOKS: &str = "codex_hooks";
const VERSION: &str = "codex_version";

/// Empty if Codex is not installed.
pub(super) fn checks() -> Vec<DoctorCheck> {
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

fn not_set_up(detail: &str) -> DoctorCheck {
    warn(HOOKS, format!("not set up: {detail}"), "run `steadfast setup codex` if you want goals there")
}

fn hooks(codex_home: &Path) -> DoctorCheck {
    let found = match install::codex_hooks(codex_home) {
        Ok(found) => found,
        Err(error) => return fail(HOOKS, error.to_string(), "fix the file; Codex does not start with a broken one"),
    };
    if found.hooks.is_empty() {
        return not_set_up(&format!("no steadfast hook in {}", codex_home.display()));
    }
    if found.switched_off {
        return fail(
            HOOKS,
            "hooks are switched off in Codex, so goals cannot continue",
            format!("remove `hooks = false` below [features] in {}", codex_home.join("config.toml").display()),
        );
    }
    judge(&found)
}

fn judge(found: &CodexHooks) -> DoctorCheck {
    let all = found.hooks.len();
    let silent = found.count(HookTrust::Untrusted) + found.count(HookTrust::Changed);
    if silent > 0 {
        return warn(
            HOOKS,
            format!("NOT TRUSTED: Codex silently skips {silent} of {all} hooks, so goals cannot continue there"),
            "start `codex`, type /hooks, review the hooks of steadfast and trust them",
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
            "run `steadfast setup codex` to add what is missing; Codex then asks you to trust it",
        );
    }
    let missing = found.hooks.iter().find(|(_, command, _)| is_program_missing(command));
    if let Some((_, command, _)) = missing {
        return warn(
            HOOKS,
            format!("program not found: {command}"),
            "run `steadfast setup codex` to use this one instead",
        );
    }
    ok(HOOKS, format!("{all} hooks, trusted"))
}

/// Checks unquoted commands only; quoted ones would need a shell parser.
fn is_program_missing(command: &str) -> bool {
    let program = command.split(' ').next().unwrap_or_default();
    program.starts_with('/') && !Path::new(program).exists()
}

fn version(program: &Path) -> DoctorCheck {
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
            format!("{text} is too old: it does not run hooks everywhere"),
            format!("update Codex to {}.{} or later", OLDEST.0, OLDEST.1),
        ),
        Some((_, text)) => ok(VERSION, text),
        None if outcome.timed_out => warn(VERSION, format!("{shown} --version did not answer"), "install Codex again"),
        None => warn(VERSION, format!("{shown} --version prints no version"), "install Codex again"),
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
