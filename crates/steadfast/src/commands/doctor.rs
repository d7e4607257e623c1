//! `steadfast doctor`: diagnoses the installation and suggests fixes.

mod backups;
mod fix;
mod places;

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use serde_json::{Value, json};
use steadfast_app::action;
use steadfast_engine::process::LimitedCommand;
use steadfast_hosts::doctor::{CheckStatus, DoctorCheck, fail, ok, warn};
use steadfast_hosts::{adapters, installed_version};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::GoalStatus;
use steadfast_model::host::{Capabilities, VersionCheck};
use steadfast_model::text;
use steadfast_store::{SCHEMA_VERSION, Store, StoreError, log_damage};
use steadfast_system::config::{ConfigError, NotifyConfig};
use steadfast_system::paths::Paths;
use steadfast_system::{bounded, watch_lock};

use super::{other_stores, own_paths};
use crate::error::code;
use crate::mcp::client::McpClient;
use crate::output::{self, CommandOutput, CommandResult};
use crate::{plugin, programs};

/// A program that works prints its version at once.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// A server that works answers at once.
const MCP_PATIENCE: Duration = Duration::from_secs(10);

/// The check of the log of the store.
const LOG: &str = "store_log";
/// Goals that are looked at for a count.
const ORPHANS_COUNTED: usize = 50;
/// A file up to this size is checked for faults without being asked: it takes milliseconds.
const CHECKED_AT_ONCE: u64 = 8 * 1024 * 1024;
/// More free space than this is worth a word.
const MUCH_FREE: u64 = 100_000_000;

pub(crate) fn run(db: Option<&Path>, full: bool, repairs: bool) -> CommandResult {
    let (paths, broken_config) = Paths::find_despite_config(db)?;
    own_paths::log_closed(&paths);
    let fixed = if repairs { Some(fix::fix(&paths, broken_config.is_some())?) } else { None };
    let report = report(&paths, broken_config.as_ref(), full);
    Ok(match fixed {
        Some(fixed) => fixed.before(report),
        None => report,
    })
}

pub(crate) fn report(paths: &Paths, broken_config: Option<&ConfigError>, full: bool) -> CommandOutput {
    let mut checks = vec![places::home(paths), places::permissions(paths), places::config(paths, broken_config)];
    checks.extend(places::strays(paths));
    let of_store = store(paths, full);
    // The others open the store, and the last to close it writes the log into it, as far as it is read.
    let may_open = of_store.iter().all(|check| check.id != LOG);
    checks.extend(of_store);
    checks.extend(backups::check(paths));
    checks.push(one_store(paths));
    checks.extend(predecessor());
    checks.push(program_on_path());
    checks.extend(no_client());
    for adapter in adapters() {
        let facts = adapter.host.capabilities();
        let program = programs::on_path(facts.program);
        checks.extend(version(facts, program.as_deref()));
        checks.extend((adapter.checks)(program.as_deref()));
    }
    if may_open {
        checks.extend(appointments(paths));
        checks.push(mcp_server());
    }
    checks.extend(plugin::is_current(&paths.home).map(plugin_hooks));
    checks.extend(notifications(&paths.config.notify));
    checks.push(log(paths));
    let overall = checks.iter().map(|check| check.status).max().unwrap_or(CheckStatus::Ok);
    let store_line = format!("{} (from {})", paths.store.display(), paths.store_from);
    let mut lines = vec![format!("steadfast {}  store {store_line}", env!("CARGO_PKG_VERSION"))];
    for check in &checks {
        lines.push(format!("{:<4}  {:<20}  {}", <&str>::from(check.status), check.id, check.detail));
        if let Some(hint) = &check.hint {
            lines.push(format!("                            hint: {hint}"));
        }
    }
    let object = |check: &DoctorCheck| json!({"id": check.id, "status": <&str>::from(check.status), "detail": check.detail, "hint": check.hint});
    let listed: Value = checks.iter().map(object).collect();
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"), "store": paths.store.display().to_string(),
        "store_from": paths.store_from, "checks": listed, "overall": <&str>::from(overall),
    });
    let code = if overall == CheckStatus::Fail { code::ENVIRONMENT } else { 0 };
    CommandOutput { text: lines.join("\n"), json, code }
}

/// After an upgrade, goals need the hooks of the new version to be woken.
fn plugin_hooks(is_current: bool) -> DoctorCheck {
    if is_current {
        return ok("plugin_hooks", "of this version");
    }
    warn("plugin_hooks", "the installed plugin is of another version", "run `steadfast doctor --fix`")
}

/// What to do about an error, from the command that other hints refer to.
fn hint_of(error: &StoreError, paths: &Paths) -> String {
    let hint = error.hint();
    match hint.split_once("; ") {
        _ if !hint.contains("steadfast doctor") => hint.to_owned(),
        Some((first, _)) if !first.contains("steadfast doctor") => first.to_owned(),
        _ => format!("read {}, and report this as a bug", paths.log_file().display()),
    }
}

fn store(paths: &Paths, full: bool) -> Vec<DoctorCheck> {
    match log_damage(&paths.store) {
        Ok(None) => {}
        Ok(Some(message)) => return vec![fail(LOG, message, "nothing was changed; run `steadfast db recover`")],
        Err(error) => return vec![fail(LOG, error.to_string(), "make the log of the store readable")],
    }
    let store = match Store::open_existing(&paths.store) {
        Ok(store) => store,
        Err(StoreError::Missing(_)) => {
            return vec![ok("store", "not created yet; the first goal or session creates it")];
        }
        Err(error) => return vec![fail("store", error.to_string(), hint_of(&error, paths))],
    };
    let mut checks = vec![match store.write_fault() {
        Some(error) => fail("store", format!("{error}; it can only be read"), hint_of(&error, paths)),
        None => ok("store", format!("schema {SCHEMA_VERSION}, {}", paths.store.display())),
    }];
    checks.push(integrity(&store, full));
    checks.push(space(&store));
    checks.push(match store.journal_mode() {
        Ok(mode) if mode == "wal" => ok("store_journal", "wal"),
        // Opened without its log, the file does not say how it is written.
        Ok(_) if store.blocked().is_some() => ok("store_journal", "not known while the store can only be read"),
        Ok(mode) => {
            let hint = "move the store to a local disk; this file system may not support WAL";
            fail("store_journal", format!("journal mode is {mode}"), hint)
        }
        Err(error) => fail("store_journal", error.to_string(), hint_of(&error, paths)),
    });
    let counted = store.read().goal_counts().and_then(|counts| {
        let orphans = action::orphans(store.read(), 0, ORPHANS_COUNTED, clock::now())?;
        Ok((counts, orphans.len()))
    });
    checks.push(match counted {
        Ok((counts, orphans)) => {
            let listed: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            let active = counts.iter().any(|(status, _)| *status == GoalStatus::Active);
            let detail = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
            if orphans > 0 && active {
                let least = if orphans == ORPHANS_COUNTED { "at least " } else { "" };
                let detail = format!("{detail}; {least}{orphans} without a live session");
                warn("goals", detail, "run `steadfast goal cleanup --list`")
            } else {
                ok("goals", detail)
            }
        }
        Err(error) => fail("goals", error.to_string(), hint_of(&error, paths)),
    });
    checks
}

/// Looks for faults in the whole file where that is asked for or quick, else in its most important tables.
fn integrity(store: &Store, full: bool) -> DoctorCheck {
    let checked = store.size().and_then(|size| {
        let is_whole = full || size <= CHECKED_AT_ONCE;
        if is_whole && size > CHECKED_AT_ONCE {
            output::note(&format!("checking {} MB", size / 1_000_000));
        }
        let faults = if is_whole { store.integrity_faults() } else { store.quick_faults() };
        Ok((is_whole, faults?))
    });
    match checked {
        Ok((true, faults)) if faults.is_empty() => ok("store_integrity", "no faults"),
        Ok((false, faults)) if faults.is_empty() => {
            ok("store_integrity", "no faults in its structure; `steadfast doctor --full` reads the whole file")
        }
        Ok((_, faults)) => {
            fail("store_integrity", faults.join("; "), "nothing was changed; run `steadfast db recover`")
        }
        Err(error) => fail("store_integrity", error.to_string(), error.hint()),
    }
}

/// How large the file is, and how much of it is free.
fn space(store: &Store) -> DoctorCheck {
    let mb = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
    match store.size().and_then(|size| Ok((size, store.free_size()?, store.returns_pages()?))) {
        Ok((size, free, false)) if free > MUCH_FREE && free > size / 2 => {
            let detail = format!("{}, {} of it free", mb(size), mb(free));
            warn("store_size", detail, "run `steadfast db compact` when no agent is running")
        }
        Ok((size, free, _)) => ok("store_size", format!("{}, {} of it free", mb(size), mb(free))),
        Err(error) => fail("store_size", error.to_string(), error.hint()),
    }
}

/// Without `setup`, hooks keep their goals in the plugin's own directory, where a terminal does not look.
fn one_store(paths: &Paths) -> DoctorCheck {
    let Some(other) = other_stores::with_goals(paths).into_iter().next() else {
        return ok("one_store", "no plugin keeps goals that are not in this store");
    };
    let path = other.path.display();
    match &other.missing {
        Ok(goals) => {
            let detail = format!("another store has {} that this one lacks: {path}", other_stores::count(*goals));
            warn("one_store", detail, other.way_here())
        }
        Err(error) => {
            let hint = if error.is_corrupt() {
                format!("delete {path} if you do not need its goals")
            } else {
                error.hint().to_owned()
            };
            warn("one_store", format!("another store cannot be read: {error}"), hint)
        }
    }
}

fn predecessor() -> Option<DoctorCheck> {
    let store = other_stores::predecessor()?;
    let store = store.display();
    let hint = format!(
        "run `steadfast db import {store}` to import them, and disable that plugin so that only one drives the agent"
    );
    Some(warn("claude_goal_plugin", format!("the claude-goal plugin has goals in {store}"), hint))
}

fn program_on_path() -> DoctorCheck {
    let own = std::env::current_exe().ok().and_then(|path| fs_err::canonicalize(path).ok());
    match programs::on_path("steadfast") {
        Some(found) if own.is_some_and(|own| programs::leads_to(&found, &own)) => {
            ok("program_on_path", found.display().to_string())
        }
        Some(found) => {
            let detail = format!("another steadfast comes first on PATH: {}", found.display());
            warn("program_on_path", detail, "put this one first on PATH, or hooks may run the other")
        }
        None => warn(
            "program_on_path",
            "steadfast is not on PATH",
            "add it if you use `claude --plugin-dir`; hooks installed by `steadfast setup` do not need it",
        ),
    }
}

/// Starts the server and reads its name. One that does not answer ends with this process, which holds its stdin.
fn greet_mcp_server() -> io::Result<Value> {
    let program = std::env::current_exe()?;
    let (sender, answer) = mpsc::channel();
    thread::spawn(move || {
        let greeted = McpClient::start(Command::new(program).arg("mcp")).map(|(_, server)| server);
        // The receiver is gone if it waited for too long.
        let _ = sender.send(greeted);
    });
    let seconds = MCP_PATIENCE.as_secs();
    answer.recv_timeout(MCP_PATIENCE).unwrap_or_else(|_| Err(io::Error::other(format!("nothing in {seconds} s"))))
}

fn mcp_server() -> DoctorCheck {
    let hint = "run `steadfast mcp` by hand and read its error";
    match greet_mcp_server() {
        Ok(server) => match server["name"].as_str() {
            Some(name) => ok("mcp_server", format!("{name} answers")),
            None => fail("mcp_server", "unexpected answer of the MCP server", hint),
        },
        Err(error) => fail("mcp_server", format!("the MCP server does not answer: {error}"), hint),
    }
}

/// Appointments need a process that keeps them.
fn appointments(paths: &Paths) -> Option<DoctorCheck> {
    // The check of the store reports errors.
    let rows = Store::open_existing(&paths.store).ok()?.read().appointments(None, None).ok()?;
    let open: Vec<Millis> = rows.iter().filter_map(|row| row.next_at_ms).collect();
    let next = clock::to_local(*open.iter().min()?);
    let count = text::count(open.len(), "appointment");
    if !watch_lock::is_held(&paths.home) {
        let detail = format!("{count}, the next at {next}, but `steadfast watch` does not run");
        return Some(warn(
            "appointments",
            detail,
            "`steadfast watch --detach`; at login: `steadfast setup watch --yes`",
        ));
    }
    let after = "after a reboot a session or a command starts it; with `steadfast setup watch --yes` your login does";
    Some(ok("appointments", format!("{count}, the next at {next}; `steadfast watch` keeps them ({after})")))
}

/// What `[notify]` names must be there; nothing is sent.
fn notifications(config: &NotifyConfig) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    if let Some(program) = config.command.first() {
        checks.push(match programs::on_path(program) {
            Some(found) => ok("notify_command", found.display().to_string()),
            None => warn("notify_command", format!("no program {program}"), "write its whole path in [notify] command"),
        });
    }
    if config.webhook.is_some() {
        checks.push(match config.secret() {
            Ok(Some(_)) => ok("notify_webhook", "signed"),
            Ok(None) => ok("notify_webhook", "not signed (set webhook_secret to sign)"),
            Err(error) => {
                warn("notify_webhook", error.to_string(), "set it where your agents start, or use webhook_secret")
            }
        });
    }
    checks
}

/// Failures of hooks, which the user does not see when they happen.
fn log(paths: &Paths) -> DoctorCheck {
    let file = paths.log_file();
    let text = bounded::text(&file, 1024 * 1024).unwrap_or_default();
    let day_ago = clock::to_rfc3339(clock::now() - clock::DAY);
    let is_error = |line: &&str| {
        let (at, message) = line.split_at_checked(day_ago.len()).unwrap_or_default();
        at > day_ago.as_str() && !message.trim_start().starts_with(own_paths::NOTE)
    };
    let recent: Vec<&str> = text.lines().filter(is_error).collect();
    match recent.last() {
        None => ok("log", "no errors in the last day"),
        Some(last) => {
            let detail = format!("{} errors in the last day, the last: {last}", recent.len());
            warn("log", detail, format!("read {}", file.display()))
        }
    }
}

/// Whether a host's program is new enough; `None` where the program is missing or any version will do.
/// A warning if no client can be started.
fn no_client() -> Option<DoctorCheck> {
    let programs: Vec<&str> = adapters().map(|adapter| adapter.host.capabilities().program).collect();
    let is_there = programs.iter().any(|program| programs::on_path(program).is_some());
    let detail = format!("neither {} is on PATH", programs.join(" nor "));
    (!is_there).then(|| warn("client", detail, "install one, or add its directory to PATH"))
}

fn version(facts: &Capabilities, program: Option<&Path>) -> Option<DoctorCheck> {
    let (wanted, program) = (facts.version_check.as_ref()?, program?);
    let shown = program.display();
    let reinstall = format!("install {} again", facts.product);
    let judge = |text: &str| {
        if wanted.is_too_old(text) {
            return warn(wanted.id, wanted.complaint(facts.product, text), format!("run `{}`", wanted.update));
        }
        ok(wanted.id, text)
    };
    if let Some(version) = installed_version(program) {
        return Some(judge(&version));
    }
    let directory = program.parent().unwrap_or(Path::new("/"));
    let version = LimitedCommand::new(program, directory, VERSION_LIMIT).args(["--version"]);
    let outcome = match version.run() {
        Ok(outcome) => outcome,
        Err(error) => return Some(warn(wanted.id, format!("{shown} does not start: {error}"), reinstall)),
    };
    let printed = outcome.output_tail.lines().find_map(|line| {
        let version = line.strip_prefix(wanted.prefix)?.split_whitespace().next()?;
        VersionCheck::numbers(version).map(|_| version)
    });
    Some(match printed {
        Some(version) => judge(version),
        None if outcome.timed_out => warn(wanted.id, format!("{shown} --version did not answer"), reinstall),
        None => warn(wanted.id, format!("{shown} names no version"), reinstall),
    })
}
