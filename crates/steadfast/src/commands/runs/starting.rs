//! Making a run of a plan: refused while one of that name lives, kept in the store, then driven here, in the
//! background or in tmux.

use std::path::PathBuf;

use serde_json::json;
use steadfast_core::action::ActionError;
use steadfast_core::run::machine;
use steadfast_core::run::{Plan, RunStatus};
use steadfast_core::store::{Db, RunRow, Store, StoreError};
use steadfast_core::{log, text};
use steadfast_engine::files::{self, PublicFiles};
use steadfast_engine::plan::{Planned, dry_run};
use steadfast_engine::run_folder::RunFolder;

use super::finding::called;
use super::{Here, detaching, driving, ending, preflight, view};
use crate::failure::{Failure, code};
use crate::output::{self, Done};

/// The most bytes of `--input` files together.
const MOST_INPUT: usize = 400_000;

/// Who drives a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum How {
    Here,
    Detached,
    Tmux,
}

pub(in crate::commands) struct NewRun {
    pub(in crate::commands) run_id: String,
    pub(in crate::commands) planned: Planned,
    pub(in crate::commands) inputs: Option<String>,
    pub(in crate::commands) worktree: bool,
    pub(in crate::commands) how: How,
    pub(in crate::commands) dry_run: bool,
}

/// Makes a run and lets it run. `besides` may add to the store what the run is never without.
pub(in crate::commands) fn start(
    here: &Here,
    new: &NewRun,
    besides: impl FnOnce(Db<'_>) -> Result<(), ActionError>,
) -> Result<Done, Failure> {
    let mut plan = new.planned.plan.clone();
    plan.limits.back_off_ms = here.paths.config.runs.back_off_ms.max(0);
    if !new.planned.warnings.is_empty() {
        output::note(&view::told(&new.planned.warnings));
    }
    if new.dry_run {
        return shown(new, &plan);
    }
    if new.how == How::Tmux {
        detaching::refuse_taken_tmux(plan.kind, &plan.name)?;
    }
    ending::obey_marks(here);
    preflight::prepare(here, &mut plan, new.worktree)?;
    // Nothing is made for a project whose files cannot be written.
    let files = PublicFiles::open(&here.project, plan.kind, &plan.name)?;
    files.check(&plan)?;
    let mut store = Store::open(&here.paths.store)?;
    refuse_held(here, &store, &plan.name)?;
    let home = &here.paths.home;
    RunFolder::create(home, &new.run_id, new.planned.definition.as_deref(), new.inputs.as_deref(), new.worktree)?;
    let project = here.project_dir();
    let run = machine::begin(&plan, here.now);
    let made = store.write(|db| {
        let row = db.create_run(&new.run_id, &project, &plan, &run, here.now)?;
        besides(db)?;
        Ok(row)
    });
    let row = match made {
        Ok(row) => row,
        Err(error) => {
            // It was made a moment ago, and nobody knows of it.
            let _ = fs_err::remove_dir_all(RunFolder::at(home, &new.run_id).path());
            return Err(match error {
                ActionError::Store(StoreError::RunIsLive { .. }) => is_live(here, &store, &plan.name),
                other => other.into(),
            });
        }
    };
    drop(store);
    if let Some(message) = preflight::not_in_worktrees(here, &plan, new.worktree) {
        log::line(&RunFolder::at(home, &new.run_id).engine_log(), &message);
        output::note(&message);
    }
    launch(here, &row, new.how)
}

/// `--dry-run`: what would be done.
fn shown(new: &NewRun, plan: &Plan) -> Result<Done, Failure> {
    let inputs = new.inputs.as_deref().unwrap_or_default();
    let text = format!("{}\n(read from {})", dry_run::dry_run(plan, inputs)?.trim_end(), new.planned.file);
    let prompts: Vec<_> = dry_run::prompts(plan, inputs)?
        .into_iter()
        .map(|filled| {
            json!({
                "stage": filled.stage,
                "iteration": filled.iteration,
                "perspective": filled.perspective,
                "prompt": filled.prompt,
                "unknown": filled.unknown,
            })
        })
        .collect();
    let warnings = view::faults_json(&new.planned.warnings);
    let json = json!({"plan": plan, "prompts": prompts, "file": new.planned.file, "warnings": warnings});
    Ok(Done { text, json, code: 0 })
}

/// Drives a run that is in the store.
pub(super) fn launch(here: &Here, row: &RunRow, how: How) -> Result<Done, Failure> {
    match how {
        How::Here => driving::in_foreground(here, row),
        How::Detached => detaching::detach(here, row),
        How::Tmux => detaching::in_tmux(here, row),
    }
}

/// Refuses a name that an engine with another store has in hand. What this store has, it tells better itself.
fn refuse_held(here: &Here, store: &Store, name: &str) -> Result<(), Failure> {
    let Some(holder) = files::holder(&here.project, here.kind, name)? else { return Ok(()) };
    let is_ours = match &holder.run_id {
        Some(run_id) => store.read().run(run_id)?.is_some(),
        None => false,
    };
    if is_ours { Ok(()) } else { Err(driving::running_elsewhere(here.kind, name, &holder)) }
}

/// Why a second run of a name is refused, with what can be done about the first.
fn is_live(here: &Here, store: &Store, name: &str) -> Failure {
    let kind = here.kind;
    let row = store.read().newest_run(&here.project_dir(), kind, name).ok().flatten();
    let row = row.filter(|row| row.run.status == RunStatus::Running);
    let is_driven = row.as_ref().is_some_and(|row| here.is_driven(&row.run_id).unwrap_or(true));
    if let Some(row) = row.as_ref().filter(|_| !is_driven) {
        if here.is_live(row).unwrap_or(true) {
            return Failure::new(
                code::WRONG_STATE,
                format!("{} is starting", called(kind, name)),
                format!("`steadfast {kind} attach {name}` watches it; or choose another name"),
            );
        }
        return Failure::new(
            code::WRONG_STATE,
            format!("{} has not ended, but its engine is gone", called(kind, name)),
            format!("`steadfast {kind} resume {name}` goes on with it, `kill {name}` ends it; or choose another name"),
        );
    }
    let pid = row.and_then(|row| row.engine).map(|engine| format!(" (pid {})", engine.pid)).unwrap_or_default();
    Failure::new(
        code::WRONG_STATE,
        format!("{} is running already{pid}", called(kind, name)),
        format!("`steadfast {kind} attach {name}` watches it, `kill {name}` ends it; or choose another name"),
    )
}

/// The text of `--input` files: one as it is, several under their names.
pub(in crate::commands) fn inputs_text(files: &[PathBuf]) -> Result<Option<String>, Failure> {
    let mut parts = Vec::new();
    for path in files {
        let bytes = fs_err::read(path).map_err(|error| {
            Failure::new(code::USAGE, error.to_string(), "--input FILE, a text file that can be read")
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        parts.push((name, String::from_utf8_lossy(&bytes).into_owned()));
    }
    let text = match parts.as_slice() {
        [] => return Ok(None),
        [(_, only)] => only.clone(),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(name, text)| format!("## {name}\n\n{}\n", text.trim_end())).collect();
            parts.join("\n")
        }
    };
    if text.len() > MOST_INPUT {
        let message = format!("the input has {} bytes, and {MOST_INPUT} are the most", text::thousands(len(&text)));
        return Err(Failure::new(code::USAGE, message, "name the file in the prompt instead: agents read files"));
    }
    Ok(Some(text))
}

fn len(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
