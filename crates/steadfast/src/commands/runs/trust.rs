//! Refuses to start or resume a run that uses what its repository brings before the user said yes to it: definitions,
//! their prompts and scripts, and what the agent's client loads from the project by itself.

use std::collections::BTreeSet;
use std::io::{ErrorKind, IsTerminal as _};
use std::path::PathBuf;

use steadfast_engine::plan::{Planned, UsedDefinition};
use steadfast_engine::run_folder::RunFolder;
use steadfast_engine::trust::{Ledger, Repository, SCRIPT, State, TrustItem};
use steadfast_hosts::adapter;
use steadfast_model::host::Host;
use steadfast_model::run::{AgentKind, Plan};
use steadfast_store::RunRow;
use steadfast_system::log;

use super::RunContext;
use crate::commands::{person, setup, trust};
use crate::error::{CliError, code};
use crate::output;

/// The most files that an error names.
const MOST_NAMED: usize = 20;

/// Fails if a new run uses what the user does not trust; `is_given` trusts it from now on. Returns the scripts that the
/// repository's definitions name: they are checked again when the run is resumed.
pub(super) fn require(
    context: &RunContext,
    used: &[UsedDefinition],
    plan: &Plan,
    is_given: bool,
) -> Result<Vec<PathBuf>, CliError> {
    let repository = Repository::of(&context.project);
    let mut items = repository.items_of_definitions(used)?;
    let is_script = |item: &&TrustItem| item.what == SCRIPT;
    let scripts = items.iter().filter(is_script).map(|item| item.file.clone()).collect();
    items.extend(items_of_clients(context, &repository, plan)?);
    allow(context, &repository, &items, is_given)?;
    Ok(scripts)
}

/// The same for a run that is resumed. Its definitions were trusted when they became its plan; everything else may have
/// changed since.
pub(super) fn require_again(context: &RunContext, row: &RunRow, is_given: bool) -> Result<(), CliError> {
    let repository = Repository::of(&context.project);
    let scripts = RunFolder::at(&context.paths.home, &row.run_id).scripts();
    let mut items = repository.scripts(&scripts)?;
    items.extend(items_of_clients(context, &repository, &row.plan)?);
    allow(context, &repository, &items, is_given)
}

/// Trusts a definition that the user has just created with a command.
pub(in crate::commands) fn trust_new(context: &RunContext, planned: &Planned) -> Result<(), CliError> {
    if person::caller_in_project(&context.paths, &context.project)?.is_agent() {
        return Ok(());
    }
    let repository = Repository::of(&context.project);
    record(context, &repository, &repository.items_of_definitions(&planned.used)?)
}

fn items_of_clients(context: &RunContext, repository: &Repository, plan: &Plan) -> Result<Vec<TrustItem>, CliError> {
    let hosts: BTreeSet<Host> = plan
        .agents()
        .filter_map(|agent| match agent.kind {
            AgentKind::Host(host) => Some(host),
            AgentKind::Command(_) => None,
        })
        .collect();
    let mut items = Vec::new();
    for host in hosts.into_iter().filter(|host| !(adapter(*host).trusts_project)(&context.project)) {
        items.extend(repository.items_of_client(host)?);
    }
    Ok(items)
}

fn allow(context: &RunContext, repository: &Repository, items: &[TrustItem], is_given: bool) -> Result<(), CliError> {
    let ledger = ledger(context)?;
    let open: Vec<(TrustItem, State)> =
        items.iter().map(|item| (item.clone(), ledger.state(repository, item))).collect();
    let open: Vec<(TrustItem, State)> = open.into_iter().filter(|(_, state)| *state != State::Trusted).collect();
    if open.is_empty() {
        return Ok(());
    }
    let is_agent = person::caller_in_project(&context.paths, &context.project)?.is_agent();
    if is_given {
        refuse_agent(context)?;
    }
    let can_ask = !is_agent && !context.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if is_given || can_ask {
        output::note(&trust::page(repository, &open));
    }
    let is_yes = is_given || can_ask && setup::ask("This comes from the repository. Trust it?")?;
    if !is_yes {
        return Err(refusal(repository, &open, is_agent));
    }
    let items: Vec<TrustItem> = open.into_iter().map(|(item, _)| item).collect();
    record(context, repository, &items)
}

fn refusal(repository: &Repository, open: &[(TrustItem, State)], is_agent: bool) -> CliError {
    let in_words = |(item, state): &(TrustItem, State)| {
        format!("{} ({})", repository.shown(&item.file), trust::about(item, *state))
    };
    let mut names: Vec<String> = open.iter().take(MOST_NAMED).map(in_words).collect();
    if open.len() > MOST_NAMED {
        names.push(format!("and {} more", open.len() - MOST_NAMED));
    }
    let message = format!("this repository is not trusted: {}", names.join(", "));
    let hint = if is_agent {
        "the user can run `steadfast trust` in their own terminal"
    } else {
        "`steadfast trust` shows what they do and asks; `--trust` here says yes at once"
    };
    CliError::new(code::WRONG_STATE, message, hint)
}

/// Only a person says yes or takes it back.
pub(in crate::commands) fn refuse_agent(context: &RunContext) -> Result<(), CliError> {
    if !person::caller_in_project(&context.paths, &context.project)?.is_agent() {
        return Ok(());
    }
    log::line(&context.paths.log_file(), "refused `trust` in an agent's shell");
    let hint = "the user can run `steadfast trust` in their own terminal";
    Err(CliError::new(code::WRONG_STATE, "an agent may not trust what a repository brings", hint))
}

pub(in crate::commands) fn ledger(context: &RunContext) -> Result<Ledger, CliError> {
    Ledger::read(&context.paths.home).map_err(unreadable)
}

pub(in crate::commands) fn record(
    context: &RunContext,
    repository: &Repository,
    items: &[TrustItem],
) -> Result<(), CliError> {
    Ledger::update(&context.paths.home, |ledger| ledger.trust(repository, items)).map_err(unreadable)
}

/// Forgets these items; `None` forgets the whole repository. Returns how many files are no longer trusted.
pub(in crate::commands) fn revoke(
    context: &RunContext,
    repository: &Repository,
    items: Option<&[TrustItem]>,
) -> Result<usize, CliError> {
    Ledger::update(&context.paths.home, |ledger| ledger.revoke(repository, items)).map_err(unreadable)
}

fn unreadable(error: std::io::Error) -> CliError {
    match error.kind() {
        ErrorKind::InvalidData => {
            let hint = "remove the file; repositories then have to be trusted again";
            CliError::new(code::ENVIRONMENT, error.to_string(), hint)
        }
        ErrorKind::TimedOut => CliError::new(code::ENVIRONMENT, error.to_string(), "try again"),
        _ => error.into(),
    }
}
