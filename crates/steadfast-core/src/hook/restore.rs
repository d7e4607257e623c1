//! What is lost to the model comes back after a resume, a compaction or `/clear`: the goal and the working state, by
//! lineage only, and told once.

use minijinja::context;

use super::session::{account, read_new, record_new};
use super::{Call, HookError, turn};
use crate::accounting;
use crate::config::OnCompact;
use crate::goal::change;
use crate::goal::{Goal, GoalStatus};
use crate::host::hook::HookReply;
use crate::host::{self, Host, Since};
use crate::memory::KeptGoal;
use crate::memory::snapshot::{self, After, Framing};
use crate::native;
use crate::overview::session::kept_goal;
use crate::prompt::{self, Wording};
use crate::store::{Db, Session, Store};
use crate::text;

const UNCERTAIN: &str =
    "⚠ /compact event detected: token accounting is uncertain. Run /goal-reconcile --accept-reset to go on.";

pub(super) fn resumed(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    store.write(|db| {
        let known = db.session(call.session_id())?;
        db.put_session(session)?;
        let Some(goal) = db.goal(call.session_id())? else {
            return Ok::<_, HookError>(());
        };
        // A goal from before the upgrade was last seen when it was last written.
        let last_seen = known.map_or(goal.updated_at_ms, |session| session.last_seen_ms);
        if let Some(change) = change::session_resumed(&goal, last_seen.min(call.now), call.now) {
            db.save(&goal, change, call.origin)?;
        }
        Ok(())
    })?;
    tell(call, store, After::Resume)
}

pub(super) fn compacted(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    let readings = read_new(call, store)?.unwrap_or_default();
    let (told_already, message) = store.write(|db| {
        let told_already = was_just_told(call, db)?;
        db.put_session(session)?;
        let accounted = record_new(call, db, &readings)?;
        db.note_compaction(call.session_id(), call.now)?;
        if told_already {
            // Only this once: whatever comes next is another compaction.
            db.note_injection(call.session_id(), After::Compaction.into(), call.now)?;
            return Ok::<_, HookError>((true, None));
        }
        let message = match accounted.filter(|(goal, _)| goal.status.is_live()) {
            Some((goal, facts)) => after_compaction(call, db, &goal, &facts)?,
            None => None,
        };
        Ok((false, message))
    })?;
    if told_already {
        return Ok(HookReply::default());
    }
    // Looks through the session's files, so outside the transaction.
    Ok(HookReply { message, ..tell(call, store, After::Compaction)? })
}

/// What a compaction means for the accounting of the goal, and the words for the user.
fn after_compaction(
    call: &Call<'_>,
    db: Db<'_>,
    goal: &Goal,
    facts: &accounting::Facts,
) -> Result<Option<String>, HookError> {
    let running = matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited);
    let always = call.paths.config.accounting.on_compact == OnCompact::Pause;
    let flags_now = always && running && !goal.accounting_uncertain;
    if flags_now {
        accounting::flag_uncertain(db, goal, "compact", call.origin, call.now)?;
    }
    if flags_now || facts.became_uncertain {
        return Ok(Some(call.host().spell(UNCERTAIN)));
    }
    Ok(turn::pause_notice(call.host(), facts))
}

/// Codex may announce a resumed session twice, as resumed and then as compacted: what the first start told is still
/// there, unless anything came in between. Asked before this start is noted.
fn was_just_told(call: &Call<'_>, db: Db<'_>) -> Result<bool, HookError> {
    const SAME_START: i64 = 60_000;
    let Some(told) = db.snapshot(call.session_id())? else {
        return Ok(false);
    };
    let Some(at) = told.injected_at_ms.filter(|_| told.injected_by.as_deref() == Some(After::Resume.into())) else {
        return Ok(false);
    };
    let newest = db.newest_event_ms(call.session_id())?;
    let seen = db.session(call.session_id())?.map(|session| session.last_seen_ms);
    let nothing_since = [seen, newest, told.compacting_at_ms].into_iter().flatten().all(|moment| moment <= at);
    Ok(nothing_since && call.now - at < SAME_START)
}

/// Tells the model what it must know to go on.
pub(super) fn tell(call: &Call<'_>, store: &mut Store, after: After) -> Result<HookReply, HookError> {
    let framing = Framing { note: note(call, store.read())?, ..Framing::after(after) };
    let text = snapshot_of(call, store.read(), call.session_id(), framing)?;
    if text.is_empty() {
        return Ok(HookReply::default());
    }
    store.write(|db| {
        db.put_snapshot(call.session_id(), &text, call.now)?;
        db.note_injection(call.session_id(), after.into(), call.now)
    })?;
    Ok(HookReply { context: Some(text), ..HookReply::default() })
}

/// The session before `/clear`, or the one this session was forked from: say what it was about and how to take its goal
/// over, and do nothing unasked.
pub(super) fn offer(call: &Call<'_>, store: &mut Store, parent: &str, after: After) -> Result<HookReply, HookError> {
    let goal = live_goal(store.read(), parent)?;
    let adopt = goal.as_ref().map(|goal| goal.goal_id.clone());
    let text = snapshot_of(call, store.read(), parent, Framing { adopt, ..Framing::after(after) })?;
    let message = goal.map(|goal| adoption_hint(call, &goal, after));
    Ok(HookReply { context: Some(text).filter(|text| !text.is_empty()), message, ..HookReply::default() })
}

pub(super) fn adoption_hint(call: &Call<'_>, goal: &Goal, after: After) -> String {
    let when = if after == After::Clear { "before /clear" } else { "this one was forked from" };
    let objective = text::headline(&goal.objective, 80);
    format!(
        "steadfast: the session {when} has a goal ({}): {objective}\n{} takes it over here.",
        goal.status,
        adopting(call, goal)
    )
}

/// A fork has the words about its parent's goal in its conversation; this takes the order out of them.
pub(super) fn not_of_this_session(call: &Call<'_>, goal: &Goal) -> Result<String, HookError> {
    let adopt = adopting(call, goal);
    Ok(prompt::render(include_str!("../../prompts/forked_goal.md"), context! { adopt })?)
}

/// What to type to take a goal over.
fn adopting(call: &Call<'_>, goal: &Goal) -> String {
    let id: String = goal.goal_id.chars().take(8).collect();
    call.host().spell(&format!("/goal-adopt {id}"))
}

pub(super) fn live_goal(db: Db<'_>, session_id: &str) -> Result<Option<Goal>, HookError> {
    Ok(db.goal(session_id)?.filter(|goal| goal.status.is_live()))
}

/// What is left to say about the goal: how completion is checked, and that its accounting is in doubt.
fn note(call: &Call<'_>, db: Db<'_>) -> Result<Option<String>, HookError> {
    let Some(goal) = live_goal(db, call.session_id())? else {
        return Ok(None);
    };
    let verify = (!goal.verify.is_empty()).then(|| prompt::commands(&goal));
    let reconcile = goal.accounting_uncertain.then(|| call.host().spell("/goal-reconcile --accept-reset"));
    let note = prompt::render(include_str!("../../prompts/goal_note.md"), context! { verify, reconcile })?;
    Ok(Some(note).filter(|note| !note.is_empty()))
}

/// The text about a session, without the goals that the model has in its conversation anyway.
fn snapshot_of(call: &Call<'_>, db: Db<'_>, session_id: &str, framing: Framing) -> Result<String, HookError> {
    let goal = match live_goal(db, session_id)? {
        Some(goal) => kept_goal(&goal, call.now),
        None if framing.after == After::Compaction => native_goal(call, db)?,
        None => None,
    };
    let recollection = db.recollect(session_id, call.host(), goal)?;
    let since = match framing.after {
        After::Compaction => {
            let noted = db.snapshot(session_id)?.and_then(|told| told.compacting_bytes);
            Since::Compaction { noted_at: noted.and_then(|bytes| u64::try_from(bytes).ok()) }
        }
        After::Resume | After::Fork | After::Clear => Since::Resume,
    };
    let in_context = |objective: &str| {
        let file = call.input.transcript.as_deref().filter(|_| framing.after != After::Clear);
        file.is_some_and(|file| host::holds_text(call.host(), file, objective, since))
    };
    // The user's own words are still theirs where the client kept them. What only we said is said again.
    let stated_in_context = recollection.stated.as_ref().is_some_and(|stated| in_context(&stated.objective));
    let same = |goal: &KeptGoal| recollection.stated.as_ref().is_some_and(|stated| stated.objective == goal.objective);
    let goal_in_context = stated_in_context && recollection.goal.as_ref().is_some_and(same);
    let framing = Framing { goal_in_context, stated_in_context, ..framing };
    Ok(snapshot::render(&recollection, call.host().start_cap(), &framing))
}

/// Whether a prompt must quote the objective. In Codex a goal may have been stated in a prompt, which the client keeps
/// even through a compaction; then the model has it anyway.
pub(super) fn wording(call: &Call<'_>, db: Db<'_>, goal: &Goal) -> Result<Wording, HookError> {
    let Some(file) = call.input.transcript.as_deref().filter(|_| call.host() == Host::Codex) else {
        return Ok(Wording::Quoted);
    };
    let stated = db.stated_goal(call.session_id())?.is_some_and(|stated| stated.objective == goal.objective);
    let kept = stated && host::holds_text(call.host(), file, &goal.objective, Since::Resume);
    Ok(if kept { Wording::InConversation } else { Wording::Quoted })
}

/// Codex's own goal loses its text when a turn is compacted in the middle; it is put back.
fn native_goal(call: &Call<'_>, db: Db<'_>) -> Result<Option<KeptGoal>, HookError> {
    if call.host() != Host::Codex {
        return Ok(None);
    }
    let objective = native::of_session(db, call.session_id())?;
    let standing = format!("pursued by {}'s own goal feature", call.host().product());
    Ok(objective.map(|objective| KeptGoal { objective, standing, active: true, set_at_ms: 0 }))
}

/// Reads everything there is, and writes the snapshot of this moment.
pub(super) fn before_compaction(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let accounted = account(call, store)?;
    let text = snapshot_of(call, store.read(), call.session_id(), Framing::after(After::Compaction))?;
    let file = call.input.transcript.as_deref();
    let bytes = file.and_then(|file| fs_err::metadata(file).ok()).and_then(|file| i64::try_from(file.len()).ok());
    store.write(|db| {
        if let Some(file) = file.filter(|_| accounted.is_some()) {
            accounting::mark_before_compaction(db, call.host(), call.session_id(), file, call.now)?;
        }
        db.put_snapshot_before_compaction(call.session_id(), &text, bytes, call.now)?;
        Ok::<_, HookError>(HookReply::default())
    })
}
