//! A stage as definitions describe it. Loop types and stages of pipelines have the same keys; a stage that names a
//! loop type says only what differs. What nobody says is decided in `plan/planning.rs`.

use steadfast_core::clock::{self, Millis};
use steadfast_core::run::AgentKind;

use super::agents::AgentDef;
use super::fault::{At, Faults};
use super::fields::{Fields, Setting, Value};
use super::rules::{Arguments, RuleDef};
use super::yaml::Yaml;
use crate::files;

/// What «no time limit» means: longer than anything runs, and far from overflowing.
const NO_TIMEOUT_MS: Millis = 365 * clock::DAY;

/// The template of a prompt and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) at: At,
    /// The lines of its variables where it stands inside of YAML; in a file of its own they are those of the text.
    pub(super) places: Option<Vec<(String, u32)>>,
}

impl Prompt {
    /// A text in a definition.
    pub(super) fn inside(value: &Value<'_>, text: String) -> Self {
        Self { text, at: value.at.line(value.node.line), places: Some(value.node.variables.clone()) }
    }

    /// A file of its own.
    pub(super) fn of_file(file: &str, text: String) -> Self {
        Self { text, at: At::new(file, 1), places: None }
    }

    /// Where a variable stands.
    pub(super) fn place_of(&self, name: &str) -> At {
        let line = if let Some(places) = &self.places {
            places.iter().find(|(known, _)| known == name).map_or(self.at.line, |(_, line)| *line)
        } else {
            let before = self.text.find(&format!("${{{name}}}")).and_then(|at| self.text.get(..at));
            let lines = u32::try_from(before.unwrap_or_default().matches('\n').count()).unwrap_or(0);
            self.at.line.saturating_add(lines)
        };
        self.at.line(line)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct StageDef {
    /// `Off` if there is one that cannot be used, which has been told.
    pub(super) prompt: Setting<Prompt>,
    pub(super) runs: Option<u32>,
    pub(super) min_iterations: Option<u32>,
    pub(super) completion: Setting<RuleDef>,
    pub(super) arguments: Arguments,
    pub(super) check_before: Option<bool>,
    pub(super) delay_ms: Option<Millis>,
    pub(super) timeout_ms: Option<Millis>,
    pub(super) agent: AgentDef,
    pub(super) perspectives: Option<Vec<String>>,
    pub(super) items: Option<Vec<String>>,
    pub(super) parallel: Option<bool>,
    pub(super) output_parse: Option<Vec<(String, String)>>,
    pub(super) judge: Setting<AgentDef>,
}

/// Keys that older versions knew and that have no effect here.
const WITHOUT_EFFECT: [&str; 5] = ["context", "commands", "guardrails", "output_path", "version"];

impl StageDef {
    /// Reads all keys but names, prompts and inputs.
    pub(super) fn read(fields: &mut Fields<'_>, faults: &mut Faults) -> Self {
        let mut def = Self { agent: AgentDef::read(fields, faults), ..Self::default() };
        if let Some(runs) = fields.take(&["runs", "max", "max_iterations", "iterations"], faults) {
            if matches!(runs.node.value, Yaml::Map(_)) {
                def.read_termination(&runs, faults);
            } else {
                def.runs = runs.whole(1, faults);
            }
        }
        if let Some(termination) = fields.take(&["termination"], faults) {
            def.read_termination(&termination, faults);
        }
        def.min_iterations = fields.whole(&["min_iterations"], 0, faults).or(def.min_iterations);
        if let Some(completion) = fields.take(&["completion"], faults) {
            if !matches!(def.completion, Setting::Absent) {
                let fix = "remove `termination`, or this";
                faults.error(&completion.at, "`completion` and `termination` say the same thing", fix);
            }
            def.completion = completion.setting(|value| RuleDef::read(&value, faults));
        }
        def.arguments = Self::read_arguments(fields, faults).or(std::mem::take(&mut def.arguments));
        def.check_before = fields.truth("check_before", faults);
        def.delay_ms = read_span(fields, "delay", 0, faults);
        def.timeout_ms =
            read_span(fields, "timeout", NO_TIMEOUT_MS, faults).map(|ms| if ms == 0 { NO_TIMEOUT_MS } else { ms });
        def.perspectives = fields.take(&["perspectives"], faults).and_then(|value| value.texts(faults));
        def.items = fields.take(&["items"], faults).and_then(|value| read_items(&value, faults));
        def.parallel = fields.take(&["parallel"], faults).and_then(|value| read_parallel(&value, faults));
        def.output_parse = fields.take(&["output_parse"], faults).and_then(|value| read_markers(&value, faults));
        if let Some(judge) = fields.take(&["judge"], faults) {
            def.judge = read_judge(judge, faults);
        }
        for name in WITHOUT_EFFECT {
            if let Some(value) = fields.take(&[name], faults) {
                faults.warning(&value.at, format!("`{name}` has no effect"), "remove it");
            }
        }
        def
    }

    fn read_arguments(fields: &mut Fields<'_>, faults: &mut Faults) -> Arguments {
        let verify = fields.take(&["verify"], faults);
        let verify = verify.map_or(Setting::Absent, |value| value.setting(|value| value.texts(faults)));
        let mut text = |name: &'static str| {
            let value = fields.take(&[name], faults);
            value.map_or(Setting::Absent, |value| value.setting(|value| value.text(faults)))
        };
        let (command, promise) = (text("command"), text("promise"));
        let (checklist, label) = (text("checklist"), text("label"));
        Arguments { verify, command, promise, checklist, label, consensus: fields.whole(&["consensus"], 1, faults) }
    }

    /// `termination: {type: …}`, the way of later versions of these files.
    fn read_termination(&mut self, value: &Value<'_>, faults: &mut Faults) {
        let Some(mut fields) = Fields::of(value.node, &value.at, "`termination`", faults) else { return };
        if let Some(kind) = fields.take(&["type"], faults) {
            let word = kind.text(faults);
            self.completion = word.and_then(|word| RuleDef::of_word(&word, &kind.at, faults)).into();
        }
        self.runs = fields.whole(&["max", "iterations"], 1, faults).or(self.runs);
        self.min_iterations = fields.whole(&["min_iterations"], 0, faults);
        self.arguments = Self::read_arguments(&mut fields, faults);
        if let Some(judge) = fields.take(&["judge"], faults) {
            self.judge = read_judge(judge, faults);
        }
        fields.finish("`termination`", faults);
    }

    /// This, and where it is silent, the loop type it names.
    pub(super) fn or(self, mut other: Self) -> Self {
        // Arguments of a rule that this one replaces are not this one's.
        if !matches!(self.completion, Setting::Absent) {
            other.arguments = other.arguments.used_by(&self.completion);
        }
        Self {
            prompt: self.prompt.or(other.prompt),
            runs: self.runs.or(other.runs),
            min_iterations: self.min_iterations.or(other.min_iterations),
            completion: self.completion.or(other.completion),
            arguments: self.arguments.or(other.arguments),
            check_before: self.check_before.or(other.check_before),
            delay_ms: self.delay_ms.or(other.delay_ms),
            timeout_ms: self.timeout_ms.or(other.timeout_ms),
            agent: self.agent.or(other.agent),
            perspectives: self.perspectives.or(other.perspectives),
            items: self.items.or(other.items),
            parallel: self.parallel.or(other.parallel),
            output_parse: self.output_parse.or(other.output_parse),
            judge: self.judge.or(other.judge),
        }
    }
}

fn read_span(fields: &mut Fields<'_>, name: &'static str, off: Millis, faults: &mut Faults) -> Option<Millis> {
    let value = fields.take(&[name], faults)?;
    if value.is_off() { Some(off) } else { value.span(faults) }
}

/// A list, or words with blanks between them.
fn read_items(value: &Value<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    if let Yaml::Text(text) = &value.node.value {
        return Some(text.split_whitespace().map(str::to_owned).collect());
    }
    value.texts(faults)
}

fn read_parallel(value: &Value<'_>, faults: &mut Faults) -> Option<bool> {
    if matches!(value.node.value, Yaml::Map(_)) {
        let fix =
            "write one stage for each agent, with `parallel: true` and `runs` or `perspectives` for several at once";
        faults.error(&value.at, "parallel blocks of other stages are not supported", fix);
        return None;
    }
    value.truth(faults)
}

/// `key:MARKER key:MARKER`, a list of those, or a map.
fn read_markers(value: &Value<'_>, faults: &mut Faults) -> Option<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String, At)> = Vec::new();
    if let Yaml::Map(entries) = &value.node.value {
        for entry in entries {
            let marker = Value { key: &entry.key, node: &entry.node, at: value.at.line(entry.line) };
            pairs.extend(marker.text(faults).map(|text| (entry.key.clone(), text, marker.at.clone())));
        }
    } else if !value.is_off() {
        for part in value.nodes() {
            for word in part.text(faults)?.split_whitespace() {
                let Some((key, marker)) = word.split_once(':') else {
                    faults.error(&part.at, format!("`{word}` is not `key:MARKER`"), "write for example `risk:RISK`");
                    continue;
                };
                pairs.push((key.to_owned(), marker.to_owned(), part.at.clone()));
            }
        }
    }
    let plain =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    for (key, marker, at) in &pairs {
        if files::OWN_FIELDS.contains(&key.as_str()) {
            let what = format!("`{key}` is a field that every iteration has: the marker `{marker}` does not change it");
            faults.warning(at, what, "choose another name for the field");
        }
        if !plain(key) || !plain(marker) || key.len().max(marker.len()) > 64 {
            faults.error(
                at,
                format!("`{key}:{marker}` is not a field and its marker"),
                "use letters, digits, `_` and `-`",
            );
        }
    }
    Some(pairs.into_iter().map(|(key, marker, _)| (key, marker)).collect())
}

/// `judge: true` is the quick model of Claude; otherwise an agent like any other.
fn read_judge(value: Value<'_>, faults: &mut Faults) -> Setting<AgentDef> {
    if value.node.value == Yaml::Bool(true) {
        let model = Setting::On("haiku".to_owned());
        return Setting::On(AgentDef { kind: Some(AgentKind::default()), model, ..AgentDef::default() });
    }
    value.setting(|value| Some(AgentDef::of_value(&value, faults)))
}
