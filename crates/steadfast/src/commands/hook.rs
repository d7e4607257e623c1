//! `steadfast hook HOST`: reads a hook event from stdin and prints the reply. It exits with 0 after any error; only the
//! background hook exits with 2, because that code wakes the client.

mod answer;
pub(crate) mod panicked;
mod starting;
mod two_stores;

use std::path::Path;
use std::process::ExitCode;

use steadfast_app::action::Place;
use steadfast_app::caller::NotTheClient;
use steadfast_app::hook;
use steadfast_engine::crash;
use steadfast_hosts::adapter;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::{Actor, Goal, OBJECTIVE_MAX};
use steadfast_model::hook::{HookEvent, HookInput, HookReply, TypedCommand};
use steadfast_model::host::Host;
use steadfast_model::memory::stated;
use steadfast_model::prompt::{self, Wording};
use steadfast_model::redact::redact;
use steadfast_store::{Origin, Store};
use steadfast_system::paths::{PathError, Paths};
use steadfast_system::process::{Caller, Need, ProcessId};
use steadfast_system::{log, process};

use super::goal::{self, CommandContext};
use super::{own_paths, settings, slash, stdin};
use crate::cli::{GoalArgs, GoalVerb, StartArgs};
use crate::error::{CliError, code};
use crate::outbox;
use crate::waiting;
use crate::{output, watch};

/// Far above any real event.
const STDIN_MAX: usize = 16 * 1024 * 1024;
/// An `asyncRewake` hook that exits with this code wakes the model with the text on stderr.
const WAKE: u8 = 2;

pub(crate) fn run(db: Option<&Path>, host_name: &str, is_rewake: bool, panicked: &[String]) -> ExitCode {
    settings::ignore_foreign_variables(false);
    // The run drives its agents; a goal inside an iteration would be driven twice.
    if process::is_inside_run() {
        return ExitCode::SUCCESS;
    }
    let host: Host = host_name.parse().unwrap_or_default();
    let (paths, broken_config) = match Paths::find_despite_config(db) {
        Ok(found) => found,
        Err(error) => return without_home(host, &error),
    };
    if !panicked.is_empty() {
        panicked::pause(host, &paths, panicked);
        return ExitCode::SUCCESS;
    }
    own_paths::log_closed(&paths);
    let input = match read_input(host) {
        Ok(Some(input)) => input,
        Ok(None) => return ExitCode::SUCCESS,
        Err(problem) => {
            log::line(&paths.log_file(), &format!("hook {host}: {problem}"));
            return ExitCode::SUCCESS;
        }
    };
    panicked::remember(&input);
    crash::panic_once("hook");
    // The background hook has the time.
    if !is_rewake {
        hook::limit_migrations(&input.event);
    }
    let client = match client_of(&input) {
        Ok(client) => client,
        Err(doubt) => return refuse(&input, &paths, doubt),
    };
    if let Some(error) = broken_config {
        // The hook beside the background hook pauses the goal.
        if !is_rewake {
            let input = slash::read_prompt(input);
            print_reply(&input, &hook::broken_config(&input, &paths, &error, clock::wall()));
        }
        return ExitCode::SUCCESS;
    }
    if is_rewake {
        return rewake(&input, &paths, client);
    }
    let input = slash::read_prompt(hook::as_command(input, &paths));
    let unknown_keys = hook::unknown_keys(&input, &paths);
    let noted = match hook::handle_call(&input, &paths, client, clock::wall()) {
        Ok(noted) => noted,
        Err(doubt) => return refuse(&input, &paths, doubt),
    };
    let answer = match &input.event {
        HookEvent::Command { verb, arguments } => {
            let command = TypedCommand { verb: verb.clone(), arguments: arguments.clone() };
            Some(answer::answer(&input, &[command], false, &paths))
        }
        HookEvent::Commands { commands, other_text } => Some(answer::answer(&input, commands, *other_text, &paths)),
        HookEvent::Directive { objective } => Some(stated_goal(&input, objective, &paths)),
        _ => None,
    };
    let is_answered = answer.is_some();
    let noted = two_stores::with_note(&input, &paths, settings::with_note(&input, noted));
    let noted = unknown_keys.into_iter().fold(noted, HookReply::with_line_before);
    let reply = match answer {
        Some(answer) => HookReply { message: answer.message.or(noted.message), has_news: noted.has_news, ..answer },
        None => noted,
    };
    let reply = ending_turn(&input, &paths, reply);
    print_reply(&input, &reply);
    panicked::forget();
    crash::panic_once("hook.answered");
    // A command in a prompt that is not answered here goes to the model.
    if is_answered && reply.block.is_none() && input.event_name == "UserPromptSubmit" {
        hook::command_passed(&input, &paths, client, clock::wall());
    }
    if reply.has_news {
        // Dropped without waiting: the client waits for the hook.
        drop(outbox::start(&paths));
    }
    if needs_supervisor(&input, reply.wake_at_ms) {
        watch::ensure(&paths);
    }
    starting::client_started(&input, &paths);
    ExitCode::SUCCESS
}

/// Without a home, or with that of another user, nothing can be recorded; the user hears why at the start of a session.
fn without_home(host: Host, error: &PathError) -> ExitCode {
    if let Ok(Some(input)) = read_input(host)
        && matches!(input.event, HookEvent::SessionStart(_))
    {
        let message = Some(format!("steadfast: {error} ({}). No goal is driven.", error.hint()));
        print_reply(&input, &HookReply { message, ..HookReply::default() });
    }
    ExitCode::SUCCESS
}

/// Ends a turn that ignores what its hooks say.
fn ending_turn(input: &HookInput, paths: &Paths, reply: HookReply) -> HookReply {
    let Some(ending) = reply.end_turn.clone() else {
        return reply;
    };
    let ended = (adapter(input.host).end_turn)(input).unwrap_or_else(|error| {
        log::line(&paths.log_file(), &format!("{} {}: turn/interrupt: {error}", input.event_name, input.session_id));
        false
    });
    HookReply { message: Some(if ended { ending.ended } else { ending.runs_on }), ..reply }
}

/// The client that called; an error if it cannot be proven. `None` on systems that do not show it.
fn client_of(input: &HookInput) -> Result<Option<ProcessId>, NotTheClient> {
    let grants = matches!(
        input.event,
        HookEvent::SessionStart(_)
            | HookEvent::SessionEnd { .. }
            | HookEvent::Prompt { typed: true }
            | HookEvent::Command { .. }
            | HookEvent::Commands { .. }
            | HookEvent::Directive { .. }
            | HookEvent::CommandPassed
            | HookEvent::OwnTool { .. }
            | HookEvent::SubagentStart { .. }
    );
    let need = if grants { Need::Grant } else { Need::Event };
    match Caller::look() {
        Some(caller) => caller.proven_client(need).map(Some).map_err(NotTheClient::Unproven),
        None => Ok(process::client_of_hook()),
    }
}

/// Records and grants nothing. The log is bounded, so an agent that tries again and again fills no disk.
fn refuse(input: &HookInput, paths: &Paths, doubt: NotTheClient) -> ExitCode {
    log::line(
        &paths.log_file(),
        &format!("{} {}: not from the session's client: {doubt}", input.event_name, input.session_id),
    );
    let input = slash::read_prompt(input.clone());
    if let HookEvent::Command { .. } | HookEvent::Commands { .. } = input.event {
        let product = input.host.capabilities().product;
        let text = format!(
            "steadfast: this command does not come from {product} ({doubt})\nhint: type it in the session, or in a terminal of your own"
        );
        print_reply(&input, &HookReply { block: Some(text), ..HookReply::default() });
    }
    ExitCode::SUCCESS
}

/// Whether a goal waits longer than a client is sure to live, or its client has no hook that waits, or leaves.
fn needs_supervisor(input: &HookInput, wake_at: Option<Millis>) -> bool {
    const SOON: Millis = 5_000;
    let leaves = matches!(input.event, HookEvent::SessionEnd { .. });
    wake_at.is_some_and(|at| leaves || at > clock::now() + SOON || !(adapter(input.host).can_rewake)())
}

fn print_reply(input: &HookInput, reply: &HookReply) {
    if let Some(text) = (adapter(input.host).write_reply)(&input.event_name, reply) {
        output::line(&text);
    }
}

fn read_input(host: Host) -> Result<Option<HookInput>, String> {
    let stdin = stdin::read(STDIN_MAX).map_err(|error| error.to_string())?;
    if stdin.iter().all(u8::is_ascii_whitespace) {
        return Err("stdin is empty".to_owned());
    }
    (adapter(host).read_hook)(&stdin).map_err(|error| format!("stdin is not a hook event: {error}"))
}

fn rewake(input: &HookInput, paths: &Paths, client: Option<ProcessId>) -> ExitCode {
    let look = |store: &mut Store, goal: &Goal| {
        if let Err(error) = waiting::look(paths, store, goal) {
            log::line(&paths.log_file(), &format!("rewake {}: {error}", input.session_id));
        }
    };
    let woken = hook::rewake(input, paths, client, &look);
    outbox::start_if_news(paths);
    match woken {
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

/// Starts the goal that a prompt states, unless another goal is live.
fn stated_goal(input: &HookInput, objective: &str, paths: &Paths) -> HookReply {
    // Pass an objective that is too long unchanged, so that it is refused instead of cut.
    let is_too_long = objective.chars().count() > OBJECTIVE_MAX;
    let objective = if is_too_long { objective.to_owned() } else { stated::kept(objective) };
    let start = StartArgs { objective: vec![objective], ..StartArgs::default() };
    let arguments = GoalArgs { session: None, verb: GoalVerb::Start(start) };
    let started = goal::run(&context(input, paths), arguments).and_then(|outcome| {
        let context = outcome.goal.as_ref().map(|goal| prompt::started(goal, Wording::InConversation)).transpose()?;
        Ok(HookReply { context, message: Some(outcome.output.text), ..HookReply::default() })
    });
    match started {
        Ok(reply) => reply,
        // The live goal stays. `hook::handle` has recorded the statement and informed the user.
        Err(error) if error.code == code::WRONG_STATE => HookReply::default(),
        // The prompt reaches the model all the same.
        Err(error) => HookReply {
            message: Some(format!("steadfast: no goal started. {}", describe(&error, input.host))),
            ..HookReply::default()
        },
    }
}

fn context<'a>(input: &HookInput, paths: &'a Paths) -> CommandContext<'a> {
    let place = Place {
        session_id: input.session_id.clone(),
        host: input.host,
        project_dir: Some(input.project_dir.clone()).filter(|path| !path.is_empty()),
        transcript: input.transcript.clone(),
    };
    CommandContext {
        paths,
        // The user typed it: `client_of` has proven that the client sent it.
        origin: Origin { actor: Actor::User, place: hook::typed::PLACE },
        place: Some(place),
        directory: input.project_dir.clone().into(),
        now: clock::now(),
        is_json: false,
    }
}

/// An error with what the user can type in the client; it may quote what the user typed.
fn describe(error: &CliError, host: Host) -> String {
    redact(&format!("error: {}\nhint: {}", error.message, host.spell(&error.hint))).into_owned()
}
