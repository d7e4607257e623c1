//! `steadfast setup`: hooks into Claude Code or Codex with the user's consent, and out again without a trace.

mod codex;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use steadfast_hosts::claude;
use steadfast_hosts::install;
use steadfast_hosts::install::{Consent, Plan, Wanted};
use steadfast_model::clock;
use steadfast_model::host::Host;
use steadfast_system::paths::Paths;

use crate::cli::SetupArgs;
use crate::error::CliError;
use crate::output::CommandOutput;
use crate::plugin;

/// High enough to be out of the way, low enough to end a runaway loop of empty turns.
const SUGGESTED_BLOCK_CAP: u32 = 100;

pub(crate) fn run(db: Option<&Path>, arguments: &SetupArgs) -> Result<CommandOutput, CliError> {
    let paths = Paths::find(db)?;
    let hosts = match arguments.host.as_deref() {
        Some("codex") => vec![Host::Codex],
        Some(_) => vec![Host::Claude],
        None => vec![Host::Claude, Host::Codex],
    };
    let mut changes = Vec::new();
    let mut notes = Vec::new();
    let mut files = Vec::new();
    let mut touched = Vec::new();
    let mut gone = Vec::new();
    for host in &hosts {
        for config_dir in config_dirs(*host) {
            let plan = match host {
                _ if arguments.uninstall => install::plan_uninstall(&paths.home, *host, &config_dir, &gone)?,
                Host::Claude => plan_install(&paths, &config_dir, arguments)?,
                Host::Codex => codex::plan(&paths, &config_dir)?,
            };
            if !plan.is_empty() {
                changes.push(plan.describe());
                touched.push(name(*host));
            } else if arguments.host.is_none() {
                // All hosts are meant: that one of them never had us is no news.
                continue;
            }
            notes.extend(plan.notes().iter().cloned());
            if !arguments.dry_run {
                files.extend(apply(plan)?);
            }
            if *host == Host::Codex && !arguments.uninstall {
                notes.extend(codex::trust_note(&config_dir, arguments.dry_run));
            }
        }
        gone.push(*host);
    }
    touched.dedup();
    let summary = match (arguments.dry_run, hosts.as_slice()) {
        _ if changes.is_empty() => "nothing to change".to_owned(),
        (true, _) => changes.join("\n"),
        (false, _) if arguments.uninstall => {
            format!("took steadfast out of {} ({} files)", touched.join(" and "), files.len())
        }
        (false, [Host::Codex]) => format!(
            "set up Codex ({} files); sessions started from now on know $goal-start and the others\n\
             next: steadfast doctor",
            files.len()
        ),
        (false, _) => format!(
            "set up Claude Code ({} files); sessions started from now on know /goal-start and the others\n\
             next: steadfast doctor",
            files.len()
        ),
    };
    if let (false, Some(other)) = (arguments.uninstall, predecessor_store(&claude::config_dirs())) {
        let import = format!("steadfast db import {}", plugin::shell_word(&other.to_string_lossy()));
        notes.push(format!("the claude-goal plugin has goals of its own; bring them in with\n  {import}"));
    }
    let lines = std::iter::once(summary).chain(notes.iter().map(|note| format!("note: {note}")));
    let text = lines.collect::<Vec<_>>().join("\n");
    let files: Vec<String> = files.iter().map(|path: &PathBuf| path.display().to_string()).collect();
    Ok(CommandOutput {
        text,
        json: json!({"dry_run": arguments.dry_run, "files": files, "changes": changes, "notes": notes}),
        code: 0,
    })
}

fn config_dirs(host: Host) -> Vec<PathBuf> {
    match host {
        Host::Claude => claude::config_dirs(),
        Host::Codex => steadfast_hosts::codex::home().into_iter().collect(),
    }
}

fn name(host: Host) -> &'static str {
    match host {
        Host::Claude => "Claude Code",
        Host::Codex => "Codex",
    }
}

fn apply(plan: Plan) -> Result<Vec<PathBuf>, CliError> {
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    let report = plan.apply()?;
    Ok(report.written.into_iter().chain(report.removed).collect())
}

fn plan_install(paths: &Paths, config_dir: &Path, arguments: &SetupArgs) -> Result<Plan, CliError> {
    let program = std::env::current_exe()?;
    let files = plugin::files_for(&program);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let statusline = format!("{} statusline", plugin::shell_word(&program.to_string_lossy()));
    let theirs = install::current(&paths.home, config_dir)?;
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !arguments.dry_run;
    let statusline_consent = consent(arguments.statusline, arguments.no_statusline, arguments.yes);
    let question = "Show the goal in Claude Code's status line?";
    let statusline = install::decide(
        statusline_consent,
        statusline.as_str(),
        theirs.statusline.is_some(),
        asks.then_some(|| ask(question)),
    )?;
    let cap = arguments.block_cap.unwrap_or(SUGGESTED_BLOCK_CAP);
    let cap_consent = consent(arguments.block_cap.is_some(), arguments.no_block_cap, arguments.yes);
    let question = format!("Let Claude Code accept {cap} Stop blocks in a row without a tool call (now 8)?");
    let block_cap = install::decide(cap_consent, cap, theirs.block_cap.is_some(), asks.then_some(|| ask(&question)))?;
    let home = std::path::absolute(&paths.home)?;
    let plan = install::plan(&Wanted {
        home: &home,
        config_dir,
        marketplace: plugin::MARKETPLACE,
        plugin: &files,
        commands: &plugin::commands(),
        statusline,
        block_cap,
        db: &home.join("goals.db"),
        now: &clock::to_rfc3339(clock::now()),
    })?;
    Ok(plan)
}

fn consent(given: bool, refused: bool, yes: bool) -> Consent {
    match (given, refused, yes) {
        (true, _, _) => Consent::Given,
        (_, true, _) => Consent::Refused,
        (_, _, true) => Consent::Presumed,
        _ => Consent::Open,
    }
}

fn ask(question: &str) -> std::io::Result<bool> {
    write!(std::io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The newest store of the claude-goal plugin, if it was ever used here.
pub(crate) fn predecessor_store(config_dirs: &[PathBuf]) -> Option<PathBuf> {
    plugin_stores(config_dirs, "claude-goal").into_iter().next()
}

/// Stores in plugin data directories whose name begins with `prefix`.
pub(crate) fn plugin_stores(config_dirs: &[PathBuf], prefix: &str) -> Vec<PathBuf> {
    let mut stores = Vec::new();
    for config_dir in config_dirs {
        let Ok(entries) = fs_err::read_dir(config_dir.join("plugins").join("data")) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            let store = entry.path().join("goals.db");
            if entry.file_name().to_string_lossy().starts_with(prefix)
                && store.metadata().is_ok_and(|meta| meta.len() > 0)
            {
                stores.push(store);
            }
        }
    }
    stores.sort();
    stores
}
