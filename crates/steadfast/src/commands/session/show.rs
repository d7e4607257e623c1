//! `session show`, `events` and `snapshot`, which print one session.

use std::path::Path;

use serde_json::json;
use steadfast_app::native;
use steadfast_app::overview::session::{Counted, SessionView, remembered_view, session_view};
use steadfast_app::overview::snapshot::{Occasion, snapshot_text};
use steadfast_memory::snapshot::After;
use steadfast_model::memory::TaskStatus;
use steadfast_model::{clock, text};
use steadfast_store::MemoryFilter;

use super::{SessionContext, category, not_found};
use crate::cli::session::{EventsArgs, WhichSession};
use crate::output::{self, CommandOutput, CommandResult};

/// Tasks printed as text; JSON has all of them.
const TASKS_SHOWN: usize = 20;
/// Ended stated goals printed as text; JSON has all of them.
const GOALS_SHOWN: usize = 5;

pub(super) fn show(context: &SessionContext, which: &WhichSession) -> CommandResult {
    let store = context.store_of(which)?;
    let id = context.session(store.read(), which)?;
    let view = session_view(store.read(), &id, &context.paths, context.now)?.ok_or_else(|| not_found(&id))?;
    let text = describe(&view);
    let mut json = json!(view);
    // Scripts read `goal` for both kinds of goals.
    if let (None, Some(stated)) = (&view.goal, &view.stated_goal) {
        json["goal"] = json!({"stated": true, "objective": stated.objective, "status": stated.status});
    }
    Ok(CommandOutput { text, json, code: 0 })
}

fn describe(view: &SessionView) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |label: &str, value: String| {
        if !value.is_empty() {
            rows.push(vec![label.to_owned(), value]);
        }
    };
    let state = if view.alive { "runs" } else { "closed" };
    row("Session", format!("{} ({}, {state})", text::printable(&view.session_id), view.host.capabilities().product));
    row("Project", view.project.as_deref().map(text::printable).unwrap_or_default());
    row("Started", view.started_at_ms.map(clock::to_local).unwrap_or_default());
    row("Last active", clock::to_local(view.last_active_ms));
    if let Some(parent) = &view.parent {
        let link = parent.link.map(|link| format!(" ({link})")).unwrap_or_default();
        row("Came from", format!("{}{link}", text::headline(&parent.session_id, 80)));
    }
    if let Some(goal) = &view.goal {
        row("Goal", format!("{}: {}", goal.status, text::headline(&goal.objective, 90)));
    }
    if let Some(goal) = &view.stated_goal {
        row("Stated goal", format!("{}: {}", goal.status, text::headline(&goal.objective, 90)));
    }
    let ended: Vec<_> = view.stated_goals.iter().filter(|goal| !goal.status.holds()).collect();
    let left_out = ended.len().saturating_sub(GOALS_SHOWN);
    if left_out > 0 {
        row("Earlier goals", format!("{left_out} more, use --json to list them"));
    }
    for goal in ended.iter().skip(left_out) {
        row("Earlier goal", format!("{}: {}", goal.status, text::headline(&goal.objective, 90)));
    }
    if view.compactions > 0 {
        row("Compactions", view.compactions.to_string());
    }
    if let Some(snapshot) = &view.snapshot {
        let characters = i64::try_from(snapshot.characters).unwrap_or(i64::MAX);
        let injected = match (snapshot.injected_at_ms, &snapshot.injected_by) {
            (Some(at), Some(by)) => Some(format!("injected {} ({})", clock::to_local(at), text::headline(by, 20))),
            _ => None,
        };
        // A snapshot of 0 characters was injected from another session.
        let size = format!("{} characters", text::thousands(characters));
        let size = (characters > 0 || injected.is_none()).then_some(size);
        row("Snapshot", size.into_iter().chain(injected).collect::<Vec<_>>().join(", "));
    }
    let mut parts = vec![output::columns(&rows)];
    if !view.analytics.is_empty() {
        let count = |counted: &Counted| vec![counted.label.to_owned(), text::thousands(counted.count)];
        parts.push(output::columns(&view.analytics.iter().map(count).collect::<Vec<_>>()));
    }
    if !view.tasks.is_empty() {
        parts.push(tasks(view));
    }
    parts.join("\n\n")
}

/// The tasks, open ones first.
fn tasks(view: &SessionView) -> String {
    let mut tasks: Vec<_> = view.tasks.iter().collect();
    tasks.sort_by_key(|task| !task.status.is_open());
    let mut lines: Vec<String> = tasks
        .iter()
        .take(TASKS_SHOWN)
        .map(|task| {
            let mark = match task.status {
                TaskStatus::Pending => "[ ]",
                TaskStatus::InProgress => "[~]",
                TaskStatus::Completed | TaskStatus::Deleted => "[x]",
            };
            format!("{mark} {}", text::headline(&task.subject, 90))
        })
        .collect();
    if view.tasks_left_out > 0 {
        lines.push(format!("and {} more that were not stored", text::thousands(view.tasks_left_out)));
    }
    if tasks.len() > TASKS_SHOWN {
        lines.push(format!("and {} more tasks", tasks.len() - TASKS_SHOWN));
    }
    lines.join("\n")
}

pub(super) fn events(context: &SessionContext, arguments: &EventsArgs) -> CommandResult {
    let store = context.store_of(&arguments.session)?;
    let id = context.session(store.read(), &arguments.session)?;
    let filter = MemoryFilter { category: category(arguments.category.as_deref()), after: arguments.after };
    let events = store.read().events_of(&id, filter, arguments.limit)?;
    if events.is_empty() {
        output::note("note: no events");
    }
    let rows: Vec<Vec<String>> = events
        .iter()
        .map(|event| {
            let times = if event.repeats > 1 { format!(" (×{})", event.repeats) } else { String::new() };
            let fixed = if event.resolved { " (works now)" } else { "" };
            vec![
                event.id.to_string(),
                clock::to_local(event.created_at_ms),
                format!("{}/{}", event.category, text::headline(&event.kind, 20)),
                format!("{}{times}{fixed}", text::headline(&event.text, 100)),
            ]
        })
        .collect();
    let views: Vec<_> = events.iter().map(remembered_view).collect();
    Ok(CommandOutput { text: output::columns(&rows), json: json!({"session_id": id, "events": views}), code: 0 })
}

pub(super) fn snapshot(
    context: &SessionContext,
    which: &WhichSession,
    host: Option<&str>,
    after: Option<&str>,
) -> CommandResult {
    let store = context.store_of(which)?;
    let db = store.read();
    let id = context.session(db, which)?;
    let view = session_view(db, &id, &context.paths, context.now)?.ok_or_else(|| not_found(&id))?;
    let host = host.and_then(|host| host.parse().ok()).unwrap_or(view.host);
    let compaction = match after {
        Some(after) => after == "compaction",
        // Only the text after a compaction has the client's own goal, since the client loses it there.
        None => view.goal.is_none() && native::of_session(db, &id)?.is_some(),
    };
    let after = if compaction { After::Compaction } else { After::Resume };
    let file = db.session(&id)?.map(|session| session.transcript_path).filter(|path| !path.is_empty());
    let conversation = file.as_deref().map(Path::new);
    let text = snapshot_text(db, &id, &Occasion { host, after, conversation, elsewhere: false })?;
    if text.is_empty() {
        output::note("note: the snapshot of this session is empty");
    }
    let json = json!({
        "session_id": id, "host": host, "after": <&str>::from(after), "text": text, "characters": text.chars().count(),
        "compactions": view.compactions, "snapshot": view.snapshot,
    });
    Ok(CommandOutput { text: text::printable(&text), json, code: 0 })
}
