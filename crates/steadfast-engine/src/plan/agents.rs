//! Which program works: `agent: claude`, `codex` or any command, with its model and effort. The words of older
//! definitions (`provider`, `model: NAME:EFFORT`) are understood.

use steadfast_core::host::Host;
use steadfast_core::run::{AgentKind, AgentPlan};

use super::fault::{At, Faults, nearest};
use super::fields::{Fields, Setting, Value};
use super::yaml::Yaml;

const EFFORTS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];

/// What a definition says about its agent; what it leaves out is found elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AgentDef {
    pub(super) kind: Option<AgentKind>,
    pub(super) model: Setting<String>,
    pub(super) effort: Setting<String>,
    pub(super) user_hooks: Option<bool>,
}

impl AgentDef {
    /// Reads the keys of an agent among those of a loop type, a stage or `defaults`.
    pub(super) fn read(fields: &mut Fields<'_>, faults: &mut Faults) -> Self {
        let agent = fields.take(&["agent", "provider"], faults);
        let mut def = agent.map(|value| Self::of_value(&value, faults)).unwrap_or_default();
        def.read_details(fields, faults);
        def
    }

    fn read_details(&mut self, fields: &mut Fields<'_>, faults: &mut Faults) {
        let mut take = |name: &'static str| {
            let value = fields.take(&[name], faults);
            value.map_or(Setting::Absent, |value| value.setting(|value| value.text(faults)))
        };
        self.model = take("model").or(std::mem::take(&mut self.model));
        self.effort = take("effort").or(std::mem::take(&mut self.effort));
        self.user_hooks = fields.truth("user_hooks", faults).or(self.user_hooks);
    }

    /// `claude`, `codex`, a command line, its words, or keys of their own.
    pub(super) fn of_value(value: &Value<'_>, faults: &mut Faults) -> Self {
        if value.is_off() {
            return Self::default();
        }
        match &value.node.value {
            Yaml::Map(_) => {
                let Some(mut fields) = Fields::of(value.node, &value.at, "an agent", faults) else {
                    return Self::default();
                };
                let def = Self::read(&mut fields, faults);
                fields.finish("an agent", faults);
                def
            }
            Yaml::List(_) => {
                let words = value.texts(faults).unwrap_or_default();
                if words.is_empty() {
                    faults.error(&value.at, "the agent's command is empty", "write its program and arguments");
                }
                Self { kind: (!words.is_empty()).then_some(AgentKind::Command(words)), ..Self::default() }
            }
            _ => {
                let text = value.text(faults);
                let kind = text.and_then(|text| match agent_kind(&text) {
                    Ok(kind) => Some(kind),
                    Err((what, fix)) => {
                        faults.error(&value.at, what, fix);
                        None
                    }
                });
                Self { kind, ..Self::default() }
            }
        }
    }

    /// This, and where it is silent, the other.
    pub(super) fn or(self, other: Self) -> Self {
        // A model belongs to its program: another program does not know it.
        let others = other.program();
        let same = self.kind.as_ref().is_none_or(|kind| *kind == others);
        let (model, effort) = if same { (other.model, other.effort) } else { (Setting::Absent, Setting::Absent) };
        Self {
            model: self.model.or(model),
            effort: self.effort.or(effort),
            user_hooks: self.user_hooks.or(other.user_hooks),
            kind: self.kind.or(other.kind),
        }
    }

    /// Who works, if nobody says more.
    pub(super) fn program(&self) -> AgentKind {
        self.kind.clone().unwrap_or_default()
    }

    pub(super) fn into_plan(self, at: &At, faults: &mut Faults) -> AgentPlan {
        let kind = self.kind.unwrap_or_default();
        let mut effort = self.effort.on();
        let mut model = self.model.on().map(|model| model.trim().to_owned());
        if let Some((name, suffix)) = model.as_deref().and_then(|model| model.rsplit_once(':'))
            && EFFORTS.contains(&suffix)
        {
            effort = effort.or_else(|| Some(suffix.to_owned()));
            model = Some(name.to_owned());
        }
        if let AgentKind::Host(host) = kind {
            model = model.map(|model| current_model(host, &model).to_owned());
        }
        if let Some(effort) = effort.as_deref().filter(|effort| !EFFORTS.contains(effort)) {
            let meant = nearest(effort, EFFORTS).map(|it| format!("did you mean `{it}`? ")).unwrap_or_default();
            let fix = format!("{meant}Known are {}", EFFORTS.join(", "));
            faults.warning(at, format!("the effort `{effort}` is not known; it is passed on as it is"), fix);
        }
        AgentPlan { kind, model, effort, user_hooks: self.user_hooks.unwrap_or(false) }
    }
}

/// The names that older definitions use for the same models.
fn current_model(host: Host, model: &str) -> &str {
    let aliases = host.capabilities().model_aliases;
    aliases.iter().find(|(alias, _)| *alias == model).map_or(model, |(_, current)| current)
}

/// Reads `claude`, `codex` or a command line; an error is what is wrong and how to mend it.
pub fn agent_kind(text: &str) -> Result<AgentKind, (String, String)> {
    let text = text.trim();
    let is_named = |host: &&Host| host.name() == text || host.capabilities().aliases.contains(&text);
    if let Some(host) = Host::ALL.iter().find(is_named) {
        return Ok(AgentKind::Host(*host));
    }
    if let Some(meant) = nearest(text, ["claude", "codex", "claude-code"]) {
        return Err((format!("there is no agent `{text}`"), format!("did you mean `{meant}`?")));
    }
    if needs_shell(text) {
        let what = format!("the agent's command `{text}` is one for a shell, and none reads it");
        return Err((what, "write `sh -c '…'` around it, or put it into a script".to_owned()));
    }
    let words = split_words(text).ok_or_else(|| {
        (format!("the agent's command `{text}` has a quote without end"), "close the quote".to_owned())
    })?;
    if words.is_empty() {
        return Err(("the agent is empty".into(), "use `claude`, `codex` or a command".into()));
    }
    Ok(AgentKind::Command(words))
}

/// Whether a command begins with an assignment, or has a word that joins or redirects commands. Inside of a word such
/// characters may well be meant.
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
            (None, ';' | '|' | '&' | '<' | '>') if before.is_whitespace() => return true,
            (None, ';') if characters.peek().is_none_or(|next| next.is_whitespace()) => return true,
            _ => {}
        }
        before = character;
    }
    assigns
}

/// Words as a shell would split them, without expanding anything.
fn split_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        inside => word.push(inside),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
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
        for text in ["cat >/dev/null; echo hi", "FOO=1 ./a.sh", "a | b", "a && b", "echo hi;"] {
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
