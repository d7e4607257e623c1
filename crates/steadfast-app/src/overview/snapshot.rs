//! The text that a model gets about a session. Hooks inject it, and `session snapshot` prints the same text.

use std::path::Path;

use minijinja::context;

use steadfast_hosts::Since;
use steadfast_memory::snapshot::{self, After, Framing};
use steadfast_model::goal::Goal;
use steadfast_model::host::Host;
use steadfast_model::memory::{GoalSummary, SessionMemory};
use steadfast_model::prompt;
use steadfast_store::{Db, StoreError};

use crate::native;
use crate::overview::session::kept_goal;

/// When and to which model the text is given.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The client of the model.
    pub host: Host,
    pub after: After,
    /// The file of the conversation that the model has; what is in it is not repeated.
    pub conversation: Option<&'a Path>,
    /// The model works in another session, which may adopt the goal.
    pub elsewhere: bool,
}

/// The text about a session, without the goals that the model has in its conversation anyway. Empty if nothing is
/// remembered.
pub fn snapshot_text(db: Db<'_>, session_id: &str, occasion: &Occasion<'_>) -> Result<String, StoreError> {
    let known = db.session(session_id)?;
    let writer = known.map_or(occasion.host, |session| session.host);
    let live = db.goal(session_id)?.filter(|goal| goal.status.is_live());
    let goal = match &live {
        Some(goal) => kept_goal(goal),
        None if occasion.after == After::Compaction => native_goal(db, writer, session_id)?,
        None => None,
    };
    let memory = SessionMemory { host: occasion.host, ..db.session_memory(session_id, occasion.host, goal)? };
    let since = match occasion.after {
        After::Compaction => {
            let noted = db.snapshot(session_id)?.and_then(|snapshot| snapshot.compacting_bytes);
            Since::Compaction { noted_at: noted.and_then(|bytes| u64::try_from(bytes).ok()) }
        }
        After::Resume | After::Fork | After::Clear => Since::Resume,
    };
    let in_context = |objective: &str| {
        let file = occasion.conversation.filter(|_| occasion.after != After::Clear);
        file.is_some_and(|file| steadfast_hosts::holds_text(writer, file, objective, since))
    };
    // A goal in the user's own words is not repeated if the client kept them.
    let stated_in_context = memory.stated.as_ref().is_some_and(|stated| in_context(&stated.objective));
    let same = |goal: &GoalSummary| memory.stated.as_ref().is_some_and(|stated| stated.says(&goal.objective));
    let goal_in_context = stated_in_context && memory.goal.as_ref().is_some_and(same);
    let own = live.as_ref().filter(|_| !occasion.elsewhere);
    let framing = Framing {
        after: occasion.after,
        goal_in_context,
        stated_in_context,
        adopt: live.as_ref().filter(|_| occasion.elsewhere).map(|goal| goal.goal_id.clone()),
        note: own.and_then(|goal| note(occasion.host, goal)),
    };
    Ok(snapshot::render(&memory, occasion.host.capabilities().start_cap, &framing))
}

/// What is left to say about the goal: how completion is checked, how many items are open, and that its accounting is in doubt.
fn note(host: Host, goal: &Goal) -> Option<String> {
    let verify = (!goal.verify.is_empty()).then(|| prompt::commands(goal));
    let items = goal.open_items().count();
    let reconcile = goal.accounting_uncertain.then(|| host.spell("/goal-reconcile --accept-reset"));
    // The tests render every branch; if rendering fails, the snapshot has no note.
    let note =
        prompt::render(include_str!("../../prompts/goal_note.md"), context! { verify, items, reconcile }).ok()?;
    Some(note).filter(|note| !note.is_empty())
}

/// The host's own goal, if a compaction in the middle of a turn removes it from the model's context.
fn native_goal(db: Db<'_>, host: Host, session_id: &str) -> Result<Option<GoalSummary>, StoreError> {
    if !host.capabilities().loses_own_goal_in_compaction {
        return Ok(None);
    }
    let objective = native::of_session(db, session_id)?;
    let standing = format!("pursued by {}'s own goal feature", host.capabilities().product);
    Ok(objective.map(|objective| GoalSummary { objective, standing, active: true, set_at_ms: 0 }))
}
