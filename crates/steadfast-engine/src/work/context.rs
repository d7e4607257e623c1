//! The context file of an attempt, `${CTX}`: where its inputs, outputs and results are, what it may use, and the user's
//! commands. Prompts of other tools read it with `jq`. Written only for prompts that name it, before the agent starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use steadfast_model::clock;
use steadfast_model::run::template::Variables;
use steadfast_model::run::{AttemptId, RunKind, StagePlan, machine};

use super::inputs::{MOST_ITERATIONS, file_left_by};
use super::starting::limit_of;
use super::{RunRecords, RunView, stage_named};
use crate::attempt::Attempt;
use crate::run_folder::RunFolder;

/// Limits that are farther away are none.
const FARTHEST: Duration = Duration::from_hours(24 * 300);

/// Files that an agent says it wrote, at most.
const MOST_TOUCHED: usize = 50;

#[derive(Debug, Serialize)]
pub(super) struct ContextFile {
    session: String,
    pipeline: String,
    stage: StageEntry,
    iteration: u32,
    paths: ContextPaths,
    inputs: ContextInputs,
    limits: LimitsEntry,
    commands: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct StageEntry {
    id: String,
    /// From 0.
    index: u32,
    template: String,
}

#[derive(Debug, Serialize)]
struct ContextPaths {
    session_dir: PathBuf,
    stage_dir: PathBuf,
    progress: String,
    output: String,
    status: PathBuf,
    result: PathBuf,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the file")]
struct ContextInputs {
    from_stage: BTreeMap<String, Vec<PathBuf>>,
    from_previous_iterations: Vec<PathBuf>,
    from_initial: Vec<PathBuf>,
    from_parallel: Value,
}

#[derive(Debug, Serialize)]
struct LimitsEntry {
    max_iterations: u32,
    /// -1 for no limit.
    remaining_seconds: i64,
}

/// What the lanes of a block put out in one stage.
#[derive(Debug, Serialize)]
struct BlockEntry {
    stage: String,
    block: String,
    select: &'static str,
    providers: BTreeMap<String, LaneEntry>,
}

#[derive(Debug, Serialize)]
struct LaneEntry {
    output: Option<PathBuf>,
    /// The output, and what the agent says it wrote: other lanes and later stages do not see the worktree of the lane.
    files: Vec<PathBuf>,
    status: String,
    iterations: u32,
    termination_reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<PathBuf>,
}

impl ContextFile {
    /// The file for an agent that works in `directory`. In a worktree, inputs of the project are the copies there.
    pub(super) fn text_for(mut self, project: &Path, directory: &Path) -> String {
        for path in &mut self.inputs.from_initial {
            let inside = path.strip_prefix(project).map(|inside| directory.join(inside));
            if let Some(inside) = inside.ok().filter(|inside| inside.is_file()) {
                *path = inside;
            }
        }
        crate::durable::json(&self)
    }
}

impl RunView<'_> {
    /// `None` if the prompt does not name it.
    pub(super) fn context_file(
        &self,
        stage: &StagePlan,
        id: AttemptId,
        attempt: &Attempt,
        variables: &Variables,
        records: &mut impl RunRecords,
    ) -> Option<ContextFile> {
        if !stage.prompt.contains("${CTX}") {
            return None;
        }
        let (plan, folder) = (self.plan, RunFolder::at(self.home, self.run_id));
        let of_lanes: Vec<&String> = stage.parallel_inputs.iter().flat_map(|input| input.lanes.values()).collect();
        let mut from_stage: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for name in plan.inputs_of(id.stage).iter().filter(|name| !of_lanes.contains(name)) {
            let Some((number, earlier)) = stage_named(plan, name) else { continue };
            let files = self.output_files(earlier, number, stage.latest_inputs, records);
            from_stage.entry(earlier.short_name().to_owned()).or_default().extend(files);
        }
        let blocks: Vec<BlockEntry> = stage
            .parallel_inputs
            .iter()
            .map(|input| BlockEntry {
                stage: input.stage.clone(),
                block: input.block.clone(),
                select: if input.history { "history" } else { "latest" },
                providers: input
                    .lanes
                    .iter()
                    .filter_map(|(provider, name)| {
                        Some((provider.clone(), self.lane_entry(name, input.history, records)?))
                    })
                    .collect(),
            })
            .collect();
        // A stage folder of a pipeline has the progress file; a loop has only the run's own folder.
        let beside = Path::new(&variables.progress).parent().filter(|_| plan.kind == RunKind::Pipeline);
        let stage_dir = beside.unwrap_or(folder.path()).to_owned();
        let session_dir = beside.and_then(Path::parent).unwrap_or(folder.path()).to_owned();
        Some(ContextFile {
            session: plan.name.clone(),
            pipeline: plan.title.clone(),
            stage: StageEntry {
                id: stage.short_name().to_owned(),
                index: id.stage.saturating_sub(1),
                template: stage.loop_type.clone().unwrap_or_else(|| stage.short_name().to_owned()),
            },
            iteration: id.iteration,
            paths: ContextPaths {
                session_dir,
                stage_dir,
                progress: variables.progress.clone(),
                output: variables.output.clone(),
                status: attempt.status(),
                result: attempt.result(),
            },
            inputs: ContextInputs {
                from_stage,
                from_previous_iterations: self.output_files(stage, id.stage, false, records),
                from_initial: folder.input_files(),
                from_parallel: from_parallel(&stage.prompt, &blocks),
            },
            limits: LimitsEntry {
                max_iterations: self.run.max_iterations(plan, id.stage),
                remaining_seconds: self.remaining_seconds(stage, id.stage),
            },
            commands: stage.commands.clone(),
        })
    }

    /// The files of a stage's outputs, the oldest first, and the file that it names for its output.
    fn output_files(
        &self,
        stage: &StagePlan,
        number: u32,
        latest: bool,
        records: &mut impl RunRecords,
    ) -> Vec<PathBuf> {
        let most = if latest { 1 } else { MOST_ITERATIONS };
        let rows = match records.end_of_stage(number, most) {
            Ok(rows) => rows,
            Err(error) => {
                records.note(&format!("cannot read the outputs of stage {}: {error}", stage.name));
                return Vec::new();
            }
        };
        let mut files: Vec<PathBuf> = rows.iter().filter_map(|row| self.output_file(row.id, records)).collect();
        let last = rows.last().filter(|_| stage.lane.is_some());
        let touched = last.into_iter().flat_map(|row| row.report.files.iter().take(MOST_TOUCHED));
        for path in stage.output_path.iter().chain(touched) {
            let found = rows.last().and_then(|row| file_left_by(stage, row.id, path, records));
            files.extend(found.filter(|file| !files.contains(file)));
        }
        files
    }

    fn output_file(&self, id: AttemptId, records: &impl RunRecords) -> Option<PathBuf> {
        let attempt = Attempt::at(self.home, self.run_id, id);
        let public = records.output_file(id);
        let mut files = public.into_iter().chain([attempt.own_output(), attempt.answer()]);
        files.find(|file| file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0))
    }

    fn lane_entry(&self, name: &str, history: bool, records: &mut impl RunRecords) -> Option<LaneEntry> {
        let (number, stage) = stage_named(self.plan, name)?;
        let reached = self.run.stage_state(number).cloned().unwrap_or_default();
        let files = self.output_files(stage, number, true, records);
        let history = if history { self.output_files(stage, number, false, records) } else { Vec::new() };
        Some(LaneEntry {
            output: files.first().cloned(),
            files,
            status: reached.status.to_string(),
            iterations: reached.iterations,
            termination_reason: reached.reason,
            history,
        })
    }

    /// Until the first of the limits that end this attempt: the run's, the stage's and its own.
    fn remaining_seconds(&self, stage: &StagePlan, number: u32) -> i64 {
        let of_stage = machine::attempt_time_left(self.plan, self.run, number, clock::now());
        let own = Some(limit_of(stage)).filter(|limit| *limit < FARTHEST);
        let own = own.and_then(|limit| i64::try_from(limit.as_millis()).ok());
        let left = of_stage.into_iter().chain(own).min();
        left.map_or(-1, |left| left.max(0) / 1_000)
    }
}

/// The outputs of lanes in the form that the prompt reads. Its tool changed the form twice, and prompts for all three are
/// around: a list of blocks, one block, or files by provider.
fn from_parallel(template: &str, blocks: &[BlockEntry]) -> Value {
    if template.contains("from_parallel[") {
        return json!(blocks);
    }
    if template.contains("from_parallel.providers") {
        return blocks.first().map_or_else(|| json!({}), |block| json!(block));
    }
    let mut files: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    for (provider, lane) in blocks.iter().flat_map(|block| &block.providers) {
        let of_lane = if lane.history.is_empty() { &lane.files } else { &lane.history };
        files.entry(provider).or_default().extend(of_lane);
    }
    if files.is_empty() { json!([]) } else { json!(files) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_listed_in_the_form_that_the_prompt_reads() {
        let lane = |file: &str| LaneEntry {
            output: Some(file.into()),
            files: vec![file.into()],
            status: "completed".into(),
            iterations: 1,
            termination_reason: None,
            history: Vec::new(),
        };
        let providers = BTreeMap::from([("claude".to_owned(), lane("/a.md")), ("codex".to_owned(), lane("/b.md"))]);
        let blocks = [BlockEntry { stage: "review".into(), block: "dual".into(), select: "latest", providers }];
        let by_provider = from_parallel("jq '.inputs.from_parallel | to_entries[]?' ${CTX}", &blocks);
        assert_eq!(by_provider, json!({"claude": ["/a.md"], "codex": ["/b.md"]}));
        let one = from_parallel("jq '.inputs.from_parallel.providers' ${CTX}", &blocks);
        assert_eq!((&one["block"], &one["providers"]["codex"]["output"]), (&json!("dual"), &json!("/b.md")));
        let list = from_parallel("jq '.inputs.from_parallel[].providers' ${CTX}", &blocks);
        assert_eq!(list[0]["providers"]["claude"]["status"], "completed");
        assert_eq!(from_parallel("", &[]), json!([]));
        assert_eq!(from_parallel(".from_parallel.providers", &[]), json!({}));
    }
}
