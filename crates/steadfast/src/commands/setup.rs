//! `steadfast setup`: adds our hooks to a host with the user's consent, and removes them without a trace. Without a name
//! it is about the hosts that are found on this machine.

mod asking;
mod exclude;
mod found;
mod imports;
pub(crate) mod repair;
mod service;

use std::cell::RefCell;
use std::path::{Path, PathBuf, absolute};

use serde_json::json;
use steadfast_hosts::install::{
    self, Ask, Consent, InstallPlan, InstallRequest, Question, SetupLock, is_set_up, shell_word,
};
use steadfast_hosts::{HostAdapter, adapter, installed_version};
use steadfast_model::clock;
use steadfast_model::host::Host;
use steadfast_store::remove_stray_backups;
use steadfast_system::paths::Paths;

pub(super) use self::asking::ask;
use self::asking::{ask_question, can_ask};
use self::found::FoundHost;
use super::{other_stores, own_paths};
use crate::cli::{SERVICE, SetupArgs};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};
use crate::slash_commands::SLASH_COMMANDS;
use crate::{plugin, programs};

/// What was done for all hosts together.
#[derive(Default)]
struct SetupSummary {
    changes: Vec<String>,
    files: Vec<PathBuf>,
    notes: Vec<String>,
    /// Goals of other stores that are here now, or would be.
    imports: Vec<String>,
    /// What a dry run does not decide.
    questions: Vec<String>,
    /// The user said no to a change.
    is_refused: bool,
    products: Vec<&'static str>,
    /// Names of our commands that are the user's own files.
    kept: Vec<String>,
    failed: Vec<Failed>,
    /// Without a name: the hosts of this machine, as they were before.
    found: Vec<FoundHost>,
}

/// A part that could not be set up or removed; the others are all the same.
struct Failed {
    product: &'static str,
    /// Its word on the command line.
    word: &'static str,
    error: CliError,
}

pub(crate) fn run(db: Option<&Path>, arguments: &SetupArgs) -> CommandResult {
    let paths = own_paths::find(db)?;
    if !arguments.dry_run {
        super::refuse_agents(&paths, if arguments.uninstall { "setup --uninstall" } else { "setup" })?;
    }
    let what = arguments.what.as_deref();
    let mut summary = SetupSummary::default();
    let hosts = match what.map(str::parse) {
        Some(Ok(host)) => vec![host],
        Some(Err(_)) => Vec::new(),
        None if arguments.uninstall => Host::ALL.to_vec(),
        None => {
            summary.found = found::look(&paths, arguments)?;
            summary.found.iter().map(|found| found.host).collect()
        }
    };
    let mut done = Vec::new();
    let lock = if arguments.dry_run { None } else { Some(SetupLock::take(&paths.home)?) };
    if !arguments.dry_run {
        install::remove_strays(&paths.home, lock.as_ref());
        remove_stray_backups(&paths.store);
    }
    for host in hosts {
        match of_host(host, &paths, &done, arguments, &mut summary) {
            Ok(()) => done.push(host),
            Err(error) => summary.fail(host.capabilities().product, host.name(), error),
        }
    }
    let sets_up = |host: &Host| arguments.dry_run || is_set_up(&paths.home, host.name());
    if !arguments.uninstall && !summary.is_refused && done.iter().any(sets_up) {
        imports::import(arguments, &mut summary)?;
    }
    let service = match (arguments.uninstall, what) {
        (true, None | Some(SERVICE)) => service::uninstall(&paths, arguments, &mut summary),
        (false, Some(SERVICE)) => service::install(&paths, arguments, &mut summary),
        _ => Ok(()),
    };
    if let Err(error) = service {
        summary.fail(service::SHOWN_AS, SERVICE, error);
    }
    if arguments.uninstall && what.is_none() {
        exclude::uninstall(&paths, arguments, &mut summary);
    }
    if let (false, Some(other)) = (arguments.uninstall, other_stores::predecessor()) {
        let import = format!("steadfast db import {}", shell_word(&other.to_string_lossy()));
        summary.notes.push(format!("the claude-goal plugin has goals of its own; import them with\n  {import}"));
    }
    if let Some(error) = summary.half_done(arguments) {
        return Err(error);
    }
    Ok(summary.report(&done, arguments))
}

fn of_host(
    host: Host,
    paths: &Paths,
    done: &[Host],
    arguments: &SetupArgs,
    summary: &mut SetupSummary,
) -> Result<(), CliError> {
    let adapter = adapter(host);
    let mut config_dirs = (adapter.config_dirs)();
    if arguments.uninstall {
        // An earlier setup may have had another value of the variable that names the directory.
        let others = install::config_dirs(&paths.home, host)?.into_iter().filter(|dir| !config_dirs.contains(dir));
        if arguments.what.is_none() {
            config_dirs.extend(others.collect::<Vec<_>>());
        } else {
            let note =
                |dir: PathBuf| format!("also set up in {}; `steadfast setup --uninstall` removes it", dir.display());
            summary.notes.extend(others.map(note));
        }
    }
    for config_dir in config_dirs {
        let plan = if arguments.uninstall {
            install::plan_uninstall(&paths.home, host, &config_dir, done)?
        } else {
            plan_install(adapter, paths, &config_dir, arguments, &mut summary.questions)?
        };
        summary.add(plan, host.capabilities().product, arguments)?;
        if !arguments.uninstall {
            summary.notes.extend((adapter.install_note)(&config_dir, arguments.dry_run));
        }
    }
    if !arguments.uninstall {
        summary.notes.extend(old_version(host));
    }
    Ok(())
}

/// What to do about a client in which our hooks do not all run.
fn old_version(host: Host) -> Option<String> {
    let facts = host.capabilities();
    let (check, program) = (facts.version_check.as_ref()?, programs::on_path(facts.program)?);
    let version = installed_version(&program).filter(|version| check.is_too_old(version))?;
    Some(format!("{}; to update it: {}", check.complaint(facts.product, &version), check.update))
}

impl SetupSummary {
    fn add(&mut self, plan: InstallPlan, product: &'static str, arguments: &SetupArgs) -> Result<(), CliError> {
        // If everything is meant, a part without our files is not worth a note.
        if arguments.what.is_some() || !plan.is_empty() {
            self.notes.extend(plan.notes().iter().cloned());
        }
        self.kept.extend(plan.kept().iter().cloned());
        if plan.is_empty() {
            return Ok(());
        }
        let is_of_client = arguments.what.as_deref() != Some(SERVICE);
        if is_of_client && !arguments.uninstall && !asking::agrees(&plan, product, arguments)? {
            self.is_refused = true;
            self.notes.push(format!("{product} is unchanged: you said no"));
            return Ok(());
        }
        self.changes.push(plan.describe());
        self.products.push(product);
        if !arguments.dry_run {
            let report = plan.apply()?;
            self.files.extend(report.written.into_iter().chain(report.removed));
        }
        Ok(())
    }

    fn fail(&mut self, product: &'static str, word: &'static str, error: CliError) {
        self.failed.push(Failed { product, word, error });
    }

    /// The error of a command that did only a part, with what was done, what was not, and what to type.
    fn half_done(&mut self, arguments: &SetupArgs) -> Option<CliError> {
        if self.failed.is_empty() {
            return None;
        }
        for note in self.imports.iter().chain(&self.notes) {
            output::note(&format!("note: {note}"));
        }
        let flag = if arguments.uninstall { " --uninstall" } else { "" };
        let verb = if arguments.uninstall { "removed steadfast from" } else { "set up" };
        let without = if arguments.uninstall { "but not from" } else { "but not" };
        self.products.dedup();
        let done = format!("{verb} {} ({} files), {without} ", self.products.join(" and "), self.files.len());
        let is_half = !self.files.is_empty() || !self.imports.is_empty();
        let failures: Vec<String> =
            self.failed.iter().map(|failed| format!("{}: {}", failed.product, failed.error.message)).collect();
        let words: Vec<String> =
            self.failed.iter().map(|failed| format!("`steadfast setup {}{flag}`", failed.word)).collect();
        let first = self.failed.swap_remove(0).error;
        let hint = first.hint.replace("then run the command again", "then continue");
        Some(if is_half {
            let message = format!("{done}{}", failures.join("; "));
            CliError::new(first.code, message, format!("{hint}; the rest: {}", words.join(", ")))
        } else {
            CliError { hint: format!("nothing was changed; {}", first.hint), ..first }
        })
    }

    fn report(mut self, hosts: &[Host], arguments: &SetupArgs) -> CommandOutput {
        self.products.dedup();
        let products = self.products.join(" and ");
        let commands = commands_of(hosts, &self.kept);
        let files = self.files.len();
        let first = if self.changes.is_empty() && self.is_refused {
            "nothing was changed".to_owned()
        } else if self.changes.is_empty() && !self.imports.is_empty() {
            String::new()
        } else if self.changes.is_empty() {
            "nothing to change".to_owned()
        } else if arguments.dry_run {
            self.changes.join("\n")
        } else if arguments.uninstall {
            format!("removed steadfast from {products} ({files} files)")
        } else {
            format!("set up {products} ({files} files){commands}")
        };
        let changes_something = !self.changes.is_empty() && !arguments.dry_run && !arguments.uninstall;
        let table = if arguments.dry_run { Vec::new() } else { found::before_and_after(&self.found) };
        let next = match (changes_something, self.found.is_empty()) {
            (true, true) => Some("next: steadfast doctor".to_owned()),
            (true, false) => Some("next: steadfast".to_owned()),
            _ => None,
        };
        let lines = std::iter::once(first)
            .filter(|first| !first.is_empty())
            .chain(self.imports.iter().cloned())
            .chain(self.questions.iter().map(|question| format!("asked: {question}")))
            .chain(table)
            .chain(next)
            .chain(self.notes.iter().map(|note| format!("note: {note}")));
        let text = lines.collect::<Vec<_>>().join("\n");
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        let mut json = json!({
            "dry_run": arguments.dry_run, "files": files, "changes": self.changes, "imports": self.imports,
            "notes": self.notes,
        });
        if arguments.dry_run {
            json["questions"] = json!(self.questions);
        }
        if !self.found.is_empty() {
            json["clients"] = self.found.iter().map(FoundHost::json).collect();
        }
        CommandOutput { text, json, code: 0 }
    }
}

/// How the commands of these hosts are typed.
fn commands_of(hosts: &[Host], kept: &[String]) -> String {
    let prefixes: Vec<&str> = hosts.iter().map(|host| host.capabilities().command_prefix).collect();
    if prefixes.is_empty() {
        return String::new();
    }
    if kept.is_empty() {
        let started: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}start")).collect();
        return format!("; new sessions have {} and the other commands", started.join(" or "));
    }
    let named: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}…")).collect();
    format!("; new sessions have the {} commands, except those of your own: {}", named.join(" and "), kept.join(", "))
}

fn plan_install(
    adapter: &HostAdapter,
    paths: &Paths,
    config_dir: &Path,
    arguments: &SetupArgs,
    questions: &mut Vec<String>,
) -> Result<InstallPlan, CliError> {
    // A dry run lists the questions, and shows the plan without what they are about.
    let listed = RefCell::new(Vec::new());
    let list = |question: &Question<'_>| {
        listed.borrow_mut().push(asking::in_a_line(question));
        Ok(false)
    };
    let ask: Option<Ask<'_>> =
        if arguments.dry_run { Some(&list) } else { can_ask(arguments).then_some(&ask_question) };
    let lasting_program = lasting_program(arguments)?;
    let plugin = plugin::files_for(&lasting_program);
    let plugin: Vec<(&str, &str)> = plugin.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let plan = (adapter.plan_install)(&InstallRequest {
        home: &absolute(&paths.home)?,
        config_dir,
        lasting_program: &lasting_program,
        marketplace: plugin::MARKETPLACE,
        plugin: &plugin,
        commands: SLASH_COMMANDS,
        statusline: consent(arguments.statusline, arguments.no_statusline, arguments.yes),
        block_cap: consent(arguments.block_cap.is_some(), arguments.no_block_cap, arguments.yes),
        block_cap_value: arguments.block_cap,
        limit_dialog: consent(arguments.skip_limit_dialog, arguments.keep_limit_dialog, false),
        ask,
        now: &clock::to_rfc3339(clock::now()),
    })?;
    questions.append(&mut listed.borrow_mut());
    Ok(plan)
}

/// The program that hooks and the service will call. npm deletes its cache of npx whenever it likes.
fn lasting_program(arguments: &SetupArgs) -> Result<PathBuf, CliError> {
    let program = plugin::lasting_program()?;
    if !arguments.dry_run && program.components().any(|part| part.as_os_str() == "_npx") {
        return Err(CliError::new(
            code::ENVIRONMENT,
            "npx keeps steadfast only for a while, and hooks need it to stay",
            "npm install -g steadfast && steadfast setup",
        ));
    }
    Ok(program)
}

fn consent(given: bool, refused: bool, yes: bool) -> Consent {
    match (given, refused, yes) {
        (true, _, _) => Consent::Given,
        (_, true, _) => Consent::Refused,
        (_, _, true) => Consent::Presumed,
        _ => Consent::Open,
    }
}
