//! Findings from a shell command: whether it failed, its name, and what it did to git, the directory and the environment.
//! The exit code decides whether it failed. For hosts that do not report it, the output does, and only lines that nothing
//! but a failure prints.

pub(super) mod line;
mod read;

use std::cell::LazyCell;
use std::path::{Component, Path, PathBuf};

use super::{Notes, environment, evidence, git};
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
            git::note(notes, command, Some(&shell.output));
        }
        return;
    }
    for name in names_of_worked(&commands, &shell.output) {
        notes.worked(&attempt("shell", &name));
    }
    for command in &commands {
        git::note(notes, command, None);
        environment::note(notes, command);
    }
    if let Some(path) = directory_after(&commands, &shell.directory) {
        notes.keep(Category::Cwd, "cd", Importance::Normal, &path, &path);
    }
    for path in read::files(&commands, shell) {
        notes.file(FileAction::Read, &path, None);
    }
}

/// What `bash -lc "…"` runs, if that is all there is.
fn unwrapped(commands: Vec<Command>) -> Vec<Command> {
    let [only] = commands.as_slice() else { return commands };
    let shell = matches!(only.program(), "bash" | "sh" | "zsh" | "dash");
    match only.words.as_slice() {
        [_, flag, line, ..] if shell && matches!(flag.as_str(), "-c" | "-lc" | "-cl") => line::commands(line),
        _ => commands,
    }
}

/// The target of `cd`; `None` if its words do not contain it.
fn directory(command: &Command) -> Option<&str> {
    let target = command.arguments().find(|word| *word == "-" || !word.starts_with(['-', '+']));
    match (command.program(), target) {
        ("cd", None) => Some("~"),
        ("cd" | "pushd", Some(path)) => Some(path).filter(|path| *path != "-" && !path.contains(['$', '`', '\n'])),
        _ => None,
    }
}

fn directory_after(commands: &[Command], start: &ShellDirectory) -> Option<String> {
    let mut path: Option<String> = None;
    for target in commands.iter().filter(|command| !command.nested).filter_map(directory) {
        path = Some(match start {
            _ if target.starts_with(['/', '~']) => joined("", target),
            ShellDirectory::After(now) => now.clone(),
            ShellDirectory::Before(from) => joined(path.as_deref().unwrap_or(from), target),
        });
    }
    path.filter(|path| !path.is_empty())
}

/// Joins two paths without reading the file system.
fn joined(from: &str, target: &str) -> String {
    let mut path = PathBuf::from(from);
    for part in Path::new(target).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

fn only_shows(commands: &[Command]) -> bool {
    commands.iter().all(|command| match (command.program(), command.arguments().next()) {
        ("git", Some(verb)) => matches!(verb, "log" | "show" | "diff" | "grep" | "blame"),
        (program, _) => VIEWERS.contains(&program) || SETUP.contains(&program),
    })
}

/// Commands joined by `&&` and pipes.
fn chains(commands: &[Command]) -> impl DoubleEndedIterator<Item = &[Command]> {
    commands.chunk_by(|_, next| matches!(next.operator, Operator::And | Operator::Pipe))
}

/// The names of a chain: of each pipe, the first command.
fn names(chain: &[Command], count_pipes: impl Fn() -> bool) -> Vec<String> {
    let pipes = chain.chunk_by(|_, next| next.operator == Operator::Pipe);
    pipes.filter(|pipe| pipe.len() == 1 || count_pipes()).filter_map(|pipe| name(pipe.first()?)).collect()
}

/// The name of what failed: the last chain, which decides the exit code.
fn name_of_failed(commands: &[Command]) -> Option<String> {
    let failed = chains(commands).rev().map(|chain| names(chain, || true)).find(|names| !names.is_empty());
    let Some(names) = failed else { return commands.first().map(|command| command.program().to_owned()) };
    Some(names.get(names.len().saturating_sub(NAMED_MAX)..)?.join(" && "))
}

/// The names of the commands that worked if the whole line did. The exit code of a command before `;` or in a pipe is
/// lost: it counts unless the output shows a failure. Which of two alternatives worked is unknown, so neither counts.
fn names_of_worked(commands: &[Command], output: &str) -> Vec<String> {
    // Lazy: most lines are one command, which does not need it.
    let doubtful = LazyCell::new(|| evidence::shows_failure(output));
    let mut worked = Vec::new();
    let mut chains = chains(commands).peekable();
    while let Some(chain) = chains.next() {
        let alternative = |chain: &[Command]| chain.first().is_some_and(|command| command.operator == Operator::Or);
        let next = chains.peek();
        if alternative(chain) || next.is_some_and(|next| alternative(next) || *doubtful) {
            continue;
        }
        let names = names(chain, || !*doubtful);
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
    let program = command.program();
    if SETUP.contains(&program) {
        return None;
    }
    let mut name = vec![program];
    let mut words = command.arguments().peekable();
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
        name.push(word);
        if !leads || name.len() == 3 {
            break;
        }
    }
    Some(name.join(" "))
}

fn is_lower(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || b"._-/".contains(&byte))
}

/// A word that names something, not an expression.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.len() <= 80 && word.chars().all(|c| c.is_alphanumeric() || "._-/:@+=~".contains(c))
}
