//! Runs the real `codex` with a private home, a private project and a model on loopback.

use super::model::ScriptedResponses;
use super::output::Output;
use super::trust;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No model of this name is known to the client, so it offers plain function tools (`exec_command`) and not one
/// tool that runs code.
pub(crate) const MODEL: &str = "scripted-model";

pub(crate) struct Codex {
    program: PathBuf,
    /// Holds everything below; removed on drop.
    dir: TempDir,
    env: BTreeMap<String, String>,
    limit: Duration,
}

impl Codex {
    /// Panics without `STEADFAST_CODEX`, and where a network can be reached: the real client must only ever talk to
    /// the scripted model.
    pub(crate) fn new(model: &ScriptedResponses) -> Self {
        let program = std::env::var_os("STEADFAST_CODEX").map(PathBuf::from);
        let program = program.expect("set STEADFAST_CODEX to the path of a codex executable");
        assert_no_network();
        let dir = tempfile::Builder::new().prefix("sf-").tempdir().expect("tempdir");
        let root = dir.path().canonicalize().expect("tempdir path");
        let mut codex = Self { program, dir, env: BTreeMap::new(), limit: Duration::from_mins(2) };
        for part in ["home", "codex-home", "project", "tmp"] {
            fs::create_dir_all(root.join(part)).expect("directory");
        }
        codex.write_base_config(model);
        codex.set_env();
        let git = codex.command("git").args(["init", "-q", "-b", "main"]).status().expect("git");
        assert!(git.success(), "git init failed");
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

    fn set_env(&mut self) {
        let (home, codex_home) = (self.home(), self.codex_home());
        // A second guard besides the namespace: port 9 on loopback is closed.
        let nowhere = "http://127.0.0.1:9";
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            ("HOME", home.to_string_lossy().as_ref()),
            ("CODEX_HOME", codex_home.to_string_lossy().as_ref()),
            ("TMPDIR", self.root().join("tmp").to_string_lossy().as_ref()),
            ("PATH", path.as_str()),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("SHELL", "/bin/sh"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("HTTP_PROXY", nowhere),
            ("HTTPS_PROXY", nowhere),
            ("ALL_PROXY", nowhere),
            ("NO_PROXY", "127.0.0.1,localhost"),
        ] {
            self.env.insert(name.into(), value.into());
        }
    }

    /// Directory put first on PATH, so that this `steadfast` is found. The shell tool has the environment of a LOGIN
    /// shell, whose `/etc/profile` may set PATH anew, so the directory is in the user's profile too.
    pub(crate) fn bin_dir(mut self, dir: &Path) -> Self {
        let old = self.env.remove("PATH").unwrap_or_default();
        self.env.insert("PATH".into(), format!("{}:{old}", dir.display()));
        let profile = format!("PATH='{}':\"$PATH\"\nexport PATH\n", dir.display());
        fs::write(self.home().join(".profile"), profile).expect("profile");
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// How long `exec` may take before it is killed (120 s if not said).
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
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

    /// Switches a feature that the base config switches off, as `plugins`.
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

    /// Says yes to the review of hooks; see [`trust::tables`].
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

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("root")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn codex_home(&self) -> PathBuf {
        self.root().join("codex-home")
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.codex_home().join("config.toml")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
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

    /// Runs `codex exec --json ARGS -- PROMPT`. Options come before a subcommand: `["-c", "x=1", "resume", id]`.
    pub(crate) fn exec(&self, args: &[&str], prompt: &str) -> Output {
        self.run(&[&["exec", "--json"], args, &["--", prompt]].concat())
    }

    /// Runs `codex` with these arguments, as for `plugin add`. Output goes to files, not pipes: a process left behind
    /// would keep a pipe open and hang the test.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let out = self.root().join("stdout.txt");
        let err = self.root().join("stderr.txt");
        let mut child = self
            .command(&self.program)
            .args(args)
            .stdout(fs::File::create(&out).expect("stdout file"))
            .stderr(fs::File::create(&err).expect("stderr file"))
            .process_group(0)
            .spawn()
            .expect("start codex");
        let end = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = child.try_wait().expect("wait") {
                break Some(status);
            }
            if Instant::now() > end {
                kill_group(child.id());
                let _ = child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let (stdout, stderr) = (read(&out), read(&err));
        let Some(status) = status else {
            panic!("codex {args:?} did not end in {:?}\nstdout: {stdout}\nstderr: {stderr}", self.limit);
        };
        Output { stdout, stderr, status }
    }
}

pub(crate) fn kill_group(leader: u32) {
    // The shell's own kill: no unsafe code and no further dependency.
    let _ = Command::new("sh").args(["-c", &format!("kill -KILL -{leader} 2>/dev/null")]).status();
}

fn assert_no_network() {
    let devices = fs::read_to_string("/proc/net/dev").expect("/proc/net/dev");
    let names = devices.lines().skip(2).filter_map(|line| line.split(':').next());
    let others: Vec<&str> = names.map(str::trim).filter(|name| *name != "lo").collect();
    assert!(others.is_empty(), "run this under scripts/netless; network devices found: {others:?}");
}
