//! What a stage gets of others: whose outputs `${INPUTS}` shows, and where inputs go that no variable of the prompt names.

use std::borrow::Cow;

use super::{Plan, template};

/// Variables that bring inputs into a prompt; `CTX` is a file that lists them.
const INPUTS: [&str; 2] = ["INPUTS", "CTX"];

/// What is added to a prompt that does not name its inputs.
const ADDED: &str = "\n\nInputs:\n\n${INPUTS}\n";

impl Plan {
    /// The names of the stages whose outputs `${INPUTS}` shows: those of `inputs`, else those that the stage needs.
    pub fn inputs_of(&self, stage: u32) -> Vec<String> {
        let named = self.stage(stage).map(|plan| plan.inputs.clone()).filter(|inputs| !inputs.is_empty());
        let needed = || {
            let needs = self.needs_of(stage);
            needs.iter().filter_map(|need| Some(self.stage(*need)?.name.clone())).collect()
        };
        named.unwrap_or_else(needed)
    }

    /// Whether `${INPUTS}` shows the inputs of the run: in stages that wait for no other, and where a stage asks for it.
    pub fn shows_initial_inputs(&self, stage: u32) -> bool {
        self.stage(stage).is_some_and(|plan| plan.initial_inputs) || self.needs_of(stage).is_empty()
    }

    /// Whether the stage was given inputs on purpose: by `inputs`, or by those of the run.
    pub fn has_inputs(&self, stage: u32, initial: &str) -> bool {
        let named = self.stage(stage).is_some_and(|plan| !plan.inputs.is_empty());
        named || (self.shows_initial_inputs(stage) && !initial.trim().is_empty())
    }
}

/// Whether a template has a variable that brings inputs into the prompt.
pub fn names_inputs(prompt: &str) -> bool {
    template::uses(prompt, |name| INPUTS.contains(&name) || name.starts_with("INPUTS."))
}

/// The template of a stage, with `${INPUTS}` at its end if the stage has inputs that no variable names.
pub fn with_inputs_appended(prompt: &str, has_inputs: bool) -> Cow<'_, str> {
    if has_inputs && !names_inputs(prompt) { format!("{}{ADDED}", prompt.trim_end()).into() } else { prompt.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Rule, RunKind, RunLimits, RunPurpose, StagePlan};

    #[test]
    fn inputs_that_no_variable_names_are_added_at_the_end() {
        for named in ["a ${INPUTS} b", "${INPUTS.plan}", "jq . ${CTX}"] {
            assert_eq!(with_inputs_appended(named, true), named);
        }
        for silent in ["Do it.\n", "$${INPUTS}", "${ITEM} $INPUTS"] {
            let text = with_inputs_appended(silent, true);
            assert_eq!(text, format!("{}\n\nInputs:\n\n${{INPUTS}}\n", silent.trim_end()));
            assert_eq!(with_inputs_appended(silent, false), silent);
        }
    }

    #[test]
    fn a_stage_without_inputs_gets_those_of_the_stages_it_needs() {
        let stage = |name: &str, needs: Option<Vec<u32>>, inputs: &[&str]| StagePlan {
            needs,
            inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
            ..StagePlan::new(name, Rule::FixedN, 1)
        };
        let plan = Plan {
            name: "p".into(),
            kind: RunKind::Pipeline,
            title: "p".into(),
            pipeline_file: None,
            stages: vec![
                stage("a", None, &[]),
                stage("b", None, &[]),
                stage("c", Some(vec![]), &[]),
                stage("d", Some(vec![1, 3]), &[]),
                stage("e", Some(vec![2]), &["a"]),
            ],
            limits: RunLimits::default(),
            purpose: RunPurpose::Definition,
        };
        let shown: Vec<Vec<String>> = (1..=5).map(|number| plan.inputs_of(number)).collect();
        assert_eq!(shown, [vec![], vec!["a"], vec![], vec!["a", "c"], vec!["a"]]);
        let initial: Vec<bool> = (1..=5).map(|number| plan.shows_initial_inputs(number)).collect();
        assert_eq!(initial, [true, false, true, false, false]);
        let has: Vec<bool> = (1..=5).map(|number| plan.has_inputs(number, "x")).collect();
        assert_eq!(has, [true, false, true, false, true]);
    }
}
