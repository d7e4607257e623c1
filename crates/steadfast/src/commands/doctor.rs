//! `steadfast doctor`: looks at everything that must be right, really trying it where it can, and says how to
//! mend what is not.

mod version;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use steadfast_core::action;
use steadfast_core::clock;
use steadfast_core::goal::GoalStatus;
use steadfast_core::host::adapters;
use steadfast_core::host::doctor::{CheckStatus, DoctorCheck, fail, ok, warn};
use steadfast_core::paths::Paths;
use steadfast_core::store::{SCHEMA_VERSION, Store, StoreError};

use super::setup::{plugin_stores, predecessor_store};
use crate::failure::{Failure, code};
use crate::output::Done;
use crate::programs;

pub(crate) fn run(db: Option<&Path>) -> Result<Done, Failure> {
    Ok(report(&Paths::find(db)?))
}

pub(crate) fn report(paths: &Paths) -> Done {
    let mut checks = vec![home(paths)];
    checks.extend(store(paths));
    checks.push(other_stores(paths));
    checks.extend(predecessor());
    checks.push(program_on_path());
    for adapter in adapters() {
        let facts = adapter.host.capabilities();
        let program = programs::on_path(facts.program);
        checks.extend(version::check(facts, program.as_deref()));
        checks.extend((adapter.checks)(program.as_deref()));
    }
    checks.push(mcp_server());
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
    let listed: Vec<Value> = checks
        .iter()
        .map(|check| json!({"id": check.id, "status": <&str>::from(check.status), "detail": check.detail, "hint": check.hint}))
        .collect();
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "store": paths.store.display().to_string(),
        "store_from": paths.store_from,
        "checks": listed,
        "overall": <&str>::from(overall),
    });
    Done { text: lines.join("\n"), json, code: if overall == CheckStatus::Fail { code::ENVIRONMENT } else { 0 } }
}

fn home(paths: &Paths) -> DoctorCheck {
    let shown = paths.home.display().to_string();
    if !paths.home.exists() {
        return ok("home", format!("{shown} (created when first needed)"));
    }
    match tempfile::tempfile_in(&paths.home) {
        Ok(_) => ok("home", shown),
        Err(error) => {
            fail("home", format!("{shown} cannot be written: {error}"), "make it writable, or set STEADFAST_HOME")
        }
    }
}

fn store(paths: &Paths) -> Vec<DoctorCheck> {
    let store = match Store::open_existing(&paths.store) {
        Ok(store) => store,
        Err(StoreError::Missing(_)) => return vec![ok("store", "not there yet; the first goal or session creates it")],
        Err(error) => return vec![fail("store", error.to_string(), error.hint())],
    };
    let mut checks = vec![ok("store", format!("schema {SCHEMA_VERSION}, {}", paths.store.display()))];
    checks.push(match store.integrity_faults() {
        Ok(faults) if faults.is_empty() => ok("store_integrity", "no faults"),
        Ok(faults) => fail(
            "store_integrity",
            faults.join("; "),
            "restore a backup: `steadfast db backup` files are beside the store",
        ),
        Err(error) => fail("store_integrity", error.to_string(), error.hint()),
    });
    checks.push(match store.journal_mode() {
        Ok(mode) if mode == "wal" => ok("store_journal", "wal"),
        Ok(mode) => fail(
            "store_journal",
            format!("journal mode is {mode}"),
            "the file system may not allow WAL; move the store to a local disk",
        ),
        Err(error) => fail("store_journal", error.to_string(), error.hint()),
    });
    let counted = store.read().goal_counts().and_then(|counts| {
        let orphans = action::orphans(store.read(), 0, clock::now())?;
        Ok((counts, orphans.len()))
    });
    checks.push(match counted {
        Ok((counts, orphans)) => {
            let listed: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            let active = counts.iter().any(|(status, _)| *status == GoalStatus::Active);
            let detail = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
            if orphans > 0 && active {
                warn(
                    "goals",
                    format!("{detail}; {orphans} without a live session"),
                    "`steadfast goal cleanup --list` shows them",
                )
            } else {
                ok("goals", detail)
            }
        }
        Err(error) => fail("goals", error.to_string(), error.hint()),
    });
    checks
}

/// Without `setup`, hooks keep their goals in the plugin's own directory, where a terminal does not look.
fn other_stores(paths: &Paths) -> DoctorCheck {
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let others: Vec<PathBuf> =
        plugin_stores("steadfast").into_iter().filter(|store| real(store) != real(&paths.store)).collect();
    match others.first() {
        None => ok("one_store", "hooks and terminal use the same store"),
        Some(other) => warn(
            "one_store",
            format!("another store holds goals: {}", other.display()),
            format!(
                "`steadfast setup claude` makes them one; `steadfast db import {}` brings its goals here",
                other.display()
            ),
        ),
    }
}

fn predecessor() -> Option<DoctorCheck> {
    let found = predecessor_store()?;
    Some(warn(
        "claude_goal_plugin",
        format!("the claude-goal plugin has goals in {}", found.display()),
        format!(
            "`steadfast db import {}` brings them here; disable that plugin so that only one drives",
            found.display()
        ),
    ))
}

fn program_on_path() -> DoctorCheck {
    let own = std::env::current_exe().ok().and_then(|path| fs_err::canonicalize(path).ok());
    match programs::on_path("steadfast") {
        Some(found) if fs_err::canonicalize(&found).ok() == own => ok("program_on_path", found.display().to_string()),
        Some(found) => warn(
            "program_on_path",
            format!("another steadfast comes first: {}", found.display()),
            "hooks may run that one; put this one first in PATH",
        ),
        None => warn(
            "program_on_path",
            "steadfast is not on PATH",
            "hooks set up by `steadfast setup` do not need it, `claude --plugin-dir` does",
        ),
    }
}

/// Starts our own tool server and shakes hands with it.
fn mcp_server() -> DoctorCheck {
    let id = "mcp_server";
    match handshake() {
        Ok(name) => ok(id, format!("{name} answers")),
        Err(problem) => fail(
            id,
            format!("the tool server does not answer: {problem}"),
            "run `steadfast mcp` by hand and see what it says",
        ),
    }
}

fn handshake() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "doctor", "version": "1"}},
    });
    let mut answer = String::new();
    let spoke = child
        .stdin
        .take()
        .ok_or("no stdin")
        .and_then(|mut stdin| writeln!(stdin, "{initialize}").map(|()| stdin).map_err(|_| "it closed its stdin"))
        .and_then(|stdin| {
            let stdout = child.stdout.take().ok_or("no stdout")?;
            let read = BufReader::new(stdout).read_line(&mut answer).map_err(|_| "it closed its stdout");
            drop(stdin);
            read
        });
    // It ends by itself when its stdin closes; a hanging one must not outlive the check.
    let _ = child.kill();
    let _ = child.wait();
    spoke.map_err(str::to_owned)?;
    let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    answer["result"]["serverInfo"]["name"].as_str().map(str::to_owned).ok_or_else(|| "unexpected answer".to_owned())
}

/// Failures of hooks, which nobody sees when they happen.
fn log(paths: &Paths) -> DoctorCheck {
    let file = paths.log_file();
    let text = fs_err::read_to_string(&file).unwrap_or_default();
    let day_ago = clock::to_rfc3339(clock::now() - clock::DAY);
    let recent: Vec<&str> =
        text.lines().filter(|line| line.get(..20).is_some_and(|at| at > day_ago.as_str())).collect();
    match recent.last() {
        None => ok("log", "no failures in the last day"),
        Some(last) => warn(
            "log",
            format!("{} failures in the last day, the last: {last}", recent.len()),
            format!("see {}", file.display()),
        ),
    }
}
