//! Hostile names, links, outputs and repository definitions.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::runs::{COUNTING, World};

#[test]
fn names_with_path_traversal_are_refused_everywhere() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    for name in ["../x", "a/b", "..", "-x", "a b", "a\nb", "x\u{1b}[0m"] {
        for arguments in [
            &["loop", "run", "once", "--agent", "true", "--", name][..],
            &["loop", "status", "--", name],
            &["loop", "kill", "--", name],
            &["loop", "logs", "--", name],
            &["pipeline", "status", "--", name],
        ] {
            let output = world.run(arguments);
            assert_eq!(output.code, 1, "{name:?}: {output:?}");
            assert!(output.stderr.starts_with("error: the name ") && !output.stderr.contains('\u{1b}'), "{output:?}");
        }
    }
    assert!(!world.claude("").exists() && !world.env.store().exists());
    let unknown = world.run(&["loop", "run", "../../etc"]);
    assert!([1, 2].contains(&unknown.code), "{unknown:?}");
}

#[test]
fn a_link_that_leaves_the_project_is_refused_before_anything_starts() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    std::fs::create_dir_all(world.env.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(world.env.path("elsewhere"), world.claude("").parent().unwrap().join(".claude"))
        .unwrap();
    let output = world.loop_run(&["once"], COUNTING, &[]);
    output.fails_with(4, "is a link that leaves the project");
    assert_eq!(world.lines("tries").len(), 0);
    assert_eq!(std::fs::read_dir(world.env.path("elsewhere")).unwrap().count(), 0);
    assert_eq!(world.run(&["loop", "list", "--json"]).json(), json!({"runs": [], "appointments": []}));
}

#[test]
fn a_pipe_left_by_an_agent_does_not_block() {
    let world = World::new();
    world.loop_type(
        "open",
        "completion: {any: [{promise: DONE}, {checklist: .claude/loop-progress/progress-open.txt}]}",
    );
    let script = "progress=.claude/loop-progress/progress-open.txt; own=$(dirname \"$STEADFAST_RESULT\")
        for file in $progress \"$own/prompt.md\" \"$own/answer.md\" \"$STEADFAST_RESULT\"; do rm -f \"$file\"; mkfifo \"$file\"; done
        echo '<promise>DONE</promise>'";
    world.write(&world.claude("loop-progress/progress-open.txt"), "- [ ] one\n");
    let output = world.loop_run(&["open"], script, &["--json"]);
    assert_eq!(output.succeeds().json()["reason"], json!("promise"));
}

#[test]
fn a_bad_state_file_is_refused_before_anything_starts() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    std::fs::create_dir_all(world.claude("")).unwrap();
    std::fs::write(world.env.path("outside.json"), "{}").unwrap();
    for name in ["loop-sessions.json", "loop-completions.json", "loop-state-once.json"] {
        std::os::unix::fs::symlink(world.env.path("outside.json"), world.claude(name)).unwrap();
        let output = world.loop_run(&["once"], COUNTING, &[]);
        let told = output.fails_with(4, "is a link that leaves the project").stderr.clone();
        assert!(told.contains("hint: remove the link"), "{told}");
        std::fs::remove_file(world.claude(name)).unwrap();
        std::fs::create_dir(world.claude(name)).unwrap();
        world.loop_run(&["once"], COUNTING, &[]).fails_with(4, "is not a file");
        std::fs::remove_dir(world.claude(name)).unwrap();
    }
    assert_eq!(world.lines("tries").len(), 0);
    assert!(!world.env.store().exists());
    assert_eq!(std::fs::read_to_string(world.env.path("outside.json")).unwrap(), "{}");
}

#[test]
fn status_writes_a_state_file_that_failed_before() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    // The agent makes two files unusable during the run.
    let script = "ln -s /etc/hostname .claude/loop-completions.json
        mv .claude/loop-state-once.json kept; mkdir .claude/loop-state-once.json; echo done";
    world.loop_run(&["once"], script, &[]).succeeds();
    assert_eq!(world.entry("loop-once")["status"], json!("completed"), "one bad file does not block the others");
    let told = world.run(&["loop", "status", "once"]).succeeds().stderr.clone();
    assert!(told.contains("are not up to date"), "{told}");
    std::fs::remove_file(world.claude("loop-completions.json")).unwrap();
    std::fs::remove_dir(world.claude("loop-state-once.json")).unwrap();
    std::fs::rename(world.in_project("kept"), world.claude("loop-state-once.json")).unwrap();
    world.run(&["loop", "status", "once"]).succeeds();
    assert_eq!(world.json("loop-state-once.json")["status"], json!("completed"));
    assert_eq!(world.json("loop-completions.json")[0]["session"], json!("once"));
}

#[test]
fn ten_megabytes_of_output_with_control_characters_are_harmless() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let script = "head -c 10000000 /dev/zero | tr '\\0' 'x'; printf '\\nred \\033[31m\\007\\000 end\\n'";
    let output = world.loop_run(&["once"], script, &["--json"]);
    let history = output.succeeds().json()["history"].clone();
    assert!(history[0]["summary"].as_str().unwrap().len() < 10_000);
    let logs = world.run(&["loop", "logs", "once"]).succeeds().stdout.clone();
    assert!(logs.ends_with("red  end\n") && logs.len() < 2_000_000, "{}", logs.len());
    let size = std::fs::metadata(world.claude("loop-state-once.json")).unwrap().len();
    assert!(size < 10_000, "{size}");
}

#[test]
fn a_name_belongs_to_its_directory_and_is_never_guessed() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once", "here"], "true", &[]).succeeds();
    let elsewhere = world.env.path("another");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let there = |arguments: &[&str]| crate::env::finish(world.env.command(arguments).current_dir(&elsewhere), b"");
    let output = there(&["loop", "status", "here"]);
    assert!(output.fails_with(2, "no loop named here").stderr.contains(&*world.env.project().to_string_lossy()));
    assert_eq!(there(&["loop", "list", "--json"]).json(), json!({"runs": [], "appointments": []}));
    assert_eq!(there(&["loop", "list", "--all", "--json"]).json()["runs"][0]["name"], json!("here"));
    let output = world.run(&["pipeline", "status", "here"]);
    assert!(output.fails_with(2, "no pipeline named here").stderr.contains("steadfast loop status here"));
}

#[test]
fn the_agent_of_a_run_cannot_raise_limits() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}\nlimits: {idle: 0}");
    let program = env!("CARGO_BIN_EXE_steadfast");
    let script = format!("{program} loop resume open --max 99 2> told; echo \"$?\" > code");
    assert_eq!(world.loop_run(&["open"], &script, &["--max", "1"]).code, 5);
    assert_eq!(world.lines("code"), ["3"]);
}

#[test]
fn the_first_run_in_a_project_prints_what_its_agents_may_do() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let (bin, argv) = (world.env.path("bin"), world.env.path("argv"));
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\nexit 1\n", argv.display());
    world.write(&bin.join("claude"), &script);
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |arguments: &[&str]| crate::env::finish(world.env.command(arguments).env("PATH", &path), b"").stderr;
    let may_do_all = "claude may run any command and change any file without asking (--dangerously-skip-permissions)";

    let first = run(&["run", "make it so", "--max", "1"]);
    assert!(first.contains(may_do_all) && first.contains("`permission_flags` in "), "{first}");
    assert!(first.contains("add `--sandbox`"), "{first}");
    let argv = std::fs::read_to_string(argv).unwrap();
    assert!(argv.lines().any(|word| word == "--dangerously-skip-permissions"), "the note says what is done: {argv}");
    assert!(!run(&["run", "make it so", "--max", "1"]).contains("may"));
    assert!(!run(&["loop", "run", "once"]).contains("may"));

    let other_agent = world.loop_run(&["once"], COUNTING, &[]).stderr;
    assert!(other_agent.contains("a command given as agent may do everything that you may do"), "{other_agent}");
    let config = world.env.home().join("config.toml");
    let flags = "[agents.claude]\npermission_flags = [\"--permission-mode\", \"plan\"]\n";
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + flags).unwrap();
    let other_flags = run(&["loop", "run", "once"]);
    assert!(other_flags.contains("may do what your `permission_flags` allow: --permission-mode plan"), "{other_flags}");

    for verb in [&["run"][..], &["loop", "run"], &["pipeline", "run"]] {
        let help = world.run(&[verb, &["--help"]].concat()).stdout;
        assert!(help.contains("--dangerously-skip-permissions") && help.contains("permission_flags"), "{help}");
        assert!(help.contains("--sandbox workspace-write"), "{help}");
    }
}
