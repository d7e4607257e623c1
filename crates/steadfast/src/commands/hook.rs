//! `steadfast hook HOST`: stdin to event, event to reply. It exits with 0 whatever happens; only the
//! background hook that wakes the client uses another code, because that is how it is done.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use steadfast_core::action::Place;
use steadfast_core::clock;
use steadfast_core::goal::{Actor, Goal, OBJECTIVE_MAX};
use steadfast_core::hook;
use steadfast_core::host::hook::{HookEvent, HookInput, HookReply};
use steadfast_core::host::{Host, adapter, process};
use steadfast_core::log;
use steadfast_core::memory::stated;
use steadfast_core::paths::Paths;
use steadfast_core::prompt::{self, Wording};
use steadfast_core::store::Origin;

use super::goal::{self, Caller};
use super::slash;
use crate::cli::{GoalArgs, GoalVerb, HookArgs, OnGoalVerb, SlashCli, StartArgs};
use crate::failure::{Failure, code};
use crate::output;

/// No real event comes near this.
const STDIN_MAX: u64 = 16 * 1024 * 1024;
/// To the client, an `asyncRewake` hook with this code wakes the model with what is on stderr.
const WAKE: u8 = 2;

pub(crate) fn run(db: Option<&Path>, arguments: &HookArgs) -> ExitCode {
    // Who wants hooks in the agents of runs wants other hooks: a goal inside an iteration would be driven twice.
    if process::is_inside_run() {
        return ExitCode::SUCCESS;
    }
    let paths = match Paths::find(db) {
        Ok(paths) => paths,
        Err(error) => {
            super::log_failure(&format!("hook: {error}"));
            return ExitCode::SUCCESS;
        }
    };
    let host: Host = arguments.host.parse().unwrap_or_default();
    let input = match read_input(host) {
        Ok(Some(input)) => input,
        Ok(None) => return ExitCode::SUCCESS,
        Err(problem) => {
            log::line(&paths.log_file(), &format!("hook {}: {problem}", arguments.host));
            return ExitCode::SUCCESS;
        }
    };
    if arguments.rewake {
        return rewake(&input, &paths);
    }
    let input = hook::as_command(input, &paths);
    let reply = match &input.event {
        HookEvent::Command { verb, arguments } => {
            let noted = hook::handle(&input, &paths, clock::now());
            let reply = command(&input, verb, arguments, &paths);
            HookReply { message: reply.message.or(noted.message), ..reply }
        }
        HookEvent::Directive { objective } => {
            let noted = hook::handle(&input, &paths, clock::now());
            let reply = stated_goal(&input, objective, &paths);
            HookReply { message: reply.message.or(noted.message), ..reply }
        }
        _ => hook::handle(&input, &paths, clock::now()),
    };
    if let Some(text) = (adapter(host).write_reply)(&input.event_name, &reply) {
        output::line(&text);
    }
    ExitCode::SUCCESS
}

fn read_input(host: Host) -> Result<Option<HookInput>, String> {
    let mut stdin = Vec::new();
    std::io::stdin().lock().take(STDIN_MAX + 1).read_to_end(&mut stdin).map_err(|error| error.to_string())?;
    if stdin.len() as u64 > STDIN_MAX {
        return Err(format!("stdin has more than {STDIN_MAX} bytes"));
    }
    if stdin.iter().all(u8::is_ascii_whitespace) {
        return Err("stdin is empty".to_owned());
    }
    (adapter(host).read_hook)(&stdin).map_err(|error| format!("stdin is not a hook event: {error}"))
}

fn rewake(input: &HookInput, paths: &Paths) -> ExitCode {
    match hook::rewake(input, paths) {
        Ok(Some(prompt)) => {
            output::note(&prompt);
            ExitCode::from(WAKE)
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(&paths.log_file(), &format!("rewake {}: {error}", input.session_id));
            ExitCode::SUCCESS
        }
    }
}

/// Answers a slash command. Most need no model: the answer blocks the prompt. Those that give the model
/// something to do let it through with what it must know.
fn command(input: &HookInput, verb: &str, arguments: &str, paths: &Paths) -> HookReply {
    let answer = |text: String| HookReply { block: Some(text), ..HookReply::default() };
    if verb == "doctor" {
        return answer(super::doctor::report(paths).text);
    }
    let ran = slash::words(verb, arguments).and_then(|words| {
        let parsed = SlashCli::try_parse_from(words).map_err(|error| Failure::usage(&error))?;
        let starts_work = matches!(
            parsed.goal.verb,
            GoalVerb::Start(_) | GoalVerb::OnGoal(OnGoalVerb::Edit { .. } | OnGoalVerb::Adopt { .. })
        );
        let outcome = goal::run(&caller(input, paths), parsed.goal)?;
        let native_too = input.host.capabilities().has_goal_command && input.event_name == "UserPromptSubmit";
        if native_too {
            return Ok(answer(format!("{}\n{}", outcome.done.text, native_hint(input.host, verb))));
        }
        match outcome.goal.filter(|_| starts_work) {
            Some(goal) => Ok(HookReply {
                context: Some(work_on(&goal, verb)?),
                message: Some(outcome.done.text),
                ..HookReply::default()
            }),
            None => Ok(answer(outcome.done.text)),
        }
    });
    ran.unwrap_or_else(|failure| answer(input.host.spell(&describe(&failure))))
}

fn native_hint(host: Host, verb: &str) -> String {
    let product = host.capabilities().product;
    format!("If {product} took that for a goal of its own, `/goal clear` ends that one; /goal-{verb} makes none.")
}

/// Starts the goal that a prompt states. A live goal is not replaced by the way.
fn stated_goal(input: &HookInput, objective: &str, paths: &Paths) -> HookReply {
    // The text that is kept as stated; one that is too long is no goal, and not half of one.
    let is_too_long = objective.chars().count() > OBJECTIVE_MAX;
    let objective = if is_too_long { objective.to_owned() } else { stated::kept(objective) };
    let start = StartArgs { objective: vec![objective], ..StartArgs::default() };
    let arguments = GoalArgs { session: None, json: false, verb: GoalVerb::Start(start) };
    let started = goal::run(&caller(input, paths), arguments).and_then(|outcome| {
        let context = outcome.goal.as_ref().map(|goal| work_on(goal, "state")).transpose()?;
        Ok(HookReply { context, message: Some(outcome.done.text), ..HookReply::default() })
    });
    match started {
        Ok(reply) => reply,
        // A live goal stays; what was stated is noted beside it, and the user is told so.
        Err(failure) if failure.code == code::WRONG_STATE => HookReply::default(),
        // The prompt is still a prompt.
        Err(failure) => HookReply {
            message: Some(format!("steadfast: no goal started. {}", describe(&failure))),
            ..HookReply::default()
        },
    }
}

fn caller<'a>(input: &HookInput, paths: &'a Paths) -> Caller<'a> {
    let place = Place {
        session_id: input.session_id.clone(),
        host: input.host,
        project_dir: Some(input.project_dir.clone()).filter(|path| !path.is_empty()),
        transcript: input.transcript.clone(),
    };
    // A slash command is typed by a person; an agent that pipes such an event into us has no more rights than its shell.
    let forged = process::is_inside_agent() && !process::is_started_by_client();
    let actor = if forged { Actor::Worker } else { Actor::User };
    Caller {
        paths,
        origin: Origin { actor, place: "slash-command" },
        place: Some(place),
        directory: input.project_dir.clone().into(),
        now: clock::now(),
    }
}

fn work_on(goal: &Goal, verb: &str) -> Result<String, Failure> {
    let now = clock::now();
    Ok(match verb {
        "start" => prompt::started(goal, Wording::Quoted)?,
        "state" => prompt::started(goal, Wording::InConversation)?,
        "adopt" => prompt::restore(goal, ", taken over from another session", now)?,
        _ => prompt::restore(goal, "; the user has just changed its objective", now)?,
    })
}

fn describe(failure: &Failure) -> String {
    format!("error: {}\nhint: {}", failure.message, failure.hint)
}
