//! Pipelines: stages one after the other, each with the prompt of a loop type or one of its own. `steps:`, `loops:` and
//! `nodes:` of other tools are read too; what has no counterpart here is refused with a fix. `plan/lanes.rs` makes stages
//! of the nodes.

use std::collections::BTreeMap;

use steadfast_model::clock::Millis;
use steadfast_model::limit::Axis;
use steadfast_model::run::name::RunName;
use steadfast_model::run::{AgentKind, ParallelInput, RunKind, StagePlan};

use super::agents::AgentDef;
use super::blocks::KnownBlock;
use super::catalogue::{Catalogue, DefinitionSource};
use super::fault::{Faults, Location, did_you_mean};
use super::input_files::input_patterns;
use super::inputs::{Inputs, inputs};
use super::keys::{Inherit as _, LocatedText, Setting, Value, duration, keys, located_text, text, timeout};
use super::lanes::{LastNode, StageNode, node};
use super::links;
use super::named::{Commands, commands};
use super::order::{self, OrderDef};
use super::planning::{LimitsDef, StageContext, limits, plan_stage};
use super::stage::{self, LoopDef, StageDef, StagePrompt};
use super::used::{UsedDefinition, UsedLoop, commands_of_definitions};
use super::yaml::{self, Yaml};
use super::{Overrides, PlanError};

const MAX_STAGES: usize = 100;

keys! {
    PipelineKeys {
        name: Option<String> = text("name"),
        description: Option<String> = text("description"),
        version: Option<String> = text("version"),
        inputs: Option<Vec<LocatedText>> = input_patterns("inputs"),
        commands: Commands = commands("commands"),
        context: Option<String> = text("context"),
        defaults: Setting<Defaults> = defaults("defaults"),
        limits: Setting<LimitsDef> = limits("limits"),
        stages: Option<StageList> = stages("stages" | "nodes" | "steps" | "loops"),
    }
}

keys! {
    /// What stages use if they and their loop types do not set it.
    Defaults {
        agent: AgentDef,
        timeout_ms: Option<Millis> = timeout("timeout"),
        delay_ms: Option<Millis> = duration("delay"),
    }
}

keys! {
    /// The keys of a stage.
    StageKeys {
        pipeline: Option<()> = nested_pipeline("pipeline"),
        name: Option<LocatedText> = located_text("name" | "id"),
        loop_type: Option<LocatedText> = located_text("loop" | "stage"),
        description: Option<String> = text("description"),
        inputs: Option<Inputs> = inputs("inputs"),
        order: OrderDef,
        def: StageDef,
    }
}

#[derive(Debug, Clone)]
pub(super) struct StageList {
    /// Whether it has no names and may repeat a loop type, as older tools write it.
    is_steps: bool,
    pub(super) nodes: Vec<(StageNode, Location)>,
}

fn defaults(value: &Value<'_>) -> Option<Defaults> {
    value.table("`defaults`")
}

fn nested_pipeline(value: &Value<'_>) -> Option<()> {
    let fix = "copy the stages of that pipeline to here, or run both, one after the other";
    value.at.refuse("a pipeline inside a pipeline is not supported", fix)
}

#[expect(clippy::unnecessary_wraps, reason = "all readers of a table return an option")]
fn stages(value: &Value<'_>) -> Option<StageList> {
    let count = if let Yaml::List(nodes) = &value.node.value { nodes.len() } else { 0 };
    let is_steps = matches!(value.key, "steps" | "loops");
    let mut nodes = Vec::new();
    match count {
        0 => no_stages(&value.at),
        1..=MAX_STAGES => {
            nodes.extend(value.elements().filter_map(|element| Some((node(&element)?, element.at))));
        }
        _ => value.at.error(format!("{count} stages"), format!("use at most {MAX_STAGES}")),
    }
    Some(StageList { is_steps, nodes })
}

fn no_stages(at: &Location) {
    let fix = "list them: `stages:` and under it `- name: plan` with `loop:` or `prompt:`";
    at.error("the pipeline has no stages", fix);
}

/// A pipeline with its loop types, before its run has a name.
#[derive(Debug)]
pub(super) struct PipelineDef {
    pub(super) title: Option<String>,
    pub(super) limits: LimitsDef,
    /// Files, directories and patterns of `inputs`.
    pub(super) inputs: Vec<LocatedText>,
    /// The agent of stages that set none.
    agent: AgentKind,
    stages: Vec<PipelineStage>,
    /// For each stage, the numbers of those that it needs.
    needs: Vec<Option<Vec<u32>>>,
    /// By the names that stages use.
    loops: BTreeMap<String, UsedLoop>,
}

#[derive(Debug)]
pub(super) struct PipelineStage {
    pub(super) at: Location,
    /// Empty after a fault.
    pub(super) name: String,
    pub(super) loop_type: Option<String>,
    pub(super) inputs: Inputs,
    pub(super) order: OrderDef,
    pub(super) def: StageDef,
    /// The lane that it works in, and what it gets of others.
    pub(super) lane: Option<String>,
    pub(super) parallel_inputs: Vec<ParallelInput>,
}

pub(super) fn read(source: &DefinitionSource, catalogue: &Catalogue, faults: &Faults) -> Option<PipelineDef> {
    let at = faults.file(&source.file);
    let node = yaml::open(&source.bytes, &at)?;
    let keys: PipelineKeys = Value::document(&node, &at).table("a pipeline")?;
    let Some(list) = keys.stages else {
        no_stages(&at);
        return None;
    };
    let Defaults { agent, timeout_ms, delay_ms } = keys.defaults.on().unwrap_or_default();
    let defaults = StageDef { agent, delay_ms, timeout_ms, ..StageDef::default() };
    // Unlike those, loop types come before what the pipeline says for all of its stages.
    let for_all = StageDef { commands: keys.commands, context: keys.context, ..StageDef::default() };
    let mut reader = StageReader {
        catalogue,
        faults,
        defaults,
        for_all,
        is_steps: list.is_steps,
        loops: BTreeMap::new(),
        names: Vec::new(),
        stages: Vec::new(),
        blocks: Vec::new(),
        last: LastNode::default(),
    };
    for (node, at) in list.nodes {
        reader.read_node(node, at);
    }
    let stages = reader.stages;
    if stages.len() > MAX_STAGES {
        let fix = format!("use at most {MAX_STAGES}; a block has one for each provider and stage");
        at.error(format!("{} stages", stages.len()), fix);
    }
    let needs = links::check(&stages);
    let agent = reader.defaults.agent.program();
    let loops = reader.loops.into_iter().filter_map(|(name, read)| Some((name, read?))).collect();
    let limits = keys.limits.on().unwrap_or_default();
    let inputs = keys.inputs.unwrap_or_default();
    Some(PipelineDef { title: keys.name, limits, inputs, agent, stages, needs, loops })
}

pub(super) struct StageReader<'a> {
    catalogue: &'a Catalogue,
    faults: &'a Faults,
    pub(super) defaults: StageDef,
    for_all: StageDef,
    is_steps: bool,
    /// Loop types read so far, so that the faults of each are reported once.
    loops: BTreeMap<String, Option<UsedLoop>>,
    names: Vec<String>,
    pub(super) stages: Vec<PipelineStage>,
    pub(super) blocks: Vec<KnownBlock>,
    pub(super) last: LastNode,
}

impl StageReader<'_> {
    pub(super) fn read(&mut self, keys: StageKeys, at: Location) -> PipelineStage {
        let def = keys.def.without_termination();
        if let Some(prompt) = &def.prompt {
            warn_of_file_name(prompt);
        }
        if keys.order.merge.is_some() {
            order::refuse_beside_merge(&def, &at);
        }
        let loop_type = keys.loop_type.as_ref().map(|(name, _)| name.clone());
        let name = self.name(keys.name, loop_type.clone(), &at);
        let base = keys.loop_type.map(|(name, at)| self.loop_def(&name, &at)).unwrap_or_default();
        let def = def.based_on(self.defaults.clone()).based_on(base).or(self.for_all.clone());
        let (name, inputs) = (name.unwrap_or_default(), keys.inputs.unwrap_or_default());
        let (lane, parallel_inputs) = (None, Vec::new());
        PipelineStage { at, name, loop_type, inputs, order: keys.order, def, lane, parallel_inputs }
    }

    pub(super) fn name(
        &mut self,
        given: Option<LocatedText>,
        loop_type: Option<String>,
        at: &Location,
    ) -> Option<String> {
        let is_given = given.is_some();
        let Some((mut name, at)) = given.or(loop_type.map(|name| (name, at.clone()))) else {
            return at.refuse("a stage has no name", "add `name:`");
        };
        if let Err(error) = name.parse::<RunName>() {
            let fix = slug(&name).map_or_else(|| error.hint().to_owned(), |slug| format!("write `name: {slug}`"));
            return at.refuse(format!("{error}; it becomes the name of a folder"), fix);
        }
        if self.names.contains(&name) {
            if self.is_steps && !is_given {
                let mut numbered = (2..=MAX_STAGES).map(|number| format!("{name}-{number}"));
                name = numbered.find(|free| !self.names.contains(free)).unwrap_or(name);
            } else {
                let fix = if is_given { "choose another name" } else { "add `name:` with another one" };
                at.error(format!("two stages are named `{name}`"), fix);
            }
        }
        self.names.push(name.clone());
        Some(name)
    }

    fn loop_def(&mut self, name: &str, at: &Location) -> StageDef {
        if !self.loops.contains_key(name) {
            let read = self.read_loop(name, at);
            self.loops.insert(name.to_owned(), read);
        }
        match self.loops.get(name) {
            Some(Some(known)) => known.def.clone(),
            // The fault of the loop type is reported; an empty prompt avoids a second one.
            _ => StageDef { prompt: Some(StagePrompt::of_file(at, String::new())), ..StageDef::default() },
        }
    }

    fn read_loop(&self, name: &str, at: &Location) -> Option<UsedLoop> {
        match self.catalogue.find_loop(name) {
            Ok(source) => {
                let LoopDef { stage: def, limits, .. } = stage::read_loop(&source, self.faults)?;
                let limits = limits.on().unwrap_or_default();
                match UsedDefinition::of(RunKind::Loop, &source, Some(&def), self.catalogue) {
                    Ok(used) => Some(UsedLoop { def, limits, used }),
                    Err(error) => at.unreadable(error),
                }
            }
            Err(PlanError::Io(error)) => at.unreadable(error),
            Err(PlanError::NoDefinitionNamed { known, .. }) => {
                let meant = did_you_mean(name, known.iter().map(String::as_str));
                let fix = format!(
                    "{meant}Put its folder, with loop.yaml or stage.yaml, into `.claude/loops/{name}`, or remove the \
                     stage. Known are {}",
                    known.join(", ")
                );
                at.refuse(format!("there is no loop type `{name}`"), fix)
            }
            Err(error) => at.refuse(error.to_string(), error.hint()),
        }
    }
}

/// In a stage `prompt` is the text itself; a single word that ends in `.md` was probably meant as a file.
fn warn_of_file_name(prompt: &StagePrompt) {
    let text = prompt.text.trim();
    let is_file = std::path::Path::new(text).extension().is_some_and(|end| end == "md");
    if is_file && !text.contains(char::is_whitespace) {
        let fix = "write the prompt itself, or make a loop type and name it with `loop:`";
        prompt.at.warning(format!("`{text}` is taken as the prompt, not as a file"), fix);
    }
}

/// The nearest name that can be a folder.
pub(super) fn slug(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_lowercase();
    let slug: String = slug.chars().take(64).collect();
    slug.parse::<RunName>().is_ok().then_some(slug)
}

impl PipelineDef {
    /// The program that `--model` means: that of stages that set none, or the first if all of them do.
    fn program_of_model(&self, flags: &Overrides) -> AgentKind {
        let usual = flags.agent.as_ref().unwrap_or(&self.agent);
        let programs = || self.stages.iter().flat_map(|stage| stage.def.programs());
        if programs().any(|program| program == *usual) {
            return usual.clone();
        }
        programs().next().unwrap_or_default()
    }

    /// The stages, and the definitions they were made of: `own`, then the loop types.
    pub(super) fn plan(
        mut self,
        run: &str,
        flags: &Overrides,
        mut own: UsedDefinition,
    ) -> (Vec<StagePlan>, Vec<UsedDefinition>) {
        let last = self.stages.len();
        let of_model = self.program_of_model(flags);
        let mut plans = Vec::new();
        for ((number, stage), needs) in (1..).zip(self.stages).zip(self.needs) {
            let of_loop = stage.loop_type.as_ref().and_then(|name| self.loops.get_mut(name));
            let context = StageContext {
                kind: RunKind::Pipeline,
                run,
                inputs: stage.input_names(),
                name: stage.name,
                loop_type: stage.loop_type,
                model_of: flags.agent.is_none().then(|| of_model.clone()),
                verified: number == last,
                merges: stage.order.merge.is_some(),
                at: stage.at,
            };
            let mut plan = plan_stage(stage.def, context, flags);
            plan.latest_inputs = stage.inputs.latest;
            plan.initial_inputs = stage.inputs.initial;
            (plan.lane, plan.parallel_inputs) = (stage.lane, stage.parallel_inputs);
            let guard = plan.limits.get(Axis::Hours);
            let limits = of_loop.as_ref().map(|of_loop| of_loop.limits.clone()).unwrap_or_default();
            stage.order.complete(&mut plan, needs, limits);
            plan.limits.set(Axis::Hours, plan.limits.get(Axis::Hours).or(guard));
            plan.runs = plan.runs.min(flags.max.unwrap_or(u32::MAX));
            let commands = commands_of_definitions(&plan, flags);
            own.add_commands(match of_loop {
                Some(of_loop) => of_loop.take_commands(commands),
                None => commands,
            });
            plans.push(plan);
        }
        let loops = self.loops.into_values().map(|read| read.used);
        (plans, std::iter::once(own).chain(loops).collect())
    }
}
