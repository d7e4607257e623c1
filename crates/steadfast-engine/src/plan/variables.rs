//! The variables of prompts, checked before anything runs: `${INPUTS.name}` has to name an earlier stage, and a name
//! that nobody knows is probably a typing mistake.

use steadfast_model::run::template;
use steadfast_model::run::template::Variables;

use super::fault::{At, Faults, did_you_mean};
use super::stage::Prompt;

const KNOWN: [&str; 14] = [
    "SESSION",
    "SESSION_NAME",
    "ITERATION",
    "INDEX",
    "PERSPECTIVE",
    "OUTPUT",
    "PROGRESS",
    "PROGRESS_FILE",
    "INPUTS",
    "ITEM",
    "CURRENT_ITEM",
    "RESULT",
    "OBJECTIVE",
    "INPUTS.",
];

/// Checks a prompt. `stages` are the names before the stage, and its own with those after it; `None` for a loop alone.
pub(super) fn check(prompt: &Prompt, stages: Option<(&[&str], &[&str])>, faults: &mut Faults) {
    for name in template::render(&prompt.text, &Variables::default()).unknown {
        let at = prompt.place_of(&name);
        match (name.strip_prefix("INPUTS."), stages) {
            (Some(input), Some((earlier, others))) => check_input(input, earlier, others, &at, faults),
            (Some(_), None) => {
                let what = format!("`${{{name}}}` has no value: a loop alone has no earlier stages");
                faults.warning(&at, what, "use this loop type in a pipeline, or remove it");
            }
            (None, _) => {
                let meant = did_you_mean(&name, KNOWN.iter().copied().filter(|known| !known.ends_with('.')));
                let fix = format!("{meant}Write `$${{{name}}}` if it is meant to stay as it is");
                faults.warning(&at, format!("there is no variable `${{{name}}}`: it stays as it is"), fix);
            }
        }
    }
}

pub(super) fn check_input(input: &str, earlier: &[&str], others: &[&str], at: &At, faults: &mut Faults) {
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
    faults.error(at, what, fix);
}
