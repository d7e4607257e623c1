//! What a prompt gets: `inputs:` of a stage, which names the earlier stages that `${INPUTS}` and the context file show,
//! and a check of its variables before anything runs.

use std::collections::BTreeMap;

use steadfast_model::run::template::{self, Variables};

use super::blocks::{ParallelDef, parallel_inputs};
use super::fault::{Location, did_you_mean};
use super::keys::{LocatedText, Setting, Value, keys, located_text, text, truth};
use super::stage::StagePrompt;

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

/// Checks the variables of a prompt. `stages` are the names before the stage, and its own with those after it; `None`
/// for a loop alone.
pub(super) fn check_variables(
    prompt: &StagePrompt,
    stages: Option<(&[&str], &[&str])>,
    commands: &BTreeMap<String, String>,
) {
    for name in template::render(&prompt.text, &Variables::default()).unknown {
        let at = prompt.location_of(&name);
        match (name.split_once('.'), stages) {
            (Some(("INPUTS", input)), Some((earlier, others))) => check_input(input, earlier, others, &at),
            (Some(("INPUTS", _)), None) => {
                let what = format!("`${{{name}}}` has no value: a loop alone has no earlier stages");
                at.warning(what, "use this loop type in a pipeline, or remove it");
            }
            (Some(("COMMANDS", command)), _) if commands.contains_key(command) => {}
            (Some(("COMMANDS", command)), _) => {
                let meant = did_you_mean(command, commands.keys().map(String::as_str));
                let fix = format!("{meant}Add it: `commands: {{{command}: \"make {command}\"}}`");
                at.warning(format!("there is no command `{command}`: `${{{name}}}` stays as it is"), fix);
            }
            _ => {
                let meant = did_you_mean(&name, template::NAMES);
                let fix = format!("{meant}Write `$${{{name}}}` if it is meant to stay as it is");
                at.warning(format!("there is no variable `${{{name}}}`: it stays as it is"), fix);
            }
        }
    }
}

pub(super) fn check_input(input: &str, earlier: &[&str], others: &[&str], at: &Location) {
    if earlier.contains(&input) {
        return;
    }
    let what = match others {
        [own, ..] if *own == input => format!("the stage `{input}` cannot be its own input"),
        others if others.contains(&input) => format!("the stage `{input}` comes later: it has no output yet"),
        _ => format!("there is no stage `{input}`"),
    };
    let fix = if earlier.is_empty() {
        "remove it: the first stage has no inputs".to_owned()
    } else {
        format!("{}Earlier stages are {}", did_you_mean(input, earlier.iter().copied()), earlier.join(", "))
    };
    at.error(what, fix);
}
