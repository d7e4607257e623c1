//! `steadfast run "OBJECTIVE"`: a goal pursued headless, with its record, its evidence and its limits.

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::runs::World;

fn run(world: &World, script: &str, more: &[&str]) -> crate::env::Output {
    let agent = world.agent(script);
    world.run(&[&["run", "Ship <it> & ${ITERATION} now", "--agent", &agent], more].concat())
}

fn goal(world: &World, session: &str) -> Value {
    world.run(&["goal", "status", "--session", session, "--json"]).json()["goal"].clone()
}

fn kinds(world: &World) -> Vec<String> {
    world.env.event_kinds()
}

#[test]
fn a_goal_is_pursued_until_its_checks_pass_and_the_evidence_is_kept() {
    let world = World::new();
    let output = run(
        &world,
        "cat > prompt; echo x >> tries; wc -l < tries",
        &["--verify", "test $(wc -l < tries) -ge 2", "--json"],
    );
    let status = output.succeeds().json();
    let name = status["name"].as_str().unwrap();
    assert!(name.starts_with("run-"), "{name}");
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("verify"), &json!(2)));
    let goal = goal(&world, name);
    assert_eq!((&goal["status"], &goal["continuations_used"]), (&json!("complete"), &json!(2)));
    assert_eq!(goal["objective"], json!("Ship <it> & ${ITERATION} now"));
    assert_eq!(goal["last_verification"]["exit_code"], json!(0));
    let evidence = world.env.sql("SELECT exit_code, command FROM verifications ORDER BY id");
    assert_eq!(evidence.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["1", "0"]);
    assert_eq!(
        kinds(&world),
        [
            "goal_created",
            "verification_failed",
            "run_iteration",
            "verification_passed",
            "run_iteration",
            "goal_completed_by_self_update"
        ]
    );
    let payload = world.env.sql("SELECT payload FROM goal_events ORDER BY id DESC LIMIT 1");
    assert!(payload[0][0].contains("\"verification\""), "{payload:?}");
    // The objective is data: escaped, and its variables are not replaced.
    let prompt = std::fs::read_to_string(world.in_project("prompt")).unwrap();
    assert!(prompt.contains("Ship &lt;it&gt; &amp; ${ITERATION} now") && prompt.contains("iteration 2 of"), "{prompt}");
    let history = world.run(&["goal", "history", "--all", "--format=json"]).json();
    assert_eq!(history["goals"][0]["session_id"], json!(name));
}

#[test]
fn without_checks_the_agents_promise_counts() {
    let world = World::new();
    let script = "cat > prompt; [ $STEADFAST_ITERATION -ge 2 ] && sed -n 's/.*\\(<promise>.*<\\/promise>\\).*/\\1/p' prompt || echo not yet";
    let status = run(&world, script, &["--json"]).succeeds().json();
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("promise"), &json!(2)));
    assert_eq!(goal(&world, status["name"].as_str().unwrap())["status"], json!("complete"));
}

#[test]
fn a_stop_decision_counts_as_the_promise_unless_there_are_checks() {
    let world = World::new();
    let script =
        "cat > prompt; echo '{\"summary\": \"all done\", \"decision\": \"stop\"}' > $STEADFAST_RESULT; echo x >> tries";
    let status = run(&world, script, &["--json"]).succeeds().json();
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("promise"), &json!(1)));
    assert_eq!(goal(&world, status["name"].as_str().unwrap())["status"], json!("complete"));
    let prompt = std::fs::read_to_string(world.in_project("prompt")).unwrap();
    assert!(prompt.contains("result.json") && !prompt.contains("${RESULT}"), "{prompt}");
    let status = run(&world, script, &["--json", "--verify", "test $(wc -l < tries) -ge 3"]).succeeds().json();
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("verify"), &json!(2)));
}

#[test]
fn a_limit_is_exit_5_and_no_progress_with_failing_checks_is_exit_6() {
    let world = World::new();
    // A repeated prompt is not a promise.
    let output = run(&world, "cat; echo $STEADFAST_ITERATION", &["--max", "2", "--json"]);
    assert_eq!((output.code, &output.json()["reason"]), (5, &json!("max_iterations")), "{output:?}");
    // The time limit ends a run during an attempt.
    let output = run(&world, "sleep 60", &["--max-hours", "0.0005", "--json"]);
    assert_eq!((output.code, &output.json()["reason"]), (5, &json!("max_hours")), "{output:?}");
    let moving = "echo x >> tries; wc -l < tries";
    let output = run(&world, moving, &["--verify", "false", "--max", "2", "--json"]);
    assert_eq!((output.code, &output.json()["reason"]), (5, &json!("max_iterations")), "{output:?}");
    let limited = goal(&world, output.json()["name"].as_str().unwrap());
    assert_eq!((&limited["status"], &limited["paused_reason"]), (&json!("paused"), &json!("continuation_cap")));
    let output = run(&world, "echo the same", &["--verify", "false", "--json"]);
    assert_eq!((output.code, &output.json()["reason"]), (6, &json!("no_progress")), "{output:?}");
    let stuck = goal(&world, output.json()["name"].as_str().unwrap());
    assert_eq!(stuck["paused_reason"], json!("no_progress"));
    let output = run(&world, "exit 7", &["--json"]);
    assert_eq!((output.code, &output.json()["status"]), (1, &json!("failed")), "{output:?}");
}

#[test]
fn a_limited_goal_continues_when_its_run_is_resumed() {
    let world = World::new();
    let moving = "echo x >> tries; wc -l < tries";
    let output = run(&world, moving, &["--verify", "test $(wc -l < tries) -ge 3", "--max", "2", "--json"]);
    let name = output.json()["name"].as_str().unwrap().to_owned();
    world.run(&["loop", "resume", &name, "--max", "5"]).succeeds();
    let goal = goal(&world, &name);
    assert_eq!((&goal["status"], &goal["continuations_used"]), (&json!("complete"), &json!(3)));
    assert!(kinds(&world).contains(&"goal_resumed".to_owned()));
}

#[test]
fn pausing_or_completing_the_goal_ends_its_run() {
    for (verb, code, reason) in [("pause", "killed", "goal_paused"), ("complete", "completed", "goal_completed")] {
        let world = World::new();
        let started = run(&world, "echo $$ > agent; sleep 60", &["--detach", "--json"]);
        let name = started.succeeds().json()["name"].as_str().unwrap().to_owned();
        eventually(|| world.lines("agent").pop());
        assert_eq!(goal(&world, &name)["status"], json!("active"));
        // It is not an orphan while its engine lives.
        assert_eq!(world.run(&["goal", "cleanup", "--list", "--older-than", "0", "--json"]).json()["goals"], json!([]));
        world.run(&["goal", verb, "--session", &name]).succeeds();
        let ended = world.ends("loop", &name);
        assert_eq!((&ended["status"], &ended["reason"]), (&json!(code), &json!(reason)));
    }
}

#[test]
fn the_next_engine_updates_the_goal_after_a_crash() {
    // The third step commits the first iteration; the fifth commits the second and ends the run.
    for (point, counted) in [("engine.saved:3", 0), ("engine.saved:5", 1)] {
        let world = World::new();
        let agent = world.agent("echo x >> tries; wc -l < tries");
        let arguments = ["run", "Count", "--agent", &agent, "--verify", "test $(wc -l < tries) -ge 2"];
        let mut command = world.env.command(&arguments);
        crate::env::finish(command.env("STEADFAST_CRASH_AT", point), b"");
        // Not from `list`, which publishes what the engine left.
        let name = world.env.sql("SELECT name FROM runs").remove(0).remove(0);
        assert_eq!(goal(&world, &name)["continuations_used"], json!(counted), "{point}");
        assert_eq!(world.run(&["loop", "resume", &name]).code, 0, "{point}");
        let goal = goal(&world, &name);
        assert_eq!((&goal["status"], &goal["continuations_used"]), (&json!("complete"), &json!(2)), "{point}");
        assert_eq!(world.env.sql("SELECT exit_code FROM verifications ORDER BY id"), [["1"], ["0"]], "{point}");
    }
}

#[test]
fn evidence_is_kept_once_and_only_together_with_what_the_goal_counts() {
    let world = World::new();
    world.env.start(&["something else"]);
    world.env.execute(
        "CREATE TRIGGER nothing_counts BEFORE UPDATE OF continuations_used ON goals
         WHEN NEW.continuations_used > OLD.continuations_used BEGIN SELECT RAISE(ABORT, 'not now'); END",
    );
    let counting = "echo x >> tries; wc -l < tries";
    let output = run(&world, counting, &["--verify", "test $(wc -l < tries) -ge 3", "--json"]);
    let name = output.succeeds().json()["name"].as_str().unwrap().to_owned();
    let of_run = format!(" FROM goal_events WHERE session_id = '{name}' ORDER BY id");
    assert_eq!(world.env.sql("SELECT exit_code FROM verifications"), [[""; 0]; 0]);
    assert_eq!(world.env.sql(&format!("SELECT kind{of_run}")), [["goal_created"]]);
    world.env.execute("DROP TRIGGER nothing_counts");
    for _ in 0..2 {
        world.status("loop", &name);
        assert_eq!(world.env.sql("SELECT exit_code FROM verifications ORDER BY id"), [["1"], ["1"], ["0"]]);
        assert_eq!(
            world.env.sql(&format!("SELECT kind{of_run}")).concat(),
            [
                "goal_created",
                "verification_failed",
                "verification_failed",
                "verification_passed",
                "run_iteration",
                "goal_completed_by_self_update"
            ]
        );
    }
}

#[test]
fn a_goal_that_a_person_completed_gets_no_more_evidence() {
    let world = World::new();
    let agent = world.agent("echo x >> tries; wc -l < tries");
    let arguments = ["run", "Count", "--agent", &agent, "--verify", "false"];
    crate::env::finish(world.env.command(&arguments).env("STEADFAST_CRASH_AT", "engine.saved:3"), b"");
    let name = world.run(&["loop", "list", "--json"]).json()["runs"][0]["name"].as_str().unwrap().to_owned();
    world.run(&["goal", "complete", "--session", &name]).succeeds();
    world.run(&["loop", "kill", &name]).succeeds();
    for _ in 0..2 {
        assert_eq!(world.status("loop", &name)["iteration"], json!(1));
    }
    assert_eq!(kinds(&world), ["goal_created", "goal_completed_by_user"]);
    assert_eq!(world.env.sql("SELECT exit_code FROM verifications"), [[""; 0]; 0]);
}

#[test]
fn a_run_is_not_created_without_its_goal() {
    let world = World::new();
    world.env.start(&["something else"]);
    world.env.execute("CREATE TRIGGER no_goals BEFORE INSERT ON goals BEGIN SELECT RAISE(ABORT, 'not now'); END");
    run(&world, "echo x >> tries", &[]).fails_with(4, "not now");
    assert_eq!(world.env.sql("SELECT run_id FROM runs"), [[""; 0]; 0]);
    assert!(std::fs::read_dir(world.env.home().join("runs")).unwrap().next().is_none());
    assert!(!world.claude("loop-sessions.json").exists() && world.lines("tries").is_empty());
}

#[test]
fn a_run_whose_goal_was_deleted_cannot_be_resumed() {
    let world = World::new();
    let moving = "echo x >> tries; wc -l < tries";
    let output = run(&world, moving, &["--max", "1", "--json"]);
    let name = output.json()["name"].as_str().unwrap().to_owned();
    world.env.execute("DELETE FROM goals");
    world.run(&["loop", "resume", &name, "--max", "3"]).fails_with(3, "its goal no longer exists");
    assert_eq!(world.lines("tries").len(), 1);
}

#[test]
fn empty_objectives_and_checks_are_refused() {
    let world = World::new();
    world.run(&["run", "  "]).fails_with(1, "the objective is empty");
    world.run(&["run", &"x".repeat(4_001)]).fails_with(1, "4001 characters");
    world.run(&["run", "x", "--verify", " "]).fails_with(1, "invalid command");
    assert!(!world.env.store().exists());
}
