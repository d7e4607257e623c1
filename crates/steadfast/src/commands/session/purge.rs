//! `session purge`: deletes session memory without asking and prints what it deleted; `--dry-run` only prints.

use serde_json::json;
use steadfast_app::action::{self, ActionError};
use steadfast_app::caller;
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::goal::Actor;
use steadfast_model::text;
use steadfast_store::{Db, Forgotten, Origin, Store, StoreError};

use super::{SessionContext, age, by_prefix, not_found, project_name};
use crate::cli::session::PurgeArgs;
use crate::commands::person;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

const VERB: &str = "session purge";

pub(super) fn purge(context: &SessionContext, arguments: &PurgeArgs) -> CommandResult {
    let store = context.store()?;
    if person::caller(&context.paths).is_agent() {
        return Err(refuse(context, store)?);
    }
    let Some(mut store) = store else {
        return match &arguments.id {
            Some(id) => Err(not_found(id)),
            None => Ok(report(context, arguments, &[], 0, None)),
        };
    };
    let id = arguments.id.as_deref().map(|id| by_prefix(store.read(), id)).transpose()?;
    let forget = |db: Db<'_>| forget(db, arguments, id.as_deref(), context.now);
    let (gone, kept) = if arguments.dry_run { forget(store.read())? } else { store.write(forget)? };
    let rewritten = (!arguments.dry_run).then(|| rewrite(&store));
    Ok(report(context, arguments, &gone, kept, rewritten))
}

/// Rewrites the store so that the deleted text is not in the file any more. If that fails, the user is warned.
fn rewrite(store: &Store) -> bool {
    let Err(error) = store.rewrite() else { return true };
    output::note(&format!(
        "note: the rows are deleted, but their text may still be in the file: {error}\n\
         hint: run `steadfast session purge --older-than 36500` when no agent is running"
    ));
    false
}

/// An agent must not delete its own traces. The attempt is logged on its goal.
fn refuse(context: &SessionContext, store: Option<Store>) -> Result<CliError, CliError> {
    if let Some(mut store) = store
        && let Some(own) = caller::own_sessions(store.read())?.first()
    {
        let origin = Origin { actor: Actor::Worker, place: "cli" };
        if let Err(ActionError::Store(error)) = action::refuse_agent(&mut store, own, VERB, origin, context.now) {
            return Err(error.into());
        }
    }
    let message = ActionError::NotForAgents(VERB).to_string();
    Ok(CliError::new(code::WRONG_STATE, message, "run the command in your own terminal"))
}

/// Deletes the chosen sessions, or with `--dry-run` only counts their rows. Returns them, with the number of old sessions
/// that stay.
fn forget(
    db: Db<'_>,
    arguments: &PurgeArgs,
    id: Option<&str>,
    now: Millis,
) -> Result<(Vec<Forgotten>, usize), StoreError> {
    let (ids, old) = match (id, arguments.older_than) {
        (Some(id), _) => (vec![id.to_owned()], 0),
        (None, Some(days)) => {
            let before = now - Millis::from(days) * DAY;
            (db.expired_sessions(before, now)?, db.remembered_before(before)?.len())
        }
        (None, None) => (db.known_sessions()?.into_iter().map(|known| known.session_id).collect(), 0),
    };
    let mut gone = if arguments.dry_run {
        ids.iter().map(|id| db.weigh(id)).collect::<Result<Vec<_>, _>>()?
    } else {
        db.purge_each(&ids)?
    };
    let kept = old.saturating_sub(gone.len());
    if arguments.all {
        gone.retain(|gone| gone.events + gone.tasks + gone.stated_goals > 0);
    }
    Ok((gone, kept))
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
