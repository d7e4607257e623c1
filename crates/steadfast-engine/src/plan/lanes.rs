//! Nodes of a pipeline become its stages: a plain one stays what it is, and a parallel block becomes one lane of stages
//! for each provider. Names of inputs become names of stages, and `needs` says what the stages around a block wait for.

use std::collections::BTreeMap;

use steadfast_model::run::Then;

use super::blocks::{self, BlockKeys, KnownBlock, Provider};
use super::fault::{Faults, Location};
use super::keys::{Inherit as _, LocatedText, Value};
use super::pipeline::{PipelineKeys, PipelineStage, StageKeys, StageReader};
use super::yaml;

#[derive(Debug, Clone)]
pub(super) enum StageNode {
    Stage(Box<StageKeys>),
    Block(Box<BlockKeys>),
}

pub(super) fn node(value: &Value<'_>) -> Option<StageNode> {
    if blocks::is_block(value) {
        return value.table("a parallel block").map(|block| StageNode::Block(Box::new(block)));
    }
    value.table("a stage").map(|stage| StageNode::Stage(Box::new(stage)))
}

/// The names of the parallel blocks of a pipeline, by the position of their nodes. Faults are reported when it is planned.
pub(crate) fn blocks_of(text: &str) -> BTreeMap<usize, KnownBlock> {
    let at = Faults::default().file("");
    let node = yaml::open(text.as_bytes(), &at);
    let keys: Option<PipelineKeys> = node.and_then(|node| Value::document(&node, &at).table("a pipeline"));
    let nodes = keys.and_then(|keys| keys.stages).map(|list| list.nodes).unwrap_or_default();
    let block = |(index, (node, _)): (usize, (StageNode, Location))| match node {
        StageNode::Block(keys) => {
            let (parts, (name, _)) = (keys.parts?, keys.name?);
            Some((index, KnownBlock::of(name, &parts.providers?, &parts.stages?)))
        }
        StageNode::Stage(_) => None,
    };
    nodes.into_iter().enumerate().filter_map(block).collect()
}

/// What the next node comes after.
#[derive(Debug, Default)]
pub(super) struct LastNode {
    is_block: bool,
    /// The names of its last stages.
    ends: Vec<String>,
}

/// A lane while its stages are read.
struct Lane<'a> {
    name: String,
    provider: &'a Provider,
    on_fail: Option<Then>,
}

impl StageReader<'_> {
    pub(super) fn read_node(&mut self, node: StageNode, at: Location) {
        match node {
            StageNode::Stage(keys) => self.read_stage(*keys, at),
            StageNode::Block(keys) => self.read_block(*keys, &at),
        }
    }

    fn read_stage(&mut self, mut keys: StageKeys, at: Location) {
        if self.last.is_block {
            wait_for(&mut keys, &self.last.ends, &at);
        }
        let ends = vec![self.add_stage(keys, at, None)];
        self.last = LastNode { is_block: false, ends };
    }

    fn read_block(&mut self, keys: BlockKeys, at: &Location) {
        let Some(name) = self.name(keys.name, None, at) else { return };
        let Some(parts) = keys.parts else { return };
        let (Some(providers), Some(stages)) = (parts.providers, parts.stages) else {
            let fix = "write `parallel: {providers: [claude, codex], stages: [{id: review, stage: review}]}`";
            return at.error(format!("the parallel block `{name}` needs providers and stages"), fix);
        };
        let block = KnownBlock::of(name, &providers, &stages);
        let before = std::mem::take(&mut self.last).ends;
        let mut ends = Vec::new();
        for provider in &providers {
            let lane = Lane { name: block.lane(&provider.name), provider, on_fail: parts.on_fail };
            let mut after = before.clone();
            for (number, (stage, at)) in stages.iter().enumerate() {
                let mut stage = stage.clone();
                stage.inputs = stage.inputs.or_else(|| keys.inputs.clone());
                if number == 0 {
                    stage.order.needs = stage.order.needs.or_else(|| keys.needs.clone());
                }
                wait_for(&mut stage, &after, at);
                after = vec![self.add_stage(stage, at.clone(), Some(&lane))];
            }
            ends.extend(after);
        }
        self.last = LastNode { is_block: true, ends };
        self.blocks.push(block);
    }

    /// Adds a stage and returns its name.
    fn add_stage(&mut self, mut keys: StageKeys, at: Location, lane: Option<&Lane<'_>>) -> String {
        if let Some(lane) = lane {
            self.enter_lane(&mut keys, lane, &at);
        }
        let mut stage = self.read(keys, at);
        stage.lane = lane.map(|lane| lane.name.clone());
        stage.parallel_inputs = stage.inputs.parallel.iter().filter_map(|it| it.resolve(&self.blocks)).collect();
        stage.inputs.names = stage.inputs.names.map(|names| self.in_plan(names, lane));
        stage.order.needs = stage.order.needs.map(|names| self.in_plan(names, lane));
        let name = stage.name.clone();
        self.stages.push(stage);
        name
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
        keys.order.on_fail = keys.order.on_fail.or(lane.on_fail);
        keys.def.agent = lane.provider.agent.clone().or(self.defaults.agent.clone());
        let name = keys.name.take().or_else(|| keys.loop_type.clone());
        keys.name = name.map(|(name, at)| (format!("{}-{name}", lane.name), at));
        let Some(given) = &lane.provider.inputs else { return };
        let inputs = keys.inputs.get_or_insert_with(|| given.clone());
        if inputs.parallel.is_empty() {
            inputs.parallel.clone_from(&given.parallel);
        }
    }

    /// Replaces the names of blocks and of stages in them by those of the plan.
    fn in_plan(&self, names: Vec<LocatedText>, lane: Option<&Lane<'_>>) -> Vec<LocatedText> {
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
        names.into_iter().flat_map(in_plan).collect()
    }
}

/// Lets a stage wait for these, unless it says itself what it needs.
fn wait_for(keys: &mut StageKeys, stages: &[String], at: &Location) {
    let named = || stages.iter().map(|name| (name.clone(), at.clone())).collect();
    keys.order.needs.get_or_insert_with(named);
}

impl PipelineStage {
    /// The stages whose outputs it gets; empty for those that it needs.
    pub(super) fn input_names(&self) -> Vec<String> {
        let lanes = self.parallel_inputs.iter().flat_map(|input| input.lanes.values().cloned());
        let mut names: Vec<String> = self.inputs.names.iter().flatten().map(|(name, _)| name.clone()).collect();
        for lane in lanes {
            if !names.contains(&lane) {
                names.push(lane);
            }
        }
        names
    }
}
