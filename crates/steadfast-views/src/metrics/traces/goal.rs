//! The trace of a goal: the goal, and its turns as far as the event log shows them.

use std::collections::BTreeMap;

use steadfast_model::clock::Millis;
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::reading::Tokens;
use steadfast_store::{Db, EventFilter, EventRow, GoalResponse, StoreError};

use super::sent::{Sent, SentMark};
use super::span::{SpanStatus, TraceSpan};
use super::{Trace, TraceOptions, TraceSubject};

/// Span events of a goal.
const EVENTS_MOST: usize = 200;
/// Events that say nothing beside the turns.
const COUNTS: [EventKind; 4] = [
    EventKind::ContinuationInjected,
    EventKind::FinalTurnAccounted,
    EventKind::RunIteration,
    EventKind::TokensAccounted,
];

/// A turn that is over.
#[derive(Debug, Default, PartialEq, Eq)]
struct Turn {
    number: i64,
    start_ms: Millis,
    end_ms: Millis,
    has_failed: bool,
}

/// Finds the turns of a goal in its events, in their order.
#[derive(Debug, Default)]
struct Turns {
    over: Vec<Turn>,
    /// Since when the present one runs, and when something was last seen of it.
    open: Option<(Millis, Millis)>,
}

impl Turns {
    fn close(&mut self, end_ms: Millis, has_failed: bool) {
        if let Some((start_ms, _)) = self.open.take() {
            let number = self.over.last().map_or(1, |turn| turn.number + 1);
            self.over.push(Turn { number, start_ms, end_ms, has_failed });
        }
    }

    fn see(&mut self, event: &EventRow) {
        let at = event.created_at_ms;
        let runs = |status: &Option<String>| {
            status
                .as_deref()
                .and_then(|status| status.parse().ok())
                .is_some_and(|status| matches!(status, GoalStatus::Active | GoalStatus::BudgetLimited))
        };
        match event.kind.parse() {
            Ok(EventKind::GoalCreated) => self.open = Some((at, at)),
            // A hook keeps the turn going, or the next one begins a moment later.
            Ok(EventKind::ContinuationInjected | EventKind::WindDownStarted | EventKind::RunIteration) => {
                self.close(at, false);
                self.open = Some((at, at));
            }
            Ok(EventKind::TurnFailed) => self.close(at, true),
            Ok(EventKind::BlockCapReached) => self.close(at, false),
            Ok(EventKind::GoalWoken) => {
                // The turn before ended when something was last seen of it, which may be nothing at all.
                match self.open {
                    Some((start, last)) if last > start => self.close(last, false),
                    _ => {}
                }
                self.open = Some((at, at));
            }
            _ if runs(&event.status_before) && !runs(&event.status_after) => self.close(at, false),
            _ if !runs(&event.status_before) && runs(&event.status_after) => self.open = Some((at, at)),
            Ok(EventKind::TokensAccounted) if self.open.is_none() && runs(&event.status_after) => {
                let start = self.over.last().map_or(at, |turn| turn.end_ms);
                self.open = Some((start, at));
            }
            _ => {
                if let Some((_, last)) = &mut self.open {
                    *last = at;
                }
            }
        }
    }
}

/// What the responses of a time used.
struct UsedTokens<'a> {
    tokens: Tokens,
    cost_micros: Option<i64>,
    model: Option<&'a str>,
}

fn used(responses: &[GoalResponse]) -> Option<UsedTokens<'_>> {
    let mut by_model = BTreeMap::<&str, i64>::new();
    let mut sum = UsedTokens { tokens: Tokens::default(), cost_micros: Some(0), model: None };
    for response in responses {
        sum.tokens += response.tokens;
        sum.cost_micros = sum.cost_micros.zip(response.cost_micros).map(|(sum, own)| sum.saturating_add(own));
        *by_model.entry(&response.model).or_default() += response.tokens.total();
    }
    sum.model = by_model.into_iter().max_by_key(|(_, tokens)| *tokens).map(|(model, _)| model);
    (!responses.is_empty()).then_some(sum)
}

fn add_usage(span: &mut TraceSpan, responses: &[GoalResponse]) {
    if let Some(used) = used(responses) {
        span.with_some("gen_ai.request.model", used.model).with_tokens(&used.tokens).with_cost(used.cost_micros);
    }
}

pub(super) fn trace(
    db: Db<'_>,
    goal: &Goal,
    is_over: bool,
    sent: &Sent,
    options: TraceOptions,
) -> Result<Trace, StoreError> {
    let subject = TraceSubject::Goal(goal.goal_id.clone());
    let key = subject.key();
    let mut mark = sent.mark(&key);
    let ended_at_ms = if is_over { Some(db.over_since(&goal.goal_id)?.unwrap_or(goal.updated_at_ms)) } else { None };
    let is_new = mark.ended_at_ms.is_none() && ended_at_ms.is_none_or(|ended| ended >= sent.since_ms);
    if !is_new {
        return Ok(Trace { subject, mark, spans: Vec::new() });
    }
    let (mut turns, mut marks) = (Turns::default(), Vec::new());
    db.each_event(EventFilter::Goal(&goal.goal_id), |event| {
        turns.see(&event);
        if marks.len() < EVENTS_MOST && !COUNTS.iter().any(|kind| event.kind == <&str>::from(*kind)) {
            marks.push((event.kind, event.created_at_ms));
        }
        Ok::<_, StoreError>(())
    })?;
    if let Some(ended) = ended_at_ms {
        turns.close(ended, false);
    }
    let responses = db.responses_of_goal(&goal.goal_id)?;
    let mut spans = Vec::new();
    for turn in turns.over.iter().filter(|turn| mark.until_ms.is_none_or(|until| turn.end_ms > until)) {
        spans.push(turn_span(&key, goal, turn, &responses).into_json());
    }
    mark.until_ms = turns.over.last().map(|turn| turn.end_ms).max(mark.until_ms);
    if let Some(ended) = ended_at_ms {
        let mut root = root(&key, goal, ended, &responses, options);
        for (kind, at) in &marks {
            root.add_event(kind, *at);
        }
        spans.push(root.into_json());
        mark = SentMark { ended_at_ms: Some(ended), ..mark };
    }
    Ok(Trace { subject, mark, spans })
}

fn turn_span(key: &str, goal: &Goal, turn: &Turn, responses: &[GoalResponse]) -> TraceSpan {
    let name = format!("invoke_agent {}", goal.host.capabilities().product);
    let mut span = TraceSpan::child(key, &turn.number.to_string(), &name, turn.start_ms, turn.end_ms);
    if turn.has_failed {
        span.status = SpanStatus::Error;
    }
    span.with("gen_ai.operation.name", "invoke_agent")
        .with_agent(goal.host)
        .with("gen_ai.conversation.id", goal.session_id.as_str())
        .with("steadfast.goal.id", goal.goal_id.as_str())
        .with("steadfast.turn", turn.number);
    let from = responses.partition_point(|response| response.at_ms < turn.start_ms);
    let to = responses.partition_point(|response| response.at_ms < turn.end_ms);
    add_usage(&mut span, responses.get(from..to).unwrap_or_default());
    span
}

fn root(key: &str, goal: &Goal, ended: Millis, responses: &[GoalResponse], options: TraceOptions) -> TraceSpan {
    let mut span = TraceSpan::root(key, "goal", goal.created_at_ms, ended);
    if goal.status == GoalStatus::Complete {
        span.status = SpanStatus::Ok;
    }
    span.with_agent(goal.host)
        .with("gen_ai.conversation.id", goal.session_id.as_str())
        .with("steadfast.goal.id", goal.goal_id.as_str())
        .with("steadfast.goal.status", <&str>::from(goal.status))
        .with_some("steadfast.goal.completed_by", goal.completed_by.map(<&str>::from))
        .with("steadfast.goal.tokens", goal.total_tokens())
        .with("steadfast.goal.turns", goal.continuations_used)
        .with("steadfast.goal.active_seconds", goal.active_seconds(ended))
        .with(
            "steadfast.project",
            crate::metrics::collect::base_name(goal.project_dir.as_deref().unwrap_or_default()).as_str(),
        );
    add_usage(&mut span, responses);
    if options.with_text {
        span.with("steadfast.goal.objective", goal.objective.as_str());
    }
    span
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn turns(events: &[(EventKind, &str, &str, Millis)]) -> Vec<(Millis, Millis, bool)> {
        let mut turns = Turns::default();
        for (kind, before, after, at) in events {
            let status = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
            turns.see(&EventRow {
                id: 0,
                session_id: String::new(),
                goal_id: String::new(),
                kind: kind.to_string(),
                hook_name: None,
                actor: None,
                status_before: status(before),
                status_after: status(after),
                version_before: None,
                version_after: None,
                tokens_delta: None,
                payload: Value::Null,
                created_at_ms: *at,
            });
        }
        turns.over.iter().map(|turn| (turn.start_ms, turn.end_ms, turn.has_failed)).collect()
    }

    #[test]
    fn turns_follow_from_the_events() {
        use EventKind::{
            ContinuationInjected, GoalCompletedByUser, GoalCreated, GoalPaused, GoalResumed, GoalWoken,
            TokensAccounted, TurnFailed,
        };
        let (none, on, off) = ("", "active", "paused");
        let started = (GoalCreated, none, on, 0);
        assert_eq!(turns(&[started, (TokensAccounted, on, on, 5)]), []);
        // A hook keeps the turn going, then it pauses and resumes.
        let kept = [
            started,
            (TokensAccounted, on, on, 10),
            (ContinuationInjected, on, on, 10),
            (GoalPaused, on, off, 20),
            (GoalResumed, off, on, 50),
            (GoalCompletedByUser, on, "complete", 60),
        ];
        assert_eq!(turns(&kept), [(0, 10, false), (10, 20, false), (50, 60, false)]);
        // The client is woken for the next turn, which begins a moment after the one before.
        let woken = [
            started,
            (TokensAccounted, on, on, 10),
            (ContinuationInjected, on, on, 10),
            (GoalWoken, on, on, 12),
            (TokensAccounted, on, on, 30),
            (GoalWoken, on, on, 90),
            (GoalPaused, on, off, 95),
        ];
        assert_eq!(turns(&woken), [(0, 10, false), (12, 30, false), (90, 95, false)]);
        let failed = [started, (TurnFailed, on, on, 7), (GoalWoken, on, on, 9), (GoalPaused, on, off, 11)];
        assert_eq!(turns(&failed), [(0, 7, true), (9, 11, false)]);
    }
}
