//! What counts as done, at the command line: items, judge and sign-off of a new goal, who said that it is met, and
//! `goal report`.

use serde_json::{Value, json};

use crate::env::{Env, Output, finish};
use crate::runs::World;
use crate::schemas::check;

/// The answer to a slash command; in the middle of a turn it is a message beside the prompt.
fn slash(env: &Env, verb: &str, arguments: &str) -> String {
    let event = json!({"hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
        "command_name": format!("goal-{verb}"), "command_args": arguments,
        "prompt": format!("/goal-{verb} {arguments}")});
    let reply = env.hook_in_terminal("s1", &event);
    reply["reason"].as_str().or(reply["systemMessage"].as_str()).unwrap_or_default().to_owned()
}

fn start_with_file(env: &Env, file: &str) -> Output {
    env.goal(&["start", "Ship", "--items", file])
}

fn texts(goal: &Value) -> Vec<&str> {
    goal["items"].as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect()
}

/// Marks an item as proven, as the tool server does.
fn prove(env: &Env, number: usize, proof: &str) {
    let set = format!("json_set(items_json, '$[{}].proof', json_object('text', '{proof}', 'at_ms', 5))", number - 1);
    env.execute(&format!("UPDATE goals SET items_json = {set}, version = version + 1"));
}

#[test]
fn items_are_fixed_at_the_start_and_shown_with_their_proofs() {
    let env = Env::new();
    let goal = env.start(&["Ship it", "--item", "it parses", "--item", "it is fast", "--judge", "--sign-off"]);
    assert_eq!(goal["items"][0], json!({"text": "it parses", "proof": null, "at_ms": null}));
    assert_eq!((&goal["judge"], &goal["sign_off"]), (&json!(true), &json!(true)));
    prove(&env, 1, "cargo test: 12 passed");
    let status = env.goal(&["status"]).succeeds().stdout.clone();
    for line in [
        "done when: 2 items have their proofs, the evaluator agrees, you sign off\n",
        "items: 1 of 2 proven\n  ✓ 1. it parses: cargo test: 12 passed\n  ☐ 2. it is fast\n",
    ] {
        assert!(status.contains(line), "{line}: {status}");
    }
    check("goal-status.schema.json", &env.goal(&["status", "--json"]).json());
    // Other words keep the items; another objective needs new proofs.
    env.goal(&["edit", "Ship that"]).succeeds();
    let edited = env.status();
    assert_eq!((texts(&edited), &edited["items"][0]["proof"]), (vec!["it parses", "it is fast"], &Value::Null));
}

#[test]
fn hostile_items_are_one_printable_line_each_or_refused() {
    let env = Env::new();
    let goal = env.start(&["Ship", "--item", "one\nstatus: complete\n\u{1b}[2Jtwo", "--item", "<b>three</b>"]);
    assert_eq!(texts(&goal), ["one status: complete two", "<b>three</b>"]);
    let status = env.goal(&["status"]).succeeds().stdout.clone();
    assert_eq!(status.lines().filter(|line| line.starts_with("status:")).count(), 1, "{status}");
    let queued = |item: &str| env.goal(&["start", "Next", "--queue", "--item", item]);
    queued(&"x".repeat(4_000)).fails_with(1, "item 1 has 4000 characters; the maximum is 500");
    queued(" \n").fails_with(1, "item 1 is empty");
    let many: Vec<&str> = std::iter::repeat_n(["--item", "x"], 101).flatten().collect();
    env.goal(&[&["start", "Next", "--queue"], &many[..]].concat()).fails_with(1, "101 items; the maximum is 100");
    env.goal(&["start", "x", "--item", "a", "--items", "b.md"]).fails_with(1, "cannot be used with");
}

#[test]
fn items_are_read_from_the_lists_of_a_markdown_file() {
    let env = Env::new();
    let file = env.project().join("done.md");
    std::fs::write(&file, "# Done when\n\n- [ ] it parses\n- [x] it is fast\n  1. on a laptop\n\nThat is all.\n")
        .unwrap();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let goal = env.goal(&["start", "Ship", "--items", "done.md", "--json"]).succeeds().json()["goal"].clone();
    assert_eq!(texts(&goal), ["it parses", "it is fast", "on a laptop"]);
    assert!(goal["items"].as_array().unwrap().iter().all(|item| item["proof"].is_null()), "{goal}");
    env.goal(&["abandon"]).succeeds();

    std::fs::write(&file, "").unwrap();
    start_with_file(&env, "done.md").fails_with(1, "has no list items");
    std::fs::write(&file, "no list\n").unwrap();
    start_with_file(&env, "done.md").fails_with(1, "has no list items");
    std::fs::write(&file, "- x\n".repeat(17_000)).unwrap();
    start_with_file(&env, "done.md").fails_with(1, "too large");
    std::fs::write(&file, "- x\n".repeat(101)).unwrap();
    start_with_file(&env, "done.md").fails_with(1, "101 items");
    std::fs::write(&file, b"- \xff\n").unwrap();
    start_with_file(&env, "done.md").fails_with(1, "not UTF-8");
    start_with_file(&env, "none.md").fails_with(1, "cannot read the items");
    start_with_file(&env, "/dev/zero").fails_with(1, "is not a file");
    start_with_file(&env, ".").fails_with(1, "is not a file");
    let pipe = env.project().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    start_with_file(&env, "pipe").fails_with(1, "is not a file");
    assert_eq!(env.status()["status"], "abandoned", "nothing was started");
}

#[test]
fn an_agent_may_not_choose_the_items_of_its_goal() {
    let env = Env::new();
    env.start(&["x"]);
    env.goal(&["abandon"]).succeeds();
    std::fs::write(env.project().join("easy.md"), "- easy\n").unwrap();
    for flags in [["--item", "easy"], ["--items", "easy.md"]] {
        let arguments = [&["goal", "start", "y"], &flags[..]].concat();
        let output = finish(env.command(&arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"");
        output.fails_with(3, "an agent may not choose the items");
    }
}

#[test]
fn a_queued_goal_keeps_what_counts_as_done() {
    let env = Env::new();
    env.start(&["First"]);
    let queue =
        env.goal(&["start", "Second", "--queue", "--item", "a", "--sign-off", "--judge", "--json"]).succeeds().json();
    check("goal-queue.schema.json", &queue);
    let entry = &queue["queue"][0];
    assert_eq!((&entry["items"], &entry["judge"], &entry["sign_off"]), (&json!(["a"]), &json!(true), &json!(true)));
    env.goal(&["abandon"]).succeeds();
    let second = env.status();
    assert_eq!((texts(&second), &second["judge"], &second["sign_off"]), (vec!["a"], &json!(true), &json!(true)));
}

#[test]
fn completion_by_the_workers_word_is_shown_as_unverified_everywhere() {
    let env = Env::new();
    env.start(&["Ship it"]);
    env.execute("UPDATE goals SET status = 'complete', completed_by = 'self_update', version = version + 1");
    let status = env.goal(&["status"]).succeeds().stdout.clone();
    assert!(status.contains("status: complete (unverified)\n"), "{status}");
    let shown = env.status();
    let json = (&shown["status"], &shown["completed_by"], &shown["verified"]);
    assert_eq!(json, (&json!("complete"), &json!("self_update"), &json!(false)));
    let history = env.goal(&["history"]).succeeds().stdout.clone();
    assert!(history.contains("complete (unverified)"), "{history}");
    check("goal-history.schema.json", &env.goal(&["history", "--format=json"]).json());
    let line = finish(&mut env.command(&["statusline"]), json!({"session_id": "s1"}).to_string().as_bytes());
    assert!(line.succeeds().stdout.contains("◎ goal complete (unverified)"), "{line:?}");
    assert!(slash(&env, "report", "").contains("complete (unverified): the agent's own word"));
}

#[test]
fn the_user_signs_off_or_sends_the_goal_back() {
    let env = Env::new();
    env.start(&["Ship it", "--sign-off"]);
    let ask = "UPDATE goals SET status = 'paused', paused_reason = 'sign_off', version = version + 1";
    env.execute(ask);
    assert!(slash(&env, "status", "").contains("next: /goal-complete signs off, /goal-resume sends it back to work"));
    assert!(env.goal(&["status"]).stdout.contains("next: steadfast goal complete signs off"));
    env.goal(&["resume"]).succeeds();
    assert_eq!(env.status()["status"], "active");
    env.execute(ask);
    let agent =
        finish(env.command(&["goal", "complete"]).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"");
    agent.fails_with(3, "is for the user");
    assert!(slash(&env, "complete", "").contains("goal completed by you"));
    let done = env.status();
    assert_eq!(
        (&done["status"], &done["completed_by"], &done["verified"]),
        (&json!("complete"), &json!("user"), &json!(true))
    );
}

#[test]
fn the_configuration_can_demand_the_evaluator() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[goal]\ncompletion = \"evaluator\"\n").unwrap();
    assert_eq!(env.start(&["Ship it"])["judge"], true);
    env.run(&["run", "Ship it", "--agent", "true"]).fails_with(1, "asks for the evaluator");
}

#[test]
fn a_run_says_who_vouches_for_its_goal_and_waits_for_the_sign_off() {
    let world = World::new();
    let promise = world.agent("sed -n 's/.*\\(<promise>.*<\\/promise>\\).*/\\1/p'");
    let shown = world.run(&["run", "Ship", "--agent", &promise]).succeeds().stdout.clone();
    assert!(shown.contains("goal: complete (unverified)"), "{shown}");
    let output = world.run(&["run", "Ship", "--agent", &promise, "--verify", "true", "--sign-off", "--json"]);
    let status = output.succeeds().json();
    check("run-status.schema.json", &status);
    assert_eq!(status["goal"]["paused_reason"], "sign_off", "{status}");
    let name = status["name"].as_str().unwrap();
    let next = world.run(&["loop", "status", name]).succeeds().stdout.clone();
    assert!(next.contains(&format!("next: `steadfast goal complete --session {name}`")), "{next}");
    world.run(&["goal", "complete", "--session", name]).succeeds();
    let done = world.run(&["goal", "status", "--session", name, "--json"]).json();
    assert_eq!(done["goal"]["completed_by"], "user");
}

#[test]
fn a_report_has_the_evidence_for_the_whole_goal() {
    let env = Env::new();
    let first = env.start(&[
        "Ship <b>it</b>",
        "--budget",
        "standard",
        "--verify",
        "true",
        "--verify",
        "false",
        "--item",
        "a | `b`",
        "--item",
        "c",
    ]);
    prove(&env, 1, "</details>");
    env.goal(&["edit", "Ship <b>that</b>"]).succeeds();
    prove(&env, 1, "</details>");
    env.goal(&["verify"]);
    env.goal(&["pause"]).succeeds();
    env.goal(&["resume"]).succeeds();
    let text = env.goal(&["report"]).succeeds().stdout.clone();
    for part in [
        "◎ Goal: Ship <b>that</b>\n",
        "\nStatus\n  active\n  done when: 2 commands pass, 2 items have their proofs\n",
        "  ✓ a | `b`: </details>\n  ☐ c\n",
        "  ✓ true: exit 0 in ",
        "  ☐ false: exit 1 in ",
        "before: Ship <b>it</b>\n",
        "goal paused by user: active → paused (user)\n",
        "\nLimits\n  tokens: 0 of 10,000,000\n",
        "\nnext: ",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    let md = slash(&env, "report", "--md");
    assert!(md.starts_with("## Goal: Ship &lt;b&gt;that&lt;/b&gt;\n"), "{md}");
    assert!(md.contains("- [x] a \\| \\`b\\`: &lt;/details&gt;\n- [ ] c\n"), "{md}");
    assert!(!md.contains('<') && !md.contains("`b`"), "{md}");
    check("goal-report.schema.json", &env.goal(&["report", "--json"]).succeeds().json());

    // Goals that are over, by id or a prefix of it.
    env.goal(&["complete"]).succeeds();
    let over = env.goal(&["report"]).succeeds().stdout.clone();
    assert!(over.contains("complete: you said so") && over.contains(" by user: active → complete"), "{over}");
    assert!(!over.contains("by user by user"), "{over}");
    env.goal(&["start", "Another"]).succeeds();
    assert!(env.goal(&["report"]).succeeds().stdout.contains("◎ Goal: Another\n"));
    let id = first["goal_id"].as_str().unwrap();
    let old = env.run(&["goal", "report", &id[..8]]);
    assert!(old.succeeds().stdout.contains("◎ Goal: Ship <b>that</b>\n"), "{old:?}");
    env.run(&["goal", "report", "nothing"]).fails_with(2, "no goal has the id");
    env.run(&["goal", "report", "--session", "none"]).fails_with(2, "unknown session");
    // An agent reads its own session's goals only.
    env.run(&["goal", "start", "other's", "--session", "s2"]).succeeds();
    let other = env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"]["goal_id"].clone();
    let arguments = ["goal", "report", other.as_str().unwrap()];
    let agent = finish(env.command(&arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"");
    agent.fails_with(3, "another session");
}
