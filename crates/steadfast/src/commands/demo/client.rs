//! The part Claude Code plays: it keeps the session file, runs the model's tools, calls `steadfast hook claude`
//! at every event with the same JSON the real client sends, and obeys what comes back.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use uuid::Uuid;

use super::stage::{SESSION, Stage};
use super::story::{StoryEvent, Voice, say, tell};
use super::tool_server::ToolServer;
use super::transcript::{Transcript, Usage};

/// How the client names a tool of the plugin's server.
const OWN_TOOLS: &str = "mcp__plugin_steadfast_steadfast__";

/// What the model can do.
pub(super) enum Tool {
    Shell(&'static str),
    Write(&'static str, &'static str),
    /// Claims that the goal is met.
    CompleteGoal,
}

/// One answer of the scripted model.
pub(super) struct Answer {
    pub(super) thought: Option<&'static str>,
    pub(super) text: &'static str,
    pub(super) tools: Vec<Tool>,
    pub(super) usage: Usage,
}

pub(super) struct Client {
    stage: Stage,
    transcript: Transcript,
    tools: ToolServer,
    prompt_id: String,
    /// The running turn was started by a Stop hook.
    continued: bool,
}

/// A tool call that was made, as the hooks see it.
struct Call {
    id: String,
    name: String,
    input: Value,
    output: String,
    is_error: bool,
}

impl Client {
    pub(super) fn open(stage: Stage) -> anyhow::Result<Self> {
        Ok(Self {
            transcript: Transcript::open(stage.transcript(), &stage.project())?,
            tools: ToolServer::start(&stage)?,
            stage,
            prompt_id: String::new(),
            continued: false,
        })
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.transcript.is_resumed()
    }

    pub(super) fn project(&self) -> std::path::PathBuf {
        self.stage.project()
    }

    /// Starts or resumes the session; what Steadfast tells the model then.
    pub(super) fn start_session(&mut self, source: &str) -> anyhow::Result<Option<String>> {
        let reply = self.hook("SessionStart", json!({"source": source}))?;
        Ok(context(&reply))
    }

    /// The user types one of Steadfast's slash commands.
    pub(super) fn command(&mut self, name: &str, arguments: &str) -> anyhow::Result<()> {
        self.prompt_id = Uuid::new_v4().to_string();
        let prompt = format!("/{name} {arguments}");
        say(Voice::User, &prompt)?;
        let reply = self.hook(
            "UserPromptExpansion",
            json!({
                "permission_mode": "default", "expansion_type": "slash_command", "command_name": name,
                "command_args": arguments, "command_source": "user", "prompt": prompt,
            }),
        )?;
        if reply["decision"] == json!("block") {
            bail!("Steadfast refused {prompt}: {}", reply["reason"]);
        }
        if let Some(message) = reply["systemMessage"].as_str() {
            say(Voice::Steadfast, message)?;
        }
        let expanded = format!("<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>");
        self.submit(&prompt, &expanded)?;
        if let Some(context) = context(&reply) {
            self.transcript.user(&self.prompt_id, &json!(context), json!({"isMeta": true}))?;
        }
        Ok(())
    }

    /// The user types a prompt.
    pub(super) fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        self.prompt_id = Uuid::new_v4().to_string();
        say(Voice::User, text)?;
        self.submit(text, text)?;
        tell(&StoryEvent::Accounted)
    }

    fn submit(&mut self, typed: &str, stored: &str) -> anyhow::Result<()> {
        self.continued = false;
        self.hook("UserPromptSubmit", json!({"permission_mode": "default", "prompt": typed}))?;
        self.transcript.user(&self.prompt_id, &json!(stored), json!({}))?;
        Ok(())
    }

    /// The model answers: every block goes to the session file, then its tools run, then the hook hears of it.
    pub(super) fn answer(&mut self, answer: &Answer) -> anyhow::Result<()> {
        let mut calls = self.write_answer(answer)?;
        if calls.is_empty() {
            return Ok(());
        }
        for (call, tool) in calls.iter_mut().zip(&answer.tools) {
            self.run_tool(call, tool)?;
        }
        let made: Vec<Value> = calls
            .iter()
            .map(|call| {
                json!({
                    "tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id,
                    "tool_response": call.output,
                })
            })
            .collect();
        let reply = self.hook("PostToolBatch", json!({"permission_mode": "default", "tool_calls": made}))?;
        tell(&StoryEvent::Accounted)?;
        if let Some(warning) = context(&reply) {
            say(Voice::Steadfast, warning.trim_start_matches("Steadfast: "))?;
            tell(&StoryEvent::Warned)?;
            self.transcript.user(&self.prompt_id, &json!(warning), json!({"isMeta": true}))?;
        }
        Ok(())
    }

    /// Writes an answer and stops there: its tools have not run and no hook has heard of it.
    pub(super) fn begin_answer(&mut self, answer: &Answer) -> anyhow::Result<()> {
        self.write_answer(answer).map(drop)
    }

    fn write_answer(&mut self, answer: &Answer) -> anyhow::Result<Vec<Call>> {
        let calls: Vec<Call> = answer.tools.iter().map(planned).collect();
        let mut blocks = Vec::new();
        if let Some(thought) = answer.thought {
            blocks.push(json!({"type": "thinking", "thinking": thought, "signature": "c2NyaXB0ZWQ="}));
        }
        blocks.push(json!({"type": "text", "text": answer.text}));
        for call in &calls {
            blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}));
        }
        let lines = self.transcript.answer(blocks, calls.is_empty(), answer.usage)?;
        tell(&StoryEvent::Answered { tokens: answer.usage.counted(), lines })?;
        say(Voice::Agent, answer.text)?;
        Ok(calls)
    }

    fn run_tool(&mut self, call: &mut Call, tool: &Tool) -> anyhow::Result<()> {
        match tool {
            Tool::Shell(script) => {
                let shell = self.stage.command(Path::new("sh")).args(["-c", script]).output()?;
                call.output = String::from_utf8_lossy(&shell.stdout).into_owned();
                call.is_error = !shell.status.success();
                let last = call.output.trim_end().lines().last().unwrap_or_default();
                say(Voice::Client, format!("$ {script} → {last}"))?;
            }
            Tool::Write(name, content) => {
                fs_err::write(self.stage.project().join(name), content)?;
                call.output = format!("{name} written");
            }
            Tool::CompleteGoal => self.complete_goal(call)?,
        }
        let result = json!([{
            "tool_use_id": call.id, "type": "tool_result", "content": call.output, "is_error": call.is_error,
        }]);
        self.transcript.user(&self.prompt_id, &result, json!({}))?;
        Ok(())
    }

    fn complete_goal(&mut self, call: &mut Call) -> anyhow::Result<()> {
        let seen = json!({
            "permission_mode": "default", "tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id,
        });
        let reply = self.hook("PreToolUse", seen)?;
        if reply["hookSpecificOutput"]["permissionDecision"] != json!("allow") {
            bail!("Steadfast's own tool was not allowed to run: {reply}");
        }
        let result = self.tools.call("update_goal", &call.input, &call.id)?;
        call.output = result.text;
        call.is_error = result.is_error;
        if call.is_error {
            say(Voice::Steadfast, gist(&call.output))?;
            return tell(&StoryEvent::CompletionRefused);
        }
        let status = result.structured["goal"]["status"].as_str().unwrap_or("unknown");
        say(Voice::Steadfast, format!("`sh check.sh` passed; the goal is {status}."))?;
        tell(&StoryEvent::CompletionAccepted)
    }

    /// The context is full: the client replaces the conversation by a summary.
    pub(super) fn compact(&mut self, summary: &str, before: i64, after: i64) -> anyhow::Result<Option<String>> {
        self.hook("PreCompact", json!({"trigger": "auto", "custom_instructions": null}))?;
        let told = self.start_session("compact")?;
        // The real client, too, writes the boundary only after its hooks ran.
        self.transcript.compaction(&self.prompt_id, summary, before, after)?;
        tell(&StoryEvent::Compacted)?;
        Ok(told)
    }

    /// The model has nothing more to say. Returns whether Steadfast keeps it going.
    pub(super) fn stop(&mut self, last: &Answer) -> anyhow::Result<bool> {
        self.answer(last)?;
        let reply = self.hook(
            "Stop",
            json!({
                "permission_mode": "default", "stop_hook_active": self.continued, "last_assistant_message": last.text,
                "background_tasks": [], "session_crons": [],
            }),
        )?;
        let Some(reason) = reply["reason"].as_str().filter(|_| reply["decision"] == json!("block")) else {
            return Ok(false);
        };
        self.continued = true;
        let feedback = json!(format!("Stop hook feedback:\n{reason}"));
        self.transcript.user(&self.prompt_id, &feedback, json!({"isMeta": true}))?;
        say(Voice::Steadfast, reason.lines().next().unwrap_or_default())?;
        tell(&StoryEvent::Continued)?;
        Ok(true)
    }

    pub(super) fn end_session(self) -> anyhow::Result<()> {
        self.hook("SessionEnd", json!({"reason": "prompt_input_exit"}))?;
        self.tools.stop()?;
        tell(&StoryEvent::SessionEnded)
    }

    /// Runs the hook as the client does, and returns its reply; an empty reply is null.
    fn hook(&self, event: &str, more: Value) -> anyhow::Result<Value> {
        let mut input = json!({
            "session_id": SESSION, "transcript_path": self.transcript.path(), "cwd": self.stage.project(),
            "hook_event_name": event,
        });
        if !self.prompt_id.is_empty() {
            input["prompt_id"] = json!(self.prompt_id);
        }
        if let (Value::Object(input), Value::Object(more)) = (&mut input, more) {
            input.extend(more);
        }
        let output = run_with_input(&mut self.stage.steadfast(&["hook", "claude"]), &input.to_string())
            .with_context(|| format!("hook {event}"))?;
        if output.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&output).with_context(|| format!("reply of hook {event}"))
    }
}

fn planned(tool: &Tool) -> Call {
    let (name, input) = match tool {
        Tool::Shell(script) => ("Bash".to_owned(), json!({"command": script})),
        Tool::Write(name, content) => ("Write".to_owned(), json!({"file_path": name, "content": content})),
        Tool::CompleteGoal => {
            (format!("{OWN_TOOLS}update_goal"), json!({"status": "complete", "completed_by": "self_update"}))
        }
    };
    Call { id: format!("toolu_demo{}", Uuid::new_v4().simple()), name, input, output: String::new(), is_error: false }
}

/// What a hook wants the model to read.
fn context(reply: &Value) -> Option<String> {
    reply["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned)
}

/// The first line of a refusal, and what the check complained about.
fn gist(refusal: &str) -> String {
    let mut lines = refusal.lines();
    let first = lines.next().unwrap_or_default();
    let complaints = lines.filter(|line| line.starts_with("FAIL"));
    std::iter::once(first).chain(complaints).collect::<Vec<_>>().join("\n")
}

fn run_with_input(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() || !output.stderr.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
