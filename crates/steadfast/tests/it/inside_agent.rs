//! An agent cannot help itself: what its shell may not do, and that the attempt is logged.

use crate::env::{Env, finish};

const PRIVILEGED: [&[&str]; 5] = [
    &["extend", "--add-tokens", "1M"],
    &["resume"],
    &["complete"],
    &["reconcile", "--accept-reset"],
    &["cleanup", "--delete"],
];

fn in_agent(env: &Env, arguments: &[&str]) -> crate::env::Output {
    let arguments = [&["goal"], arguments].concat();
    finish(env.command(&arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
}

#[test]
fn privileged_verbs_are_refused_in_an_agents_shell_and_logged() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    env.goal(&["pause"]).succeeds();
    for verb in PRIVILEGED {
        in_agent(&env, verb).fails_with(3, "is for the user");
    }
    assert_eq!(
        env.sql("SELECT json_extract(payload, '$.verb'), actor FROM goal_events WHERE kind = 'privileged_verb_refused' ORDER BY id"),
        [["extend", "worker"], ["resume", "worker"], ["complete", "worker"], ["reconcile", "worker"], ["cleanup --delete", "worker"]]
    );
    let goal = env.status();
    assert_eq!((goal["status"].as_str(), goal["token_budget"].as_i64()), (Some("paused"), Some(1000)));
}

#[test]
fn an_agent_may_not_choose_checks_or_touch_another_session() {
    let env = Env::new();
    env.start(&["x"]);
    env.run(&["goal", "start", "other's", "--session", "s2"]).succeeds();
    in_agent(&env, &["abandon", "--session", "s2"]).fails_with(3, "another session");
    in_agent(&env, &["adopt", "x", "--session", "s2"]).fails_with(3, "another session");
    in_agent(&env, &["abandon"]).succeeds();
    in_agent(&env, &["start", "y", "--verify", "true"]).fails_with(3, "verification commands");
    // It gave up a goal; the next one needs the user.
    in_agent(&env, &["start", "y", "--budget", "1B"]).fails_with(3, "needs the user's word");
    assert!(in_agent(&env, &["status"]).succeeds().stdout.contains("status: abandoned"));
}

/// The environment can be cleared, the ancestors cannot.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_is_recognised_by_its_ancestry_too() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    let agent = env.path("claude");
    std::fs::copy("/bin/sh", &agent).unwrap();
    let script = format!(
        "sh -c '\"{}\" goal extend --add-tokens 1M --session s1; exit $?'; exit $?",
        env!("CARGO_BIN_EXE_steadfast")
    );
    let output = std::process::Command::new(&agent)
        .args(["-c", &script])
        .env_clear()
        .env("STEADFAST_HOME", env.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(env.status()["token_budget"], 1000);
    env.goal(&["extend", "--add-tokens", "1M"]).succeeds();
}
