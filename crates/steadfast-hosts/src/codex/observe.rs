//! What Codex's hooks show of the work: prompts, tool calls with their answers, plans, subagents. Answers come as
//! plain text, as JSON in a string or as objects, with the exit code or without; what is not understood gives nothing.

use serde_json::Value;

use super::hook::{CodexHookWire, OWN_TOOLS};
use super::wake;
use crate::observe::{answer_text, foreign_tool, prompt, some_string, string, task_list, value};
use steadfast_model::memory::observation::{FileAction, Observation, Shell, ShellDirectory, ShellOutcome, attempt};

/// The most files of one patch.
const FILES_MAX: usize = 200;
/// The most lines that may stand before the output itself.
const HEADER_LINES: usize = 8;

pub(super) fn observe(wire: &CodexHookWire<'_>) -> Vec<Observation> {
    let agent = wire.agent_id.as_deref().unwrap_or_default();
    match wire.hook_event_name.as_str() {
        // A subagent is prompted by the agent, not by the user.
        "UserPromptSubmit" if agent.is_empty() => {
            let typed = wire.prompt.as_deref().filter(|prompt| prompt.trim() != wake::MESSAGE);
            prompt(typed).into_iter().collect()
        }
        "PostToolUse" => wire.tool_name.as_deref().map(|tool| tool_call(tool, wire)).unwrap_or_default(),
        "SubagentStart" if !agent.is_empty() => {
            vec![Observation::SubagentStarted { id: agent.to_owned(), kind: kind(wire) }]
        }
        "SubagentStop" if !agent.is_empty() => {
            let message = wire.last_assistant_message.clone().unwrap_or_default();
            vec![Observation::SubagentFinished { id: agent.to_owned(), kind: kind(wire), message }]
        }
        _ => Vec::new(),
    }
}

/// `default` says nothing.
fn kind(wire: &CodexHookWire<'_>) -> String {
    wire.agent_type.clone().filter(|kind| kind != "default").unwrap_or_default()
}

fn tool_call(tool: &str, wire: &CodexHookWire<'_>) -> Vec<Observation> {
    let input = value(wire.tool_input);
    let answer = value(wire.tool_response);
    match tool {
        own if own.starts_with(OWN_TOOLS) => Vec::new(),
        "Bash" => {
            let Some(command) = command(&input) else { return Vec::new() };
            let (outcome, output) = ended(&answer);
            let directory = ShellDirectory::Before(wire.cwd.clone().unwrap_or_default());
            vec![Observation::Shell(Shell { command, output, outcome, directory })]
        }
        "apply_patch" => command(&input).map(|patch| patched(&patch, &answer)).unwrap_or_default(),
        // A subagent's plan is its own, and is gone with it.
        "update_plan" if wire.agent_id.as_deref().is_some_and(|agent| !agent.is_empty()) => Vec::new(),
        "update_plan" => task_list(&input["plan"], "step").map(Observation::TaskList).into_iter().collect(),
        // The name of the tool's group may be glued to its own.
        spawn if spawn.ends_with("spawn_agent") => {
            let answer = embedded(&answer);
            let id = some_string(&answer, "agent_id").or_else(|| some_string(&answer, "id")).unwrap_or_default();
            let parts = [string(&input, "task_name"), string(&input, "message")];
            let task = parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(": ");
            let kind = string(&input, "agent_type");
            if task.is_empty() { Vec::new() } else { vec![Observation::SubagentTasked { id, kind, task }] }
        }
        foreign => match foreign_tool(foreign) {
            Some(attempt) if answer["isError"].as_bool() == Some(true) => {
                vec![Observation::Failed { attempt, output: answer_text(&answer) }]
            }
            Some(attempt) => vec![Observation::Worked { attempt }],
            None => Vec::new(),
        },
    }
}

/// One line for a shell; a list of words is what some versions send.
fn command(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(line) => Some(line.clone()).filter(|line| !line.trim().is_empty()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                // `["bash", "-lc", "…"]`
                [_, "-c" | "-lc", line] => Some((*line).to_owned()),
                [] => None,
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// JSON that came as text.
fn embedded(answer: &Value) -> Value {
    match answer {
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_slice(text.as_bytes()).unwrap_or_default()
        }
        other => other.clone(),
    }
}

/// How a command ended, if its answer says so, and what it printed.
fn ended(answer: &Value) -> (ShellOutcome, String) {
    let by_code = |code: i64| if code == 0 { ShellOutcome::Worked } else { ShellOutcome::Failed };
    let fields = embedded(answer);
    let code = fields["metadata"]["exit_code"].as_i64().or_else(|| fields["exit_code"].as_i64());
    if let Some(code) = code {
        return (by_code(code), answer_text(&fields));
    }
    if let Value::String(text) = answer
        && let Some((header, output)) = header(text)
    {
        let outcome = header.map_or(ShellOutcome::Unfinished, by_code);
        return (outcome, steadfast_model::text::tail(output, 64 * 1024).to_owned());
    }
    (ShellOutcome::Unknown, answer_text(answer))
}

/// The lines before `Output:`, if there are any: the exit code in them, `None` while the command runs on, and the
/// output itself. A command can print anything, so the lines must be those that Codex writes.
fn header(text: &str) -> Option<(Option<i64>, &str)> {
    const LINES: [&str; 7] = [
        "Exit code: ",
        "Wall time: ",
        "Chunk ID: ",
        "Process exited with code ",
        "Process running with session ID ",
        "Original token count: ",
        "Total output lines: ",
    ];
    let mut rest = text;
    let mut code = None;
    for at in 0..HEADER_LINES {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim_end_matches('\r');
        if line == "Output:" {
            return (at > 0).then_some((code, after));
        }
        if !LINES.iter().any(|start| line.starts_with(start)) {
            return None;
        }
        let number = line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "));
        code = number.and_then(|number| number.trim().parse().ok()).or(code);
        if after.is_empty() {
            return code.map(|code| (Some(code), after));
        }
        rest = after;
    }
    None
}

/// The files of a patch, or that it could not be applied.
fn patched(patch: &str, answer: &Value) -> Vec<Observation> {
    let files = files_of_patch(patch);
    let (outcome, output) = ended(answer);
    let refused = ["apply_patch verification failed", "Failed to ", "Invalid patch"];
    let failed = match outcome {
        ShellOutcome::Failed => true,
        ShellOutcome::Unknown => refused.iter().any(|start| output.trim_start().starts_with(start)),
        ShellOutcome::Worked | ShellOutcome::Unfinished => false,
    };
    if !failed {
        return files;
    }
    // Codex applies all of a patch or nothing.
    let in_vain = files.into_iter().filter_map(|file| match file {
        Observation::File { action, path, .. } => {
            Some(Observation::Failed { attempt: attempt(action.word(), &path), output: output.clone() })
        }
        _ => None,
    });
    in_vain.take(10).collect()
}

/// The headers of a patch: every line of content begins with a blank, `+`, `-` or `@`.
fn files_of_patch(patch: &str) -> Vec<Observation> {
    let mut files: Vec<Observation> = Vec::new();
    for line in patch.lines() {
        let Some(header) = line.strip_prefix("*** ") else { continue };
        if let Some(target) = header.strip_prefix("Move to: ") {
            if let Some(Observation::File { action, to, .. }) = files.last_mut() {
                *action = FileAction::Move;
                *to = Some(target.trim().to_owned());
            }
            continue;
        }
        let named = [
            ("Add File: ", FileAction::Write),
            ("Update File: ", FileAction::Edit),
            ("Delete File: ", FileAction::Delete),
        ];
        let found = named.iter().find_map(|(start, action)| Some((*action, header.strip_prefix(start)?.trim())));
        if let Some((action, path)) = found.filter(|(_, path)| !path.is_empty()) {
            if files.len() == FILES_MAX {
                break;
            }
            files.push(Observation::File { action, path: path.to_owned(), to: None });
        }
    }
    files
}

#[cfg(test)]
mod tests;
