//! Which hosts are on this machine, and what `setup` made of them.

use serde_json::{Value, json};
use steadfast_hosts::doctor::HookState;
use steadfast_hosts::install::is_set_up;
use steadfast_hosts::{adapter, installed_version};
use steadfast_model::host::Host;
use steadfast_system::paths::Paths;

use super::asking::has_terminal;
use crate::cli::SetupArgs;
use crate::error::{CliError, code};
use crate::{output, programs};

#[derive(Debug)]
pub(super) struct FoundHost {
    pub(super) host: Host,
    version: Option<String>,
    before: HookState,
}

/// The hosts whose program is on PATH, or that an earlier `setup` knew. An error if there is none, or no way to ask.
pub(super) fn look(paths: &Paths, arguments: &SetupArgs) -> Result<Vec<FoundHost>, CliError> {
    let mut found = Vec::new();
    for host in Host::ALL.iter().copied() {
        let program = programs::on_path(host.capabilities().program);
        if program.is_some() || is_set_up(&paths.home, host.name()) {
            let version = program.as_deref().and_then(installed_version);
            found.push(FoundHost { host, version, before: (adapter(host).hook_state)() });
        }
    }
    if found.is_empty() {
        let programs: Vec<&str> = Host::ALL.iter().map(|host| host.capabilities().program).collect();
        let message = format!("no client found: none of {} is on PATH", programs.join(", "));
        let hint = "install one and repeat this, or name it: `steadfast setup claude`";
        return Err(CliError::new(code::ENVIRONMENT, message, hint));
    }
    if !arguments.dry_run && !arguments.yes && !has_terminal() {
        let hint = "`steadfast setup --yes` accepts the defaults; `steadfast setup --dry-run` shows the changes";
        return Err(CliError::new(code::USAGE, "setup asks questions, and there is no terminal", hint));
    }
    if !arguments.yes {
        output::note("on this machine:");
        let rows: Vec<Vec<String>> = found.iter().map(|found| vec![found.name(), state(&found.before)]).collect();
        output::note(&output::indented(&output::columns(&rows)).join("\n"));
    }
    Ok(found)
}

/// A line for each host: its hooks before and now.
pub(super) fn before_and_after(found: &[FoundHost]) -> Vec<String> {
    let row = |found: &FoundHost| {
        let (before, after) = (state(&found.before), state(&(adapter(found.host).hook_state)()));
        let change = if before == after { after } else { format!("{before} -> {after}") };
        vec![found.name(), change]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    output::indented(&output::columns(&rows))
}

impl FoundHost {
    fn name(&self) -> String {
        let product = self.host.capabilities().product;
        self.version.as_deref().map_or_else(|| product.to_owned(), |version| format!("{product} {version}"))
    }

    pub(super) fn json(&self) -> Value {
        let after = (adapter(self.host).hook_state)();
        json!({"host": self.host, "version": self.version, "before": word(&self.before), "after": word(&after)})
    }
}

fn state(hooks: &HookState) -> String {
    match hooks {
        HookState::Absent => "not set up".to_owned(),
        HookState::Ready => "set up".to_owned(),
        HookState::Silent(check) => format!("set up, but {}", check.detail),
    }
}

fn word(hooks: &HookState) -> &'static str {
    match hooks {
        HookState::Absent => "absent",
        HookState::Ready => "ready",
        HookState::Silent(_) => "silent",
    }
}
