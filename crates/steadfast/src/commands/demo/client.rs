//! The scripted client: it plays the steps as Claude Code would. It writes the session file, runs the model's tools, calls
//! `steadfast hook claude` at every event with the JSON of the real client, and obeys the replies.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use uuid::Uuid;

use super::folder::{DemoFolder, SESSION};
use super::printer::Printer;
use super::promise::Facts;
use super::steps::{Answer, NEW_SESSION, OBJECTIVE, RESUMED_SESSION, SCRIPT, Step, Tool};
use super::transcript::{Transcript, merged};

/// The prefix of the plugin's tools in Claude Code.
const OWN_TOOLS: &str = "mcp__plugin_steadfast_steadfast__";
/// The MCP version of Claude Code 2.1.
const PROTOCOL: &str = "2025-06-18";

struct ScriptedClient {
    folder: DemoFolder,
    printer: Printer,
    transcript: Transcript,
    facts: Facts,
    prompt_id: String,
    /// A Stop hook started the current turn.
    is_continuation: bool,
}

/// A tool call and its result, as the hooks see it.
struct ToolCall {
    id: String,
    name: String,
    input: Value,
    output: String,
    is_error: bool,
}

/// Plays a new session until it is killed, or the rest of a killed one.
pub(super) fn play(folder: DemoFolder, printer: Printer) -> anyhow::Result<()> {
    let transcript = Transcript::open(folder.transcript(), &folder.project())?;
    let (facts, steps) = if transcript.is_resumed() {
        (serde_json::from_slice(&fs_err::read(folder.facts())?)?, RESUMED_SESSION)
    } else {
        (Facts::default(), NEW_SESSION)
    };
    let mut client =
        ScriptedClient { folder, printer, transcript, facts, prompt_id: String::new(), is_continuation: false };
    for step in steps {
        let continues = client.step(step)?;
        client.save_facts()?;
        if !continues {
            break;
        }
    }
    if client.is_continuation {
        client.printer.agent("(the script ends here, but the goal is still active)");
    }
    client.hook("SessionEnd", json!({"reason": "prompt_input_exit"}))?;
    client.facts.session_ends += 1;
    client.save_facts()
}

impl ScriptedClient {
    /// Returns whether the session continues after this step.
    fn step(&mut self, step: &Step) -> anyhow::Result<bool> {
        match step {
            Step::Heading(title) => self.printer.heading(title),
            Step::Start(source) => self.start_session(source)?,
            Step::SetGoal(flags) => self.set_goal(&format!("\"{OBJECTIVE}\" {flags}"))?,
            Step::Prompt(text) => {
                self.prompt_id = Uuid::new_v4().to_string();
                self.printer.user(text);
                self.submit(text, text)?;
                self.print_budget()?;
            }
            Step::Answer(answer) => self.answer(answer)?,
            Step::EndTurn(answer) => return self.end_turn(answer),
            Step::Compact(summary) => self.compact(summary)?,
            Step::Killed(answer) => self.die_in_turn(answer)?,
        }
        Ok(true)
    }

    fn start_session(&mut self, source: &str) -> anyhow::Result<()> {
        let reply = self.hook("SessionStart", json!({"source": source}))?;
        if source != "startup" {
            let reminder = context(&reply).unwrap_or_default();
            let is_verbatim = reminder.lines().any(|line| line == OBJECTIVE);
            let quoted = if is_verbatim { OBJECTIVE } else { "(missing)" };
            let first = reminder.lines().next().unwrap_or_default();
            self.printer.steadfast(&format!("{first}\nObjective: {quoted}"));
            self.facts.reminders.push(is_verbatim);
        }
        Ok(())
    }

    /// The user types `/goal-start`.
    fn set_goal(&mut self, arguments: &str) -> anyhow::Result<()> {
        self.prompt_id = Uuid::new_v4().to_string();
        let prompt = format!("/goal-start {arguments}");
        self.printer.user(&prompt);
        let event = json!({
            "permission_mode": "default", "expansion_type": "slash_command", "command_name": "goal-start",
            "command_args": arguments, "command_source": "user", "prompt": prompt,
        });
        let reply = self.hook("UserPromptExpansion", event)?;
        if reply["decision"] == json!("block") {
            bail!("Steadfast refused {prompt}: {}", reply["reason"]);
        }
        self.printer.steadfast(reply["systemMessage"].as_str().unwrap_or_default());
        let expanded = format!("<command-name>/goal-start</command-name>\n<command-args>{arguments}</command-args>");
        self.submit(&prompt, &expanded)?;
        self.inject(context(&reply))
    }

    fn submit(&mut self, typed: &str, stored: &str) -> anyhow::Result<()> {
        self.is_continuation = false;
        self.hook("UserPromptSubmit", json!({"permission_mode": "default", "prompt": typed}))?;
        Ok(self.transcript.user(&self.prompt_id, &json!(stored), json!({}))?)
    }

    /// Writes text from a hook for the model.
    fn inject(&mut self, text: Option<&str>) -> anyhow::Result<()> {
        if let Some(text) = text {
            self.transcript.user(&self.prompt_id, &json!(text), json!({"isMeta": true}))?;
        }
        Ok(())
    }

    /// The model answers: write the answer, run its tools, call the hook.
    fn answer(&mut self, answer: &Answer) -> anyhow::Result<()> {
        let mut calls = self.write_answer(answer)?;
        if calls.is_empty() {
            return Ok(());
        }
        for (call, tool) in calls.iter_mut().zip(answer.tools) {
            self.run_tool(call, tool)?;
        }
        let calls: Vec<Value> =
            calls.iter().map(|call| merged(call.event(), json!({"tool_response": call.output}))).collect();
        let reply = self.hook("PostToolBatch", json!({"permission_mode": "default", "tool_calls": calls}))?;
        self.print_budget()?;
        if let Some(warning) = context(&reply) {
            self.printer.steadfast(warning.trim_start_matches("Steadfast: "));
            self.facts.warnings += 1;
        }
        self.inject(context(&reply))
    }

    fn write_answer(&mut self, answer: &Answer) -> anyhow::Result<Vec<ToolCall>> {
        let calls: Vec<ToolCall> = answer.tools.iter().map(ToolCall::new).collect();
        let mut blocks = Vec::new();
        if !answer.thought.is_empty() {
            blocks.push(json!({"type": "thinking", "thinking": answer.thought, "signature": "c2NyaXB0ZWQ="}));
        }
        blocks.push(json!({"type": "text", "text": answer.text}));
        for call in &calls {
            blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}));
        }
        self.transcript.answer(&blocks, calls.is_empty(), answer.usage)?;
        self.facts.tokens += answer.usage.counted();
        self.facts.answers += 1;
        self.facts.lines += blocks.len();
        self.printer.agent(answer.text);
        Ok(calls)
    }

    fn run_tool(&mut self, call: &mut ToolCall, tool: &Tool) -> anyhow::Result<()> {
        match tool {
            Tool::Shell(script) => {
                let shell = self.folder.command("sh").args(["-c", script]).output()?;
                call.output = String::from_utf8_lossy(&shell.stdout).into_owned();
                call.is_error = !shell.status.success();
                let last = call.output.trim_end().lines().next_back().unwrap_or_default();
                self.printer.client(&format!("$ {script} → {last}"));
            }
            Tool::Write(content) => {
                fs_err::write(self.folder.project().join(SCRIPT), content)?;
                call.output = format!("{SCRIPT} written");
            }
            Tool::CompleteGoal => self.complete_goal(call)?,
        }
        let result = json!([{
            "tool_use_id": call.id, "type": "tool_result", "content": call.output, "is_error": call.is_error,
        }]);
        Ok(self.transcript.user(&self.prompt_id, &result, json!({}))?)
    }

    fn complete_goal(&mut self, call: &mut ToolCall) -> anyhow::Result<()> {
        let reply = self.hook("PreToolUse", merged(call.event(), json!({"permission_mode": "default"})))?;
        if reply["hookSpecificOutput"]["permissionDecision"] != json!("allow") {
            bail!("Steadfast's own tool was not allowed to run: {reply}");
        }
        let result = self.call_tool("update_goal", call)?;
        call.is_error = result["isError"] == json!(true);
        call.output = result["content"][0]["text"].as_str().map_or_else(String::new, str::to_owned);
        if call.is_error {
            self.facts.refused += 1;
            let lines = call.output.lines().enumerate().filter(|(at, line)| *at == 0 || line.starts_with("FAIL"));
            self.printer.steadfast(&lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n"));
        } else {
            self.facts.accepted += 1;
            let status = result["structuredContent"]["goal"]["status"].as_str().unwrap_or("unknown");
            self.printer.steadfast(&format!("`sh check.sh` passed; the goal is {status}."));
        }
        Ok(())
    }

    /// Calls a tool of `steadfast mcp`, with the id under which the `PreToolUse` hook saw the call.
    fn call_tool(&self, tool: &str, call: &ToolCall) -> anyhow::Result<Value> {
        let mut server = self.folder.steadfast(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut requests = server.stdin.take().context("steadfast mcp has no stdin")?;
        let replies = server.stdout.take().context("steadfast mcp has no stdout")?;
        let info = json!({"name": "steadfast-demo", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info});
        let params = json!({"name": tool, "arguments": call.input, "_meta": {"claudecode/toolUseId": call.id}});
        let messages = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}),
        ];
        for message in messages {
            writeln!(requests, "{message}")?;
        }
        let mut reply = Value::Null;
        for line in BufReader::new(replies).lines() {
            reply = serde_json::from_str(&line?)?;
            if reply["id"] == json!(2) {
                break;
            }
        }
        drop(requests);
        let status = server.wait()?;
        if !status.success() || !reply["result"].is_object() {
            bail!("steadfast mcp ended with {status}; its last reply was {reply}");
        }
        Ok(reply["result"].take())
    }

    /// The context is full: the client replaces the conversation by a summary.
    fn compact(&mut self, summary: &str) -> anyhow::Result<()> {
        self.printer.client("context full: a summary without the goal replaces the conversation");
        self.hook("PreCompact", json!({"trigger": "auto", "custom_instructions": null}))?;
        self.start_session("compact")?;
        // The real client, too, writes the boundary after its hooks ran.
        self.transcript.compaction(&self.prompt_id, summary)?;
        self.facts.compactions += 1;
        Ok(())
    }

    /// The model ends its turn. Returns whether Steadfast continues it.
    fn end_turn(&mut self, last: &Answer) -> anyhow::Result<bool> {
        self.answer(last)?;
        let event = json!({
            "permission_mode": "default", "stop_hook_active": self.is_continuation, "last_assistant_message": last.text,
            "background_tasks": [], "session_crons": [],
        });
        let reply = self.hook("Stop", event)?;
        let reason = reply["reason"].as_str().filter(|_| reply["decision"] == json!("block"));
        self.is_continuation = reason.is_some();
        if let Some(reason) = reason {
            self.inject(Some(&format!("Stop hook feedback:\n{reason}")))?;
            self.printer.steadfast(reason.lines().next().unwrap_or_default());
            self.facts.continuations += 1;
        }
        Ok(self.is_continuation)
    }

    /// Dies by SIGKILL with the answer on disk, its file half written, and no hook called.
    fn die_in_turn(&mut self, answer: &Answer) -> anyhow::Result<()> {
        self.write_answer(answer)?;
        for tool in answer.tools {
            if let Tool::Write(content) = tool {
                let half: String = content.chars().take(content.len() / 2).collect();
                fs_err::write(self.folder.project().join(SCRIPT), half)?;
            }
        }
        self.save_facts()?;
        self.printer.pause(2);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
        bail!("the client survived SIGKILL")
    }

    fn print_budget(&self) -> anyhow::Result<()> {
        let goal = self.folder.goal()?;
        let number = |field: &str| goal[field].as_i64().unwrap_or_default();
        self.printer.budget(number("total_tokens"), number("token_budget"));
        Ok(())
    }

    fn save_facts(&self) -> anyhow::Result<()> {
        Ok(fs_err::write(self.folder.facts(), serde_json::to_vec(&self.facts)?)?)
    }

    /// Runs the hook as the client does, and returns its reply; an empty reply is null.
    fn hook(&self, event: &str, fields: Value) -> anyhow::Result<Value> {
        let mut input = json!({
            "session_id": SESSION, "transcript_path": self.transcript.path, "cwd": self.folder.project(),
            "hook_event_name": event,
        });
        if !self.prompt_id.is_empty() {
            input["prompt_id"] = json!(self.prompt_id);
        }
        let reply = self.folder.run(&["hook", "claude"], &merged(input, fields).to_string())?;
        if reply.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&reply).with_context(|| format!("reply of hook {event}"))
    }
}

impl ToolCall {
    fn new(tool: &Tool) -> Self {
        let (name, input) = match tool {
            Tool::Shell(script) => ("Bash".to_owned(), json!({"command": script})),
            Tool::Write(content) => ("Write".to_owned(), json!({"file_path": SCRIPT, "content": content})),
            Tool::CompleteGoal => {
                (format!("{OWN_TOOLS}update_goal"), json!({"status": "complete", "completed_by": "self_update"}))
            }
        };
        let id = format!("toolu_demo{}", Uuid::new_v4().simple());
        Self { id, name, input, output: String::new(), is_error: false }
    }

    fn event(&self) -> Value {
        json!({"tool_name": self.name, "tool_input": self.input, "tool_use_id": self.id})
    }
}

/// The text that a hook adds for the model.
fn context(reply: &Value) -> Option<&str> {
    reply["hookSpecificOutput"]["additionalContext"].as_str()
}
