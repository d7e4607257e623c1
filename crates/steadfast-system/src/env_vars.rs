//! Every environment variable the program reads, in one place.

use std::ffi::OsString;
use std::path::PathBuf;

/// The home directory of Steadfast. Default: `steadfast` in the platform's data directory, on Linux
/// `~/.local/share/steadfast`.
pub const HOME: &str = "STEADFAST_HOME";
/// The path of the store. Default: see [files](../howto/store.md#files).
pub const DB: &str = "STEADFAST_DB";
/// Set by Claude Code for a plugin: the directory of its data, where the store is without `steadfast setup`.
pub const CLAUDE_PLUGIN_DATA: &str = "CLAUDE_PLUGIN_DATA";
/// Set by Claude Code: the directory of the session's project.
pub const CLAUDE_PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";
/// Directories of Claude Code's settings and session files, separated by commas. Default: `~/.claude`.
pub const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Set by Claude Code for the commands its agent runs: the session.
pub const CLAUDE_CODE_SESSION_ID: &str = "CLAUDE_CODE_SESSION_ID";
/// Set by Claude Code for the commands its agent runs.
pub const CLAUDECODE: &str = "CLAUDECODE";
/// Set by Claude Code: how it was started.
pub const CLAUDE_CODE_ENTRYPOINT: &str = "CLAUDE_CODE_ENTRYPOINT";
/// Claude Code's cap on Stop blocks in a row without a tool call.
pub const STOP_HOOK_BLOCK_CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// The directory of Codex's settings and session files. Default: `~/.codex`.
pub const CODEX_HOME: &str = "CODEX_HOME";
/// Set to anything: nothing starts `steadfast watch` by itself.
pub const NO_WATCH: &str = "STEADFAST_NO_WATCH";
/// Set by Codex for the commands its agent runs.
pub const CODEX_SANDBOX: &str = "CODEX_SANDBOX";
/// Set by Codex for the commands its agent runs: the thread.
pub const CODEX_THREAD_ID: &str = "CODEX_THREAD_ID";
/// Set by Codex: the root thread, also in a subagent's shell.
pub const CODEX_SESSION_ID: &str = "CODEX_SESSION_ID";
/// Your home directory.
pub const USER_HOME: &str = "HOME";
/// Where programs are looked for.
pub const PATH: &str = "PATH";
/// Where temporary files go.
pub const TMPDIR: &str = "TMPDIR";
/// Decides where the platform's data directory is.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";

/// Given to the agent of a run: the name of the run.
pub const RUN: &str = "STEADFAST_RUN";
/// Given to the agent of a run: the name of the stage.
pub const STAGE: &str = "STEADFAST_STAGE";
/// Given to the agent of a run: the iteration, from 1.
pub const ITERATION: &str = "STEADFAST_ITERATION";
/// Given to the agent of a run: the path of the result file that it may write.
pub const RESULT: &str = "STEADFAST_RESULT";
/// The beginning of the variables that an iteration of a matrix gets: `STEADFAST_MATRIX_DB` for `matrix: {db: …}`.
pub const MATRIX: &str = "STEADFAST_MATRIX_";
/// Given to the command of `[notify]`: the title of the message.
pub const TITLE: &str = "STEADFAST_TITLE";
/// Given to the command of `[notify]`: the text of the message.
pub const BODY: &str = "STEADFAST_BODY";
/// Given to the command of `[notify]`: the kind of the message.
pub const KIND: &str = "STEADFAST_KIND";
/// The directory of an attempt, in the environment of everything that the attempt starts.
pub const ATTEMPT: &str = "STEADFAST_ATTEMPT";
/// Set for everything that a check of the completion rule starts: the directory of the attempt. It marks your commands,
/// which are not agents; `STEADFAST_ATTEMPT` marks agents.
pub const CHECK: &str = "STEADFAST_CHECK";
/// The file with the keys of the fleet's payloads.
pub const FLEET_KEY_FILE: &str = "STEADFAST_FLEET_KEY_FILE";
/// Temporal's own: where its server is.
pub const TEMPORAL_ADDRESS: &str = "TEMPORAL_ADDRESS";
/// For tests: the named place at which the process kills itself.
pub const CRASH_AT: &str = "STEADFAST_CRASH_AT";

/// Given to a hook or server whose environment was put right: the names that did not come from the user.
pub const IGNORED: &str = "STEADFAST_IGNORED";
/// What decides where the store is and whether anything works. A repository's settings may not.
pub const OF_USER: [&str; 6] = [HOME, DB, NO_WATCH, CRASH_AT, USER_HOME, XDG_DATA_HOME];

/// Variables of an agent's shell that an agent started from there must not see.
pub const OF_OUTER_AGENT: [&str; 9] = [
    CLAUDECODE,
    CLAUDE_CODE_ENTRYPOINT,
    CLAUDE_CODE_SESSION_ID,
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_PLUGIN_ROOT",
    CLAUDE_PLUGIN_DATA,
    CODEX_THREAD_ID,
    CODEX_SESSION_ID,
    CRASH_AT,
];

/// Variables of a run's agent.
pub const OF_RUN: [&str; 6] = [RUN, STAGE, ITERATION, RESULT, ATTEMPT, CHECK];

/// What ties git to one repository, from `git rev-parse --local-env-vars`. Programs that we start use the repository of
/// their own directory. `GIT_CONFIG_PARAMETERS` and `GIT_CONFIG_COUNT` stay: they carry settings of the machine, such as
/// `safe.directory` in containers.
pub const OF_ONE_REPOSITORY: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// Decides the language of other programs' messages.
pub const LC_ALL: &str = "LC_ALL";
/// `0` keeps git from asking for a password on a terminal.
pub const GIT_TERMINAL_PROMPT: &str = "GIT_TERMINAL_PROMPT";
/// `0` keeps git from writing while it only looks at a checkout.
pub const GIT_OPTIONAL_LOCKS: &str = "GIT_OPTIONAL_LOCKS";
/// The index that a git command uses.
pub const GIT_INDEX_FILE: &str = "GIT_INDEX_FILE";
/// Where a git command writes objects.
pub const GIT_OBJECT_DIRECTORY: &str = "GIT_OBJECT_DIRECTORY";
/// Where else a git command reads objects.
pub const GIT_ALTERNATE_OBJECT_DIRECTORIES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";
/// Keeps git from fetching objects that a partial clone does not have.
pub const GIT_NO_LAZY_FETCH: &str = "GIT_NO_LAZY_FETCH";

/// What the agents of a stage always get that names its variables: what programs, the clients and we need to work.
const BASIC: [&str; 21] = [
    PATH,
    USER_HOME,
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    TMPDIR,
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
const BASIC_BEGINNINGS: [&str; 7] = ["LC_", "XDG_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "STEADFAST_"];

/// Whether an agent gets this variable even if its stage names others.
pub fn is_basic(name: &str) -> bool {
    BASIC.contains(&name) || BASIC_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The variable with the value of a name in a matrix.
pub fn of_matrix(name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{MATRIX}{}", name.chars().map(upper).collect::<String>())
}

/// The width of the terminal, for output that goes elsewhere.
pub const COLUMNS: &str = "COLUMNS";
/// Set to anything: no colours.
pub const NO_COLOR: &str = "NO_COLOR";

/// Reads a variable; empty counts as absent.
pub fn text(name: &str) -> Option<String> {
    raw(name).and_then(|value| value.into_string().ok())
}

/// Reads a variable that names a path; empty counts as absent.
pub fn path(name: &str) -> Option<PathBuf> {
    raw(name).map(PathBuf::from)
}

/// All variables that are text.
pub fn all() -> impl Iterator<Item = (String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn raw(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
