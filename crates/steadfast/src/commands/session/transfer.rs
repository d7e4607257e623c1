//! `session export` and `session import`: session memory as JSON Lines, from one machine to another.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::json;
use steadfast_app::transfer::{self, Imported, TransferError};
use steadfast_engine::durable;
use steadfast_memory::transfer::ExportCounts;
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::text;
use steadfast_store::{Db, Store};
use steadfast_system::bounded;

use super::SessionContext;
use crate::cli::session::ExportArgs;
use crate::commands::person::Sight;
use crate::commands::refuse_agents;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// Much more than an export of years has.
const LARGEST_INPUT: u64 = 8 * 1024 * 1024 * 1024;
/// What of stdin is kept in memory; more goes to a file without a name.
const STDIN_IN_MEMORY: usize = 8 * 1024 * 1024;

pub(super) fn export(context: &SessionContext, arguments: &ExportArgs) -> CommandResult {
    let store = context.store_of(&arguments.session)?;
    let db = store.read();
    let ids = chosen(db, context, arguments)?;
    let Some(path) = arguments.output.as_deref().filter(|path| *path != Path::new("-")) else {
        output::stream(|out| Ok(transfer::export(db, &ids, context.now, out).map(drop)?))?;
        return Ok(CommandOutput::default());
    };
    if fs_err::metadata(path).is_ok_and(|found| !found.is_file()) {
        let message = format!("{} is not a file", path.display());
        return Err(CliError::new(code::USAGE, message, "name a file: --output memory.jsonl"));
    }
    let counts = durable::stream_output(path, |out| transfer::export(db, &ids, context.now, out))?;
    Ok(exported(path, &counts))
}

/// The sessions to export, the oldest first.
fn chosen(db: Db<'_>, context: &SessionContext, arguments: &ExportArgs) -> Result<Vec<String>, CliError> {
    if !arguments.all {
        return Ok(vec![context.session(db, &arguments.session)?]);
    }
    let sight = Sight::of_memory(&context.paths, db)?;
    let mut ids: Vec<String> = db.known_sessions()?.into_iter().map(|known| known.session_id).collect();
    ids.retain(|id| sight.has(id));
    ids.reverse();
    Ok(ids)
}

fn exported(path: &Path, counts: &ExportCounts) -> CommandOutput {
    let ExportCounts { sessions, stated_goals, tasks, events } = *counts;
    let text = format!(
        "exported {}, {}, {} and {} to {}",
        count(sessions, "session"),
        count(events, "event"),
        count(tasks, "task"),
        count(stated_goals, "stated goal"),
        path.display()
    );
    let json = json!({
        "path": path, "sessions": sessions, "stated_goals": stated_goals, "tasks": tasks, "events": events,
    });
    CommandOutput { text, json, code: 0 }
}

fn count(number: u64, noun: &str) -> String {
    text::count(i64::try_from(number).unwrap_or(i64::MAX), noun)
}

pub(super) fn import(context: &SessionContext, file: &Path) -> CommandResult {
    // An agent could give itself the user's rules and decisions.
    refuse_agents(&context.paths, "session import")?;
    let mut source = if file == Path::new("-") { Input::of_stdin()? } else { Input::of_file(file)? };
    let days = Millis::from(context.paths.config.memory.retention_days);
    let expires_before = (days > 0).then(|| context.now.saturating_sub(days.saturating_mul(DAY)));
    let open = || Store::open(&context.paths.store);
    let imported = transfer::import(&mut source, open, expires_before, context.now)?;
    if imported.expiring > 0 {
        let were = text::count(imported.expiring as u64, "session");
        output::note(&format!(
            "note: {were} had no activity for {days} days and will be deleted again\n\
             hint: set a longer `retention_days` under [memory] in {}",
            context.paths.home.join("config.toml").display()
        ));
    }
    Ok(report(&imported))
}

fn report(imported: &Imported) -> CommandOutput {
    let counted = |number: usize, noun| count(number as u64, noun);
    let Imported { sessions_added, sessions_extended, sessions_unchanged, .. } = *imported;
    let row = |label: &str, added: usize, here: usize, rest: String| {
        vec![label.to_owned(), format!("{added} added"), format!("{here} already here{rest}")]
    };
    let extended = if sessions_extended > 0 { format!(", {sessions_extended} more extended") } else { String::new() };
    let left_out = match imported.events_left_out {
        0 => String::new(),
        more => format!(", {} left out: a session keeps 1,000", counted(more, "event")),
    };
    let rows = [
        row("Sessions", sessions_added, sessions_unchanged, extended),
        row("Stated goals", imported.stated_goals_added, imported.stated_goals_already_here, String::new()),
        row("Tasks", imported.tasks_added, imported.tasks_already_here, String::new()),
        row("Events", imported.events_added, imported.events_already_here, left_out),
    ];
    let json = json!({
        "sessions_added": sessions_added, "sessions_extended": sessions_extended,
        "sessions_unchanged": sessions_unchanged,
        "stated_goals_added": imported.stated_goals_added,
        "stated_goals_already_here": imported.stated_goals_already_here,
        "tasks_added": imported.tasks_added, "tasks_already_here": imported.tasks_already_here,
        "events_added": imported.events_added, "events_already_here": imported.events_already_here,
        "events_left_out": imported.events_left_out, "expiring": imported.expiring,
    });
    CommandOutput { text: output::columns(&rows), json, code: 0 }
}

/// What is imported. It is read twice, so stdin is kept.
enum Input {
    File(fs_err::File),
    Stdin(tempfile::SpooledTempFile),
}

impl Input {
    fn of_file(path: &Path) -> Result<Self, CliError> {
        let hint = "give a file that `steadfast session export` wrote, or - for stdin";
        let refused = |message: String| CliError::new(code::USAGE, message, hint);
        let file = bounded::open(path).map_err(|error| refused(error.to_string()))?;
        let size = file.metadata().map_err(|error| refused(error.to_string()))?.len();
        if size > LARGEST_INPUT {
            return Err(refused(format!("`{}` is too large", path.display())));
        }
        Ok(Self::File(file))
    }

    fn of_stdin() -> Result<Self, CliError> {
        let mut kept = tempfile::spooled_tempfile(STDIN_IN_MEMORY);
        let read = io::copy(&mut io::stdin().lock().take(LARGEST_INPUT + 1), &mut kept);
        match read {
            Ok(read) if read <= LARGEST_INPUT => Ok(Self::Stdin(kept)),
            Ok(_) => Err(CliError::new(code::USAGE, "stdin is too large", "import the sessions one by one")),
            Err(error) => {
                let hint = "save the export to a file and give its path";
                Err(CliError::new(code::ENVIRONMENT, format!("cannot keep stdin: {error}"), hint))
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(into),
            Self::Stdin(kept) => kept.read(into),
        }
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Stdin(kept) => kept.seek(to),
        }
    }
}

impl From<TransferError> for CliError {
    fn from(error: TransferError) -> Self {
        let code = match &error {
            TransferError::ExportLine(_) | TransferError::Unreadable(_) => code::USAGE,
            TransferError::Unwritten(_) | TransferError::Store(_) => code::ENVIRONMENT,
        };
        Self::new(code, error.to_string(), error.hint())
    }
}
