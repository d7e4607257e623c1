//! What a prompt gets: `inputs:` of a stage, which names the earlier stages that `${INPUTS}` and the context file show,
//! and a check of its variables before anything runs.

use std::collections::BTreeMap;

use steadfast_model::run::template::{self, Variables};

use super::blocks::{ParallelDef, parallel_inputs};
use super::fault::{Location, did_you_mean};
use super::keys::{LocatedText, Setting, Value, keys, located_text, text, truth};
use super::links::Reach;
use super::named::Commands;
use super::stage::StagePrompt;

/// The variables of a stage that merges.
const MERGE: [&str; 2] = ["MERGE_BRANCH", "MERGE_CONFLICTS"];

#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    /// `None` for the stage before.
    pub(super) names: Option<Vec<LocatedText>>,
    /// Show only the last output of each.
    pub(super) latest: bool,
    /// Show the inputs of the run too.
    pub(super) initial: bool,
    /// Outputs of parallel blocks.
    pub(super) parallel: Vec<ParallelDef>,
}

keys! {
    /// The mapping that newer tools write.
    InputsMap {
        from: Option<Vec<LocatedText>> = names("from"),
        is_latest: Setting<bool> = select("select"),
        from_initial: Option<bool> = truth("from_initial"),
        from_parallel: Option<Vec<ParallelDef>> = parallel_inputs("from_parallel"),
        // The context file always lists them.
        from_previous_iterations: Option<bool> = truth("from_previous_iterations"),
    }
}

pub(super) fn inputs(value: &Value<'_>) -> Option<Inputs> {
    if value.is_off() {
        return None;
    }
    if value.is_map() {
        let InputsMap { from, is_latest, from_initial, from_parallel, .. } = value.table("`inputs`")?;
        return Some(Inputs {
            names: from,
            latest: is_latest.on().unwrap_or(true),
            initial: from_initial.unwrap_or(false),
            parallel: from_parallel.unwrap_or_default(),
        });
    }
    Some(Inputs { names: names(value), ..Inputs::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "all readers of a table return an option")]
pub(super) fn names(value: &Value<'_>) -> Option<Vec<LocatedText>> {
    Some(value.elements().filter_map(|element| located_text(&element)).collect())
}

fn select(value: &Value<'_>) -> Option<bool> {
    match text(value)?.as_str() {
        "latest" => Some(true),
        "all" => Some(false),
        other => {
            let fix = format!("{}Write `select: latest` or `select: all`", did_you_mean(other, ["latest", "all"]));
            value.at.refuse(format!("there is no `select: {other}`"), fix)
        }
    }
}

/// What the variables of a prompt can name.
pub(super) struct PromptScope<'a> {
    /// `None` for a loop alone.
    pub(super) reach: Option<&'a Reach<'a>>,
    /// The axes of its matrix.
    pub(super) axes: Vec<&'a str>,
    /// All artifacts, with the numbers of their stages.
    pub(super) artifacts: &'a BTreeMap<&'a str, u32>,
    pub(super) commands: &'a Commands,
    pub(super) merges: bool,
}

/// Checks the variables of a prompt.
pub(super) fn check_variables(prompt: &StagePrompt, scope: &PromptScope<'_>) {
    for name in template::render(&prompt.text, &Variables::default()).unknown {
        let at = prompt.location_of(&name);
        match (name.split_once('.').unwrap_or((&name, "")), scope.reach) {
            (("INPUTS", input), Some(reach)) => {
                reach.check(input, "be its own input", &at);
            }
            (("INPUTS", _), None) => {
                let what = format!("`${{{name}}}` has no value: a loop alone has no earlier stages");
                at.warning(what, "use this loop type in a pipeline, or remove it");
            }
            (("COMMANDS", command), _) => scope.check_command(command, &at),
            (("MATRIX", axis), _) => scope.check_axis(axis, &at),
            (("ARTIFACTS", artifact), _) => scope.check_artifact(artifact, &at),
            ((_, ""), _) if MERGE.contains(&name.as_str()) => scope.check_merge(&name, &at),
            _ => {
                let meant = did_you_mean(&name, template::names());
                let fix = format!("{meant}Write `$${{{name}}}` if it is meant to stay as it is");
                at.warning(format!("there is no variable `${{{name}}}`: it stays as it is"), fix);
            }
        }
    }
}

impl PromptScope<'_> {
    fn check_axis(&self, axis: &str, at: &Location) {
        if self.axes.contains(&axis) {
            return;
        }
        let fix = if self.axes.is_empty() {
            format!("add `matrix: {{{axis}: [one, two]}}`")
        } else {
            format!("{}Its axes are {}", did_you_mean(axis, self.axes.iter().copied()), self.axes.join(", "))
        };
        at.error(format!("the matrix of the stage has no axis `{axis}`"), fix);
    }

    fn check_command(&self, command: &str, at: &Location) {
        if !self.commands.0.contains_key(command) {
            let meant = did_you_mean(command, self.commands.0.keys().map(String::as_str));
            let fix = format!("{meant}Add it: `commands: {{{command}: \"make {command}\"}}`");
            at.error(format!("there is no command `{command}`"), fix);
        }
    }

    fn check_artifact(&self, artifact: &str, at: &Location) {
        let Some(made_by) = self.artifacts.get(artifact) else {
            let known: Vec<&str> = self.artifacts.keys().copied().collect();
            let fix = if known.is_empty() {
                format!("add `artifacts: {{{artifact}: PATH}}` to the stage that makes it")
            } else {
                format!("{}Known are {}", did_you_mean(artifact, known.iter().copied()), known.join(", "))
            };
            return at.error(format!("there is no artifact `{artifact}`"), fix);
        };
        let Some(reach) = self.reach.filter(|reach| *made_by != reach.own) else {
            let what = format!("the artifact `{artifact}` is made by this stage: there is no copy of it yet");
            return at.error(what, "write its path instead");
        };
        if !reach.before.contains(made_by) {
            let (maker, own) = (reach.name(*made_by), reach.name(reach.own));
            let what = format!("`{artifact}` is made by the stage `{maker}`, which `{own}` does not need");
            at.error(what, format!("add `{maker}` to `needs`"));
        }
    }

    fn check_merge(&self, name: &str, at: &Location) {
        if !self.merges {
            at.error(format!("`${{{name}}}` has a value only in a stage with `merge`"), "remove it");
        }
    }
}
