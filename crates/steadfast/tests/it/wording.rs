//! Answers, errors and hints name what can be typed where they are read: a terminal, Claude Code or Codex.

use serde_json::{Value, json};

use crate::env::Env;

const THREAD: &str = "01a1de60-66b8-7e40-8374-a4d74d05f10c";

impl Env {
    /// The answer to a command typed in Claude Code.
    fn typed(&self, verb: &str, arguments: &str) -> String {
        let name = format!("goal-{verb}");
        let event = json!({"hook_event_name": "UserPromptExpansion", "command_name": name, "command_args": arguments});
        answer(&self.hook("s1", &event))
    }

    /// The answer to a command typed in Codex.
    fn typed_in_codex(&self, prompt: &str) -> String {
        answer(&self.codex(THREAD, "UserPromptSubmit", &json!({"prompt": prompt})))
    }
}

fn answer(reply: &Value) -> String {
    reply["reason"].as_str().or(reply["systemMessage"].as_str()).unwrap_or_default().to_owned()
}

#[track_caller]
fn names(text: &str, here: &str, elsewhere: [&str; 2]) {
    assert!(text.contains(here), "`{here}` is not in: {text}");
    for other in elsewhere {
        assert!(!text.contains(other), "`{other}` cannot be typed here: {text}");
    }
}

const NOT_IN_TERMINAL: [&str; 2] = ["/goal-", "$goal-"];
const NOT_IN_CLAUDE: [&str; 2] = ["steadfast goal", "$goal-"];
const NOT_IN_CODEX: [&str; 2] = ["steadfast goal", "/goal-"];

#[test]
fn a_terminal_is_told_terminal_commands() {
    let env = Env::new();
    names(&env.goal(&["status"]).stderr, "`steadfast goal start \"OBJECTIVE\"`", NOT_IN_TERMINAL);
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    names(&env.goal(&["status"]).stdout, "start one: steadfast goal start \"OBJECTIVE\"", NOT_IN_TERMINAL);
    env.start(&["Ship it", "--verify", "false"]);
    names(&env.goal(&["verify"]).stderr, "`steadfast goal verify`", NOT_IN_TERMINAL);
    names(&env.goal(&["start", "Another"]).stderr, "`steadfast goal status`", NOT_IN_TERMINAL);
    names(&env.goal(&["pause"]).stdout, "steadfast goal resume", NOT_IN_TERMINAL);
    names(&env.goal(&["status"]).stdout, "steadfast goal resume", NOT_IN_TERMINAL);
    names(env.status()["next"].as_str().unwrap(), "steadfast goal resume", NOT_IN_TERMINAL);
    names(&env.goal(&["pause"]).stderr, "`steadfast goal resume`", NOT_IN_TERMINAL);
    names(&env.goal(&["pause", "--json"]).stdout, "`steadfast goal resume`", NOT_IN_TERMINAL);
    env.goal(&["abandon"]).succeeds();
    names(&env.goal(&["resume"]).stderr, "`steadfast goal start`", NOT_IN_TERMINAL);
}

#[test]
fn claude_code_is_told_slash_commands() {
    let env = Env::new();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    names(&env.typed("status", ""), "start one: /goal-start \"OBJECTIVE\"", NOT_IN_CLAUDE);
    names(&env.typed("pause", ""), "`/goal-start \"OBJECTIVE\"`", NOT_IN_CLAUDE);
    names(&env.typed("start", ""), "usage: /goal-start \"OBJECTIVE\" [--budget", NOT_IN_CLAUDE);
    names(&env.typed("adopt", ""), "usage: /goal-adopt GOAL", NOT_IN_CLAUDE);
    env.start(&["Ship it", "--verify", "false"]);
    names(&env.typed("verify", ""), "`/goal-verify`", NOT_IN_CLAUDE);
    names(&env.typed("pause", ""), "/goal-resume", NOT_IN_CLAUDE);
    names(&env.typed("pause", ""), "`/goal-resume`", NOT_IN_CLAUDE);
}

#[test]
fn codex_is_told_skills() {
    let env = Env::new();
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    names(&env.typed_in_codex("$goal-status"), "start one: $goal-start \"OBJECTIVE\"", NOT_IN_CODEX);
    names(&env.typed_in_codex("$goal-start"), "usage: $goal-start \"OBJECTIVE\" [--budget", NOT_IN_CODEX);
    let unclosed = env.typed_in_codex("$goal-start \"unclosed");
    assert!(unclosed.contains("error: unclosed quote: \"unclosed"), "{unclosed}");
    names(&unclosed, "usage: $goal-start \"OBJECTIVE\"", NOT_IN_CODEX);
    assert_eq!(env.sql("SELECT count(*) FROM goals"), [["0"]], "no goal was started");
    names(&env.typed_in_codex("$goal-resume"), "`$goal-start \"OBJECTIVE\"`", NOT_IN_CODEX);

    env.start(&["Left behind"]);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    names(&env.typed_in_codex("$goal-cleanup"), "`$goal-adopt ID`", NOT_IN_CODEX);
}

#[test]
fn a_pause_at_a_cap_names_the_limit_to_extend() {
    let env = Env::new();
    env.start(&["Ship it", "--max-turns", "1"]);
    let reached = "continuations_used = 1, continuations_remaining = 0";
    env.execute(&format!("UPDATE goals SET status = 'paused', paused_reason = 'continuation_cap', {reached}"));
    names(&env.goal(&["pause"]).stderr, "`steadfast goal extend --add-turns N`", NOT_IN_TERMINAL);
    names(&env.goal(&["resume"]).stderr, "`steadfast goal extend --add-turns N`", NOT_IN_TERMINAL);
    names(env.status()["next"].as_str().unwrap(), "steadfast goal extend --add-turns N", NOT_IN_TERMINAL);
}

#[test]
fn one_turn_is_one_turn() {
    let env = Env::new();
    env.start(&["Ship it", "--max-turns", "1"]);
    let extended = env.goal(&["extend", "--add-usd", "1"]).stdout;
    assert!(extended.contains("(limits: $1.00, 1 turn)"), "{extended}");
    env.execute("UPDATE goals SET continuations_used = 1");
    let line = crate::env::finish(&mut env.command(&["statusline"]), br#"{"session_id": "s1"}"#);
    assert!(line.stdout.contains(" · 1 turn · "), "{line:?}");
}

/// The hook after a tool of ours says on the user's screen what the tool did.
#[test]
fn what_the_agent_did_to_the_goal_is_shown() {
    let env = Env::new();
    env.start(&["Ship it", "--verify", "exit 3"]);
    env.goal(&["verify"]).fails_with(6, "exit 3");
    let refused = json!({
        "hook_event_name": "PostToolUseFailure", "tool_name": "mcp__plugin_steadfast_steadfast__update_goal",
        "tool_input": {"status": "complete"}, "error": "verification failed: `exit 3` exited with 3",
    });
    let reply = env.hook("s1", &refused);
    assert_eq!(reply, json!({"systemMessage": "◎ completion refused: `exit 3` failed (exit 3)"}));
}
