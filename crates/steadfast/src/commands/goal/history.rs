//! `goal history`: the newest goals, or all of them, written one by one.

use std::io::Write;

use serde_json::json;
use steadfast_app::overview::{self, GoalView};
use steadfast_model::{clock, text};
use steadfast_store::{Db, EventFilter, EventRow, GoalRef, Store};

use super::{CommandContext, GoalOutput, GoalResult, Named, find_place};
use crate::cli::HistoryArgs;
use crate::commands::other_stores;
use crate::commands::person::{self, Sight};
use crate::error::CliError;
use crate::output::{self, CommandOutput};

/// The newest events that are printed as text, and those in JSON.
const EVENTS_SHOWN: usize = 50;
const EVENTS_LISTED: usize = 1_000;
/// In a client, an answer is read whole.
const MOST_IN_CLIENT: usize = 200;

/// What to list, for whom.
struct Listing<'a> {
    context: &'a CommandContext<'a>,
    db: Db<'a>,
    sight: Sight,
    session: Option<String>,
}

pub(super) fn history(context: &CommandContext<'_>, flag: Option<&str>, arguments: &HistoryArgs) -> GoalResult {
    let Some(store) = Store::open_if_there(&context.paths.store)? else {
        let json = json!({"goals": [], "events": []});
        return Ok(GoalOutput { output: CommandOutput { text: no_goals(context), json, code: 0 }, goal: None });
    };
    let db = store.read();
    let sight = Sight::of(context.origin.actor, db)?;
    let session = if arguments.all { None } else { Some(find_place(context, &store, flag, Named::Known)?.session_id) };
    if let Some(session) = &session {
        person::refuse_foreign_session(context.origin.actor, db, session)?;
    }
    let listing = Listing { context, db, sight, session };
    if arguments.limit == 0 && context.place.is_none() {
        output::stream(|out| listing.write_all(out, arguments.events))?;
        return Ok(GoalOutput { output: CommandOutput::default(), goal: None });
    }
    let most = if context.place.is_some() && arguments.limit == 0 { MOST_IN_CLIENT } else { arguments.limit };
    Ok(GoalOutput { output: listing.newest(most, arguments.events)?, goal: None })
}

impl Listing<'_> {
    fn newest(&self, most: usize, with_events: bool) -> Result<CommandOutput, CliError> {
        let (goals, total) = self.goals(most)?;
        let views = goals.iter().filter_map(|at| self.view(at).transpose()).collect::<Result<Vec<_>, _>>()?;
        let mut lines: Vec<String> = views.iter().map(line).collect();
        if lines.is_empty() {
            lines.push(no_goals(self.context));
        }
        let more = total.saturating_sub(goals.len());
        if more > 0 {
            lines.push(format!("{} more; `--limit 0` lists all", text::count(more, "goal")));
        }
        let wanted = if self.context.is_json { EVENTS_LISTED } else { EVENTS_SHOWN };
        let mut events = Vec::new();
        if self.context.is_json || with_events {
            events = self.db.events(self.filter(), wanted + 1)?;
            events.retain(|event| self.sight.has(&event.session_id));
        }
        let has_older = events.len() > wanted;
        let events = events.get(events.len().saturating_sub(wanted)..).unwrap_or_default();
        if with_events {
            lines.push(String::new());
            lines.extend(events.iter().map(event_line));
        }
        let events: Vec<_> = events.iter().map(overview::event_view).collect();
        let json = json!({"goals": views, "events": events, "more_goals": more, "more_events": has_older});
        Ok(CommandOutput { text: lines.join("\n"), json, code: 0 })
    }

    /// Writes all goals and, in JSON or where they are asked for, all events, with one row in memory at a time.
    fn write_all(&self, out: &mut dyn Write, with_events: bool) -> Result<(), CliError> {
        let (goals, _) = self.goals(usize::MAX)?;
        let is_json = self.context.is_json;
        let mut rows = Rows { out, is_first: true };
        if is_json {
            rows.raw("{\"goals\": [")?;
        } else if goals.is_empty() {
            rows.raw(&format!("{}\n", no_goals(self.context)))?;
        }
        for at in &goals {
            let Some(view) = self.view(at)? else { continue };
            if is_json {
                rows.json(&json!(view))?;
            } else {
                rows.raw(&format!("{}\n", line(&view)))?;
            }
        }
        if is_json {
            rows.raw("\n], \"events\": [")?;
            rows.is_first = true;
        } else if with_events {
            rows.raw("\n")?;
        }
        if is_json || with_events {
            self.db.each_event(self.filter(), |event| match (self.sight.has(&event.session_id), is_json) {
                (false, _) => Ok(()),
                (true, true) => rows.json(&overview::event_view(&event)),
                (true, false) => rows.raw(&format!("{}\n", event_line(&event))),
            })?;
        }
        if is_json {
            rows.raw("\n], \"more_goals\": 0, \"more_events\": false}\n")?;
        }
        Ok(())
    }

    fn filter(&self) -> EventFilter<'_> {
        self.session.as_deref().map_or(EventFilter::All, EventFilter::Session)
    }

    /// The newest goals that the caller may see, and how many there are.
    fn goals(&self, most: usize) -> Result<(Vec<GoalRef>, usize), CliError> {
        let session = self.session.as_deref();
        if self.sight.is_everything() {
            return Ok((self.db.newest_goals(session, most)?, self.db.count_goals(session)?));
        }
        let mut goals = self.db.newest_goals(session, usize::MAX)?;
        goals.retain(|goal| self.sight.has(&goal.session_id));
        let total = goals.len();
        goals.truncate(most);
        Ok((goals, total))
    }

    fn view(&self, at: &GoalRef) -> Result<Option<GoalView>, CliError> {
        let goal = self.db.goal_at_row(at)?;
        Ok(goal.map(|goal| self.context.view(self.db, &goal, self.context.now)).transpose()?)
    }
}

/// A terminal may look in another store than the plugin.
fn no_goals(context: &CommandContext<'_>) -> String {
    let other = context.place.is_none().then(|| other_stores::note(context.paths)).flatten();
    std::iter::once("no goals yet".to_owned()).chain(other).collect::<Vec<_>>().join("\n")
}

/// Writes the rows of a list.
struct Rows<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

impl Rows<'_> {
    fn raw(&mut self, text: &str) -> Result<(), CliError> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    fn json(&mut self, row: &serde_json::Value) -> Result<(), CliError> {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
        Ok(write!(self.out, "{comma}\n{row}")?)
    }
}

fn line(view: &GoalView) -> String {
    format!(
        "{}  {:<21}  {:>9} tokens  {:>8}  {}\n    {}",
        view.goal_id.get(..8).unwrap_or(&view.goal_id),
        view.state(),
        text::short_number(view.total_tokens),
        text::duration(view.active_seconds),
        clock::to_local(view.created_at_ms),
        text::headline(&view.objective, 90),
    )
}

fn event_line(event: &EventRow) -> String {
    let change = match (&event.status_before, &event.status_after) {
        (Some(before), Some(after)) if before != after => format!("  {before} → {after}"),
        _ => String::new(),
    };
    let payload = text::headline(&event.payload.to_string(), 80);
    format!("{}  {}{change}  {payload}", clock::to_rfc3339(event.created_at_ms), event.kind)
}
