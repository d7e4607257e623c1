//! Hooks about a turn: a batch of tool calls, an interrupt, and the end of the turn itself.

use std::time::{Duration, Instant};

use minijinja::context;
use serde_json::json;

use super::{Call, HookError, remember, restore};
use crate::accounting::{self, Facts, FileReading};
use crate::native;
use steadfast_hosts::adapter;
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::turn::{self, BatchDecision, Decision, TurnEnd, TurnRules};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::HookReply;
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::reading::NativeGoal;
use steadfast_model::{prompt, text};
use steadfast_store::{Db, Store, StoreError, spend};
use steadfast_system::config::OnCompact;

/// The client writes its file up to a tenth of a second late; while the hook runs it keeps writing.
const LAST_MESSAGE_WAIT: Duration = Duration::from_millis(500);
const LAST_MESSAGE_STEP: Duration = Duration::from_millis(5);

const GOAL_VANISHED: &str = "the goal vanished during its turn";
const INTERRUPTED: &str = "steadfast: you interrupted the goal, so it is paused. /goal-resume resumes it.";

/// The message for the user when the readings have paused the goal.
pub(super) fn pause_notice(host: Host, facts: &Facts) -> Option<String> {
    if let Some(invalid) = &facts.invalid {
        return Some(host.spell(&format!(
            "steadfast: the transcript has a malformed token field ({}), so the goal is paused (accounting_error). \
             /goal-reconcile --accept-reset moves past it.",
            invalid.field
        )));
    }
    facts.interrupted.then(|| host.spell(INTERRUPTED))
}

pub(super) fn stopped(
    call: &Call<'_>,
    store: &mut Store,
    after_continuation: bool,
    last_message: Option<&str>,
    background_work: bool,
) -> Result<HookReply, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(HookReply::default());
    };
    let open = store.read().has_open_span(&goal.goal_id)?;
    // Read nothing for a goal that is over.
    if !accounting::is_charged(&goal) && !open {
        return Ok(HookReply::default());
    }
    let readings = match (&call.input.transcript, open) {
        (Some(transcript), true) => {
            let mut readings = accounting::read_session(store, call.host(), call.session_id(), transcript)?;
            // A client that keeps no sessions names a file that will never exist.
            if call.host().capabilities().writes_transcript_late && transcript.exists() {
                wait_for_last_message(call.host(), &mut readings, last_message)?;
            }
            readings
        }
        _ => Vec::new(),
    };
    let config = &call.paths.config;
    let native_goal =
        call.input.transcript.as_deref().and_then(|file| native::live(call.host(), call.session_id(), file));
    let (goal, decision, warnings, notice) = store.write(|db| {
        let goal = db.goal(call.session_id())?.ok_or_else(|| StoreError::Value(GOAL_VANISHED.into()))?;
        let tokens_before = goal.total_tokens();
        let (mut goal, seen) = accounting::record(db, goal, &readings, call.origin, call.now)?;
        db.touch_session(call.session_id(), call.now)?;
        if let Some(notice) = pause_notice(call.host(), &seen) {
            return Ok((goal, Decision::Silent, Vec::new(), Some(notice)));
        }
        if !accounting::is_charged(&goal) {
            return Ok((end_final_turn(db, &goal, tokens_before, call)?, Decision::Silent, Vec::new(), None));
        }
        let shared = spend::shared(db, &config.limits.0, call.now)?;
        let mut warnings = Vec::new();
        if let Some((change, limits)) = turn::warn(&goal, shared, call.now) {
            goal = db.save(&goal, change, call.origin)?;
            warnings = limits;
        }
        let end = TurnEnd {
            after_continuation,
            message: last_message.map(text::fingerprint),
            worked: seen.worked,
            user_waits: seen.user_waits,
            background_work,
            native_goal: native_goal.map_or(seen.native_goal.is_some(), |goal| goal != NativeGoal::Over),
            block_cap: (adapter(call.host()).block_cap)(),
        };
        let rules = TurnRules {
            no_progress_limit: config.goal.no_progress_limit,
            always_pause_uncertain: config.accounting.on_compact == OnCompact::Pause,
            shared,
        };
        let (change, decision) = turn::at_stop(&goal, &end, rules, call.now);
        if let Some(mut change) = change {
            if decision == Decision::HandOver && (adapter(call.host()).can_rewake)() {
                change.goal.wake_at_ms = Some(call.now);
            }
            goal = db.save(&goal, change, call.origin)?;
        }
        Ok::<_, StoreError>((goal, decision, warnings, None))
    })?;
    if notice.is_some() {
        return Ok(HookReply { message: notice, ..HookReply::default() });
    }
    reply(call, store.read(), &goal, decision, &warnings)
}

/// The turn that ended the goal is over: nothing more is charged to it.
pub(super) fn end_final_turn(db: Db<'_>, goal: &Goal, tokens_before: i64, call: &Call<'_>) -> Result<Goal, StoreError> {
    let tokens = goal.total_tokens() - tokens_before;
    let after = Goal { updated_at_ms: call.now, ..goal.clone() };
    let mut event = Event::new(EventKind::FinalTurnAccounted, json!({"tokens": tokens}));
    event.tokens_delta = Some(tokens);
    db.save(goal, Change { goal: after, events: vec![event], span: Span::Close }, call.origin)
}

fn wait_for_last_message(
    host: Host,
    readings: &mut [FileReading],
    last_message: Option<&str>,
) -> Result<(), StoreError> {
    let Some(expected) = last_message.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let deadline = Instant::now() + LAST_MESSAGE_WAIT;
    loop {
        // The client joins the text blocks of a message; the last one shows that it has arrived.
        let arrived = accounting::last_text(readings).is_some_and(|text| expected.ends_with(text.trim()));
        if arrived || Instant::now() >= deadline {
            return Ok(());
        }
        std::thread::sleep(LAST_MESSAGE_STEP);
        accounting::read_on(host, readings)?;
    }
}

fn reply(
    call: &Call<'_>,
    db: Db<'_>,
    goal: &Goal,
    decision: Decision,
    warnings: &[Axis],
) -> Result<HookReply, HookError> {
    let now = call.now;
    // Reads the session's file, so it is called only for a prompt.
    let wording = || restore::wording(call, db, goal);
    let mut messages: Vec<String> =
        warnings.iter().map(|limit| format!("steadfast: {}", goal.standing(*limit, now).describe_near())).collect();
    let mut block = None;
    match decision {
        Decision::Silent | Decision::UserFirst | Decision::BackgroundFirst => {}
        Decision::NativeGoalDrives => {
            messages.push("steadfast: the client's own /goal is driving; /goal clear lets this goal continue.".into());
        }
        Decision::Continue => block = Some(prompt::continuation(goal, wording()?, warnings, now)?),
        Decision::WindDown(limit) => {
            messages.push(format!("steadfast: limit reached ({}); one turn to wind down.", goal.standing(limit, now).describe_reached()));
            block = Some(prompt::wind_down(goal, wording()?, limit, now)?);
        }
        Decision::Limited(limit) => messages.push(limited(goal, limit, call)),
        Decision::NoProgress => messages.push(call.host().spell(&format!(
            "steadfast: no progress in {} turns, so the goal is paused (no_progress). /goal-resume continues.",
            call.paths.config.goal.no_progress_limit
        ))),
        Decision::AccountingUncertain => messages.push(call.host().spell(
            "⚠ steadfast: token accounting is uncertain, so the goal is paused (accounting_uncertain). \
             Run /goal-reconcile --accept-reset to resume.",
        )),
        Decision::HandOver if (adapter(call.host()).can_rewake)() => {
            messages.push("steadfast: Claude Code ends a turn after this many blocks without a tool call; the goal continues in a new turn.".into());
        }
        Decision::HandOver => messages.push(
            "steadfast: Claude Code's cap on Stop blocks is reached, so the turn ends; the goal stays active and continues \
             with the next prompt. CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts the cap."
                .into(),
        ),
    }
    let message = (!messages.is_empty()).then(|| messages.join("\n"));
    Ok(HookReply { block, message, ..HookReply::default() })
}

fn limited(goal: &Goal, limit: Axis, call: &Call<'_>) -> String {
    let way_on = match limit.extend_flag() {
        Some(flag) => format!("/goal-extend {flag} continues it"),
        None => "/goal-resume continues it when there is room again".to_owned(),
    };
    let reached = goal.standing(limit, call.now).describe_reached();
    format!("steadfast: the goal is {}: {reached}. {}.", goal.state(), call.host().spell(&way_on))
}

/// Between two rounds of tool calls: charge, warn, and hold a long turn to its limits.
pub(super) fn batch(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let Some(readings) = readings_of_running_goal(call, store)? else {
        return remember::seen(call, store);
    };
    let (goal, decision, warnings, notice) = store.write(|db| {
        let recorded = call.record(db, &readings)?;
        let (mut goal, seen) = recorded.ok_or_else(|| StoreError::Value(GOAL_VANISHED.into()))?;
        db.touch_session(call.session_id(), call.now)?;
        db.remember(call.session_id(), &call.found, call.now)?;
        let shared = spend::shared(db, &call.paths.config.limits.0, call.now)?;
        let mut warnings = Vec::new();
        if let Some((change, limits)) = turn::warn(&goal, shared, call.now) {
            goal = db.save(&goal, change, call.origin)?;
            warnings = limits;
        }
        let (change, decision) = turn::at_batch(&goal, shared, call.now);
        if let Some(change) = change {
            goal = db.save(&goal, change, call.origin)?;
        }
        Ok::<_, StoreError>((goal, decision, warnings, pause_notice(call.host(), &seen)))
    })?;
    if notice.is_some() {
        return Ok(HookReply { message: notice, ..HookReply::default() });
    }
    Ok(match decision {
        BatchDecision::Proceed if warnings.is_empty() => HookReply::default(),
        BatchDecision::Proceed => {
            let phrases: Vec<String> =
                warnings.iter().map(|limit| goal.standing(*limit, call.now).describe_near()).collect();
            let limits = phrases.join("; ");
            HookReply {
                context: Some(prompt::render(
                    include_str!("../../prompts/near_limit.md"),
                    context! { limits => limits.as_str() },
                )?),
                message: Some(format!("steadfast: {limits}")),
                ..HookReply::default()
            }
        }
        BatchDecision::WindDown(limit) => HookReply {
            context: Some(prompt::wind_down(&goal, restore::wording(call, store.read(), &goal)?, limit, call.now)?),
            message: Some(format!(
                "steadfast: limit reached ({}); the turn winds down.",
                goal.standing(limit, call.now).describe_reached()
            )),
            ..HookReply::default()
        },
        BatchDecision::EndTurn(limit) => {
            let message = limited(&goal, limit, call);
            HookReply { block: Some(message.clone()), message: Some(message), ..HookReply::default() }
        }
    })
}

/// The user stopped the turn: no Stop follows, and the goal pauses. A turn of the client's own goal does not count:
/// `codex exec` ends one in this way whenever it exits.
pub(super) fn interrupted(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if let Some(turn_id) = &call.input.turn_id {
        store.write(|db| db.interrupt_commands(call.session_id(), turn_id, call.now))?;
    }
    if native::of_session(store.read(), call.session_id())?.is_some() {
        return Ok(HookReply::default());
    }
    let Some(readings) = readings_of_running_goal(call, store)? else {
        return Ok(HookReply::default());
    };
    let message = store.write(|db| {
        let Some((goal, seen)) = call.record(db, &readings)? else {
            return Ok(None);
        };
        db.touch_session(call.session_id(), call.now)?;
        if goal.status == GoalStatus::Active {
            accounting::pause_interrupted(db, &goal, call.origin, call.now)?;
            return Ok::<_, StoreError>(Some(call.host().spell(INTERRUPTED)));
        }
        Ok(pause_notice(call.host(), &seen))
    })?;
    Ok(HookReply { message, ..HookReply::default() })
}

fn readings_of_running_goal(call: &Call<'_>, store: &Store) -> Result<Option<Vec<FileReading>>, HookError> {
    if !store.read().goal(call.session_id())?.is_some_and(|goal| accounting::is_charged(&goal)) {
        return Ok(None);
    }
    match &call.input.transcript {
        Some(transcript) => Ok(Some(accounting::read_session(store, call.host(), call.session_id(), transcript)?)),
        None => Ok(Some(Vec::new())),
    }
}
