//! Appointments: `run … --at TIME` puts a run off, `--every D` repeats it, `cancel` ends that. Everything is checked when
//! the appointment is made; `steadfast watch` keeps it. Only a person makes or cancels one.

use serde_json::json;
use steadfast_app::overview::runs::talk::AppointmentView;
use steadfast_engine::plan::Planned;
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::RunKind;
use steadfast_model::run::appointment::{SHORTEST, next_after};
use steadfast_model::run::name::RunName;
use steadfast_model::text;
use steadfast_store::{Appointment, Store, StoreError};
use steadfast_system::watch_lock;

use super::{RunContext, input_files, inputs_text, permissions, preflight, trust};
use crate::cli::RunHow;
use crate::commands::refuse_agents;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};
use crate::watch;

/// Flags that belong to the appointment or to this call, and not to the runs. Whether a definition is trusted is asked
/// again at each start, because it may have changed.
const WITH_VALUE: [&str; 3] = ["--every", "--at", "--db"];
const WITHOUT_VALUE: [&str; 3] = ["--detach", "--json", "--trust"];

/// Makes an appointment for the run of a plan.
pub(in crate::commands) fn make(
    context: &RunContext,
    planned: &Planned,
    name: Option<&str>,
    how: &RunHow,
) -> CommandResult {
    refuse_agents(&context.paths, "run --at or --every")?;
    if context.kind == RunKind::Pipeline && name.is_none() {
        let message = "an appointment needs a name, because each of its runs has the same one";
        return Err(CliError::new(code::USAGE, message, "for example: pipeline run FILE nightly --every 1d"));
    }
    let (first, every) = times(how, context.now)?;
    let mut plan = planned.plan.clone();
    permissions::apply_sandbox(context, &mut plan, how.agent.sandbox)?;
    trust::require(context, &planned.used, &plan, how.agent.trust)?;
    preflight::prepare(context, &mut plan, how.worktree)?;
    inputs_text(&plan, &input_files(context, &planned.inputs, &how.input)?)?;
    let appointment_id = uuid::Uuid::new_v4().to_string();
    let folder = RunFolder::at(&context.paths.home, &appointment_id);
    let new = Appointment {
        appointment_id,
        kind: plan.kind,
        name: plan.name.clone(),
        project_dir: context.project_dir(),
        directory: super::current_dir()?.to_string_lossy().into_owned(),
        arguments: folder.seal_words(&arguments_of_runs()?)?,
        every_ms: every,
        first_at_ms: first,
        next_at_ms: Some(first),
        made_at_ms: context.now,
        last_at_ms: None,
        last_run_id: None,
        last_error: None,
        claimed_at_ms: None,
    };
    let mut store = Store::open(&context.paths.store)?;
    let (kind, name) = (plan.kind, &plan.name);
    if let Some(open) = store.write(|db| db.add_appointment(&new))? {
        folder.forget_words();
        let message = format!("{kind} {name} already has an appointment ({})", when(&open));
        let hint = format!("`steadfast {kind} cancel {name}` cancels it; or choose another name");
        return Err(CliError::new(code::WRONG_STATE, message, hint));
    }
    drop(store);
    permissions::print_once(context, &plan);
    watch::ensure(&context.paths);
    let text = format!(
        "{kind} {name} starts {}\n`steadfast watch` starts it and must run then; `steadfast {kind} cancel {name}` cancels it",
        when(&new)
    );
    Ok(CommandOutput { text, json: json!({"appointment": AppointmentView::from(&new)}), code: 0 })
}

/// The first time, and the time between two starts.
fn times(how: &RunHow, now: Millis) -> Result<(Millis, Option<Millis>), CliError> {
    let usage = |message: String, hint: &str| CliError::new(code::USAGE, message, hint);
    let parse_every = |text: &String| {
        let every = clock::parse_duration(text).filter(|every| *every >= SHORTEST);
        let hint = "a duration of a minute or more: --every 90m, --every 1d";
        every.ok_or_else(|| usage(format!("invalid interval `{}`", text::headline(text, 60)), hint))
    };
    let every = how.every.as_ref().map(parse_every).transpose()?;
    let first = match &how.at {
        Some(text) => {
            let hint = "a time to come: --at 22:00, --at \"2026-12-01 03:00\", --at \"in 2h\"";
            let invalid = || usage(format!("invalid time `{}`", text::headline(text, 60)), hint);
            clock::parse_moment(text, now).filter(|at| *at > now).ok_or_else(invalid)?
        }
        None => every.and_then(|every| next_after(now, every, now)).unwrap_or(now),
    };
    Ok((first, every))
}

/// The command line of this process as its runs get it.
fn arguments_of_runs() -> Result<Vec<String>, CliError> {
    let readable = |word: std::ffi::OsString| {
        word.into_string().map_err(|_| CliError::new(code::USAGE, "an argument is not UTF-8", "rename the file"))
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(readable).collect::<Result<_, _>>()?;
    Ok(for_runs(words))
}

/// Leaves out what belongs to the appointment, and puts `loop run` or `pipeline run` first.
fn for_runs(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let is_short = |word: &str| word.strip_prefix('-').is_some_and(|flags| flags == "j" || flags == "d");
        let is_both_short = matches!(word.as_str(), "-jd" | "-dj");
        if word == "--" {
            kept.push(word);
            kept.extend(words);
            return kept;
        }
        if WITH_VALUE.contains(&name) {
            if name == word {
                words.next();
            }
        } else if !WITHOUT_VALUE.contains(&name) && !is_short(&word) && !is_both_short {
            kept.push(word);
        }
    }
    kept
}

pub(super) fn cancel(context: &RunContext, name: &str) -> CommandResult {
    refuse_agents(&context.paths, "cancel")?;
    let name: RunName = name.parse()?;
    let (kind, name) = (context.kind, name.as_str());
    let project = context.project_dir();
    let removed = match context.existing_store()? {
        Some(mut store) => {
            let (removed, rows) = store.write(|db| {
                let rows = db.appointments(Some(&project), Some(kind))?;
                Ok::<_, StoreError>((db.remove_appointment(&project, kind, name)?, rows))
            })?;
            for row in rows.iter().filter(|row| row.name == name) {
                RunFolder::at(&context.paths.home, &row.appointment_id).forget_words();
            }
            removed
        }
        None => false,
    };
    if !removed {
        let message = format!("{kind} {name} has no appointment in {}", context.project_dir());
        let hint = format!("`steadfast {kind} list` lists them; `steadfast {kind} kill {name}` ends a run");
        return Err(CliError::new(code::NOT_FOUND, message, hint));
    }
    Ok(CommandOutput {
        text: format!("cancelled; a run of {kind} {name} that has started continues"),
        json: json!({"cancelled": name, "kind": kind}),
        code: 0,
    })
}

/// The appointments that `list` shows. `steadfast watch` is started if one is to come.
pub(super) fn listed(context: &RunContext, store: &Store, all: bool) -> Result<Vec<AppointmentView>, CliError> {
    let project = context.project_dir();
    let rows = store.read().appointments((!all).then_some(project.as_str()), Some(context.kind))?;
    if rows.iter().any(Appointment::is_open) {
        watch::ensure(&context.paths);
    }
    Ok(rows.iter().map(AppointmentView::from).collect())
}

/// The lines of appointments below the list of runs.
pub(super) fn list_lines(context: &RunContext, appointments: &[AppointmentView]) -> Vec<String> {
    if appointments.is_empty() {
        return Vec::new();
    }
    let row = |view: &AppointmentView| {
        let every = view.every_seconds.map(|every| format!("every {}", interval(every)));
        let next = view.next_at.map_or_else(|| "over".to_owned(), |at| clock::to_local(at.0));
        let error = view.last_error.as_deref().map(|error| text::headline(error, 80));
        vec![view.name.clone(), next, every.unwrap_or_default(), error.unwrap_or_default()]
    };
    let heads = ["APPOINTMENT", "NEXT", "EVERY", "LAST ERROR"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(appointments.iter().map(row)).collect();
    let mut lines = vec![String::new(), output::columns(&rows)];
    if appointments.iter().any(|view| view.next_at.is_some()) && !watch_lock::is_held(&context.paths.home) {
        lines.push("`steadfast watch` keeps them, and does not run now: `steadfast watch --detach`".to_owned());
    }
    lines
}

/// A time span as its flag takes it.
fn interval(seconds: i64) -> String {
    match seconds {
        _ if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        _ if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        _ if seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// The times of an appointment, in words.
fn when(row: &Appointment) -> String {
    let next = row.next_at_ms.map_or_else(|| "now".to_owned(), |at| format!("at {}", clock::to_local(at)));
    let every = row.every_ms.map(|every| format!(", then every {}", interval(every / 1_000)));
    next + &every.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_get_the_command_line_without_what_belongs_to_the_appointment() {
        let line = "loop run work nightly --every 1d --usd 5 -d --at=22:00 --json --trust --db /s.db --agent ./a.sh";
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(for_runs(words(line)), words("loop run work nightly --usd 5 --agent ./a.sh"));
        assert_eq!(for_runs(words("--json loop run -jd work -- --every")), words("loop run work -- --every"));
    }
}
