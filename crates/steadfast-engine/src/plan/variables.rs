//! Checks the variables of prompts before anything runs: `${INPUTS.name}` has to name an earlier stage, and an unknown
//! name is probably a typing mistake.

use steadfast_model::run::template::{self, Variables};

use super::fault::{Location, did_you_mean};
use super::stage::Prompt;

/// Checks a prompt. `stages` are the names before the stage, and its own with those after it; `None` for a loop alone.
pub(super) fn check(prompt: &Prompt, stages: Option<(&[&str], &[&str])>) {
    for name in template::render(&prompt.text, &Variables::default()).unknown {
        let at = prompt.location_of(&name);
        match (name.strip_prefix("INPUTS."), stages) {
            (Some(input), Some((earlier, others))) => check_input(input, earlier, others, &at),
            (Some(_), None) => {
                let what = format!("`${{{name}}}` has no value: a loop alone has no earlier stages");
                at.warning(what, "use this loop type in a pipeline, or remove it");
            }
            (None, _) => {
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
