//! Runs the real `codex` with a private home, a private project and a model on loopback.

use super::model::ScriptedResponses;
use super::trust;
use crate::process::{self, Output};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// No model of this name is known to the client, so it offers plain function tools (`exec_command`) and not one
/// tool that runs code.
pub(crate) const MODEL: &str = "scripted-model";

pub(crate) struct Codex {
    program: PathBuf,
    workspace: Workspace,
}

/// Gives direct access to the home, the project and the environment of a client.
impl Deref for Codex {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Codex {
    /// Panics without `STEADFAST_CODEX`, and where a network can be reached: the real client must only ever talk to
    /// the scripted model.
    pub(crate) fn new(model: &ScriptedResponses) -> Self {
        let program = process::client_named_by("STEADFAST_CODEX");
        let mut codex = Self { program, workspace: Workspace::new() };
        let home = codex.codex_home();
        fs::create_dir(&home).expect("directory");
        codex.workspace.set_env("CODEX_HOME", &home.to_string_lossy());
        codex.write_base_config(model);
        codex
    }

    /// A provider that needs no login, a trusted project, and nothing that would call out or open a dialog.
    fn write_base_config(&self, model: &ScriptedResponses) {
        let url = model.base_url();
        let project = json!(self.project());
        let config = format!(
            "model = \"{MODEL}\"\n\
             model_provider = \"scripted\"\n\
             approval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\n\
             check_for_update_on_startup = false\n\n\
             [analytics]\nenabled = false\n\n\
             [features]\nplugins = false\napps = false\ndaemon_auto_start = false\n\n\
             [model_providers.scripted]\nname = \"Scripted\"\nbase_url = \"{url}\"\nwire_api = \"responses\"\n\
             requires_openai_auth = false\nrequest_max_retries = 0\nstream_max_retries = 0\n\n\
             [projects.{project}]\ntrust_level = \"trusted\"\n\n"
        );
        fs::write(self.config_path(), config).expect("config.toml");
    }

    /// Directory put first on PATH, so that this `steadfast` is found. The shell tool has the environment of a LOGIN
    /// shell, whose `/etc/profile` may set PATH anew, so the directory is in the user's profile too.
    pub(crate) fn bin_dir(mut self, dir: &Path) -> Self {
        self.workspace.add_bin_dir(dir);
        let profile = format!("PATH='{}':\"$PATH\"\nexport PATH\n", dir.display());
        fs::write(self.home().join(".profile"), profile).expect("profile");
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.workspace.set_env(name, value);
        self
    }

    /// How long `exec` may take before it is killed (default 120 s).
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.workspace.set_limit(limit);
        self
    }

    /// A key at the top of the user's `config.toml`; the value is TOML.
    pub(crate) fn setting(self, key: &str, value: &str) -> Self {
        let config = fs::read_to_string(self.config_path()).expect("config.toml");
        fs::write(self.config_path(), format!("{key} = {value}\n{config}")).expect("config.toml");
        self
    }

    /// A table for the user's `config.toml`, with its heading.
    pub(crate) fn table(self, toml: &str) -> Self {
        self.add_to_config(toml);
        self
    }

    /// Enables a feature that the base config disables, such as `plugins`.
    pub(crate) fn feature(self, name: &str, on: bool) -> Self {
        let config = fs::read_to_string(self.config_path()).expect("config.toml");
        let (head, features) = config.split_once("[features]\n").expect("features");
        let (old, new) = (format!("{name} = {}\n", !on), format!("{name} = {on}\n"));
        let features = if features.contains(&old) { features.replacen(&old, &new, 1) } else { new + features };
        fs::write(self.config_path(), format!("{head}[features]\n{features}")).expect("config.toml");
        self
    }

    fn add_to_config(&self, toml: &str) {
        let config = fs::read_to_string(self.config_path()).expect("config.toml");
        fs::write(self.config_path(), format!("{config}\n{toml}\n")).expect("config.toml");
    }

    /// Hooks of the user (`{EVENT: [{matcher?, hooks: [...]}]}`), reviewed and trusted.
    pub(crate) fn with_hooks(self, hooks: &Value) -> Self {
        let path = self.codex_home().join("hooks.json");
        fs::write(&path, json!({"hooks": hooks}).to_string()).expect("hooks.json");
        self.trust_hooks(&path.to_string_lossy(), hooks);
        self
    }

    /// Trusts the hooks as in the review; see [`trust::tables`].
    pub(crate) fn trust_hooks(&self, source: &str, hooks: &Value) {
        self.add_to_config(&trust::tables(source, hooks));
    }

    /// A skill of the user, called by `$name`.
    pub(crate) fn with_skill(self, name: &str, description: &str, body: &str) -> Self {
        let dir = self.codex_home().join("skills").join(name);
        fs::create_dir_all(&dir).expect("skill");
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n{body}\n");
        fs::write(dir.join("SKILL.md"), text).expect("skill");
        self
    }

    pub(crate) fn codex_home(&self) -> PathBuf {
        self.root().join("codex-home")
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.codex_home().join("config.toml")
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs `codex exec --json ARGS -- PROMPT`. Options come before a subcommand: `["-c", "x=1", "resume", id]`.
    pub(crate) fn exec(&self, args: &[&str], prompt: &str) -> Output {
        self.run(&[&["exec", "--json"], args, &["--", prompt]].concat())
    }

    /// Runs `codex` with these arguments, as for `plugin add`.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_to_end(self.command(&self.program).args(args), &format!("codex {args:?}"))
    }
}
