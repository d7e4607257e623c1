//! The nine tools: what the client is told about each, and what each does. All of them act on the caller's own
//! session; none of them raises a limit, undoes a person's pause or touches verification commands.

use std::sync::Arc;

use rmcp::handler::server::common::{schema_for_empty_input, schema_for_input};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};
use steadfast_core::action::{self, ActionError, Place};
use steadfast_core::clock::{self, Millis};
use steadfast_core::env_vars;
use steadfast_core::goal::Goal;
use steadfast_core::goal::change::{self, CompletedBy};
use steadfast_core::host::process;
use steadfast_core::overview;
use steadfast_core::store::{Store, StoreError};
use steadfast_engine::verify;

use super::args;
use super::caller::{self, CallMeta, ToolCaller};
use super::recall;
use super::store_handle::{StoreHandle, ToolError};

pub(super) type ToolResult = Result<Value, ToolError>;

/// A tool by its name.
pub(super) struct ToolSpec {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Arc<JsonObject>,
    effect: Effect,
    pub(super) call: fn(&StoreHandle, &JsonObject, &CallMeta) -> ToolResult,
    /// The text of an answer that reads better than its JSON.
    pub(super) in_words: Option<fn(&Value) -> String>,
}

/// What clients that ask before a call should know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
    Ends,
}

const TOOLS: [ToolSpec; 9] = [
    ToolSpec {
        name: "get_goal",
        description: "The goal of this session with its status, limits, what is used and what is left of them, the last \
            verdict, and what happens next; null when there is none.",
        schema: schema::<args::GetGoal>,
        effect: Effect::Reads,
        call: get_goal,
        in_words: None,
    },
    ToolSpec {
        name: "create_goal",
        description: "Starts a goal in this session. Only when the user explicitly asks for a goal, never inferred from an \
            ordinary task. Keep the user's words. Set a budget only if the user named one. Refused while another goal is live.",
        schema: schema::<args::CreateGoal>,
        effect: Effect::Changes,
        call: create_goal,
        in_words: None,
    },
    ToolSpec {
        name: "update_goal",
        description: "Ends the work on the goal: `complete` when every requirement of the objective is proven met by what \
            is there now (the user's verification commands, if any, are run first and must pass), `blocked` when the same \
            obstacle stopped at least three turns in a row and only the user or the outside world can remove it. Not because \
            the work is hard, slow or the budget nearly spent.",
        schema: schema::<args::UpdateGoal>,
        effect: Effect::Changes,
        call: update_goal,
        in_words: None,
    },
    ToolSpec {
        name: "record_verdict",
        description: "For the goal-evaluator subagent alone: records its judgement of the goal. A verdict is about the \
            present text of the objective, and the newest one counts.",
        schema: schema::<args::RecordVerdict>,
        effect: Effect::Changes,
        call: record_verdict,
        in_words: None,
    },
    ToolSpec {
        name: "update_objective",
        description: "Replaces the text of the objective when the user changes what is wanted. Budget and counters stay; \
            earlier verdicts no longer count.",
        schema: schema::<args::UpdateObjective>,
        effect: Effect::Changes,
        call: update_objective,
        in_words: None,
    },
    ToolSpec {
        name: "resume_goal",
        description: "Takes up a blocked goal again once the obstacle is gone. A paused goal is for the user to resume.",
        schema: schema::<args::WhichGoal>,
        effect: Effect::Changes,
        call: resume_goal,
        in_words: None,
    },
    ToolSpec {
        name: "abandon_goal",
        description: "Gives the goal up for good. Only when the user says so: the next goal then needs a word of the user.",
        schema: schema::<args::WhichGoal>,
        effect: Effect::Ends,
        call: abandon_goal,
        in_words: None,
    },
    ToolSpec {
        name: "wait_goal",
        description: "Pauses the active goal until a moment, when there is nothing to do before (a build, a deployment, a \
            reset). End the turn after this call. The terminal client is woken by itself at that moment; elsewhere the goal \
            goes on when its session is next resumed after it. The user can resume it at once.",
        schema: schema::<args::WaitGoal>,
        effect: Effect::Changes,
        call: wait_goal,
        in_words: None,
    },
    ToolSpec {
        name: "recall",
        description: "Searches what is remembered of this session, also from before a compaction: prompts, decisions, \
            rules, files, tasks, errors and their fixes, git operations. Use it when something that was said or done \
            earlier is not in the context any more.",
        schema: schema::<recall::Recall>,
        effect: Effect::Reads,
        call: recall::recall,
        in_words: Some(recall::in_words),
    },
];

pub(super) fn find(name: &str) -> Option<&'static ToolSpec> {
    TOOLS.iter().find(|tool| tool.name == name)
}

pub(super) fn names() -> String {
    TOOLS.map(|tool| tool.name).join(", ")
}

pub(super) fn list() -> Vec<Tool> {
    let describe = |entry: &ToolSpec| {
        let annotations = ToolAnnotations::new()
            .read_only(entry.effect == Effect::Reads)
            .destructive(entry.effect == Effect::Ends)
            .open_world(false);
        Tool::new(entry.name, entry.description, (entry.schema)()).with_annotations(annotations)
    };
    TOOLS.iter().map(describe).collect()
}

fn schema<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = schema_for_input::<T>().unwrap_or_else(|_| schema_for_empty_input());
    // Some clients insist on it even for a tool without arguments.
    Arc::make_mut(&mut schema).entry("properties").or_insert(json!({}));
    schema
}

fn get_goal(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let args::GetGoal {} = args::read(arguments)?;
    let caller = caller::find(handle, call)?;
    let goal = handle.look_up(|store| match store.read().goal(&caller.session_id)? {
        Some(goal) => view(store, &goal, caller.now).map(Some),
        None => Ok(None),
    })?;
    Ok(goal.unwrap_or_else(|| json!({"goal": null})))
}

fn create_goal(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let new = args::read::<args::CreateGoal>(arguments)?.new_goal()?;
    if process::is_inside_run() {
        let hint = "do this iteration's work and leave its result; the run decides what comes next";
        return Err(ToolError::new("this session is an iteration of a run and can have no goal of its own", hint));
    }
    let caller = caller::find(handle, call)?;
    handle.store_or_new(|store| {
        let place = place(store, &caller)?;
        let goal = action::start(store, &place, new, caller.origin, caller.now)?;
        view(store, &goal, caller.now)
    })
}

fn update_goal(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let arguments: args::UpdateGoal = args::read(arguments)?;
    match arguments.status {
        args::NewStatus::Complete => complete(handle, &arguments, &caller::find(handle, call)?),
        args::NewStatus::Blocked => {
            let reason = arguments.blocked_reason()?;
            let change = |goal: &Goal, now| change::block(goal, reason, now);
            change_goal(handle, call, arguments.goal_id.as_deref(), change)
        }
    }
}

fn complete(handle: &StoreHandle, arguments: &args::UpdateGoal, caller: &ToolCaller) -> ToolResult {
    let goal = handle.store(|store| own_goal(store, caller, arguments.goal_id.as_deref()))?;
    if !goal.verify.is_empty() {
        // A goal that cannot be completed now is refused before the checks, which may take minutes.
        change::complete(&goal, CompletedBy::Verification, caller.now)?;
        // A connection of their own, so that other calls find the store free meanwhile.
        let mut store = Store::open_existing(&handle.paths.store)?;
        verify::verify_goal(&mut store, &goal, &handle.paths.config.goal, caller.origin)?;
    }
    let by = match arguments.judge() {
        args::Judge::SelfUpdate => CompletedBy::SelfUpdate,
        args::Judge::Evaluator => CompletedBy::Evaluator,
    };
    handle.store(|store| {
        let now = clock::now();
        let goal = action::complete(store, &caller.session_id, by, caller.origin, now)?;
        view(store, &goal, now)
    })
}

fn record_verdict(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let arguments: args::RecordVerdict = args::read(arguments)?;
    let (reason, evidence) = (arguments.reason()?, arguments.evidence()?);
    let caller = caller::find(handle, call)?;
    if !caller.is_evaluator() {
        return handle.store(|store| {
            let verb = "record_verdict";
            match action::refuse_agent(store, &caller.session_id, verb, caller.origin, caller.now) {
                Err(ActionError::Store(error)) => Err(error.into()),
                _ => Err(ToolError::new(
                    "only the goal-evaluator subagent may record a verdict",
                    "start the goal-evaluator subagent and let it judge the goal",
                )),
            }
        });
    }
    let change = |goal: &Goal, now| change::verdict(goal, arguments.verdict.name(), reason, &evidence, now);
    let mut answer = changed(handle, &caller, arguments.goal_id.as_deref(), change)?;
    answer["ok"] = json!(true);
    Ok(answer)
}

fn update_objective(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let arguments: args::UpdateObjective = args::read(arguments)?;
    let objective = arguments.objective()?;
    let change = |goal: &Goal, now| change::edit(goal, objective, now);
    change_goal(handle, call, arguments.goal_id.as_deref(), change)
}

fn resume_goal(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let arguments: args::WhichGoal = args::read(arguments)?;
    let caller = caller::find(handle, call)?;
    handle.store(|store| {
        own_goal(store, &caller, arguments.goal_id.as_deref())?;
        let goal = action::resume(store, &caller.session_id, caller.origin, caller.now)?;
        view(store, &goal, caller.now)
    })
}

fn abandon_goal(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let arguments: args::WhichGoal = args::read(arguments)?;
    change_goal(handle, call, arguments.goal_id.as_deref(), change::abandon)
}

fn wait_goal(handle: &StoreHandle, arguments: &JsonObject, call: &CallMeta) -> ToolResult {
    let arguments: args::WaitGoal = args::read(arguments)?;
    let wake_at = arguments.wake_at(clock::now())?;
    let change = |goal: &Goal, now| change::wait(goal, wake_at, now);
    change_goal(handle, call, arguments.goal_id.as_deref(), change)
}

/// Finds out who calls, and applies one change to their goal.
fn change_goal(
    handle: &StoreHandle,
    call: &CallMeta,
    goal_id: Option<&str>,
    change: impl FnOnce(&Goal, Millis) -> Result<change::Change, change::Refusal>,
) -> ToolResult {
    changed(handle, &caller::find(handle, call)?, goal_id, change)
}

fn changed(
    handle: &StoreHandle,
    caller: &ToolCaller,
    goal_id: Option<&str>,
    change: impl FnOnce(&Goal, Millis) -> Result<change::Change, change::Refusal>,
) -> ToolResult {
    let now = caller.now;
    handle.store(|store| {
        own_goal(store, caller, goal_id)?;
        let goal = action::apply(store, &caller.session_id, caller.origin, now, |goal| change(goal, now))?;
        view(store, &goal, now)
    })
}

/// The goal of the caller's session, which must be the one that was named.
fn own_goal(store: &Store, caller: &ToolCaller, goal_id: Option<&str>) -> Result<Goal, ToolError> {
    let no_goal = || ActionError::NoGoal(caller.session_id.clone());
    let goal = store.read().goal(&caller.session_id)?.ok_or_else(no_goal)?;
    match goal_id {
        Some(id) if id != goal.goal_id => Err(ToolError::new(
            "`goal_id` is not the id of this session's goal",
            "get_goal tells its id; without `goal_id` this session's goal is meant",
        )),
        _ => Ok(goal),
    }
}

/// Where a goal of this session belongs: what the hooks know of the session, else where the server runs.
fn place(store: &Store, caller: &ToolCaller) -> Result<Place, StoreError> {
    let session_id = &caller.session_id;
    let mut place = store.read().session(session_id)?.as_ref().map_or_else(
        || Place { session_id: session_id.clone(), host: caller.host, project_dir: None, transcript: None },
        Place::from,
    );
    let here = || {
        let directory = env_vars::path(env_vars::CLAUDE_PROJECT_DIR).or_else(|| std::env::current_dir().ok());
        directory.map(|path| path.to_string_lossy().into_owned())
    };
    place.project_dir = place.project_dir.or_else(here);
    Ok(place)
}

fn view(store: &Store, goal: &Goal, now: Millis) -> ToolResult {
    let view = overview::goal_view(store.read(), goal, now)?;
    let value = serde_json::to_value(view).map_err(|error| StoreError::Value(error.to_string()))?;
    Ok(json!({"goal": value}))
}
