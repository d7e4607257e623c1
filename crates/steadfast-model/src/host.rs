//! The hosts and what is true of each, as plain data. Code outside the adapters in `steadfast-hosts` asks these facts and
//! never the host's name.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// An agent that we hook into. Everything that differs between hosts is in its [`Capabilities`] and its adapter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Host {
    /// Also assumed where no host is known.
    #[default]
    Claude,
    Codex,
}

#[derive(Debug)]
pub struct Capabilities {
    pub product: &'static str,
    /// Who serves its models, by OpenTelemetry's list of providers.
    pub provider: &'static str,
    /// Its executable, also the name of its processes.
    pub program: &'static str,
    /// Other names for it in loop and pipeline definitions.
    pub aliases: &'static [&'static str],
    /// Names that older definitions use for its models.
    pub model_aliases: &'static [(&'static str, &'static str)],
    /// The flag that lets its agent do everything without asking.
    pub all_permissions_flag: &'static str,
    /// The flags that let its agent change the project's files and run commands in the client's own sandbox only.
    pub sandbox_flags: &'static [&'static str],
    /// How to check the version of its program, if some are too old.
    pub version_check: Option<VersionCheck>,
    /// Opens a session again; its id follows.
    pub resume_command: &'static str,
    /// How its users begin the name of one of our commands.
    pub command_prefix: &'static str,
    /// What the names of our tools need in front so that the model does not call the host's own tools of that name.
    pub tool_prefix: &'static str,
    /// The full name of the tool that searches session memory.
    pub recall_tool: &'static str,
    /// The most text that may be injected when a session starts.
    pub start_cap: TextCap,

    /// The variable that names its configuration directory, and that directory below the user's home otherwise.
    pub config_variable: &'static str,
    pub default_config_dir: &'static str,
    /// The directory of session files in the configuration directory.
    pub transcripts_dir: &'static str,
    /// Variables that only the shell of its agent has.
    pub shell_markers: &'static [&'static str],
    /// Variables that name the session in the shell of its agent, the best first.
    pub session_variables: &'static [&'static str],

    /// Hooks prove that the evaluator subagent made a tool call.
    pub proves_evaluator: bool,
    /// The evaluator's agent type, as hooks and session files name it.
    pub evaluator_agent: &'static str,
    /// How a model starts the evaluator, where that needs words.
    pub evaluator_start: &'static str,
    /// One process may run several sessions at once.
    pub shares_client: bool,
    /// A background hook can wake an idle session.
    pub can_wake: bool,
    /// A process outside of the client can wake an idle session.
    pub wakes_from_outside: bool,
    /// A closed session can be continued from a terminal.
    pub continues_closed_sessions: bool,
    /// Session files only grow. Otherwise the host may rewrite them, and responses may disappear.
    pub only_appends_transcripts: bool,
    /// The last message may reach the session file after the Stop hook has started.
    pub writes_transcript_late: bool,
    /// The hook after a batch of tool calls can end the turn. Otherwise tool calls are refused until the model ends it.
    pub batch_ends_turn: bool,
    /// `/clear` ends the old session with a hook of its own.
    pub announces_clear_end: bool,
    /// A fork starts with a hook under its own id. Otherwise its id first appears with its first prompt.
    pub announces_forks: bool,
    /// A prompt `goal: …` starts a durable goal.
    pub marker_starts_goal: bool,
    /// The user's prompts stay in the model's context through a compaction.
    pub keeps_prompts_in_compaction: bool,
    /// The host's own goal loses its text in a compaction in the middle of a turn.
    pub loses_own_goal_in_compaction: bool,
    /// `setup` writes the tool server's variables into the host's configuration.
    pub sets_server_variables: bool,
    /// The host has a `/goal` command of its own, which gets the same prompts as ours.
    pub has_goal_command: bool,
}

/// What `PROGRAM --version` must print.
#[derive(Debug)]
pub struct VersionCheck {
    /// The id of the check in `steadfast doctor`.
    pub id: &'static str,
    /// What stands before the version.
    pub prefix: &'static str,
    /// Hooks of older versions do not run everywhere.
    pub oldest: Version,
    /// What the user types to get a newer one.
    pub update: &'static str,
}

/// Major, minor and patch number.
pub type Version = (u32, u32, u32);

impl VersionCheck {
    /// The numbers of a version such as `2.1.197` or `0.142.0-alpha.3`; what follows them does not matter.
    pub fn numbers(text: &str) -> Option<Version> {
        let word = text.split_whitespace().next()?;
        let mut parts = word.split(['.', '-', '+']).map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some((major, minor, parts.next().flatten().unwrap_or(0)))
    }

    /// Whether our hooks do not run everywhere in this version; one that cannot be read is believed to be new.
    pub fn is_too_old(&self, version: &str) -> bool {
        Self::numbers(version).is_some_and(|version| version < self.oldest)
    }

    /// What is wrong with a version that is too old, for people.
    pub fn complaint(&self, product: &str, version: &str) -> String {
        let (major, minor, patch) = self.oldest;
        format!("{product} {version} is too old, {major}.{minor}.{patch} is the oldest that goals work in")
    }
}

/// How much text a host accepts at the start of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCap {
    /// UTF-16 units, as Claude Code counts.
    Characters(usize),
    /// Four bytes each, as Codex counts without asking the model.
    Tokens(usize),
}

const CLAUDE: Capabilities = Capabilities {
    product: "Claude Code",
    provider: "anthropic",
    program: "claude",
    aliases: &["claude-code", "anthropic"],
    model_aliases: &[
        ("claude-opus", "opus"),
        ("opus-4", "opus"),
        ("opus-4.5", "opus"),
        ("claude-sonnet", "sonnet"),
        ("sonnet-4", "sonnet"),
        ("claude-haiku", "haiku"),
    ],
    all_permissions_flag: "--dangerously-skip-permissions",
    // The adapter adds settings that switch the sandbox on.
    sandbox_flags: &["--permission-mode", "acceptEdits"],
    // The first one that has the hook events `UserPromptExpansion` and `PostToolBatch`.
    version_check: Some(VersionCheck {
        id: "claude_version",
        prefix: "",
        oldest: (2, 1, 118),
        update: "claude update",
    }),
    resume_command: "claude --resume",
    command_prefix: "/goal-",
    tool_prefix: "",
    recall_tool: "mcp__plugin_steadfast_steadfast__recall",
    // It drops more than 10,000 characters.
    start_cap: TextCap::Characters(9_500),
    config_variable: "CLAUDE_CONFIG_DIR",
    default_config_dir: ".claude",
    transcripts_dir: "projects",
    shell_markers: &["CLAUDECODE"],
    session_variables: &["CLAUDE_CODE_SESSION_ID"],
    proves_evaluator: true,
    // The plugin's own. The bare name is not enough: a worker can write an agent file of that name.
    evaluator_agent: "steadfast:goal-evaluator",
    evaluator_start: "",
    shares_client: false,
    can_wake: true,
    wakes_from_outside: false,
    continues_closed_sessions: false,
    only_appends_transcripts: false,
    writes_transcript_late: true,
    batch_ends_turn: true,
    announces_clear_end: true,
    announces_forks: false,
    marker_starts_goal: false,
    keeps_prompts_in_compaction: false,
    loses_own_goal_in_compaction: false,
    sets_server_variables: false,
    has_goal_command: true,
};

const CODEX: Capabilities = Capabilities {
    product: "Codex",
    provider: "openai",
    program: "codex",
    aliases: &["openai"],
    model_aliases: &[],
    all_permissions_flag: "--dangerously-bypass-approvals-and-sandbox",
    sandbox_flags: &["--sandbox", "workspace-write"],
    // Older ones do not run hooks in `codex exec`, trusted or not.
    version_check: Some(VersionCheck {
        id: "codex_version",
        prefix: "codex-cli ",
        oldest: (0, 141, 0),
        update: "npm install -g @openai/codex",
    }),
    resume_command: "codex resume",
    command_prefix: "$goal-",
    tool_prefix: "mcp__steadfast__",
    recall_tool: "mcp__steadfast__recall",
    // It drops more than 2,500 tokens.
    start_cap: TextCap::Tokens(2_400),
    config_variable: "CODEX_HOME",
    default_config_dir: ".codex",
    transcripts_dir: "sessions",
    shell_markers: &["CODEX_SANDBOX", "CODEX_THREAD_ID"],
    // The first one is the root thread, also in a subagent's shell.
    session_variables: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
    proves_evaluator: true,
    evaluator_agent: "goal-evaluator",
    // With the history of the worker it would not be the evaluator. Which of the two names the tool has depends on the model.
    evaluator_start: "spawn_agent: agent_type \"goal-evaluator\", fork_context false or fork_turns \"none\"",
    shares_client: true,
    can_wake: false,
    wakes_from_outside: true,
    continues_closed_sessions: true,
    only_appends_transcripts: true,
    writes_transcript_late: false,
    batch_ends_turn: false,
    announces_clear_end: false,
    announces_forks: true,
    marker_starts_goal: true,
    keeps_prompts_in_compaction: true,
    loses_own_goal_in_compaction: true,
    sets_server_variables: true,
    has_goal_command: false,
};

impl Host {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Where the first command spelled for this host begins in a sentence, and the length of its prefix.
    fn first_command(self, sentence: &str) -> Option<(usize, usize)> {
        let prefix = self.capabilities().command_prefix;
        Some((sentence.find(prefix)?, prefix.len()))
    }

    pub fn capabilities(self) -> &'static Capabilities {
        match self {
            Self::Claude => &CLAUDE,
            Self::Codex => &CODEX,
        }
    }

    /// Whether a subagent of this kind is the evaluator.
    pub fn is_evaluator(self, agent_type: &str) -> bool {
        agent_type == self.capabilities().evaluator_agent
    }

    /// What the user types to open a session again.
    pub fn resume_command(self, session_id: &str) -> String {
        format!("{} {}", self.capabilities().resume_command, session_id)
    }

    /// Rewrites the commands in one of our sentences for the users of this host.
    pub fn spell(self, sentence: &str) -> String {
        Screen::Client(self).spell(sentence)
    }
}

/// Where a sentence is read. Our sentences spell commands `/goal-VERB`; what can be typed differs from place to place.
/// A sentence that says `steadfast goal VERB` means a terminal, wherever it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Client(Host),
    Terminal,
}

impl Screen {
    /// Rewrites the commands in one of our sentences so that they can be typed here. Paths that contain `/goal-` stay.
    pub fn spell(self, sentence: &str) -> String {
        let prefix = match self {
            Self::Client(host) => host.capabilities().command_prefix,
            Self::Terminal => "steadfast goal ",
        };
        let mut spelled = String::with_capacity(sentence.len());
        let mut rest = sentence;
        while let Some((at, known)) = Host::ALL.iter().filter_map(|host| host.first_command(rest)).min() {
            let (before, found) = rest.split_at(at);
            let after = found.get(known..).unwrap_or_default();
            let continues_word = before.ends_with(|c: char| c.is_alphanumeric() || "/.-_~".contains(c));
            let is_command = !continues_word && after.starts_with(|c: char| c.is_ascii_lowercase());
            spelled.push_str(before);
            spelled.push_str(if is_command { prefix } else { found.get(..known).unwrap_or_default() });
            rest = after;
        }
        spelled + rest
    }
}

impl TextCap {
    pub fn fits(self, text: &str) -> bool {
        self.measure(text) <= self.room()
    }

    /// How much fits, in the unit of [`TextCap::measure`].
    pub fn room(self) -> usize {
        match self {
            Self::Characters(most) => most,
            Self::Tokens(most) => most.saturating_mul(4),
        }
    }

    /// How much of the room a text needs. The measures of pieces add up to that of the whole.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Characters(_) => text.encode_utf16().count(),
            Self::Tokens(_) => text.len(),
        }
    }

    /// A length in characters that fits whatever the characters are.
    pub fn safe_characters(self) -> usize {
        match self {
            Self::Characters(most) => most / 2,
            Self::Tokens(most) => most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_spelled_as_they_are_typed() {
        let (claude, codex) = (Screen::Client(Host::Claude), Screen::Client(Host::Codex));
        let sentence = "paused; `/goal-extend --add-turns N` or /goal-resume, or `steadfast goal resume --continue`";
        assert_eq!(claude.spell(sentence), sentence);
        assert_eq!(
            codex.spell(sentence),
            "paused; `$goal-extend --add-turns N` or $goal-resume, or `steadfast goal resume --continue`"
        );
        assert_eq!(
            Screen::Terminal.spell(sentence),
            "paused; `steadfast goal extend --add-turns N` or steadfast goal resume, or `steadfast goal resume --continue`"
        );
        assert_eq!(Screen::Terminal.spell(&codex.spell(sentence)), Screen::Terminal.spell(sentence));
        assert_eq!(claude.spell(&codex.spell(sentence)), sentence);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let check = VersionCheck { id: "", prefix: "", oldest: (2, 1, 118), update: "" };
        for (version, is_old) in [
            ("2.1.197 (Claude Code)", false),
            ("2.1.118", false),
            ("2.1.99", true),
            ("2.0.200", true),
            ("2.1-alpha.3", true),
            ("3.0", false),
            ("unknown", false),
            ("", false),
        ] {
            assert_eq!(check.is_too_old(version), is_old, "{version}");
        }
        assert_eq!(VersionCheck::numbers("0.142.0-alpha.3"), Some((0, 142, 0)));
        assert_eq!(VersionCheck::numbers("WARNING: proceeding"), None);
    }

    #[test]
    fn paths_are_not_commands() {
        for path in
            ["/home/ann/goal-start", "./goal-x", "~/goal-x", "/goal-/", "/goal clear", "$goal-", "a/goal-b/goal-c"]
        {
            for screen in [Screen::Client(Host::Codex), Screen::Terminal] {
                assert_eq!(screen.spell(path), path);
            }
        }
    }
}
