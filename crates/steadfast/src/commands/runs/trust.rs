//! Trust in commands of a repository. Loop types and pipelines in `.claude` may run commands. A definition whose name
//! only the repository has runs with a note. One that shadows a built-in or the user's own runs only after `--trust`, and
//! has to be trusted again after every change.

use std::collections::BTreeMap;
use std::path::Path;

use steadfast_engine::durable;
use steadfast_engine::plan::{DefinitionOrigin, Planned, UsedDefinition};
use steadfast_model::run::{AgentKind, Plan, RunKind, StagePlan};
use steadfast_model::text;
use steadfast_system::bounded;
use steadfast_system::config::AgentsConfig;

use super::RunContext;
use crate::commands::person;
use crate::error::{CliError, code};
use crate::output;

/// The most commands that a note lists, and the most characters of each.
const MOST_NAMED: usize = 10;
const LONGEST_NAMED: usize = 200;

/// Prints which commands of the repository will run. Fails for shadowing definitions that are not trusted; `is_given`
/// trusts them from now on.
pub(in crate::commands) fn require_trust(
    context: &RunContext,
    planned: &Planned,
    is_given: bool,
) -> Result<(), CliError> {
    let of_repository: Vec<&UsedDefinition> =
        planned.used.iter().filter(|used| is_of_repository(context, used)).collect();
    // The loop types of a shadowing pipeline were not chosen by the user either.
    let is_shadowing = of_repository.iter().any(|used| used.kind == RunKind::Pipeline && used.shadows);
    let runs_commands = of_repository.into_iter().filter(|used| !used.commands.is_empty());
    let (shadowing, chosen): (Vec<&UsedDefinition>, Vec<&UsedDefinition>) =
        runs_commands.partition(|used| is_shadowing || used.shadows);
    allow(context, &shadowing, is_given)?;
    for used in chosen.iter().chain(&shadowing) {
        output::note(&format!("note: this project's own {} runs: {}", used.kind, named(&used.commands)));
    }
    Ok(())
}

fn named(commands: &[String]) -> String {
    let words = |command: &String| command.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |command: &String| format!("`{}`", text::headline(&words(command), LONGEST_NAMED));
    let mut shown: Vec<String> = commands.iter().take(MOST_NAMED).map(shown).collect();
    if commands.len() > MOST_NAMED {
        shown.push(format!("and {} more", commands.len() - MOST_NAMED));
    }
    shown.join(", ")
}

fn allow(context: &RunContext, shadowing: &[&UsedDefinition], is_given: bool) -> Result<(), CliError> {
    if shadowing.is_empty() {
        return Ok(());
    }
    let ledger = context.paths.home.join("trust.json");
    let mut trusted = read(&ledger)?;
    let is_trusted = |used: &UsedDefinition| trusted.get(&key(&used.file)) == Some(&used.sha256);
    if let Some(used) = shadowing.iter().find(|used| !is_trusted(used) && !is_given) {
        let is_known = trusted.contains_key(&key(&used.file));
        let hint = "read the file, then add `--trust`; it stays trusted until it changes";
        return Err(CliError::new(code::WRONG_STATE, refusal(used, is_known), hint));
    }
    if is_given {
        if person::caller(&context.paths).is_agent() {
            let hint = "run it in your own terminal";
            return Err(CliError::new(code::WRONG_STATE, "an agent may not trust commands", hint));
        }
        trusted.extend(shadowing.iter().map(|used| (key(&used.file), used.sha256.clone())));
        write(&ledger, &trusted)?;
    }
    Ok(())
}

fn refusal(used: &UsedDefinition, is_known: bool) -> String {
    let why = if used.shadows {
        format!("shadows another {} of that name", used.kind)
    } else {
        "is used by a pipeline that shadows another of that name".to_owned()
    };
    let changed = if is_known { " and has changed since you trusted it" } else { "" };
    let first = used.commands.first().map(|command| text::headline(command, 80)).unwrap_or_default();
    format!("not trusted: {} {why} and runs commands (`{first}`){changed}", used.file)
}

/// Files in `.claude` come with the repository. Any other file that the user named by its path was chosen, like a script.
fn is_of_repository(context: &RunContext, used: &UsedDefinition) -> bool {
    let is_below = |path: &Path| path.starts_with(context.project.join(".claude"));
    let path = Path::new(&used.file);
    match used.origin {
        DefinitionOrigin::Project => true,
        DefinitionOrigin::Path => {
            is_below(&fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())) || is_below(path)
        }
        DefinitionOrigin::User | DefinitionOrigin::BuiltIn => false,
    }
}

fn key(file: &str) -> String {
    fs_err::canonicalize(file).map_or_else(|_| file.to_owned(), |path| path.to_string_lossy().into_owned())
}

pub(super) fn read(ledger: &Path) -> Result<BTreeMap<String, String>, CliError> {
    match bounded::whole(ledger, 16 * 1024 * 1024) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("cannot parse {}: {error}", ledger.display());
            CliError::new(code::ENVIRONMENT, message, "remove it; definitions then have to be trusted again")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn write(ledger: &Path, trusted: &BTreeMap<String, String>) -> Result<(), CliError> {
    steadfast_system::paths::create_private_dir(ledger.parent().unwrap_or(Path::new(".")))?;
    let mut text = serde_json::to_vec_pretty(trusted).map_err(std::io::Error::from)?;
    text.push(b'\n');
    Ok(durable::replace(ledger, &text)?)
}

/// Prints what agents may do without asking, at the first run in a project and after a change of the agent or its flags.
pub(super) fn print_permissions_once(context: &RunContext, plan: &Plan) {
    let ledger = context.paths.home.join("permissions.json");
    // An error here only means that the note is printed again.
    let mut printed = read(&ledger).unwrap_or_default();
    let known = printed.entry(context.project_dir()).or_default();
    let mut lines = Vec::new();
    for agent in plan.stages.iter().flat_map(StagePlan::all_agents) {
        let line = permissions(&agent.kind, &context.paths.config.agents);
        if !known.lines().any(|known| known == line) {
            known.push_str(&line);
            known.push('\n');
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return;
    }
    if plan.stages.iter().flat_map(StagePlan::all_agents).any(|agent| !matches!(agent.kind, AgentKind::Command(_))) {
        let config = context.paths.home.join("config.toml");
        lines.push(format!("to change that, set `permission_flags` in {}", config.display()));
    }
    output::note(&format!("note: what agents may do in this project (printed once):\n  {}", lines.join("\n  ")));
    let _ = write(&ledger, &printed);
}

fn permissions(agent: &AgentKind, config: &AgentsConfig) -> String {
    let AgentKind::Host(host) = agent else {
        return "a command given as agent may do everything that you may do".to_owned();
    };
    let (name, all) = (host.capabilities().program, host.capabilities().all_permissions_flag);
    match &config.of(*host).permission_flags {
        None => format!("{name} may run any command and change any file without asking ({all})"),
        Some(flags) => {
            format!("{name} may do what your `permission_flags` allow: {}", text::one_line(&flags.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests;
