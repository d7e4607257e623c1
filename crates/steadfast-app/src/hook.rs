//! What happens at each hook of a client: open the store, read the session's files, one transaction, one reply. A hook
//! fails open: after any error the user's turn continues, the error is logged, and a live goal pauses as `degraded`. A
//! store that is busy or full for a while is no such error: the goal stays as it is.

mod announce;
mod batch;
mod broken_config;
mod caps;
mod damaged;
mod failure;
mod outage;
mod overtime;
mod quota;
mod remember;
mod restore;
mod rewake;
mod session;
mod steering;
mod subagent;
mod turn;
pub mod typed;
mod woken;

pub use broken_config::{broken_config, unknown_keys};
pub use damaged::forget_told_of_damage;
pub use rewake::{LookAtWait, rewake};
pub use steering::as_command;

use std::cell::RefCell;
use std::path::Path;

use crate::accounting::{self, AccountingFacts, FileReading};
use crate::action;
use crate::caller::{self, CheckError, NotTheClient};
use crate::upkeep;
use steadfast_memory::extract;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::hook::{HookEvent, HookInput, HookReply};
use steadfast_model::host::Host;
use steadfast_model::limit::CapStanding;
use steadfast_model::memory::Findings;
use steadfast_model::prompt::PromptError;
use steadfast_model::reading::NativeGoal;
use steadfast_store::{Cursor, Db, Origin, Store, StoreError, ToolCall};
use steadfast_system::config::ConfigError;
use steadfast_system::log;
use steadfast_system::paths::Paths;
use steadfast_system::process::ProcessId;

#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Action(#[from] action::ActionError),
    #[error(transparent)]
    NotTheClient(#[from] NotTheClient),
    /// In an earlier program of this process.
    #[error("internal error at {0}")]
    Panicked(String),
}

impl From<CheckError> for HookError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::NotTheClient(doubt) => Self::NotTheClient(doubt),
            CheckError::Store(error) => Self::Store(error),
        }
    }
}

/// Everything a handler needs besides the event.
struct Call<'a> {
    input: &'a HookInput,
    paths: &'a Paths,
    /// The steady time, once the store is open.
    now: Millis,
    origin: Origin,
    /// The client that called.
    client: Option<ProcessId>,
    /// What the hook saw that is worth remembering.
    found: Findings,
    /// The caps that are near or reached, as they were last counted.
    caps: RefCell<Vec<CapStanding>>,
}

impl Call<'_> {
    fn session_id(&self) -> &str {
        &self.input.session_id
    }

    fn host(&self) -> Host {
        self.input.host
    }

    /// Records readings and returns the goal of the session as it is then, if it has one.
    fn record(&self, db: Db<'_>, readings: &[FileReading]) -> Result<Option<(Goal, AccountingFacts)>, StoreError> {
        let goal = db.goal(self.session_id())?;
        goal.map(|goal| accounting::record(db, goal, readings, self.origin, self.now)).transpose()
    }

    fn update_cursor(&self, db: Db<'_>, file: &Path, update: impl FnOnce(&mut Cursor)) -> Result<(), StoreError> {
        accounting::update_cursor(db, self.host(), self.session_id(), file, self.now, update)
    }
}

/// Keeps the migrations of a hook process within what its client waits for, whatever opens the store.
pub fn limit_migrations(event: &HookEvent) {
    steadfast_store::limit_migrations(outage::patience(event).min(outage::LONGEST_MIGRATION));
}

/// Handles one hook call of a client. A command or a stated goal only records the session; the command line's code answers
/// it. A call that another client's agent made is refused, and nothing is recorded. `wall` is what the wall clock shows.
pub fn handle_call(
    input: &HookInput,
    paths: &Paths,
    client: Option<ProcessId>,
    wall: Millis,
) -> Result<HookReply, NotTheClient> {
    let origin = Origin { actor: Actor::Steadfast, place: place(&input.event) };
    let enabled = paths.config.memory.enabled;
    let found = if enabled { extract::findings(&input.observations) } else { Findings::default() };
    let mut call = Call { input, paths, now: wall, origin, client, found, caps: RefCell::default() };
    match run(&mut call, wall) {
        Err(HookError::NotTheClient(doubt)) => Err(doubt),
        done => Ok(done.unwrap_or_else(|error| fail_open(&call, &error, wall))),
    }
}

/// Pauses a live goal after a panic in a hook of its session.
pub fn panicked(
    input: &HookInput,
    paths: &Paths,
    client: Option<ProcessId>,
    cause: &str,
    wall: Millis,
) -> Result<HookReply, NotTheClient> {
    let origin = Origin { actor: Actor::Steadfast, place: place(&input.event) };
    let call = Call { input, paths, now: wall, origin, client, found: Findings::default(), caps: RefCell::default() };
    let opened = Store::open_migrated_within(&paths.store, outage::patience(&input.event));
    if let Ok(store) = opened
        && let Err(CheckError::NotTheClient(doubt)) = caller::check(store.read(), call.session_id(), client)
    {
        return Err(doubt);
    }
    Ok(fail_open(&call, &HookError::Panicked(cause.to_owned()), wall))
}

fn place(event: &HookEvent) -> &'static str {
    match event {
        HookEvent::SessionStart(_) => "session-start",
        HookEvent::SessionEnd { .. } => "session-end",
        HookEvent::Prompt { .. } | HookEvent::CommandPassed | HookEvent::Woken => "user-prompt-submit",
        HookEvent::Command { .. }
        | HookEvent::Commands { .. }
        | HookEvent::Directive { .. }
        | HookEvent::HiddenCommand { .. }
        | HookEvent::LimitDialog => "user-prompt-expansion",
        HookEvent::OwnTool { .. } | HookEvent::ToolAsked { .. } => "pre-tool-use",
        HookEvent::OwnToolAsked | HookEvent::PermissionAsked => "permission-request",
        HookEvent::Idle => "notification",
        HookEvent::ToolBatch { .. } | HookEvent::NativeGoal(_) => "post-tool-batch",
        HookEvent::Stop { .. } => "stop",
        HookEvent::StopFailure { .. } => "stop-failure",
        HookEvent::ModelAnswered => "post-model-request",
        HookEvent::Interrupt => "interrupt",
        HookEvent::SubagentStart { .. } => "subagent-start",
        HookEvent::SubagentStop { .. } => "subagent-stop",
        HookEvent::PreCompact => "pre-compact",
        HookEvent::OwnToolDone(_) | HookEvent::Seen => "post-tool-use",
    }
}

fn run(call: &mut Call<'_>, wall: Millis) -> Result<HookReply, HookError> {
    if call.input.event == HookEvent::OwnToolAsked {
        return Ok(HookReply { allow_tool: true, ..HookReply::default() });
    }
    // It needs no store.
    if let HookEvent::HiddenCommand { name, text } = &call.input.event {
        return hidden_command(name, text);
    }
    let nothing_to_do =
        call.input.event == HookEvent::Idle || call.input.event == HookEvent::Seen && call.found == Findings::default();
    if nothing_to_do {
        return Ok(HookReply::default());
    }
    let registers = call.found != Findings::default()
        || matches!(
            call.input.event,
            HookEvent::SessionStart(_)
                | HookEvent::Prompt { .. }
                | HookEvent::CommandPassed
                | HookEvent::Command { .. }
                | HookEvent::Commands { .. }
                | HookEvent::Directive { .. }
        );
    let open = if registers { Store::open_within } else { Store::open_existing_within };
    let opened = open(&call.paths.store, outage::patience(&call.input.event));
    let mut store = match opened {
        Ok(store) => store,
        Err(StoreError::Missing(_)) => return Ok(HookReply::default()),
        Err(error) => return Err(error.into()),
    };
    call.now = clock::from_wall(wall);
    let call = &*call;
    caller::check(store.read(), call.session_id(), call.client)?;
    if !matches!(call.input.event, HookEvent::SessionStart(_) | HookEvent::PreCompact | HookEvent::ToolAsked { .. }) {
        restore::note_activity(call, &mut store)?;
    }
    let mut reply = dispatch(call, &mut store)?;
    // These also deliver what a killed process or a command in the agent's shell left. An error leaves it for the next
    // one: the reply is decided and saved already, and must not be lost.
    let looks = matches!(call.input.event, HookEvent::SessionStart(_) | HookEvent::Stop { .. });
    if looks {
        upkeep::step(&mut store, call.paths, call.now);
    }
    reply.has_news = store.added_message() || (looks && store.has_news(call.now).unwrap_or_default());
    Ok(reply)
}

/// The client has expanded our command instead of the repository's own one of the same name, which the user meant.
fn hidden_command(name: &str, text: &str) -> Result<HookReply, HookError> {
    let template = include_str!("../prompts/hidden_command.md");
    let context = Some(steadfast_model::prompt::render(template, minijinja::context! { name, text })?);
    let message = Some(format!("◎ /{name} is a command of this repository; /steadfast:{name} is Steadfast's"));
    Ok(HookReply { context, message, ..HookReply::default() })
}

fn dispatch(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    match &call.input.event {
        HookEvent::HiddenCommand { name, text } => hidden_command(name, text),
        HookEvent::SessionStart(source) => session::started(call, store, *source),
        HookEvent::SessionEnd { reason } => session::ended(call, store, reason),
        HookEvent::Prompt { typed } => session::prompted(call, store, *typed),
        HookEvent::PreCompact => restore::before_compaction(call, store),
        HookEvent::OwnTool { tool_use_id, tool_name, agent_id, agent_type } => {
            let note = ToolCall {
                tool_use_id: tool_use_id.clone(),
                session_id: call.session_id().to_owned(),
                agent_id: agent_id.clone(),
                agent_type: agent_type.clone(),
                tool_name: tool_name.clone(),
            };
            store.write(|db| db.note_tool_call(&note, call.now))?;
            Ok(HookReply { allow_tool: true, ..HookReply::default() })
        }
        HookEvent::ToolAsked { agent_type } => {
            let reply = overtime::tool_asked(call, store, agent_type.as_deref())?;
            if reply.refuse_tool.is_some() { Ok(reply) } else { caps::tool_asked(call, store) }
        }
        HookEvent::OwnToolAsked | HookEvent::Seen | HookEvent::Idle => remember::seen(call, store),
        HookEvent::OwnToolDone(done) => announce::own_tool_done(call, store, done),
        HookEvent::PermissionAsked => batch::permission_asked(call, store),
        HookEvent::LimitDialog => failure::limit_dialog(call, store),
        HookEvent::NativeGoal(goal) => {
            let objective = match goal {
                NativeGoal::Active(objective) => Some(objective.clone()),
                NativeGoal::Over => None,
            };
            if let Some(transcript) = &call.input.transcript {
                store.write(|db| call.update_cursor(db, transcript, |cursor| cursor.native_goal = objective))?;
            }
            batch::batch(call, store)
        }
        HookEvent::ModelAnswered => failure::model_answered(call, store),
        HookEvent::Interrupt => turn::interrupted(call, store),
        HookEvent::SubagentStart { agent } => subagent::started(call, store, agent),
        HookEvent::ToolBatch { agent: None } => batch::batch(call, store),
        HookEvent::ToolBatch { agent: Some(agent) } | HookEvent::SubagentStop { agent } => {
            subagent::worked(call, store, agent)
        }
        HookEvent::Stop { after_continuation, last_message, background_work } => {
            let changes = announce::changed_in_shell(call, store)?;
            let told = caps::turn_ended(call, store, last_message.as_deref())?;
            let reply = turn::stopped(call, store, *after_continuation, last_message.as_deref(), *background_work)?;
            let lines: Vec<String> =
                told.into_iter().chain(quota::warn(call, store)?).chain(reply.message.clone()).collect();
            let message = (!lines.is_empty()).then(|| lines.join("\n"));
            Ok(announce::before(&changes, HookReply { message, ..reply }))
        }
        HookEvent::StopFailure { error, message } => failure::turn_failed(call, store, error, message),
        HookEvent::Woken => woken::woken(call, store),
        HookEvent::CommandPassed | HookEvent::Commands { other_text: true, .. } => session::prompted(call, store, true),
        HookEvent::Command { .. } | HookEvent::Commands { .. } | HookEvent::Directive { .. } => {
            session::typed_command(call, store)
        }
    }
}

/// One of our commands was let through to the model: a turn begins.
pub fn command_passed(input: &HookInput, paths: &Paths, client: Option<ProcessId>, wall: Millis) {
    let origin = Origin { actor: Actor::Steadfast, place: "user-prompt-submit" };
    let opened = Store::open_existing_within(&paths.store, outage::patience(&input.event));
    let noted = opened.map_err(HookError::from).and_then(|mut store| {
        let now = clock::from_wall(wall);
        let call = Call { input, paths, now, origin, client, found: Findings::default(), caps: RefCell::default() };
        session::command_passed(&call, &mut store)
    });
    if let Err(error) = noted {
        log::line(&paths.log_file(), &format!("{} {}: {error}", input.event_name, input.session_id));
    }
}

/// The model gets its goal all the same; that must not look as if the start was recorded.
const UNCOUNTED: &str = " What the session used since is not counted yet.";

/// Lets the turn continue, logs the error, reports it to the user, and pauses the goal unless the store is only busy or
/// full for a while.
fn fail_open(call: &Call<'_>, error: &HookError, wall: Millis) -> HookReply {
    let context = restore::context_despite_error(call);
    if let HookError::Store(error) = error
        && let Some(outage) = error.outage()
    {
        let reply = outage::reply(call, outage, error);
        let message = reply.message.map(|message| if context.is_some() { message + UNCOUNTED } else { message });
        return HookReply { context, message, ..reply };
    }
    log::line(&call.paths.log_file(), &format!("{} {}: {error}", call.input.event_name, call.session_id()));
    let opened = Store::open_migrated_within(&call.paths.store, outage::patience(&call.input.event));
    let degraded = opened.and_then(|mut store| {
        let now = clock::from_wall(wall);
        action::degrade(&mut store, call.session_id(), &error.to_string(), call.origin, now)
    });
    let of_store = match error {
        HookError::Store(error) | HookError::Action(action::ActionError::Store(error)) => Some(error),
        _ => None,
    };
    let hint = of_store.map_or("run `steadfast doctor`", StoreError::hint);
    let has_news = matches!(degraded, Ok(Some(_)));
    if of_store.is_some_and(StoreError::is_corrupt) && !has_news && !damaged::is_news(call) {
        return HookReply::default();
    }
    let consequence =
        if has_news { call.host().spell(" The goal is paused; /goal-resume resumes it.") } else { String::new() };
    let uncounted = if context.is_some() { UNCOUNTED } else { "" };
    let message = Some(format!("steadfast: {error} ({hint}).{uncounted}{consequence}"));
    HookReply { context, message, has_news, ..HookReply::default() }
}

#[cfg(test)]
mod tests;
