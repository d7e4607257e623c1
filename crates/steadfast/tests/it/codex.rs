//! `steadfast hook codex` with events captured from Codex.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::env::{Env, Output, finish};

const THREAD: &str = "01a1de4d-469f-7d62-b479-f9ee8e1e36ee";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Env {
    fn codex_prompt(&self, prompt: &str) -> Value {
        self.codex(THREAD, "UserPromptSubmit", &json!({"prompt": prompt}))
    }

    /// A prompt in a turn of this id.
    fn codex_prompt_in(&self, turn: &str, prompt: &str) -> Value {
        self.codex(THREAD, "UserPromptSubmit", &json!({"prompt": prompt, "turn_id": turn}))
    }

    fn codex_stop(&self, said: &str, after_block: bool) -> Value {
        let change = json!({"last_assistant_message": said, "stop_hook_active": after_block});
        self.codex(THREAD, "Stop.first", &change)
    }

    fn thread_goal(&self, arguments: &[&str]) -> Output {
        self.run(&[&["goal"], arguments, &["--session", THREAD]].concat())
    }

    fn thread_status(&self) -> Value {
        self.thread_goal(&["status", "--json"]).json()["goal"].clone()
    }

    /// A session of Codex that pursues a goal.
    fn pursuing() -> Self {
        let env = Self::new();
        env.codex(THREAD, "SessionStart.startup", &json!({}));
        env.codex_says(THREAD, "resp_0", "before the goal", 5_000);
        let reply = env.codex_prompt("goal: all tests pass");
        assert!(text(&reply["systemMessage"]).contains("Goal started"), "{reply}");
        env
    }
}

#[test]
fn a_marker_starts_a_goal_that_is_driven_and_counted() {
    let env = Env::pursuing();
    env.codex_says(THREAD, "resp_1", "one step", 300);
    let reply = env.codex_stop("one step", false);
    assert_eq!(reply["decision"], "block");
    let reason = text(&reply["reason"]);
    assert!(reason.contains("all tests pass") && reason.contains("mcp__steadfast__update_goal"), "{reason}");
    let goal = env.thread_status();
    assert_eq!(
        (&goal["host"], &goal["status"], &goal["total_tokens"]),
        (&json!("codex"), &json!("active"), &json!(300))
    );
    // No tool call in three continuations: our breaker stops a loop that Codex would not.
    for turn in 2..=3 {
        env.codex_says(THREAD, &format!("resp_{turn}"), &format!("step {turn}"), 100);
        assert_eq!(env.codex_stop(&format!("step {turn}"), true)["decision"], "block");
    }
    env.codex_says(THREAD, "resp_4", "step 4", 100);
    let reply = env.codex_stop("step 4", true);
    assert!(reply.get("decision").is_none() && text(&reply["systemMessage"]).contains("$goal-resume"), "{reply}");
    assert_eq!(env.thread_status()["paused_reason"], "no_progress");
}

#[test]
fn a_second_marker_does_not_replace_a_live_goal_and_says_how() {
    let env = Env::pursuing();
    let reply = env.codex_prompt("Objective： something else");
    assert_eq!(reply.as_object().unwrap().len(), 1, "the prompt goes through: {reply}");
    assert!(text(&reply["systemMessage"]).contains("$goal-edit"), "{reply}");
    assert_eq!(env.thread_status()["objective"], "all tests pass");
    let stated =
        env.sql("SELECT objective, status, goal_id = (SELECT goal_id FROM goals) FROM stated_goals ORDER BY id");
    assert_eq!(stated, [["all tests pass", "replaced", "1"], ["something else", "active", "1"]]);
    let reply = env.codex_prompt("/goal another one");
    assert!(text(&reply["systemMessage"]).contains("$goal-edit"), "{reply}");
    assert_eq!(env.codex_prompt("what is the goal: x?"), Value::Null);
}

#[test]
fn skills_are_answered_without_a_model_call() {
    let env = Env::new();
    let reply = env.codex_prompt("$goal-start \"Port the parser\" --budget 10k --verify true");
    assert!(text(&reply["hookSpecificOutput"]["additionalContext"]).contains("Port the parser"), "{reply}");
    assert_eq!(env.thread_status()["token_budget"], 10_000);
    let reply = env.codex(THREAD, "UserPromptSubmit.skill-mention", &json!({}));
    assert_eq!(reply["decision"], "block");
    assert!(text(&reply["reason"]).contains("Port the parser"), "{reply}");
    let reply = env.codex_prompt_in("t1", "$goal-pause");
    assert!(reply["decision"] == "block" && text(&reply["reason"]).contains("$goal-resume"), "{reply}");
    assert_eq!(env.thread_status()["paused_reason"], "user");
    assert_eq!(env.codex_stop("x", false), Value::Null, "a paused goal is not driven");
    let edited = env.codex_prompt_in("t2", "$goal-edit \"Port the whole parser\"");
    assert_eq!(edited["decision"], "block", "a paused goal needs no model for its new text: {edited}");
    let resumed = env.codex_prompt_in("t3", "$goal-resume");
    assert!(text(&resumed["hookSpecificOutput"]["additionalContext"]).contains("Port the whole parser"), "{resumed}");
    assert_eq!(resumed["systemMessage"], "goal resumed\nnext: continues now");
    assert_eq!(env.thread_status()["status"], "active");
    assert_eq!(env.codex_prompt_in("t4", "$goal-status now please")["decision"], "block");
    let again = env.codex_prompt_in("t5", "$goal-resume");
    assert!(again.get("decision").is_none(), "an active goal that no turn moves continues: {again}");
    assert_eq!(env.codex_prompt("$goal-planner make a plan"), Value::Null, "another program's skill");
}

#[test]
fn a_command_in_mid_turn_is_answered_once_and_ends_nothing() {
    let env = Env::new();
    env.codex_prompt_in("t1", "$goal-start \"Port the parser\" --max-turns 5");
    let context = |reply: &Value| text(&reply["hookSpecificOutput"]["additionalContext"]).to_owned();
    for command in ["$goal-status", "$goal-extend --add-turns 5", "$goal-extend --add-trns 5", "$goal-history"] {
        let reply = env.codex_prompt_in("t1", command);
        assert!(reply.get("decision").is_none() && context(&reply).contains("Do not answer it"), "{command}: {reply}");
        assert_eq!(env.codex_prompt_in("t1", command), reply, "a repeated call answers the same");
    }
    assert_eq!(env.thread_status()["continuations_remaining"], 10);
    // Esc sends what is pending as one prompt of a new turn.
    let reply = env.codex_prompt_in("t2", "$goal-extend --add-turns 5\n$goal-extend --add-turns 5\n$goal-status");
    assert_eq!(reply["decision"], "block", "{reply}");
    let shown = text(&reply["reason"]).to_owned();
    assert!(shown.contains("15 turns") && shown.contains("20 turns") && shown.contains("◎ Goal: Port"), "{shown}");
    let reply = env.codex_prompt_in("t3", "What is left?\n$goal-pause");
    assert!(reply.get("decision").is_none() && context(&reply).contains("rest of the message is for you"), "{reply}");
    assert_eq!(env.thread_status()["paused_reason"], "user");
    env.codex_prompt_in("t3", "$goal-resume");
    assert!(context(&env.codex_prompt_in("t3", "$goal-complete")).contains("End your turn now"));
}

#[test]
fn a_command_that_escape_cut_off_and_sent_again_is_applied_once() {
    let env = Env::new();
    env.codex_prompt_in("t1", "$goal-start \"Port the parser\" --max-turns 5");
    let remaining = || env.thread_status()["continuations_remaining"].clone();
    let cut_off_in = |turn: &str, state: &str| {
        env.codex_prompt_in(turn, "$goal-resume");
        env.codex_prompt_in(turn, "$goal-extend --add-turns 5");
        env.execute(&format!("UPDATE typed_commands SET {state} WHERE turn_id = '{turn}'"));
        env.codex(THREAD, "Interrupt", &json!({"turn_id": turn}));
    };
    // The client did not get the answer, or the hook ended right after the change.
    for (state, turn, next, turns) in
        [("reply = reply", "t1", "t2", 10), ("reply = NULL, replied_at_ms = NULL", "t3", "t4", 15)]
    {
        cut_off_in(turn, state);
        assert_eq!(remaining(), turns);
        let reply = env.codex_prompt_in(next, "$goal-status\n$goal-extend --add-turns 5");
        assert_eq!((reply["decision"].as_str(), remaining()), (Some("block"), json!(turns)), "{reply}");
    }
    // The hook ended before the change.
    cut_off_in("t5", "reply = NULL, replied_at_ms = NULL, created_at_ms = created_at_ms + 60000");
    env.codex_prompt_in("t6", "$goal-extend --add-turns 5");
    assert_eq!(remaining(), 25);
    env.codex_prompt_in("t7", "$goal-extend --add-turns 5");
    assert_eq!(remaining(), 30, "typed again");
}

#[test]
fn a_wake_up_from_outside_reaches_the_model_only_when_it_is_due() {
    let env = Env::pursuing();
    let wake = |turn: &str| env.codex_prompt_in(turn, "◎ goal continues");
    assert_eq!(wake("t1")["decision"], "block", "it moves by itself");
    env.codex(THREAD, "PostModelRequest.failed", &json!({}));
    assert_eq!(env.thread_status()["paused_reason"], "usage_limit");
    assert_eq!(wake("t2")["decision"], "block", "before the reset");
    env.sql("UPDATE goals SET wake_at_ms = 1, version = version + 1");
    let reply = wake("t3");
    assert!(text(&reply["hookSpecificOutput"]["additionalContext"]).contains("all tests pass"), "{reply}");
    assert_eq!(env.thread_status()["status"], "active");
    assert_eq!(wake("t4")["decision"], "block", "one wake-up, one turn");
    let failed = json!({"error": "stream disconnected before completion", "turn_id": "t3"});
    env.codex(THREAD, "PostModelRequest.failed", &failed);
    assert_ne!(env.sql("SELECT wake_at_ms FROM goals"), [[""]], "a failed turn is tried again");
    env.thread_goal(&["pause"]).succeeds();
    assert_eq!(wake("t5")["decision"], "block");
    let prompts = env.sql("SELECT count(*) FROM session_events WHERE text LIKE '%goal continues%'");
    assert_eq!(prompts, [["0"]], "it is no prompt of the user");
}

#[test]
fn a_budget_gives_one_turn_to_wind_down() {
    let env = Env::new();
    env.codex_prompt("$goal-start x --budget 1k");
    env.codex_says(THREAD, "resp_1", "much", 1_200);
    let reply = env.codex_stop("much", false);
    assert!(reply["decision"] == "block" && text(&reply["reason"]).contains("$goal-extend"), "{reply}");
    env.codex_says(THREAD, "resp_2", "summary", 50);
    let reply = env.codex_stop("summary", true);
    assert!(reply.get("decision").is_none(), "{reply}");
    let goal = env.thread_status();
    assert_eq!((&goal["status"], &goal["total_tokens"]), (&json!("budget_limited"), &json!(1_250)));
}

#[test]
fn tools_are_charged_as_they_run_and_subagents_with_them() {
    let env = Env::pursuing();
    env.codex_says(THREAD, "resp_1", "calling", 200);
    assert_eq!(env.codex(THREAD, "PostToolUse.Bash", &json!({})), Value::Null);
    assert_eq!(env.thread_status()["tokens_used"], 200);
    let child = "01a1de5a-7344-7911-a33c-85462129068d";
    let file = json!(env.rollout(child));
    env.codex_says(child, "child_1", "child works", 70);
    env.codex(THREAD, "SubagentStart", &json!({"transcript_path": file}));
    assert_eq!(env.codex(THREAD, "UserPromptSubmit.in-subagent", &json!({"transcript_path": file})), Value::Null);
    let reply = env.codex(THREAD, "SubagentStop.first", &json!({"agent_transcript_path": file}));
    assert_eq!(reply, Value::Null, "a subagent is never kept going");
    assert_eq!(env.thread_status()["subagent_tokens"], 70);
    // What a subagent writes after its last hook is read with the session.
    env.codex_says(child, "child_2", "tail", 30);
    env.codex_stop("calling", false);
    let goal = env.thread_status();
    assert_eq!((&goal["tokens_used"], &goal["subagent_tokens"]), (&json!(200), &json!(100)));
}

#[test]
fn an_interrupt_pauses_and_failures_are_reported_with_a_hint() {
    let env = Env::pursuing();
    let failed = json!({"error": "stream disconnected before completion", "turn_id": "t1"});
    for _ in 0..3 {
        assert_eq!(env.codex(THREAD, "PostModelRequest.failed", &failed), Value::Null);
    }
    let goal = env.thread_status();
    assert_eq!(
        (&goal["status"], &goal["last_failure"]["failures"]),
        (&json!("active"), &json!(1)),
        "one turn, one failure"
    );
    assert!(text(&goal["next"]).contains("type a prompt"), "{goal}");
    let shown = env.thread_goal(&["status"]).stdout;
    assert!(shown.contains("last failure: stream disconnected"), "{shown}");
    env.codex(THREAD, "PostModelRequest.completed", &json!({}));
    assert_eq!(env.thread_status()["last_failure"], Value::Null, "the client's own retry worked");

    env.codex(THREAD, "PostModelRequest.failed", &json!({}));
    let goal = env.thread_status();
    assert_eq!(goal["paused_reason"], "usage_limit");
    assert!(text(&goal["last_failure"]["message"]).contains("usage limit"), "{goal}");
    env.codex_prompt("$goal-resume");
    let reply = env.codex(THREAD, "Interrupt", &json!({}));
    assert!(text(&reply["systemMessage"]).contains("$goal-pause"), "{reply}");
    assert_eq!(reply.as_object().unwrap().len(), 1);
    assert_eq!(env.thread_status()["paused_reason"], "interrupted");
}

#[test]
fn a_double_start_injects_once_and_a_later_compaction_again() {
    let env = Env::pursuing();
    env.codex(THREAD, "SessionEnd", &json!({}));
    let goal = env.thread_status();
    let named = format!("resume --continue --session {THREAD}`");
    assert!(text(&goal["next"]).contains(&named), "{goal}");
    let adopt = format!("adopt {} takes it over", &text(&goal["goal_id"])[..8]);
    assert!(text(&goal["next"]).contains(&adopt), "{goal}");
    env.codex(THREAD, "PreCompact.auto", &json!({}));
    assert_eq!(env.codex(THREAD, "PostCompact.auto", &json!({})), Value::Null);
    let resumed = env.codex(THREAD, "SessionStart.resume", &json!({}));
    assert!(text(&resumed["hookSpecificOutput"]["additionalContext"]).contains("all tests pass"), "{resumed}");
    assert_eq!(env.codex(THREAD, "SessionStart.compact", &json!({})), Value::Null, "injected already");
    env.codex(THREAD, "PreCompact.auto", &json!({}));
    let compacted = env.codex(THREAD, "SessionStart.compact", &json!({}));
    assert!(text(&compacted["hookSpecificOutput"]["additionalContext"]).contains("all tests pass"), "{compacted}");
}

#[test]
fn a_native_goal_drives_alone_comes_back_after_compaction_and_can_be_adopted() {
    let env = Env::new();
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    env.codex(THREAD, "PostToolUse.create_goal", &json!({}));
    let none = env.thread_goal(&["status", "--json"]);
    assert_eq!((none.code, &none.json()["native_goal"]), (2, &json!("write three haikus")));
    crate::schemas::check("goal-status.schema.json", &none.json());
    let compacted = env.codex(THREAD, "SessionStart.compact", &json!({}));
    let context = text(&compacted["hookSpecificOutput"]["additionalContext"]).to_owned();
    assert!(context.contains("write three haikus"), "{context}");

    let adopted = env.thread_goal(&["adopt", "--native", "--json"]).succeeds().json();
    assert_eq!(adopted["goal"]["objective"], "write three haikus");
    assert_eq!(adopted["goal"]["native_goal"], "write three haikus");
    env.codex_says(THREAD, "resp_1", "x", 100);
    let reply = env.codex_stop("x", false);
    assert!(reply.get("decision").is_none(), "never driven twice: {reply}");
    assert_eq!(env.codex(THREAD, "Interrupt", &json!({})), Value::Null, "the end of `codex exec`, not the user's word");
    assert_eq!(env.thread_status()["status"], "active");
    env.codex(THREAD, "PostToolUse.update_goal", &json!({}));
    assert_eq!(env.thread_status()["native_goal"], Value::Null);
    assert_eq!(env.codex_stop("y", false)["decision"], "block");

    // Codex's own database takes precedence over observed events.
    let codex_home = env.path("user/.codex");
    let db = rusqlite::Connection::open(codex_home.join("goals_1.sqlite")).unwrap();
    db.execute_batch("CREATE TABLE thread_goals (thread_id TEXT PRIMARY KEY, objective TEXT, status TEXT)").unwrap();
    db.execute("INSERT INTO thread_goals VALUES (?1, 'from the database', 'active')", [THREAD]).unwrap();
    assert_eq!(env.thread_status()["native_goal"], "from the database");
    assert!(env.codex_stop("z", false).get("decision").is_none());
    db.execute("UPDATE thread_goals SET status = 'paused'", []).unwrap();
    assert_eq!(env.codex_stop("z2", false)["decision"], "block");
    env.thread_goal(&["abandon"]).succeeds();
    env.thread_goal(&["adopt", "--native"]).fails_with(2, "own goal feature");
}

#[test]
fn a_goal_moves_to_codex_and_back_with_its_budget_and_history() {
    let env = Env::new();
    let started = env.start(&["one goal, two hosts", "--budget", "10k"]);
    env.says("s1", "m1", "from claude", 400);
    env.stop("s1", "from claude", false);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    let id = text(&started["goal_id"]).to_owned();

    env.codex(THREAD, "SessionStart.startup", &json!({}));
    env.codex_says(THREAD, "resp_0", "not the goal's", 9_000);
    let reply = env.codex_prompt(&format!("$goal-adopt {}", &id[..8]));
    assert!(text(&reply["hookSpecificOutput"]["additionalContext"]).contains("one goal, two hosts"), "{reply}");
    env.codex_says(THREAD, "resp_1", "from codex", 250);
    assert_eq!(env.codex_stop("from codex", false)["decision"], "block");
    let goal = env.thread_status();
    assert_eq!(
        (
            &goal["goal_id"],
            &goal["host"],
            &goal["total_tokens"],
            &goal["remaining_tokens"],
            &goal["continuations_used"]
        ),
        (&json!(id), &json!("codex"), &json!(650), &json!(9_350), &json!(2))
    );
    env.codex(THREAD, "SessionEnd", &json!({}));

    env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.run(&["goal", "adopt", &id, "--session", "s2"]).succeeds();
    env.says("s2", "m2", "claude again", 50);
    env.hook("s2", &json!({"hook_event_name": "Stop", "last_assistant_message": "claude again"}));
    let goal = env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"].clone();
    assert_eq!((&goal["goal_id"], &goal["host"], &goal["total_tokens"]), (&json!(id), &json!("claude"), &json!(700)));
    let kinds = env.event_kinds();
    assert_eq!(kinds.iter().filter(|kind| *kind == "goal_adopted").count(), 2, "{kinds:?}");
}

#[test]
fn resume_continue_works_only_for_a_closed_codex_session() {
    let env = Env::pursuing();
    let bin = env.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", env.path("argv").display());
    std::fs::write(bin.join("codex"), script).unwrap();
    std::fs::set_permissions(bin.join("codex"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let resume_continue = |path: &str| {
        let mut command = env.command(&["goal", "resume", "--continue", "--session", THREAD]);
        finish(command.env("PATH", path), b"")
    };
    let with_codex = format!("{}:/usr/bin:/bin", bin.display());
    resume_continue(&with_codex).fails_with(3, "open in Codex");
    env.thread_goal(&["pause"]).succeeds();
    env.codex(THREAD, "SessionEnd", &json!({}));
    resume_continue("/nowhere").fails_with(4, "`codex` is not on PATH");
    assert_eq!(env.thread_status()["status"], "paused", "nothing is changed before it can go on");
    resume_continue(&with_codex).succeeds();
    let argv = std::fs::read_to_string(env.path("argv")).unwrap();
    // None of our hooks is trusted here, so the run passes its own.
    assert!(argv.starts_with("exec\n--skip-git-repo-check\n-c\nhooks.SessionStart="), "{argv}");
    assert!(argv.contains(&format!("\nresume\n{THREAD}\nThe goal of this session")), "{argv}");
    assert_eq!(env.thread_status()["status"], "active");

    env.start(&["in claude"]);
    let refused = env.goal(&["resume", "--continue"]);
    assert!(
        refused.fails_with(3, "cannot be continued from a terminal").stderr.contains("claude --resume s1"),
        "{refused:?}"
    );
}

#[test]
fn a_goal_can_be_adopted_after_clear_and_a_fork_is_offered_its_parents() {
    let env = Env::pursuing();
    let id = text(&env.thread_status()["goal_id"])[..8].to_owned();
    let cleared = env.codex("cleared", "SessionStart.clear", &json!({}));
    assert!(text(&cleared["systemMessage"]).contains(&format!("$goal-adopt {id}")), "{cleared}");
    let reply = env.codex("cleared", "UserPromptSubmit", &json!({"prompt": format!("$goal-adopt {id}")}));
    assert!(text(&reply["systemMessage"]).contains("goal adopted"), "{reply}");

    let fork = env.rollout("forked");
    std::fs::create_dir_all(fork.parent().unwrap()).unwrap();
    env.append(
        &fork,
        &json!({"timestamp": "2026-11-15T08:00:00Z", "type": "session_meta",
                              "payload": {"id": "forked", "forked_from_id": "cleared"}}),
    );
    let forked = env.codex("forked", "SessionStart.fork", &json!({}));
    assert!(text(&forked["systemMessage"]).contains(&format!("$goal-adopt {id}")), "{forked}");
    assert_eq!(
        env.sql(
            "SELECT session_id, parent_session_id, parent_link FROM sessions WHERE parent_link IS NOT NULL ORDER BY 1"
        ),
        [["cleared", THREAD, "clear"], ["forked", "cleared", "fork"]]
    );
}

#[test]
fn the_tool_server_takes_the_session_from_codexs_call() {
    let env = Env::new();
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    let meta = json!({"threadId": "child", "sessionId": THREAD, "callId": "call_1"});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
               "capabilities": {}, "clientInfo": {"name": "codex-mcp-client", "version": "0.166.0"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"_meta": meta, "name": "create_goal", "arguments": {"objective": "by tool"}}}),
    ];
    let stdin = lines.map(|line| line.to_string()).join("\n") + "\n";
    let mut command = env.command(&["mcp"]);
    let output = finish(command.env("CLAUDE_CODE_SESSION_ID", "stale"), stdin.as_bytes());
    assert!(output.stdout.contains("by tool"), "{output:?}");
    let goal = env.thread_status();
    assert_eq!((&goal["objective"], &goal["host"]), (&json!("by tool"), &json!("codex")));
}

#[test]
fn codexs_agent_sees_its_own_goal_and_cannot_change_its_limits() {
    let env = Env::pursuing();
    let inside = |arguments: &[&str]| {
        let mut command = env.command(&[&["goal"], arguments].concat());
        finish(command.env("CODEX_THREAD_ID", "a-subagent").env("CODEX_SESSION_ID", THREAD), b"")
    };
    assert_eq!(inside(&["status", "--json"]).succeeds().json()["goal"]["session_id"], THREAD);
    inside(&["extend", "--add-tokens", "1M"]).fails_with(3, "extend");
    inside(&["resume", "--continue"]).fails_with(3, "resume");
    inside(&["pause", "--session", "s1"]).fails_with(3, "another session");
}
