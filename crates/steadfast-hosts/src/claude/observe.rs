//! What Claude Code's hooks show of the work: prompts, tool calls with their answers, tasks, subagents, instructions.
//! The shapes are those of version 2.1.197; one that is not understood gives nothing.

use std::path::Path;

use serde_json::Value;

use super::hook::{HookWire, is_evaluator, own_tool};
use crate::observe::{answer_text, foreign_tool, prompt, some_string, string, task_list, value};
use steadfast_model::memory::TaskStatus;
use steadfast_model::memory::observation::{FileAction, Observation, Shell, ShellDirectory, ShellOutcome, attempt};

/// What the client writes to the model when the user refuses a tool, and before the user's own words.
const REFUSED: &str = "The tool use was rejected";
const USER_SAID: &str = "the user said:\n";
/// What it writes when a call is invalid, so that the tool does not run.
const MISUSED: &str = "<tool_use_error>";

pub(super) fn observe(wire: &HookWire<'_>) -> Vec<Observation> {
    let in_subagent = wire.agent_id.as_deref().is_some_and(|agent| !agent.is_empty());
    let tool = wire.tool_name.as_deref().filter(|tool| own_tool(tool).is_none());
    match wire.hook_event_name.as_str() {
        // A subagent is prompted by the agent, not by the user.
        "UserPromptSubmit" if in_subagent => Vec::new(),
        "UserPromptSubmit" => prompt(wire.prompt.as_deref()).into_iter().collect(),
        "PostToolUse" => tool.map(|tool| worked(tool, wire)).unwrap_or_default(),
        "PostToolUseFailure" if wire.is_interrupt != Some(true) => {
            tool.map(|tool| failed(tool, wire)).unwrap_or_default()
        }
        "PostToolBatch" => refused(wire),
        // The client asks its hooks before it does what these announce.
        "TaskCreated" => task(wire, TaskStatus::Pending),
        "TaskCompleted" => task(wire, TaskStatus::Completed),
        // Compaction announces itself as a subagent without a type.
        "SubagentStart" | "SubagentStop" => match (&wire.agent_id, wire.agent_type.as_deref()) {
            (Some(id), Some(kind)) if !kind.is_empty() && !is_evaluator(kind) => {
                let (id, kind, message) = (id.clone(), kind.to_owned(), wire.last_assistant_message.clone());
                vec![match wire.hook_event_name.as_str() {
                    "SubagentStart" => Observation::SubagentStarted { id, kind },
                    _ => Observation::SubagentFinished { id, kind, message: message.unwrap_or_default() },
                }]
            }
            _ => Vec::new(),
        },
        "InstructionsLoaded" => wire.file_path.iter().cloned().map(|path| Observation::Instructions { path }).collect(),
        _ => Vec::new(),
    }
}

fn task(wire: &HookWire<'_>, status: TaskStatus) -> Vec<Observation> {
    let announced =
        |id: &String| Observation::TaskAnnounced { id: id.clone(), subject: wire.task_subject.clone(), status };
    wire.task_id.iter().filter(|id| !id.is_empty()).map(announced).collect()
}

fn worked(tool: &str, wire: &HookWire<'_>) -> Vec<Observation> {
    let input = value(wire.tool_input);
    // Answers can be long: only those with further information are read.
    let answer = || value(wire.tool_response);
    match tool {
        "Bash" => vec![shell(&input, &answer(), wire)],
        "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            let touched = |(action, path)| Observation::File { action, path, to: None };
            file(tool, &input).map(touched).into_iter().collect()
        }
        "Glob" | "Grep" => {
            let searched = |pattern| Observation::Search { pattern, path: string(&input, "path") };
            some_string(&input, "pattern").map(searched).into_iter().collect()
        }
        // A subagent's list is its own, and is gone with it.
        "TodoWrite" if wire.agent_id.as_deref().is_some_and(|agent| !agent.is_empty()) => Vec::new(),
        "TodoWrite" => task_list(&input["todos"], "content").map(Observation::TaskList).into_iter().collect(),
        "TaskCreate" => {
            let task = &answer()["task"];
            let subject = some_string(task, "subject").or_else(|| some_string(&input, "subject"));
            let created = |id| Observation::TaskChanged { id, subject, status: Some(TaskStatus::Pending) };
            some_string(task, "id").map(created).into_iter().collect()
        }
        "TaskUpdate" => task_update(&input, &answer()).into_iter().collect(),
        "Agent" | "Task" => agent(&input, &answer()),
        "Skill" => some_string(&input, "skill").map(|name| Observation::Skill { name }).into_iter().collect(),
        "AskUserQuestion" => answers(&answer()),
        "ExitPlanMode" => {
            let answer = answer();
            // A teammate's plan only waits for its leader here.
            if answer["awaitingLeaderApproval"].as_bool() == Some(true) {
                return Vec::new();
            }
            let plan = some_string(&answer, "plan").unwrap_or_else(|| string(&input, "plan"));
            vec![Observation::Plan { approved: true, plan, said: String::new() }]
        }
        _ => other_attempt(tool, &input).map(|attempt| Observation::Worked { attempt }).into_iter().collect(),
    }
}

fn failed(tool: &str, wire: &HookWire<'_>) -> Vec<Observation> {
    let input = value(wire.tool_input);
    let output = wire.error.clone().unwrap_or_default();
    if tool == "Bash" {
        let Some(command) = some_string(&input, "command") else { return Vec::new() };
        let directory = ShellDirectory::After(wire.cwd.clone().unwrap_or_default());
        return vec![Observation::Shell(Shell { command, output, outcome: ShellOutcome::Failed, directory })];
    }
    let attempt = match tool {
        "Glob" | "Grep" => {
            some_string(&input, "path").or_else(|| some_string(&input, "pattern")).map(|at| attempt("search", &at))
        }
        _ => match file(tool, &input) {
            Some((action, path)) => Some(attempt(action.word(), &path)),
            None => other_attempt(tool, &input),
        },
    };
    attempt.map(|attempt| Observation::Failed { attempt, output }).into_iter().collect()
}

fn file(tool: &str, input: &Value) -> Option<(FileAction, String)> {
    let (action, field) = match tool {
        "Read" => (FileAction::Read, "file_path"),
        "Write" => (FileAction::Write, "file_path"),
        "Edit" | "MultiEdit" => (FileAction::Edit, "file_path"),
        "NotebookEdit" => (FileAction::Edit, "notebook_path"),
        _ => return None,
    };
    Some((action, some_string(input, field)?))
}

fn shell(input: &Value, answer: &Value, wire: &HookWire<'_>) -> Observation {
    let unfinished = answer["interrupted"].as_bool() == Some(true)
        || answer["backgroundTaskId"].is_string()
        || input["run_in_background"].as_bool() == Some(true);
    Observation::Shell(Shell {
        command: string(input, "command"),
        output: answer_text(answer),
        outcome: if unfinished { ShellOutcome::Unfinished } else { ShellOutcome::Worked },
        // The client follows `cd` before it calls its hooks.
        directory: ShellDirectory::After(wire.cwd.clone().unwrap_or_default()),
    })
}

fn task_update(input: &Value, answer: &Value) -> Option<Observation> {
    let id = some_string(answer, "taskId").or_else(|| some_string(input, "taskId"))?;
    let asked = input["status"].as_str().and_then(|status| status.parse().ok());
    if answer["success"].as_bool() == Some(false) {
        // It was announced as completed before a hook refused it.
        let refused = asked == Some(TaskStatus::Completed) && answer["error"].as_str() != Some("Task not found");
        return refused.then_some(Observation::TaskAnnounced { id, subject: None, status: TaskStatus::InProgress });
    }
    let status = answer["statusChange"]["to"].as_str().and_then(|status| status.parse().ok()).or(asked);
    Some(Observation::TaskChanged { id, subject: some_string(input, "subject"), status })
}

fn agent(input: &Value, answer: &Value) -> Vec<Observation> {
    let kind = some_string(input, "subagent_type").unwrap_or_else(|| string(answer, "agentType"));
    if is_evaluator(&kind) {
        return Vec::new();
    }
    let title = string(input, "description");
    let prompt = string(input, "prompt");
    let task = if title.is_empty() { prompt } else { format!("{title}\n{prompt}") };
    vec![
        Observation::SubagentTasked { id: string(answer, "agentId"), kind, task },
        Observation::Worked { attempt: attempt("agent", &title) },
    ]
}

fn answers(answer: &Value) -> Vec<Observation> {
    let given = answer["answers"].as_object().into_iter().flatten();
    let mut answers: Vec<Observation> = given
        .filter_map(|(question, chosen)| {
            let chosen = chosen.as_str().filter(|chosen| !chosen.trim().is_empty())?;
            let notes = answer["annotations"].get(question).and_then(|about| some_string(about, "notes"));
            let answer = notes.map_or_else(|| chosen.to_owned(), |notes| format!("{chosen} ({notes})"));
            Some(Observation::Answer { question: question.clone(), answer })
        })
        .collect();
    if let Some(typed) = some_string(answer, "response") {
        let question = answer["questions"][0]["question"].as_str().unwrap_or_default().to_owned();
        answers.push(Observation::Answer { question, answer: typed });
    }
    answers
}

/// What else can fail: tools of other servers, subagents, and the client's tools that fetch things. Its own
/// book-keeping fails without consequences.
fn other_attempt(tool: &str, input: &Value) -> Option<String> {
    match tool {
        "Agent" | "Task" => Some(attempt("agent", &string(input, "description"))),
        "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList" | "AskUserQuestion" | "ExitPlanMode"
        | "EnterPlanMode" | "ToolSearch" => None,
        "Skill" => Some(attempt("skill", &string(input, "skill"))),
        "WebFetch" => Some(attempt("fetch", &string(input, "url"))),
        "WebSearch" => Some(attempt("web search", &string(input, "query"))),
        tool => foreign_tool(tool).or_else(|| Some(attempt("tool", tool))),
    }
}

/// Calls that never ran and have no event of their own: plans that the user refused, and invalid edits.
fn refused(wire: &HookWire<'_>) -> Vec<Observation> {
    let has_refusal = |calls: &str| calls.contains("ExitPlanMode") || calls.contains(MISUSED);
    let Some(calls) = wire.tool_calls.filter(|calls| has_refusal(calls.get())) else {
        return Vec::new();
    };
    let calls = value(Some(calls));
    let refused = calls.as_array().into_iter().flatten().filter_map(|call| {
        let (tool, input) = (call["tool_name"].as_str()?, &call["tool_input"]);
        let answer = answer_text(&call["tool_response"]);
        if tool == "ExitPlanMode" {
            let said = answer.split_once(USER_SAID).map_or("", |(_, said)| said.trim()).to_owned();
            let plan = Observation::Plan { approved: false, plan: string(input, "plan"), said };
            return answer.contains(REFUSED).then_some(plan);
        }
        let problem = answer.strip_prefix(MISUSED)?.trim_end_matches("</tool_use_error>");
        let (action, path) = file(tool, input)?;
        // Here the path is as the model wrote it, elsewhere it is absolute.
        let path = Path::new(wire.cwd.as_deref().unwrap_or_default()).join(path);
        let attempt = attempt(action.word(), &path.to_string_lossy());
        Some(Observation::Failed { attempt, output: problem.to_owned() })
    });
    refused.collect()
}

#[cfg(test)]
mod tests;
