//! What runs leave behind goes after a while, and only what is ours and over.

use std::time::Duration;

use serde_json::{Value, json};

use super::{DAY, START};
use crate::attempts::eventually;
use crate::env::{Env, finish};
use crate::runs::World;

#[test]
fn old_runs_go_with_their_folders_and_unsaved_work_stays() {
    let world = World::new();
    world.repository();
    let env = &world.env;
    world.loop_type("count", "completion: fixed-n\n");
    for name in ["old", "unsaved"] {
        world
            .loop_run(
                &["count", name],
                "echo out > made; git add -A; git commit -qm made || true",
                &["--max", "1", "--worktree"],
            )
            .succeeds();
    }
    let ids = env.sql("SELECT run_id FROM runs ORDER BY name");
    assert_eq!(ids.len(), 2);
    let unsaved = env.home().join("worktrees").join(&ids[1][0]);
    let worktrees: Vec<_> =
        std::fs::read_dir(&unsaved).map_or(Vec::new(), |entries| entries.map(|entry| entry.unwrap().path()).collect());
    let worktree = worktrees.iter().find(|path| path.join(".git").exists());
    if let Some(worktree) = worktree {
        std::fs::write(worktree.join("not committed"), "work").unwrap();
    }
    world.run(&["loop", "cleanup"]).succeeds();
    assert!(env.home().join("runs").join(&ids[0][0]).is_dir(), "not old yet");
    env.age_all(100);
    env.execute("DELETE FROM upkeep");
    world.run(&["loop", "cleanup"]).succeeds();
    let left = env.sql("SELECT name FROM runs ORDER BY name");
    assert!(!env.home().join("runs").join(&ids[0][0]).exists());
    assert_eq!(env.sql("SELECT count(*) FROM run_attempts WHERE run_id NOT IN (SELECT run_id FROM runs)"), [["0"]]);
    if let Some(worktree) = worktree {
        assert_eq!(left, [["unsaved"]]);
        assert!(worktree.join("not committed").exists());
        assert!(env.home().join("runs").join(&ids[1][0]).is_dir());
    } else {
        assert_eq!(left.len(), 0, "a worktree whose work is committed is removed when its run ends");
    }
}

#[test]
fn outputs_of_runs_go_after_output_days_and_the_runs_stay() {
    let world = World::new();
    let env = &world.env;
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[retention]\noutput_days = 2\nruns_days = 3\n").unwrap();
    world.loop_type("count", "completion: fixed-n\n");
    world.loop_run(&["count", "old"], "echo out", &["--max", "1"]).succeeds();
    let run = env.home().join("runs").join(&env.sql("SELECT run_id FROM runs")[0][0]);
    let is_printed = || run.join("1-1-1").is_dir();
    let cleaned = |days: i64| {
        env.age_all(days);
        env.execute("DELETE FROM upkeep");
        world.run(&["loop", "cleanup"]).succeeds();
        (is_printed(), env.number("SELECT count(*) FROM runs"))
    };
    assert_eq!(cleaned(1), (true, 1));
    assert_eq!(cleaned(4), (false, 1), "its row counts to what was spent, so it stays for 14 days");
    assert_eq!(cleaned(10), (false, 0));
}

#[test]
fn outputs_of_headless_agents_are_bounded_in_size_and_time() {
    let env = Env::new();
    env.start(&["Ship it"]);
    let logs = env.home().join("log");
    std::fs::create_dir_all(&logs).unwrap();
    let (large, old, other) = (logs.join("headless-1.log"), logs.join("headless-2.log"), logs.join("watch.log"));
    std::fs::write(&large, vec![b'x'; 9 << 20]).unwrap();
    for path in [&old, &other] {
        std::fs::write(path, "x").unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_hours(31 * 24)).unwrap();
    }
    env.hook("s9", &json!({"hook_event_name": START, "source": "startup"}));
    assert_eq!(std::fs::metadata(&large).unwrap().len(), 0);
    assert!(!old.exists() && other.exists());
}

/// Makes the runs in the store this many days older, in their state and folders too.
fn age_runs(env: &Env, days: i64) {
    env.age_all(days);
    env.execute("UPDATE runs SET state_json = json_set(state_json, '$.started_at_ms', started_at_ms)");
    for row in env.sql("SELECT run_id, completed_at_ms FROM runs WHERE completed_at_ms IS NOT NULL") {
        let published = env.home().join("runs").join(&row[0]).join("published");
        if published.exists() {
            std::fs::write(published, &row[1]).unwrap();
        }
    }
    env.execute("DELETE FROM upkeep");
}

/// What a run left, in the order of their names: its status, and whether its folder has what its agents printed.
fn left_of_runs(world: &World) -> Vec<(String, bool)> {
    let rows = world.env.sql("SELECT status, run_id FROM runs ORDER BY kind, name");
    let printed = |id: &str| world.env.home().join("runs").join(id).join("1-1-1").is_dir();
    rows.into_iter().map(|row| (row[0].clone(), printed(&row[1]))).collect()
}

#[test]
fn runs_whose_engine_died_long_ago_end_and_go() {
    let world = World::new();
    let env = &world.env;
    world.loop_type("count", "completion: fixed-n\nmax: 3");
    let stages = "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: go}\n  - {name: two, prompt: go}\n";
    world.write(&world.in_project("p.yaml"), stages);
    let agent = world.agent("echo said");
    for run in [&["loop", "run", "count", "dead"][..], &["pipeline", "run", "p.yaml", "dead"]] {
        let mut command = env.command(&[run, &["--agent", &agent]].concat());
        let output = finish(command.env("STEADFAST_CRASH_AT", "engine.started:2"), b"");
        assert_ne!(output.code, 0, "{output:?}");
    }
    // This one lives and waits.
    let waiting = world.agent("until [ -f go ]; do sleep 0.05; done; echo said");
    let mut engine = world.spawn(&["loop", "run", "count", "live", "--max", "1", "--agent", &waiting]);
    eventually(|| (left_of_runs(&world).iter().filter(|(_, is_printed)| *is_printed).count() == 3).then_some(()));
    let is_printed = |status: &str, is_there: bool| (status.to_owned(), is_there);
    let after = |days: i64| {
        age_runs(env, days);
        env.upkeep();
        left_of_runs(&world)
    };
    let live = is_printed("running", true);
    assert_eq!(after(20), [live.clone(), live.clone(), live.clone()], "they can be resumed");
    let dead = is_printed("unknown_termination", false);
    assert_eq!(after(20), [dead.clone(), live.clone(), dead]);
    for (file, key) in [("loop-state-dead.json", "loop-dead"), ("pipeline-runs/dead/state.json", "pipeline-dead")] {
        assert_eq!(world.json(file)["status"], "unknown_termination");
        assert_eq!(world.entry(key)["status"], "unknown_termination");
    }
    let output = world.claude("pipeline-runs/dead/stage-1-one/output.md");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "said\n");
    assert_eq!(after(100), [live]);
    assert_eq!(std::fs::read_dir(env.home().join("runs")).unwrap().count(), 1);
    world.write(&world.in_project("go"), "");
    assert!(engine.wait().unwrap().success());
    assert_eq!(world.status("loop", "live")["status"], "completed");
}

/// A folder that is gone shows nothing any more, so nothing waits for it.
#[test]
fn dead_runs_of_a_removed_project_go_too() {
    let world = World::new();
    let env = &world.env;
    world.write(&env.home().join("pipelines/p.yaml"), "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: go}\n");
    let agent = world.agent("echo said");
    let mut command = env.command(&["pipeline", "run", "p", "dead", "--agent", &agent]);
    finish(command.env("STEADFAST_CRASH_AT", "engine.attempt_ended"), b"");
    assert_eq!(left_of_runs(&world), [("running".to_owned(), true)]);
    std::fs::rename(env.project(), env.path("elsewhere")).unwrap();
    age_runs(env, 100);
    for _ in 0..20 {
        env.execute("UPDATE upkeep SET due_at_ms = 0 WHERE position <> ''");
        let mut watch = env.command(&["watch", "--once"]);
        finish(watch.current_dir(env.home()), b"").succeeds();
    }
    assert_eq!(left_of_runs(&world), []);
    assert_eq!(std::fs::read_dir(env.home().join("runs")).unwrap().count(), 0);
}

/// Makes the files below a folder this many days older, in their content too if it is JSON of ours.
fn age_files(folder: &std::path::Path, days: i64) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            age_files(&entry.path(), days);
            continue;
        }
        let changed = entry.metadata().unwrap().modified().unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        if let Ok(mut state) = serde_json::from_str::<Value>(&text)
            && let Some(ended) = state["completed_at"].as_str().and_then(steadfast_model::clock::parse_rfc3339)
        {
            state["completed_at"] = json!(steadfast_model::clock::to_rfc3339(ended - days * DAY));
            std::fs::write(entry.path(), state.to_string()).unwrap();
        }
        let file = std::fs::File::options().write(true).open(entry.path()).unwrap();
        let days = u64::try_from(days).unwrap();
        file.set_modified(changed - Duration::from_hours(days * 24)).unwrap();
    }
}

#[test]
fn cleanup_removes_the_state_files_of_runs_that_are_gone_from_the_store() {
    let world = World::new();
    let env = &world.env;
    world.loop_type("count", "completion: fixed-n\nmax: 1");
    let stages = "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: go, runs: 2}\n";
    world.write(&world.in_project("p.yaml"), stages);
    let agent = world.agent("echo said");
    let begin = |name: &str| {
        world.run(&["loop", "run", "count", name, "--agent", &agent]).succeeds();
        world.run(&["pipeline", "run", "p.yaml", name, "--agent", &agent]).succeeds();
    };
    ["gone", "gone", "kept", "edited"].into_iter().for_each(begin);
    world.write(&world.claude("loop-progress/artifacts-gone/plan"), "a copy");
    world.write(
        &world.claude("loop-state-byhand.json"),
        r#"{"status": "completed", "completed_at": "2020-01-01T00:00:00Z"}"#,
    );
    age_files(&world.claude(""), 100);
    let unchanged = world.run(&["loop", "cleanup", "--json"]).succeeds().json();
    assert_eq!(unchanged["files"], json!([]), "the store has all of them");
    // What was edited was written again.
    age_files(&world.claude(""), 100);
    let late =
        std::fs::File::options().write(true).open(world.claude("pipeline-runs/gone/stage-1-one/output.md")).unwrap();
    late.set_modified(std::time::SystemTime::now() - Duration::from_hours(95 * 24)).unwrap();
    world.write(&world.claude("pipeline-runs/edited/stage-1-one/notes.md"), "mine");
    world.write(&world.claude("loop-progress/progress-edited.txt"), "mine");
    env.execute("DELETE FROM runs WHERE name <> 'kept'");

    let clean = |kind: &str, more: &[&str]| {
        let done = world.run(&[&[kind, "cleanup", "--json"], more].concat()).succeeds().json();
        let mut files: Vec<String> = serde_json::from_value(done["files"].clone()).unwrap();
        files.sort();
        let claude = world.claude("").canonicalize().unwrap();
        files
            .iter()
            .map(|file| file.strip_prefix(&format!("{}/", claude.display())).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let of_loops = [
        "loop-progress/artifacts-gone/plan",
        "loop-progress/progress-gone.txt",
        "loop-state-edited.json",
        "loop-state-gone.json",
    ];
    assert_eq!(clean("loop", &["--dry-run"]), of_loops);
    assert!(world.claude("loop-state-gone.json").exists());
    assert_eq!(clean("loop", &[]), of_loops);
    assert_eq!(clean("loop", &[]), [""; 0]);
    let left = |file: &str| world.claude(file).exists();
    assert!(
        left("loop-state-kept.json") && left("loop-state-byhand.json") && left("loop-progress/progress-edited.txt")
    );
    assert!(!left("loop-state-gone.json") && !left("loop-progress/artifacts-gone"));
    assert!(left("pipeline-runs/gone"), "`pipeline cleanup` removes those of pipelines");
    clean("pipeline", &[]);
    assert!(left("pipeline-runs/gone/stage-1-one/output.md"), "changed five days after the end of its run");
    assert!(!left("pipeline-runs/gone/state.json") && !left("pipeline-runs/gone.previous-1"));
    assert!(left("pipeline-runs/kept/state.json") && left("pipeline-runs/edited/stage-1-one/notes.md"));
    assert!(!left("pipeline-runs/edited/state.json"));
}

/// Another home has a store of its own: what it does not know is not gone.
#[test]
fn cleanup_leaves_the_state_files_of_another_store() {
    let world = World::new();
    world.loop_type("count", "completion: fixed-n\nmax: 1");
    world.run(&["loop", "run", "count", "theirs", "--agent", &world.agent("echo said")]).succeeds();
    age_files(&world.claude(""), 100);
    let other = world.env.path("other.db");
    let cleaned = world.run(&["--db", other.to_str().unwrap(), "loop", "cleanup"]);
    cleaned.succeeds();
    // A store that is there and empty.
    world.run(&["--db", other.to_str().unwrap(), "goal", "start", "x", "--session", "s1"]).succeeds();
    world.run(&["--db", other.to_str().unwrap(), "loop", "cleanup"]).succeeds();
    assert!(world.claude("loop-state-theirs.json").exists());
    world.env.execute("DELETE FROM runs");
    world.run(&["loop", "cleanup"]).succeeds();
    assert!(!world.claude("loop-state-theirs.json").exists());
}

#[test]
fn a_dead_run_whose_files_cannot_be_read_holds_up_no_other() {
    let world = World::new();
    let env = &world.env;
    world.loop_type("count", "completion: fixed-n\nmax: 3");
    let agent = world.agent("echo said");
    for name in ["damaged", "over"] {
        let mut command = env.command(&["loop", "run", "count", name, "--agent", &agent]);
        finish(command.env("STEADFAST_CRASH_AT", "engine.started:2"), b"");
    }
    world.run(&["loop", "run", "count", "whole", "--agent", &agent]).succeeds();
    let damaged = &env.sql("SELECT run_id FROM runs WHERE name = 'damaged'")[0][0];
    let lock = env.home().join("runs").join(damaged).join("lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    age_runs(env, 20);
    age_runs(env, 20);
    env.upkeep();
    let statuses = env.sql("SELECT name, status FROM runs ORDER BY name");
    assert_eq!(statuses, [["damaged", "running"], ["over", "unknown_termination"], ["whole", "completed"]]);
    let is_printed = left_of_runs(&world).into_iter().map(|(_, is_printed)| is_printed);
    assert_eq!(is_printed.collect::<Vec<_>>(), [true, false, false], "outputs of the others are gone");
    let log = std::fs::read_to_string(env.home().join("log/upkeep.log")).unwrap();
    assert!(log.contains(lock.to_str().unwrap()), "{log}");
}

/// As a later version may write it.
#[test]
fn a_run_whose_row_cannot_be_read_holds_up_no_other() {
    let world = World::new();
    let env = &world.env;
    world.loop_type("count", "completion: fixed-n\nmax: 3");
    let agent = world.agent("echo said");
    for name in ["unreadable", "over"] {
        let mut command = env.command(&["loop", "run", "count", name, "--agent", &agent]);
        finish(command.env("STEADFAST_CRASH_AT", "engine.started:2"), b"");
    }
    env.execute("UPDATE runs SET plan_json = '{}' WHERE name = 'unreadable'");
    age_runs(env, 20);
    age_runs(env, 20);
    let cleaned = world.run(&["loop", "cleanup"]);
    assert!(cleaned.succeeds().stderr.contains("not removed: run "), "{cleaned:?}");
    let statuses = env.sql("SELECT name, status FROM runs ORDER BY name");
    assert_eq!(statuses, [["over", "unknown_termination"], ["unreadable", "running"]]);
}
