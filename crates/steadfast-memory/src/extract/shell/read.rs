//! Files that a command line printed: agents without a read tool use the shell. Only plain commands that print files, and
//! only words that are certainly paths, since a wrong path misleads more than a missing one.

use super::line::{Command, Operator};
use super::{directory, joined};
use steadfast_model::memory::observation::{Shell, ShellDirectory};
use steadfast_model::redact;

const FILES_MAX: usize = 10;
const PATH_MAX: usize = 300;

/// The files that the commands printed, as paths that fit those of other tools.
pub(super) fn files(commands: &[Command], shell: &Shell) -> Vec<String> {
    let mut found = Vec::new();
    // The directory after each `cd`; a host that reports the final directory has followed it already.
    let (mut from, follows) = match &shell.directory {
        ShellDirectory::After(now) => (now.clone(), false),
        ShellDirectory::Before(_) => (String::new(), true),
    };
    for command in commands {
        if command.nested || matches!(command.operator, Operator::Or | Operator::Pipe) {
            continue;
        }
        let program = command.program();
        if follows && matches!(program, "cd" | "pushd" | "popd") {
            match directory(command).and_then(|target| below(&from, target)) {
                Some(directory) => from = directory,
                None => return found,
            }
        }
        let refused = |word: &str| {
            let complains = |line: &str| line.starts_with(&format!("{program}: ")) && line.contains(word);
            shell.output.lines().any(complains)
        };
        for path in paths_of(command).into_iter().filter(|word| !refused(word)).filter_map(|word| below(&from, word)) {
            if !found.contains(&path) && found.len() < FILES_MAX {
                found.push(path);
            }
        }
    }
    found
}

/// Joins a path to a directory that may be relative; `None` if the path leads out of it.
fn below(from: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) {
        return Some(path.to_owned());
    }
    let path = path.trim_start_matches("./");
    if from.is_empty() {
        return Some(path.to_owned());
    }
    (from.starts_with('/') || !path.starts_with("..")).then(|| joined(from, path))
}

fn paths_of(command: &Command) -> Vec<&str> {
    let mut words = command.arguments();
    let with_value: &[&str] = match command.program() {
        "cat" => &[],
        "head" | "tail" => &["-n", "-c", "--lines", "--bytes"],
        "nl" => &["-b", "-i", "-n", "-s", "-v", "-w"],
        // Only `sed -n SCRIPT` prints nothing but parts of files.
        "sed" if words.next() == Some("-n") && words.next().is_some_and(|script| !script.starts_with('-')) => &[],
        _ => return Vec::new(),
    };
    let mut paths = Vec::new();
    while let Some(word) = words.next() {
        if with_value.contains(&word) {
            words.next();
        } else if is_path(word) {
            paths.push(word);
        }
    }
    paths
}

fn is_path(word: &str) -> bool {
    word.len() <= PATH_MAX
        && !word.starts_with(['-', '+'])
        && !word.contains(redact::MARK)
        && !word.contains("://")
        && !word.starts_with("/dev/")
        && !word.starts_with("/proc/")
        && !word.contains(|c: char| c.is_control() || "*?[]{}$`<>|&;\"'\\!".contains(c))
        // A number is the value of some flag.
        && word.chars().any(char::is_alphabetic)
}
