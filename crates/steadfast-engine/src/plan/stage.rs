//! The keys of a stage. Loop types and stages of pipelines have the same ones; a stage that names a loop type sets only
//! what differs. `plan/planning.rs` adds the defaults.

use steadfast_model::run::AgentKind;

use super::agents::AgentDef;
use super::fault::Location;
use super::keys::{Count, Delay, Field as _, FromYaml, NoEffect, Setting, Timeout, Value, keys};
use super::rules::{Arguments, BareRule, RuleDef};
use super::yaml::Yaml;
use crate::files;

keys! {
    StageDef {
        /// In a loop type, a file or the text itself; in a pipeline, the text.
        prompt: Option<Prompt>,
        agent: AgentDef,
        runs: Option<Runs> = "runs" | "max" | "max_iterations" | "iterations",
        termination: Option<Termination>,
        min_iterations: Option<Count<0>>,
        completion: Setting<RuleDef>,
        arguments: Arguments,
        check_before: Option<bool>,
        delay: Option<Delay>,
        timeout: Option<Timeout>,
        perspectives: Option<Vec<String>>,
        items: Option<Items>,
        parallel: Option<Parallel>,
        output_parse: Option<Markers>,
        judge: Setting<Judge>,
        context: NoEffect,
        commands: NoEffect,
        guardrails: NoEffect,
        output_path: NoEffect,
        version: NoEffect,
    }
}

keys! {
    /// `termination: {type: …}`, which newer tools write instead of `completion` and `runs`.
    Termination {
        rule: Option<BareRule> = "type",
        max: Option<Count<1>> = "max" | "iterations",
        min_iterations: Option<Count<0>>,
        arguments: Arguments,
        judge: Setting<Judge>,
    }
}

impl FromYaml for Termination {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        value.table("`termination`")
    }
}

impl StageDef {
    /// Moves what `termination` sets to the keys that mean the same.
    pub(super) fn without_termination(mut self) -> Self {
        let in_runs = match self.runs.take() {
            Some(Runs::Termination(termination)) => Some(*termination),
            count => {
                self.runs = count;
                None
            }
        };
        for old in [in_runs, self.termination.take()].into_iter().flatten() {
            self.completion = match (self.completion, old.rule) {
                (Setting::On(rule), Some(_)) => {
                    rule.at.error("`completion` and `termination` are the same key", "remove one of them");
                    Setting::On(rule)
                }
                (completion, rule) => completion.or(rule.map(|BareRule(rule)| rule).into()),
            };
            self.runs = self.runs.or(old.max.map(|Count(max)| Runs::Count(max)));
            self.min_iterations = self.min_iterations.or(old.min_iterations);
            self.arguments = self.arguments.or(old.arguments);
            self.judge = self.judge.or(old.judge);
        }
        self
    }

    /// This stage, with what it does not set from the loop type that it names.
    pub(super) fn based_on(self, mut base: Self) -> Self {
        if !self.completion.is_absent() {
            base.arguments = base.arguments.used_by(&self.completion);
        }
        self.or(base)
    }

    /// Every command that the definition names.
    pub(super) fn commands(&self) -> Vec<String> {
        let completion = self.completion.as_on().map(RuleDef::commands).unwrap_or_default();
        let beside =
            self.arguments.command.as_on().into_iter().chain(self.arguments.verify.as_on().into_iter().flatten());
        let agents = [self.agent.command(), self.judge.as_on().and_then(|Judge(judge)| judge.command())];
        completion.into_iter().chain(beside.cloned()).chain(agents.into_iter().flatten()).collect()
    }
}

/// The template of a prompt.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    /// Empty after a fault.
    pub(super) text: String,
    /// The line of its key, or of its first line in a file of its own.
    pub(super) at: Location,
    /// In a definition: the text as it stands there, and its first line.
    written: Option<(String, u32)>,
}

impl FromYaml for Prompt {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        if value.is_off() {
            return None;
        }
        let written = Some((value.node.written.clone(), value.node.written_line));
        let text = match &value.node.value {
            Yaml::Text(text) if text.trim().is_empty() => value.at.refuse("the prompt is empty", Self::EMPTY_FIX),
            Yaml::Text(text) => Some(text.clone()),
            _ => {
                let fix = "write `prompt: |` and the text below it, indented";
                value.at.refuse("the prompt has to be a text", fix)
            }
        };
        Some(Self { text: text.unwrap_or_default(), at: value.at.clone(), written })
    }
}

impl Prompt {
    pub(super) const EMPTY_FIX: &str = "write what the agent should do";

    pub(super) fn of_file(at: &Location, text: String) -> Self {
        Self { text, at: at.clone(), written: None }
    }

    /// Where a variable stands.
    pub(super) fn location_of(&self, name: &str) -> Location {
        let (text, first) = self.written.as_ref().map_or((&self.text, 1), |(text, line)| (text, *line));
        let variable = format!("${{{name}}}");
        let mut found = text.match_indices(&variable).filter_map(|(at, _)| text.get(..at));
        // `$${NAME}` is not a variable.
        let before = found.find(|before| !before.ends_with('$')).unwrap_or_default();
        self.at.line(first.saturating_add(u32::try_from(before.matches('\n').count()).unwrap_or(0)))
    }
}

#[derive(Debug, Clone)]
pub(super) enum Runs {
    Count(u32),
    Termination(Box<Termination>),
}

impl FromYaml for Runs {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        if value.is_map() {
            return Termination::from_yaml(value).map(|termination| Self::Termination(Box::new(termination)));
        }
        Count::<1>::from_yaml(value).map(|Count(count)| Self::Count(count))
    }
}

/// A list, or words separated by spaces.
#[derive(Debug, Clone)]
pub(super) struct Items(pub(super) Vec<String>);

impl FromYaml for Items {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        if let Yaml::Text(text) = &value.node.value {
            return Some(Self(text.split_whitespace().map(str::to_owned).collect()));
        }
        Vec::from_yaml(value).map(Self)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Parallel(pub(super) bool);

impl FromYaml for Parallel {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        if value.is_map() {
            let fix = "write one stage for each agent, with `parallel: true` and `runs` or `perspectives` for several \
                       at once";
            return value.at.refuse("parallel blocks of other stages are not supported", fix);
        }
        bool::from_yaml(value).map(Self)
    }
}

/// Fields and their markers: `key:MARKER key:MARKER`, a list of those, or a mapping.
#[derive(Debug, Clone)]
pub(super) struct Markers(pub(super) Vec<(String, String)>);

impl FromYaml for Markers {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        let mut pairs = Vec::new();
        if let Yaml::Map(entries) = &value.node.value {
            for entry in entries {
                let marker = Value::of_entry(entry, &value.at);
                pairs.extend(String::from_yaml(&marker).map(|text| (entry.key.clone(), text, marker.at)));
            }
        } else if !value.is_off() {
            for part in value.elements() {
                for word in String::from_yaml(&part)?.split_whitespace() {
                    match word.split_once(':') {
                        Some((key, marker)) => pairs.push((key.to_owned(), marker.to_owned(), part.at.clone())),
                        None => part.at.error(format!("`{word}` is not `key:MARKER`"), "write for example `risk:RISK`"),
                    }
                }
            }
        }
        for (key, marker, at) in &pairs {
            check_marker(key, marker, at);
        }
        Some(Self(pairs.into_iter().map(|(key, marker, _)| (key, marker)).collect()))
    }
}

fn check_marker(key: &str, marker: &str, at: &Location) {
    let is_plain = |text: &str| {
        (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
    };
    if files::OWN_FIELDS.contains(&key) {
        let what = format!("`{key}` is a field that every iteration has: the marker `{marker}` does not change it");
        at.warning(what, "choose another name for the field");
    }
    if !is_plain(key) || !is_plain(marker) {
        at.error(format!("`{key}:{marker}` is not a field and its marker"), "use letters, digits, `_` and `-`");
    }
}

/// An agent; `true` is the small model of Claude.
#[derive(Debug, Clone)]
pub(super) struct Judge(pub(super) AgentDef);

impl FromYaml for Judge {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        if value.node.value == Yaml::Bool(true) {
            let model = Setting::On("haiku".to_owned());
            return Some(Self(AgentDef { kind: Some(AgentKind::Claude), model, ..AgentDef::default() }));
        }
        AgentDef::from_yaml(value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fault::Faults;
    use crate::plan::yaml;

    #[test]
    fn variables_have_the_line_on_which_they_are_written() {
        let source = "a: >\n  one\n  two\n\n  three ${FOLDED} $${KEPT} ${KEPT}\nb: \"x\\n\\ny ${ESCAPED}\"\nc: |\n  one\n\n  \
                      two ${BLOCK} ${SAME}\nd: plain\n  over lines ${PLAIN}\ne: &here 'ü ${QUOTED}\n\n  ${AGAIN}'\nf: *here\n";
        let root = yaml::parse(source.as_bytes()).unwrap();
        let Yaml::Map(entries) = &root.value else { panic!("{source}") };
        let at = Faults::default().file("x.yaml");
        for (key, name, line) in [
            ("a", "FOLDED", 5),
            ("a", "KEPT", 5),
            ("b", "ESCAPED", 6),
            ("c", "BLOCK", 10),
            ("c", "SAME", 10),
            ("d", "PLAIN", 12),
            ("e", "QUOTED", 13),
            ("e", "AGAIN", 15),
            ("f", "QUOTED", 13),
            ("f", "AGAIN", 15),
        ] {
            let entry = entries.iter().find(|entry| entry.key == key).unwrap();
            let prompt = Prompt::from_yaml(&Value::of_entry(entry, &at)).unwrap();
            assert_eq!(prompt.location_of(name).line, line, "{key} {name}");
        }
    }
}
