//! The temp folder of the demo, and the environment of every process in it. Children get a few named variables and no
//! others, so that neither the user's store nor a client around the demo can reach them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;
use steadfast_system::env_vars;
use steadfast_system::paths::create_private_dir;

use super::promise::DemoFacts;

pub(super) const SESSION: &str = "0de30000-5eed-4a57-8a57-000000000001";

pub(super) struct DemoFolder {
    pub(super) root: PathBuf,
    pub(super) program: PathBuf,
}

impl DemoFolder {
    pub(super) fn at(root: &Path) -> io::Result<Self> {
        // The system's temp folder may be a link; all processes must use the same path.
        Ok(Self { root: fs_err::canonicalize(root)?, program: std::env::current_exe()? })
    }

    /// Creates a small project with a check that nothing passes yet.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for name in ["home", "steadfast", "slugify"] {
            create_private_dir(&self.root.join(name))?;
        }
        fs_err::write(self.project().join("check.sh"), include_str!("project/check.sh"))
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("slugify")
    }

    /// The path at which Claude Code would write the session.
    pub(super) fn transcript(&self) -> PathBuf {
        let project = self.project().to_string_lossy().into_owned();
        let folder = project.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        self.root.join("home/.claude/projects").join(folder).join(format!("{SESSION}.jsonl"))
    }

    pub(super) fn save_facts(&self, facts: &DemoFacts) -> anyhow::Result<()> {
        Ok(fs_err::write(self.root.join("facts.json"), serde_json::to_vec(facts)?)?)
    }

    /// The facts that the scripted client recorded.
    pub(super) fn facts(&self) -> anyhow::Result<DemoFacts> {
        Ok(serde_json::from_slice(&fs_err::read(self.root.join("facts.json"))?)?)
    }

    /// A command that sees only this folder and the search path.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let home = self.root.join("steadfast");
        command
            .env_clear()
            .env(env_vars::DB, home.join("goals.db"))
            .env(env_vars::HOME, home)
            .env(env_vars::USER_HOME, self.root.join("home"))
            .current_dir(self.project());
        for name in [env_vars::PATH, env_vars::TMPDIR] {
            if let Some(value) = env_vars::path(name) {
                command.env(name, value);
            }
        }
        command
    }

    pub(super) fn steadfast(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.args(arguments);
        command
    }

    /// Runs a steadfast command with this stdin and returns its stdout.
    pub(super) fn run(&self, arguments: &[&str], stdin: &str) -> anyhow::Result<String> {
        let line = format!("steadfast {}", arguments.join(" "));
        let mut command = self.steadfast(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| line.clone())?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(stdin.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if !output.status.success() || !output.stderr.is_empty() {
            bail!("`{line}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(super) fn json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.run(arguments, "")?)?)
    }

    /// The goal as `goal status --json` prints it.
    pub(super) fn goal(&self) -> anyhow::Result<Value> {
        let mut status = self.json(&["goal", "status", "--session", SESSION, "--json"])?;
        Ok(status["goal"].take())
    }
}
