//! Parallel blocks of other tools: `parallel: {providers, stages}`. Each provider does all stages of the block, one after
//! the other in a lane of its own; the lanes run at the same time, and the next node waits for all of them. A block
//! becomes plain stages named `BLOCK-PROVIDER-STAGE`.

use std::collections::BTreeMap;

use steadfast_model::run::name::RunName;
use steadfast_model::run::{ParallelInput, Then};

use super::agents::{AgentDef, agent_kind};
use super::fault::{Location, did_you_mean};
use super::inputs::{Inputs, inputs, names};
use super::keys::{LocatedText, Setting, Value, keys, located_text, text};
use super::order::needs;
use super::pipeline::{StageKeys, slug};
use super::yaml::Yaml;

const MAX_PROVIDERS: usize = 16;

keys! {
    /// A node with `parallel: {…}`.
    BlockKeys {
        name: Option<LocatedText> = located_text("name" | "id"),
        description: Option<String> = text("description"),
        inputs: Option<Inputs> = inputs("inputs"),
        needs: Option<Vec<LocatedText>> = needs("needs"),
        parts: Option<BlockParts> = block_parts("parallel"),
    }
}

keys! {
    BlockParts {
        providers: Option<Vec<Provider>> = providers("providers" | "agents"),
        stages: Option<Vec<(StageKeys, Location)>> = stages("stages" | "nodes"),
        on_fail: Option<Then> = failure_mode("failure_mode"),
    }
}

/// One of the agents of a block.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) agent: AgentDef,
    pub(super) inputs: Option<Inputs>,
}

keys! {
    ProviderKeys {
        name: Option<LocatedText> = located_text("name"),
        inputs: Option<Inputs> = inputs("inputs"),
        agent: AgentDef,
    }
}

pub(super) fn is_block(node: &Value<'_>) -> bool {
    let Yaml::Map(entries) = &node.node.value else { return false };
    entries.iter().any(|entry| entry.key == "parallel" && matches!(entry.node.value, Yaml::Map(_)))
}

fn block_parts(value: &Value<'_>) -> Option<BlockParts> {
    value.table("a parallel block")
}

fn stages(value: &Value<'_>) -> Option<Vec<(StageKeys, Location)>> {
    let mut stages = Vec::new();
    for element in value.elements() {
        if is_block(&element) {
            element.at.error("a parallel block cannot be inside of another", "move it out, to the `nodes` above");
        } else {
            stages.extend(element.table("a stage").map(|keys: StageKeys| (keys, element.at)));
        }
    }
    Some(stages).filter(|stages| !stages.is_empty())
}

fn failure_mode(value: &Value<'_>) -> Option<Then> {
    match text(value)?.as_str() {
        "fail" | "fail_fast" | "all" | "stop" => Some(Then::Stop),
        "continue" | "best_effort" => Some(Then::Continue),
        other => {
            let known = ["fail_fast", "continue", "best_effort"];
            let fix = format!("{}Known are {}", did_you_mean(other, known), known.join(", "));
            value.at.refuse(format!("there is no `failure_mode: {other}`"), fix)
        }
    }
}

fn providers(value: &Value<'_>) -> Option<Vec<Provider>> {
    let mut providers: Vec<Provider> = Vec::new();
    for element in value.elements() {
        let Some(provider) = provider(&element) else { continue };
        if providers.iter().any(|other| other.name == provider.name) {
            let fix = "give one of them another `name`, and its program as `agent`";
            element.at.error(format!("two providers are named `{}`", provider.name), fix);
        } else {
            providers.push(provider);
        }
    }
    if providers.len() > MAX_PROVIDERS {
        value.at.error(format!("{} providers", providers.len()), format!("use at most {MAX_PROVIDERS}"));
    }
    Some(providers).filter(|providers| !providers.is_empty())
}

/// `claude`, or `{name: claude, model: opus}`; with `agent` the name is only a name.
fn provider(value: &Value<'_>) -> Option<Provider> {
    let ProviderKeys { name, inputs, mut agent } = if value.is_map() {
        value.table("a provider")?
    } else {
        ProviderKeys { name: located_text(value), ..ProviderKeys::default() }
    };
    let Some((name, at)) = name else {
        return value.at.refuse("a provider has no name", "write `name: claude` or `name: codex`");
    };
    if agent.kind.is_none() {
        agent.kind = Some(agent_kind(&name).map_err(|(what, fix)| at.error(what, fix)).ok()?);
    }
    let name = Some(name.clone()).filter(|name| name.parse::<RunName>().is_ok()).or_else(|| slug(&name));
    let name = name.or_else(|| at.refuse("the provider's name cannot be that of a folder", "add `name:`"))?;
    Some(Provider { name, agent, inputs })
}

/// `from_parallel`, before the blocks are known.
#[derive(Debug, Clone)]
pub(super) struct ParallelDef {
    at: Location,
    stage: Option<LocatedText>,
    block: Option<LocatedText>,
    providers: Option<Vec<LocatedText>>,
    history: bool,
}

keys! {
    ParallelKeys {
        stage: Option<LocatedText> = located_text("stage"),
        block: Option<LocatedText> = located_text("block"),
        providers: Option<Vec<LocatedText>> = names("providers"),
        is_history: Setting<bool> = history("select"),
    }
}

/// A name, a mapping, or a list of these.
pub(super) fn parallel_inputs(value: &Value<'_>) -> Option<Vec<ParallelDef>> {
    if value.is_off() {
        return None;
    }
    let read = |element: Value<'_>| {
        let keys = if element.is_map() {
            element.table("`from_parallel`")?
        } else {
            ParallelKeys { stage: Some(located_text(&element)?), ..ParallelKeys::default() }
        };
        let ParallelKeys { stage, block, providers, is_history } = keys;
        Some(ParallelDef { at: element.at, stage, block, providers, history: is_history.on().unwrap_or(false) })
    };
    Some(value.elements().filter_map(read).collect())
}

fn history(value: &Value<'_>) -> Option<bool> {
    match text(value)?.as_str() {
        "latest" => Some(false),
        "history" | "all" => Some(true),
        other => {
            let fix = "write `select: latest` or `select: history`";
            value.at.refuse(format!("there is no `select: {other}`"), fix)
        }
    }
}

/// The names of a block: those that `from_parallel` can use in the nodes after it.
#[derive(Debug, Clone)]
pub(crate) struct KnownBlock {
    pub(crate) name: String,
    pub(crate) providers: Vec<String>,
    pub(crate) stages: Vec<String>,
}

impl KnownBlock {
    pub(super) fn of(name: String, providers: &[Provider], stages: &[(StageKeys, Location)]) -> Self {
        let short_name = |(keys, _): &(StageKeys, Location)| {
            keys.name.as_ref().or(keys.loop_type.as_ref()).map(|(name, _)| name.clone())
        };
        Self {
            name,
            providers: providers.iter().map(|provider| provider.name.clone()).collect(),
            stages: stages.iter().filter_map(short_name).collect(),
        }
    }

    pub(super) fn lane(&self, provider: &str) -> String {
        format!("{}-{provider}", self.name)
    }

    /// The name that a stage of a lane has in the plan.
    pub(crate) fn stage(&self, provider: &str, stage: &str) -> String {
        format!("{}-{stage}", self.lane(provider))
    }

    /// The names of its last stages, one for each lane.
    pub(super) fn ends(&self) -> Vec<String> {
        let Some(last) = self.stages.last() else { return Vec::new() };
        self.providers.iter().map(|provider| self.stage(provider, last)).collect()
    }
}

impl ParallelDef {
    /// Which stages of the plan it means.
    pub(super) fn resolve(&self, blocks: &[KnownBlock]) -> Option<ParallelInput> {
        if blocks.is_empty() {
            let fix = "use `from:` for the outputs of plain stages";
            return self.at.refuse("no parallel block comes before this stage", fix);
        }
        let is_wanted = |block: &&KnownBlock| match (&self.block, &self.stage) {
            (Some((name, _)), _) => block.name == *name,
            (None, Some((stage, _))) => block.stages.contains(stage) || block.name == *stage,
            (None, None) => true,
        };
        let found: Vec<&KnownBlock> = blocks.iter().filter(is_wanted).collect();
        let [block] = found.as_slice() else {
            let what = match (&self.block, &self.stage) {
                (Some((name, _)), _) => format!("there is no parallel block `{name}` before this stage"),
                (None, Some((stage, _))) if found.is_empty() => {
                    format!("no parallel block before this stage has a stage `{stage}`")
                }
                _ => "several parallel blocks come before this stage".to_owned(),
            };
            let known: Vec<String> =
                blocks.iter().map(|block| format!("`{}` ({})", block.name, block.stages.join(", "))).collect();
            return self.at.refuse(what, format!("name the block and its stage. Blocks are {}", known.join("; ")));
        };
        // A block stands for its last stage.
        let named = self.stage.as_ref().filter(|(stage, _)| *stage != block.name || block.stages.contains(stage));
        let stage = match named {
            Some((stage, at)) if !block.stages.contains(stage) => {
                let fix = format!("its stages are {}", block.stages.join(", "));
                return at.refuse(format!("the block `{}` has no stage `{stage}`", block.name), fix);
            }
            Some((stage, _)) => stage.clone(),
            None => block.stages.last()?.clone(),
        };
        let mut lanes = BTreeMap::new();
        for provider in &block.providers {
            let is_chosen = |chosen: &[LocatedText]| chosen.iter().any(|(name, _)| name == provider);
            if self.providers.as_deref().is_none_or(is_chosen) {
                lanes.insert(provider.clone(), block.stage(provider, &stage));
            }
        }
        for (name, at) in self.providers.iter().flatten().filter(|(name, _)| !block.providers.contains(name)) {
            let fix = format!("its providers are {}", block.providers.join(", "));
            at.error(format!("the block `{}` has no provider `{name}`", block.name), fix);
        }
        Some(ParallelInput { block: block.name.clone(), stage, history: self.history, lanes })
    }
}
