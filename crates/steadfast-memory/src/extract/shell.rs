//! Findings from a shell command: whether it failed, its name, and what it did to git, the directory and the environment.
//! The exit code decides whether it failed. For hosts that do not report it, the output does, and only lines that nothing
//! but a failure prints.

pub(super) mod line;
mod read;

use std::cell::LazyCell;

use super::{Notes, ONE_LINE_MAX, environment, evidence, git};
use line::{Command, Operator};
use steadfast_model::memory::observation::{FileAction, Shell, ShellDirectory, ShellOutcome, attempt};
use steadfast_model::memory::{Category, Importance};
use steadfast_model::{redact, text};

/// The most commands of one chain that give it its name.
const NAMED_MAX: usize = 3;
/// Commands that are no attempt at anything.
const SETUP: [&str; 14] = [
    "cd", "pushd", "popd", "export", "source", ".", "set", "unset", "echo", "printf", "sleep", "true", "mkdir", "wait",
];
/// Programs that print other text: failures in it are not their own.
const VIEWERS: [&str; 24] = [
    "cat", "less", "more", "head", "tail", "grep", "rg", "egrep", "ag", "sed", "awk", "jq", "find", "fd", "ls", "tree",
    "wc", "sort", "uniq", "diff", "bat", "nl", "cut", "tee",
];

pub(super) fn note(notes: &mut Notes, shell: &Shell) {
    // Before it is split: a password alone, without its flag, would not be recognized.
    let safe = redact::redact(text::head(&shell.command, line::LOOKED_AT));
    let commands = unwrapped(line::commands(&safe));
    let failed = match shell.outcome {
        ShellOutcome::Unfinished => return,
        ShellOutcome::Failed => true,
        ShellOutcome::Worked => false,
        ShellOutcome::Unknown => !only_shows(&commands) && evidence::shows_failure(&shell.output),
    };
    if failed {
        if let Some(name) = name_of_failed(&commands) {
            // Reading something that does not exist is part of exploring.
            let importance = if only_shows(&commands) { Importance::Normal } else { Importance::High };
            notes.error(&attempt("shell", &name), &shell.output, importance);
        }
        // A chain may fail after its commit.
        for command in &commands {
            if let Some(commit) = git::commit(&command.words).filter(|commit| commit.is_confirmed_by(&shell.output)) {
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
    if let Some(path) = directory_after(&commands, &shell.directory) {
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

/// The target of `cd`; `None` if its words do not contain it.
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

/// The directory after a line of commands, if it changes.
fn directory_after(commands: &[Command], start: &ShellDirectory) -> Option<String> {
    let mut path: Option<String> = None;
    for target in commands.iter().filter(|command| !command.nested).filter_map(directory) {
        let absolute = target.starts_with(['/', '~', '\\']) || target.get(1..2) == Some(":");
        path = Some(match start {
            _ if absolute => joined("", &target),
            ShellDirectory::After(now) => now.clone(),
            ShellDirectory::Before(from) => joined(path.as_deref().unwrap_or(from), &target),
        });
    }
    path.filter(|path| !path.is_empty())
}

/// Joins two paths without reading the file system.
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

/// Commands joined by `&&`, each with the number of pipes behind it.
fn chains(commands: &[Command]) -> Vec<Vec<(&Command, usize)>> {
    let mut chains: Vec<Vec<(&Command, usize)>> = Vec::new();
    for command in commands {
        match (command.operator, chains.last_mut()) {
            (Operator::Pipe, Some(chain)) => {
                if let Some((_, through)) = chain.last_mut() {
                    *through += 1;
                }
            }
            (Operator::And, Some(chain)) => chain.push((command, 0)),
            _ => chains.push(vec![(command, 0)]),
        }
    }
    chains
}

/// The name of what failed: the last chain, which decides the exit code.
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

/// The names of the commands that worked if the whole line did. The exit code of a command before `;` or in a pipe is
/// lost: it counts unless the output shows a failure. Which of two alternatives worked is unknown, so neither counts.
fn names_of_worked(commands: &[Command], output: &str) -> Vec<String> {
    // Lazy: most lines are one command, which does not need it.
    let doubtful = LazyCell::new(|| evidence::shows_failure(output));
    let chains = chains(commands);
    let last = chains.len().saturating_sub(1);
    let mut worked = Vec::new();
    let alternative = |at: usize| {
        chains.get(at).and_then(|chain| chain.first()).is_some_and(|(command, _)| command.operator == Operator::Or)
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
const WITHOUT_VALUE: &str = "-- -v -vv -vvv -q -s -x -la -al -rf -fr -rn -it -ti -sS -fsSL -sSL -sL --all --release --workspace \
    --all-targets --all-features --verbose --quiet --silent --force --yes --watch --ci --coverage \
    --frozen --locked --offline --frozen-lockfile --dry-run --check --fix --write --json --debug \
    --recursive --global --rm --staged --cached --amend --if-present --bail";

/// A stable name of a command: the program and its first argument, without flags. A word behind a flag may be its value
/// and is skipped, unless the flag is known to take none.
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
            // A letter has many meanings: the word behind it must look like an argument, too.
            let letter = word.len() == 2 && word != "--";
            let alone = word.contains('=')
                || word.contains(redact::MARK)
                || word.starts_with("--no-")
                || (WITHOUT_VALUE.split(' ').any(|flag| flag == word)
                    && (!letter || words.peek().is_none_or(|next| is_lower(next))));
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
