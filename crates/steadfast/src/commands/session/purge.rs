//! `session purge`: deletes session memory without asking and prints what it deleted; `--dry-run` only prints.

use std::path::Path;

use serde_json::json;
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::text;
use steadfast_store::{Db, Forgotten, PurgePart, StoreError, backups, backups_dir};

use super::{SessionContext, age, by_prefix, not_found, project_name};
use crate::cli::session::PurgeArgs;
use crate::commands::refuse_agents;
use crate::output::{self, CommandOutput, CommandResult};
use crate::progress::Bar;

pub(super) fn purge(context: &SessionContext, arguments: &PurgeArgs) -> CommandResult {
    // An agent must not delete its own traces.
    refuse_agents(&context.paths, "session purge")?;
    let Some(mut store) = context.store()? else {
        return match &arguments.id {
            Some(id) => Err(not_found(id)),
            None => Ok(report(context, arguments, &[], 0, None)),
        };
    };
    let id = arguments.id.as_deref().map(|id| by_prefix(store.read(), id)).transpose()?;
    let (ids, old) = chosen(store.read(), arguments, id.as_deref(), context.now)?;
    let mut gone;
    let mut rewritten = None;
    if arguments.dry_run {
        gone = ids.iter().map(|id| store.read().weigh(id)).collect::<Result<Vec<_>, _>>()?;
    } else {
        let mut bar = Bar::new();
        let mut progress = |part, done, total| bar.show(label(part), done, total);
        gone = store.purge(&ids, &mut progress)?;
        let erased = store.erase_deleted(&mut progress);
        bar.clear();
        rewritten = Some(tell(erased));
        if !gone.is_empty() {
            name_backups(&context.paths.store);
        }
    }
    let kept = old.saturating_sub(gone.len());
    if arguments.all {
        gone.retain(|gone| gone.events + gone.tasks + gone.stated_goals > 0);
    }
    Ok(report(context, arguments, &gone, kept, rewritten))
}

fn label(part: PurgePart) -> &'static str {
    match part {
        PurgePart::Rows => "deleting",
        PurgePart::SearchIndex => "clearing the search index",
        PurgePart::FreePages => "clearing free pages",
    }
}

/// A backup holds what was in the store when it was made.
fn name_backups(store: &Path) {
    let count = backups(store).len();
    if count > 0 {
        output::note(&format!(
            "note: {count} backups in {} still have the deleted text\nhint: delete them, or wait until newer ones replace them",
            backups_dir(store).display()
        ));
    }
}

/// Whether the deleted text is in no file any more. If some may be left, the user is warned.
fn tell(erased: Result<bool, StoreError>) -> bool {
    match erased {
        Ok(true) => {}
        Ok(false) => output::note(
            "note: the text is deleted; what earlier versions of steadfast deleted may still be in the file\n\
             hint: run `steadfast db compact` when no agent is running",
        ),
        Err(error) => {
            output::note(&format!(
                "note: the rows are deleted, but their text may still be in the file: {error}\n\
                 hint: run `steadfast session purge --older-than 36500` again later"
            ));
            return false;
        }
    }
    true
}

/// The sessions to delete, and how many old ones there are.
fn chosen(
    db: Db<'_>,
    arguments: &PurgeArgs,
    id: Option<&str>,
    now: Millis,
) -> Result<(Vec<String>, usize), StoreError> {
    Ok(match (id, arguments.older_than) {
        (Some(id), _) => (vec![id.to_owned()], 0),
        (None, Some(days)) => {
            let before = db.moment_before(Millis::from(days) * DAY, now)?;
            (db.expired_sessions(before, now)?, db.remembered_before(before)?.len())
        }
        (None, None) => (db.known_sessions()?.into_iter().map(|known| known.session_id).collect(), 0),
    })
}

fn report(
    context: &SessionContext,
    arguments: &PurgeArgs,
    gone: &[Forgotten],
    kept: usize,
    rewritten: Option<bool>,
) -> CommandOutput {
    let label = if arguments.dry_run { "would delete" } else { "deleted" };
    if gone.is_empty() {
        output::note("note: nothing to delete");
    }
    if kept > 0 {
        output::note(&format!("note: {kept} more are kept: they are running, have a live goal, or a fork needs them"));
    }
    let rows: Vec<Vec<String>> = gone
        .iter()
        .map(|gone| {
            vec![
                label.to_owned(),
                text::headline(&gone.session_id, 60),
                format!("{} ago", age(context.now, gone.last_active_ms)),
                project_name(gone.project.as_deref()),
                format!("{} events, {} tasks, {} stated goals", gone.events, gone.tasks, gone.stated_goals),
            ]
        })
        .collect();
    let json = json!({"dry_run": arguments.dry_run, "purged": gone, "kept": kept, "rewritten": rewritten});
    CommandOutput { text: output::columns(&rows), json, code: 0 }
}
