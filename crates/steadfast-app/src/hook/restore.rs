//! What is lost to the model comes back after a resume, a compaction or `/clear`: the goal and the working state, by
//! lineage only, and told once.

use minijinja::context;

use super::session::{account, read_new, record_new, session_record};
use super::{Call, HookError, turn};
use crate::accounting;
use crate::overview::snapshot::{Occasion, snapshot_text};
use steadfast_hosts::Since;
use steadfast_memory::snapshot::After;
use steadfast_model::goal::{Goal, GoalStatus, change};
use steadfast_model::hook::HookReply;
use steadfast_model::prompt::{self, Wording};
use steadfast_model::text;
use steadfast_store::{Db, Session, Store};
use steadfast_system::config::OnCompact;

const UNCERTAIN: &str =
    "⚠ /compact event detected: token accounting is uncertain. Run /goal-reconcile --accept-reset to go on.";

pub(super) fn resumed(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    let told_already = store.write(|db| {
        let told_already = was_just_told(call, db, After::Resume)?;
        let known = db.session(call.session_id())?;
        db.put_session(session)?;
        if told_already {
            db.note_injection(call.session_id(), DOUBLE_START, call.now)?;
        }
        let Some(goal) = db.goal(call.session_id())? else {
            return Ok::<_, HookError>(told_already);
        };
        // A goal from before the upgrade was last seen when it was last written.
        let last_seen = known.map_or(goal.updated_at_ms, |session| session.last_seen_ms);
        if let Some(change) = change::session_resumed(&goal, last_seen.min(call.now), call.now) {
            db.save(&goal, change, call.origin)?;
        }
        Ok(told_already)
    })?;
    if told_already {
        return Ok(HookReply::default());
    }
    tell(call, store, After::Resume)
}

pub(super) fn compacted(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    let readings = read_new(call, store)?.unwrap_or_default();
    let (told_already, message) = store.write(|db| {
        let told_already = was_just_told(call, db, After::Compaction)?;
        db.put_session(session)?;
        let accounted = record_new(call, db, &readings)?;
        db.note_compaction(call.session_id(), call.now)?;
        if told_already {
            // Only this once: whatever comes next is another start.
            db.note_injection(call.session_id(), DOUBLE_START, call.now)?;
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

/// How a start is noted that told nothing because another one just had.
const DOUBLE_START: &str = "double_start";
/// Two starts of one kind of event are never further apart.
const SAME_START: i64 = 60_000;

/// A client may announce one start twice, as resumed (or forked) and as compacted: what the first of them told is still
/// there, unless anything came in between. Two compactions are two, whatever is between them. Asked before this start
/// is noted.
fn was_just_told(call: &Call<'_>, db: Db<'_>, after: After) -> Result<bool, HookError> {
    let Some(told) = db.snapshot(call.session_id())? else {
        return Ok(false);
    };
    let counterparts: &[After] = match after {
        After::Compaction => &[After::Resume, After::Fork],
        After::Resume => &[After::Compaction],
        After::Fork | After::Clear => &[],
    };
    let by_counterpart = counterparts.iter().any(|other| told.injected_by.as_deref() == Some((*other).into()));
    let Some(at) = told.injected_at_ms.filter(|at| by_counterpart && call.now - at < SAME_START) else {
        return Ok(false);
    };
    let Some(known) = db.session(call.session_id())? else {
        return Ok(false);
    };
    let client = session_record(call).client;
    let same_process = known.client.is_none() || client.is_none() || known.client == client;
    let newest = db.newest_event_ms(call.session_id())?;
    let nothing_since =
        [Some(known.last_seen_ms), newest, told.compacting_at_ms].into_iter().flatten().all(|moment| moment <= at);
    let file = call.input.transcript.as_deref();
    let worked = || file.is_some_and(|file| steadfast_hosts::worked_since(call.host(), file, at));
    Ok(same_process && nothing_since && !worked())
}

/// Whatever happens in a session after it was told makes the next start another one. One write after each telling is
/// enough for that; most hooks read one row here.
pub(super) fn note_activity(call: &Call<'_>, store: &mut Store) -> Result<(), HookError> {
    let Some(at) = store.read().injected_at(call.session_id())?.filter(|at| call.now - at < SAME_START) else {
        return Ok(());
    };
    let seen = store.read().session(call.session_id())?.map(|session| session.last_seen_ms);
    if seen.is_some_and(|seen| seen <= at) {
        store.write(|db| db.touch_session(call.session_id(), call.now.max(at + 1)))?;
    }
    Ok(())
}

/// Tells the model what it must know to go on.
pub(super) fn tell(call: &Call<'_>, store: &mut Store, after: After) -> Result<HookReply, HookError> {
    let text = snapshot_text(store.read(), call.session_id(), &occasion(call, after))?;
    if text.is_empty() {
        return Ok(HookReply::default());
    }
    store.write(|db| {
        db.put_snapshot(call.session_id(), &text, call.now)?;
        db.note_injection(call.session_id(), after.into(), call.now)
    })?;
    Ok(HookReply { context: Some(text), ..HookReply::default() })
}

fn occasion<'a>(call: &'a Call<'_>, after: After) -> Occasion<'a> {
    Occasion { host: call.host(), after, conversation: call.input.transcript.as_deref(), elsewhere: false }
}

/// The session before `/clear`, or the one this session was forked from: say what it was about and how to take its goal
/// over, and do nothing unasked.
pub(super) fn offer(call: &Call<'_>, store: &mut Store, parent: &str, after: After) -> Result<HookReply, HookError> {
    let goal = live_goal(store.read(), parent)?;
    let text = snapshot_text(store.read(), parent, &Occasion { elsewhere: true, ..occasion(call, after) })?;
    let message = goal.map(|goal| adoption_hint(call, &goal, after));
    if text.is_empty() {
        return Ok(HookReply { message, ..HookReply::default() });
    }
    // The text is the other session's and stays there: who purges that one purges it.
    store.write(|db| db.note_injection(call.session_id(), after.into(), call.now))?;
    Ok(HookReply { context: Some(text), message, ..HookReply::default() })
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

/// Whether a prompt must quote the objective. It need not if the objective was stated in a prompt that the client
/// keeps in the conversation.
pub(super) fn wording(call: &Call<'_>, db: Db<'_>, goal: &Goal) -> Result<Wording, HookError> {
    let Some(file) =
        call.input.transcript.as_deref().filter(|_| call.host().capabilities().keeps_prompts_in_compaction)
    else {
        return Ok(Wording::Quoted);
    };
    let stated = db.stated_goal(call.session_id())?.is_some_and(|stated| stated.says(&goal.objective));
    let kept = stated && steadfast_hosts::holds_text(call.host(), file, &goal.objective, Since::Resume);
    Ok(if kept { Wording::InConversation } else { Wording::Quoted })
}

/// Reads everything there is, and writes the snapshot of this moment.
pub(super) fn before_compaction(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let accounted = account(call, store)?;
    let text = snapshot_text(store.read(), call.session_id(), &occasion(call, After::Compaction))?;
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
