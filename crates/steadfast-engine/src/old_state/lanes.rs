//! Parallel blocks of the newest tool. Its state has one entry for a block; each provider has a directory of its own with
//! the state of its lane. A block becomes the stages that it is planned as, so that what a lane finished is not repeated.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use steadfast_model::run::StageStatus;

use super::read::{list, number, word};
use super::traces::Traces;
use super::{OldDefinition, OldStage};
use crate::plan::{KnownBlock, blocks_of};

/// Where the files of a stage are in the directory of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StagePlace {
    /// Of the node that it belongs to, from 1.
    pub(super) node: u32,
    pub(super) lane: Option<LanePlace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LanePlace {
    pub(super) provider: String,
    /// The name inside of the block.
    pub(super) stage: String,
    /// Among the stages of the block, from 0.
    pub(super) index: usize,
    /// The iterations that the state of the lane counts.
    pub(super) done: Option<u32>,
}

/// The blocks of a pipeline, by the position of their nodes.
pub(super) fn blocks(definition: Option<&OldDefinition>, project: &Path) -> BTreeMap<usize, KnownBlock> {
    let text = definition.and_then(|definition| definition.text(project, &[]));
    text.map(|text| blocks_of(&text)).unwrap_or_default()
}

/// The stages of a node: itself, or those of the lanes of its block. `planned` is the block at its position in the
/// definition; a block without one is read from its directory.
pub(super) fn stages_of(node: OldStage, planned: Option<&KnownBlock>, traces: &Traces<'_>) -> Vec<OldStage> {
    let planned = planned.filter(|block| block.name == node.name).cloned();
    let Some(block) = planned.or_else(|| traces.block(node.place.node, &node.name)) else { return vec![node] };
    let mut stages = Vec::new();
    for provider in &block.providers {
        let lane = traces.lane_state(node.place.node, provider);
        let said = word(&lane, "status").unwrap_or_default();
        let is_complete = node.status == StageStatus::Completed || said == "complete";
        let current = word(&lane, "current_stage_name");
        for (index, name) in block.stages.iter().enumerate() {
            let ended = list(&lane, "stages").find(|stage| word(stage, "name").as_ref() == Some(name));
            let is_current = node.status != StageStatus::Pending && current.as_ref() == Some(name);
            let status = match (is_complete || ended.is_some(), is_current, said.as_str()) {
                (true, _, _) => StageStatus::Completed,
                (false, true, "failed") => StageStatus::Failed,
                (false, true, _) => StageStatus::Running,
                (false, false, _) => StageStatus::Pending,
            };
            let done = match ended {
                Some(ended) => number(ended, "iterations").filter(|done| *done > 0),
                None => number(&lane, "iteration_completed").filter(|_| is_current),
            };
            stages.push(OldStage {
                name: block.stage(provider, name),
                status,
                started_at_ms: node.started_at_ms.filter(|_| status != StageStatus::Pending),
                completed_at_ms: node.completed_at_ms.filter(|_| status == StageStatus::Completed),
                reason: word(&lane, "error").filter(|_| status == StageStatus::Failed),
                place: StagePlace {
                    node: node.place.node,
                    lane: Some(LanePlace { provider: provider.clone(), stage: name.clone(), index, done }),
                },
                ..node.clone()
            });
        }
    }
    stages
}

impl LanePlace {
    /// The iterations that a stage of a lane has finished; `of_files` are those that left a result.
    pub(super) fn finished(&self, status: StageStatus, of_files: u32) -> u32 {
        match status {
            StageStatus::Completed => self.done.unwrap_or(of_files),
            StageStatus::Running | StageStatus::Failed => self.done.unwrap_or(0),
            _ => 0,
        }
    }
}

impl Default for StagePlace {
    fn default() -> Self {
        Self { node: 1, lane: None }
    }
}

impl Traces<'_> {
    /// The block of a node, as its directory shows it.
    fn block(&self, node: u32, name: &str) -> Option<KnownBlock> {
        let providers = self.names_in_block(node, "providers");
        let stage = |folder: &String| Some(folder.strip_prefix("stage-")?.split_once('-')?.1.to_owned());
        let mut stages: Vec<String> = Vec::new();
        for provider in &providers {
            let own = self.names_in_block(node, &format!("providers/{provider}"));
            let own: Vec<String> = own.iter().filter_map(stage).collect();
            stages = if own.len() > stages.len() { own } else { stages };
        }
        let is_block = !name.is_empty() && !providers.is_empty() && !stages.is_empty();
        is_block.then(|| KnownBlock { name: name.to_owned(), providers, stages })
    }

    /// What a lane wrote about itself.
    fn lane_state(&self, node: u32, provider: &str) -> Value {
        self.json_in_block(node, &format!("providers/{provider}/state.json")).unwrap_or_default()
    }
}
