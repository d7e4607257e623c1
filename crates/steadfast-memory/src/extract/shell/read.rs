//! Files that a command line printed: agents without a read tool use the shell. Only plain commands that print files, and
//! only words that are certainly paths, since a wrong path misleads more than a missing one.

use super::line::{Command, Operator};
use super::{directory, joined};
use steadfast_model::memory::observation::{Shell, ShellDirectory};
use steadfast_model::redact;

/// The most files of one command line.
const FILES_MAX: usize = 10;
const PATH_MAX: usize = 300;

/// The files that the commands printed, as paths that fit those of other tools.
pub(super) fn files(commands: &[Command], shell: &Shell) -> Vec<String> {
    let mut found = Vec::new();
    // The directory after each `cd`; a host that reports the final directory has followed it already.
    let mut from = match &shell.directory {
        ShellDirectory::After(now) => Some(now.clone()),
        ShellDirectory::Before(_) => Some(String::new()),
    };
    for command in commands {
        if command.nested || matches!(command.operator, Operator::Or | Operator::Pipe) {
            continue;
        }
        let Some(program) = command.program() else { continue };
        if matches!(program, "cd" | "pushd" | "popd") {
            if matches!(shell.directory, ShellDirectory::Before(_)) {
                from = from.and_then(|from| Some(below(&from, &directory(command)?)?.into_owned()));
            }
            continue;
        }
        let Some(from) = &from else { continue };
        for word in paths_of(program, &command.words) {
            let refused = |line: &str| {
                line.strip_prefix(program).is_some_and(|rest| rest.starts_with(": ")) && line.contains(word)
            };
            if shell.output.lines().any(refused) {
                continue;
            }
            if let Some(path) = below(from, word)
                && !found.iter().any(|known| *known == path)
                && found.len() < FILES_MAX
            {
                found.push(path.into_owned());
            }
        }
    }
    found
}

/// Joins a path to a directory that may be relative; `None` if the path leads out of it.
fn below<'a>(from: &str, path: &'a str) -> Option<std::borrow::Cow<'a, str>> {
    if path.starts_with(['/', '~']) {
        return Some(path.into());
    }
    let path = path.trim_start_matches("./");
    if from.is_empty() {
        return Some(path.into());
    }
    (from.starts_with('/') || !path.starts_with("..")).then(|| joined(from, path).into())
}

/// The words of a command that name the files it prints.
fn paths_of<'a>(program: &str, words: &'a [String]) -> Vec<&'a str> {
    let with_value: &[&str] = match program {
        "cat" => &[],
        "head" | "tail" => &["-n", "-c", "--lines", "--bytes"],
        "nl" => &["-b", "-d", "-f", "-h", "-i", "-l", "-n", "-s", "-v", "-w"],
        "bat" | "batcat" => &["-r", "-l", "-H", "--line-range", "--language", "--style", "--theme", "--paging"],
        "less" | "more" => &["-p"],
        "sed" => &["-e", "-ne", "-f", "--expression"],
        _ => return Vec::new(),
    };
    let mut paths = Vec::new();
    // The first operand of `sed` is its script, and only with `-n` does it print nothing but parts of files.
    let (mut script, mut quiet) = (program != "sed", program != "sed");
    let mut words = words.iter().skip(1).map(String::as_str);
    let mut flags = true;
    while let Some(word) = words.next() {
        if flags && word == "--" {
            flags = false;
        } else if flags && word.len() > 1 && word.starts_with(['-', '+']) {
            let changes = program == "sed" && (word.starts_with("-i") || word.starts_with("--in-place"));
            if changes {
                return Vec::new();
            }
            quiet |= matches!(word, "-n" | "-ne" | "-nE" | "-En" | "-nr" | "--quiet" | "--silent");
            if with_value.contains(&word) {
                script = true;
                words.next();
            }
        } else if !script {
            script = true;
        } else if is_path(word) {
            paths.push(word);
        }
    }
    if quiet { paths } else { Vec::new() }
}

fn is_path(word: &str) -> bool {
    word.len() <= PATH_MAX
        && !word.contains(redact::MARK)
        && !word.contains("://")
        && !word.starts_with("/dev/")
        && !word.starts_with("/proc/")
        && !word.contains(|c: char| c.is_control() || "*?[]{}$`<>|&;\"'\\!".contains(c))
        // A number is the value of some flag.
        && word.chars().any(char::is_alphabetic)
}
