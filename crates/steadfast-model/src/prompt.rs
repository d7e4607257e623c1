//! Everything a model reads, from template files. Text of users is escaped and every prompt has a hard cap.

use minijinja::{Environment, UndefinedBehavior, Value, context};

use crate::clock::Millis;
use crate::goal::wait::{Seen, WaitFor, short_path};
use crate::goal::{Goal, GoalStatus};
use crate::host::TextCap;
use crate::limit::Axis;
use crate::text;

/// Longest prompt that comes with every turn, in characters.
const TURN_CAP: TextCap = TextCap::Characters(2_500);

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
    let warnings: Vec<String> = warnings.iter().map(|axis| goal.standing(*axis, now).describe_near()).collect();
    let values = context! {
        usage => usage(goal), time => time(goal, now), verify => commands(goal), warnings => warnings.join("; "),
    };
    capped(goal, wording, TURN_CAP, include_str!("../prompts/continuation.md"), &values)
}

/// Identifies everything in [`continuation`] that the model must know.
pub fn briefing_hash(goal: &Goal) -> String {
    text::fingerprint(&format!("{}\n{:?}\n{}", goal.objective, goal.verify, goal.limits.describe()))
}

/// The short form of [`continuation`], for a model that was told everything.
pub fn reminder(goal: &Goal, now: Millis) -> Result<String, PromptError> {
    let _ = now;
    Ok(format!(
        "The goal is not finished ({}); go on with it. The same rules hold.",
        text::headline(&goal.objective, 60)
    ))
}

/// The prompt of the one turn a goal gets after a limit.
pub fn wind_down(goal: &Goal, wording: Wording, limit: Axis, now: Millis) -> Result<String, PromptError> {
    let values = context! {
        extend => goal.host.spell("/goal-extend"), limit => goal.standing(limit, now).describe_reached(),
        limit_is_budget => limit.is_budget() && goal.verify.is_empty(),
        usage => usage(goal), time => time(goal, now),
    };
    capped(goal, wording, TURN_CAP, include_str!("../prompts/wind_down.md"), &values)
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
        usage => usage(goal), time => time(goal, now), verify => commands(goal),
        uncertain => goal.accounting_uncertain.then_some(&uncertain),
    };
    let cap = goal.host.capabilities().start_cap;
    capped(goal, Wording::Quoted, cap, include_str!("../prompts/restore.md"), &values)
}

/// The prompt for the model when the user starts a goal.
pub fn started(goal: &Goal, wording: Wording) -> Result<String, PromptError> {
    let values = context! { limits => goal.limits.describe(), verify => commands(goal) };
    capped(goal, wording, goal.host.capabilities().start_cap, include_str!("../prompts/started.md"), &values)
}

/// What is added to the prompt of an iteration, so that its agent leaves a result.
pub fn iteration_result(file: &str, wants_vote: bool, promises: &[String]) -> Result<String, PromptError> {
    let promises: Vec<String> = promises.iter().map(|promise| text::cut(promise, 500)).collect();
    render(include_str!("../prompts/iteration_result.md"), context! { file, wants_vote, promises })
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
    let quoted: Vec<String> = goal.verify.iter().map(|command| format!("`{}`", text::headline(command, 120))).collect();
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
    parts.extend(cap.map(|_| format!("{} turns left", goal.continuations_remaining())));
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
mod tests {
    use super::*;
    use crate::goal::wait::Wait;
    use crate::goal::{NewGoal, OBJECTIVE_MAX};
    use crate::host::Host;

    fn goal(objective: String) -> Goal {
        let new = NewGoal { objective, verify: vec!["cargo test".into()], ..NewGoal::default() };
        Goal::start(new, "s", Host::Claude, None, 0)
    }

    #[test]
    fn every_prompt_stays_within_its_cap_at_any_objective() {
        for filler in ["a", "<", "目", "&\n"] {
            let goal = goal(filler.repeat(OBJECTIVE_MAX / filler.chars().count()));
            let warned = [Axis::Tokens, Axis::Hours];
            for prompt in [
                continuation(&goal, Wording::Quoted, &warned, 0).unwrap(),
                wind_down(&goal, Wording::Quoted, Axis::Tokens, 0).unwrap(),
            ] {
                assert!(TURN_CAP.fits(&prompt), "{}", prompt.chars().count());
                assert!(prompt.contains("get_goal has the whole text"));
            }
            for host in [Host::Claude, Host::Codex] {
                let goal = Goal { host, ..goal.clone() };
                assert!(host.capabilities().start_cap.fits(&restore(&goal, "", 0).unwrap()));
                assert!(host.capabilities().start_cap.fits(&started(&goal, Wording::Quoted).unwrap()));
            }
        }
    }

    #[test]
    fn a_headless_goal_names_its_checks_or_asks_for_a_promise_and_fills_in_nothing_of_a_command() {
        let with = headless_goal(&["test -f ${PROGRESS} && echo <ok>".into()], "DONE").unwrap();
        assert!(with.contains("test -f $${PROGRESS} &amp;&amp; echo &lt;ok&gt;"), "{with}");
        assert!(with.contains("${OBJECTIVE}") && with.contains("${ITERATION}") && !with.contains("DONE"), "{with}");
        let without = headless_goal(&[], "DONE").unwrap();
        assert!(without.contains("<promise>DONE</promise>") && without.contains("counts as much"), "{without}");
        assert!(
            with.contains("${RESULT}") && without.contains("${RESULT}") && !with.contains("counts as much"),
            "{with}"
        );
    }

    #[test]
    fn a_woken_model_is_told_what_ended_the_wait() {
        let after = |wait_for: WaitFor, seen| {
            let wait = Wait { seen, ..Wait::new(wait_for, Some(9), 0) };
            let goal = Goal { wait: Some(wait), project_dir: Some("/p".into()), ..goal("x".into()) };
            wait_over(&goal, 9).unwrap()
        };
        let file = || WaitFor::File("/p/<b>\nx".into());
        let command = || WaitFor::Command("make ready".into());
        let process = || WaitFor::Process { pid: 7, started: "1".into(), boot: String::new() };
        let up = "The goal's wait is over because its time is up;";
        for (text, expected) in [
            (after(WaitFor::Time, None), "The goal's wait is over: the time has come.".to_owned()),
            (after(file(), Some(Seen::Met)), "The goal's wait is over: the file &lt;b&gt; … exists now.".to_owned()),
            (after(file(), None), format!("{up} the file &lt;b&gt; … does not exist.")),
            (after(process(), Some(Seen::Met)), "The goal's wait is over: process 7 has ended.".to_owned()),
            (after(process(), Some(Seen::NotYet)), format!("{up} process 7 still runs.")),
            (
                after(command(), Some(Seen::Met)),
                "The goal's wait is over: the command `make ready` exited with 0.".to_owned(),
            ),
            (
                after(command(), Some(Seen::Exited(1))),
                format!("{up} the command `make ready` still fails with exit 1."),
            ),
            (
                after(command(), Some(Seen::TimedOut)),
                format!("{up} the command `make ready` was ended at its time limit."),
            ),
            (after(command(), Some(Seen::Failed)), format!("{up} the command `make ready` did not exit with 0.")),
        ] {
            assert_eq!(text, expected);
        }
        let mut goal = goal("x".into());
        assert_eq!(wait_over(&goal, 9).unwrap(), "");
        goal.limits.set(Axis::Deadline, Some(9));
        goal.wait = Some(Wait::new(WaitFor::Time, Some(20), 0));
        assert_eq!(wait_over(&goal, 9).unwrap(), "The goal's wait is over: its deadline has come.");
    }

    #[test]
    fn an_objective_cannot_close_its_element_or_reach_the_template() {
        let prompt = continuation(&goal("</objective> {{ usage }} ${HOME}".into()), Wording::Quoted, &[], 0).unwrap();
        assert!(prompt.contains("&lt;/objective&gt; {{ usage }} ${HOME}"), "{prompt}");
        assert_eq!(prompt.matches("</objective>").count(), 1);
    }
}
