//! The scripted client: it plays the steps as Claude Code would. It writes the session file, runs the model's tools, calls
//! `steadfast hook claude` at every event with the JSON of the real client, and obeys the replies.

use anyhow::{Context as _, bail};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use uuid::Uuid;

use super::folder::{DemoFolder, SESSION};
use super::printer::{DIM, GREEN, PLAIN, Printer, YELLOW};
use super::promise::DemoFacts;
use super::steps::{DemoStep, NEW_SESSION, OBJECTIVE, RESUMED_SESSION, SCRIPT, Tool, Usage};
use super::transcript::{Transcript, merged};
use crate::mcp::client::McpClient;

/// A tool of the plugin, as Claude Code names it.
const UPDATE_GOAL: &str = "mcp__plugin_steadfast_steadfast__update_goal";

struct ScriptedClient<'a> {
    folder: &'a DemoFolder,
    printer: &'a Printer,
    transcript: Transcript,
    facts: DemoFacts,
    /// A Stop hook started the current turn.
    is_continuation: bool,
}

/// Plays a new session until it is killed, or the rest of a killed one.
pub(super) fn play(folder: &DemoFolder, printer: &Printer) -> anyhow::Result<()> {
    let transcript = Transcript::open(folder.transcript(), folder.project())?;
    let (facts, steps) = if transcript.last_uuid.is_some() {
        (folder.facts()?, RESUMED_SESSION)
    } else {
        (DemoFacts::default(), NEW_SESSION)
    };
    let mut client = ScriptedClient { folder, printer, transcript, facts, is_continuation: false };
    for step in steps {
        if !client.play(step)? {
            break;
        }
    }
    client.hook("SessionEnd", json!({"reason": "prompt_input_exit"}))?;
    client.facts.session_ends += 1;
    folder.save_facts(&client.facts)
}

impl ScriptedClient<'_> {
    /// Plays one step and returns whether the session continues after it.
    fn play(&mut self, step: &DemoStep) -> anyhow::Result<bool> {
        match step {
            DemoStep::Heading(title) => self.printer.heading(title),
            DemoStep::Start(source) => self.start_session(source)?,
            DemoStep::SetGoal(flags) => self.prompt(&format!("/goal-start \"{OBJECTIVE}\" {flags}"))?,
            DemoStep::Prompt(text) => self.prompt(text)?,
            DemoStep::Answer(text, tools, usage) => self.answer(text, tools, *usage)?,
            DemoStep::EndTurn(text, usage) => return self.end_turn(text, *usage),
            DemoStep::Compact(summary) => self.compact(summary)?,
            DemoStep::Killed(text, script, usage) => self.die_in_turn(text, script, *usage)?,
        }
        Ok(true)
    }

    fn start_session(&mut self, source: &str) -> anyhow::Result<()> {
        let reply = self.hook("SessionStart", json!({"source": source}))?;
        if source != "startup" {
            let reminder = context(&reply).unwrap_or_default();
            let is_verbatim = reminder.lines().any(|line| line == OBJECTIVE);
            let objective = if is_verbatim { OBJECTIVE } else { "(missing)" };
            let first = reminder.lines().next().unwrap_or_default();
            self.printer.labelled("steadfast", GREEN, &format!("{first}\nObjective: {objective}"));
            self.facts.reminders.push(is_verbatim);
        }
        Ok(())
    }

    /// The user types a prompt or a slash command.
    fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        self.printer.labelled("user", YELLOW, text);
        self.transcript.prompt_id = Uuid::new_v4().to_string();
        self.is_continuation = false;
        let mut reply = Value::Null;
        if let Some((name, arguments)) = text.strip_prefix('/').and_then(|command| command.split_once(' ')) {
            let event = json!({
                "expansion_type": "slash_command", "command_name": name,
                "command_args": arguments, "command_source": "user", "prompt": text,
            });
            reply = self.hook("UserPromptExpansion", event)?;
            self.printer.labelled("steadfast", GREEN, reply["systemMessage"].as_str().unwrap_or_default());
        }
        self.hook("UserPromptSubmit", json!({"prompt": text}))?;
        self.transcript.user(&json!(text), json!({}))?;
        self.inject(context(&reply))?;
        self.print_budget()
    }

    /// Writes text from a hook for the model.
    fn inject(&mut self, text: Option<&str>) -> anyhow::Result<()> {
        if let Some(text) = text {
            self.transcript.user(&json!(text), json!({"isMeta": true}))?;
        }
        Ok(())
    }

    /// The model answers: write the answer, run its tools, call the hook.
    fn answer(&mut self, text: &str, tools: &[Tool], usage: Usage) -> anyhow::Result<()> {
        let mut calls = self.write_answer(text, tools, usage)?;
        for (call, tool) in calls.iter_mut().zip(tools) {
            self.run_tool(call, tool)?;
        }
        let reply = self.hook("PostToolBatch", json!({"tool_calls": calls}))?;
        self.print_budget()?;
        if let Some(warning) = context(&reply) {
            self.printer.labelled("steadfast", GREEN, warning.trim_start_matches("Steadfast: "));
            self.facts.warnings += 1;
        }
        self.inject(context(&reply))
    }

    /// Writes an answer and returns its tool calls as hooks get them.
    fn write_answer(&mut self, text: &str, tools: &[Tool], usage: Usage) -> anyhow::Result<Vec<Value>> {
        let calls: Vec<Value> = tools.iter().map(tool_call).collect();
        let mut blocks = vec![
            json!({"type": "thinking", "thinking": "What is the next step?", "signature": "c2NyaXB0ZWQ="}),
            json!({"type": "text", "text": text}),
        ];
        blocks.extend(calls.iter().map(|call| {
            json!({"type": "tool_use", "id": call["tool_use_id"], "name": call["tool_name"], "input": call["tool_input"]})
        }));
        self.transcript.answer(&blocks, calls.is_empty(), usage)?;
        let [input, cache_creation, _, output] = usage;
        self.facts.tokens += input + cache_creation + output;
        self.printer.labelled("agent", PLAIN, text);
        Ok(calls)
    }

    fn run_tool(&mut self, call: &mut Value, tool: &Tool) -> anyhow::Result<()> {
        let (output, is_error) = match tool {
            Tool::Shell(script) => {
                let shell = self.folder.command("sh").args(["-c", script]).output()?;
                let output = String::from_utf8_lossy(&shell.stdout).into_owned();
                let last = output.trim_end().lines().next_back().unwrap_or_default();
                self.printer.labelled("client", DIM, &format!("$ {script} → {last}"));
                (output, !shell.status.success())
            }
            Tool::Write(content) => {
                fs_err::write(self.folder.project().join(SCRIPT), content)?;
                (format!("{SCRIPT} written"), false)
            }
            Tool::CompleteGoal => self.complete_goal(call)?,
        };
        let result = json!({
            "tool_use_id": call["tool_use_id"], "type": "tool_result", "content": output, "is_error": is_error,
        });
        call["tool_response"] = json!(output);
        Ok(self.transcript.user(&json!([result]), json!({}))?)
    }

    fn complete_goal(&mut self, call: &Value) -> anyhow::Result<(String, bool)> {
        let reply = self.hook("PreToolUse", call.clone())?;
        if reply["hookSpecificOutput"]["permissionDecision"] != json!("allow") {
            bail!("Steadfast's own tool was not allowed to run: {reply}");
        }
        let (mut server, _) = McpClient::start(&mut self.folder.steadfast(&["mcp"]))?;
        let meta = json!({"claudecode/toolUseId": call["tool_use_id"]});
        let params = json!({"name": "update_goal", "arguments": call["tool_input"], "_meta": meta});
        let result = server.request("tools/call", &params)?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let is_error = result["isError"] == json!(true);
        if is_error {
            self.facts.refused += 1;
            let lines = text.lines().enumerate().filter(|(at, line)| *at == 0 || line.starts_with("FAIL"));
            self.printer.labelled("steadfast", GREEN, &lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n"));
        } else {
            self.facts.accepted += 1;
            let status = result["structuredContent"]["goal"]["status"].as_str().unwrap_or("unknown");
            self.printer.labelled("steadfast", GREEN, &format!("`sh check.sh` passed; the goal is {status}."));
        }
        Ok((text.to_owned(), is_error))
    }

    fn compact(&mut self, summary: &str) -> anyhow::Result<()> {
        self.printer.labelled("client", DIM, "context full: a summary without the goal replaces the conversation");
        self.hook("PreCompact", json!({"trigger": "auto", "custom_instructions": null}))?;
        self.start_session("compact")?;
        self.facts.compactions += 1;
        // The real client, too, writes the boundary after its hooks ran.
        Ok(self.transcript.compaction(summary)?)
    }

    /// The model ends its turn. Returns whether Steadfast continues it.
    fn end_turn(&mut self, text: &str, usage: Usage) -> anyhow::Result<bool> {
        self.write_answer(text, &[], usage)?;
        let event = json!({
            "stop_hook_active": self.is_continuation, "last_assistant_message": text,
            "background_tasks": [], "session_crons": [],
        });
        let reply = self.hook("Stop", event)?;
        let reason = reply["reason"].as_str().filter(|_| reply["decision"] == json!("block"));
        self.is_continuation = reason.is_some();
        if let Some(reason) = reason {
            self.inject(Some(&format!("Stop hook feedback:\n{reason}")))?;
            self.printer.labelled("steadfast", GREEN, reason.lines().next().unwrap_or_default());
            self.facts.continuations += 1;
        }
        Ok(self.is_continuation)
    }

    fn die_in_turn(&mut self, text: &str, script: &'static str, usage: Usage) -> anyhow::Result<()> {
        self.write_answer(text, &[Tool::Write(script)], usage)?;
        let half: String = script.chars().take(script.len() / 2).collect();
        fs_err::write(self.folder.project().join(SCRIPT), half)?;
        self.folder.save_facts(&self.facts)?;
        self.printer.pause(2);
        kill_process(getpid(), Signal::KILL)?;
        bail!("the client survived SIGKILL")
    }

    fn print_budget(&self) -> anyhow::Result<()> {
        let goal = self.folder.goal()?;
        self.printer.budget(super::number(&goal, "total_tokens"), super::number(&goal, "token_budget"));
        Ok(())
    }

    /// Runs the hook as the client does, and returns its reply; an empty reply is null.
    fn hook(&self, event: &str, fields: Value) -> anyhow::Result<Value> {
        let mut input = json!({
            "session_id": SESSION, "transcript_path": self.transcript.path, "cwd": self.folder.project(),
            "hook_event_name": event, "permission_mode": "default",
        });
        if !self.transcript.prompt_id.is_empty() {
            input["prompt_id"] = json!(self.transcript.prompt_id);
        }
        let reply = self.folder.run(&["hook", "claude"], &merged(input, fields).to_string())?;
        let reply = if reply.trim().is_empty() { "null" } else { &reply };
        serde_json::from_str(reply).with_context(|| format!("reply of hook {event}"))
    }
}

fn tool_call(tool: &Tool) -> Value {
    let (name, input) = match tool {
        Tool::Shell(script) => ("Bash", json!({"command": script})),
        Tool::Write(content) => ("Write", json!({"file_path": SCRIPT, "content": content})),
        Tool::CompleteGoal => (UPDATE_GOAL, json!({"status": "complete", "completed_by": "self_update"})),
    };
    let id = format!("toolu_demo{}", Uuid::new_v4().simple());
    json!({"tool_name": name, "tool_input": input, "tool_use_id": id})
}

/// The text that a hook adds for the model.
fn context(reply: &Value) -> Option<&str> {
    reply["hookSpecificOutput"]["additionalContext"].as_str()
}
