//! What the stages of a pipeline say of each other: needs, inputs, conditions, merges and artifacts. A stage uses only
//! what is over when it starts: the stages that it needs, directly or not.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_model::run::StageGraph;
use steadfast_model::run::inputs::names_inputs;

use super::fault::{Location, did_you_mean};
use super::inputs::{PromptScope, check_variables};
use super::pipeline::PipelineStage;

/// Checks all stages, and returns for each the numbers of those that it needs.
pub(super) fn check(stages: &[PipelineStage]) -> Vec<Option<Vec<u32>>> {
    let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let needs: Vec<Option<Vec<u32>>> = stages.iter().map(|stage| needs_of(stage, &names)).collect();
    let graph = StageGraph::new(needs.clone());
    if let Some(cycle) = graph.cycle() {
        refuse_cycle(&cycle, stages);
        return needs;
    }
    let artifacts = artifacts(stages);
    let has_needs = needs.iter().any(Option::is_some);
    for (own, stage) in (1..).zip(stages) {
        let reach = Reach { names: &names, own, before: graph.before(own), has_needs };
        check_stage(stage, stages, &reach, &artifacts);
    }
    needs
}

fn needs_of(stage: &PipelineStage, names: &[&str]) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for (need, at) in stage.order.needs.as_ref()? {
        match (1..).zip(names).find(|(_, name)| **name == need.as_str()) {
            _ if *need == stage.name => at.error(format!("the stage `{need}` cannot need itself"), "remove it"),
            Some((number, _)) if numbers.contains(&number) => {}
            Some((number, _)) => numbers.push(number),
            None => {
                let others: Vec<&str> = names.iter().copied().filter(|name| *name != stage.name).collect();
                let fix = format!("{}Other stages are {}", did_you_mean(need, others.iter().copied()), list(&others));
                at.error(format!("there is no stage `{need}`"), fix);
            }
        }
    }
    Some(numbers)
}

fn list(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    shown.join(", ")
}

fn refuse_cycle(cycle: &[u32], stages: &[PipelineStage]) {
    let stage = |number: &u32| usize::try_from(*number).ok().and_then(|number| stages.get(number.checked_sub(1)?));
    let in_cycle = || cycle.iter().filter_map(stage);
    let names: Vec<&str> = in_cycle().chain(in_cycle().take(1)).map(|stage| stage.name.as_str()).collect();
    let stated = in_cycle().find_map(|stage| stage.order.needs.as_ref()?.first().map(|(_, at)| at));
    if let Some(at) = stated.or_else(|| in_cycle().next().map(|stage| &stage.at)) {
        let what = format!("the stages wait for each other: {}", names.join(" needs "));
        at.error(what, "remove one of these needs; a stage without `needs` needs the one before it");
    }
}

/// Which stage makes which artifact.
fn artifacts(stages: &[PipelineStage]) -> BTreeMap<&str, u32> {
    let mut made: BTreeMap<&str, u32> = BTreeMap::new();
    for (number, stage) in (1..).zip(stages) {
        // Two stages of the same loop type make the same artifacts; the line of the second one is the stage's own.
        for (name, _, at) in stage.def.artifacts.iter().flatten() {
            if made.insert(name, number).is_some() {
                let at = if stage.loop_type.is_some() { &stage.at } else { at };
                at.error(format!("two artifacts are named `{name}`"), "choose another name");
            }
        }
    }
    made
}

fn check_stage(stage: &PipelineStage, stages: &[PipelineStage], reach: &Reach<'_>, artifacts: &BTreeMap<&str, u32>) {
    let mut has_inputs = false;
    for (input, at) in stage.inputs.names.iter().flatten() {
        has_inputs = reach.check(input, "be its own input", at);
    }
    for lane in stage.parallel_inputs.iter().flat_map(|input| input.lanes.values()) {
        reach.check(lane, "be its own input", &stage.at);
    }
    let matrix = stage.def.matrix.as_deref();
    if let Some(prompt) = &stage.def.prompt {
        let axes = matrix.and_then(<[_]>::first).into_iter().flatten().map(|(axis, _)| axis.as_str()).collect();
        let merges = stage.order.merge.is_some();
        check_variables(
            prompt,
            &PromptScope { reach: Some(reach), axes, artifacts, commands: &stage.def.commands, merges },
        );
        if let Some((_, at)) = stage.inputs.names.iter().flatten().next()
            && has_inputs
            && !prompt.text.is_empty()
            && !names_inputs(&prompt.text)
        {
            at.note(
                "the prompt does not name its inputs: they are added at its end",
                "write `${INPUTS}` where they belong",
            );
        }
    }
    if let Some((condition, at)) = &stage.order.when {
        for name in condition.stages() {
            reach.check(name, "depend on itself", at);
        }
        for (name, field) in condition.fields() {
            let of = stages.iter().find(|other| other.name == name);
            let known: Vec<&str> = of
                .into_iter()
                .flat_map(|of| of.def.output_parse.iter().flatten())
                .map(|(key, _)| key.as_str())
                .collect();
            if of.is_some() && !known.contains(&field) {
                let meant = did_you_mean(field, known.iter().copied());
                let fix = format!("{meant}Add it to `output_parse` of `{name}`: `output_parse: {field}:MARKER`");
                at.error(format!("the stage `{name}` has no field `{field}`"), fix);
            }
        }
    }
    let Some(merge) = &stage.order.merge else { return };
    if let Some((from, at)) = &merge.from
        && reach.check(from, "merge itself", at)
        && !stages.iter().any(|other| other.name == *from && other.def.is_parallel())
    {
        let fix = "name a stage with `parallel: true`, `matrix` or `agents`";
        at.error(format!("the stage `{from}` is not parallel: it has no branches to merge"), fix);
    }
    if let Some((chosen_by, at)) = &merge.chosen_by {
        reach.check(chosen_by, "choose for itself", at);
    }
}

/// What a stage can use of the others.
pub(super) struct Reach<'a> {
    names: &'a [&'a str],
    /// Its own number.
    pub(super) own: u32,
    pub(super) before: BTreeSet<u32>,
    /// Whether any stage of the pipeline has `needs`.
    has_needs: bool,
}

impl<'a> Reach<'a> {
    pub(super) fn name(&self, number: u32) -> &'a str {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.names.get(index)).copied().unwrap_or_default()
    }

    /// Whether a stage is over when this one starts; a fault if not. `itself` is what a stage cannot do to itself.
    pub(super) fn check(&self, name: &str, itself: &str, at: &Location) -> bool {
        let number = (1..).zip(self.names).find(|(_, known)| **known == name).map(|(number, _)| number);
        if number.is_some_and(|number| self.before.contains(&number)) {
            return true;
        }
        let known: Vec<&str> = self.before.iter().map(|number| self.name(*number)).filter(|n| !n.is_empty()).collect();
        let earlier = if self.has_needs { "It needs" } else { "Earlier stages are" };
        let fix = || {
            if known.is_empty() && self.has_needs {
                return "remove it: this stage needs no other stage".to_owned();
            }
            if known.is_empty() {
                return "remove it: the first stage has no inputs".to_owned();
            }
            format!("{}{earlier} {}", did_you_mean(name, known.iter().copied()), known.join(", "))
        };
        match number {
            Some(number) if number == self.own => at.error(format!("the stage `{name}` cannot {itself}"), fix()),
            Some(_) if self.has_needs => {
                let what = format!("the stage `{}` does not need `{name}`: it may not be over", self.name(self.own));
                at.error(what, "add it to `needs`");
            }
            Some(_) => at.error(format!("the stage `{name}` comes later: it has no output yet"), fix()),
            None => at.error(format!("there is no stage `{name}`"), fix()),
        }
        false
    }
}
