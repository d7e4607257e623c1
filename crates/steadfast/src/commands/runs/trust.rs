//! Whose commands a run executes. Loop types and pipelines of a repository may name commands. Who asks for one by a name
//! that only the repository has means the repository's, and is told what it runs. One that takes the place of a built-in
//! or of the user's own may be a surprise: it runs only after the user said so once, and only as long as it stays the same.

use std::collections::BTreeMap;
use std::path::Path;

use steadfast_engine::durable;
use steadfast_engine::plan::{Origin, Planned, Used};
use steadfast_model::run::RunKind;
use steadfast_model::text;
use steadfast_system::process;

use super::Here;
use crate::error::{CliError, code};
use crate::output;

/// The most commands that a note names, and the most characters of each.
const MOST_NAMED: usize = 10;
const LONGEST_NAMED: usize = 200;

/// Tells which commands of the repository run. Where its definition takes the place of another, they are refused until
/// the user has allowed them; `is_given` allows them from now on.
pub(in crate::commands) fn require_trust(here: &Here, planned: &Planned, is_given: bool) -> Result<(), CliError> {
    let of_repository: Vec<&Used> = planned.used.iter().filter(|used| is_of_repository(here, used)).collect();
    // Who got another pipeline than the one he meant did not choose its loop types either.
    let is_surprise = of_repository.iter().any(|used| used.kind == RunKind::Pipeline && used.shadows);
    let runs_commands = of_repository.into_iter().filter(|used| !used.commands.is_empty());
    let (surprises, told): (Vec<&Used>, Vec<&Used>) = runs_commands.partition(|used| is_surprise || used.shadows);
    allow(here, &surprises, is_given)?;
    for used in told.iter().chain(&surprises) {
        output::note(&format!("note: this project's own {} runs: {}", used.kind, named(&used.commands)));
    }
    Ok(())
}

/// The commands on one line.
fn named(commands: &[String]) -> String {
    let words = |command: &String| command.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |command: &String| format!("`{}`", text::headline(&words(command), LONGEST_NAMED));
    let mut shown: Vec<String> = commands.iter().take(MOST_NAMED).map(shown).collect();
    if commands.len() > MOST_NAMED {
        shown.push(format!("and {} more", commands.len() - MOST_NAMED));
    }
    shown.join(", ")
}

fn allow(here: &Here, surprises: &[&Used], is_given: bool) -> Result<(), CliError> {
    if surprises.is_empty() {
        return Ok(());
    }
    let ledger = here.paths.home.join("trust.json");
    let mut trusted = read(&ledger)?;
    let is_trusted = |used: &Used| trusted.get(&key(&used.file)) == Some(&used.sha256);
    if let Some(used) = surprises.iter().find(|used| !is_trusted(used) && !is_given) {
        let is_known = trusted.contains_key(&key(&used.file));
        return Err(CliError::new(
            code::WRONG_STATE,
            refusal(used, is_known),
            "read it, then say `--trust` once; it holds until the file changes",
        ));
    }
    if is_given {
        if process::is_inside_agent() {
            let hint = "run it in a terminal of your own";
            return Err(CliError::new(code::WRONG_STATE, "an agent may not trust commands", hint));
        }
        trusted.extend(surprises.iter().map(|used| (key(&used.file), used.sha256.clone())));
        write(&ledger, &trusted)?;
    }
    Ok(())
}

fn refusal(used: &Used, is_known: bool) -> String {
    let why = if used.shadows {
        format!("takes the place of another {} of that name", used.kind)
    } else {
        "is used by a pipeline that takes the place of another of its name".to_owned()
    };
    let changed = if is_known { " and has changed since you trusted it" } else { "" };
    let first = used.commands.first().map(|command| text::headline(command, 80)).unwrap_or_default();
    format!("{} {why} and runs commands (`{first}`){changed}", used.file)
}

/// What is in `.claude` came with the repository. A file that somebody named by its path was chosen, like a script.
fn is_of_repository(here: &Here, used: &Used) -> bool {
    let is_below = |path: &Path| path.starts_with(here.project.join(".claude"));
    let path = Path::new(&used.file);
    match used.origin {
        Origin::Project => true,
        Origin::Path => is_below(&fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())) || is_below(path),
        Origin::User | Origin::BuiltIn => false,
    }
}

fn key(file: &str) -> String {
    fs_err::canonicalize(file).map_or_else(|_| file.to_owned(), |path| path.to_string_lossy().into_owned())
}

fn read(ledger: &Path) -> Result<BTreeMap<String, String>, CliError> {
    match fs_err::read(ledger) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} cannot be read: {error}", ledger.display());
            CliError::new(code::ENVIRONMENT, message, "remove it; what you trusted has to be trusted again")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error.into()),
    }
}

fn write(ledger: &Path, trusted: &BTreeMap<String, String>) -> Result<(), CliError> {
    steadfast_system::paths::create_private_dir(ledger.parent().unwrap_or(Path::new(".")))?;
    let mut text = serde_json::to_vec_pretty(trusted).map_err(std::io::Error::from)?;
    text.push(b'\n');
    Ok(durable::replace(ledger, &text)?)
}

#[cfg(test)]
mod tests;
