//! One state of an older tool. Words differ (`complete`, `completion_reason`), votes are texts, stages count from 0,
//! histories hold an iteration twice after a crash or continue those of an earlier run: all of it becomes our shape.

use std::path::Path;

use serde_json::Value;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::name::RunName;
use steadfast_model::run::{AgentDecision, AttemptId, RunKind, RunStatus, StageStatus};
use steadfast_model::text;
use steadfast_store::IterationRow;

use super::lanes::{self, StagePlace};
use super::traces::Traces;
use super::{OldDefinition, OldIteration, OldRun, OldStage};

const LONGEST_TEXT: usize = 2_000;
const MOST_INPUTS: usize = 100;
const MOST_STAGES: usize = 1_000;
/// A run with more iterations of a stage than this is damaged.
pub(super) const MOST_ITERATIONS: u32 = 100_000;

/// Reads a state; an error says why it is none. `directory` is that of a run which has one.
pub(super) fn run(
    state: &Value,
    project: &Path,
    file: &Path,
    directory: Option<&Path>,
    traces: &Traces<'_>,
) -> Result<OldRun, String> {
    let of_path = match directory {
        Some(directory) => directory.file_name().and_then(|name| name.to_str()),
        None => file.file_name().and_then(|name| name.to_str()?.strip_prefix("loop-state-")?.strip_suffix(".json")),
    };
    let name = word(state, "session").or_else(|| of_path.map(str::to_owned)).ok_or("names no session")?;
    let _: RunName = name.parse().map_err(|error| format!("has an invalid session name: {error}"))?;
    let said = word(state, "status").ok_or("has no status")?;
    let status = status(&said).ok_or_else(|| format!("has the unknown status `{}`", text::headline(&said, 40)))?;
    let kind = match word(state, "type").as_deref() {
        Some("pipeline") => RunKind::Pipeline,
        None if directory.is_some() => RunKind::Pipeline,
        _ => RunKind::Loop,
    };
    let mut old = OldRun {
        id: String::new(),
        file: file.to_owned(),
        title: name.clone(),
        kind,
        status,
        reason: ["reason", "completion_reason"].iter().find_map(|key| words(state, key)),
        started_at_ms: time(state, "started_at"),
        completed_at_ms: time(state, "completed_at").or_else(|| time(state, "failed_at")),
        max_iterations: number(state, "max_iterations"),
        stages: list(state, "stages").take(MOST_STAGES).map(stage).collect(),
        iterations: Vec::new(),
        progress: std::collections::BTreeMap::new(),
        inputs: Vec::new(),
        definition: None,
        warnings: Vec::new(),
        name,
    };
    old.reason = old.reason.or_else(|| words(state.get("error")?, "message"));
    let compiled = || Some((directory?.join("plan.json"), traces.plan.clone()?));
    old.definition = traces
        .file("pipeline.yaml")
        .filter(|_| kind == RunKind::Pipeline)
        .map(OldDefinition::File)
        .or_else(|| compiled().map(|(file, plan)| OldDefinition::Compiled { file, plan }));
    match kind {
        RunKind::Loop => old.read_loop(state, traces),
        RunKind::Pipeline => old.read_pipeline(state, traces, project),
    }
    old.read_iterations(state, traces);
    old.find_progress(traces);
    let inputs = traces.plan.as_ref().and_then(|plan| plan.pointer("/session/inputs")).and_then(Value::as_array);
    let inputs = inputs.into_iter().flatten().take(MOST_INPUTS).filter_map(Value::as_str);
    old.inputs = inputs.filter_map(|named| traces.named_file(named)).collect();
    Ok(old)
}

impl OldRun {
    /// A loop has one stage, which is its type.
    fn read_loop(&mut self, state: &Value, traces: &Traces<'_>) {
        let (of_type, max) = traces.loop_facts();
        let named = self.stages.first().map(|stage| stage.name.clone()).filter(|name| !name.is_empty());
        let title = word(state, "loop_type").or(of_type).or(named);
        self.title = title.unwrap_or_else(|| self.name.clone());
        self.max_iterations = self.max_iterations.or(max);
        let begun = self.stages.drain(..).next().and_then(|stage| stage.started_at_ms).or(self.started_at_ms);
        let (status, ended) = match self.status {
            RunStatus::Completed => (StageStatus::Completed, self.completed_at_ms),
            _ => (StageStatus::Running, None),
        };
        self.stages = vec![OldStage {
            name: self.title.clone(),
            loop_type: Some(self.title.clone()),
            runs: self.max_iterations,
            status,
            started_at_ms: begun,
            completed_at_ms: ended,
            reason: self.reason.clone(),
            place: StagePlace::default(),
        }];
    }

    /// The stages before the current one are over, and those after it have not begun.
    fn read_pipeline(&mut self, state: &Value, traces: &Traces<'_>, project: &Path) {
        if let Some(title) = word(state, "pipeline") {
            self.title = title;
        }
        let named = traces.planned_stages();
        for name in named.into_iter().skip(self.stages.len()) {
            self.stages.push(OldStage { name, ..stage(&Value::Null) });
        }
        let current = number(state, "current_stage").unwrap_or(0);
        let current =
            if counts_from_zero(state, traces, &self.file) { current.saturating_add(1) } else { current.max(1) };
        let is_over = self.status == RunStatus::Completed;
        for (number, stage) in (1_u32..).zip(&mut self.stages) {
            if number < current || is_over {
                stage.status = StageStatus::Completed;
            } else if number > current && stage.status == StageStatus::Running {
                stage.status = StageStatus::Pending;
            }
            stage.place.node = number;
        }
        let blocks = lanes::blocks(self.definition.as_ref(), project);
        let nodes = std::mem::take(&mut self.stages).into_iter().enumerate();
        self.stages = nodes
            .flat_map(|(index, node)| lanes::stages_of(node, blocks.get(&index), traces))
            .take(MOST_STAGES)
            .collect();
    }

    fn read_iterations(&mut self, state: &Value, traces: &Traces<'_>) {
        let is_newest = traces.is_newest() || state.get("iteration_completed").is_some();
        let written = history(state, &self.stages, is_newest, &mut self.warnings);
        let completed = number(state, "iteration_completed").unwrap_or(0);
        let current = self.stages.iter().position(|stage| stage.status == StageStatus::Running);
        for (stage, number) in self.stages.iter().zip(1_u32..) {
            let own: Vec<&IterationRow> = written.iter().filter(|row| row.id.stage == number).collect();
            let folder = traces.folder_of(stage);
            let folder = folder.or_else(|| traces.stage_folder(number, None).filter(|_| self.kind == RunKind::Loop));
            let is_current = current.and_then(|at| u32::try_from(at).ok()) == Some(number - 1);
            let of_files = match (&folder, stage.status) {
                (None, _) | (_, StageStatus::Pending) => 0,
                (Some(folder), StageStatus::Completed) if is_newest => Traces::finished_iterations(folder),
                (Some(_), _) if is_newest => 0,
                (Some(folder), StageStatus::Completed) => Traces::outputs(folder),
                // The last output of a stage that was running is not whole.
                (Some(folder), _) => Traces::outputs(folder).saturating_sub(1),
            };
            let of_history = own.iter().map(|row| row.id.iteration).max().unwrap_or(0);
            let of_state = if is_current { completed } else { 0 };
            let count = match &stage.place.lane {
                Some(lane) => lane.finished(stage.status, of_files),
                None => of_history.max(of_files).max(of_state),
            };
            let count = count.min(MOST_ITERATIONS);
            let begun = stage.started_at_ms.or(self.started_at_ms).unwrap_or_default();
            for iteration in 1..=count {
                let id = AttemptId { stage: number, iteration, attempt: 1 };
                let row = own.iter().find(|row| row.id.iteration == iteration).map(|row| (*row).clone());
                let row = row.unwrap_or_else(|| {
                    let report = folder.as_ref().map(|folder| traces.report(folder, iteration)).unwrap_or_default();
                    row_of(&report, id, begun)
                });
                let output = folder.as_ref().and_then(|folder| traces.output(folder, iteration, iteration == count));
                self.iterations.push(OldIteration { row, output });
            }
        }
    }

    fn find_progress(&mut self, traces: &Traces<'_>) {
        for (stage, number) in self.stages.iter().zip(1_u32..) {
            let file = match self.kind {
                RunKind::Loop => {
                    let name = format!("progress-{}.md", self.name);
                    traces.named_file(&format!(".claude/{name}")).or_else(|| traces.file(&name))
                }
                RunKind::Pipeline => traces.progress_of(stage),
            };
            self.progress.extend(file.map(|file| (number, file)));
        }
    }
}

/// All tools but the one whose fields were documented count stages from 0.
fn counts_from_zero(state: &Value, traces: &Traces<'_>, file: &Path) -> bool {
    let is_alone = file.parent().and_then(Path::file_name).is_some_and(|name| name == ".claude");
    traces.is_newest()
        || is_alone
        || ["iteration_completed", "event_offset", "iteration_started"].iter().any(|name| state.get(name).is_some())
        || list(state, "stages").any(|stage| stage.get("index").is_some())
}

pub(super) fn status(word: &str) -> Option<RunStatus> {
    match word {
        "complete" | "max_iterations" => Some(RunStatus::Completed),
        "crashed" => Some(RunStatus::UnknownTermination),
        other => other.parse().ok(),
    }
}

fn stage(stage: &Value) -> OldStage {
    let said = word(stage, "status").unwrap_or_default();
    let status = match said.as_str() {
        "complete" | "completed" => StageStatus::Completed,
        "failed" => StageStatus::Failed,
        "running" => StageStatus::Running,
        _ => StageStatus::Pending,
    };
    let is_over = status == StageStatus::Completed;
    // The only time of a stage is that of its last change.
    let changed = time(stage, "timestamp");
    OldStage {
        name: word(stage, "name").unwrap_or_default(),
        loop_type: word(stage, "loop"),
        runs: number(stage, "runs"),
        status,
        started_at_ms: time(stage, "started_at").or(changed.filter(|_| !is_over)),
        completed_at_ms: time(stage, "completed_at").or(changed.filter(|_| is_over)),
        reason: words(stage, "reason"),
        place: StagePlace::default(),
    }
}

/// The history, each iteration of a stage once and numbered in order. The newest tool writes a finished session that is
/// started again into the same history; only the last start counts.
fn history(state: &Value, stages: &[OldStage], is_newest: bool, warnings: &mut Vec<String>) -> Vec<IterationRow> {
    let mut all: Vec<IterationRow> = Vec::new();
    let mut last_said = None;
    let mut before = time(state, "started_at").unwrap_or_default();
    for entry in list(state, "history") {
        let Some(said) = number(entry, "iteration").filter(|said| *said > 0) else { continue };
        let Some(own) = stage_of(entry, stages) else { continue };
        let mut row = row_of(entry, AttemptId { stage: own, iteration: said, attempt: 1 }, before);
        before = row.committed_at_ms;
        let previous = all.iter().rev().find(|other| other.id.stage == own).map_or(0, |other| other.id.iteration);
        if last_said == Some((own, said)) {
            warnings.push(format!("iteration {said} was written twice; the last one is kept"));
            row.id.iteration = previous;
            all.pop();
        } else if said <= previous && is_newest {
            warnings
                .push(format!("an earlier run of that name is in the same history: {previous} iterations left out"));
            all.retain(|other| other.id.stage < own);
        } else if said <= previous {
            if said == 1 {
                warnings.push(format!("an earlier run of that name is in the same history, up to {previous}"));
            }
            row.id.iteration = previous.saturating_add(1);
        }
        last_said = Some((own, said));
        all.push(row);
    }
    all
}

/// An iteration from an entry of the history, or from what its agent reported.
fn row_of(entry: &Value, id: AttemptId, before: Millis) -> IterationRow {
    let at = time(entry, "timestamp").unwrap_or(before);
    IterationRow {
        id: AttemptId { attempt: number(entry, "attempts").unwrap_or(1).max(1), ..id },
        plateau: vote(entry),
        reasoning: words(entry, "reasoning").or_else(|| words(entry, "reason")),
        summary: words(entry, "summary"),
        decision: word(entry, "decision").and_then(|word| word.parse().ok()),
        started_at_ms: before.min(at),
        committed_at_ms: at,
        ..IterationRow::default()
    }
}

/// The stage of an entry, from 1: by name or by number; without any, the first. `None` for a name among several that is
/// none of them.
fn stage_of(entry: &Value, stages: &[OldStage]) -> Option<u32> {
    let named = word(entry, "stage");
    let by_name = named.as_ref().and_then(|name| stages.iter().position(|stage| stage.name == *name));
    let by_name = by_name.and_then(|at| u32::try_from(at).ok()).map(|at| at.saturating_add(1));
    let is_unknown = named.is_some() && stages.len() > 1;
    by_name.or_else(|| number(entry, "stage")).or((!is_unknown).then_some(1)).map(|stage| stage.max(1))
}

/// A vote was a boolean in the documentation, a text in fact, and later a signal or a decision.
fn vote(entry: &Value) -> Option<bool> {
    match entry.get("plateau") {
        Some(Value::Bool(vote)) => return Some(*vote),
        Some(Value::String(vote)) => {
            let vote = vote.trim().to_lowercase();
            return Some(vote.starts_with("true") || vote.starts_with("yes"));
        }
        _ => {}
    }
    let signal = entry.get("signals").and_then(|signals| signals.get("plateau_suspected")).and_then(Value::as_bool);
    signal.or_else(|| match word(entry, "decision")?.parse().ok()? {
        AgentDecision::Stop => Some(true),
        AgentDecision::Continue => Some(false),
        AgentDecision::Error => None,
    })
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn word(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned).filter(|word| !word.is_empty())
}

fn words(value: &Value, name: &str) -> Option<String> {
    word(value, name).map(|words| text::cut(text::printable(&words).trim(), LONGEST_TEXT))
}

/// A whole number, also one that was written as a text.
pub(super) fn number(value: &Value, name: &str) -> Option<u32> {
    match value.get(name)? {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A time in UTC, or with an offset as the first engine wrote it.
fn time(value: &Value, name: &str) -> Option<Millis> {
    clock::parse_rfc3339(value.get(name)?.as_str()?.trim())
}
