//! From the session files to the goal: read what is new, enter it in the ledger, charge the goals it belongs
//! to. Files are read before the transaction begins, so that a slow disk does not hold the lock.

mod for_caps;

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::json;

use steadfast_hosts::{adapter, lines};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::change::{self, Change, Span, pause_for};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::turn::{self, Charge};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::price;
use steadfast_model::reading::{InvalidField, Position, Reading, ToolLine};
use steadfast_model::text;
use steadfast_store::{Cursor, Db, Origin, Source, Store, StoreError};

use for_caps::put_quotas;
pub use for_caps::{record_ahead, record_session};

/// Why a goal with a limit on money stops at a response that it cannot price.
pub(crate) const UNKNOWN_PRICE: &str = "a response has no known price, so the limit on money cannot hold";

/// A session file with what is new in it.
#[derive(Debug)]
pub struct FileReading {
    path: PathBuf,
    /// Empty for the worker.
    agent_id: String,
    /// The kind of the subagent, if the reading has responses of one.
    agent_type: String,
    from: Position,
    /// When the file was created; only known in its first reading.
    created_at_ms: Option<Millis>,
    /// Whether a response of it was known before those were entered ahead.
    knows_history: bool,
    pub reading: Reading,
}

/// A session file and its end.
#[derive(Debug)]
pub struct FileEnd {
    path: PathBuf,
    /// Empty for the worker.
    agent_id: String,
    position: Position,
}

/// What the readings contain about the session, besides tokens.
#[derive(Debug, Default)]
pub struct AccountingFacts {
    pub worked: bool,
    pub user_waits: bool,
    pub native_goal: Option<String>,
    /// The user interrupted the goal, which paused it in this pass.
    pub interrupted: bool,
    /// Accounting became uncertain in this pass.
    pub became_uncertain: bool,
    /// The model of a response whose unknown price paused the goal in this pass, because the goal limits money.
    pub unpriced: Option<String>,
    /// A malformed token field paused the goal in this pass.
    pub invalid: Option<InvalidField>,
}

/// Reads the worker's file and those of its subagents.
pub fn read_session(
    store: &Store,
    host: Host,
    session_id: &str,
    transcript: &Path,
) -> Result<Vec<FileReading>, StoreError> {
    let mut readings = vec![read_one(store, host, transcript, String::new())?];
    for (agent_id, path) in files_of_subagents(store.read(), host, session_id, transcript)? {
        let size = fs_err::metadata(&path).map_or(0, |meta| meta.len());
        let known = store.read().cursor(&path)?.map_or(0, |cursor| cursor.position.offset);
        // Most subagents ended long ago; only files that changed are opened.
        if size != known {
            readings.push(read_one(store, host, &path, agent_id)?);
        }
    }
    Ok(readings)
}

/// Reads one subagent's file.
pub fn read_subagent(store: &Store, host: Host, path: &Path, agent_id: &str) -> Result<Vec<FileReading>, StoreError> {
    Ok(vec![read_one(store, host, path, agent_id.to_owned())?])
}

/// Continues the reading of the worker's file.
pub fn read_on(host: Host, readings: &mut [FileReading]) -> Result<(), StoreError> {
    if let Some(worker) = readings.iter_mut().find(|file| file.agent_id.is_empty()) {
        let later = (adapter(host).read_transcript)(&worker.path, &worker.reading.position)?;
        worker.reading.extend(later.in_steady_time());
    }
    Ok(())
}

/// The last message of the worker in these readings.
pub fn last_text(readings: &[FileReading]) -> Option<&str> {
    readings.iter().find(|file| file.agent_id.is_empty()).and_then(|file| file.reading.last_text.as_deref())
}

fn read_one(store: &Store, host: Host, path: &Path, agent_id: String) -> Result<FileReading, StoreError> {
    let from = store.read().cursor(path)?.unwrap_or_default().position;
    let reading = (adapter(host).read_transcript)(path, &from)?.in_steady_time();
    let created_at_ms = if from.offset == 0 { created_at_ms(path) } else { None };
    let is_typed = !agent_id.is_empty() && !reading.responses.is_empty();
    let agent_type = if is_typed { (adapter(host).agent_type)(path).unwrap_or_default() } else { String::new() };
    Ok(FileReading { path: path.to_owned(), agent_id, agent_type, from, created_at_ms, knows_history: false, reading })
}

fn created_at_ms(path: &Path) -> Option<Millis> {
    let created = fs_err::metadata(path).and_then(|meta| meta.created()).ok()?;
    i64::try_from(created.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok().map(clock::from_wall)
}

/// The files of a session's subagents: as the host lists them, else as its hooks named them.
fn files_of_subagents(
    db: Db<'_>,
    host: Host,
    session_id: &str,
    transcript: &Path,
) -> Result<Vec<(String, PathBuf)>, StoreError> {
    match (adapter(host).subagent_files)(transcript) {
        Some(files) => Ok(files),
        None => db.subagent_files(session_id),
    }
}

/// Whether the tokens of its session are charged to the goal.
pub(crate) fn is_charged(goal: &Goal) -> bool {
    matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited)
}

/// Enters readings in the ledger and charges the goals they belong to. Returns the session's goal as it is now.
pub fn record(
    db: Db<'_>,
    goal: Goal,
    readings: &[FileReading],
    origin: Origin,
    now: Millis,
) -> Result<(Goal, AccountingFacts), StoreError> {
    let mut facts = AccountingFacts::default();
    let mut own = Charge::default();
    let mut vanished = false;
    let mut worker_position = None;
    let mut interrupted_at = None;
    let mut calls: &[ToolLine] = &[];
    for file in readings {
        let source = Source {
            host: goal.host,
            session_id: &goal.session_id,
            agent_id: &file.agent_id,
            agent_type: &file.agent_type,
            path: &file.path,
        };
        let before = db.cursor(&file.path)?;
        put_quotas(db, goal.host, &file.reading)?;
        // A client may withdraw a message; then the responses around it are still known.
        let keeps_history =
            file.reading.rewritten && (file.knows_history || db.knows_any(goal.host, &file.reading.responses)?);
        let written_since = written_since(db, &goal, file, before.as_ref())?;
        let recorded = db.record(source, &file.reading, written_since, now)?;
        for (goal_id, charge) in recorded.charges {
            if !file.agent_id.is_empty() {
                db.put_subagent_tokens(source, &goal_id, charge.subagent_tokens, recorded.cursor.position.offset, now)?;
            }
            if goal_id == goal.goal_id {
                own = own.plus(charge);
            } else {
                db.charge_other_goal(&goal_id, charge, origin, now)?;
            }
        }
        if file.agent_id.is_empty() {
            facts.worked = file.reading.tool_calls > 0;
            // After a rewrite the old lines are read again.
            calls = if file.reading.rewritten { &[] } else { &file.reading.calls };
            facts.user_waits = recorded.cursor.queued_prompts > 0;
            facts.native_goal.clone_from(&recorded.cursor.native_goal);
            interrupted_at = file.reading.interrupted_at;
            worker_position = Some((recorded.cursor.position.offset, file.reading.last_uuid.clone()));
        }
        // After a rewrite the old lines are read again; what a user accepted once stays accepted.
        let is_known = |invalid: &InvalidField| file.reading.rewritten && invalid.offset < file.from.offset;
        let invalid = file.reading.invalid.clone().filter(|invalid| !is_known(invalid));
        facts.invalid = facts.invalid.take().or(invalid);
        let all_was_read = before.is_some_and(|cursor| cursor.read_before_compaction);
        let may_vanish = !goal.host.capabilities().only_appends_transcripts && file.reading.rewritten;
        vanished |= may_vanish && !keeps_history && !all_was_read;
    }

    let mut goal = goal;
    if let Some(mut change) = turn::charge(&goal, own, now) {
        if let Some((offset, uuid)) = worker_position {
            change.goal.last_accounted_byte_offset = i64::try_from(offset).unwrap_or(i64::MAX);
            change.goal.last_accounted_uuid = uuid.or(change.goal.last_accounted_uuid);
        }
        turn::count_calls(&mut change.goal, calls);
        goal = db.save(&goal, change, origin)?;
    } else if !calls.is_empty() && goal.status == GoalStatus::Active {
        let mut after = Goal { updated_at_ms: now, ..goal.clone() };
        turn::count_calls(&mut after, calls);
        goal = db.save(&goal, Change { goal: after, events: Vec::new(), span: Span::Keep }, origin)?;
    }
    let charging = is_charged(&goal);
    if vanished && charging && !goal.accounting_uncertain {
        goal = flag_uncertain(db, &goal, "transcript_rewritten", origin, now)?;
        facts.became_uncertain = true;
    }
    if own.unpriced_tokens > 0 && goal.status == GoalStatus::Active && goal.limits.get(Axis::Usd).is_some() {
        let model = unpriced_model(readings);
        let reason = PausedReason::AccountingUncertain;
        let payload = json!({"reason": reason, "cause": UNKNOWN_PRICE, "model": model});
        goal = db.save(&goal, pause_for(&goal, reason, Event::new(EventKind::GoalPaused, payload), now), origin)?;
        facts.unpriced = Some(model);
    }
    match &facts.invalid {
        Some(invalid) if charging => {
            let payload =
                json!({"usage_field": invalid.field, "response_id": invalid.response_id, "offset": invalid.offset});
            let change =
                pause_for(&goal, PausedReason::AccountingError, Event::new(EventKind::InvalidUsageField, payload), now);
            goal = db.save(&goal, change, origin)?;
        }
        _ => facts.invalid = None,
    }
    // Act on the interrupt now: no later reading contains that line.
    let since = goal.resume_at_ms.unwrap_or(goal.created_at_ms);
    if let Some(at) = interrupted_at.filter(|at| goal.status == GoalStatus::Active && *at >= since) {
        let answered_at = db.session(&goal.session_id)?.and_then(|session| session.last_prompt_ms);
        goal = if let Some(answered) = answered_at.filter(|answered| *answered > at) {
            db.save(&goal, change::interrupted_until(&goal, at, answered, now), origin)?
        } else {
            facts.interrupted = true;
            pause_interrupted(db, &goal, at, origin, now)?
        };
    }
    Ok((goal, facts))
}

/// The model of the first response without a known price.
fn unpriced_model(readings: &[FileReading]) -> String {
    let mut responses = readings.iter().flat_map(|file| &file.reading.responses);
    let unpriced = responses.find(|response| price::cost_micros(&response.bill()).is_none());
    unpriced.map(|response| text::headline(&response.model, 60)).unwrap_or_default()
}

/// Pauses a goal whose turn the user interrupted at a moment.
pub(crate) fn pause_interrupted(
    db: Db<'_>,
    goal: &Goal,
    at: Millis,
    origin: Origin,
    now: Millis,
) -> Result<Goal, StoreError> {
    db.end_turn(&goal.session_id, false, now)?;
    db.save(goal, change::interrupt(goal, at, now), origin)
}

/// The moment before which no new line of this file can have been written, for lines with a wrong time. `None` where
/// old lines are expected: in a rewritten file, one older than the goal, or a fork, which begins with copies.
fn written_since(
    db: Db<'_>,
    goal: &Goal,
    file: &FileReading,
    before: Option<&Cursor>,
) -> Result<Option<Millis>, StoreError> {
    const SLOW_STREAM: Millis = 600_000;
    if file.reading.rewritten {
        return Ok(None);
    }
    if let Some(cursor) = before.filter(|cursor| cursor.position.offset > 0) {
        return Ok(Some(cursor.updated_at_ms - SLOW_STREAM));
    }
    let is_fork = db.session(&goal.session_id)?.is_some_and(|session| session.parent_session_id.is_some());
    let is_newer = file.created_at_ms.is_some_and(|created| created >= goal.created_at_ms);
    Ok((is_newer && !is_fork).then_some(goal.created_at_ms - SLOW_STREAM))
}

/// Records that tokens may be missing from the count.
pub fn flag_uncertain(db: Db<'_>, goal: &Goal, cause: &str, origin: Origin, now: Millis) -> Result<Goal, StoreError> {
    let after = Goal { updated_at_ms: now, accounting_uncertain: true, ..goal.clone() };
    let payload = json!({"cause": cause, "cursor": goal.last_accounted_byte_offset});
    let event = Event::new(EventKind::AccountingUncertainSet, payload);
    db.save(goal, Change { goal: after, events: vec![event], span: Span::Keep }, origin)
}

/// Finds the ends of a session's files, the worker's last; none without a transcript. Call it before a transaction.
pub fn find_ends(
    db: Db<'_>,
    host: Host,
    session_id: &str,
    transcript: Option<&Path>,
) -> Result<Vec<FileEnd>, StoreError> {
    let Some(transcript) = transcript else {
        return Ok(Vec::new());
    };
    let mut files = files_of_subagents(db, host, session_id, transcript)?;
    files.push((String::new(), transcript.to_owned()));
    let end = |(agent_id, path): (String, PathBuf)| {
        let position = lines::end_of_file(&path)?;
        Ok(FileEnd { path, agent_id, position })
    };
    files.into_iter().map(end).collect()
}

/// Moves the cursors of a session to these ends: what is before them is not charged. Returns the worker's offset.
pub fn skip_to(
    db: Db<'_>,
    host: Host,
    session_id: &str,
    ends: &[FileEnd],
    now: Millis,
) -> Result<Option<i64>, StoreError> {
    for FileEnd { path, agent_id, position } in ends {
        let source = Source { host, session_id, agent_id, agent_type: "", path };
        let before = db.cursor(path)?.unwrap_or_default();
        let position = position.clone();
        db.put_cursor(source, &Cursor { position, queued_prompts: 0, read_before_compaction: false, ..before }, now)?;
    }
    Ok(ends.last().map(|worker| i64::try_from(worker.position.offset).unwrap_or(i64::MAX)))
}

/// Changes the cursor of the worker's file.
pub fn update_cursor(
    db: Db<'_>,
    host: Host,
    session_id: &str,
    transcript: &Path,
    now: Millis,
    update: impl FnOnce(&mut Cursor),
) -> Result<(), StoreError> {
    let mut cursor = db.cursor(transcript)?.unwrap_or_default();
    update(&mut cursor);
    db.put_cursor(Source { host, session_id, agent_id: "", agent_type: "", path: transcript }, &cursor, now)
}

#[cfg(test)]
mod tests;
