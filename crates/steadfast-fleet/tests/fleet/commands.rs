//! The commands of a user: list, status, pull, resume, approve, say, doctor; their JSON is that of runs on one machine.

use serde_json::{Value, json};

use crate::world::{World, git, until};

const FIXED: &str = "completion: fixed-n\ndelay: 0";

fn valid(schema: &str, value: &Value) {
    let path = format!("{}/../../docs/schema/{schema}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}: {value}");
}

#[test]
fn list_status_logs_and_pull_show_a_run_as_on_one_machine() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _worker = world.driver("w1", "1");
    let agent = world.agent("talk", "cat >/dev/null\necho x >>log.txt\necho \"answer of $STEADFAST_ITERATION\"");
    world.start_loop("work", "auth", &agent, &["--max", "2"]);
    let status = world.wait_end("auth");
    valid("run-status", &status);
    let list = world.json(&["fleet", "list"]);
    valid("run-list", &list);
    let run = &list["runs"][0];
    for (name, expected) in [
        ("name", json!("auth")),
        ("kind", json!("loop")),
        ("status", json!("completed")),
        ("iteration", json!(2)),
        ("max_iterations", json!(2)),
        ("type", json!("work")),
    ] {
        assert_eq!(run[name], expected, "{name}: {run}");
    }
    let table = world.ok(&["fleet", "list"]);
    assert!(table.starts_with("NAME  TYPE  STATUS"), "{table}");
    assert_eq!(world.ok(&["fleet", "logs", "auth"]).trim(), "answer of 2");
    assert_eq!(world.ok(&["fleet", "logs", "auth", "--iteration", "1"]).trim(), "answer of 1");
    assert_eq!(world.ok(&["fleet", "logs", "auth", "-f"]).trim(), "answer of 1\nanswer of 2");
    // Into this repository, with state files that `jq` reads.
    let pulled = world.json(&["fleet", "pull", "auth"]);
    assert_eq!(pulled["branch"], json!("steadfast/auth"));
    assert_eq!(git(&world.project(), &["show", "steadfast/auth:log.txt"]), "x\nx");
    let state: Value =
        serde_json::from_str(&std::fs::read_to_string(world.project().join(".claude/loop-state-auth.json")).unwrap())
            .unwrap();
    assert_eq!(state["history"].as_array().unwrap().len(), 2, "{state}");
    let registry = std::fs::read_to_string(world.project().join(".claude/loop-completions.json")).unwrap();
    assert!(registry.contains("auth"), "{registry}");
    world.ok(&["fleet", "pull", "auth"]);
    assert_eq!(git(&world.project(), &["status", "--porcelain"]), "", "state files do not disturb git");
    // A second run of the name while one lives is refused; after the end it is not.
    let sleeper = world.agent("sleeper", "cat >/dev/null\nsleep 600");
    world.start_loop("work", "busy", &sleeper, &[]);
    let output = world.run(&["loop", "run", "work", "busy", "--agent", &sleeper, "--fleet", "--detach"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    world.ok(&["fleet", "kill", "busy"]);
}

#[test]
fn a_name_can_be_used_again_after_the_end_and_the_earlier_run_is_kept() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _worker = world.driver("w1", "1");
    let agent = world.writer("0");
    world.start_loop("work", "auth", &agent, &["--max", "3"]);
    world.wait_end("auth");
    let again = ["loop", "run", "work", "auth", "--agent", &agent, "--fleet", "--detach", "--max", "1"];
    let output = world.run(&again);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("the earlier run of this name is kept as auth.1"), "{said}");
    let status = world.wait_end("auth");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(1)), "{status}");
    assert_eq!(world.file_of("steadfast/auth", "log.txt"), "1");
    assert_eq!(world.file_of("steadfast/auth.1", "log.txt"), "1\n2\n3");
    let earlier = world.status("auth.1");
    assert_eq!((&earlier["name"], &earlier["iteration"]), (&json!("auth.1"), &json!(3)), "{earlier}");
    // The earlier one continues on its own branch.
    world.ok(&["fleet", "resume", "auth.1", "--max", "4"]);
    assert_eq!(world.file_of("steadfast/auth.1", "log.txt"), "1\n2\n3\n4");
    assert_eq!(world.file_of("steadfast/auth", "log.txt"), "1");
}

#[test]
fn a_run_is_resumed_after_its_end_also_when_the_server_has_forgotten_it() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _worker = world.driver("w1", "1");
    let agent = world.writer("0");
    world.start_loop("work", "more", &agent, &["--max", "2"]);
    world.wait_end("more");
    let refused = world.run(&["fleet", "resume", "more"]);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
    world.ok(&["fleet", "resume", "more", "--max", "3"]);
    let status = world.wait_end("more");
    assert_eq!((&status["iteration"], &status["tokens"]), (&json!(3), &json!(45)), "{status}");
    // As after the retention.
    until("the server has forgotten it", || {
        // One for each time it was started.
        world.temporal(&["workflow", "delete", "--yes", "--query", "WorkflowId = 'steadfast/more'"]);
        (world.json(&["fleet", "list"])["runs"].as_array().unwrap().is_empty()).then_some(())
    });
    let status = world.status("more");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(3)), "{status}");
    world.ok(&["fleet", "resume", "more", "--max", "4"]);
    let status = world.wait_end("more");
    assert_eq!((&status["iteration"], &status["tokens"]), (&json!(4), &json!(60)), "{status}");
    assert_eq!(world.file_of("steadfast/more", "log.txt"), "1\n2\n3\n4");
    assert_eq!(world.commits_of("more").len(), 4);
}

#[test]
fn a_run_that_reached_its_budget_is_resumed_with_a_larger_one() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _worker = world.driver("w1", "1");
    let agent = world.writer("0");
    // Each agent spends a cent.
    world.start_loop("work", "dear", &agent, &["--max", "4", "--usd", "0.02"]);
    let status = world.wait_end("dear");
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("budget_usd"), &json!(2)), "{status}");
    let refused = world.run(&["fleet", "resume", "dear"]);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
    let wrong = world.run(&["fleet", "resume", "dear", "--usd", "much"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", String::from_utf8_lossy(&wrong.stderr));
    world.ok(&["fleet", "resume", "dear", "--usd", "1"]);
    let status = world.wait_end("dear");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(4)), "{status}");
}

#[test]
fn a_stage_waits_for_a_yes_and_a_message_reaches_the_next_agent() {
    let Some(world) = World::new() else { return };
    world.add_pipeline(
        "ask",
        "name: ask\ndefaults: {delay: 0}\nstages:\n  - {name: first, prompt: 'first'}\n  \
         - {name: ship, prompt: 'ship', approve: 'Ship it?'}\n",
    );
    let _worker = world.driver("w1", "1");
    let agent = world.agent("reader", "cat >prompt-$STEADFAST_STAGE.txt\necho ok");
    world.ok(&["pipeline", "run", "ask", "q", "--agent", &agent, "--fleet", "--detach"]);
    until("the stage waits", || (world.status("q")["stages"][1]["status"] == "awaiting_approval").then_some(()));
    let page = world.ok(&["fleet", "status", "q"]);
    assert!(page.contains("steadfast fleet approve q ship"), "{page}");
    world.ok(&["fleet", "say", "q", "Mind the gap"]);
    world.ok(&["fleet", "approve", "q", "--note", "go on"]);
    let status = world.wait_end("q");
    assert_eq!(status["status"], json!("completed"), "{status}");
    assert_eq!(status["approvals"][0]["approved"], json!(true), "{status}");
    assert!(world.file_of("steadfast/q", "prompt-ship.txt").contains("Mind the gap"));
    world.ok(&["pipeline", "run", "ask", "r", "--agent", &agent, "--fleet", "--detach"]);
    until("the stage waits", || (world.status("r")["stages"][1]["status"] == "awaiting_approval").then_some(()));
    world.ok(&["fleet", "reject", "r", "ship"]);
    let status = world.wait_end("r");
    assert_ne!(status["status"], json!("running"), "{status}");
    assert_eq!(status["stages"][1]["iterations_run"], json!(0), "{status}");
}

#[test]
fn doctor_names_what_is_missing() {
    let Some(world) = World::new() else { return };
    let output = world.run(&["fleet", "doctor", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    valid("doctor", &found);
    let check = |found: &Value, id: &str| {
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check {id}: {found}"))
    };
    assert_eq!(output.status.code(), Some(4), "no worker drives: {found}");
    assert_eq!(check(&found, "workers:steadfast")["status"], json!("fail"));
    assert_eq!(check(&found, "git")["status"], json!("ok"));
    let _worker = world.driver("w1", "1");
    let found = until("the worker is seen", || {
        let output = world.run(&["fleet", "doctor", "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).ok()?;
        (check(&found, "workers:steadfast")["status"] == "ok").then_some(found)
    });
    assert_eq!(check(&found, "workers:steadfast-agent-command")["status"], json!("ok"), "{found}");
    assert_eq!(check(&found, "clock")["status"], json!("ok"), "{found}");
}

#[test]
fn a_worker_takes_only_what_its_owner_allowed() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _driver = world.driver("driver", "0");
    for (more, word) in
        [(&["--agents", "command"][..], "--any-repo"), (&["--any-repo", "--agents", "cat"], "unknown agent")]
    {
        let output = world.run(&[&["fleet", "worker"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(word), "{said}");
    }
    let _strict = world.worker("strict", &["--slots", "1", "--repo", "ssh://git.example.com/other.git"]);
    let agent = world.writer("0");
    world.start_loop("work", "choosy", &agent, &["--max", "1"]);
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(world.ran().len(), 0, "the strict worker starts no agent");
    let _open = world.worker("open", &["--slots", "1"]);
    let status = world.wait_end("choosy");
    assert_eq!(status["status"], json!("completed"), "{status}");
    assert_eq!(status["history"][0]["attempts"], json!(1), "to be refused is no attempt: {status}");
}

#[test]
fn a_label_chooses_the_worker() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _driver = world.driver("driver", "2");
    let agent = world.agent("where", "cat >/dev/null\necho \"$HOME\" >where.txt");
    world.start_loop("work", "labelled", &agent, &["--max", "1", "--label", "gpu"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(world.status("labelled")["status"], json!("running"));
    let _gpu = world.worker("gpu", &["--slots", "1", "--label", "gpu"]);
    world.wait_end("labelled");
    let home = world.file_of("steadfast/labelled", "where.txt");
    assert!(home.ends_with("/gpu"), "{home}");
}
