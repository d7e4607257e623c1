//! Calls of git: its settings, its refs, and its errors. A repository is data from outside: no hook of it runs, no program
//! that it names is started, and an address never becomes an option.

pub(crate) mod directory;
mod failure;
pub(crate) mod import;
pub(crate) mod mirror;

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use steadfast_engine::process::{Cancel, Captured, LimitedCommand};
use steadfast_system::env_vars;

use crate::wire::RunRef;

pub use self::failure::WorkError;

/// Fetching a large repository for the first time takes long.
const LIMIT: Duration = Duration::from_mins(30);
const MOST_TEXT: u64 = 4 << 20;
const SETTINGS: [&str; 14] = [
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "advice.detachedHead=false",
];
/// For commits of ours, and for a user who has no identity on this machine.
pub(crate) const IDENTITY: [&str; 4] = ["-c", "user.name=Steadfast", "-c", "user.email=steadfast@localhost"];

/// Refuses addresses that git would take for options or that start a program.
pub(crate) fn check_address(url: &str) -> Result<(), WorkError> {
    let is_helper = url.split_once("::").is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric()));
    let is_odd = url.is_empty() || url.starts_with('-') || url.chars().any(char::is_control);
    if is_odd || is_helper { Err(WorkError::Address(url.escape_debug().to_string())) } else { Ok(()) }
}

/// The refs of a run in its repository, and where a mirror keeps them.
#[derive(Debug, Clone)]
pub(crate) struct Refs(String);

impl Refs {
    pub(crate) fn of(run: &RunRef) -> Self {
        Self::named(run.repo.branch.strip_prefix("steadfast/").unwrap_or(&run.name))
    }

    /// `name` as a part of a branch.
    pub(crate) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn code(&self) -> String {
        format!("refs/heads/steadfast/{}", self.0)
    }

    pub(crate) fn directory(&self) -> String {
        format!("refs/heads/steadfast-runs/{}", self.0)
    }

    /// Of a lane or an iteration of a parallel stage.
    pub(crate) fn place(&self, place: &str) -> String {
        format!("refs/heads/{}", self.place_branch(place))
    }

    pub(crate) fn place_branch(&self, place: &str) -> String {
        format!("steadfast-parallel/{}/{place}", self.0)
    }

    pub(crate) fn attempts(&self) -> String {
        format!("refs/heads/steadfast-attempts/{}/", self.0)
    }

    /// Where a mirror keeps a ref of the repository. Not below `refs/heads`: branches of a mirror are never checked out.
    pub(crate) fn kept(remote: &str) -> String {
        format!("refs/steadfast/{}", remote.strip_prefix("refs/heads/").unwrap_or(remote))
    }

    /// Fetches a ref, or those of a pattern, to where a mirror keeps them.
    pub(crate) fn fetched(remote: &str) -> String {
        format!("+{remote}:{}", Self::kept(remote))
    }
}

/// A call of git in a directory.
#[derive(Debug)]
pub(crate) struct GitCall<'a> {
    directory: &'a Path,
    cancel: Option<&'a Cancel>,
    stdin: Option<File>,
}

impl<'a> GitCall<'a> {
    pub(crate) fn at(directory: &'a Path) -> Self {
        Self { directory, cancel: None, stdin: None }
    }

    /// Ends git when the flag is set.
    pub(crate) fn until(self, cancel: &'a Cancel) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    pub(crate) fn stdin(self, file: File) -> Self {
        Self { stdin: Some(file), ..self }
    }

    /// What git prints.
    pub(crate) fn text(self, arguments: &[&str]) -> Result<String, WorkError> {
        let printed = self.bytes(arguments, MOST_TEXT)?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    /// What git prints, up to `most` bytes.
    pub(crate) fn bytes(self, arguments: &[&str], most: u64) -> Result<Vec<u8>, WorkError> {
        let cancel = self.cancel;
        let captured = self.capture(arguments, most)?;
        if captured.exit_code == Some(0) {
            return Ok(captured.stdout);
        }
        if cancel.is_some_and(Cancel::is_cancelled) {
            return Err(WorkError::Stopped);
        }
        let message = if captured.timed_out { "time limit reached".to_owned() } else { reason(&captured.stderr_tail) };
        Err(WorkError::Git { what: subcommand(arguments), message })
    }

    /// Whether git succeeds.
    pub(crate) fn succeeds(self, arguments: &[&str]) -> Result<bool, WorkError> {
        Ok(self.capture(arguments, 0)?.exit_code == Some(0))
    }

    fn capture(self, arguments: &[&str], most: u64) -> Result<Captured, WorkError> {
        let mut command = LimitedCommand::new("git", self.directory, LIMIT)
            .args(SETTINGS)
            .args(arguments.iter().copied())
            // The messages of git are read, so they must be English.
            .env(env_vars::LC_ALL, "C")
            .env(env_vars::GIT_TERMINAL_PROMPT, "0");
        if let Some(cancel) = self.cancel {
            command = command.cancelled_by(cancel);
        }
        if let Some(file) = self.stdin {
            command = command.stdin(Stdio::from(file));
        }
        Ok(command.capture(most)?)
    }
}

/// The name of a git command for error messages.
fn subcommand(arguments: &[&str]) -> String {
    let mut words = arguments.iter().copied();
    let mut name = words.next().unwrap_or_default();
    while name == "-c" {
        name = words.nth(1).unwrap_or_default();
    }
    name.to_owned()
}

/// The line with the reason.
fn reason(errors: &str) -> String {
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_reason = |line: &&str| ["fatal:", "error:", "!", "remote: error"].iter().any(|it| line.starts_with(it));
    lines().find(is_reason).or_else(|| lines().next_back()).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_an_option_or_a_program() {
        for url in ["https://h/p.git", "git@h:p.git", "ssh://h/p", "/srv/p.git", "../p", "file:///p", "a::b/c d"] {
            let is_program = url == "a::b/c d";
            assert_eq!(check_address(url).is_err(), is_program, "{url}");
        }
        for url in ["", "-u", "--upload-pack=x", "ext::sh -c x", "fd::3", "a\nb"] {
            assert!(matches!(check_address(url), Err(WorkError::Address(_))), "{url}");
        }
    }

    #[test]
    fn an_error_has_the_line_that_says_why() {
        let rejected = "To /r\n ! [rejected]  a -> b (stale info)\nerror: failed to push some refs to '/r'\n";
        assert_eq!(reason(rejected), "! [rejected]  a -> b (stale info)");
        assert_eq!(reason("hint: x\nfatal: no such ref\n"), "fatal: no such ref");
        assert_eq!(subcommand(&["-c", "a=b", "push", "x"]), "push");
    }
}
