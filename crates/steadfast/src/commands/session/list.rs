//! `session list` and `session search`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_app::overview::session::{SessionLine, remembered_view, session_line};
use steadfast_app::session::SHORTEST_PREFIX;
use steadfast_model::{clock, text};
use steadfast_store::{Db, Hit, Scope, SessionActivity};
use steadfast_system::project;

use super::{SessionContext, age, by_prefix, category, not_found, project_name};
use crate::cli::session::SearchArgs;
use crate::commands::person::Sight;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(super) fn list(context: &SessionContext, all: bool, limit: usize) -> CommandResult {
    let Some(store) = context.store()? else {
        output::note("note: no sessions yet");
        return Ok(CommandOutput { text: String::new(), json: json!({"sessions": [], "left_out": 0}), code: 0 });
    };
    let sight = Sight::of_memory(&context.paths, store.read())?;
    let mut known = store.read().sessions_by_last_seen()?;
    known.retain(|known| sight.has(&known.session_id));
    let mut ids: Vec<String> = known.iter().map(|known| known.session_id.clone()).collect();
    ids.sort();
    let everywhere = known.len();
    let mut here = Directories::new(&context.directory);
    known.retain(|known| all || here.has_one_of(&known.project_dir, &known.cwd));
    let left_out = known.len().saturating_sub(limit);
    // A hook that remembers something also reports the session, so those that matter come first already.
    let mut mine = known.iter().take(limit).map(|known| store.read().session_activity(&known.session_id));
    let mut mine = mine.by_ref().collect::<Result<Vec<SessionActivity>, _>>()?;
    mine.sort_by_key(|known| std::cmp::Reverse(known.last_active_ms));
    let lines = mine.iter().map(|known| session_line(store.read(), known)).collect::<Result<Vec<_>, _>>()?;
    if lines.is_empty() && limit > 0 {
        output::note(&match everywhere {
            0 => "note: no sessions in this project".to_owned(),
            _ => format!("note: no sessions in this project; {everywhere} in other projects, use --all to list them"),
        });
    } else if left_out > 0 {
        output::note(&format!("note: {left_out} more, use --limit N to list them"));
    }
    let text = if lines.is_empty() { String::new() } else { table(&lines, &ids, context) };
    Ok(CommandOutput { text, json: json!({"sessions": lines, "left_out": left_out}), code: 0 })
}

/// Tests whether directories belong to the project of this one, and remembers the results.
pub(super) struct Directories {
    here: PathBuf,
    seen: HashMap<String, bool>,
}

impl Directories {
    pub(super) fn new(directory: &Path) -> Self {
        Self { here: project::key(directory), seen: HashMap::new() }
    }

    pub(super) fn has(&mut self, known: &SessionActivity) -> bool {
        known.session.as_ref().is_some_and(|session| self.has_one_of(&session.project_dir, &session.cwd))
    }

    fn has_one_of(&mut self, project_dir: &str, cwd: &str) -> bool {
        [project_dir, cwd].into_iter().filter(|directory| !directory.is_empty()).any(|directory| {
            let key = || project::key(Path::new(directory)) == self.here;
            *self.seen.entry(directory.to_owned()).or_insert_with(key)
        })
    }
}

fn table(lines: &[SessionLine], ids: &[String], context: &SessionContext) -> String {
    let heading = ["ID", "HOST", "ACTIVE", "PROJECT", "EVENTS", "GOAL"].map(str::to_owned).to_vec();
    let mut rows = vec![heading];
    rows.extend(lines.iter().map(|line| {
        vec![
            text::headline(shortest_unique(&line.session_id, ids), 40),
            line.host.to_string(),
            if line.alive { "now".to_owned() } else { format!("{} ago", age(context.now, line.last_active_ms)) },
            project_name(line.project.as_deref()),
            text::thousands(line.events),
            goal(line),
        ]
    }));
    output::columns(&rows)
}

/// The goal to show: the live one, else the stated one, else the ended one.
fn goal(line: &SessionLine) -> String {
    let durable = line.goal.as_ref().map(|goal| (goal.status.is_live(), goal.status.to_string(), &goal.objective));
    let stated = line.stated_goal.as_ref().map(|goal| (true, format!("stated, {}", goal.status), &goal.objective));
    let goal = durable.as_ref().filter(|(live, ..)| *live).or(stated.as_ref()).or(durable.as_ref());
    goal.map_or_else(String::new, |(_, status, objective)| format!("{status}: {}", text::headline(objective, 60)))
}

/// In a sorted list, the neighbours of an id are most alike.
fn shortest_unique<'a>(id: &'a str, sorted: &[String]) -> &'a str {
    let alike = |other: &String| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let at = sorted.partition_point(|other| other.as_str() < id);
    let neighbours = [at.wrapping_sub(1), at, at + 1].into_iter().filter_map(|at| sorted.get(at));
    let most_alike = neighbours.filter(|other| *other != id).map(alike).max().unwrap_or(0);
    let end = id.char_indices().nth((most_alike + 1).max(SHORTEST_PREFIX)).map_or(id.len(), |(at, _)| at);
    id.get(..end).unwrap_or(id)
}

pub(super) fn search(context: &SessionContext, arguments: &SearchArgs) -> CommandResult {
    let query = arguments.words.join(" ");
    if query.trim().is_empty() {
        let hint = "add words: steadfast session search \"parser\"";
        return Err(CliError::new(code::USAGE, "the search is empty", hint));
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
    let json = json!({"query": text::cut(&query, 400), "hits": views});
    Ok(CommandOutput { text: output::columns(&rows), json, code: 0 })
}

fn find(db: Db<'_>, context: &SessionContext, arguments: &SearchArgs, query: &str) -> Result<Vec<Hit>, CliError> {
    let session = arguments.session.as_deref().map(|id| by_prefix(db, id)).transpose()?;
    let project = arguments.project.as_deref().map(|named| directories_of(db, context, named)).transpose()?;
    let sight = Sight::of_memory(&context.paths, db)?;
    let scope = match (&session, &project, sight.own()) {
        (Some(id), ..) => Scope::Lineage(id),
        (None, Some(directories), _) => Scope::Project(directories),
        (None, None, None) => Scope::All,
        (None, None, Some(own)) => Scope::Lineage(own),
    };
    if let Scope::Lineage(id) = scope {
        sight.check_memory(id)?;
    }
    let mut hits = db.search(query, scope, category(arguments.category.as_deref()), arguments.limit)?;
    hits.retain(|hit| sight.has(&hit.event.session_id));
    Ok(hits)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_to_their_shortest_unique_prefix() {
        let ids: Vec<String> =
            ["019a8f00-1111", "019a8f00-1222", "6dd8620c-ffe0", "s1", "s1-longer-one"].map(Into::into).into();
        let short: Vec<&str> = ids.iter().map(|id| shortest_unique(id, &ids)).collect();
        assert_eq!(short, ["019a8f00-11", "019a8f00-12", "6dd8620c", "s1", "s1-longe"]);
    }
}
