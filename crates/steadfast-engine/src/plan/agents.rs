//! Agents: `agent: claude`, `codex` or any command, with its model and effort. The words of other tools (`provider`,
//! `model: NAME:EFFORT`) work too.

use steadfast_model::host::Host;
use steadfast_model::run::{AgentKind, AgentPlan};

use super::fault::{did_you_mean, nearest};
use super::keys::{Inherit, KeyTable, Keys, Setting, Slot, Value, text, texts, truth};
use super::yaml::Yaml;

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const MAX_AGENTS: usize = 64;

/// An agent as far as a definition sets it.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentDef {
    pub(super) kind: Option<AgentKind>,
    pub(super) model: Setting<String>,
    pub(super) effort: Setting<String>,
    pub(super) user_hooks: Option<bool>,
}

impl KeyTable for AgentDef {
    fn read(keys: &mut Keys<'_>) -> Self {
        let named: Option<Self> = Slot::fill(keys.take(&["agent", "provider"]), agent);
        let own = Self {
            kind: None,
            model: Slot::fill(keys.take(&["model"]), text),
            effort: Slot::fill(keys.take(&["effort"]), effort),
            user_hooks: Slot::fill(keys.take(&["user_hooks"]), truth),
        };
        own.inherit(named.unwrap_or_default(), true)
    }
}

impl Inherit for AgentDef {
    fn or(self, other: Self) -> Self {
        // A model belongs to its program, so another program does not inherit it.
        let is_same = self.kind.as_ref().is_none_or(|kind| *kind == other.program());
        self.inherit(other, is_same)
    }
}

/// `claude`, `codex`, a command line, a list of its words, or a mapping of its own.
pub(super) fn agent(value: &Value<'_>) -> Option<AgentDef> {
    let kind = match &value.node.value {
        Yaml::Null | Yaml::Bool(false) => None,
        Yaml::Map(_) => return value.table("an agent"),
        Yaml::List(_) => match texts(value)? {
            words if words.is_empty() => {
                value.at.refuse("the agent's command is empty", "write its program and arguments")
            }
            words => Some(AgentKind::Command(words)),
        },
        _ => agent_kind(&text(value)?).map_err(|(what, fix)| value.at.error(what, fix)).ok(),
    };
    Some(AgentDef { kind, ..AgentDef::default() })
}

fn effort(value: &Value<'_>) -> Option<String> {
    let effort = text(value)?.trim().to_lowercase();
    if EFFORTS.contains(&effort.as_str()) {
        return Some(effort);
    }
    let fix = format!("{}Known are {}", did_you_mean(&effort, EFFORTS), EFFORTS.join(", "));
    let shown: String = effort.chars().take(80).collect();
    value.at.refuse(format!("there is no effort `{shown}`"), fix)
}

/// Several agents, each as in `agent`.
pub(super) fn agents(value: &Value<'_>) -> Option<Vec<AgentDef>> {
    match &value.node.value {
        _ if value.is_off() => None,
        Yaml::List(nodes) if (1..=MAX_AGENTS).contains(&nodes.len()) => {
            let read = value.elements().map(|element| match &element.node.value {
                Yaml::Null | Yaml::Bool(_) => {
                    element.at.refuse("an agent is missing", "write `claude`, `codex` or a command")
                }
                _ => agent(&element),
            });
            Some(read.flatten().collect())
        }
        Yaml::List(nodes) => value.at.refuse(format!("{} agents", nodes.len()), format!("list 1 to {MAX_AGENTS}")),
        _ => value.at.refuse("`agents` has to be a list", "write `agents: [claude, codex]`, or `agent:` for one"),
    }
}

impl AgentDef {
    fn inherit(self, other: Self, with_model: bool) -> Self {
        let (model, effort) = if with_model { (other.model, other.effort) } else { Default::default() };
        Self {
            kind: self.kind.or(other.kind),
            model: self.model.or(model),
            effort: self.effort.or(effort),
            user_hooks: self.user_hooks.or(other.user_hooks),
        }
    }

    pub(super) fn program(&self) -> AgentKind {
        self.kind.clone().unwrap_or_default()
    }

    /// The command line, if the agent is one.
    pub(super) fn command(&self) -> Option<String> {
        self.kind.as_ref().and_then(command_line)
    }

    pub(super) fn into_plan(self) -> AgentPlan {
        let kind = self.program();
        let mut effort = self.effort.on();
        let mut model = self.model.on().map(|model| model.trim().to_owned());
        if let Some((name, suffix)) = model.as_deref().and_then(|model| model.rsplit_once(':'))
            && EFFORTS.contains(&suffix)
        {
            effort = effort.or_else(|| Some(suffix.to_owned()));
            model = Some(name.to_owned());
        }
        if let AgentKind::Host(host) = kind {
            // Older definitions use other names.
            let aliases = host.capabilities().model_aliases;
            let current = aliases.iter().find(|(alias, _)| model.as_deref() == Some(alias));
            model = current.map(|(_, current)| (*current).to_owned()).or(model);
        }
        AgentPlan { kind, model, effort, user_hooks: self.user_hooks.unwrap_or(false), sandbox: false }
    }
}

pub(super) fn command_line(kind: &AgentKind) -> Option<String> {
    match kind {
        AgentKind::Command(words) => Some(words.join(" ")),
        AgentKind::Host(_) => None,
    }
}

/// Reads `claude`, `codex` or a command line. An error has what is wrong and how to fix it.
pub fn agent_kind(text: &str) -> Result<AgentKind, (String, String)> {
    let text = text.trim();
    let is_named = |host: &&Host| host.name() == text || host.capabilities().aliases.contains(&text);
    if let Some(host) = Host::ALL.iter().find(is_named) {
        return Ok(AgentKind::Host(*host));
    }
    // Aliases such as `openai` are too close to the names of other programs.
    let names = Host::ALL.iter().flat_map(|host| {
        let aliases = host.capabilities().aliases.iter().copied();
        [host.name()].into_iter().chain(aliases.filter(|alias| alias.starts_with(host.name())))
    });
    if let Some(meant) = nearest(text, names) {
        return Err((format!("there is no agent `{text}`"), format!("did you mean `{meant}`?")));
    }
    if needs_shell(text) {
        let what = format!("the agent's command `{text}` needs a shell");
        return Err((what, "write `sh -c '…'` around it, or put it into a script".to_owned()));
    }
    let words = shlex::split(text)
        .ok_or_else(|| (format!("the agent's command `{text}` has an unclosed quote"), "close the quote".to_owned()))?;
    if words.is_empty() {
        return Err(("the agent is empty".into(), "use `claude`, `codex` or a command".into()));
    }
    Ok(AgentKind::Command(words))
}

/// Whether a command begins with an assignment, or has a word that starts a comment or joins or redirects commands.
/// Inside of a word these characters are plain text.
fn needs_shell(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let assigns = first.split_once('=').is_some_and(|(name, _)| is_name(name));
    let (mut quote, mut before) = (None, ' ');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None | Some('"'), '\\') => {
                characters.next();
            }
            (None, '#' | ';' | '|' | '&' | '<' | '>') if before.is_whitespace() => return true,
            (None, ';') if characters.peek().is_none_or(|next| next.is_whitespace()) => return true,
            _ => {}
        }
        before = character;
    }
    assigns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_names_or_commands() {
        let command = |words: &[&str]| Ok(AgentKind::Command(words.iter().map(|word| (*word).to_owned()).collect()));
        for (text, kind) in [
            ("claude", Ok(AgentKind::Host(Host::Claude))),
            ("claude-code", Ok(AgentKind::Host(Host::Claude))),
            ("codex", Ok(AgentKind::Host(Host::Codex))),
            ("./agent.sh", command(&["./agent.sh"])),
            ("sh -c 'echo \"a b\"' \"x\\\"y\" a\\ b ''", command(&["sh", "-c", "echo \"a b\"", "x\"y", "a b", ""])),
            ("python3 agent.py --x=$HOME", command(&["python3", "agent.py", "--x=$HOME"])),
        ] {
            assert_eq!(agent_kind(text), kind, "{text}");
        }
        for text in ["cat >/dev/null; echo hi", "FOO=1 ./a.sh", "a | b", "a && b", "echo hi;", "./a #1"] {
            assert!(agent_kind(text).is_err_and(|(_, fix)| fix.contains("sh -c '…'")), "{text}");
        }
        for text in ["curl http://x/?a=b&c=d", "grep '>' x", "a \"; b\" \\; c", "./a=b.sh x"] {
            assert!(agent_kind(text).is_ok(), "{text}");
        }
        for text in ["", "  ", "cluade", "codx", "sh -c 'x", "a \"b", "x\\"] {
            assert!(agent_kind(text).is_err(), "{text}");
        }
    }
}
