//! Pipelines: stages one after the other, each with a loop type's prompt or one of its own. The older `steps:` and
//! `loops:` and the newer `nodes:` are understood; what they can and we cannot is refused with a way out.

use std::collections::BTreeMap;

use steadfast_core::run::name::RunName;
use steadfast_core::run::{AgentKind, RunKind, StagePlan};

use super::agents::AgentDef;
use super::catalogue::{Catalogue, Source};
use super::fault::{At, Faults, did_you_mean};
use super::fields::{Fields, Setting, Value};
use super::inputs::{Inputs, read_inputs};
use super::limits::LimitsDef;
use super::loop_type;
use super::planning::{DefaultRuns, StageContext, plan_stage};
use super::stage::{Prompt, StageDef};
use super::used::{Used, UsedLoop, commands_of_definitions};
use super::variables;
use super::yaml::{self, Yaml};
use super::{Overrides, PlanError};

const LISTS: [&str; 4] = ["stages", "nodes", "steps", "loops"];
const MOST_STAGES: usize = 100;

/// A pipeline, read and checked as far as that goes without its run's name.
#[derive(Debug)]
pub(super) struct PipelineDef {
    pub(super) title: Option<String>,
    pub(super) limits: LimitsDef,
    /// Who works where a stage does not say.
    agent: AgentKind,
    stages: Vec<Stage>,
    /// By the names that stages call them.
    loops: BTreeMap<String, UsedLoop>,
}

#[derive(Debug)]
struct Stage {
    at: At,
    name: String,
    loop_type: Option<String>,
    inputs: Inputs,
    def: StageDef,
}

pub(super) fn read(source: &Source, catalogue: &Catalogue, faults: &mut Faults) -> Option<PipelineDef> {
    let at = At::new(&source.file, 1);
    let node = yaml::open(&source.bytes, &at, faults)?;
    let mut fields = Fields::of(&node, &at, "a pipeline", faults)?;
    let title = fields.text(&["name"], faults);
    fields.text(&["description"], faults);
    for name in ["version", "commands", "inputs", "context"] {
        if let Some(value) = fields.take(&[name], faults)
            && name != "version"
        {
            let files = value.nodes().filter_map(|part| match &part.node.value {
                Yaml::Text(file) if name == "inputs" => Some(format!("--input {file}")),
                _ => None,
            });
            let files: Vec<String> = files.take(5).collect();
            let fix = if files.is_empty() {
                "remove it".to_owned()
            } else {
                format!("remove it, and run the pipeline with `{}`", files.join(" "))
            };
            faults.warning(&value.at, format!("`{name}` of a pipeline has no effect"), fix);
        }
    }
    let defaults = match fields.take(&["defaults"], faults) {
        Some(value) if !value.is_off() => read_defaults(&value, faults),
        _ => StageDef::default(),
    };
    let limits = LimitsDef::read(&mut fields, faults);
    let list = fields.take(&LISTS, faults);
    fields.finish("a pipeline", faults);
    let nodes = match &list {
        Some(Value { node: yaml::Node { value: Yaml::List(nodes), .. }, .. }) if !nodes.is_empty() => nodes,
        _ => {
            let at = list.as_ref().map_or(&at, |list| &list.at);
            let fix = "list them: `stages:` and under it `- name: plan` with `loop:` or `prompt:`";
            faults.error(at, "the pipeline has no stages", fix);
            return None;
        }
    };
    if nodes.len() > MOST_STAGES {
        faults.error(&at, format!("{} stages", nodes.len()), format!("use at most {MOST_STAGES}"));
        return None;
    }
    let of_steps = list.as_ref().is_some_and(|list| list.key == "steps" || list.key == "loops");
    let mut reader = StageReader { catalogue, defaults, of_steps, read: BTreeMap::new(), names: Vec::new() };
    let stages = nodes.iter().filter_map(|node| reader.read(node, &at, faults)).collect();
    let loops = reader.read.into_iter().filter_map(|(name, read)| Some((name, read?))).collect();
    let agent = reader.defaults.agent.kind.unwrap_or_default();
    let def = PipelineDef { title, limits, agent, stages, loops };
    def.check_inputs(faults);
    Some(def)
}

fn read_defaults(value: &Value<'_>, faults: &mut Faults) -> StageDef {
    let Some(mut fields) = Fields::of(value.node, &value.at, "`defaults`", faults) else { return StageDef::default() };
    let agent = AgentDef::read(&mut fields, faults);
    let span = |value: Option<Value<'_>>, faults: &mut Faults| value.and_then(|value| value.span(faults));
    let timeout = fields.take(&["timeout"], faults);
    let timeout_ms = span(timeout, faults);
    let delay = fields.take(&["delay"], faults);
    let delay_ms = span(delay, faults);
    fields.finish("`defaults`", faults);
    StageDef { delay_ms, timeout_ms, agent, ..StageDef::default() }
}

struct StageReader<'a> {
    catalogue: &'a Catalogue,
    defaults: StageDef,
    of_steps: bool,
    /// Loop types that were read before: each is read once, and its faults are told once.
    read: BTreeMap<String, Option<UsedLoop>>,
    names: Vec<String>,
}

impl StageReader<'_> {
    fn read(&mut self, node: &yaml::Node, at: &At, faults: &mut Faults) -> Option<Stage> {
        let mut fields = Fields::of(node, at, "a stage", faults)?;
        let at = fields.at.clone();
        if let Some(nested) = fields.take(&["pipeline"], faults) {
            let fix = "copy the stages of that pipeline to here";
            faults.error(&nested.at, "a pipeline inside a pipeline is not supported", fix);
        }
        let name = fields.take(&["name", "id"], faults);
        let loop_type = fields.take(&["loop", "stage"], faults);
        fields.text(&["description"], faults);
        let prompt = fields.take(&["prompt"], faults);
        let inputs = fields.take(&["inputs"], faults).and_then(|value| read_inputs(&value, faults)).unwrap_or_default();
        let mut def = StageDef::read(&mut fields, faults);
        fields.finish("a stage", faults);
        def.prompt = prompt.map_or(Setting::Absent, |value| read_inline(&value, faults));
        let loop_name = loop_type.as_ref().and_then(|value| value.text(faults));
        let name = self.name(name.as_ref(), loop_name.as_deref(), &at, faults);
        let base = match (&loop_name, &loop_type) {
            (Some(loop_name), Some(value)) => self.loop_def(loop_name, &value.at, faults),
            _ => Some(StageDef::default()),
        };
        // A loop type that cannot be read has been told; its missing prompt need not be.
        let base = base.unwrap_or_else(|| StageDef { prompt: Setting::Off, ..StageDef::default() });
        let def = def.or(self.defaults.clone()).or(base);
        Some(Stage { at, name: name?, loop_type: loop_name, inputs, def })
    }

    fn name(
        &mut self,
        value: Option<&Value<'_>>,
        loop_name: Option<&str>,
        at: &At,
        faults: &mut Faults,
    ) -> Option<String> {
        let given = value.and_then(|value| value.text(faults));
        let at = value.map_or(at, |value| &value.at);
        let Some(mut name) = given.clone().or_else(|| loop_name.map(str::to_owned)) else {
            faults.error(at, "a stage has no name", "add `name:`");
            return None;
        };
        if let Err(error) = name.parse::<RunName>() {
            let fix = slug(&name).map_or_else(|| error.hint().to_owned(), |slug| format!("write `name: {slug}`"));
            faults.error(at, format!("{error}; it becomes the name of a folder"), fix);
            return None;
        }
        if self.names.contains(&name) {
            // Old files had no names; the same loop twice was normal there.
            if given.is_none() && self.of_steps {
                let number =
                    (2..=MOST_STAGES).find(|number| !self.names.contains(&format!("{name}-{number}"))).unwrap_or(2);
                name = format!("{name}-{number}");
            } else {
                let fix = if given.is_some() { "choose another name" } else { "add `name:` with another one" };
                faults.error(at, format!("two stages are named `{name}`"), fix);
            }
        }
        self.names.push(name.clone());
        Some(name)
    }

    fn loop_def(&mut self, name: &str, at: &At, faults: &mut Faults) -> Option<StageDef> {
        if let Some(known) = self.read.get(name) {
            return known.as_ref().map(|known| known.def.clone());
        }
        let read = match self.catalogue.find_loop(name) {
            Ok(source) => loop_type::read(&source, faults)
                .map(|def| UsedLoop { def: def.stage, used: Used::of(RunKind::Loop, &source, self.catalogue) }),
            Err(PlanError::NoLoopType { known, .. }) => {
                let meant = did_you_mean(name, known.iter().map(String::as_str));
                let fix = format!("{meant}Known are {}", known.join(", "));
                faults.error(at, format!("there is no loop type `{name}`"), fix);
                None
            }
            Err(error) => {
                faults.error(at, error.to_string(), error.hint());
                None
            }
        };
        let def = read.as_ref().map(|read| read.def.clone());
        self.read.insert(name.to_owned(), read);
        def
    }
}

/// The prompt of a stage is written where the stage is.
fn read_inline(value: &Value<'_>, faults: &mut Faults) -> Setting<Prompt> {
    if value.is_off() {
        return Setting::Absent;
    }
    let Yaml::Text(text) = &value.node.value else {
        faults.error(&value.at, "the prompt has to be a text", "write `prompt: |` and the text below it, indented");
        return Setting::Off;
    };
    if text.trim().is_empty() {
        faults.error(&value.at, "the prompt is empty", "say what the agent is to do");
        return Setting::Off;
    }
    let is_file = std::path::Path::new(text.trim()).extension().is_some_and(|end| end == "md");
    if is_file && !text.trim().contains(char::is_whitespace) {
        let fix = "write the prompt itself, or make a loop type and name it with `loop:`";
        faults.warning(&value.at, format!("`{}` is taken as the prompt, not as a file", text.trim()), fix);
    }
    Setting::On(Prompt::inside(value, text.clone()))
}

/// A name for a folder made of what somebody wrote.
fn slug(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_lowercase();
    let slug: String = slug.chars().take(64).collect();
    slug.parse::<RunName>().is_ok().then_some(slug)
}

impl PipelineDef {
    /// Every input has to be an earlier stage.
    fn check_inputs(&self, faults: &mut Faults) {
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        for (number, stage) in self.stages.iter().enumerate() {
            let (earlier, others) = names.split_at(number);
            for (input, at) in stage.inputs.names.iter().flatten() {
                variables::check_input(input, earlier, others, at, faults);
            }
            if let Some(prompt) = stage.def.prompt.as_on() {
                variables::check(prompt, Some((earlier, others)), faults);
            }
        }
    }

    /// The program that `--model` means: the one that works where a stage does not say, or the first if all of them do.
    fn program_of_model(&self, flags: &Overrides) -> AgentKind {
        let usual = flags.agent.as_ref().unwrap_or(&self.agent);
        let programs = || self.stages.iter().map(|stage| stage.def.agent.program());
        if programs().any(|program| program == *usual) {
            return usual.clone();
        }
        programs().next().unwrap_or_default()
    }

    /// Its stages, and what they were made of: `own`, then the loop types.
    pub(super) fn plan(
        mut self,
        run: &str,
        flags: &Overrides,
        mut own: Used,
        faults: &mut Faults,
    ) -> (Vec<StagePlan>, Vec<Used>) {
        let last = self.stages.len();
        let of_model = self.program_of_model(flags);
        let mut plans = Vec::new();
        for (number, stage) in (1..).zip(self.stages) {
            let of_loop = stage.loop_type.as_ref().and_then(|name| self.loops.get_mut(name));
            let context = StageContext {
                run,
                name: stage.name,
                loop_type: stage.loop_type,
                inputs: stage.inputs.names.iter().flatten().map(|(input, _)| input.clone()).collect(),
                default_runs: DefaultRuns::Exactly(1),
                takes_model: flags.agent.is_some() || stage.def.agent.program() == of_model,
                verified: number == last,
                at: stage.at,
            };
            let mut plan = plan_stage(stage.def, context, flags, faults);
            plan.latest_inputs = stage.inputs.latest;
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
