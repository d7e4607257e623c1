//! Worktrees of runs from the command line: where the work ends up.

use serde_json::json;

use crate::env::finish;
use crate::runs::World;

const PARALLEL: &str = "defaults: {delay: 0}
stages:
  - {name: p, runs: 2, parallel: true, prompt: go}
  - {name: after, prompt: 'got ${INPUTS}'}
";

fn world(yaml: &str) -> World {
    let world = World::new();
    world.repository();
    world.write(&world.in_project("p.yaml"), yaml);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "plan"]);
    world
}

#[test]
fn git_variables_of_another_repository_are_removed() {
    let yaml = "defaults: {delay: 0}
stages:
  - {name: p, runs: 2, parallel: true, prompt: go}
  - {name: after, prompt: go, runs: 3, command: '! env | grep -q ^GIT_DIR= && ! env | grep -q ^GIT_INDEX_FILE='}
";
    let world = world(yaml);
    let agent = world.agent(
        "echo $STEADFAST_ITERATION > mine; [ $STEADFAST_STAGE = p ] || rm mine; git add -A; env | grep '^GIT_' | sort",
    );
    let main = world.git(&["rev-parse", "main"]);
    let project = world.env.project();
    let mut command = world.env.command(&["pipeline", "run", "p.yaml", "gd", "--agent", &agent, "--json"]);
    // As git sets them in a hook, and as users export them.
    let command = command.env("GIT_DIR", project.join(".git")).env("GIT_INDEX_FILE", ".git/index");
    let command = command.env("GIT_WORK_TREE", &project).env("GIT_PREFIX", "").env("GIT_CONFIG_COUNT", "0");
    let status = finish(command, b"").succeeds().json();
    assert_eq!(status["stages"][1]["iterations_run"], json!(1), "the check saw none of them: {status}");
    assert_eq!(world.git(&["rev-parse", "main"]), main);
    for iteration in 1..=2 {
        assert_eq!(world.git(&["show", &format!("steadfast/gd/1-{iteration}:mine")]), format!("{iteration}\n"));
    }
    let said = std::fs::read_to_string(world.claude("pipeline-runs/gd/stage-1-p/run-1.md")).unwrap();
    assert_eq!(said.trim(), "GIT_CONFIG_COUNT=0");
}

#[test]
fn work_on_a_detached_head_is_on_the_reported_branch() {
    let world = world(PARALLEL);
    let agent = world.agent("git checkout -q --detach; echo $STEADFAST_ITERATION > mine");
    world.run(&["pipeline", "run", "p.yaml", "det", "--agent", &agent]).succeeds();
    let history = world.status("pipeline", "det")["history"].clone();
    for iteration in 1..=2 {
        let branch = format!("steadfast/det/1-{iteration}");
        assert_eq!(history[iteration - 1]["branch"], json!(branch));
        assert_eq!(world.git(&["show", &format!("{branch}:mine")]), format!("{iteration}\n"));
    }
}

#[test]
fn a_worktree_with_an_inner_repository_is_kept_and_reported() {
    let world = world("defaults: {delay: 0}\nstages:\n  - {name: p, runs: 1, parallel: true, prompt: go}\n");
    let agent = world
        .agent("git init -q lib; cd lib; echo c > c; git add -A; git -c user.name=A -c user.email=a@b commit -qm c");
    let output = world.run(&["pipeline", "run", "p.yaml", "n", "--agent", &agent]);
    let worktree = world.status("pipeline", "n")["history"][0]["worktree"].as_str().unwrap().to_owned();
    let why = "`lib` is another repository, whose work exists nowhere else";
    let told = format!("p 1: the worktree {worktree} stays: {why}");
    assert!(output.succeeds().stderr.contains(&told), "{output:?}");
    assert!(std::path::Path::new(&worktree).join("lib/c").exists());
    let page = world.run(&["pipeline", "status", "n"]).stdout;
    assert!(page.contains(&format!("branch steadfast/n/1-1 (worktree {worktree} stays: {why})")), "{page}");
    assert_eq!(world.run(&["pipeline", "cleanup", "--json"]).json()["worktrees"], json!([]));
}

#[test]
fn parallel_agents_of_a_run_in_a_worktree_see_what_it_did() {
    let yaml = "defaults: {delay: 0}
stages:
  - {name: a, prompt: go}
  - {name: b, runs: 2, parallel: true, prompt: go}
  - {name: c, prompt: '${INPUTS}'}
";
    let world = world(yaml);
    let agent = world.agent("cat > asked; echo $STEADFAST_STAGE $STEADFAST_ITERATION >> lines");
    world.run(&["pipeline", "run", "p.yaml", "w", "--agent", &agent, "--worktree"]).succeeds();
    let lines = |branch: &str| world.git(&["show", &format!("{branch}:lines")]);
    assert_eq!(lines("steadfast/w/2-1"), "a 1\nb 1\n");
    assert_eq!(lines("steadfast/w/2-2"), "a 1\nb 2\n");
    assert_eq!(lines("steadfast/w/run"), "a 1\nc 1\n");
    // Later stages get the branch names, also of agents that printed nothing.
    let asked = world.git(&["show", "steadfast/w/run:asked"]);
    let heading = |number: u32| format!("## b {number} (branch steadfast/w/2-{number})\n\n(no output)");
    assert_eq!(asked, format!("{}\n\n{}", heading(1), heading(2)));
}

#[test]
fn a_name_conflict_changes_the_branch_and_status_shows_it() {
    let world = world(PARALLEL);
    world.git(&["branch", "steadfast"]);
    let agent = world.agent("echo $STEADFAST_ITERATION > mine");
    let output = world.run(&["pipeline", "run", "p.yaml", "a.lock", "--agent", &agent]);
    assert!(output.succeeds().stdout.contains("branch steadfast-a-lock-1-1"), "{output:?}");
    assert_eq!(world.git(&["show", "steadfast-a-lock-1-2:mine"]), "2\n");
}

#[test]
fn uncommitted_changes_are_reported_once() {
    let world = world(PARALLEL);
    world.write(&world.in_project("new.txt"), "new");
    let told = "worktrees start at the last commit: uncommitted changes (1 file: new.txt) are not in them";
    let agent = world.agent("true");
    let output = world.run(&["pipeline", "run", "p.yaml", "d", "--agent", &agent]);
    assert_eq!(output.succeeds().stderr.matches(&format!("note: {told}")).count(), 1, "{output:?}");
    let id = world.status("pipeline", "d")["run_id"].as_str().unwrap().to_owned();
    let log = std::fs::read_to_string(world.env.home().join("runs").join(id).join("engine.log")).unwrap();
    assert_eq!(log.matches(told).count(), 1, "{log}");
}

#[test]
fn a_git_failure_is_reported_with_its_reason() {
    let world = world(PARALLEL);
    let tools = world.env.path("tools");
    std::fs::create_dir_all(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/sh", tools.join("sh")).unwrap();
    let agent = world.agent("true");
    let mut command = world.env.command(&["pipeline", "run", "p.yaml", "g", "--agent", &agent]);
    let output = finish(command.env("PATH", &tools), b"");
    let told = output.fails_with(4, "cannot run git, which worktrees need").stderr.clone();
    assert!(told.contains("install git"), "{told}");
    // As in a container where the project belongs to another user.
    let mut command = world.env.command(&["pipeline", "run", "p.yaml", "g", "--agent", &agent]);
    let output = finish(command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"), b"");
    let told = output.fails_with(4, "fatal: detected dubious ownership in repository at").stderr.clone();
    assert!(told.contains("safe.directory"), "{told}");
}
