//! From definitions to plans. Loop types and pipelines are YAML with prompts. `plan/catalogue.rs` finds them, the key
//! tables in `plan/stage.rs` and `plan/pipeline.rs` read them, and all faults of a definition are reported together, each with file, line and fix. Flags of the command line replace what definitions set.

use std::path::{Path, PathBuf};

use steadfast_model::clock::{self, Millis};
use steadfast_model::limit::Limits;
use steadfast_model::run::name::{NameError, RunName};
use steadfast_model::run::{AgentKind, Plan, RunKind, RunPurpose};

mod agents;
mod blocks;
mod builtin;
mod catalogue;
pub mod dry_run;
mod fault;
mod input_files;
mod inputs;
mod keys;
mod lanes;
mod links;
mod named;
mod order;
mod pipeline;
mod planning;
mod rules;
pub mod scaffold;
mod stage;
#[cfg(test)]
mod tests;
mod used;
mod yaml;

pub use agents::agent_kind;
pub(crate) use blocks::KnownBlock;
pub use catalogue::{Catalogue, DefinitionOrigin, ListedDefinition};
pub use fault::{Fault, Level};
pub use input_files::{InputError, input_files};
pub(crate) use lanes::blocks_of;
pub use planning::LOOP_RUNS;
pub use used::UsedDefinition;

use fault::{Faults, did_you_mean};
use planning::{StageContext, VERIFY_AFTER, plan_stage};
use stage::Runs;
use used::commands_of_definitions;

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
    #[error("there is no {} `{name}`", if *kind == RunKind::Loop { "loop type" } else { "pipeline" })]
    NoDefinitionNamed { kind: RunKind, name: String, known: Vec<String>, above: Option<PathBuf> },
    #[error("`{}` does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("`{}` is a directory", path.display())]
    IsDirectory { path: PathBuf },
    #[error("there is no pipeline named `{name}`, only a file")]
    NeedsSlash { name: String },
    #[error("there is no loop.yaml in `{}`", path.display())]
    NoDefinition { path: PathBuf },
    #[error("`{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("--verify applies to the last stage, and `{stage}` is parallel: nothing verifies parallel runs")]
    VerifiesParallel { stage: String },
    #[error("`{}` already exists", path.display())]
    Exists { path: PathBuf },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl PlanError {
    pub fn hint(&self) -> String {
        match self {
            Self::Faults(_) => {
                "fix them, then check with `steadfast loop validate TYPE` or `steadfast pipeline validate FILE`".into()
            }
            Self::NoDefinitionNamed { kind, name, known, above } => {
                let meant = did_you_mean(name, known.iter().map(String::as_str));
                format!("{meant}see `steadfast {kind} types`{}", go_up(above.as_deref()))
            }
            Self::Missing { .. } => {
                "check the path; names are listed by `steadfast pipeline types` and `loop types`".into()
            }
            Self::IsDirectory { .. } => "name the pipeline's file; loop types are run by `steadfast loop run`".into(),
            Self::NeedsSlash { name } => format!("to run the file, write `./{name}`"),
            Self::NoDefinition { .. } => "name the folder of a loop type, or make one with `steadfast loop new`".into(),
            Self::NotAFile { path } => format!("put a file at `{}`", path.display()),
            Self::VerifiesParallel { .. } => format!("{VERIFY_AFTER}, or leave --verify out"),
            Self::Exists { .. } => "choose another name, or remove it first".into(),
            Self::Name(error) => error.hint().into(),
            Self::Io(_) => "check that the file exists and can be read".into(),
        }
    }
}

/// The end of a hint that names a project in a directory above.
pub fn go_up(above: Option<&Path>) -> String {
    above.map(|above| format!("; a project is further up: `cd {}` first", above.display())).unwrap_or_default()
}

/// Flags of the command line; they replace what definitions set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Of a loop, its maximum; of a pipeline, the most that any stage may run.
    pub max: Option<u32>,
    pub agent: Option<AgentKind>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub user_hooks: Option<bool>,
    /// Commands that must pass before a loop, or a pipeline's last stage, ends. They replace the definition's own.
    pub verify: Vec<String>,
    pub items: Vec<String>,
    pub timeout_ms: Option<Millis>,
    pub delay_ms: Option<Millis>,
    pub limits: Limits,
    pub errors: Option<u32>,
    pub idle: Option<u32>,
    pub parallel: Option<u32>,
    /// The text of `${CONTEXT}`.
    pub context: Option<String>,
}

/// A plan, and what it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub plan: Plan,
    pub warnings: Vec<Fault>,
    /// Where it was read from.
    pub file: String,
    /// The definitions, the plan's own first.
    pub used: Vec<UsedDefinition>,
    /// A pipeline's own text, for the copy among the public files.
    pub definition: Option<String>,
    /// Files, directories and patterns of the project that the pipeline names as its inputs.
    pub inputs: Vec<String>,
}

/// Plans a loop. The default name is that of its type.
pub fn plan_loop(
    catalogue: &Catalogue,
    loop_type: &str,
    name: Option<&str>,
    flags: &Overrides,
) -> Result<Planned, PlanError> {
    let source = catalogue.find_loop(loop_type)?;
    let run: RunName = name.unwrap_or(&source.name).parse()?;
    let faults = Faults::default();
    let def = stage::read_loop(&source, &faults);
    let mut used = UsedDefinition::of(RunKind::Loop, &source, def.as_ref().map(|def| &def.stage), catalogue)?;
    let plan = def.map(|mut def| {
        if let Some(prompt) = &def.stage.prompt {
            let axes = def.stage.matrix.iter().flatten().take(1).flatten().map(|(axis, _)| axis.as_str()).collect();
            let artifacts = def.stage.artifacts.iter().flatten().map(|(name, _, _)| (name.as_str(), 1)).collect();
            let commands = &def.stage.commands;
            let scope = inputs::PromptScope { reach: None, axes, artifacts: &artifacts, commands, merges: false };
            inputs::check_variables(prompt, &scope);
        }
        def.stage.runs = flags.max.map(Runs::Count).or(def.stage.runs);
        let context = StageContext {
            kind: RunKind::Loop,
            run: run.as_str(),
            name: source.name.clone(),
            loop_type: Some(source.name.clone()),
            inputs: Vec::new(),
            model_of: None,
            verified: true,
            merges: false,
            at: faults.file(&source.file),
        };
        let stage = plan_stage(def.stage, context, flags);
        used.add_commands(commands_of_definitions(&stage, flags));
        Plan {
            name: run.to_string(),
            kind: RunKind::Loop,
            title: source.name.clone(),
            pipeline_file: None,
            stages: vec![stage],
            limits: def.limits.on().unwrap_or_default().into_limits(flags),
            purpose: RunPurpose::Definition,
        }
    });
    finish(plan, &faults, vec![used], None, flags)
}

/// Plans a pipeline. The default name is its own with date and time.
pub fn plan_pipeline(
    catalogue: &Catalogue,
    file: &str,
    name: Option<&str>,
    flags: &Overrides,
    now: Millis,
) -> Result<Planned, PlanError> {
    let source = catalogue.find_pipeline(file)?;
    let faults = Faults::default();
    let def = pipeline::read(&source, catalogue, &faults);
    let title = def.as_ref().and_then(|def| def.title.clone()).unwrap_or_else(|| source.name.clone());
    let run: RunName = match name {
        Some(name) => name.parse()?,
        None => default_name(&title, now).parse()?,
    };
    let own = UsedDefinition::of(RunKind::Pipeline, &source, None, catalogue)?;
    let inputs = def.as_ref().map(|def| input_patterns(def, &catalogue.project)).unwrap_or_default();
    let planned = def.map(|mut def| {
        let limits = std::mem::take(&mut def.limits).into_limits(flags);
        let (stages, used) = def.plan(run.as_str(), flags, own);
        let pipeline_file = source.file.rsplit('/').next().map(str::to_owned);
        let purpose = RunPurpose::Definition;
        (Plan { name: run.to_string(), kind: RunKind::Pipeline, title, pipeline_file, stages, limits, purpose }, used)
    });
    let (plan, used) = planned.unzip();
    let definition = String::from_utf8(source.bytes).ok();
    let planned = finish(plan, &faults, used.unwrap_or_default(), definition, flags)?;
    Ok(Planned { inputs, ..planned })
}

/// The inputs of a pipeline, with a warning for each that is not there yet.
fn input_patterns(def: &pipeline::PipelineDef, project: &Path) -> Vec<String> {
    for (pattern, at) in &def.inputs {
        if let Err(error) = input_files(project, pattern, true) {
            at.warning(format!("{error}: the pipeline cannot be started"), error.hint());
        }
    }
    def.inputs.iter().map(|(pattern, _)| pattern.clone()).collect()
}

fn finish(
    plan: Option<Plan>,
    faults: &Faults,
    used: Vec<UsedDefinition>,
    definition: Option<String>,
    flags: &Overrides,
) -> Result<Planned, PlanError> {
    if let Some(error) = faults.take_unreadable() {
        return Err(error.into());
    }
    let warnings = faults.list();
    let has_errors = warnings.iter().any(|fault| fault.level == Level::Error);
    let Some(plan) = plan.filter(|_| !has_errors) else { return Err(PlanError::Faults(warnings)) };
    if let Some(last) = plan.stages.last().filter(|last| last.parallel && !flags.verify.is_empty()) {
        return Err(PlanError::VerifiesParallel { stage: last.name.clone() });
    }
    let file = used.first().map(|own| own.file.clone()).unwrap_or_default();
    Ok(Planned { plan, warnings, file, used, definition, inputs: Vec::new() })
}

pub fn validate_loop(catalogue: &Catalogue, loop_type: &str) -> Result<Vec<Fault>, PlanError> {
    // A folder may have a name that no run can have.
    faults_of(plan_loop(catalogue, loop_type, Some("name"), &Overrides::default()))
}

/// The errors and warnings of a pipeline and of the loop types that it uses.
pub fn validate_pipeline(catalogue: &Catalogue, file: &str) -> Result<Vec<Fault>, PlanError> {
    faults_of(plan_pipeline(catalogue, file, Some("name"), &Overrides::default(), 0))
}

/// A definition of the project and its faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPlan {
    pub kind: RunKind,
    /// Its path in the project.
    pub file: String,
    pub faults: Vec<Fault>,
}

/// Checks all loop types and pipelines of the project.
pub fn check_project(catalogue: &Catalogue) -> Result<Vec<CheckedPlan>, PlanError> {
    let mut checked = Vec::new();
    for kind in [RunKind::Loop, RunKind::Pipeline] {
        for file in catalogue.files_of_project(kind)? {
            let faults = match kind {
                RunKind::Loop => validate_loop(catalogue, &file)?,
                RunKind::Pipeline => validate_pipeline(catalogue, &file)?,
            };
            checked.push(CheckedPlan { kind, file, faults });
        }
    }
    Ok(checked)
}

fn faults_of(planned: Result<Planned, PlanError>) -> Result<Vec<Fault>, PlanError> {
    match planned {
        Ok(planned) => Ok(planned.warnings),
        Err(PlanError::Faults(faults)) => Ok(faults),
        Err(error) => Err(error),
    }
}

/// `NAME-YYYYMMDD-HHMMSS`, in UTC.
fn default_name(title: &str, now: Millis) -> String {
    let plain: String = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let plain: String = plain.trim_matches('-').chars().take(40).collect();
    let time: String = clock::to_rfc3339(now).chars().filter(char::is_ascii_digit).collect();
    let (day, clock) = time.split_at_checked(8).unwrap_or((&time, ""));
    let plain = if plain.is_empty() { "pipeline" } else { &plain };
    format!("{plain}-{day}-{clock}")
}
