//! Loop types, and the keys of a stage. Loop types and stages of pipelines have the same ones; a stage that names a loop
//! type sets only what differs. `plan/planning.rs` adds the defaults.

use steadfast_model::clock::Millis;
use steadfast_model::run::{AgentKind, EnvVariable};

use super::agents::{AgentDef, agent, agents};
use super::catalogue::{DefinitionSource, PromptFault};
use super::fault::{Faults, Location};
use super::keys::{
    Inherit as _, LocatedText, Setting, Value, count, count_or_zero, duration, keys, located_text, text, texts,
    timeout, truth,
};
use super::named::{Artifacts, Cell, Commands, artifacts, commands, env, matrix};
use super::order::retries;
use super::planning::{LimitsDef, limits};
use super::rules::{Arguments, RuleDef, rule_def};
use super::yaml::{self, Yaml};
use crate::files;

keys! {
    StageDef {
        /// In a loop type, a file or the text itself; in a pipeline, the text.
        prompt: Option<StagePrompt> = prompt("prompt"),
        agent: AgentDef,
        agents: Option<Vec<AgentDef>> = agents("agents"),
        runs: Option<Runs> = runs("runs" | "max" | "max_iterations" | "iterations"),
        termination: Option<Termination> = termination("termination"),
        min_iterations: Option<u32> = count_or_zero("min_iterations"),
        completion: Setting<RuleDef> = rule_def("completion"),
        arguments: Arguments,
        check_before: Option<bool> = truth("check_before"),
        delay_ms: Option<Millis> = duration("delay"),
        timeout_ms: Option<Millis> = timeout("timeout"),
        perspectives: Option<Vec<String>> = texts("perspectives"),
        items: Option<Vec<String>> = items("items"),
        parallel: Option<bool> = parallel("parallel"),
        matrix: Option<Vec<Cell>> = matrix("matrix"),
        retries: Option<u32> = retries("retries"),
        env: Option<Vec<EnvVariable>> = env("env"),
        artifacts: Option<Artifacts> = artifacts("artifacts"),
        output_parse: Option<Markers> = markers("output_parse"),
        judge: Setting<AgentDef> = judge("judge"),
        context: Option<String> = text("context"),
        commands: Commands = commands("commands"),
        guardrails: Option<Guardrails> = guardrails("guardrails"),
        output_path: Option<LocatedText> = located_text("output_path"),
        version: Option<String> = text("version"),
    }
}

keys! {
    /// `termination: {type: …}`, which newer tools write instead of `completion` and `runs`.
    Termination {
        rule: Option<RuleDef> = rule_def("type"),
        max: Option<u32> = count("max" | "iterations"),
        min_iterations: Option<u32> = count_or_zero("min_iterations"),
        arguments: Arguments,
        judge: Setting<AgentDef> = judge("judge"),
    }
}

keys! {
    Guardrails {
        max_runtime_ms: Option<Millis> = duration("max_runtime_seconds" | "max_runtime"),
    }
}

fn guardrails(value: &Value<'_>) -> Option<Guardrails> {
    value.table("`guardrails`")
}

/// Fields of the state file, and the markers of their lines in the output.
pub(super) type Markers = Vec<(String, String)>;

#[derive(Debug, Clone)]
pub(super) enum Runs {
    Count(u32),
    Termination(Box<Termination>),
}

impl StageDef {
    /// Moves what `termination` sets to the keys that mean the same.
    pub(super) fn without_termination(mut self) -> Self {
        let (runs, in_runs) = match self.runs {
            Some(Runs::Termination(termination)) => (None, Some(*termination)),
            runs => (runs, None),
        };
        self.runs = runs;
        for old in [in_runs, self.termination.take()].into_iter().flatten() {
            if let (Some(rule), Some(_)) = (self.completion.as_on(), &old.rule) {
                rule.at.error("`completion` and `termination` are the same key", "remove one of them");
            }
            self.completion = self.completion.or(old.rule.into());
            self.runs = self.runs.or(old.max.map(Runs::Count));
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

    /// The programs that work in it.
    pub(super) fn programs(&self) -> Vec<AgentKind> {
        match &self.agents {
            Some(agents) => agents.iter().map(|agent| agent.clone().or(self.agent.clone()).program()).collect(),
            None => vec![self.agent.program()],
        }
    }

    /// Whether all iterations run at once: where several agents or combinations stand side by side, unless it says no.
    pub(super) fn is_parallel(&self) -> bool {
        self.parallel.unwrap_or(self.agents.is_some() || self.matrix.is_some())
    }

    /// Every command that the definition names.
    pub(super) fn commands(&self) -> Vec<String> {
        let mut commands = self.completion.as_on().map(RuleDef::commands).unwrap_or_default();
        commands.extend(self.arguments.command.as_on().map(|(command, _)| command.clone()));
        commands.extend(self.arguments.verify.as_on().into_iter().flatten().cloned());
        commands.extend(self.agent.command());
        commands.extend(self.agents.iter().flatten().filter_map(AgentDef::command));
        commands.extend(self.judge.as_on().and_then(AgentDef::command));
        commands
    }
}

#[derive(Debug, Clone)]
pub(super) struct StagePrompt {
    /// Empty after a fault.
    pub(super) text: String,
    /// The line of its key, or the first line of its file.
    pub(super) at: Location,
    /// In a definition: the text as it stands there, and its first line.
    written: Option<(String, u32)>,
}

impl StagePrompt {
    pub(super) fn of_file(at: &Location, text: String) -> Self {
        Self { text, at: at.clone(), written: None }
    }

    /// Its file and text, if it was read from a file of its own.
    pub(super) fn in_file(&self) -> Option<(&str, &str)> {
        let is_file = self.written.is_none() && !self.text.is_empty();
        is_file.then(|| (self.at.file_name(), self.text.as_str()))
    }

    pub(super) fn refuse_empty(at: &Location) {
        at.error("the prompt is empty", "write what the agent should do");
    }

    pub(super) fn location_of(&self, name: &str) -> Location {
        let (text, first) = self.written.as_ref().map_or((&self.text, 1), |(text, line)| (text, *line));
        let variable = format!("${{{name}}}");
        let mut found = text.match_indices(&variable).filter_map(|(at, _)| text.get(..at));
        // `$${NAME}` is not a variable.
        let before = found.find(|before| !before.ends_with('$')).unwrap_or_default();
        self.at.line(first.saturating_add(u32::try_from(before.matches('\n').count()).unwrap_or(0)))
    }
}

fn prompt(value: &Value<'_>) -> Option<StagePrompt> {
    if value.is_off() {
        return None;
    }
    let Yaml::Text(text) = &value.node.value else {
        value.at.error("the prompt has to be a text", "write `prompt: |` and the text below it, indented");
        return Some(StagePrompt::of_file(&value.at, String::new()));
    };
    if text.trim().is_empty() {
        StagePrompt::refuse_empty(&value.at);
    }
    let written = Some((value.node.written.clone(), value.node.written_line));
    Some(StagePrompt { text: text.clone(), at: value.at.clone(), written })
}

fn termination(value: &Value<'_>) -> Option<Termination> {
    value.table("`termination`")
}

fn runs(value: &Value<'_>) -> Option<Runs> {
    if value.is_map() {
        return termination(value).map(|termination| Runs::Termination(Box::new(termination)));
    }
    count(value).map(Runs::Count)
}

/// A list, or words separated by spaces.
fn items(value: &Value<'_>) -> Option<Vec<String>> {
    match &value.node.value {
        Yaml::Text(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
        _ => texts(value),
    }
}

fn parallel(value: &Value<'_>) -> Option<bool> {
    if value.is_map() {
        let fix = "write it as a node of a pipeline, or `agents: [claude, codex]` for several agents at once";
        return value.at.refuse("a loop type cannot have a parallel block", fix);
    }
    truth(value)
}

/// An agent; `true` is the small model of Claude.
fn judge(value: &Value<'_>) -> Option<AgentDef> {
    if value.node.value == Yaml::Bool(true) {
        let model = Setting::On("haiku".to_owned());
        return Some(AgentDef { kind: Some(AgentKind::default()), model, ..AgentDef::default() });
    }
    agent(value)
}

/// `key:MARKER key:MARKER`, a list of those, or a mapping.
fn markers(value: &Value<'_>) -> Option<Markers> {
    let mut pairs = Vec::new();
    if let Yaml::Map(entries) = &value.node.value {
        for entry in entries {
            let marker = Value::of_entry(entry, &value.at);
            pairs.extend(text(&marker).map(|text| (entry.key.clone(), text, marker.at)));
        }
    } else if !value.is_off() {
        for part in value.elements() {
            for word in text(&part)?.split_whitespace() {
                match word.split_once(':') {
                    Some((key, marker)) => pairs.push((key.to_owned(), marker.to_owned(), part.at.clone())),
                    None => part.at.error(format!("`{word}` is not `key:MARKER`"), "write for example `risk:RISK`"),
                }
            }
        }
    }
    let is_plain = |text: &str| {
        (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
    };
    for (key, marker, at) in &pairs {
        if files::OWN_FIELDS.contains(&key.as_str()) {
            let what = format!("`{key}` is a field that every iteration has: the marker `{marker}` does not change it");
            at.warning(what, "choose another name for the field");
        }
        if !is_plain(key) || !is_plain(marker) {
            at.error(format!("`{key}:{marker}` is not a field and its marker"), "use letters, digits, `_` and `-`");
        }
    }
    Some(pairs.into_iter().map(|(key, marker, _)| (key, marker)).collect())
}

keys! {
    LoopDef {
        name: Option<LocatedText> = located_text("name" | "id"),
        description: Option<String> = text("description"),
        limits: Setting<LimitsDef> = limits("limits"),
        stage: StageDef,
    }
}

/// Reads a loop type with its prompt.
pub(super) fn read_loop(source: &DefinitionSource, faults: &Faults) -> Option<LoopDef> {
    let at = faults.file(&source.file);
    let node = yaml::open(&source.bytes, &at)?;
    let mut def: LoopDef = Value::document(&node, &at).table("a loop type")?;
    if let Some((name, at)) = def.name.as_ref().filter(|(name, _)| *name != source.name) {
        let what = format!("the name is `{name}`, but the folder is `{}`: the folder counts", source.name);
        at.warning(what, format!("write `name: {}`", source.name));
    }
    def.stage = def.stage.without_termination();
    def.stage.prompt = Some(read_prompt(def.stage.prompt.as_ref(), source, &at, faults));
    Some(def)
}

/// `prompt:` names a file beside `loop.yaml`; a text of several lines is the prompt itself.
fn read_prompt(stated: Option<&StagePrompt>, source: &DefinitionSource, at: &Location, faults: &Faults) -> StagePrompt {
    let name = match stated {
        Some(prompt) if prompt.text.trim().is_empty() || prompt.text.trim().contains('\n') => return prompt.clone(),
        Some(prompt) => Some(prompt.text.as_str()),
        None => None,
    };
    match source.prompts.read(name) {
        Ok((text, file)) => {
            let file = at.file(&file);
            if text.trim().is_empty() {
                StagePrompt::refuse_empty(&file);
            }
            StagePrompt::of_file(&file, text)
        }
        Err(error) => {
            match error {
                PromptFault::Wrong { what, fix } => stated.map_or(at, |prompt| &prompt.at).error(what, fix),
                PromptFault::Io(error) => faults.unreadable(error),
            }
            StagePrompt::of_file(at, String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let prompt = prompt(&Value::of_entry(entry, &at)).unwrap();
            assert_eq!(prompt.location_of(name).line, line, "{key} {name}");
        }
    }
}
