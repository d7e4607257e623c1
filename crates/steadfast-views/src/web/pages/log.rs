//! The end of the output of an iteration; the script continues where it ends.

use serde::Serialize;
use steadfast_engine::attempt::Attempt;
use steadfast_model::run::{AttemptId, RunStatus};
use steadfast_store::RunRow;
use steadfast_system::paths::Paths;

use crate::log;
use crate::web::logs;

/// Lines that the page has before the script adds more.
const LINES: usize = 300;

#[derive(Debug, Clone, Serialize)]
pub(super) struct LogOutput {
    pub(super) stage: u32,
    pub(super) iteration: u32,
    pub(super) lines: Vec<String>,
    /// Where the next part begins.
    pub(super) next: u64,
    /// Lines before these are left out.
    pub(super) is_cut: bool,
    /// Nothing more comes.
    pub(super) is_over: bool,
}

/// The output of the iteration that was chosen, or of the newest one; `None` if there is none.
pub(super) fn tail(paths: &Paths, row: &RunRow, (stage, iteration): (Option<u32>, Option<u32>)) -> Option<LogOutput> {
    let all = log::attempts(&paths.home, &row.run_id);
    let is_chosen = |id: &&AttemptId| {
        stage.is_none_or(|stage| stage == id.stage) && iteration.is_none_or(|iteration| iteration == id.iteration)
    };
    let id = all.iter().rfind(is_chosen).copied()?;
    let attempt = Attempt::at(&paths.home, &row.run_id, id);
    let has_ended = log::has_ended(&attempt, id, &all) || row.run.status != RunStatus::Running;
    let output = attempt.output();
    let from = log::start_of_tail(&output, LINES);
    let host = log::host_of(&row.plan, id);
    let log::Chunk { lines, next } = log::chunk(&output, from, host, has_ended);
    let mut lines = log::clean_from(&output, from, host, false).lines(lines);
    // A long line may have more than a chunk.
    let is_over = has_ended && fs_err::metadata(&output).map_or(true, |file| next >= file.len());
    if is_over {
        lines.extend(logs::errors(&attempt.errors()).lines().map(str::to_owned));
    }
    Some(LogOutput { stage: id.stage, iteration: id.iteration, lines, next, is_cut: from > 0, is_over })
}
