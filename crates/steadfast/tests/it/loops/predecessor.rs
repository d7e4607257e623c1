//! Known failures of earlier shell tools, by the numbers of a list of them: wrong results (6.1) and lost state (6.2).

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::attempts::{eventually, is_alive};
use crate::env::finish;
use crate::runs::{COUNTING, World};

fn iterations(state: &Value) -> Vec<i64> {
    state["history"].as_array().unwrap().iter().map(|entry| entry["iteration"].as_i64().unwrap()).collect()
}

#[test]
fn wrong_results_1_an_agent_that_fails_fails_the_run() {
    for (script, code) in [("exit 1", "exit code 1"), ("kill -9 $$", "signal 9")] {
        let world = World::new();
        world.loop_type("five", "completion: fixed-n\nruns: 5");
        let output = world.loop_run(&["five"], &format!("echo x >> tries; {script}"), &["--json"]);
        let status = output.json();
        assert_eq!((output.code, &status["status"], &status["iteration"]), (1, &json!("failed"), &json!(0)));
        // 8: the reason of the failure is shown.
        assert!(status["reason"].as_str().unwrap().contains(code), "{status}");
        assert_eq!((world.lines("tries").len(), &world.entry("loop-five")["status"]), (5, &json!("failed")));
    }
}

#[test]
fn wrong_results_2_a_missing_result_or_reported_error_is_a_failure() {
    for script in
        ["echo I forgot to vote", "echo '{\"decision\":\"error\",\"reasoning\":\"risky\"}' > $STEADFAST_RESULT"]
    {
        let world = World::new();
        world.loop_type("improve", "completion: plateau\nlimits: {errors: 2}");
        let output = world.loop_run(&["improve"], script, &["--json"]);
        let status = output.json();
        assert_eq!(
            (output.code, &status["status"], &status["iteration"]),
            (1, &json!("failed"), &json!(0)),
            "{script}"
        );
    }
}

#[test]
fn wrong_results_3_a_finished_name_starts_without_its_old_history() {
    let world = World::new();
    world.loop_type("improve", "completion: plateau");
    let script = "echo x >> tries; echo 'PLATEAU: true'";
    for tries in [2, 4] {
        world.loop_run(&["improve"], script, &[]).succeeds();
        assert_eq!(world.lines("tries").len(), tries);
        assert_eq!(iterations(&world.json("loop-state-improve.json")), [1, 2]);
    }
    let all = world.run(&["loop", "list", "--all", "--json"]).json();
    let newest = world.run(&["loop", "list", "--json"]).json();
    assert_eq!((all["runs"].as_array().unwrap().len(), newest["runs"].as_array().unwrap().len()), (2, 1));
}

#[test]
fn wrong_results_4_and_5_built_in_definitions_and_flags_work_from_any_project() {
    let world = World::new();
    let agent = world.agent("cat >> prompts; echo 'PLATEAU: true'; echo \"$STEADFAST_STAGE\" >> stages");
    let output = world.run(&["pipeline", "run", "quick-refine", "q", "--agent", &agent, "--max", "1", "-d"]);
    output.succeeds();
    let ended = world.ends("pipeline", "q");
    assert_eq!((&ended["reason"], &ended["max_iterations"]), (&json!("max_iterations"), &json!(1)));
    assert_eq!(world.lines("stages"), ["improve-plan", "refine-beads"]);
}

#[test]
fn wrong_results_6_inputs_reach_the_prompt_word_for_word() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let input = "foo & bar ${INPUTS} ${SESSION} \\1 $(id) `id` \u{1b}[31m $5 %s ä";
    std::fs::write(world.in_project("in.txt"), input).unwrap();
    world.loop_run(&["once", "word"], "cat > prompt", &["--input", "in.txt"]).succeeds();
    assert_eq!(std::fs::read_to_string(world.in_project("prompt")).unwrap(), format!("word 1 [{input}]\n"));
}

#[test]
fn wrong_results_7_a_killed_run_can_be_resumed() {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    let script = "echo $STEADFAST_ITERATION >> tries; [ $STEADFAST_ITERATION != 2 ] || [ -e go ] || sleep 60";
    world.loop_run(&["three"], script, &["-d"]).succeeds();
    eventually(|| Some(()).filter(|()| world.lines("tries").len() == 2));
    world.run(&["loop", "kill", "three"]).succeeds();
    std::fs::write(world.in_project("go"), "").unwrap();
    world.run(&["loop", "resume", "three"]).succeeds();
    assert_eq!(world.lines("tries"), ["1", "2", "2", "3"]);
    assert_eq!(iterations(&world.json("loop-state-three.json")), [1, 2, 3]);
}

/// 1: the engine dies after it recorded the last iteration. 2: between any two writes. 7: the files agree.
#[test]
fn lost_state_1_2_7_a_crash_anywhere_repeats_and_loses_nothing() {
    // Saved steps: the start, the end of the first iteration, and the end of the second with the end of the run.
    let points =
        ["before_save", "saved", "shown"].iter().flat_map(|at| (1..=3).map(move |nth| format!("engine.{at}:{nth}")));
    for point in points.chain(["engine.attempt_ended:1".to_owned(), "engine.attempt_ended:2".to_owned()]) {
        let world = World::new();
        world.loop_type("two", "completion: fixed-n\nruns: 2");
        let agent = world.agent(COUNTING);
        let mut command = world.env.command(&["loop", "run", "two", "--agent", &agent]);
        assert_eq!(finish(command.env("STEADFAST_CRASH_AT", &point), b"").code, -1, "{point}");
        let was_over = world.env.sql("SELECT status FROM runs")[0][0] == "completed";
        let output = world.run(&["loop", "resume", "two"]);
        // Resume publishes an end that was saved only; after a published end there is nothing to resume.
        assert!(output.code == 0 || (was_over && output.code == 3), "{point}: {output:?}");
        let status = world.status("loop", "two");
        assert_eq!((&status["status"], &status["reason"]), (&json!("completed"), &json!("fixed-n")), "{point}");
        assert_eq!(iterations(&status), [1, 2], "{point}");
        assert_eq!(world.lines("tries").len(), 2, "{point}");
        assert_eq!(iterations(&world.json("loop-state-two.json")), [1, 2], "{point}");
        assert_eq!(world.entry("loop-two")["status"], json!("completed"), "{point}");
        assert_eq!(world.json("loop-completions.json").as_array().unwrap().len(), 1, "{point}");
    }
}

/// 3: two writers of one file. 5: readers that see a partial file. 11: ends that are not recorded.
#[test]
fn lost_state_3_5_11_twenty_loops_at_once_in_one_project_lose_nothing() {
    let world = World::new();
    world.loop_type("two", "completion: fixed-n\nruns: 2");
    let agent = world.agent("echo done");
    let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
    let runs: Vec<_> = names.iter().map(|name| world.spawn(&["loop", "run", "two", name, "--agent", &agent])).collect();
    let mut waiting: Vec<_> = runs.into_iter().map(|run| std::thread::spawn(move || crate::runs::wait(run))).collect();
    while waiting.iter().any(|run| !run.is_finished()) {
        // Every read sees a complete file.
        if let Ok(text) = std::fs::read_to_string(world.claude("loop-sessions.json")) {
            serde_json::from_str::<Value>(&text).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for run in waiting.drain(..) {
        assert_eq!(run.join().unwrap().code, 0);
    }
    let registry = world.json("loop-sessions.json");
    assert_eq!(registry["sessions"].as_object().unwrap().len(), 20);
    for name in &names {
        assert_eq!(registry["sessions"][format!("loop-{name}")]["status"], json!("completed"), "{name}");
        assert_eq!(iterations(&world.json(&format!("loop-state-{name}.json"))), [1, 2], "{name}");
    }
    assert_eq!(world.json("loop-completions.json").as_array().unwrap().len(), 20);
}

#[test]
fn lost_state_4_an_orphan_agent_is_waited_for_and_never_doubled() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let script =
        "echo $$ >> agents; while [ ! -e go ]; do sleep 0.02; done; echo '{\"summary\":\"mine\"}' > $STEADFAST_RESULT";
    world.loop_run(&["once"], script, &["-d"]).succeeds();
    let orphan = eventually(|| world.lines("agents").pop());
    kill_process(world.engine("loop", "once"), Signal::KILL).unwrap();
    eventually(|| Some(()).filter(|()| world.status("loop", "once")["live"] == json!(false)));
    let resumed = world.spawn(&["loop", "resume", "once"]);
    world.engine("loop", "once");
    assert!(is_alive(&orphan));
    std::fs::write(world.in_project("go"), "").unwrap();
    assert_eq!(crate::runs::wait(resumed).code, 0);
    assert_eq!(world.lines("agents").len(), 1);
    assert_eq!(world.status("loop", "once")["history"][0]["summary"], json!("mine"));
}

/// 6: a lock file that is unlinked, or left by a dead engine, blocks nothing.
#[test]
fn lost_state_6_a_stale_lock_is_no_lock() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once"], "sleep 60", &["-d"]).succeeds();
    kill_process(world.engine("loop", "once"), Signal::KILL).unwrap();
    let run_id = world.status("loop", "once")["run_id"].as_str().unwrap().to_owned();
    assert!(world.env.home().join("runs").join(run_id).join("lock").exists());
    world.run(&["loop", "kill", "once"]).succeeds();
}

/// 10: the recipe of the old tools could leave an empty registry.
#[test]
fn lost_state_10_an_empty_registry_is_moved_and_reported() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.write(&world.claude("loop-sessions.json"), "");
    let output = world.loop_run(&["once"], "true", &[]);
    assert!(output.succeeds().stderr.contains("loop-sessions.json.broken-1"), "{output:?}");
    assert_eq!(world.entry("loop-once")["status"], json!("completed"));
}

/// 12: unbounded growth.
#[test]
fn lost_state_12_ten_thousand_iterations_are_shown_and_continued() {
    let world = World::new();
    world.loop_type("many", "completion: {promise: DONE}\nlimits: {idle: 0}");
    let script = "[ -e go ] && echo '<promise>DONE</promise>' || echo no";
    assert_eq!(world.loop_run(&["many"], script, &["--max", "1"]).code, 5);
    let id = world.status("loop", "many")["run_id"].as_str().unwrap().to_owned();
    world.env.execute(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
         INSERT INTO run_iterations (run_id, stage, iteration, attempt, plateau, decision, summary, reasoning, fields_json,
           facts_json, exit_code, started_at_ms, committed_at_ms, tokens, cost_micros)
         SELECT '{id}', 1, i, 1, 0, NULL, 'did ' || i, NULL, '[]', '[]', 0, i * 1000, i * 1000 + 500, 10, 1 FROM n;
         UPDATE runs SET state_json = json_set(state_json, '$.stages[0].iterations', 10000);
         UPDATE run_stages SET iterations = 10000;"
    ));
    let status = world.status("loop", "many");
    assert_eq!((&status["iteration"], status["history"].as_array().unwrap().len()), (&json!(10_000), 10_000));
    let page = world.run(&["loop", "status", "many"]).succeeds().stdout.clone();
    assert!(page.contains("#10000") && page.lines().count() < 30, "{page}");
    std::fs::write(world.in_project("go"), "").unwrap();
    world.run(&["loop", "resume", "many", "--max", "10001"]).succeeds();
    assert_eq!(world.json("loop-state-many.json")["history"].as_array().unwrap().len(), 10_001);
}
