//! Everything a model reads, from template files. Text of users is escaped and every prompt has a hard cap.

mod answered;
mod items;

use minijinja::{Environment, UndefinedBehavior, Value, context};

use crate::clock::Millis;
use crate::goal::wait::{Seen, WaitFor, short_path};
use crate::goal::{Goal, GoalStatus};
use crate::host::TextCap;
use crate::limit::{Axis, Standing};
use crate::redact::redact;
use crate::text;

pub use answered::answered;

/// Longest prompt that comes with every turn, in characters, without the list of open items.
const TURN_CAP: usize = 2_500;
/// How much of the objective a reminder quotes.
const REMINDER_COLUMNS: usize = 56;
/// What every full text says about how to work on a goal.
const RULES: &str = include_str!("../prompts/rules.md");

/// The prompt of a stage that merges, if it has none of its own. A template of a run, see `run/template.rs`.
pub const MERGE: &str = include_str!("../prompts/merge.md");

#[derive(Debug, thiserror::Error)]
#[error("prompt template: {0}")]
pub struct PromptError(#[from] minijinja::Error);

/// How a prompt speaks of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// Word for word.
    Quoted,
    /// The user stated it in the conversation, and it is still there: saying it again would only make it longer.
    InConversation,
}

/// The prompt that keeps the agent going.
pub fn continuation(goal: &Goal, wording: Wording, warnings: &[Axis], now: Millis) -> Result<String, PromptError> {
    let values = context! {
        usage => usage(goal), time => time(goal, now), rules => rules(goal)?, warnings => near(goal, warnings, now),
    };
    capped(goal, wording, items::turn_cap(goal), include_str!("../prompts/continuation.md"), &values)
}

/// One line instead of [`continuation`], for a model that has the full text of the same [`briefing_hash`] in its context.
pub fn reminder(goal: &Goal, wording: Wording, warnings: &[Axis], now: Millis) -> Result<String, PromptError> {
    // Angle brackets could end an element that the client puts around this line.
    let plain = text::headline(&goal.objective, REMINDER_COLUMNS).replace('<', "‹").replace('>', "›");
    let objective = match wording {
        Wording::Quoted => text::cut_to_columns(&plain, REMINDER_COLUMNS),
        Wording::InConversation => String::new(),
    };
    let values = context! {
        objective, used => used_of_tightest(goal, now), open => items::count(goal), warnings => near(goal, warnings, now),
    };
    render(include_str!("../prompts/reminder.md"), values)
}

/// Identifies what the full texts say: everything that the model must know about the goal, without what is used of it.
pub fn briefing_hash(goal: &Goal) -> String {
    let mut known = text::Fingerprint::default();
    let (limits, host) = (goal.limits.describe(), goal.host.capabilities());
    let facts = [RULES, &goal.objective, &limits, host.tool_prefix].into_iter();
    let asked = [(goal.judge, "judge"), (goal.sign_off, "sign-off")].into_iter().filter(|(is_asked, _)| *is_asked);
    let items = goal.items.iter().map(|item| item.text.as_str()).chain(asked.map(|(_, name)| name));
    for fact in facts.chain(goal.verify.iter().map(String::as_str)).chain(items) {
        known.add(fact.as_bytes());
        known.add(&[0]);
    }
    format!("{:032x}", known.value())
}

/// The prompt of the one turn a goal gets after a limit.
pub fn wind_down(goal: &Goal, wording: Wording, limit: Axis, now: Millis) -> Result<String, PromptError> {
    let values = context! {
        extend => goal.host.spell("/goal-extend"), limit => goal.standing(limit, now).describe_reached(),
        limit_is_budget => limit.is_budget() && goal.verify.is_empty(),
        usage => usage(goal), time => time(goal, now),
    };
    capped(goal, wording, TextCap::Characters(TURN_CAP), include_str!("../prompts/wind_down.md"), &values)
}

/// What ended the wait of a goal, for the prompt that wakes its model; empty if the goal does not wait. The goal is the
/// one before the wake-up, which forgets the wait.
pub fn wait_over(goal: &Goal, now: Millis) -> Result<String, PromptError> {
    let Some(wait) = &goal.wait else { return Ok(String::new()) };
    let (kind, what) = match &wait.wait_for {
        WaitFor::Time => ("time", String::new()),
        WaitFor::Command(command) => ("command", format!("the command `{}`", text::headline(command, 120))),
        WaitFor::File(path) => ("file", format!("the file {}", short_path(path, goal.project_dir.as_deref()))),
        WaitFor::Process { pid, .. } => ("process", format!("process {pid}")),
    };
    let exit_code = match wait.seen {
        Some(Seen::Exited(code)) => Some(code),
        _ => None,
    };
    let values = context! {
        kind, what => text::escape_xml(&what), met => wait.is_met(), exit_code, timed_out => wait.seen == Some(Seen::TimedOut),
        deadline => goal.limits.get(Axis::Deadline).is_some_and(|at| at <= now),
    };
    render(include_str!("../prompts/wait_over.md"), values)
}

/// What a session must know when its goal was changed or taken over.
pub fn restore(goal: &Goal, after: &str, now: Millis) -> Result<String, PromptError> {
    let uncertain = goal.host.spell("the user must run /goal-reconcile --accept-reset before the goal can go on.");
    let values = context! {
        after, status => goal.state(), active => goal.status == GoalStatus::Active,
        usage => usage(goal), time => time(goal, now), rules => rules(goal)?,
        uncertain => goal.accounting_uncertain.then_some(&uncertain),
    };
    let cap = goal.host.capabilities().start_cap;
    capped(goal, Wording::Quoted, cap, include_str!("../prompts/restore.md"), &values)
}

/// The prompt for the model when the user starts a goal.
pub fn started(goal: &Goal, wording: Wording) -> Result<String, PromptError> {
    let values = context! { limits => goal.limits.describe(), rules => rules(goal)? };
    capped(goal, wording, goal.host.capabilities().start_cap, include_str!("../prompts/started.md"), &values)
}

/// What is added to the prompt of an iteration, so that its agent leaves a result. `file` is `None` for prompts that say
/// themselves what to write where.
pub fn iteration_result(file: Option<&str>, wants_vote: bool, promises: &[String]) -> Result<String, PromptError> {
    let promises: Vec<String> = promises.iter().map(|promise| text::cut(promise, 500)).collect();
    render(include_str!("../prompts/iteration_result.md"), context! { file, wants_vote, promises })
}

/// What people said to a run, for the iteration that takes it.
pub fn user_notes(notes: &[String]) -> Result<String, PromptError> {
    let notes: Vec<String> = notes.iter().map(|note| text::escape_xml(note)).collect();
    render(include_str!("../prompts/user_notes.md"), context! { notes })
}

/// The template of a headless goal's iterations. `${OBJECTIVE}`, `${PROGRESS}`, `${RESULT}` and `${ITERATION}` are
/// filled in by each of them, see `run/template.rs`; commands of the user are quoted here, and nothing in them is filled in.
pub fn headless_goal(verify: &[String], promise: &str) -> Result<String, PromptError> {
    let quoted = |command: &String| text::escape_xml(&text::cut(command, 500)).replace("${", "$${");
    let verify: Vec<String> = verify.iter().map(quoted).collect();
    render(include_str!("../prompts/headless_goal.md"), context! { verify, promise })
}

/// What another agent is asked about an iteration: whether the work has levelled off.
pub fn judge(asked: &str, answer: &str, earlier: &str, file: &str) -> Result<String, PromptError> {
    const MOST: usize = 20_000;
    let quoted = |text: &str| text::escape_xml(text::tail(text, MOST));
    render(
        include_str!("../prompts/judge.md"),
        context! { file, asked => quoted(asked), answer => quoted(answer), earlier => quoted(earlier) },
    )
}

fn rules(goal: &Goal) -> Result<String, PromptError> {
    let host = goal.host.capabilities();
    let values = context! {
        verify => commands(goal), tools => host.tool_prefix, evaluator => host.proves_evaluator,
        evaluator_start => host.evaluator_start,
        items => items::open(goal), judge => goal.judge, sign_off => goal.sign_off,
    };
    render(RULES, values)
}

/// Limits that are nearly used up, in one phrase.
fn near(goal: &Goal, warnings: &[Axis], now: Millis) -> String {
    let phrases: Vec<String> = warnings.iter().map(|axis| goal.standing(*axis, now).describe_near()).collect();
    phrases.join("; ")
}

/// What is used of the limit that will be reached first.
fn used_of_tightest(goal: &Goal, now: Millis) -> String {
    let share = |standing: &Standing| i128::from(standing.used) * 1_000_000 / i128::from(standing.most.max(1));
    let Some(tightest) = goal.limits.standings(&goal.used(now)).max_by_key(share) else {
        return format!("{} tokens used, no limit", text::short_number(goal.total_tokens()));
    };
    let Standing { axis, used, most } = tightest;
    match axis {
        Axis::Tokens => format!("{} of {} tokens used", text::short_number(used), text::short_number(most)),
        Axis::Deadline => axis.format(goal.limits.get(axis).unwrap_or_default()),
        Axis::Turns => format!("{used} of {most} turns used"),
        Axis::Usd | Axis::Hours | Axis::Shared | Axis::Plan => {
            format!("{} of {} used", axis.format(used), axis.format(most))
        }
    }
}

/// Renders a template with strict variables.
pub fn render(template: &str, values: Value) -> Result<String, PromptError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    Ok(environment.render_str(template, values)?.trim_end().to_owned())
}

/// Renders with the whole objective if that fits, else with as much of it as does.
fn capped(goal: &Goal, wording: Wording, cap: TextCap, template: &str, values: &Value) -> Result<String, PromptError> {
    let host = goal.host.capabilities();
    let with = |objective: &str| {
        let (tools, evaluator) = (host.tool_prefix, host.proves_evaluator);
        render(template, context! { objective, tools, evaluator, ..values.clone() })
    };
    if wording == Wording::InConversation {
        return with("");
    }
    let whole = with(&text::escape_xml(&goal.objective))?;
    if cap.fits(&whole) {
        return Ok(whole);
    }
    // Escaping makes text longer, so the room is found by halving.
    let mut keep = goal.objective.chars().count();
    loop {
        keep /= 2;
        let start: String = goal.objective.chars().take(keep).collect();
        let (start, tools) = (text::escape_xml(&start), host.tool_prefix);
        let shorter = with(&format!("{start}… (cut; {tools}get_goal has the whole text)"))?;
        if cap.fits(&shorter) {
            return Ok(shorter);
        }
        if keep == 0 {
            return Ok(text::cut(&shorter, cap.safe_characters()));
        }
    }
}

/// The verify commands, bounded and escaped.
pub fn commands(goal: &Goal) -> String {
    let shown = |command: &String| format!("`{}`", text::headline(&redact(command), 120));
    let quoted: Vec<String> = goal.verify.iter().map(shown).collect();
    text::cut(&text::escape_xml(&quoted.join(", ")), 300)
}

/// Tokens, money and turns in one phrase.
pub fn usage(goal: &Goal) -> String {
    let tokens = match goal.limits.get(Axis::Tokens) {
        Some(budget) => format!(
            "{} of {} tokens ({} left)",
            text::thousands(goal.total_tokens()),
            text::thousands(budget),
            text::thousands(goal.remaining_tokens().unwrap_or(0))
        ),
        None => format!("{} tokens, no token budget", text::thousands(goal.total_tokens())),
    };
    let mut parts = vec![tokens];
    let budget = goal.limits.get(Axis::Usd);
    parts.extend(budget.map(|budget| format!("{} of {}", text::usd(goal.cost_micros), text::usd(budget))));
    let cap = goal.limits.get(Axis::Turns);
    parts.extend(cap.map(|_| format!("{} left", text::count(goal.continuations_remaining(), "turn"))));
    parts.join(", ")
}

fn time(goal: &Goal, now: Millis) -> String {
    let used = text::duration(goal.active_seconds(now));
    match goal.limits.get(Axis::Hours) {
        Some(most) => format!("{used} of {}", Axis::Hours.format(most)),
        None => used,
    }
}

#[cfg(test)]
mod tests;
