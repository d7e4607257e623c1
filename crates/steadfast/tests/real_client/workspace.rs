//! Where a real client runs: a private home, a private project and an environment of chosen variables only.

use crate::process::{self, Output};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Workspace {
    /// Holds everything below; removed on drop.
    dir: TempDir,
    env: BTreeMap<String, String>,
    limit: Duration,
}

impl Workspace {
    /// Panics where a network can be reached.
    pub(crate) fn new() -> Self {
        process::assert_no_network();
        let dir = tempfile::Builder::new().prefix("sf-").tempdir().expect("tempdir");
        let mut workspace = Self { dir, env: BTreeMap::new(), limit: Duration::from_mins(2) };
        for part in ["home", "project", "tmp"] {
            fs::create_dir_all(workspace.root().join(part)).expect("directory");
        }
        workspace.set_base_env();
        let git = workspace.command("git").args(["init", "-q", "-b", "main"]).status().expect("git");
        assert!(git.success(), "git init failed");
        workspace
    }

    fn set_base_env(&mut self) {
        let (home, tmp) = (self.home(), self.root().join("tmp"));
        // A second guard besides the namespace: port 9 on loopback is closed.
        let nowhere = "http://127.0.0.1:9";
        for (name, value) in [
            ("HOME", home.to_string_lossy().as_ref()),
            ("TMPDIR", tmp.to_string_lossy().as_ref()),
            ("PATH", std::env::var("PATH").unwrap_or_default().as_str()),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            // Claude Code would prefer zsh where there is one, which splits words differently.
            ("SHELL", "/bin/bash"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("HTTP_PROXY", nowhere),
            ("HTTPS_PROXY", nowhere),
            ("ALL_PROXY", nowhere),
            ("NO_PROXY", "127.0.0.1,localhost"),
        ] {
            self.set_env(name, value);
        }
    }

    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.env.insert(name.into(), value.into());
    }

    pub(crate) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Puts the directory first on PATH.
    pub(crate) fn add_bin_dir(&mut self, dir: &Path) {
        let old = self.env.remove("PATH").unwrap_or_default();
        self.set_env("PATH", &format!("{}:{old}", dir.display()));
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("root")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Any program in the environment and the project of the client, so also `steadfast` as a person would call it
    /// from a shell.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env).current_dir(self.project()).stdin(Stdio::null());
        command
    }

    /// Runs the command to its end, within the limit.
    pub(crate) fn run_to_end(&self, command: &mut Command, what: &str) -> Output {
        process::run(command, what, &self.root(), self.limit)
    }
}
