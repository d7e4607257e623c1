//! The nine tools: their descriptions and what they do. All of them act on the caller's own session; none of them raises
//! a limit, ends a user's pause or changes verification commands.

use std::sync::Arc;

use rmcp::handler::server::common::{schema_for_empty_input, schema_for_input};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};
use steadfast_app::action::{self, ActionError, Claim, Place};
use steadfast_app::{overview, tool_args as args};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::goal::{Actor, Goal, NewGoal, change};
use steadfast_store::{Store, StoreError};
use steadfast_system::config::Completion;
use steadfast_system::{env_vars, process};

use super::caller::{self, CallMeta, ToolCaller};
use super::recall;
use super::store_handle::{StoreHandle, ToolError};
use crate::outbox::{self, Audience};
use crate::verification;

pub(super) type ToolResult = Result<Value, ToolError>;

pub(super) struct ToolSpec {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Arc<JsonObject>,
    effect: Effect,
    pub(super) call: fn(&StoreHandle, &JsonObject, &CallMeta) -> ToolResult,
    /// Formats a result whose JSON is hard to read.
    pub(super) as_text: Option<fn(&Value) -> String>,
}

/// What a tool does, for clients that ask before a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
    Ends,
}

/// A tool whose arguments have the type `$arguments`.
macro_rules! tool {
    ($name:literal, $effect:ident, $call:path, $arguments:ty => $description:literal) => {
        ToolSpec {
            name: $name,
            description: $description,
            schema: schema::<$arguments>,
            effect: Effect::$effect,
            call: |handle, arguments, meta| $call(handle, &args::read::<$arguments>(arguments)?, meta),
            as_text: None,
        }
    };
}

/// Every session pays for these texts in every request, with a goal or without: a test bounds them. The list is the same
/// for all sessions, since a list that changes would make the client's prompt cache useless.
const TOOLS: [ToolSpec; 9] = [
    tool!("get_goal", Reads, get_goal, args::GetGoal =>
        "Returns this session's goal: status, limits, usage, verdict, what happens next."),
    tool!("create_goal", Changes, create_goal, args::CreateGoal =>
        "Starts a goal, only when the user explicitly asks for one. Set limits only if the user named them."),
    tool!("update_goal", Changes, update_goal, args::UpdateGoal =>
        "Ends the work. `complete`: every requirement is proven met; the user's verification commands run first and \
        must pass. `blocked`: an obstacle of three turns that only the user or the outside can remove. `items`: proofs \
        of the goal's items."),
    tool!("record_verdict", Changes, record_verdict, args::RecordVerdict =>
        "Records a verdict on the current objective; only for the goal-evaluator subagent."),
    tool!("update_objective", Changes, update_objective, args::UpdateObjective =>
        "Replaces the objective, only when the user asks for it. Earlier verdicts no longer count."),
    tool!("resume_goal", Changes, resume_goal, args::WhichGoal =>
        "Resumes a blocked goal whose obstacle is gone. Only the user can resume a paused one."),
    tool!("abandon_goal", Ends, abandon_goal, args::WhichGoal =>
        "Ends the goal for good, only when the user asks for it."),
    tool!("wait_goal", Changes, wait_goal, args::WaitGoal =>
        "Pauses the active goal at no cost until a time or a condition holds. End the turn after it."),
    ToolSpec {
        as_text: Some(recall::as_text),
        ..tool!("recall", Reads, recall::recall, args::Recall =>
        "Searches this session's memory, also from before a compaction.")
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

/// The schema of a tool's arguments, as short as it can be: every session pays for it in every request. What it leaves
/// out (bounds, nulls, unknown arguments) the server checks itself.
fn schema<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = schema_for_input::<T>().unwrap_or_else(|_| schema_for_empty_input());
    let fields = Arc::make_mut(&mut schema);
    fields.remove("$schema");
    fields.remove("additionalProperties");
    // Some clients require this field even for a tool without arguments.
    let properties = fields.entry("properties").or_insert(json!({}));
    for property in properties.as_object_mut().into_iter().flat_map(|properties| properties.values_mut()) {
        shorten(property);
    }
    schema
}

fn shorten(property: &mut Value) {
    let Some(fields) = property.as_object_mut() else {
        return;
    };
    for noise in ["format", "required", "additionalProperties"] {
        fields.remove(noise);
    }
    for inside in ["items", "properties"] {
        match (inside, fields.get_mut(inside)) {
            ("items", Some(entries)) => shorten(entries),
            (_, Some(Value::Object(properties))) => properties.values_mut().for_each(shorten),
            _ => {}
        }
    }
    // An optional argument is one that is not required.
    if let Some([kind, Value::String(null)]) = fields.get("type").and_then(Value::as_array).map(Vec::as_slice)
        && null == "null"
    {
        let kind = kind.clone();
        fields.insert("type".to_owned(), kind);
    }
    if let Some(choices) = fields.get_mut("enum").and_then(Value::as_array_mut) {
        choices.retain(|choice| !choice.is_null());
    }
}

fn get_goal(handle: &StoreHandle, _arguments: &args::GetGoal, call: &CallMeta) -> ToolResult {
    if process::is_inside_run() {
        return Ok(json!({"goal": null}));
    }
    let caller = caller::find(handle, call)?;
    let goal = handle.look_up(|store| match store.read().goal(&caller.session_id)? {
        Some(goal) => view(handle, store, &goal, caller.now).map(Some),
        None => Ok(None),
    })?;
    Ok(goal.unwrap_or_else(|| json!({"goal": null})))
}

fn create_goal(handle: &StoreHandle, arguments: &args::CreateGoal, call: &CallMeta) -> ToolResult {
    let judge = handle.paths().config.goal.completion == Completion::Evaluator;
    let new = NewGoal { judge, ..arguments.new_goal()? };
    if process::is_inside_run() {
        let hint = "do this iteration's work and write its result; the run decides what comes next";
        return Err(ToolError::new("this session is an iteration of a run and cannot have its own goal", hint));
    }
    let caller = caller::find(handle, call)?;
    handle.with(Store::open, |store| {
        let place = place(store, &caller)?;
        let goal = action::start(store, &place, new, caller.origin, caller.now)?;
        view_of_saved(handle, store, &goal, caller.now)
    })
}

fn update_goal(handle: &StoreHandle, arguments: &args::UpdateGoal, call: &CallMeta) -> ToolResult {
    let caller = || caller::find(handle, call);
    match arguments.status {
        Some(args::NewStatus::Complete) => {
            let caller = caller()?;
            if arguments.has_items() {
                prove_items(handle, arguments, &caller)?;
            }
            complete(handle, arguments, &caller)
        }
        Some(args::NewStatus::Blocked) => {
            let reason = arguments.blocked_reason()?;
            act(handle, &caller()?, arguments.goal_id.as_deref(), |store, caller| {
                action::block(store, &caller.session_id, reason, caller.origin, caller.now)
            })
        }
        None => {
            arguments.proofs()?;
            prove_items(handle, arguments, &caller()?)
        }
    }
}

fn prove_items(handle: &StoreHandle, arguments: &args::UpdateGoal, caller: &ToolCaller) -> ToolResult {
    let proofs = arguments.proofs()?;
    act(handle, caller, arguments.goal_id.as_deref(), |store, caller| {
        let prove = |goal: &Goal| change::prove_items(goal, &proofs, caller.now);
        action::apply(store, &caller.session_id, caller.origin, caller.now, prove)
    })
}

fn complete(handle: &StoreHandle, arguments: &args::UpdateGoal, caller: &ToolCaller) -> ToolResult {
    let goal = handle.store(|store| own_goal(store, caller, arguments.goal_id.as_deref()))?;
    let verified = if goal.verify.is_empty() {
        None
    } else {
        // Refuse a goal that cannot be completed before the commands run, which may take minutes.
        change::may_complete(&goal, CompletedBy::Verification)?;
        // Use a separate connection, so that other calls are not blocked meanwhile.
        let paths = handle.paths();
        let mut store = Store::open_existing(&paths.store)?;
        let verified = verification::verify_goal(&mut store, &goal, &paths.config.goal, caller.origin);
        outbox::send(&paths, &mut store, Audience::Away);
        Some(verified?.0?)
    };
    let claim = Claim::Agent { judged: arguments.completed_by == Some(args::Judge::Evaluator), verified };
    handle.store(|store| {
        let now = clock::now();
        let goal = action::complete(store, &caller.session_id, &claim, caller.origin, now)?;
        view_of_saved(handle, store, &goal, now)
    })
}

fn record_verdict(handle: &StoreHandle, arguments: &args::RecordVerdict, call: &CallMeta) -> ToolResult {
    let (reason, evidence) = (arguments.reason()?, arguments.evidence()?);
    let caller = caller::find(handle, call)?;
    if caller.origin.actor != Actor::Evaluator {
        return handle.store(|store| {
            let verb = "record_verdict";
            match action::refuse_agent(store, &caller.session_id, verb, caller.origin, caller.now) {
                Err(ActionError::Store(error)) => Err(error.into()),
                _ => Err(ToolError::new(
                    "only the goal-evaluator subagent may record a verdict",
                    "start the goal-evaluator subagent to judge the goal",
                )),
            }
        });
    }
    let mut answer = act(handle, &caller, arguments.goal_id.as_deref(), |store, caller| {
        let verdict = |goal: &Goal| change::verdict(goal, arguments.verdict.into(), reason, &evidence, caller.now);
        action::apply(store, &caller.session_id, caller.origin, caller.now, verdict)
    })?;
    answer["ok"] = json!(true);
    Ok(answer)
}

fn update_objective(handle: &StoreHandle, arguments: &args::UpdateObjective, call: &CallMeta) -> ToolResult {
    let objective = args::objective(&arguments.objective)?;
    act(handle, &caller::find(handle, call)?, arguments.goal_id.as_deref(), |store, caller| {
        action::edit(store, &caller.session_id, objective, caller.origin, caller.now)
    })
}

fn resume_goal(handle: &StoreHandle, arguments: &args::WhichGoal, call: &CallMeta) -> ToolResult {
    act(handle, &caller::find(handle, call)?, arguments.goal_id.as_deref(), |store, caller| {
        action::resume(store, &caller.session_id, caller.origin, caller.now)
    })
}

fn abandon_goal(handle: &StoreHandle, arguments: &args::WhichGoal, call: &CallMeta) -> ToolResult {
    act(handle, &caller::find(handle, call)?, arguments.goal_id.as_deref(), |store, caller| {
        action::abandon(store, &caller.session_id, caller.origin, caller.now)
    })
}

fn wait_goal(handle: &StoreHandle, arguments: &args::WaitGoal, call: &CallMeta) -> ToolResult {
    let request = arguments.request(clock::now())?;
    let approved = &handle.paths().config.goal.wait_commands;
    act(handle, &caller::find(handle, call)?, arguments.goal_id.as_deref(), |store, caller| {
        action::wait::start(store, &caller.session_id, &request, approved, caller.origin, caller.now)
    })
}

/// Changes the goal of the caller's session.
fn act(
    handle: &StoreHandle,
    caller: &ToolCaller,
    goal_id: Option<&str>,
    change: impl FnOnce(&mut Store, &ToolCaller) -> Result<Goal, ActionError>,
) -> ToolResult {
    handle.store(|store| {
        own_goal(store, caller, goal_id)?;
        let goal = change(store, caller)?;
        view_of_saved(handle, store, &goal, caller.now)
    })
}

/// The goal of the caller's session, which must have this id if one is given.
fn own_goal(store: &Store, caller: &ToolCaller, goal_id: Option<&str>) -> Result<Goal, ToolError> {
    let no_goal = || ActionError::NoGoal(caller.session_id.clone());
    let goal = store.read().goal(&caller.session_id)?.ok_or_else(no_goal)?;
    match goal_id {
        Some(id) if id != goal.goal_id => Err(ToolError::new(
            "`goal_id` is not the id of this session's goal",
            "call get_goal for the id, or omit `goal_id`",
        )),
        _ => Ok(goal),
    }
}

/// The place of a new goal: what the hooks recorded for the session, else the server's directory.
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

/// A change that is saved is not refused because the rest cannot be read.
fn view_of_saved(handle: &StoreHandle, store: &Store, goal: &Goal, now: Millis) -> ToolResult {
    match view(handle, store, goal, now) {
        Err(ToolError::Action(ActionError::Store(error))) => Ok(overview::unseen(goal, &error)),
        seen => seen,
    }
}

fn view(handle: &StoreHandle, store: &Store, goal: &Goal, now: Millis) -> ToolResult {
    let view = overview::goal_view(store.read(), goal, &handle.paths(), now)?;
    let value = serde_json::to_value(view).map_err(|error| StoreError::Value(error.to_string()))?;
    Ok(json!({"goal": value}))
}
