//! Caps of `[limits]`. Sessions that no goal drives count too: the user hears once of a cap that is near or reached, and
//! at the cap the next tool call is refused if the user wants that. Without caps nothing is read here.

use serde_json::json;

use super::turn::wait_for_last_message;
use super::{Call, HookError, remember};
use crate::accounting::{self, FileReading};
use steadfast_model::goal::Goal;
use steadfast_model::goal::change::Change;
use steadfast_model::hook::{Agent, HookReply};
use steadfast_model::limit::{Axis, CapStanding, SharedSpend, fullest};
use steadfast_store::spend::{self, Spender};
use steadfast_store::{Db, Store, StoreError};

impl Call<'_> {
    /// How near the caps are, for this session. Which ones is kept for the messages.
    pub(super) fn shared(&self, db: Db<'_>) -> Result<SharedSpend, StoreError> {
        db.keep_periods(&self.paths.config.limits.caps, self.now)?;
        let standings = standings(self, db)?;
        let shared = SharedSpend::of(&standings);
        self.caps.replace(standings);
        Ok(shared)
    }

    /// A limit that is nearly used up; of the caps, which one.
    pub(super) fn describe_near(&self, goal: &Goal, limit: Axis) -> String {
        match fullest(&self.caps.borrow()).filter(|_| limit == Axis::Shared) {
            Some(cap) => format!("over 80 % of a cap used ({})", cap.describe()),
            None => goal.standing(limit, self.now).describe_near(),
        }
    }

    /// A limit that is used up; of the caps, which one.
    pub(super) fn describe_reached(&self, goal: &Goal, limit: Axis) -> String {
        match fullest(&self.caps.borrow()).filter(|_| limit == Axis::Shared) {
            Some(cap) => format!("the cap {}", cap.describe()),
            None => goal.standing(limit, self.now).describe_reached(),
        }
    }

    /// Names the cap in the events of a change that a cap caused.
    pub(super) fn name_cap(&self, change: &mut Change) {
        let caps = self.caps.borrow();
        let events = change.events.iter_mut().filter(|event| event.payload["limit"] == json!(Axis::Shared));
        for (event, cap) in events.zip(fullest(&caps)) {
            event.payload["cap"] = json!(cap.cap.name());
            event.payload["cause"] = json!(cap.describe());
        }
    }
}

fn standings(call: &Call<'_>, db: Db<'_>) -> Result<Vec<CapStanding>, StoreError> {
    spend::standings(db, &call.paths.config.limits.caps, Spender::Session(call.session_id()), call.now)
}

/// Tools ran in a session that no goal drives.
pub(super) fn worked(call: &Call<'_>, store: &mut Store, agent: Option<&Agent>) -> Result<HookReply, HookError> {
    if call.paths.config.limits.caps.is_empty() {
        return remember::seen(call, store);
    }
    let readings = readings(call, store, agent)?;
    account(call, store, readings)
}

/// A turn ended, or a session: what no goal is charged with counts for the caps.
pub(super) fn turn_ended(
    call: &Call<'_>,
    store: &mut Store,
    last_message: Option<&str>,
) -> Result<Option<String>, HookError> {
    if call.paths.config.limits.caps.is_empty() || is_driven(call, store)? {
        return Ok(None);
    }
    let mut readings = readings(call, store, None)?;
    let is_there = call.input.transcript.as_deref().is_some_and(std::path::Path::exists);
    if call.host().capabilities().writes_transcript_late && is_there {
        wait_for_last_message(call.host(), &mut readings, last_message)?;
    }
    Ok(account(call, store, readings)?.message)
}

/// A tool is about to run: refuses it at a cap, if the user wants that. A goal stops by itself.
pub(super) fn tool_asked(call: &Call<'_>, store: &Store) -> Result<HookReply, HookError> {
    let limits = &call.paths.config.limits;
    if !limits.enforce_sessions || limits.caps.is_empty() || is_driven(call, store)? {
        return Ok(HookReply::default());
    }
    let standings = standings(call, store.read())?;
    let Some(cap) = standings.iter().find(|cap| cap.standing.is_reached()) else {
        return Ok(HookReply::default());
    };
    let reason = format!(
        "steadfast: the cap {} is reached, so tools are refused in this session; {}. The user can raise it or set \
         enforce_sessions = false under [limits] in steadfast's config.toml. Stop here and tell the user.",
        cap.describe(),
        cap.way_on()
    );
    Ok(HookReply { refuse_tool: Some(reason), ..HookReply::default() })
}

/// Whether the session is charged to a goal, whose own hooks count and stop it.
fn is_driven(call: &Call<'_>, store: &Store) -> Result<bool, StoreError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(false);
    };
    Ok(accounting::is_charged(&goal) || store.read().has_open_span(&goal.goal_id)?)
}

/// What is new in the session's files. Inside a subagent, some clients name only the subagent's own file.
fn readings(call: &Call<'_>, store: &Store, agent: Option<&Agent>) -> Result<Vec<FileReading>, StoreError> {
    let own = agent.and_then(|agent| Some((agent.transcript.as_deref()?, agent.id.as_str())));
    match (&call.input.transcript, own) {
        (Some(transcript), _) => accounting::read_session(store, call.host(), call.session_id(), transcript),
        (None, Some((path, id))) => accounting::read_subagent(store, call.host(), path, id),
        (None, None) => Ok(Vec::new()),
    }
}

/// Enters what is new in the ledger and says which caps the user has yet to hear of.
fn account(call: &Call<'_>, store: &mut Store, mut readings: Vec<FileReading>) -> Result<HookReply, HookError> {
    accounting::record_ahead(store, call.host(), call.session_id(), &mut readings, call.origin, call.now)?;
    let told = store.write(|db| {
        remember::keep_registered(call, db)?;
        if call.record(db, &readings)?.is_none() {
            accounting::record_session(db, call.host(), call.session_id(), &readings, call.origin, call.now)?;
        }
        db.keep_periods(&call.paths.config.limits.caps, call.now)?;
        let mut told = Vec::new();
        for cap in standings(call, db)? {
            if db.note_cap(&cap, call.session_id(), call.now)? {
                told.push(cap);
            }
        }
        Ok::<_, StoreError>(told)
    })?;
    let lines: Vec<String> = told.iter().map(|cap| notice(call, cap)).collect();
    Ok(HookReply { message: (!lines.is_empty()).then(|| lines.join("\n")), ..HookReply::default() })
}

fn notice(call: &Call<'_>, cap: &CapStanding) -> String {
    if !cap.standing.is_reached() {
        return format!("◎ over 80 % of a cap used ({}).", cap.describe());
    }
    let then = if call.paths.config.limits.enforce_sessions { "tool calls are refused" } else { "goals and runs stop" };
    format!("◎ cap reached ({}): {then}; {}.", cap.describe(), cap.way_on())
}
