//! The folder the demo happens in, and the environment of every process in it. Nothing outside is read or
//! written: children get a few named variables and no others, so neither the user's store nor a client the
//! demo may run under can reach them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;
use steadfast_system::env_vars;
use steadfast_system::paths::create_private_dir;

/// The folder's store is its own, so the session's id may be the same every time.
pub(super) const SESSION: &str = "0de30000-5eed-4a57-8a57-000000000001";

pub(super) struct Stage {
    root: PathBuf,
    program: PathBuf,
}

impl Stage {
    pub(super) fn at(root: &Path) -> io::Result<Self> {
        Ok(Self {
            // The system's temp folder may be a link; the client and the agent must agree on one name.
            root: fs_err::canonicalize(root)?,
            program: std::env::current_exe()?,
        })
    }

    /// Puts the user's little project there: a check, and nothing yet that passes it.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for folder in [&self.home(), &self.steadfast_home(), &self.project()] {
            create_private_dir(folder)?;
        }
        fs_err::write(self.project().join("check.sh"), include_str!("project/check.sh"))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("slugify")
    }

    /// Where Claude Code would write the session: the project's path with dashes for everything unusual.
    pub(super) fn transcript(&self) -> PathBuf {
        let folder: String =
            self.project().to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let projects = self.home().join(".claude").join("projects");
        projects.join(folder).join(format!("{SESSION}.jsonl"))
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn steadfast_home(&self) -> PathBuf {
        self.root.join("steadfast")
    }

    /// A command that sees this folder and the search path, and nothing else of its surroundings.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env(env_vars::HOME, self.steadfast_home())
            .env(env_vars::DB, self.steadfast_home().join("goals.db"))
            .env(env_vars::USER_HOME, self.home())
            .current_dir(self.project());
        for name in [env_vars::PATH, env_vars::TMPDIR] {
            if let Some(value) = env_vars::path(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// This very program, in this folder.
    pub(super) fn steadfast(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.args(arguments);
        command
    }

    /// What a command of ours prints, as a user would see it.
    pub(super) fn ask(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let line = format!("steadfast {}", arguments.join(" "));
        let output = self.steadfast(arguments).output().with_context(|| line.clone())?;
        if !output.status.success() {
            bail!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The same, for scripts.
    pub(super) fn ask_json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.ask(arguments)?)?)
    }

    /// The goal as `goal status --json` tells it.
    pub(super) fn goal(&self) -> anyhow::Result<Value> {
        let mut status = self.ask_json(&["goal", "status", "--session", SESSION, "--json"])?;
        Ok(status["goal"].take())
    }
}
