//! `config.toml` in the home directory. Wrong types are errors with their line. Unknown keys are only warnings, so that an
//! older binary reads a newer file; in `[limits]` they are errors.

#[cfg(test)]
mod all_keys;
mod fleet;
mod keys;
mod limits;
mod notify;
mod retention;
mod statusline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::bounded;
use serde::Deserialize;
use toml::de::DeTable;

use steadfast_model::host::Host;

pub use fleet::FleetConfig;
pub use limits::LimitsConfig;
pub use notify::{NoSecret, NotifyConfig};
pub use retention::RetentionConfig;
pub use statusline::{Segment, StatuslineConfig};

#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Config {
    /// Where the store is; written by `setup`.
    pub db: Option<PathBuf>,
    pub goal: GoalConfig,
    pub accounting: AccountingConfig,
    /// Read apart, since only its own reader knows the places of its keys.
    #[serde(skip)]
    pub limits: LimitsConfig,
    pub memory: MemoryConfig,
    pub agents: AgentsConfig,
    pub runs: RunsConfig,
    pub watch: WatchConfig,
    pub notify: NotifyConfig,
    pub retention: RetentionConfig,
    pub statusline: StatuslineConfig,
    pub fleet: FleetConfig,
    /// Keys that mean nothing to this version.
    #[serde(skip)]
    pub unknown: Vec<ConfigWarning>,
}

/// A key of the file that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: line {line}: {message}", path.display())]
pub struct ConfigWarning {
    pub path: PathBuf,
    pub line: usize,
    pub message: String,
}

/// What is remembered of sessions.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct MemoryConfig {
    /// Whether hooks remember anything at all.
    pub enabled: bool,
    /// Days without activity after which a session is forgotten; 0 keeps everything.
    pub retention_days: u32,
    /// Whose memory an agent may read by commands.
    pub share: Share,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Its own session's, and that of the sessions it was forked from.
    #[default]
    Session,
    /// That of all sessions of its project.
    Project,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { enabled: true, retention_days: 30, share: Share::Session }
    }
}

/// How loops and pipelines are driven.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct RunsConfig {
    /// What the rest after a failed attempt grows from.
    pub back_off_ms: i64,
    /// How long an agent may take to end itself when it is stopped.
    pub grace_ms: u64,
    /// How much is kept of what an agent prints, in MiB: half from the beginning, half from the end. 0 keeps all.
    pub output_mb: u64,
}

impl RunsConfig {
    pub fn output_bytes(&self) -> u64 {
        self.output_mb.saturating_mul(1 << 20)
    }
}

impl Default for RunsConfig {
    fn default() -> Self {
        Self { back_off_ms: 2_000, grace_ms: 5_000, output_mb: 32 }
    }
}

/// How the agents of runs are started.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
pub struct AgentsConfig {
    /// Start clients in their own sandbox.
    #[serde(default)]
    pub sandbox: bool,
    #[serde(flatten)]
    hosts: BTreeMap<String, AgentConfig>,
}

impl AgentsConfig {
    /// The section `[agents.HOST]`.
    pub fn of(&self, host: Host) -> &AgentConfig {
        const DEFAULT: &AgentConfig = &AgentConfig { program: None, permission_flags: None, flags: Vec::new() };
        self.hosts.get(host.name()).unwrap_or(DEFAULT)
    }

    /// Its program, by its usual name unless configured.
    pub fn program(&self, host: Host) -> &str {
        self.of(host).program.as_deref().unwrap_or(host.capabilities().program)
    }
}

impl FromIterator<(Host, AgentConfig)> for AgentsConfig {
    fn from_iter<I: IntoIterator<Item = (Host, AgentConfig)>>(sections: I) -> Self {
        let hosts = sections.into_iter().map(|(host, config)| (host.name().to_owned(), config)).collect();
        Self { sandbox: false, hosts }
    }
}

#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct AgentConfig {
    /// The program; its usual name if absent.
    pub program: Option<String>,
    /// Flags that say what the agent may do without asking. A run has no user to ask, so the default is everything.
    pub permission_flags: Option<Vec<String>>,
    /// Further flags.
    pub flags: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct GoalConfig {
    /// Continuations in a row without progress before a goal pauses; 0 switches the breaker off.
    pub no_progress_limit: i64,
    /// Equal tool calls with equal results in a row before a goal pauses; 0 switches this breaker off.
    pub repeated_calls_limit: i64,
    /// What completes a goal that has no verification commands.
    pub completion: Completion,
    /// Seconds one verification command may take.
    pub verify_timeout_seconds: u64,
    /// What happens to a goal whose client has used up its plan.
    pub on_usage_limit: OnUsageLimit,
    /// Seconds after which a goal is woken although tasks still run in the background.
    pub background_wait_seconds: u64,
    /// Commands, word for word, that an agent may wait for.
    pub wait_commands: Vec<String>,
    /// Seconds one look with a command that a goal waits for may take.
    pub wait_timeout_seconds: u64,
}

/// What completes a goal that has no verification commands.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The worker's own word is enough, and shown as unverified.
    #[default]
    Worker,
    /// The evaluator must agree, as with `--judge`.
    Evaluator,
}

/// What happens to a goal whose client has used up its plan.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OnUsageLimit {
    /// It waits for the reset.
    #[default]
    Wait,
    /// The other agent works on it until then.
    Other,
}

/// How `steadfast watch` behaves.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct WatchConfig {
    /// Whether it is started by itself when something must be waited for.
    pub start: bool,
    /// How it wakes a goal whose client does not run.
    pub closed_sessions: ClosedSessions,
    /// Seconds with nothing to wait for after which it ends in the background.
    pub idle_seconds: u64,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self { start: true, closed_sessions: ClosedSessions::default(), idle_seconds: 60 }
    }
}

/// What `steadfast watch` does with a due goal whose client does not run.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ClosedSessions {
    /// Tell the user.
    #[default]
    Notify,
    /// Continue the session without a terminal.
    Headless,
}

#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct AccountingConfig {
    pub on_compact: OnCompact,
}

/// What a compaction does to a goal.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OnCompact {
    /// Check that nothing was lost, and continue.
    #[default]
    Verify,
    /// Flag every compaction and pause until a person reconciles.
    Pause,
}

impl Default for GoalConfig {
    fn default() -> Self {
        Self {
            no_progress_limit: 3,
            repeated_calls_limit: 10,
            completion: Completion::default(),
            verify_timeout_seconds: 600,
            on_usage_limit: OnUsageLimit::default(),
            background_wait_seconds: 300,
            wait_commands: Vec::new(),
            wait_timeout_seconds: 60,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("{path} is not a valid configuration: line {line}: {message}")]
    Invalid { path: PathBuf, line: usize, message: String },
}

impl ConfigError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(_) => "make it a readable text file",
            Self::Invalid { .. } => "fix that line; `steadfast doctor` checks the file",
        }
    }
}

impl Config {
    /// Reads the file; an absent one means all defaults.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let Some(text) = read(path)? else { return Ok(Self::default()) };
        let config: Self = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            invalid(path, &text, at, error.message())
        })?;
        let limits =
            limits::read(&text, &keys::sections()).map_err(|fault| invalid(path, &text, fault.at, &fault.message))?;
        let mut unknown = Vec::new();
        for key in keys::unknown(&text) {
            if key.is_limit {
                return Err(invalid(path, &text, key.at, &key.message));
            }
            unknown.push(ConfigWarning { path: path.to_owned(), line: line_of(&text, key.at), message: key.message });
        }
        Ok(Self { limits, unknown, ..config })
    }

    /// Reads the file for a caller that must find the store although the file is broken: the defaults, with the `db`
    /// of the file if that can be read.
    pub fn load_or_default(path: &Path) -> (Self, Option<ConfigError>) {
        let error = match Self::load(path) {
            Ok(config) => return (config, None),
            Err(error) => error,
        };
        let text = read(path).ok().flatten().unwrap_or_default();
        let (table, _) = DeTable::parse_recoverable(&text);
        let db = table.get_ref().get("db").and_then(|db| db.get_ref().as_str()).map(PathBuf::from);
        (Self { db, ..Self::default() }, Some(error))
    }
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    const MOST: u64 = 1024 * 1024;
    bounded::text_if_exists(path, MOST)
}

fn invalid(path: &Path, text: &str, at: usize, message: &str) -> ConfigError {
    ConfigError::Invalid {
        path: path.to_owned(),
        line: line_of(text, at),
        message: message.trim_end().replace('\n', ", "),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_a_warning_with_its_line_and_a_limit_in_the_wrong_place_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        fs_err::write(&file, "[goal]\n\nno_progres_limit = 7\n[future]\nkey = 1\n").unwrap();
        let config = Config::load(&file).unwrap();
        let said: Vec<String> = config.unknown.iter().map(ToString::to_string).collect();
        let expected = "config.toml: line 3: unknown key `no_progres_limit` in [goal]; did you mean";
        assert!(
            said.len() == 2 && said[0].contains(expected) && said[1].contains("line 4: unknown key `future`"),
            "{said:?}"
        );
        assert_eq!(config.goal, GoalConfig::default());
        fs_err::write(&file, "weekly_usd = 5\n").unwrap();
        let error = Config::load(&file).unwrap_err().to_string();
        assert!(error.contains("line 1: `weekly_usd` is a limit"), "{error}");
    }

    #[test]
    fn memory_is_on_and_kept_for_a_month_unless_the_file_says_otherwise() {
        for (text, enabled, retention_days) in [
            ("", true, 30),
            ("[memory]\nretention_days = 7", true, 7),
            ("[memory]\nenabled = false\nunknown = 1", false, 30),
            ("[memory]\nretention_days = 0", true, 0),
        ] {
            let config: Config = toml::from_str(text).unwrap();
            assert_eq!(config.memory, MemoryConfig { enabled, retention_days, share: Share::Session }, "{text}");
        }
        assert!(toml::from_str::<Config>("[memory]\nretention_days = -1").is_err());
    }

    #[test]
    fn a_broken_file_is_reported_with_its_line_and_still_names_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        for (text, line, store) in [
            ("db = \"/a.db\"\n[goal]\nno_progress_limit = \"many\"\n", "line 3: ", Some("/a.db")),
            ("db = \"/a.db\"\n[limits]\ndaily_usd = [\n", "line 3: ", Some("/a.db")),
            ("no_progress = [\ndb = \"/a.db\"\n", "line 2: ", None),
            ("db = 7\n", "line 1: ", None),
            ("[limits]\ndaily_usd = \"ten\"\n", "line 2: `daily_usd` needs a number", None),
            ("db = \"/a.db\"\n[limits]\n\ndayly_usd = 1\n", "line 4: unknown key `dayly_usd`", Some("/a.db")),
            ("\u{1}", "line 1: ", None),
        ] {
            fs_err::write(&file, text).unwrap();
            let (config, error) = Config::load_or_default(&file);
            let message = error.unwrap().to_string();
            assert!(message.contains(line) && message.contains("config.toml") && !message.contains('\n'), "{message}");
            assert_eq!(config, Config { db: store.map(PathBuf::from), ..Config::default() }, "{text}");
        }
        fs_err::remove_file(&file).unwrap();
        assert!(matches!(Config::load_or_default(&file), (config, None) if config == Config::default()));
        fs_err::create_dir(&file).unwrap();
        let (_, error) = Config::load_or_default(&file);
        assert!(error.unwrap().to_string().contains("config.toml"));
    }
}
