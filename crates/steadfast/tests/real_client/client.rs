//! Runs the real `claude` with a private home, a private project and a model
//! on loopback, and reads what it left behind.

use crate::model::ScriptedModel;
use crate::process::{self, Output};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The client asks about a new key; the end of it is noted as approved below.
const FAKE_KEY: &str = "sk-ant-api03-not-a-key-00000000000000000000";

impl Output {
    /// The result object of a run with `--output-format json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// The session id of a run with `--output-format json`.
    pub(crate) fn session_id(&self) -> String {
        self.json()["session_id"].as_str().expect("session_id").to_owned()
    }
}

pub(crate) struct Client {
    claude: PathBuf,
    workspace: Workspace,
    plugin_dirs: Vec<PathBuf>,
}

/// Gives direct access to the home, the project and the environment of a client.
impl Deref for Client {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Client {
    /// Panics without `STEADFAST_CLAUDE`, and where a network can be reached:
    /// the real client must only ever talk to the scripted model.
    pub(crate) fn new(model: &ScriptedModel) -> Self {
        Self::named_by("STEADFAST_CLAUDE", model)
    }

    /// The client that a variable names.
    pub(crate) fn named_by(variable: &str, model: &ScriptedModel) -> Self {
        let claude = process::client_named_by(variable);
        let mut client = Self { claude, workspace: Workspace::new(), plugin_dirs: vec![] };
        fs::create_dir(client.config_dir()).expect("directory");
        client.write_settings();
        for (name, value) in [
            ("ANTHROPIC_API_KEY", FAKE_KEY),
            ("ANTHROPIC_BASE_URL", model.base_url().as_str()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ] {
            client.workspace.set_env(name, value);
        }
        client
    }

    /// What a person has after the first start: onboarding done, the project
    /// trusted, the key approved. Without it the TUI opens with dialogs.
    fn write_settings(&self) {
        let key_end = &FAKE_KEY[FAKE_KEY.len() - 20..];
        let project = self.project();
        let state = json!({
            "numStartups": 5,
            "theme": "dark",
            "hasCompletedOnboarding": true,
            "lastOnboardingVersion": "99.0.0",
            "lastReleaseNotesSeen": "99.0.0",
            "autoUpdates": false,
            "customApiKeyResponses": {"approved": [key_end], "rejected": []},
            "projects": {(project.to_string_lossy()): {
                "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true,
                "projectOnboardingSeenCount": 5,
                "allowedTools": []
            }}
        });
        fs::write(self.home().join(".claude.json"), state.to_string()).expect("state file");
        self.write_user_settings(&json!({}));
    }

    /// Directory put first on PATH, so that this `steadfast` is found.
    pub(crate) fn bin_dir(mut self, dir: &Path) -> Self {
        self.workspace.add_bin_dir(dir);
        self
    }

    /// A plugin for every run (`--plugin-dir`).
    pub(crate) fn plugin_dir(mut self, dir: &Path) -> Self {
        self.plugin_dirs.push(dir.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.workspace.set_env(name, value);
        self
    }

    /// How long `print` may take before it is killed (default 120 s).
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.workspace.set_limit(limit);
        self
    }

    pub(crate) fn config_dir(&self) -> PathBuf {
        self.home().join(".claude")
    }

    pub(crate) fn write_user_settings(&self, settings: &Value) {
        fs::write(self.config_dir().join("settings.json"), settings.to_string()).expect("settings");
    }

    /// The client's command line up to the plugins, for `print` and the TUI.
    pub(crate) fn base_args(&self) -> (PathBuf, Vec<String>) {
        let mut args = vec![];
        for dir in &self.plugin_dirs {
            args.extend(["--plugin-dir".to_owned(), dir.to_string_lossy().into_owned()]);
        }
        (self.claude.clone(), args)
    }

    /// Runs `claude -p` with the prompt.
    pub(crate) fn print(&self, args: &[&str], prompt: &str) -> Output {
        let (program, base) = self.base_args();
        let mut command = self.command(program);
        // The prompt comes before the options because some options
        // (--allowedTools) take any number of values and would swallow it.
        command.args(["-p", prompt]).args(base).args(args);
        self.run_to_end(&mut command, "claude -p")
    }
}
