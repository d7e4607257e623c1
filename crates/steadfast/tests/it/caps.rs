//! Caps of `[limits]` over everything on the machine, over one session and over one model, and the quota of the plan.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::{Env, assistant, finish, now};
use crate::runs::World;

const THREAD: &str = "01a1de4d-469f-7d62-b479-f9ee8e1e36ee";

impl Env {
    fn with_limits(limits: &str) -> Self {
        let env = Self::new();
        env.set_limits(limits);
        env
    }

    fn set_limits(&self, limits: &str) {
        std::fs::create_dir_all(self.home()).unwrap();
        std::fs::write(self.home().join("config.toml"), format!("[limits]\n{limits}\n")).unwrap();
    }

    fn begin_session(&self, session: &str) {
        self.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    }

    fn tool(&self, session: &str) -> Value {
        let tool = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1",
            "tool_input": {"command": "ls"}});
        self.hook(session, &tool)
    }

    fn batch(&self, session: &str) -> Value {
        self.hook(session, &json!({"hook_event_name": "PostToolBatch", "tool_calls": []}))
    }

    fn counted(&self) -> Vec<Vec<String>> {
        self.sql(
            "SELECT session_id, goal_id IS NULL, input_tokens + output_tokens + cache_creation_tokens FROM responses
                  ORDER BY at_ms, response_id",
        )
    }

    /// Calls the status line as the client does.
    fn statusline(&self, session: &str, rate_limits: &Value) -> String {
        let input = json!({"session_id": session, "rate_limits": rate_limits}).to_string();
        let output = finish(&mut self.command(&["statusline"]), input.as_bytes());
        assert_eq!(output.code, 0);
        output.stdout.trim_end().to_owned()
    }
}

fn message(reply: &Value) -> &str {
    reply["systemMessage"].as_str().unwrap_or_default()
}

fn refusal(reply: &Value) -> &str {
    let output = &reply["hookSpecificOutput"];
    if output["permissionDecision"] == "deny" { output["permissionDecisionReason"].as_str().unwrap() } else { "" }
}

fn in_seconds(hours: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap() + hours * 3_600
}

/// It is entered in several transactions.
#[test]
fn a_long_session_that_was_never_read_counts_once() {
    let env = Env::with_limits("daily_tokens = 20000");
    env.begin_session("s1");
    let many = 2_345;
    let mut lines = String::new();
    for number in 0..many {
        lines.push_str(&assistant(&format!("m{number}"), "x", 10).to_string());
        lines.push('\n');
    }
    std::fs::write(env.transcript("s1"), lines).unwrap();
    assert!(message(&env.stop("s1", "x", false)).contains("daily_tokens"), "the cap is reached");
    env.says("s1", "last", "y", 7);
    env.stop("s1", "y", false);
    let sums = "SELECT count(*), sum(input_tokens + output_tokens + cache_creation_tokens) FROM responses";
    assert_eq!(env.sql(sums), [[(many + 1).to_string(), (many * 10 + 7).to_string()]]);
}

#[test]
fn a_cap_that_cannot_be_read_starts_nothing_and_pauses_what_runs() {
    let env = Env::with_limits("daily_tokens = 1000");
    env.start(&["x"]);
    for (limits, about) in [
        (
            "dayly_tokens = 1",
            "config.toml is not a valid configuration: line 2: unknown key `dayly_tokens`; did you mean `daily_tokens`?",
        ),
        ("daily_usd = 0", "line 2: `daily_usd` needs a number above 0"),
        ("[limits.models.opus]\nhourly_usd = 1", "line 3: unknown key `hourly_usd`"),
    ] {
        env.set_limits(limits);
        env.run(&["goal", "start", "y", "--session", "s2"]).fails_with(4, about);
        env.run(&["run", "y"]).fails_with(4, about);
        let doctor = env.run(&["doctor"]);
        assert!(doctor.code != 0 && format!("{}{}", doctor.stdout, doctor.stderr).contains(about), "{doctor:?}");
    }
    let reply = env.stop("s1", "hi", false);
    assert!(message(&reply).contains("unknown key") && message(&reply).contains("The goal is paused"), "{reply}");
    env.set_limits("daily_tokens = 1000");
    assert_eq!(env.status()["paused_reason"], "degraded");
}

#[test]
fn without_caps_no_transcript_is_read_for_a_session_without_a_goal() {
    let env = Env::with_limits("enforce_sessions = true");
    env.begin_session("s1");
    env.says("s1", "m1", "one", 60_000);
    assert_eq!(
        (env.batch("s1"), env.stop("s1", "one", false), env.tool("s1")),
        (Value::Null, Value::Null, Value::Null)
    );
    assert_eq!(env.counted(), Vec::<Vec<String>>::new());
    assert_eq!(env.sql("SELECT * FROM transcript_cursors"), Vec::<Vec<String>>::new());
}

#[test]
fn sessions_without_a_goal_count_and_their_user_is_told_once() {
    let env = Env::with_limits("daily_tokens = 50000");
    env.begin_session("s1");
    env.says("s1", "m1", "one", 39_990);
    assert_eq!(env.stop("s1", "one", false), Value::Null);
    env.says("s1", "m2", "two", 10);
    let reply = env.batch("s1");
    assert_eq!(message(&reply), "◎ over 80 % of a cap used (daily_tokens: 40,000 of 50,000 tokens).");
    env.says("s1", "m3", "three", 100);
    assert_eq!(env.stop("s1", "three", false), Value::Null, "once a day");
    env.begin_session("s2");
    env.says("s2", "m4", "four", 100);
    assert_eq!(env.stop("s2", "four", false), Value::Null, "in whatever session");
    env.says("s2", "m5", "five", 9_801);
    let reply = env.stop("s2", "five", false);
    assert!(
        message(&reply).contains("cap reached (daily_tokens: 50,001 of 50,000 tokens): goals and runs stop"),
        "{reply}"
    );
    assert_eq!(env.stop("s2", "five", false), Value::Null);
    assert_eq!(env.tool("s2"), Value::Null, "told, and not enforced");
    let all: Vec<Vec<String>> = env.counted();
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(all.iter().all(|row| row[1] == "1"), "{all:?}");
}

#[test]
fn a_goal_stops_at_a_cap_that_sessions_without_a_goal_used_up() {
    let env = Env::with_limits("daily_tokens = 50000");
    env.begin_session("s2");
    env.says("s2", "m1", "one", 50_001);
    env.stop("s2", "one", false);
    env.start(&["x"]);
    env.says("s1", "m2", "two", 10);
    assert!(env.stop("s1", "two", false)["reason"].as_str().unwrap().contains("last turn"));
    let reply = env.stop("s1", "two", true);
    assert!(message(&reply).contains("paused (cost_cap): the cap daily_tokens: 50,011 of 50,000 tokens"), "{reply}");
    let goal = env.status();
    let cap = json!({"name": "daily_tokens", "used": 50_011, "most": 50_000, "reached": true});
    assert_eq!((&goal["paused_reason"], &goal["caps"]), (&json!("cost_cap"), &json!([cap])));
    assert!(env.goal(&["status"]).stdout.contains("cap reached: daily_tokens: 50,011 of 50,000 tokens"));
    let event = env.sql("SELECT payload FROM goal_events WHERE kind = 'cap_reached'");
    assert!(event[0][0].contains("\"cap\":\"daily_tokens\""), "{event:?}");
}

#[test]
fn at_the_cap_tools_of_a_session_without_a_goal_are_refused_if_the_user_wants_that() {
    let env = Env::with_limits("daily_tokens = 1000\nenforce_sessions = true");
    env.begin_session("s1");
    env.begin_session("s2");
    env.says("s1", "m1", "one", 999);
    env.batch("s1");
    assert_eq!(env.tool("s1"), Value::Null);
    env.says("s1", "m2", "two", 3);
    assert!(message(&env.batch("s1")).contains("tool calls are refused"));
    for session in ["s1", "s2"] {
        let reply = env.tool(session);
        let reason = refusal(&reply);
        assert!(reason.contains("daily_tokens: 1,002 of 1,000 tokens") && reason.contains("tomorrow"), "{reply}");
    }
    env.set_limits("daily_tokens = 2000\nenforce_sessions = true");
    assert_eq!(env.tool("s1"), Value::Null, "the user raised it");
    // A goal gets its turn to wind down, so its tools run.
    env.set_limits("daily_tokens = 1000\nenforce_sessions = true");
    env.start(&["x"]);
    assert_eq!(env.tool("s1"), Value::Null);
    env.goal(&["pause"]).succeeds();
    assert!(refusal(&env.tool("s1")).contains("daily_tokens"), "a paused goal drives nothing");
}

#[test]
fn a_session_and_a_model_have_caps_of_their_own() {
    let env = Env::with_limits("session_tokens = 1000\nenforce_sessions = true");
    for session in ["s1", "s2"] {
        env.begin_session(session);
    }
    env.says("s1", "m1", "one", 1_000);
    assert!(message(&env.stop("s1", "one", false)).contains("session_tokens: 1,000 of 1,000 tokens"));
    assert!(refusal(&env.tool("s1")).contains("a new session begins at zero"));
    assert_eq!(env.tool("s2"), Value::Null);
    let models =
        "[limits.models.\"claude-opus\"]\ndaily_tokens = 900\n[limits.models.\"claude-haiku\"]\ndaily_tokens = 1";
    env.set_limits(models);
    env.run(&["goal", "start", "y", "--session", "s2"]).succeeds();
    env.says("s2", "m2", "two", 10);
    assert!(env.stop("s2", "two", false)["reason"].as_str().unwrap().contains("last turn"));
    let reply = env.stop("s2", "two", true);
    assert!(message(&reply).contains("the cap models.\"claude-opus\".daily_tokens: 1,010 of 900 tokens"), "{reply}");
}

#[test]
fn real_transcripts_of_both_hosts_count_with_their_subagents() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples");
    let env = Env::with_limits("session_tokens = 1000000000");
    env.begin_session("s1");
    std::fs::copy(samples.join("claude/transcripts/one-message-many-lines.jsonl"), env.transcript("s1")).unwrap();
    env.batch("s1");
    env.stop("s1", "", false);
    assert_eq!(env.sql("SELECT sum(input_tokens + output_tokens + cache_creation_tokens) FROM responses"), [["475"]]);
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    let rollout = env.rollout(THREAD);
    std::fs::create_dir_all(rollout.parent().unwrap()).unwrap();
    std::fs::copy(samples.join("codex/rollout/tool-call.jsonl"), &rollout).unwrap();
    env.codex(THREAD, "PostToolUse.Bash", &json!({}));
    env.codex(THREAD, "Stop.first", &json!({}));
    let codex = env.sql("SELECT count(*) > 0, min(goal_id IS NULL) FROM responses WHERE host = 'codex'");
    assert_eq!(codex, [["1", "1"]]);
}

#[test]
fn codex_refuses_tools_at_the_cap_too() {
    let env = Env::with_limits("daily_tokens = 1000\nenforce_sessions = true");
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    env.codex_says(THREAD, "r1", "one", 1_200);
    let told = env.codex(THREAD, "PostToolUse.Bash", &json!({}));
    assert!(message(&told).contains("cap reached (daily_tokens: 1,200 of 1,000 tokens)"), "{told}");
    assert!(refusal(&env.codex(THREAD, "PreToolUse.Bash", &json!({}))).contains("daily_tokens"));
}

#[test]
fn the_plan_is_shown_warned_about_and_can_stop_a_goal_until_its_reset() {
    let env = Env::new();
    env.start(&["x", "--plan-percent", "90"]);
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.begin_turn();
    let limits = |short: f64, long: f64| {
        json!({"five_hour": {"used_percentage": short, "resets_at": in_seconds(2)},
               "seven_day": {"used_percentage": long, "resets_at": in_seconds(90)}})
    };
    assert!(!env.statusline("s1", &limits(49.9, 3.0)).contains("plan"));
    assert!(env.statusline("s1", &limits(83.7, 41.0)).ends_with(" · plan 83 %"));
    let seen = env.sql("SELECT seen_at_ms FROM plan_usage");
    env.statusline("s1", &limits(83.9, 41.2));
    assert_eq!(env.sql("SELECT seen_at_ms FROM plan_usage"), seen, "less than a percent is not written");
    assert!(env.statusline("s1", &Value::Null).ends_with(" · plan 83 %"));
    env.says("s1", "m1", "one", 10);
    let reply = env.stop("s1", "one", false);
    assert!(message(&reply).contains("83 % of the plan's 5-hour window used"), "{reply}");
    assert_eq!(reply["decision"], "block", "the goal continues");
    let goal = env.status();
    assert_eq!(goal["plan"][0]["window"], "five_hour");
    assert_eq!((&goal["plan"][0]["used_percent"], &goal["plan"][1]["used_percent"]), (&json!(83), &json!(41)));
    assert!(env.goal(&["status"]).stdout.contains("plan: 83 % of the 5-hour window used (limit 90 %)"));
    env.says("s1", "m2", "two", 10);
    assert_eq!(message(&env.stop("s1", "two", true)), "", "warned once");
    env.statusline("s1", &limits(90.0, 41.0));
    env.says("s1", "m3", "three", 10);
    let reply = env.stop("s1", "three", true);
    assert!(message(&reply).contains("90 % of the plan's 5-hour window used, so the goal is paused"), "{reply}");
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["paused_reason"]), (&json!("paused"), &json!("usage_limit")));
    assert!(goal["next"].as_str().unwrap().starts_with("waits until "), "no client runs here: {goal}");
    let wake = env.sql("SELECT wake_at_ms = resets_at_ms FROM goals, plan_usage WHERE window = 'five_hour'");
    assert_eq!(wake, [["1"]]);
    // The number of a window that was reset is unknown.
    env.execute("UPDATE plan_usage SET resets_at_ms = 1");
    env.goal(&["resume"]).succeeds();
    env.says("s1", "m4", "four", 10);
    assert_eq!(env.stop("s1", "four", true)["decision"], "block");
    assert_eq!(env.status()["plan"], json!([]));
    env.goal(&["abandon"]).succeeds();
    env.goal(&["start", "y", "--plan-percent", "101"]).fails_with(1, "the maximum is 100");
}

#[test]
fn codex_reports_the_plan_in_its_rollout_and_a_configured_limit_ends_a_turn() {
    let env = Env::with_limits("plan_percent = 90");
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    env.codex(THREAD, "UserPromptSubmit", &json!({"prompt": "goal: ship it"}));
    env.codex_says(THREAD, "r1", "one", 100);
    let limits = json!({"primary": {"used_percent": 91.0, "window_minutes": 300, "resets_at": in_seconds(3)},
                        "secondary": {"used_percent": 20.0, "window_minutes": 10_080, "resets_at": in_seconds(99)}});
    let count = json!({"type": "token_count", "info": null, "rate_limits": limits});
    env.append(&env.rollout(THREAD), &json!({"timestamp": now(), "ordinal": 3, "type": "event_msg", "payload": count}));
    let reply = env.codex(THREAD, "PostToolUse.Bash", &json!({}));
    assert!(message(&reply).contains("91 % of the plan's 5-hour window used, so the goal is paused"), "{reply}");
    let goal = env.run(&["goal", "status", "--json", "--session", THREAD]).json()["goal"].clone();
    assert_eq!((&goal["paused_reason"], &goal["plan"][0]["used_percent"]), (&json!("usage_limit"), &json!(91)));
}

/// A world whose agent is Claude Code as a run sees it: a session file, and events that name it.
fn world_with_claude(limits: &str) -> World {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}\nlimits: {idle: 0}");
    let tree = world.env.claude_config().join("projects/-work");
    let usage = r#""usage":{"input_tokens":700,"output_tokens":50}"#;
    let script = format!(
        r#"#!/bin/sh
cat > /dev/null; mkdir -p {tree}; echo x >> tries
id=$STEADFAST_RUN-$STEADFAST_ITERATION
echo '{{"type":"assistant","uuid":"u-'$id'","timestamp":"'$(date -u +%Y-%m-%dT%H:%M:%S.999Z)'","sessionId":"'$id'","message":{{"id":"m-'$id'","role":"assistant","type":"message","model":"claude-opus-4-8","content":[],{usage}}}}}' >> {tree}/$id.jsonl
echo '{{"type":"system","subtype":"init","session_id":"'$id'"}}'
echo '{{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"'$id'","total_cost_usd":0.01,{usage}}}'
"#,
        tree = tree.display()
    );
    let program = world.env.path("claude");
    world.write(&program, &script);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let file = world.env.home().join("config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let agent = format!("[agents.claude]\nprogram = '{}'\n", program.display());
    std::fs::write(file, format!("{config}{agent}[limits]\n{limits}\n")).unwrap();
    world
}

#[test]
fn caps_of_a_model_and_of_a_session_end_a_run() {
    for (limits, cap, iterations) in [
        (
            "[limits.models.\"claude-opus\"]\ndaily_tokens = 1500",
            "models.\"claude-opus\".daily_tokens: 1,500 of 1,500",
            2,
        ),
        ("[limits.models.\"claude-haiku\"]\ndaily_tokens = 1", "", 3),
        ("session_tokens = 700", "session_tokens: 750 of 700", 1),
    ] {
        let world = world_with_claude(limits);
        let output = world.run(&["loop", "run", "open", "m", "--max", "3", "--json"]);
        let status = output.json();
        let reason = if cap.is_empty() { "max_iterations" } else { "cost_cap" };
        let told = (output.code, &status["reason"], &status["iteration"]);
        assert_eq!(told, (5, &json!(reason), &json!(iterations)), "{limits}: {output:?}");
        assert!(output.stderr.contains(cap), "{limits}: {output:?}");
    }
}

#[test]
fn a_run_waits_for_the_reset_of_a_plan_that_is_used_as_far_as_allowed() {
    let world = world_with_claude("daily_tokens = 1000000");
    world.run(&["loop", "run", "open", "first", "--max", "1"]);
    let reset = in_seconds(3) * 1_000;
    world.env.execute(&format!(
        "INSERT INTO plan_usage (host, window, used_percent, resets_at_ms, seen_at_ms)
         VALUES ('claude', 'five_hour', 93.0, {reset}, {reset} - 10800000)"
    ));
    let tries = world.lines("tries").len();
    world.run(&["loop", "run", "open", "m", "--plan-percent", "90", "--detach"]).succeeds();
    let held = || world.env.sql("SELECT failure, message FROM run_attempts WHERE status = 'failed'");
    let deadline = Instant::now() + Duration::from_mins(2);
    while held().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(held(), [["usage_limit", "93 % of the plan's 5-hour window used, the limit is 90 %"]]);
    assert_eq!(world.lines("tries").len(), tries, "no agent was started");
    world.run(&["loop", "kill", "m"]);
    world.env.execute(&format!("UPDATE plan_usage SET used_percent = 89.0, resets_at_ms = {reset}"));
    let output = world.run(&["loop", "run", "open", "n", "--plan-percent", "90", "--max", "1", "--json"]);
    assert_eq!(&output.json()["iteration"], &json!(1), "{output:?}");
}
