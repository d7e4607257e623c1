//! `steadfast hook claude` as the client calls it: the effect of each event, and that no failure breaks a turn.

use serde_json::{Value, json};

use crate::client;
use crate::env::{Env, assistant, finish};

#[test]
fn invalid_input_is_ignored_and_logged() {
    let env = Env::new();
    let huge = vec![b'x'; 16 * 1024 * 1024 + 1];
    for stdin in [b"".as_slice(), b"  \n", b"not json", b"[1, 2]", b"\xff\xfe", &huge] {
        let output = finish(&mut env.command(&["hook", "claude"]), stdin);
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    }
    let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap();
    assert_eq!(log.lines().count(), 6, "{log}");
    assert!(!env.store().exists());
    for event in [
        json!({"hook_event_name": "SomethingNew", "surprise": [1, 2]}),
        json!({"hook_event_name": "Stop", "session_id": ""}),
        json!({"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": ""}),
        json!({"hook_event_name": 5}),
        json!({}),
    ] {
        assert_eq!(env.hook("s1", &event), Value::Null, "{event}");
    }
}

#[test]
fn without_goal_and_memory_hooks_print_and_create_nothing() {
    let env = Env::new();
    assert_eq!(env.stop("s1", "hi", false), Value::Null);
    assert!(!env.store().exists());
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[memory]\nenabled = false\n").unwrap();
    for event in [
        json!({"hook_event_name": "SessionStart", "source": "startup"}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"}),
        json!({"hook_event_name": "PostToolBatch", "tool_calls": []}),
        json!({"hook_event_name": "PreCompact", "trigger": "auto"}),
        json!({"hook_event_name": "SessionStart", "source": "compact"}),
        json!({"hook_event_name": "StopFailure", "error": "server_error"}),
        json!({"hook_event_name": "SessionEnd", "reason": "other"}),
    ] {
        assert_eq!(env.hook("s1", &event), Value::Null, "{event}");
    }
    assert_eq!(env.sql("SELECT session_id, ended_at_ms IS NOT NULL FROM sessions"), [["s1", "1"]]);
}

#[test]
fn hooks_do_nothing_in_the_agent_of_a_run() {
    let env = Env::new();
    for (host, prompt) in [("claude", "/goal-start x"), ("codex", "goal: x"), ("codex", "$goal-start x")] {
        for event in [
            json!({"hook_event_name": "SessionStart", "session_id": "s1", "source": "startup", "cwd": env.project()}),
            json!({"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": prompt, "cwd": env.project()}),
        ] {
            let mut command = env.command(&["hook", host]);
            command = client::below_supervisor(&command);
            let output = client::finish(&command, event.to_string().as_bytes());
            assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{event}");
        }
    }
    assert!(!env.home().exists(), "nothing was noted anywhere");
    // A repository's settings can set the variable, but not start a supervisor.
    let start =
        json!({"hook_event_name": "SessionStart", "session_id": "s1", "source": "startup", "cwd": env.project()});
    finish(env.command(&["hook", "claude"]).env("STEADFAST_ATTEMPT", "x"), start.to_string().as_bytes()).succeeds();
    assert_eq!(env.sql("SELECT session_id FROM sessions"), [["s1"]]);
}

#[test]
fn a_turn_that_ends_early_is_continued_with_the_objective_as_data() {
    let env = Env::new();
    env.start(&["Fix </objective> & more", "--budget", "1M"]);
    env.says("s1", "m1", "I stop here.", 100);
    let reply = env.stop("s1", "I stop here.", false);
    assert_eq!(reply["decision"], "block");
    let reason = reply["reason"].as_str().unwrap();
    assert!(reason.contains("Fix &lt;/objective&gt; &amp; more") && reason.contains("100 of 1,000,000"), "{reason}");
    assert!(reason.chars().count() <= 2_500);
    let goal = env.status();
    assert_eq!((&goal["continuations_used"], &goal["total_tokens"]), (&json!(1), &json!(100)));
}

#[test]
fn tokens_count_once_however_many_lines_repeat_them() {
    let env = Env::new();
    env.says("s1", "before", "history", 1_000_000);
    env.start(&["x"]);
    for _ in 0..3 {
        env.says("s1", "m1", "part", 100);
    }
    env.stop("s1", "part", false);
    env.stop("s1", "part", true);
    assert_eq!(env.status()["tokens_used"], 100);
    let subagents = env.path("s1/subagents");
    std::fs::create_dir_all(&subagents).unwrap();
    let file = subagents.join("agent-a\"1'.jsonl");
    env.append(&file, &assistant("sub1", "tail", 40));
    env.hook("s1", &json!({"hook_event_name": "SubagentStop", "agent_id": "a\"1'", "agent_type": "x", "agent_transcript_path": file}));
    env.append(&file, &assistant("sub2", "later", 5));
    env.stop("s1", "part", true);
    let goal = env.status();
    assert_eq!(
        (&goal["tokens_used"], &goal["subagent_tokens"], &goal["cache_read_tokens"]),
        (&json!(100), &json!(45), &json!(27))
    );
    assert_eq!(env.sql("SELECT agent_id, tokens_used FROM subagent_token_cursors"), [["a\"1'", "45"]]);
    for row in env.sql("SELECT payload FROM goal_events") {
        serde_json::from_str::<Value>(&row[0]).unwrap();
    }
}

#[test]
fn what_happens_while_paused_or_after_the_end_is_not_charged() {
    let env = Env::new();
    env.start(&["x"]);
    env.says("s1", "m1", "one", 100);
    env.stop("s1", "one", false);
    env.goal(&["pause"]).succeeds();
    assert_eq!(env.stop("s1", "one", true), Value::Null);
    std::thread::sleep(std::time::Duration::from_millis(5));
    env.says("s1", "m2", "two", 1_000);
    assert_eq!(env.stop("s1", "two", false), Value::Null);
    std::thread::sleep(std::time::Duration::from_millis(5));
    env.goal(&["resume"]).succeeds();
    env.says("s1", "m3", "three", 10);
    env.stop("s1", "three", false);
    assert_eq!(env.status()["tokens_used"], 110);
    env.goal(&["complete"]).succeeds();
    std::thread::sleep(std::time::Duration::from_millis(5));
    env.says("s1", "m4", "four", 5_000);
    env.stop("s1", "four", false);
    assert_eq!(env.status()["tokens_used"], 110);
}

#[test]
fn a_budget_gives_one_warning_one_wind_down_and_then_stops() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    env.says("s1", "m1", "one", 850);
    let warned = env.stop("s1", "one", false);
    assert_eq!(warned["decision"], "block");
    assert!(
        warned["reason"].as_str().unwrap().contains("85 %")
            && warned["systemMessage"].as_str().unwrap().contains("85 %")
    );
    env.says("s1", "m2", "two", 50);
    let quiet = env.stop("s1", "two", true);
    assert!(!quiet["reason"].as_str().unwrap().contains('%') && quiet.get("systemMessage").is_none(), "{quiet}");
    env.says("s1", "m3", "three", 200);
    let wind_down = env.stop("s1", "three", true);
    assert!(wind_down["reason"].as_str().unwrap().contains("last turn"), "{wind_down}");
    assert_eq!(env.status()["status"], "budget_limited");
    env.says("s1", "m4", "four", 30);
    let end = env.stop("s1", "four", true);
    assert!(end.get("decision").is_none() && end["systemMessage"].as_str().unwrap().contains("/goal-extend"), "{end}");
    assert_eq!(env.stop("s1", "four", false), Value::Null);
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["total_tokens"]), (&json!("budget_limited"), &json!(1130)));
    env.goal(&["resume"]).fails_with(3, "budget_limited");
    env.goal(&["extend", "--add-tokens", "100"]).fails_with(1, "not enough");
    env.goal(&["extend", "--add-tokens", "1000"]).succeeds();
    assert_eq!(env.stop("s1", "", false)["decision"], "block");
}

#[test]
fn caps_wind_down_and_pause_with_their_own_reason() {
    for (flag, value, reason, extend) in [
        ("--max-turns", "1", "continuation_cap", ["--add-turns", "5"]),
        ("--max-hours", "1", "wall_clock_cap", ["--add-hours", "5"]),
        ("--deadline", "1h", "deadline", ["--add-hours", "5"]),
    ] {
        let env = Env::new();
        env.start(&["x", flag, value]);
        if flag == "--max-turns" {
            assert_eq!(env.stop("s1", "", false)["decision"], "block");
        } else {
            env.execute("UPDATE goals SET resume_at_ms = resume_at_ms - 7200000, created_at_ms = created_at_ms - 7200000, deadline_ms = deadline_ms - 7200000");
        }
        let wind_down = env.stop("s1", "", true);
        assert!(wind_down["reason"].as_str().unwrap().contains("last turn"), "{flag}: {wind_down}");
        let end = env.stop("s1", "", true);
        assert!(
            end.get("decision").is_none() && end["systemMessage"].as_str().unwrap().contains(reason),
            "{flag}: {end}"
        );
        assert_eq!(env.status()["paused_reason"], reason, "{flag}");
        env.goal(&["resume"]).fails_with(3, "paused");
        env.goal(&[&["extend"], extend.as_slice()].concat()).succeeds();
        assert_eq!(env.status()["status"], "active", "{flag}");
        assert_eq!(env.stop("s1", "", false)["decision"], "block", "{flag}");
    }
}

#[test]
fn one_long_turn_is_warned_and_then_ended() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    let batch = || env.hook("s1", &json!({"hook_event_name": "PostToolBatch", "tool_calls": []}));
    assert_eq!(batch(), Value::Null);
    env.says("s1", "m1", "one", 1500);
    let told = batch();
    assert!(told["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("last turn"), "{told}");
    let mut batches = 0;
    let ended = loop {
        batches += 1;
        let reply = batch();
        if reply != Value::Null {
            break reply;
        }
        assert!(batches < 10);
    };
    assert_eq!((ended["decision"].as_str(), batches), (Some("block"), 4));
    assert_eq!(env.stop("s1", "one", true), Value::Null);
    assert_eq!(env.status()["status"], "budget_limited");
}

#[test]
fn three_continuations_without_progress_pause_the_goal() {
    let env = Env::new();
    env.start(&["x"]);
    for turn in 0..3 {
        assert_eq!(env.stop("s1", &format!("talk {turn}"), turn > 0)["decision"], "block");
    }
    let breaker = env.stop("s1", "talk 3", true);
    assert!(breaker["systemMessage"].as_str().unwrap().contains("no_progress"), "{breaker}");
    assert_eq!(env.status()["paused_reason"], "no_progress");
    env.goal(&["resume"]).succeeds();
    // Work in between resets the count; the breaker can be disabled.
    std::fs::write(env.home().join("config.toml"), "[goal]\nno_progress_limit = 0\n").unwrap();
    for turn in 0..8 {
        assert_eq!(env.stop("s1", "same", turn > 0)["decision"], "block", "{turn}");
    }
    let cap = env.stop("s1", "same", true);
    assert!(
        cap.get("decision").is_none()
            && cap["systemMessage"].as_str().unwrap().contains("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
        "{cap}"
    );
    assert_eq!(env.status()["status"], "active");
}

#[test]
fn the_user_background_work_and_a_native_goal_come_first() {
    let env = Env::new();
    env.start(&["x"]);
    let transcript = env.transcript("s1");
    env.append(&transcript, &json!({"type": "queue-operation", "operation": "enqueue", "content": "wait!"}));
    assert_eq!(env.stop("s1", "", false), Value::Null);
    env.append(&transcript, &json!({"type": "queue-operation", "operation": "dequeue"}));
    assert_eq!(env.stop("s1", "", false)["decision"], "block");
    let running =
        json!({"hook_event_name": "Stop", "background_tasks": [{"id": "b", "type": "shell", "status": "running"}]});
    let waits = env.hook("s1", &running);
    assert!(
        waits.get("decision").is_none() && waits["systemMessage"].as_str().unwrap().contains("background"),
        "{waits}"
    );
    env.begin_turn();
    env.append(
        &transcript,
        &json!({"type": "attachment", "attachment": {"type": "goal_status", "met": false, "condition": "c"}}),
    );
    let native = env.stop("s1", "", false);
    assert!(
        native.get("decision").is_none() && native["systemMessage"].as_str().unwrap().contains("/goal"),
        "{native}"
    );
    env.append(
        &transcript,
        &json!({"type": "attachment", "attachment": {"type": "goal_status", "met": true, "condition": "c"}}),
    );
    assert_eq!(env.stop("s1", "", false)["decision"], "block");
}

#[test]
fn an_interrupt_is_shown_at_once_and_the_next_prompt_continues_the_goal() {
    let env = Env::new();
    env.start(&["x"]);
    env.stop("s1", "", false);
    let line = json!({"type": "user", "timestamp": crate::env::now(), "message": {"role": "user",
        "content": [{"type": "text", "text": "[Request interrupted by user]"}]}});
    env.append(&env.transcript("s1"), &line);
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["paused_reason"]), (&json!("paused"), &json!("interrupted")), "{goal}");
    assert!(goal["next"].as_str().unwrap().contains("your next prompt"), "{goal}");
    let line = finish(&mut env.command(&["statusline"]), br#"{"session_id": "s1"}"#).stdout;
    assert!(line.starts_with("◎ goal interrupted"), "{line}");
    let reply = env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": "what is this?"}));
    assert_eq!(reply, Value::Null, "the prompt is obeyed, not refused");
    assert_eq!(env.status()["status"], "active");
    assert_eq!(env.stop("s1", "", false)["decision"], "block");
}

/// One tool call a turn, always the same with the same result, and a text that differs by a number.
#[test]
fn the_same_tool_call_again_and_again_is_nudged_and_then_stopped() {
    let env = Env::new();
    env.start(&["x"]);
    let transcript = env.transcript("s1");
    let mut nudges = 0;
    for turn in 1..=12 {
        let id = format!("toolu_{turn}");
        let mut line = assistant(&format!("m{turn}"), "", 100);
        line["message"]["content"] =
            json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "git status"}}]);
        env.append(&transcript, &line);
        env.append(
            &transcript,
            &json!({"type": "user", "timestamp": crate::env::now(), "message": {"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id, "content": "nothing to commit"}]}}),
        );
        let reply = env.hook("s1", &json!({"hook_event_name": "PostToolBatch", "tool_calls": []}));
        if reply["decision"] == "block" {
            assert!(reply["reason"].as_str().unwrap().contains("same results 10 times"), "{reply}");
            break;
        }
        nudges += usize::from(reply.to_string().contains("additionalContext"));
        env.says("s1", &format!("t{turn}"), &format!("Step {turn}."), 10);
        assert_eq!(env.stop("s1", &format!("Step {turn}."), true)["decision"], "block", "{turn}");
    }
    assert_eq!((nudges, env.status()["paused_reason"].clone()), (2, json!("no_progress")));
}

#[test]
fn usage_limits_pause_until_their_reset_and_other_errors_are_retried() {
    let env = Env::new();
    env.start(&["x"]);
    let failure = |error: &str, message: &str| {
        env.hook("s1", &json!({"hook_event_name": "StopFailure", "error": error, "last_assistant_message": message}))
    };
    assert_eq!(failure("server_error", "529"), Value::Null);
    let goal = env.status();
    assert!(goal["status"] == "active" && goal["next"].as_str().unwrap().starts_with("waits until"), "{goal}");
    env.begin_turn();
    failure("rate_limit", "5-hour limit reached ∙ resets 3pm");
    let goal = env.status();
    assert!(
        goal["paused_reason"] == "usage_limit" && goal["next"].as_str().unwrap().starts_with("waits until"),
        "{goal}"
    );
    env.goal(&["resume"]).succeeds();
    failure("authentication_failed", "401");
    assert_eq!(env.status()["paused_reason"], "degraded");
}

#[test]
fn slash_commands_do_what_the_command_line_does_without_a_model() {
    let env = Env::new();
    let slash = |name: &str, arguments: &str| {
        let event = json!({"hook_event_name": "UserPromptExpansion", "command_name": name, "command_args": arguments});
        env.hook_in_terminal("s1", &event)
    };
    let started = slash("steadfast:goal-start", "\"Reach $HOME and $(id)\" --budget 10M --verify 'test -f done'");
    let context = started["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(started.get("decision").is_none() && context.contains("Reach $HOME and $(id)"), "{started}");
    let status = slash("goal-status", "");
    assert_eq!(status["decision"], "block");
    assert!(
        status["reason"].as_str().unwrap().starts_with("◎ Goal: Reach $HOME and $(id)\nstatus: active"),
        "{status}"
    );
    for (command, arguments, said) in [
        ("goal-start", "another", "a goal already exists"),
        ("goal-pause", "", "goal paused"),
        ("goal-edit", "\"Reach it\"", "objective changed"),
        ("goal-resume", "", "goal resumed"),
        ("goal-extend", "--add-tokens 1M", "goal extended"),
        ("goal-extend", "--add-tokns 1M", "unknown flag"),
        ("goal-reconcile", "", "requires --accept-reset"),
        ("goal-verify", "", "verification failed"),
        ("goal-history", "", "active"),
        ("goal-cleanup", "--list", "no orphaned goals"),
        ("goal-doctor", "", "store"),
        ("goal-abandon", "", "goal abandoned"),
    ] {
        let reply = slash(command, arguments);
        assert!(reply["decision"] == "block" && reply["reason"].as_str().unwrap().contains(said), "{command}: {reply}");
    }
    for foreign in ["goal", "other:goal-start", "goalkeeper", "steadfast:other"] {
        assert_eq!(slash(foreign, "x"), Value::Null, "{foreign}");
    }
    assert_eq!(slash("goal-frobnicate", "")["decision"], "block");
}

#[test]
fn own_tools_are_announced_and_approved_and_others_left_alone() {
    let env = Env::new();
    env.start(&["x"]);
    let call =
        |tool: &str| env.hook("s1", &json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": "t1"}));
    let reply = call("mcp__plugin_steadfast_steadfast__get_goal");
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "allow");
    assert_eq!(call("Bash"), Value::Null);
    assert_eq!(call("mcp__other__update_goal"), Value::Null);
    assert_eq!(env.sql("SELECT session_id, tool_name FROM tool_calls"), [["s1", "get_goal"]]);
}

/// A transcript with old timestamps, as in a replay, is charged by the position of its lines.
#[test]
fn lines_with_old_timestamps_count_where_they_were_appended() {
    let env = Env::new();
    let old = |id: &str, tokens: i64| {
        let mut line = assistant(id, id, tokens);
        line["timestamp"] = json!("2025-01-01T00:00:00.000Z");
        line
    };
    let transcript = env.transcript("s1");
    env.append(&transcript, &old("before", 1_000_000));
    env.start(&["x"]);
    env.append(&transcript, &old("m1", 100));
    env.stop("s1", "m1", false);
    env.goal(&["pause"]).succeeds();
    env.append(&transcript, &old("m2", 1_000));
    env.goal(&["resume"]).succeeds();
    env.append(&transcript, &old("m3", 10));
    env.stop("s1", "m3", false);
    assert_eq!(env.status()["tokens_used"], 110);
    // A goal without a known transcript counts a file that began after it, not an older one.
    for (session, tokens) in [("young", 7), ("elder", 0)] {
        if session == "elder" {
            env.append(&env.transcript(session), &old("elder", 7));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        env.run(&["goal", "start", "y", "--session", session]).succeeds();
        std::thread::sleep(std::time::Duration::from_millis(20));
        if session == "young" {
            env.append(&env.transcript(session), &old("young", 7));
        }
        env.stop(session, session, false);
        let goal = env.run(&["goal", "status", "--json", "--session", session]).json();
        assert_eq!(goal["goal"]["tokens_used"], tokens, "{session}");
    }
}

#[test]
fn a_daily_cap_winds_down_and_pauses_every_goal() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[limits]\ndaily_tokens = 1000\n").unwrap();
    env.start(&["x"]);
    env.run(&["goal", "start", "y", "--session", "s2"]).succeeds();
    env.says("s1", "m1", "one", 850);
    let warned = env.stop("s1", "one", false);
    assert!(warned["systemMessage"].as_str().unwrap().contains("daily_tokens: 850 of 1,000 tokens"), "{warned}");
    env.says("s2", "m2", "two", 200);
    let wind_down = env.stop("s2", "two", false);
    assert!(wind_down["reason"].as_str().unwrap().contains("last turn"), "{wind_down}");
    assert!(env.stop("s1", "one", true)["reason"].as_str().unwrap().contains("last turn"));
    env.stop("s1", "one", true);
    let goal = env.status();
    assert_eq!((&goal["paused_reason"], &goal["today"]["tokens"]), (&json!("cost_cap"), &json!(1050)));
    assert!(env.goal(&["status"]).stdout.contains("today: 1,050 tokens"));
    env.goal(&["resume"]).fails_with(5, "daily_tokens: 1,050 of 1,000 tokens");
    std::fs::write(env.home().join("config.toml"), "[limits]\ndaily_tokens = 1000000\ndaily_usd = 100\n").unwrap();
    env.goal(&["resume"]).succeeds();
    assert_eq!(env.stop("s1", "one", false)["decision"], "block");
}
