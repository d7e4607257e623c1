//! What a command in a shell tells: did it fail, what is it called, and what did it do to git, to the directory and to
//! the environment. A failure is known from how the command ended; only where the host keeps that to itself is the
//! output believed, and then only what nothing but a failure prints.

pub(super) mod line;
mod read;

use std::cell::LazyCell;

use super::{Notes, ONE_LINE_MAX, environment, evidence, git};
use line::{Command, Joint};
use steadfast_model::memory::observation::{FileAction, Outcome, Place, Shell, attempt};
use steadfast_model::memory::{Category, Importance};
use steadfast_model::redact;
use steadfast_model::text;

/// The most commands of one chain that give it its name.
const NAMED_MAX: usize = 3;
/// Commands that say nothing about what was tried.
const SETUP: [&str; 14] = [
    "cd", "pushd", "popd", "export", "source", ".", "set", "unset", "echo", "printf", "sleep", "true", "mkdir", "wait",
];
/// Programs that show text of others: what they print is no failure of theirs.
const VIEWERS: [&str; 24] = [
    "cat", "less", "more", "head", "tail", "grep", "rg", "egrep", "ag", "sed", "awk", "jq", "find", "fd", "ls", "tree",
    "wc", "sort", "uniq", "diff", "bat", "nl", "cut", "tee",
];

pub(super) fn note(notes: &mut Notes, shell: &Shell) {
    // Before it is taken apart: a word alone does not tell that a password was behind its flag.
    let safe = redact::redact(text::head(&shell.command, line::LOOKED_AT));
    let commands = unwrapped(line::commands(&safe));
    let failed = match shell.outcome {
        Outcome::Unfinished => return,
        Outcome::Failed => true,
        Outcome::Worked => false,
        Outcome::Unknown => !only_shows(&commands) && evidence::shows_failure(&shell.output),
    };
    if failed {
        if let Some(name) = name_of_failed(&commands) {
            // A look at something that is not there is part of looking around.
            let importance = if only_shows(&commands) { Importance::Normal } else { Importance::High };
            notes.error(&attempt("shell", &name), &shell.output, importance);
        }
        // A chain may get as far as its commit and fail behind it.
        for command in &commands {
            if let Some(commit) = git::commit(&command.words).filter(|commit| commit.is_told_in(&shell.output)) {
                commit.note(notes);
            }
        }
        return;
    }
    for name in names_of_worked(&commands, &shell.output) {
        notes.worked(&attempt("shell", &name));
    }
    for command in &commands {
        if let Some(operation) = git::operation(&command.words) {
            operation.note(notes);
        }
        environment::note(notes, &command.words);
    }
    if let Some(path) = directory_after(&commands, &shell.place) {
        notes.keep(Category::Cwd, "cd", Importance::Normal, &path, &path, ONE_LINE_MAX);
    }
    for path in read::files(&commands, shell) {
        notes.file(FileAction::Read, &path, None);
    }
}

/// What `bash -lc "…"` runs, if that is all there is.
fn unwrapped(commands: Vec<Command>) -> Vec<Command> {
    let [only] = commands.as_slice() else { return commands };
    let shell = only.program().is_some_and(|program| matches!(program, "bash" | "sh" | "zsh" | "dash"));
    match only.words.as_slice() {
        [_, flag, line, ..] if shell && matches!(flag.as_str(), "-c" | "-lc" | "-cl") => line::commands(line),
        _ => commands,
    }
}

/// Where `cd` goes; `None` for one that cannot be known from its words.
fn directory(command: &Command) -> Option<String> {
    let (program, arguments) = command.words.split_first()?;
    if program != "cd" && program != "pushd" {
        return None;
    }
    let target = arguments.iter().find(|word| !word.starts_with('-') && !word.starts_with('+'));
    match target {
        None if arguments.iter().any(|word| word == "-") || program == "pushd" => None,
        None => Some("~".to_owned()),
        Some(path) if path.contains(['$', '`', '\n']) || path.is_empty() => None,
        Some(path) => Some(path.clone()),
    }
}

/// The directory that a line of commands leads to, if it goes anywhere.
fn directory_after(commands: &[Command], place: &Place) -> Option<String> {
    let mut path: Option<String> = None;
    for target in commands.iter().filter(|command| !command.nested).filter_map(directory) {
        let absolute = target.starts_with(['/', '~', '\\']) || target.get(1..2) == Some(":");
        path = Some(match place {
            _ if absolute => joined("", &target),
            Place::After(now) => now.clone(),
            Place::Before(from) => joined(path.as_deref().unwrap_or(from), &target),
        });
    }
    path.filter(|path| !path.is_empty())
}

/// A path below another one, by its words alone.
fn joined(from: &str, target: &str) -> String {
    let root = if from.starts_with('/') || (from.is_empty() && target.starts_with('/')) { "/" } else { "" };
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

fn only_shows(commands: &[Command]) -> bool {
    commands.iter().all(|command| {
        command.program().is_none_or(|program| VIEWERS.contains(&program) || SETUP.contains(&program))
            || command.words.get(1).is_some_and(|word| {
                command.program() == Some("git") && matches!(word.as_str(), "log" | "show" | "diff" | "grep" | "blame")
            })
    })
}

/// Chains in order: what `&&` joins belongs together, each command with how many others its output went through.
fn chains(commands: &[Command]) -> Vec<Vec<(&Command, usize)>> {
    let mut chains: Vec<Vec<(&Command, usize)>> = Vec::new();
    for command in commands {
        match (command.joint, chains.last_mut()) {
            (Joint::Pipe, Some(chain)) => {
                if let Some((_, through)) = chain.last_mut() {
                    *through += 1;
                }
            }
            (Joint::And, Some(chain)) => chain.push((command, 0)),
            _ => chains.push(vec![(command, 0)]),
        }
    }
    chains
}

/// The name of what failed: the last chain, whose end is the end of the whole.
fn name_of_failed(commands: &[Command]) -> Option<String> {
    let chains = chains(commands);
    let mut names = Vec::new();
    for chain in chains.iter().rev() {
        names = chain.iter().filter_map(|(command, _)| name(command)).collect();
        if !names.is_empty() {
            break;
        }
    }
    if names.is_empty() {
        names.extend(commands.iter().find_map(Command::program).map(str::to_owned));
    }
    let last = names.len().saturating_sub(NAMED_MAX);
    names.get(last..).filter(|names| !names.is_empty()).map(|names| names.join(" && "))
}

/// Everything that worked if the whole did. How a command ended is lost behind `;` and in a pipe: there it counts
/// unless its output shows a failure. Of two alternatives nobody knows which one did it.
fn names_of_worked(commands: &[Command], output: &str) -> Vec<String> {
    // Most lines are one command, and then nobody needs to know.
    let doubtful = LazyCell::new(|| evidence::shows_failure(output));
    let chains = chains(commands);
    let last = chains.len().saturating_sub(1);
    let mut worked = Vec::new();
    let alternative = |at: usize| {
        chains.get(at).and_then(|chain| chain.first()).is_some_and(|(command, _)| command.joint == Joint::Or)
    };
    for (at, chain) in chains.iter().enumerate().filter(|(at, _)| !alternative(*at) && !alternative(at + 1)) {
        let names: Vec<String> = chain
            .iter()
            .filter(|(_, through)| (at == last && *through == 0) || !*doubtful)
            .filter_map(|(command, _)| name(command))
            .collect();
        for length in 1..=NAMED_MAX.min(names.len()) {
            worked.extend(names.windows(length).map(|names| names.join(" && ")));
        }
    }
    worked
}

/// Flags that take no value: the word behind one of them is an argument.
const WITHOUT_VALUE: [&str; 49] = [
    "--",
    "-v",
    "-vv",
    "-vvv",
    "-q",
    "-s",
    "-x",
    "-la",
    "-al",
    "-rf",
    "-fr",
    "-rn",
    "-it",
    "-ti",
    "-sS",
    "-fsSL",
    "-sSL",
    "-sL",
    "--all",
    "--release",
    "--workspace",
    "--all-targets",
    "--all-features",
    "--verbose",
    "--quiet",
    "--silent",
    "--force",
    "--yes",
    "--watch",
    "--ci",
    "--coverage",
    "--frozen",
    "--locked",
    "--offline",
    "--frozen-lockfile",
    "--dry-run",
    "--check",
    "--fix",
    "--write",
    "--json",
    "--debug",
    "--recursive",
    "--global",
    "--rm",
    "--staged",
    "--cached",
    "--amend",
    "--if-present",
    "--bail",
];

/// A stable name of a command: the program and what tells it from its other uses, without flags. What follows a flag
/// may be its value, and nobody knows what that is; only behind a flag that takes none is it part of the name.
fn name(command: &Command) -> Option<String> {
    /// Words that need the next one: `npm run build`, `docker compose up`.
    const LEADING: [&str; 8] = ["run", "exec", "compose", "x", "tool", "pip", "workspace", "nextest"];
    let program = command.program()?;
    if SETUP.contains(&program) {
        return None;
    }
    let mut name = program.to_owned();
    let mut taken = 0;
    let mut words = command.words.iter().skip(1).map(String::as_str).peekable();
    while let Some(word) = words.next() {
        // `python -m pytest`.
        let leads = LEADING.contains(&word) || (word == "-m" && program.starts_with("py"));
        if word.starts_with('-') && !leads {
            // One letter means many things: what is behind it must look like a word, too.
            let letter = word.len() == 2 && word != "--";
            let alone = word.contains('=')
                || word.contains(redact::MARK)
                || word.starts_with("--no-")
                || (WITHOUT_VALUE.contains(&word) && (!letter || words.peek().is_none_or(|next| is_lower(next))));
            if !alone {
                words.next_if(|next| !next.starts_with('-'));
            }
            continue;
        }
        if word.starts_with('+') || !is_plain(word) {
            continue;
        }
        name.push(' ');
        name.push_str(word);
        taken += 1;
        if !leads || taken == 2 {
            break;
        }
    }
    Some(name)
}

fn is_lower(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || b"._-/".contains(&byte))
}

/// A word that names something, not an expression.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.len() <= 80 && word.chars().all(|c| c.is_alphanumeric() || "._-/:@+=~".contains(c))
}
