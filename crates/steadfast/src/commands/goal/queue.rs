//! `goal queue`, `goal start --queue`, and the start of the next goal when the live one is ended by hand.

use serde_json::{Value, json};
use steadfast_app::action::{self, Enqueued, Place};
use steadfast_app::overview::queue;
use steadfast_model::goal::{Goal, NewGoal};
use steadfast_model::text;
use steadfast_store::{QueuedGoal, Store};

use super::{CommandContext, GoalOutput, GoalResult, SessionGoal, starting};
use crate::cli::QueueVerb;
use crate::output::CommandOutput;

pub(super) fn run(mut session: SessionGoal<'_>, verb: Option<&QueueVerb>) -> GoalResult {
    let SessionGoal { context, store, place } = &mut session;
    let (id, origin, now) = (&place.session_id, context.origin, context.now);
    let (said, json) = match verb.unwrap_or(&QueueVerb::List) {
        QueueVerb::List => (String::new(), json!({})),
        QueueVerb::Move { number, to } => {
            let moved = action::move_queued(store, id, *number, *to, origin, now)?;
            (format!("moved to number {to}: {}\n", headline(&moved)), json!({}))
        }
        QueueVerb::Drop { number } => {
            let dropped = action::drop_queued(store, id, *number, origin, now)?;
            let said = format!("dropped: {}\n", headline(&dropped));
            (said, json!({"dropped": queue::QueueEntry::from(dropped)}))
        }
    };
    let entries = queue::entries(store.read(), id)?;
    Ok(answer(format!("{said}{}", queue::list_text(&entries)), with_queue(json, &entries)))
}

/// `goal start --queue`. Only a goal that starts now gives the model work.
pub(super) fn enqueue(context: &CommandContext<'_>, store: &mut Store, place: &Place, new: NewGoal) -> GoalResult {
    let objective = text::headline(&new.objective, 80);
    let limits = new.budget.limits.describe();
    let Enqueued { goal, started, number } = action::enqueue(store, place, new, context.origin, context.now)?;
    let seen = context.view(store.read(), &goal, context.now);
    let seen = seen.and_then(|view| Ok((view, queue::entries(store.read(), &place.session_id)?)));
    let (view, entries) = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let message = number.map_or("◎ Goal started".to_owned(), |number| format!("queued as number {number}"));
            return Ok(GoalOutput::unseen(goal, &message, &error));
        }
    };
    let json = with_queue(json!({"goal": view}), &entries);
    let Some(number) = number else {
        let text = starting::started_text(&goal, &view);
        return Ok(GoalOutput { goal: Some(goal), ..answer(text, json) });
    };
    let waits_for = text::headline(&goal.objective, 80);
    let text = format!("queued as number {number}: {objective}\nlimits: {limits}\nlive now: {waits_for}");
    if !started {
        return Ok(answer(text, json));
    }
    let text = format!("next goal started: {waits_for}\n{text}");
    Ok(GoalOutput { goal: Some(goal), ..answer(text, json) })
}

/// The answer of a verb that ended the goal, after the next one of the queue has started.
pub(super) fn ended(mut session: SessionGoal<'_>, goal: Goal, message: &str) -> GoalOutput {
    let SessionGoal { context, store, place } = &mut session;
    // The goal is over, whatever happens here. A hook or the next command starts what this one could not.
    let next = match action::start_next(store, place, context.origin, context.now) {
        Ok(next) => next,
        Err(error) => {
            let message = format!("{message}\nthe next goal has not started yet: {error}");
            return session.output(goal, &message);
        }
    };
    let Some(next) = next else { return session.output(goal, message) };
    let message = format!("{message}\nnext goal started: {}", text::headline(&next.objective, 80));
    let started = match context.view(store.read(), &next, context.now) {
        Ok(started) => started,
        Err(error) => return GoalOutput::unseen(goal, &message, &error),
    };
    let mut done = session.output(goal, &message);
    done.output.text = format!("{message}\nnext: {}", started.next);
    done.output.json["started"] = json!(started);
    done
}

fn headline(entry: &QueuedGoal) -> String {
    text::headline(&entry.goal.objective, 80)
}

fn with_queue(mut json: Value, entries: &[queue::QueueEntry]) -> Value {
    json["queue"] = json!(entries);
    json
}

fn answer(text: String, json: Value) -> GoalOutput {
    GoalOutput { output: CommandOutput { text, json, code: 0 }, goal: None }
}
