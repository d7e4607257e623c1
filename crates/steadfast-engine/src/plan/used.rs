//! The definitions that a plan was made of, each with the digest of the bytes that were read and the commands that run
//! because of it. Trust is decided from these, because reading the files again could return other text.

use std::collections::BTreeSet;
use std::io;

use sha2::{Digest as _, Sha256};
use steadfast_model::run::{Rule, RunKind, StagePlan};
use steadfast_model::text;

use super::Overrides;
use super::agents::command_line;
use super::catalogue::{Catalogue, DefinitionOrigin, DefinitionSource};
use super::planning::LimitsDef;
use super::stage::StageDef;

/// A definition that a plan was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedDefinition {
    pub kind: RunKind,
    pub origin: DefinitionOrigin,
    pub file: String,
    /// Of its content, in hexadecimal digits.
    pub sha256: String,
    /// Whether one of the user's own definitions or a built-in one has the same name.
    pub shadows: bool,
    /// What the plan runs because of this definition; commands of the command line are not among them.
    pub commands: Vec<String>,
    /// The file of its prompt, if that is a file of its own, and the digest of the text that was read.
    pub prompt: Option<(String, String)>,
}

impl UsedDefinition {
    pub(super) fn of(
        kind: RunKind,
        source: &DefinitionSource,
        def: Option<&StageDef>,
        catalogue: &Catalogue,
    ) -> io::Result<Self> {
        let prompt = def.and_then(|def| def.prompt.as_ref()?.in_file());
        Ok(Self {
            kind,
            origin: source.origin,
            file: source.file.clone(),
            sha256: text::hex(&Sha256::digest(&source.bytes)),
            shadows: catalogue.shadows(kind, &source.name)?,
            commands: Vec::new(),
            prompt: prompt.map(|(file, text)| (file.to_owned(), text::hex(&Sha256::digest(text)))),
        })
    }

    /// Adds commands that are not in the list yet.
    pub(super) fn add_commands(&mut self, commands: Vec<String>) {
        for command in commands {
            if !self.commands.contains(&command) {
                self.commands.push(command);
            }
        }
    }
}

/// The commands of a stage that come from definitions, not from flags.
pub(super) fn commands_of_definitions(stage: &StagePlan, flags: &Overrides) -> Vec<String> {
    let flagged = Rule::Verify(flags.verify.clone());
    let leaves = stage.completion.leaves().filter(|leaf| **leaf != flagged);
    let rules = leaves.flat_map(|leaf| leaf.needs().commands).map(str::to_owned);
    let own = if stage.agents.is_empty() { std::slice::from_ref(&stage.agent) } else { &stage.agents };
    let workers = own.iter().filter(|_| flags.agent.is_none());
    let agents = workers.chain(&stage.judge).filter_map(|agent| command_line(&agent.kind));
    rules.chain(agents).collect()
}

/// A loop type that stages of a pipeline use.
#[derive(Debug)]
pub(super) struct UsedLoop {
    pub(super) def: StageDef,
    /// What limits a run of its own, and each stage that names it.
    pub(super) limits: LimitsDef,
    pub(super) used: UsedDefinition,
}

impl UsedLoop {
    /// Records the commands of a stage that the loop type names, and returns those of the pipeline itself.
    pub(super) fn take_commands(&mut self, commands: Vec<String>) -> Vec<String> {
        let named: BTreeSet<String> = self.def.commands().into_iter().collect();
        let (own, others) = commands.into_iter().partition(|command| named.contains(command));
        self.used.add_commands(own);
        others
    }
}
