//! Nodes of a pipeline become its stages: a plain one stays what it is, and a parallel block becomes one lane of stages
//! for each provider. Names of inputs become names of stages, and `needs` says what the stages around a block wait for.

use steadfast_model::run::{ParallelInput, Then};

use super::blocks::{BlockKeys, KnownBlock, Provider};
use super::fault::Location;
use super::inputs::Inputs;
use super::keys::{Inherit as _, LocatedText};
use super::pipeline::{PipelineStage, StageKeys, StageReader};

/// Where a stage is among the others.
#[derive(Debug, Clone, Default)]
pub(super) struct StagePlace {
    pub(super) lane: Option<String>,
    /// The stages that it waits for, from 1; `None` for the one before.
    pub(super) needs: Option<Vec<u32>>,
    pub(super) on_fail: Option<Then>,
    /// The stages whose outputs it gets if it names none; empty for the one before.
    pub(super) inputs: Vec<String>,
    pub(super) parallel_inputs: Vec<ParallelInput>,
}

/// What the next node comes after.
#[derive(Debug, Default)]
pub(super) struct LastNode {
    is_block: bool,
    /// Its last stages, from 1, and their names.
    numbers: Vec<u32>,
    names: Vec<String>,
}

/// A lane while its stages are read.
struct Lane<'a> {
    name: String,
    provider: &'a Provider,
    on_fail: Option<Then>,
}

impl StageReader<'_> {
    pub(super) fn read_stage(&mut self, keys: StageKeys, at: Location) {
        let place = StagePlace {
            needs: self.last.is_block.then(|| self.last.numbers.clone()),
            inputs: if self.last.is_block { self.last.names.clone() } else { Vec::new() },
            ..StagePlace::default()
        };
        let number = self.add_stage(keys, at, None, place);
        let names = self.stages.last().map(|stage| stage.name.clone()).into_iter().collect();
        self.last = LastNode { is_block: false, numbers: vec![number], names };
    }

    pub(super) fn read_block(&mut self, keys: BlockKeys, at: &Location) {
        let Some(name) = self.name(keys.name, None, at) else { return };
        let Some(parts) = keys.parts else { return };
        let (Some(providers), Some(stages)) = (parts.providers, parts.stages) else {
            let fix = "write `parallel: {providers: [claude, codex], stages: [{id: review, stage: review}]}`";
            return at.error(format!("the parallel block `{name}` needs providers and stages"), fix);
        };
        let short_name = |(keys, _): &(StageKeys, Location)| {
            keys.name.as_ref().or(keys.loop_type.as_ref()).map(|(name, _)| name.clone())
        };
        let block = KnownBlock {
            name,
            providers: providers.iter().map(|provider| provider.name.clone()).collect(),
            stages: stages.iter().filter_map(short_name).collect(),
        };
        let before = std::mem::take(&mut self.last);
        let mut last = LastNode { is_block: true, ..LastNode::default() };
        for provider in &providers {
            let lane = Lane { name: block.lane(&provider.name), provider, on_fail: parts.on_fail };
            let (mut numbers, mut names) = (before.numbers.clone(), before.names.clone());
            for (stage, at) in &stages {
                let place = StagePlace { needs: Some(numbers), inputs: names, ..StagePlace::default() };
                let mut stage = stage.clone();
                stage.inputs = stage.inputs.or_else(|| keys.inputs.clone());
                numbers = vec![self.add_stage(stage, at.clone(), Some(&lane), place)];
                names = self.stages.last().map(|stage| stage.name.clone()).into_iter().collect();
            }
            last.numbers.extend(numbers);
            last.names.extend(names);
        }
        self.last = last;
        self.blocks.push(block);
    }

    /// Adds a stage and returns its number.
    fn add_stage(&mut self, mut keys: StageKeys, at: Location, lane: Option<&Lane<'_>>, mut place: StagePlace) -> u32 {
        if let Some(lane) = lane {
            self.enter_lane(&mut keys, lane, &at);
            place.lane = Some(lane.name.clone());
            place.on_fail = lane.on_fail;
        }
        let inputs = keys.inputs.take().unwrap_or_default();
        let mut stage = self.read(keys, at);
        place.parallel_inputs = inputs.parallel.iter().filter_map(|input| input.resolve(&self.blocks)).collect();
        stage.inputs = self.with_plan_names(inputs, lane);
        stage.place = place;
        self.stages.push(stage);
        u32::try_from(self.stages.len()).unwrap_or(u32::MAX)
    }

    /// Gives a stage the name and the agent of its lane.
    fn enter_lane(&self, keys: &mut StageKeys, lane: &Lane<'_>, at: &Location) {
        let agent = &keys.def.agent;
        if agent.kind.is_some() || !agent.model.is_absent() {
            let fix = "remove it here, or write it in `providers`: `{name: codex, model: MODEL}`";
            at.error("a stage in a parallel block cannot have an agent or model of its own", fix);
        }
        if keys.def.parallel == Some(true) {
            at.error("a stage in a parallel block cannot be parallel itself", "remove `parallel`");
        }
        keys.def.agent = lane.provider.agent.clone().or(self.defaults.agent.clone());
        let name = keys.name.take().or_else(|| keys.loop_type.clone());
        keys.name = name.map(|(name, at)| (format!("{}-{name}", lane.name), at));
        let Some(given) = &lane.provider.inputs else { return };
        let inputs = keys.inputs.get_or_insert_with(|| Inputs { names: given.names.clone(), ..given.clone() });
        if inputs.parallel.is_empty() {
            inputs.parallel.clone_from(&given.parallel);
        }
    }

    /// Replaces the names of a block and of its stages by those of the plan.
    fn with_plan_names(&self, mut inputs: Inputs, lane: Option<&Lane<'_>>) -> Inputs {
        let in_plan = |(name, at): LocatedText| -> Vec<LocatedText> {
            let in_lane = lane.map(|lane| format!("{}-{name}", lane.name));
            if let Some(in_lane) = in_lane.filter(|in_lane| self.stages.iter().any(|stage| stage.name == *in_lane)) {
                return vec![(in_lane, at)];
            }
            match self.blocks.iter().find(|block| block.name == name) {
                Some(block) => block.ends().into_iter().map(|end| (end, at.clone())).collect(),
                None => vec![(name, at)],
            }
        };
        inputs.names = inputs.names.map(|names| names.into_iter().flat_map(in_plan).collect());
        inputs
    }
}

impl PipelineStage {
    /// The stages whose outputs it gets; empty for the one before.
    pub(super) fn input_names(&self) -> Vec<String> {
        let place = &self.place;
        let lanes = place.parallel_inputs.iter().flat_map(|input| input.lanes.values().cloned());
        let mut names: Vec<String> = match &self.inputs.names {
            Some(names) => names.iter().map(|(name, _)| name.clone()).collect(),
            None if place.parallel_inputs.is_empty() => place.inputs.clone(),
            None => Vec::new(),
        };
        for lane in lanes {
            if !names.contains(&lane) {
                names.push(lane);
            }
        }
        names
    }
}
