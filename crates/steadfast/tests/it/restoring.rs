//! What is injected, into which session and how often: changed, paused and adopted goals, paired starts, and sessions
//! that follow others.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::Env;
use crate::memory::{CLIENTS, Client, THREAD};

/// The minimum time between two hooks of a client.
fn later() {
    sleep(Duration::from_millis(5));
}

impl Client {
    fn end(self, env: &Env, session: &str, reason: &str) {
        match self {
            Self::Claude => env.hook(session, &json!({"hook_event_name": "SessionEnd", "reason": reason})),
            Self::Codex => env.codex(session, "SessionEnd", &json!({"reason": reason})),
        };
    }

    fn stop(self, env: &Env, session: &str) -> Value {
        match self {
            Self::Claude => env.stop(session, "did it", false),
            Self::Codex => env.codex(session, "Stop.first", &json!({})),
        }
    }

    /// A command that leaves no event in memory.
    fn runs_ls(self, env: &Env, session: &str) {
        match self {
            Self::Claude => {
                env.hook(
                    session,
                    &json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t",
                    "tool_input": {"command": "ls"}, "tool_response": {"stdout": "a", "stderr": "", "interrupted": false}}),
                );
                env.hook(session, &json!({"hook_event_name": "PostToolBatch", "tool_calls": []}))
            }
            Self::Codex => {
                env.codex(session, "PostToolUse.Bash", &json!({"tool_input": {"command": "ls"}, "tool_response": "a"}))
            }
        };
    }
}

fn stated(env: &Env) -> Vec<Vec<String>> {
    env.sql("SELECT objective, status FROM stated_goals ORDER BY id")
}

fn goal_status(env: &Env) -> String {
    env.sql("SELECT status FROM goals").concat().concat()
}

/// A session with a durable goal whose text the user also stated.
fn pursuing(client: Client, objective: &str) -> Env {
    let env = Env::new();
    client.start(&env, THREAD, "startup", &json!({}));
    client.prompt(&env, THREAD, &format!("goal: {objective}"));
    if client == Client::Claude {
        env.run(&["goal", "start", objective, "--session", THREAD]).succeeds();
    }
    env
}

#[test]
fn an_edited_goal_replaces_the_stated_one_and_a_paused_one_is_not_an_order() {
    for client in CLIENTS {
        let env = pursuing(client, "Port the service to MySQL");
        env.run(&["goal", "edit", "Port the service to Postgres", "--session", THREAD]).succeeds();
        assert_eq!(stated(&env), [["Port the service to MySQL", "replaced"]], "{client:?}");
        client.before_compaction(&env, THREAD);
        let told = client.start(&env, THREAD, "compact", &json!({}));
        assert!(told.contains("Postgres") && !told.contains("MySQL\n</objective>"), "{client:?}: {told}");
        env.run(&["goal", "pause", "--session", THREAD]).succeeds();
        client.before_compaction(&env, THREAD);
        let told = client.start(&env, THREAD, "resume", &json!({}));
        assert!(told.contains("do not work on it") && !told.contains("Work toward it"), "{client:?}: {told}");
    }
}

#[test]
fn an_earlier_stated_goal_is_shown_but_is_not_an_order() {
    let env = Env::new();
    Client::Claude.prompt(&env, "s1", "goal: the first idea of it");
    later();
    env.start(&["the durable one"]);
    let told = Client::Claude.start(&env, "s1", "compact", &json!({}));
    assert!(told.contains("the first idea of it") && told.contains("work on that one"), "{told}");
    assert_eq!(told.matches("Work toward it").count(), 1, "{told}");
}

#[test]
fn goal_prompt_commands_steer_the_durable_goal() {
    for client in CLIENTS {
        let env = pursuing(client, "Ship the lighthouse");
        for (word, status, said) in [
            ("status", "active", "Ship the lighthouse"),
            ("pause", "paused", "goal paused"),
            ("resume", "active", "goal resumed"),
            ("done", "complete", "goal completed by you"),
        ] {
            let reply = client.prompt(&env, THREAD, &format!("/goal {word}"));
            // No hook wakes Codex, so what resumes there goes through to the model.
            let (kind, answer) = match (client, word) {
                (Client::Codex, "resume") => (Value::Null, &reply["systemMessage"]),
                _ => (json!("block"), &reply["reason"]),
            };
            assert_eq!(reply["decision"], kind, "{client:?} {word}: {reply}");
            assert!(answer.as_str().unwrap().contains(said), "{client:?} {word}: {reply}");
            assert_eq!(goal_status(&env), status, "{client:?} {word}");
        }
        assert_eq!(stated(&env), [["Ship the lighthouse", "done"]], "{client:?}");

        let env = pursuing(client, "Ship the lighthouse");
        let reply = client.prompt(&env, THREAD, "/goal edit Paint the tower");
        assert!(reply.to_string().contains("objective changed: Paint the tower"), "{client:?}: {reply}");
        assert_eq!(env.sql("SELECT objective FROM goals"), [["Paint the tower"]], "{client:?}");
        client.prompt(&env, THREAD, "/goal clear");
        assert_eq!(goal_status(&env), "abandoned", "{client:?}");
        assert_eq!(client.stop(&env, THREAD), Value::Null, "{client:?}");
    }
}

#[test]
fn goal_prompt_commands_steer_the_stated_goal_and_report_the_result() {
    for client in CLIENTS {
        let env = Env::new();
        let reply = client.prompt(&env, THREAD, "/goal Ship the lighthouse");
        let offer = if client == Client::Claude { "/goal-start TEXT" } else { "$goal-start TEXT" };
        assert!(reply["systemMessage"].as_str().unwrap().contains(offer), "{client:?}: {reply}");
        for (word, said) in [
            ("status", "is active: Ship the lighthouse"),
            ("pause", "is paused: Ship the lighthouse"),
            ("pause", "is paused already: Ship the lighthouse"),
            ("resume", "is active again: Ship the lighthouse"),
            ("edit", "/goal edit TEXT"),
            ("edit Paint the tower", "is changed: Paint the tower"),
            ("clear", "is cleared and does not come back any more: Paint the tower"),
        ] {
            let reply = client.prompt(&env, THREAD, &format!("/goal {word}"));
            let message = reply["systemMessage"].as_str().unwrap_or_default();
            assert!(message.contains(said) && !message.contains('\n'), "{client:?} {word}: {reply}");
            assert!(reply.get("decision").is_none(), "{client:?} {word}: {reply}");
        }
        assert_eq!(client.prompt(&env, THREAD, "/goal clear"), Value::Null, "{client:?}: there is none");
    }
}

#[test]
fn the_client_steers_its_own_goal() {
    let env = pursuing(Client::Claude, "Ship the lighthouse");
    let native = |condition: &str| {
        json!({"type": "attachment", "uuid": "u", "timestamp": crate::env::now(),
               "attachment": {"type": "goal_status", "met": false, "sentinel": true, "condition": condition}})
    };
    env.append(&env.transcript(THREAD), &native("keep the lamp lit"));
    let reply = Client::Claude.prompt(&env, THREAD, "/goal pause");
    assert!(reply.get("decision").is_none(), "{reply}");
    assert_eq!(goal_status(&env), "active");
    // The client turns even this word into its own goal; that does not count as another goal.
    env.append(&env.transcript(THREAD), &native("pause"));
    let reply = Client::Claude.prompt(&env, THREAD, "/goal pause");
    let said = reply["reason"].as_str().unwrap();
    assert!(said.contains("goal paused") && said.contains("`/goal clear` ends it"), "{reply}");

    let env = Env::new();
    env.append(&env.transcript(THREAD), &native("keep the lamp lit"));
    assert_eq!(Client::Claude.prompt(&env, THREAD, "/goal keep the lamp lit"), Value::Null, "nothing to offer");
}

#[test]
fn paired_starts_inject_once_and_others_each_time() {
    for (steps, told) in [
        (&["before", "resume", "compact"][..], &[true, false][..]),
        (&["before", "compact", "resume"], &[true, false]),
        (&["before", "compact", "compact"], &[true, true]),
        (&["resume", "before", "compact"], &[true, true]),
        (&["resume", "compact", "compact"], &[true, false, true]),
        (&["resume", "compact", "resume", "compact"], &[true, false, true, false]),
        (&["resume", "ls", "compact"], &[true, true]),
        (&["resume", "stop", "compact"], &[true, true]),
        (&["resume", "end", "compact"], &[true, true]),
        (&["compact", "prompt", "resume"], &[true, true]),
        (&["resume", "answer", "compact"], &[true, true]),
    ] {
        for client in CLIENTS {
            let env = Env::new();
            client.start(&env, THREAD, "startup", &json!({}));
            client.prompt(&env, THREAD, "/goal Ship the lighthouse");
            let mut seen = Vec::new();
            for step in steps {
                later();
                match *step {
                    "before" => client.before_compaction(&env, THREAD),
                    "ls" => client.runs_ls(&env, THREAD),
                    "stop" => assert_eq!(client.stop(&env, THREAD), Value::Null),
                    "end" => client.end(&env, THREAD, "other"),
                    "prompt" => drop(client.prompt(&env, THREAD, "go on")),
                    "answer" if client == Client::Claude => env.says(THREAD, "m1", "Answer.", 10),
                    "answer" => env.codex_says(THREAD, "r1", "Answer.", 20),
                    source => seen.push(!client.start(&env, THREAD, source, &json!({})).is_empty()),
                }
            }
            assert_eq!(seen, told, "{client:?} {steps:?}");
        }
    }
}

#[test]
fn after_clear_only_the_cleared_session_is_offered() {
    let env = Env::new();
    for session in ["a", "b"] {
        Client::Claude.start(&env, session, "startup", &json!({}));
        Client::Claude.prompt(&env, session, &format!("goal: the aim of {session}"));
    }
    Client::Claude.end(&env, "a", "clear");
    Client::Claude.prompt(&env, "b", "hi");
    let told = Client::Claude.start(&env, "c", "clear", &json!({}));
    assert!(told.contains("the aim of a") && !told.contains("the aim of b"), "{told}");
    assert!(!told.contains("recall") && told.contains("steadfast session search"), "{told}");
    assert_eq!(Client::Claude.start(&env, "d", "clear", &json!({})), "", "there are two that it can be");

    // Codex does not report which session was cleared.
    let env = Env::new();
    for session in ["a", "b"] {
        Client::Codex.start(&env, session, "startup", &json!({}));
        Client::Codex.prompt(&env, session, &format!("goal: the aim of {session}"));
    }
    assert_eq!(Client::Codex.start(&env, "c", "clear", &json!({})), "");
    assert_eq!(env.sql("SELECT count(*) FROM sessions WHERE ended_at_ms IS NOT NULL"), [["0"]]);
}

#[test]
fn a_goal_stated_in_codex_is_stored_as_one_clean_text() {
    let env = Env::new();
    Client::Codex.start(&env, THREAD, "startup", &json!({}));
    Client::Codex.prompt(&env, THREAD, "goal: first <x>\r\nsecond\u{7} line with DB_PASSWORD=hunter2secret99");
    let kept = env.sql("SELECT objective FROM goals UNION ALL SELECT objective FROM stated_goals");
    assert_eq!(kept[0], kept[1]);
    assert!(kept[0][0].starts_with("first <x>\nsecond line") && !kept[0][0].contains("hunter2"), "{kept:?}");
    let told = Client::Codex.start(&env, THREAD, "compact", &json!({}));
    assert!(told.matches("<objective>").count() == 1 && !told.contains("hunter2"), "{told}");
}

#[test]
fn a_fork_is_never_ordered_to_pursue_its_parents_durable_goal() {
    let env = Env::new();
    let codex = Client::Codex;
    codex.start(&env, THREAD, "startup", &json!({}));
    codex.prompt(&env, THREAD, "goal: Ship the lighthouse");
    later();
    let fork = env.rollout("forked");
    std::fs::create_dir_all(fork.parent().unwrap()).unwrap();
    let meta = json!({"id": "forked", "forked_from_id": THREAD});
    env.append(&fork, &json!({"timestamp": crate::env::now(), "type": "session_meta", "payload": meta}));
    let told = codex.start(&env, "forked", "fork", &json!({}));
    assert!(told.contains("Ship the lighthouse") && told.contains("do not work on it unless asked"), "{told}");
    assert_eq!(codex.start(&env, "forked", "compact", &json!({})), "", "injected just before");
    later();
    codex.prompt(&env, "forked", "go on");
    // Later changes of the parent's goal make no difference.
    env.run(&["goal", "edit", "Paint the tower", "--session", THREAD]).succeeds();
    let told = codex.start(&env, "forked", "compact", &json!({}));
    assert!(told.contains("go on") && !told.contains("<session_goal>"), "{told}");
}

#[test]
fn a_claude_code_fork_finds_its_parent_in_its_session_file() {
    for source in ["fork", "resume"] {
        let env = Env::new();
        let claude = Client::Claude;
        claude.start(&env, THREAD, "startup", &json!({}));
        claude.prompt(&env, THREAD, "goal: Ship the lighthouse");
        later();
        let copied = json!({"type": "user", "uuid": "u1", "sessionId": "forked", "parentUuid": null,
            "forkedFrom": {"sessionId": THREAD, "messageUuid": "u0"}, "message": {"role": "user", "content": "hello"}});
        env.append(&env.transcript("forked"), &json!({"type": "file-history-snapshot"}));
        env.append(&env.transcript("forked"), &copied);
        let told = claude.start(&env, "forked", source, &json!({}));
        assert!(told.contains("Ship the lighthouse") && told.contains("after=\"fork\""), "{source}: {told}");
        assert_eq!(
            env.sql("SELECT parent_session_id, parent_link FROM sessions WHERE session_id = 'forked'"),
            [[THREAD, "fork"]]
        );
        assert_eq!(claude.start(&env, "without-parent", "fork", &json!({})), "");
    }
}

#[test]
fn the_printed_snapshot_equals_the_injected_one() {
    for client in CLIENTS {
        let env = Env::new();
        client.start(&env, THREAD, "startup", &json!({}));
        client.prompt(&env, THREAD, "look at the lamp");
        env.run(&["goal", "start", "Ship it", "--session", THREAD, "--verify", "make test", "--budget", "2M"])
            .succeeds();
        let shown = |after: &str| {
            let shown = env.run(&["session", "snapshot", THREAD, "--json", "--after", after]).succeeds().json();
            shown["text"].as_str().unwrap().to_owned()
        };
        let told = client.start(&env, THREAD, "resume", &json!({}));
        assert!(told.contains("make test"), "{told}");
        assert_eq!(shown("resume"), told);
        client.before_compaction(&env, THREAD);
        assert_eq!(client.start(&env, THREAD, "compact", &json!({})), shown("compaction"));
    }
    // Text that is in the model's conversation is not printed either.
    let env = Env::new();
    Client::Claude.start(&env, "s1", "startup", &json!({}));
    Client::Claude.prompt(&env, "s1", "goal: polish the parser now");
    let message = json!({"role": "user", "content": "goal: polish the parser now"});
    env.append(
        &env.transcript("s1"),
        &json!({"parentUuid": null, "isSidechain": false, "type": "user", "message": message, "uuid": "u1"}),
    );
    let shown = env.run(&["session", "snapshot", "s1"]).succeeds().stdout.clone();
    assert!(shown.contains("is in the conversation above") && !shown.contains("<objective>"), "{shown}");
    // Codex's own goal is injected after a compaction.
    let env = Env::new();
    env.codex(THREAD, "SessionStart.startup", &json!({}));
    env.codex(THREAD, "PostToolUse.create_goal", &json!({}));
    let shown = env.run(&["session", "snapshot", THREAD]).succeeds().stdout.clone();
    assert!(shown.contains("pursued by Codex's own goal feature"), "{shown}");
}
