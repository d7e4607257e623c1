//! Creates a run from a plan and drives it: in this process, in the background or in tmux. Fails while a run of the same
//! name is live.

use std::path::PathBuf;

use serde_json::{Value, json};
use steadfast_app::action::ActionError;
use steadfast_engine::files::{self, PublicFiles};
use steadfast_engine::plan::dry_run::{self, Filled};
use steadfast_engine::plan::{self, Overrides, Planned, agent_kind};
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::clock;
use steadfast_model::limit::Used;
use steadfast_model::run::{AgentKind, Plan, RunStatus, StagePlan, inputs, machine, sealed};
use steadfast_store::{Db, RunRow, Store, StoreError};
use steadfast_system::{bounded, log};

use super::{
    RunContext, background, control, driving, nested, on_fleet, permissions, preflight, publish_owed, trust, view,
};
use crate::backups;
use crate::cli::{AgentArgs, FleetArgs};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// The most bytes of `--input` files together.
const MOST_INPUT: usize = 400_000;
/// How many earlier runs are looked at for files that are still to be written.
const MOST_PUBLISHED: usize = 1_000;

/// Where the engine of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum How {
    Foreground,
    Detached,
    Tmux,
}

pub(in crate::commands) struct NewRun {
    pub(in crate::commands) run_id: String,
    pub(in crate::commands) planned: Planned,
    /// The text of the input files, if a prompt shows it.
    pub(in crate::commands) inputs: Option<String>,
    pub(in crate::commands) input_files: Vec<PathBuf>,
    pub(in crate::commands) worktree: bool,
    /// Trust what the run uses of the repository.
    pub(in crate::commands) trust: bool,
    pub(in crate::commands) sandbox: bool,
    pub(in crate::commands) how: How,
    pub(in crate::commands) dry_run: bool,
    /// Start it on the fleet.
    pub(in crate::commands) fleet: Option<FleetArgs>,
    /// What a headless goal pursues.
    pub(in crate::commands) objective: Option<String>,
}

/// Creates a run and drives it. `besides` writes to the store in the same transaction, and gets the plan as it is stored.
pub(in crate::commands) fn start(
    context: &RunContext,
    new: &NewRun,
    besides: impl FnOnce(Db<'_>, &Plan) -> Result<(), ActionError>,
) -> CommandResult {
    let mut plan = new.planned.plan.clone();
    plan.limits.back_off_ms = context.paths.config.runs.back_off_ms.max(0);
    if !new.planned.warnings.is_empty() {
        output::note(&view::format_faults(&new.planned.warnings));
    }
    permissions::apply_sandbox(context, &mut plan, new.sandbox)?;
    context.note_project();
    if new.dry_run {
        return dry_run_page(new, &plan);
    }
    if let Some(fleet) = &new.fleet {
        return on_fleet::submit(context, new, plan, fleet);
    }
    let above = nested::above(context)?;
    let scripts = trust::require(context, &new.planned.used, &plan, new.trust)?;
    if let Some(above) = &above {
        plan.limits.limits = above.limits(plan.limits.limits, &Used::default());
    }
    if new.how == How::Tmux {
        background::refuse_taken_tmux(plan.kind, &plan.name)?;
    }
    control::apply_registry_kills(context);
    preflight::prepare(context, &mut plan, new.worktree)?;
    // Fail before anything is created if the state files cannot be written.
    let files = PublicFiles::open(&context.project, plan.kind, &plan.name)?;
    files.check(&plan)?;
    let mut store = Store::open(&context.paths.store)?;
    refuse_name_in_other_store(context, &store, &plan.name)?;
    if store.read().run(&new.run_id)?.is_some() {
        let message = format!("run {} exists already", new.run_id);
        return Err(CliError::new(code::WRONG_STATE, message, "leave `--run-id` out"));
    }
    // Before the folder of an earlier run is moved aside.
    publish_owed(&context.paths, &store, Some(&context.project), MOST_PUBLISHED, &output::note)?;
    let home = &context.paths.home;
    RunFolder::create(home, &new.run_id, new.planned.definition.as_deref(), new.inputs.as_deref(), new.worktree)?;
    RunFolder::at(home, &new.run_id).set_scripts(&scripts)?;
    RunFolder::at(home, &new.run_id).set_input_files(&new.input_files)?;
    RunFolder::at(home, &new.run_id).seal(&plan)?;
    let project = context.project_dir();
    let run = machine::begin(&plan, context.now);
    let made = store.write(|db| {
        let row = db.create_run(&new.run_id, &project, &plan, &run, context.now)?;
        if let Some(above) = &above {
            db.set_nesting(&new.run_id, &above.nesting)?;
        }
        besides(db, &plan)?;
        Ok(row)
    });
    let row = match made {
        Ok(row) => row,
        Err(error) => {
            // Nothing refers to the new directory yet, unless another process created a run with the same `--run-id`.
            if store.read().run(&new.run_id).is_ok_and(|row| row.is_none()) {
                let _ = fs_err::remove_dir_all(RunFolder::at(home, &new.run_id).path());
            }
            return Err(match error {
                ActionError::Store(StoreError::RunIsLive { .. }) => name_in_use(context, &store, &plan.name),
                other => other.into(),
            });
        }
    };
    drop(store);
    if let Some(message) = preflight::not_in_worktrees(context, &plan, new.worktree) {
        log::line(&RunFolder::at(home, &new.run_id).engine_log(), &message);
        output::note(&format!("note: {message}"));
    }
    permissions::print_once(context, &row.plan);
    if let Some(note) = dry_run::budget_note(&row.plan) {
        output::note(&format!("note: {note}"));
    }
    launch(context, &row, new.how)
}

fn dry_run_page(new: &NewRun, plan: &Plan) -> CommandResult {
    let inputs = new.inputs.as_deref().unwrap_or_default();
    let text = format!("{}\n(read from {})", dry_run::dry_run(plan, inputs)?.trim_end(), new.planned.file);
    let object = |filled: Filled| {
        json!({
            "stage": filled.stage, "iteration": filled.iteration, "perspective": filled.perspective,
            "prompt": filled.prompt, "unknown": filled.unknown,
        })
    };
    let prompts: Value = dry_run::prompts(plan, inputs)?.into_iter().map(object).collect();
    let warnings = view::faults_json(&new.planned.warnings);
    let (plan, _) = sealed::seal(plan).map_err(std::io::Error::from)?;
    let json = json!({"plan": plan, "prompts": prompts, "file": new.planned.file, "warnings": warnings});
    Ok(CommandOutput { text, json, code: 0 })
}

pub(super) fn launch(context: &RunContext, row: &RunRow, how: How) -> CommandResult {
    RunFolder::at(&context.paths.home, &row.run_id).set_detached(how == How::Detached)?;
    if let Some(mut child) = backups::ensure(&context.paths) {
        // An engine in this process lives on, and would keep a zombie.
        std::thread::spawn(move || child.wait());
    }
    match how {
        How::Foreground => driving::in_foreground(context, row),
        How::Detached => background::detach(context, row),
        How::Tmux => background::in_tmux(context, row),
    }
}

/// Fails if an engine with another store holds the name. For runs of this store, `create_run` fails with more detail.
fn refuse_name_in_other_store(context: &RunContext, store: &Store, name: &str) -> Result<(), CliError> {
    let Some(holder) = files::holder(&context.project, context.kind, name)? else { return Ok(()) };
    let is_ours = match &holder.run_id {
        Some(run_id) => store.read().run(run_id)?.is_some(),
        None => false,
    };
    if is_ours { Ok(()) } else { Err(driving::running_elsewhere(context.kind, name, &holder)) }
}

/// The error for a second live run of a name, with what can be done about the first.
fn name_in_use(context: &RunContext, store: &Store, name: &str) -> CliError {
    let kind = context.kind;
    let row = store.read().newest_run(&context.project_dir(), kind, name).ok().flatten();
    let row = row.filter(|row| row.run.status == RunStatus::Running);
    let is_driven = row.as_ref().is_none_or(|row| context.is_driven(&row.run_id).unwrap_or(true));
    let is_live = row.as_ref().is_none_or(|row| context.is_live(row).unwrap_or(true));
    let (state, verbs) = if is_driven {
        let pid = row.and_then(|row| row.engine).map(|engine| format!(" (pid {})", engine.pid)).unwrap_or_default();
        (format!("is already running{pid}"), format!("attach {name}` watches it, `kill {name}` ends it"))
    } else if is_live {
        ("is starting".to_owned(), format!("attach {name}` watches it"))
    } else {
        let verbs = format!("resume {name}` resumes it, `kill {name}` ends it");
        ("has not ended, but its engine is gone".to_owned(), verbs)
    };
    let hint = format!("`steadfast {kind} {verbs}; or choose another name");
    CliError::new(code::WRONG_STATE, format!("{kind} {name} {state}"), hint)
}

pub(in crate::commands) fn agent_overrides(context: &RunContext, arguments: &AgentArgs) -> Result<Overrides, CliError> {
    let usage = |message: String, hint: &str| CliError::new(code::USAGE, message, hint);
    let parse_timeout = |text: &String| {
        let timeout = clock::parse_duration(text).filter(|timeout| *timeout > 0);
        timeout.ok_or_else(|| usage(format!("invalid duration `{text}`"), "for example: --timeout 90s, --timeout 2h"))
    };
    Ok(Overrides {
        agent: arguments.agent.as_deref().map(|text| parse_agent(context, text)).transpose()?,
        model: arguments.model.clone(),
        user_hooks: arguments.user_hooks.then_some(true),
        timeout_ms: arguments.timeout.as_ref().map(parse_timeout).transpose()?,
        ..Overrides::default()
    })
}

/// Reads the value of `--agent`. A program is looked for in the user's directory, then in the project.
pub(super) fn parse_agent(context: &RunContext, text: &str) -> Result<AgentKind, CliError> {
    let mut kind = agent_kind(text).map_err(|(what, fix)| CliError::new(code::USAGE, what, fix))?;
    if let AgentKind::Command(words) = &mut kind
        && let Some(program) = words.first_mut().filter(|program| program.contains('/'))
    {
        *program = context.resolve(program);
    }
    Ok(kind)
}

pub(in crate::commands) fn check_commands(commands: &[String]) -> Result<(), CliError> {
    match commands.iter().find(|command| command.trim().is_empty() || command.contains('\0')) {
        Some(command) => {
            let message = format!("invalid command `{command}`");
            Err(CliError::new(code::USAGE, message, "for example: --verify \"cargo test\""))
        }
        None => Ok(()),
    }
}

/// The files that a pipeline and `--input` name.
pub(in crate::commands) fn input_files(
    context: &RunContext,
    of_pipeline: &[String],
    flags: &[PathBuf],
) -> Result<Vec<PathBuf>, CliError> {
    let of_flags = flags.iter().map(|path| (context.resolve(&path.to_string_lossy()), false));
    let mut files = Vec::new();
    for (pattern, inside) in of_pipeline.iter().map(|pattern| (pattern.clone(), true)).chain(of_flags) {
        let found = plan::input_files(&context.project, &pattern, inside)
            .map_err(|error| CliError::new(code::USAGE, error.to_string(), error.hint()))?;
        files.extend(found.into_iter().filter(|file| !files.contains(file)).collect::<Vec<_>>());
    }
    Ok(files)
}

/// The text of input files: one file as it is, several with their names as headings. `None` if no prompt shows it.
pub(in crate::commands) fn inputs_text(plan: &Plan, files: &[PathBuf]) -> Result<Option<String>, CliError> {
    let shows = |stage: &StagePlan| inputs::with_inputs_appended(&stage.prompt, true).contains("${INPUTS}");
    if !plan.stages.iter().any(shows) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for path in files {
        let bytes = bounded::whole(path, 16 * 1024 * 1024)
            .map_err(|error| CliError::new(code::USAGE, error.to_string(), "--input takes a readable text file"))?;
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
        let message = format!("input is {} bytes; the maximum is {MOST_INPUT}", text.len());
        return Err(CliError::new(code::USAGE, message, "name the file in the prompt instead: agents read files"));
    }
    Ok(Some(text))
}
