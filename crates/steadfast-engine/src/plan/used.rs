//! What a plan was made of: each definition with the digest of the very bytes that were read, and the commands that run
//! because it says so. Whoever has to trust a plan is told by the plan itself; reading the files again could show others.

use sha2::{Digest as _, Sha256};
use steadfast_model::run::{AgentKind, Rule, RunKind, StagePlan};
use steadfast_model::text;

use super::Overrides;
use super::catalogue::{Catalogue, Origin, Source};
use super::fault::{At, Faults};
use super::planning::{DefaultRuns, LOOP_RUNS, StageContext, plan_stage};
use super::stage::StageDef;

/// A definition that a plan was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub kind: RunKind,
    pub origin: Origin,
    pub file: String,
    /// Of its content, in hexadecimal digits.
    pub sha256: String,
    /// Its name is one of the user's own definitions too, or of a built-in one.
    pub shadows: bool,
    /// What the plan runs because this definition says so; what the command line says is not among it.
    pub commands: Vec<String>,
}

impl Used {
    pub(super) fn of(kind: RunKind, source: &Source, catalogue: &Catalogue) -> Self {
        Self {
            kind,
            origin: source.origin,
            file: source.file.clone(),
            sha256: text::hex(&Sha256::digest(&source.bytes)),
            shadows: match kind {
                RunKind::Loop => catalogue.shadows_loop(&source.name),
                RunKind::Pipeline => catalogue.shadows_pipeline(&source.name),
            },
            commands: Vec::new(),
        }
    }

    /// Each command is named once.
    pub(super) fn add_commands(&mut self, commands: Vec<String>) {
        for command in commands {
            if !self.commands.contains(&command) {
                self.commands.push(command);
            }
        }
    }
}

/// The commands of a stage that are not the user's own.
pub(super) fn commands_of_definitions(stage: &StagePlan, flags: &Overrides) -> Vec<String> {
    let mut commands = Vec::new();
    for leaf in stage.completion.leaves() {
        match leaf {
            Rule::Command(command) => commands.push(command.clone()),
            Rule::Verify(more) if *more == flags.verify => {}
            Rule::Verify(more) => commands.extend(more.iter().cloned()),
            Rule::FixedN
            | Rule::AllItems
            | Rule::Plateau(_)
            | Rule::BeadsEmpty(_)
            | Rule::Promise(_)
            | Rule::Checklist(_)
            | Rule::Any(_)
            | Rule::All(_) => {}
        }
    }
    let worker = Some(&stage.agent).filter(|_| flags.agent.is_none());
    for agent in worker.into_iter().chain(&stage.judge) {
        if let AgentKind::Command(words) = &agent.kind {
            commands.push(words.join(" "));
        }
    }
    commands
}

/// A loop type that stages of a pipeline use, and what it adds to their plans.
#[derive(Debug)]
pub(super) struct UsedLoop {
    pub(super) def: StageDef,
    pub(super) used: Used,
}

impl UsedLoop {
    /// Notes those commands of a stage that the loop type says; the others are the pipeline's own.
    pub(super) fn take_commands(&mut self, commands: Vec<String>) -> Vec<String> {
        let said = commands_said(&self.def);
        let (theirs, others) = commands.into_iter().partition(|command| said.contains(command));
        self.used.add_commands(theirs);
        others
    }
}

/// Every command that a loop type names, whatever the stage that uses it makes of the rest.
fn commands_said(def: &StageDef) -> Vec<String> {
    // Nobody asks the rule of a parallel stage, but the stage that uses this one need not be parallel.
    let def = StageDef { parallel: None, ..def.clone() };
    let context = StageContext {
        run: "",
        name: String::new(),
        loop_type: None,
        inputs: Vec::new(),
        default_runs: DefaultRuns::Limit(LOOP_RUNS),
        takes_model: true,
        verified: false,
        at: At::new("", 1),
    };
    let flags = Overrides::default();
    // Its faults have been told with the stage.
    commands_of_definitions(&plan_stage(def, context, &flags, &mut Faults::default()), &flags)
}
