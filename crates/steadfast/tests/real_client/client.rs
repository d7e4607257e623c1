//! Runs the real `claude` with a private home, a private project and a model
//! on loopback, and reads what it left behind.

use crate::model::ScriptedModel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The client asks about a new key; the end of it is noted as approved below.
const FAKE_KEY: &str = "sk-ant-api03-not-a-key-00000000000000000000";

/// What a finished `claude` run left.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

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
    /// Holds everything below; removed on drop.
    dir: TempDir,
    plugin_dirs: Vec<PathBuf>,
    env: BTreeMap<String, String>,
    limit: Duration,
}

impl Client {
    /// Panics without `STEADFAST_CLAUDE`, and where a network can be reached:
    /// the real client must only ever talk to the scripted model.
    pub(crate) fn new(model: &ScriptedModel) -> Self {
        let claude = std::env::var_os("STEADFAST_CLAUDE").map(PathBuf::from);
        let claude = claude.expect("set STEADFAST_CLAUDE to the path of a claude executable");
        assert_no_network();
        let dir = tempfile::Builder::new().prefix("sf-").tempdir().expect("tempdir");
        let root = dir.path().canonicalize().expect("tempdir path");
        let mut client = Self { claude, dir, plugin_dirs: vec![], env: BTreeMap::new(), limit: Duration::from_mins(2) };
        for part in ["home/.claude", "project", "tmp"] {
            fs::create_dir_all(root.join(part)).expect("directory");
        }
        client.write_settings();
        client.set_env(model);
        let git = client.command("git").args(["init", "-q", "-b", "main"]).status().expect("git");
        assert!(git.success(), "git init failed");
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

    fn set_env(&mut self, model: &ScriptedModel) {
        let home = self.home();
        // A second guard besides the namespace: port 9 on loopback is closed.
        let nowhere = "http://127.0.0.1:9";
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            ("HOME", home.to_string_lossy().as_ref()),
            ("TMPDIR", self.root().join("tmp").to_string_lossy().as_ref()),
            ("PATH", path.as_str()),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("SHELL", "/bin/sh"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("ANTHROPIC_API_KEY", FAKE_KEY),
            ("ANTHROPIC_BASE_URL", model.base_url().as_str()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("HTTP_PROXY", nowhere),
            ("HTTPS_PROXY", nowhere),
            ("ALL_PROXY", nowhere),
            ("NO_PROXY", "127.0.0.1,localhost"),
        ] {
            self.env.insert(name.into(), value.into());
        }
    }

    /// Directory put first on PATH, so that this `steadfast` is found.
    pub(crate) fn bin_dir(mut self, dir: &Path) -> Self {
        let old = self.env.remove("PATH").unwrap_or_default();
        self.env.insert("PATH".into(), format!("{}:{old}", dir.display()));
        self
    }

    /// A plugin for every run (`--plugin-dir`).
    pub(crate) fn plugin_dir(mut self, dir: &Path) -> Self {
        self.plugin_dirs.push(dir.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// How long `print` may take before it is killed (120 s if not said).
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
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

    pub(crate) fn config_dir(&self) -> PathBuf {
        self.home().join(".claude")
    }

    pub(crate) fn write_user_settings(&self, settings: &Value) {
        fs::write(self.config_dir().join("settings.json"), settings.to_string()).expect("settings");
    }

    /// Any program in the environment and the project of the client, so also
    /// `steadfast` as a person would call it from a shell.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env).current_dir(self.project()).stdin(Stdio::null());
        command
    }

    /// The client's command line up to the plugins, for `print` and the TUI.
    pub(crate) fn base_args(&self) -> (PathBuf, Vec<String>) {
        let mut args = vec![];
        for dir in &self.plugin_dirs {
            args.extend(["--plugin-dir".to_owned(), dir.to_string_lossy().into_owned()]);
        }
        (self.claude.clone(), args)
    }

    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Runs `claude -p` with the prompt. Output goes to files, not pipes: a
    /// process left behind would keep a pipe open and hang the test.
    pub(crate) fn print(&self, args: &[&str], prompt: &str) -> Output {
        let (program, base) = self.base_args();
        let out = self.root().join("stdout.txt");
        let err = self.root().join("stderr.txt");
        // The prompt comes before the options because some options
        // (--allowedTools) take any number of values and would swallow it.
        let mut child = self
            .command(program)
            .args(["-p", prompt])
            .args(base)
            .args(args)
            .stdout(fs::File::create(&out).expect("stdout file"))
            .stderr(fs::File::create(&err).expect("stderr file"))
            .process_group(0)
            .spawn()
            .expect("start claude");
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
            panic!("claude -p did not end in {:?}\nstdout: {stdout}\nstderr: {stderr}", self.limit);
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
    assert!(others.is_empty(), "run this under netless.sh; network devices found: {others:?}");
}
