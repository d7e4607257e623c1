//! `session search`: finds remembered events by words.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_app::overview::session::remembered_view;
use steadfast_model::{clock, text};
use steadfast_store::{Db, Hit, Scope};
use steadfast_system::project;

use super::{SessionContext, by_prefix, category, not_found, project_name};
use crate::cli::session::SearchArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput};

pub(super) fn search(context: &SessionContext, arguments: &SearchArgs) -> Result<CommandOutput, CliError> {
    let query = arguments.words.join(" ");
    if query.trim().is_empty() {
        return Err(CliError::new(
            code::USAGE,
            "the search is empty",
            "add words: steadfast session search \"parser\"",
        ));
    }
    let hits = match context.store()? {
        Some(store) => find(store.read(), context, arguments, &query)?,
        None if arguments.session.is_some() => return Err(not_found(arguments.session.as_deref().unwrap_or(""))),
        None => Vec::new(),
    };
    if hits.is_empty() {
        output::note("note: no matches");
    }
    let rows: Vec<Vec<String>> = hits
        .iter()
        .map(|hit| {
            vec![
                clock::to_local(hit.event.created_at_ms),
                text::headline(hit.event.session_id.get(..8).unwrap_or(&hit.event.session_id), 8),
                project_name(hit.project.as_deref()),
                hit.event.category.to_string(),
                text::headline(&hit.event.text, 100),
            ]
        })
        .collect();
    let views: Vec<Value> = hits.iter().map(view).collect();
    Ok(CommandOutput {
        text: output::columns(&rows),
        json: json!({"query": text::cut(&query, 400), "hits": views}),
        code: 0,
    })
}

fn find(db: Db<'_>, context: &SessionContext, arguments: &SearchArgs, query: &str) -> Result<Vec<Hit>, CliError> {
    let category = category(arguments.category.as_deref());
    let found = match (&arguments.session, &arguments.project) {
        (Some(id), _) => db.search(query, Scope::Lineage(&by_prefix(db, id)?), category, arguments.limit)?,
        (None, Some(project)) => {
            let directories = directories_of(db, context, project)?;
            db.search(query, Scope::Project(&directories), category, arguments.limit)?
        }
        (None, None) => db.search(query, Scope::All, category, arguments.limit)?,
    };
    Ok(found)
}

/// The stored directories of a project, which the user gave as a path or a name.
fn directories_of(db: Db<'_>, context: &SessionContext, named: &str) -> Result<Vec<String>, CliError> {
    if named.is_empty() {
        return Err(CliError::new(code::USAGE, "--project is empty", "use `--project .` or the name of a project"));
    }
    let is_path = named.contains('/') || matches!(named, "." | "..");
    let key = project::key(&context.directory.join(named));
    let is_meant = |directory: &String| {
        let directory = Path::new(directory);
        if is_path { project::key(directory) == key } else { directory.file_name().is_some_and(|name| name == named) }
    };
    Ok(db.project_directories()?.into_iter().filter(is_meant).collect())
}

fn view(hit: &Hit) -> Value {
    let mut view = remembered_view(&hit.event);
    view["host"] = json!(hit.host);
    view["project"] = json!(hit.project);
    view
}
