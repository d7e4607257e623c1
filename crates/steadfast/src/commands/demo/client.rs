//! The scripted client: it plays the story as Claude Code would. It writes the session file, runs the model's tools, calls
//! `steadfast hook claude` at every event with the JSON of the real client, and obeys the replies.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use uuid::Uuid;

use super::promise::DemoFacts;
use super::stage::{DIM, GREEN, PLAIN, SESSION, Stage, YELLOW};
use crate::mcp::client::McpClient;

const OBJECTIVE: &str = "slugify.sh turns any title into a clean slug";
const FIRST: &str = include_str!("project/slugify-first.sh");
const ALMOST: &str = include_str!("project/slugify-almost.sh");
const RIGHT: &str = include_str!("project/slugify-right.sh");
/// A tool of the plugin, as Claude Code names it.
const UPDATE_GOAL: &str = "mcp__plugin_steadfast_steadfast__update_goal";
/// A model with a known price, so that the status shows a cost.
const MODEL: &str = "claude-opus-4-8";

/// Tokens of one answer: input, cache creation, cache read, output.
type Usage = [i64; 4];

enum Tool {
    Shell(&'static str),
    /// Writes `slugify.sh`.
    Write(&'static str),
    CompleteGoal,
}

use Tool::{CompleteGoal, Shell, Write};

pub(super) struct ScriptedClient<'a> {
    stage: &'a Stage,
    facts: DemoFacts,
    /// The session file, where Claude Code would write it.
    transcript: PathBuf,
    /// The prompt that started the current turn.
    prompt_id: String,
    /// A Stop hook started the current turn.
    is_continuation: bool,
}

/// Plays a new session until it is killed, or the rest of a killed one.
pub(super) fn play(stage: &Stage) -> anyhow::Result<()> {
    let directory = stage.project().to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let folder = stage.root.join("home/.claude/projects").join(directory);
    fs_err::create_dir_all(&folder)?;
    let facts = stage.facts()?;
    let is_resumed = facts.last_line.is_some();
    let transcript = folder.join(format!("{SESSION}.jsonl"));
    let prompt_id = Uuid::new_v4().to_string();
    let mut client = ScriptedClient { stage, facts, transcript, prompt_id, is_continuation: false };
    if is_resumed {
        client.play_resumed_session()?;
    } else {
        client.play_new_session()?;
    }
    client.hook("SessionEnd", json!({"reason": "prompt_input_exit"}))?;
    client.facts.session_ends += 1;
    stage.save_facts(&client.facts)
}

impl ScriptedClient<'_> {
    /// Ends early if Steadfast does not continue a turn.
    fn play_new_session(&mut self) -> anyhow::Result<()> {
        self.stage.heading("1. The user sets a goal");
        self.start_session("startup")?;
        self.prompt(&format!("/goal-start \"{OBJECTIVE}\" --budget 40k --verify \"sh check.sh\""))?;
        let tools = [Shell("ls"), Shell("head -2 check.sh")];
        self.answer("I look at the project first.", &tools, [1_850, 11_240, 0, 412])?;
        self.answer("I write a first slugify.sh.", &[Write(FIRST)], [12, 1_930, 13_090, 1_268])?;
        if !self.end_turn("slugify.sh is written.", [8, 1_402, 15_032, 233])? {
            return Ok(());
        }
        self.stage.heading("2. The budget runs low");
        self.answer("I run the check.", &[Shell("sh check.sh")], [2_105, 10_877, 16_442, 981])?;
        self.stage.heading("3. The conversation is compacted");
        self.compact("This session continues an earlier conversation. A first script exists; its check fails.")?;
        self.answer("I replace all other characters with dashes.", &[Write(ALMOST)], [640, 1_120, 9_800, 702])?;
        self.stage.heading("4. The agent says \"done\" too early");
        self.answer("That should be it: I mark the goal complete.", &[CompleteGoal], [6, 318, 11_560, 145])?;
        if !self.end_turn("One title still ends in a dash.", [5, 290, 11_884, 96])? {
            return Ok(());
        }
        self.stage.heading("5. kill -9 in the middle of a turn");
        self.write_answer("I remove the dashes at both ends ...", &[Write(RIGHT)], [9, 512, 12_180, 803])?;
        self.write_script(RIGHT.get(..RIGHT.len() / 2).unwrap_or_default())?;
        self.stage.save_facts(&self.facts)?;
        self.stage.pause(2);
        kill_process(getpid(), Signal::KILL)?;
        bail!("the client survived SIGKILL")
    }

    fn play_resumed_session(&mut self) -> anyhow::Result<()> {
        self.stage.heading("6. The session is resumed");
        self.start_session("resume")?;
        self.prompt("continue")?;
        let tools = [Write(RIGHT), Shell("sh check.sh")];
        self.answer("slugify.sh is only half written; I write it again.", &tools, [720, 410, 9_010, 388])?;
        self.answer("Now every title is right: I mark the goal complete.", &[CompleteGoal], [6, 120, 10_140, 140])?;
        self.end_turn("Done.", [5, 96, 10_266, 88])?;
        Ok(())
    }

    fn start_session(&mut self, source: &str) -> anyhow::Result<()> {
        let reply = self.hook("SessionStart", json!({"source": source}))?;
        if source != "startup" {
            let reminder = context(&reply).unwrap_or_default();
            let is_verbatim = reminder.lines().any(|line| line == OBJECTIVE);
            let objective = if is_verbatim { OBJECTIVE } else { "(missing)" };
            let first = reminder.lines().next().unwrap_or_default();
            self.stage.labelled("steadfast", GREEN, &format!("{first}\nObjective: {objective}"));
            self.facts.reminders.push(is_verbatim);
        }
        Ok(())
    }

    /// The user types a prompt or a slash command.
    fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        self.stage.labelled("user", YELLOW, text);
        self.prompt_id = Uuid::new_v4().to_string();
        self.is_continuation = false;
        let mut reply = Value::Null;
        if let Some((name, arguments)) = text.strip_prefix('/').and_then(|command| command.split_once(' ')) {
            let event = json!({
                "expansion_type": "slash_command", "command_name": name,
                "command_args": arguments, "prompt": text,
            });
            reply = self.hook("UserPromptExpansion", event)?;
            self.stage.labelled("steadfast", GREEN, reply["systemMessage"].as_str().unwrap_or_default());
        }
        self.hook("UserPromptSubmit", json!({"prompt": text}))?;
        self.write_user(&json!(text), json!({}))?;
        self.inject(context(&reply))?;
        self.stage.print_budget()
    }

    /// The model answers: write the answer, run its tools, call the hook.
    fn answer(&mut self, text: &str, tools: &[Tool], usage: Usage) -> anyhow::Result<()> {
        let mut calls = self.write_answer(text, tools, usage)?;
        for (call, tool) in calls.iter_mut().zip(tools) {
            let (output, is_error) = self.run_tool(call, tool)?;
            let id = &call["tool_use_id"];
            let result = json!([{"tool_use_id": id, "type": "tool_result", "content": output, "is_error": is_error}]);
            self.write_user(&result, json!({}))?;
            call["tool_response"] = json!(output);
        }
        let reply = self.hook("PostToolBatch", json!({"tool_calls": calls}))?;
        self.stage.print_budget()?;
        if let Some(warning) = context(&reply) {
            self.stage.labelled("steadfast", GREEN, warning.trim_start_matches("Steadfast: "));
            self.facts.warnings += 1;
        }
        self.inject(context(&reply))
    }

    /// Returns the output of a tool, and whether it is an error.
    fn run_tool(&mut self, call: &Value, tool: &Tool) -> anyhow::Result<(String, bool)> {
        match tool {
            Shell(script) => {
                let shell = self.stage.command("sh").args(["-c", script]).output()?;
                let output = String::from_utf8_lossy(&shell.stdout).into_owned();
                let last = output.trim_end().lines().next_back().unwrap_or_default();
                self.stage.labelled("client", DIM, &format!("$ {script} → {last}"));
                Ok((output, !shell.status.success()))
            }
            Write(content) => {
                self.write_script(content)?;
                Ok(("slugify.sh written".to_owned(), false))
            }
            CompleteGoal => self.complete_goal(call),
        }
    }

    fn complete_goal(&mut self, call: &Value) -> anyhow::Result<(String, bool)> {
        let reply = self.hook("PreToolUse", call.clone())?;
        if reply["hookSpecificOutput"]["permissionDecision"] != json!("allow") {
            bail!("Steadfast's own tool was not allowed to run: {reply}");
        }
        let (mut server, _) = McpClient::start(self.stage.command(&self.stage.program).arg("mcp"))?;
        let meta = json!({"claudecode/toolUseId": call["tool_use_id"]});
        let params = json!({"name": "update_goal", "arguments": call["tool_input"], "_meta": meta});
        let result = server.request("tools/call", &params)?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let is_error = result["isError"] == json!(true);
        if is_error {
            self.facts.refused += 1;
            let lines = text.lines().enumerate().filter(|(at, line)| *at == 0 || line.starts_with("FAIL"));
            self.stage.labelled("steadfast", GREEN, &lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n"));
        } else {
            self.facts.accepted += 1;
            let status = result["structuredContent"]["goal"]["status"].as_str().unwrap_or("unknown");
            self.stage.labelled("steadfast", GREEN, &format!("`sh check.sh` passed; the goal is {status}."));
        }
        Ok((text.to_owned(), is_error))
    }

    /// The client replaces the conversation by a summary.
    fn compact(&mut self, summary: &str) -> anyhow::Result<()> {
        self.stage.labelled("client", DIM, "context full: a summary without the goal replaces the conversation");
        self.hook("PreCompact", json!({"trigger": "auto", "custom_instructions": null}))?;
        self.start_session("compact")?;
        self.facts.compactions += 1;
        // The real client, too, writes the boundary after its hooks ran.
        let parent = self.facts.last_line.take();
        self.write(json!({
            "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
            "level": "info", "logicalParentUuid": parent,
            "compactMetadata": {"trigger": "auto", "preTokens": 29_400, "postTokens": 900, "durationMs": 377},
        }))?;
        self.write_user(&json!(summary), json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true}))
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
            self.stage.labelled("steadfast", GREEN, reason.lines().next().unwrap_or_default());
            self.facts.continuations += 1;
        }
        Ok(self.is_continuation)
    }

    /// Runs the hook as the client does, and returns its reply; an empty reply is null.
    fn hook(&self, event: &str, fields: Value) -> anyhow::Result<Value> {
        let input = json!({
            "session_id": SESSION, "transcript_path": self.transcript, "cwd": self.stage.project(),
            "hook_event_name": event, "permission_mode": "default", "prompt_id": self.prompt_id,
        });
        let reply = self.stage.run(&["hook", "claude"], &merged(input, fields).to_string())?;
        let reply = if reply.trim().is_empty() { "null" } else { &reply };
        serde_json::from_slice(reply.as_bytes()).with_context(|| format!("reply of hook {event}"))
    }

    fn write_script(&self, content: &str) -> std::io::Result<()> {
        fs_err::write(self.stage.project().join("slugify.sh"), content)
    }

    /// Writes an answer, each block on its own line with the message's id and usage. Returns its tool calls as hooks get
    /// them.
    fn write_answer(&mut self, text: &str, tools: &[Tool], usage: Usage) -> anyhow::Result<Vec<Value>> {
        self.stage.labelled("agent", PLAIN, text);
        let [input, cache_creation, cache_read, output] = usage;
        self.facts.tokens += input + cache_creation + output;
        let usage = json!({
            "input_tokens": input, "cache_creation_input_tokens": cache_creation,
            "cache_read_input_tokens": cache_read, "output_tokens": output,
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": cache_creation},
            "service_tier": "standard", "speed": "standard",
        });
        let calls: Vec<Value> = tools.iter().map(tool_call).collect();
        let mut blocks = vec![
            json!({"type": "thinking", "thinking": "What is the next step?", "signature": "c2NyaXB0ZWQ="}),
            json!({"type": "text", "text": text}),
        ];
        blocks.extend(calls.iter().map(|call| {
            json!({"type": "tool_use", "id": call["tool_use_id"], "name": call["tool_name"], "input": call["tool_input"]})
        }));
        let id = Uuid::new_v4().simple();
        let stop_reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
        for block in blocks {
            let message = json!({
                "id": format!("msg_demo{id}"), "type": "message", "role": "assistant", "model": MODEL,
                "content": [block], "stop_reason": stop_reason, "usage": usage,
            });
            self.write(json!({"message": message, "requestId": format!("req_demo{id}"), "type": "assistant"}))?;
        }
        Ok(calls)
    }

    /// Writes text from a hook for the model.
    fn inject(&mut self, text: Option<&str>) -> anyhow::Result<()> {
        text.map_or(Ok(()), |text| self.write_user(&json!(text), json!({"isMeta": true})))
    }

    /// Writes a message from the user, a hook or a tool.
    fn write_user(&mut self, content: &Value, extra: Value) -> anyhow::Result<()> {
        let line = json!({"promptId": self.prompt_id, "type": "user", "message": {"role": "user", "content": content}});
        self.write(merged(line, extra))
    }

    /// Writes a line of the session file as Claude Code 2.1 does: lines are linked by `parentUuid`.
    fn write(&mut self, line: Value) -> anyhow::Result<()> {
        let uuid = Uuid::new_v4().to_string();
        // With milliseconds: the goal may have started in the same second.
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let common = json!({
            "parentUuid": self.facts.last_line, "isSidechain": false, "uuid": uuid, "timestamp": now,
            "userType": "external", "entrypoint": "cli", "cwd": self.stage.project(), "sessionId": SESSION,
            "version": "2.1.197", "gitBranch": "HEAD",
        });
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(&self.transcript)?;
        file.write_all(format!("{}\n", merged(line, common)).as_bytes())?;
        self.facts.last_line = Some(uuid);
        Ok(())
    }
}

fn tool_call(tool: &Tool) -> Value {
    let (name, input) = match tool {
        Shell(script) => ("Bash", json!({"command": script})),
        Write(content) => ("Write", json!({"file_path": "slugify.sh", "content": content})),
        CompleteGoal => (UPDATE_GOAL, json!({"status": "complete", "completed_by": "self_update"})),
    };
    let id = format!("toolu_demo{}", Uuid::new_v4().simple());
    json!({"tool_name": name, "tool_input": input, "tool_use_id": id})
}

/// The text that a hook adds for the model.
fn context(reply: &Value) -> Option<&str> {
    reply["hookSpecificOutput"]["additionalContext"].as_str()
}

/// Adds the fields of one object to another.
fn merged(mut object: Value, extra: Value) -> Value {
    if let (Value::Object(object), Value::Object(extra)) = (&mut object, extra) {
        object.extend(extra);
    }
    object
}
