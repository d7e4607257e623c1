//! Git commands of agents neither end nor double a run, and the state files stay out of their commits.

use serde_json::{Value, json};

use crate::runs::World;

/// The commands that agents run, one in each iteration.
const COMMANDS: [&str; 8] = [
    "git add -A && git commit -qm mine --allow-empty",
    "git reset -q --hard old",
    "git checkout -qf other",
    "git clean -qfdx",
    "echo new > new; git stash -q -u; git stash pop -q",
    "git worktree add -q -b inside inside",
    "git checkout -q old -- .",
    "git add -f .claude && git commit -qm all && git reset -q --hard HEAD~1",
];

/// A script that runs them. It says what it did outside of the project, where git does not clean.
fn script(world: &World) -> String {
    let log = world.env.path("log");
    let cases: Vec<_> = (1..).zip(COMMANDS).map(|(number, command)| format!("{number}) {command};;")).collect();
    let cases = cases.join("\n");
    format!(
        "cat > /dev/null; export GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@e
        if [ -e {go} ]; then echo $STEADFAST_STAGE $STEADFAST_ITERATION >> {log}; else echo began >> {began}; sleep 60; fi
        [ $STEADFAST_STAGE = plan ] && echo 'the plan' > .claude/pipeline-runs/r/stage-1-plan/output.md
        [ $STEADFAST_STAGE = plan ] && echo 'the map' > map.md
        [ $STEADFAST_STAGE = plan ] || case $STEADFAST_ITERATION in\n{cases}\nesac
        # The engine looks at its files meanwhile.
        sleep 0.8; echo said",
        go = world.env.path("go").display(),
        began = world.env.path("began").display(),
        log = log.display(),
    )
}

fn log(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.env.path("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A repository with the commit `old`, which has the state files of a killed run, and the branch `other`, which has
/// those of other runs.
fn with_old_state(kind: &str, start: &[&str]) -> (World, String) {
    let world = World::new();
    world.repository();
    world.loop_type("turn", "completion: fixed-n");
    let stages = "defaults: {delay: 0}\nstages:\n  - {name: plan, prompt: go, artifacts: {map: map.md}}\n  - {name: many, runs: 8, prompt: go}\n\
                  \x20 - {name: sum, inputs: [plan], prompt: 'sum of ${INPUTS} ${ARTIFACTS.map}'}\n";
    world.write(&world.in_project("p.yaml"), stages);
    world.git(&["add", "p.yaml"]);
    world.git(&["commit", "-qm", "pipeline"]);
    let agent = world.agent(&script(&world));
    world.run(&[start, &["--agent", &agent, "-d"]].concat()).succeeds();
    crate::attempts::eventually(|| world.env.path("began").exists().then_some(()));
    world.run(&[kind, "kill", "r"]).succeeds();
    world.git(&["add", "-f", ".claude"]);
    world.git(&["commit", "-qm", "state"]);
    world.git(&["tag", "old"]);
    world.git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    world.write(&world.claude("loop-sessions.json"), "{\"sessions\": {\"loop-z\": {\"status\": \"killed\"}}}");
    world.write(&world.claude("loop-state-r.json"), "{\"session\": \"r\", \"status\": \"complete\"}");
    world.git(&["add", "-f", ".claude"]);
    world.git(&["commit", "-qm", "other state"]);
    world.git(&["checkout", "-q", "main"]);
    std::fs::write(world.env.path("go"), "").unwrap();
    (world, agent)
}

fn numbers(shown: &Value, stage: Option<u32>) -> Vec<u64> {
    let entries = shown["history"].as_array().unwrap().iter();
    let of_stage = entries.filter(|entry| stage.is_none_or(|stage| entry["stage"] == json!(stage)));
    of_stage.map(|entry| entry["iteration"].as_u64().unwrap()).collect()
}

fn shows_the_end(world: &World, kind: &str, state: &str) {
    let status = world.status(kind, "r");
    let state = world.json(state);
    let run_id = &state["run_id"];
    assert_eq!((&status["status"], &state["status"]), (&json!("completed"), &json!("completed")), "{status}");
    let entry = world.entry(&format!("{kind}-r"));
    assert_eq!((&entry["status"], &entry["run_id"]), (&json!("completed"), run_id), "{entry}");
    let ends = world.json("loop-completions.json");
    let ours: Vec<_> = ends.as_array().unwrap().iter().filter(|end| end["run_id"] == *run_id).collect();
    assert_eq!((ours.len(), &ours[0]["status"]), (1, &json!("completed")), "{ends}");
}

fn all() -> Vec<u64> {
    (1..=8).collect()
}

#[test]
fn state_files_stay_out_of_an_agents_commits() {
    let world = World::new();
    world.repository();
    world.loop_type("turn", "completion: fixed-n");
    let script = "echo $STEADFAST_ITERATION > mine; mkdir -p .claude/loops; echo x > .claude/loops/x
        git add -A && git -c user.name=T -c user.email=t@e commit -qm \"$STEADFAST_ITERATION\"
        echo y > y; git stash -q -u; [ -e .claude/loop-sessions.json ] || echo gone >> lost; git stash pop -q; rm y";
    world.loop_run(&["turn", "r"], script, &["--max", "2"]).succeeds();
    assert_eq!(world.git(&["ls-files"]), ".claude/loops/x\nmine\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert!(!world.in_project("lost").exists());
    let exclude = std::fs::read_to_string(world.in_project(".git/info/exclude")).unwrap();
    world.loop_run(&["turn", "again"], "true", &["--max", "1"]).succeeds();
    assert_eq!(std::fs::read_to_string(world.in_project(".git/info/exclude")).unwrap(), exclude, "written once");
}

/// What an agent does that begins a repository and commits everything.
const BEGIN: &str = "echo $STEADFAST_ITERATION > mine; git init -q -b main
    git add -A && git -c user.name=T -c user.email=t@e commit -qm \"$STEADFAST_ITERATION\"";

#[test]
fn state_files_stay_out_of_a_repository_that_begins_during_a_run() {
    let world = World::new();
    world.loop_type("turn", "completion: fixed-n");
    // The second iteration commits too, after `git clean` removed what is ignored.
    let script = format!("{BEGIN}; git clean -qfdx; sleep 1.2");
    world.loop_run(&["turn", "r"], &script, &["--max", "2"]).succeeds();
    assert_eq!(world.git(&["ls-files"]), "mine\n");
    assert_eq!(world.git(&["log", "--format=%s"]), "2\n1\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    let exclude = std::fs::read_to_string(world.in_project(".git/info/exclude")).unwrap();
    assert!(exclude.contains("/.claude/loop-sessions.json"), "{exclude}");
}

#[test]
fn a_repository_inside_the_one_of_the_start_is_kept_clean_too() {
    let world = World::new();
    std::fs::create_dir(world.env.project().join("inner")).unwrap();
    world.repository();
    world.loop_type("turn", "completion: fixed-n");
    let agent =
        world.agent("[ $STEADFAST_ITERATION = 1 ] && git init -q -b main; sleep 1.2; echo x > mine; git add -A");
    let mut command = world.env.command(&["loop", "run", "turn", "r", "--max", "2", "--agent", &agent]);
    std::fs::create_dir_all(world.in_project("inner/.claude/pipeline-runs")).unwrap();
    crate::env::finish(command.current_dir(world.in_project("inner")), b"").succeeds();
    assert!(world.in_project("inner/.claude/loop-sessions.json").exists());
    assert_eq!(world.git(&["-C", "inner", "ls-files"]), "mine\n");
}

#[test]
fn lines_that_are_deleted_during_a_run_are_written_again() {
    let world = World::new();
    world.repository();
    world.loop_type("turn", "completion: fixed-n");
    for (number, damage) in
        ["rm -r .git/info", "rm .git/info/exclude", "echo '*.log' > .git/info/exclude"].iter().enumerate()
    {
        let script = format!("echo $STEADFAST_ITERATION >> mine; {damage}; sleep 1.2; git add -A");
        world.loop_run(&["turn", &format!("r{number}")], &script, &["--max", "2"]).succeeds();
        assert_eq!(world.git(&["ls-files"]), "mine\n", "{damage}");
    }
    let exclude = std::fs::read_to_string(world.in_project(".git/info/exclude")).unwrap();
    assert!(exclude.ends_with("\n*.log\n"), "what others wrote stays: {exclude}");
}

#[test]
fn an_ignore_file_of_the_user_stays_and_ours_is_undone() {
    for of_user in [Some("*.log\n"), None] {
        let world = World::new();
        world.loop_type("turn", "completion: fixed-n");
        let file = world.claude(".gitignore");
        if let Some(text) = of_user {
            world.write(&file, text);
        }
        let read = || std::fs::read_to_string(&file).ok();
        world.loop_run(&["turn", "r"], "true", &["--max", "1"]).succeeds();
        assert_eq!(read().is_some_and(|text| text.contains("loop-sessions.json")), of_user.is_none());
        world.run(&["loop", "cleanup"]).succeeds();
        assert!(read().is_some(), "there are state files");
        for name in ["loop-sessions.json", "loop-state-r.json", "loop-completions.json"] {
            std::fs::remove_file(world.claude(name)).unwrap();
        }
        std::fs::remove_dir_all(world.claude("loop-progress")).unwrap();
        assert_eq!(
            world.run(&["loop", "cleanup", "--dry-run"]).succeeds().stdout.contains(".gitignore"),
            of_user.is_none()
        );
        assert!(read().is_some(), "a dry run changes nothing");
        assert_eq!(world.run(&["loop", "cleanup"]).succeeds().stdout.contains(".gitignore"), of_user.is_none());
        assert_eq!(read().as_deref(), of_user);
        // An uninstall removes it even where state files are left.
        world.loop_run(&["turn", "r"], "true", &["--max", "1"]).succeeds();
        world.run(&["setup", "--uninstall"]).succeeds();
        assert_eq!(read().as_deref(), of_user);
    }
}

#[test]
fn cleanup_removes_the_lines_when_no_state_file_is_left() {
    let world = World::new();
    world.repository();
    let exclude = world.in_project(".git/info/exclude");
    let before = std::fs::read_to_string(&exclude).unwrap_or_default();
    world.loop_type("turn", "completion: fixed-n");
    world.loop_run(&["turn", "r"], "true", &["--max", "1"]).succeeds();
    let read = || std::fs::read_to_string(&exclude).unwrap();
    assert!(read().contains("/.claude/loop-sessions.json"));
    world.run(&["loop", "cleanup"]).succeeds();
    assert!(read().contains("/.claude/loop-sessions.json"), "there are state files");
    std::fs::remove_dir_all(world.claude("")).unwrap();
    assert!(world.run(&["loop", "cleanup"]).succeeds().stdout.contains("info/exclude"));
    assert_eq!(read(), before);
}

#[test]
fn uninstall_removes_the_lines_of_every_project() {
    let world = World::new();
    world.repository();
    let exclude = world.in_project(".git/info/exclude");
    let before = std::fs::read_to_string(&exclude).unwrap_or_default();
    world.loop_type("turn", "completion: fixed-n");
    world.loop_run(&["turn", "r"], "true", &["--max", "1"]).succeeds();
    world.run(&["setup", "--uninstall", "--dry-run"]).succeeds();
    assert_ne!(std::fs::read_to_string(&exclude).unwrap(), before);
    world.run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(std::fs::read_to_string(&exclude).unwrap(), before);
}

#[test]
fn no_git_command_ends_or_doubles_a_new_loop_of_an_old_name() {
    let (world, agent) = with_old_state("loop", &["loop", "run", "turn", "r"]);
    let output = world.run(&["loop", "run", "turn", "r", "--max", "8", "--agent", &agent]);
    output.succeeds();
    assert!(output.stderr.contains("git rm -r --cached"), "{output:?}");
    assert_eq!(log(&world), (1..=8).map(|number| format!("turn {number}")).collect::<Vec<_>>());
    shows_the_end(&world, "loop", "loop-state-r.json");
    assert_eq!(numbers(&world.json("loop-state-r.json"), None), all());
}

#[test]
fn no_git_command_ends_or_doubles_a_resumed_loop() {
    let (world, _) = with_old_state("loop", &["loop", "run", "turn", "r", "--max", "8"]);
    world.run(&["loop", "resume", "r"]).succeeds();
    assert_eq!(log(&world), (1..=8).map(|number| format!("turn {number}")).collect::<Vec<_>>());
    shows_the_end(&world, "loop", "loop-state-r.json");
    assert_eq!(numbers(&world.json("loop-state-r.json"), None), all());
}

#[test]
fn no_git_command_ends_or_doubles_a_pipeline_or_loses_its_outputs() {
    let (world, agent) = with_old_state("pipeline", &["pipeline", "run", "p.yaml", "r"]);
    world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]).succeeds();
    let many = (1..=8).map(|number| format!("many {number}"));
    let expected: Vec<_> = ["plan 1".to_owned()].into_iter().chain(many).chain(["sum 1".to_owned()]).collect();
    assert_eq!(log(&world), expected);
    let state = "pipeline-runs/r/state.json";
    shows_the_end(&world, "pipeline", state);
    assert_eq!(numbers(&world.json(state), Some(2)), all());
    let read = |name: &str| std::fs::read_to_string(world.claude("pipeline-runs/r").join(name)).unwrap();
    assert_eq!(read("stage-1-plan/output.md"), "the plan\n");
    let outputs: Vec<_> = (1..=8).map(|number| read(&format!("stage-2-many/run-{number}.md"))).collect();
    assert_eq!(outputs, vec!["said\n"; 8]);
    assert_eq!(read("artifacts/map"), "the map\n");
    assert_eq!(read("pipeline.yaml"), std::fs::read_to_string(world.in_project("p.yaml")).unwrap());
}

#[test]
fn agents_in_worktrees_may_do_with_git_what_they_like() {
    let world = World::new();
    world.repository();
    let stages = "defaults: {delay: 0}\nstages:\n  - {name: apart, runs: 3, parallel: true, prompt: go}\n";
    world.write(&world.in_project("p.yaml"), stages);
    let agent = world.agent(
        "echo $STEADFAST_ITERATION > mine; git add -A; git -c user.name=T -c user.email=t@e commit -qm x
        git clean -qfdx; git reset -q --hard; echo said $STEADFAST_ITERATION",
    );
    world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]).succeeds();
    shows_the_end(&world, "pipeline", "pipeline-runs/r/state.json");
    let mut done = numbers(&world.json("pipeline-runs/r/state.json"), None);
    done.sort_unstable();
    assert_eq!(done, [1, 2, 3]);
    for number in 1..=3 {
        assert_eq!(world.git(&["ls-tree", "--name-only", "-r", &format!("steadfast/r/1-{number}")]), "mine\n");
    }
}

#[test]
fn the_notes_of_an_agent_survive_its_own_git_clean() {
    let world = World::new();
    world.repository();
    world.loop_type("turn", "completion: fixed-n");
    let script = "notes=.claude/loop-progress/progress-r.txt
        if [ $STEADFAST_ITERATION = 1 ]; then echo 'a lesson' >> $notes; else git clean -qfdx; sleep 1.2; cp $notes seen; fi";
    world.loop_run(&["turn", "r"], script, &["--max", "2"]).succeeds();
    let notes = std::fs::read_to_string(world.claude("loop-progress/progress-r.txt")).unwrap();
    assert!(notes.starts_with("# Progress: r\n") && notes.ends_with("a lesson\n"), "{notes}");
    assert_eq!(std::fs::read_to_string(world.in_project("seen")).unwrap(), notes, "and while it runs");
}

#[test]
fn a_second_home_is_refused_after_git_clean_too() {
    let world = World::new();
    world.repository();
    world.loop_type("turn", "completion: fixed-n");
    let cleaned = world.env.path("cleaned");
    let agent = world.agent(&format!("git clean -qfdx; sleep 1; touch {}; sleep 60", cleaned.display()));
    world.run(&["loop", "run", "turn", "r", "--max", "1", "--agent", &agent, "-d"]).succeeds();
    crate::attempts::eventually(|| cleaned.exists().then_some(()));
    world.loop_type_in(&world.env.path("home2/loops"), "turn", "completion: fixed-n");
    let mut elsewhere = world.env.command(&["loop", "run", "turn", "r", "--max", "1", "--agent", "true"]);
    let refused = crate::env::finish(elsewhere.env("STEADFAST_HOME", world.env.path("home2")), b"");
    refused.fails_with(3, "is already running");
    world.run(&["loop", "kill", "r"]).succeeds();
}

#[test]
fn cleanup_deletes_merged_branches_and_no_others() {
    let world = World::new();
    world.repository();
    let stages = "defaults: {delay: 0}\nstages:\n  - {name: apart, runs: 3, parallel: true, prompt: go}\n";
    world.write(&world.in_project("p.yaml"), stages);
    let agent = world.agent("[ $STEADFAST_ITERATION = 3 ] || echo x > mine-$STEADFAST_ITERATION; echo said");
    world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]).succeeds();
    world.git(&["merge", "-q", "steadfast/r/1-1"]);
    world.git(&["branch", "steadfast/r/mine"]);
    let branches = || world.git(&["for-each-ref", "--format=%(refname:strip=2)", "refs/heads"]);
    let before = branches();
    world.run(&["pipeline", "cleanup"]).succeeds();
    let dry = world.run(&["pipeline", "cleanup", "--branches", "--dry-run"]);
    assert!(dry.succeeds().stdout.contains("steadfast/r/1-1: branch would be deleted (merged)"), "{dry:?}");
    assert!(!dry.stdout.contains("its branch stays"), "{dry:?}");
    assert_eq!(branches(), before);
    let done = world.run(&["pipeline", "cleanup", "--branches", "--json"]).succeeds().json();
    assert_eq!(done["branches"], json!(["steadfast/r/1-1", "steadfast/r/1-3"]));
    assert_eq!(done["kept_branches"], json!({"steadfast/r/1-2": "not merged into the current branch"}));
    assert_eq!(branches(), "main\nsteadfast/r/1-2\nsteadfast/r/mine\n");
}
