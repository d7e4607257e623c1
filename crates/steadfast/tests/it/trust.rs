//! What a repository brings is refused until the user said yes to it, wherever it hides, and again after every change.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::{Output, finish};
use crate::runs::World;

const ONE_RUN: &str = "completion: fixed-n\nruns: 1";
const PIPELINE: &str = "stages: [{name: a, prompt: hi}]\n";

/// Runs a command as the user types it, without the harness's `--trust`.
fn typed(world: &World, arguments: &[&str]) -> Output {
    finish(&mut world.env.command_as_typed(arguments), b"")
}

fn run_loop(world: &World, name: &str, more: &[&str]) -> Output {
    typed(world, &[&["loop", "run", name, "--agent", "true"], more].concat())
}

fn run_pipeline(world: &World, file: &str, more: &[&str]) -> Output {
    typed(world, &[&["pipeline", "run", file, "p", "--agent", "true"], more].concat())
}

/// A program called `claude` that does its work; returns the PATH with it and the file with its arguments.
fn with_client(world: &World) -> (String, std::path::PathBuf) {
    let (bin, argv) = (world.env.path("bin"), world.env.path("argv"));
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"did it"}"#;
    let script = format!("#!/bin/sh\ncat > /dev/null; printf '%s\\n' \"$@\" > {}; echo '{result}'\n", argv.display());
    for name in ["claude", "codex"] {
        world.write(&bin.join(name), &script);
        world.make_executable(&bin.join(name));
    }
    (format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()), argv)
}

#[test]
fn every_definition_of_the_repository_needs_a_yes_until_it_changes() {
    let world = World::new();
    let folder = world.claude("loops");
    world.loop_type_in(&folder, "fix", "completion: {command: 'touch ran; true'}");
    let refused = run_loop(&world, "fix", &[]);
    refused.fails_with(3, "not trusted: .claude/loops/fix/loop.yaml (loop, new), .claude/loops/fix/prompt.md");
    assert!(refused.stderr.contains("`steadfast trust` shows what they do and asks"), "{refused:?}");
    assert!(!world.in_project("ran").exists());
    run_loop(&world, "fix", &["--dry-run"]).succeeds();
    let told = run_loop(&world, "fix", &["--trust"]).succeeds().stderr.clone();
    assert!(told.contains("  runs touch ran; true\n"), "{told}");
    assert!(world.in_project("ran").exists());
    run_loop(&world, "fix", &[]).succeeds();
    world.loop_type_in(&folder, "fix", "completion: {command: 'touch more; true'}");
    run_loop(&world, "fix", &[]).fails_with(3, "loop.yaml (loop, changed since you trusted it)");
    assert!(!world.in_project("more").exists());
    // One without any command too: its prompt is what an agent with all permissions does.
    world.loop_type_in(&folder, "work", ONE_RUN);
    run_loop(&world, "work", &[]).fails_with(3, "loop, new, takes the place of another loop of that name");
    // The user's own need none, by name or by path.
    world.loop_type("mine", ONE_RUN);
    run_loop(&world, "mine", &[]).succeeds();
    let path = world.env.home().join("loops/mine");
    run_loop(&world, &path.display().to_string(), &[]).succeeds();
    run_loop(&world, "../home/loops/mine", &[]).succeeds();
}

/// Where a definition can hide: what makes the place, and how it is run.
type Place = (&'static str, fn(&World), &'static [&'static str]);

const PLACES: &[Place] = &[
    (
        "a link to the project from outside",
        |world| link(world, "project", "outside"),
        &["pipeline", "../outside/evil.yaml"],
    ),
    (
        "a link at the top",
        |world| {
            world.write(&world.env.path("elsewhere/p.yaml"), PIPELINE);
            link(world, "../elsewhere/p.yaml", "project/linked.yaml");
        },
        &["pipeline", "linked.yaml"],
    ),
    ("a file at the top", |_| {}, &["pipeline", "evil.yaml"]),
    ("the path of that file", |_| {}, &["pipeline", "./evil.yaml"]),
    ("a path with ..", |_| {}, &["pipeline", "../project/evil.yaml"]),
    ("upper case", |world| put(world, "EVIL.YAML", PIPELINE), &["pipeline", "EVIL.YAML"]),
    ("a file without an end", |world| put(world, "full-refine", PIPELINE), &["pipeline", "./full-refine"]),
    ("the project's pipelines", |world| put(world, ".claude/pipelines/own.yaml", PIPELINE), &["pipeline", "own"]),
    (
        "a built-in name",
        |world| put(world, ".claude/pipelines/full-refine.yaml", PIPELINE),
        &["pipeline", "full-refine"],
    ),
    ("the project's loops", |world| add_loop(world, ".claude/loops/own"), &["loop", "own"]),
    ("the path of a loop type", |world| add_loop(world, ".claude/loops/own"), &["loop", ".claude/loops/own"]),
    (
        "a folder of loop types that is a link",
        |world| {
            add_loop(world, "../elsewhere/own");
            std::fs::create_dir_all(world.claude("")).unwrap();
            link(world, "../../elsewhere", "project/.claude/loops");
        },
        &["loop", "own"],
    ),
    ("a nested directory", |world| put(world, "deep/er/p.yaml", PIPELINE), &["pipeline", "deep/er/p.yaml"]),
    (
        "a submodule",
        |world| {
            put(world, "sub/.git", "gitdir: ../.git/modules/sub\n");
            put(world, "sub/p.yaml", PIPELINE);
        },
        &["pipeline", "sub/p.yaml"],
    ),
    ("an older layout", |world| add_loop(world, "scripts/stages/own"), &["loop", "scripts/stages/own"]),
    (
        "a loop type that the user's own pipeline names",
        |world| {
            add_loop(world, ".claude/loops/own");
            world.write(&world.env.home().join("pipelines/mine.yaml"), "stages: [{name: a, loop: own}]\n");
        },
        &["pipeline", "mine"],
    ),
    (
        "a loop type outside that a pipeline of the repository names",
        |world| {
            add_loop(world, "../elsewhere/own");
            put(world, "names.yaml", "stages: [{name: a, loop: ../elsewhere/own}]\n");
            typed(world, &["trust", "evil.yaml", "--yes"]).succeeds();
        },
        &["pipeline", "names.yaml"],
    ),
];

fn put(world: &World, path: &str, text: &str) {
    world.write(&world.in_project(path), text);
}

fn link(world: &World, target: &str, place: &str) {
    symlink(target, world.env.path(place)).unwrap();
}

fn add_loop(world: &World, folder: &str) {
    put(world, &format!("{folder}/loop.yaml"), ONE_RUN);
    put(world, &format!("{folder}/prompt.md"), "Continue.");
}

#[test]
fn a_definition_is_found_wherever_it_hides() {
    for (name, prepare, words) in PLACES {
        let world = World::new();
        put(&world, "evil.yaml", PIPELINE);
        prepare(&world);
        let run = |more: &[&str]| match words {
            ["loop", definition] => run_loop(&world, definition, &[&["run-name"], more].concat()),
            ["pipeline", definition] => run_pipeline(&world, definition, more),
            _ => unreachable!(),
        };
        let refused = run(&[]);
        assert_eq!(refused.code, 3, "{name}: {refused:?}");
        refused.fails_with(3, "this repository is not trusted: ");
        assert!(!world.env.store().exists(), "{name}: nothing was created");
        let given = run(&["--trust"]);
        assert_eq!(given.code, 0, "{name}: {given:?}");
    }
}

#[test]
fn a_bare_word_is_a_name_and_never_a_file() {
    let world = World::new();
    put(&world, "full-refine", "stages: [{name: a, prompt: hi, agent: \"touch ran\", command: touch ran}]\n");
    let shown = typed(&world, &["pipeline", "run", "full-refine", "p", "--dry-run"]).succeeds().stdout.clone();
    assert!(shown.contains("(read from <built in>/pipelines/full-refine.yaml)"), "{shown}");
    put(&world, "only-here", PIPELINE);
    let refused = run_pipeline(&world, "only-here", &[]);
    assert!(refused.fails_with(1, "only a file").stderr.contains("write `./only-here`"), "{refused:?}");
    assert!(!world.in_project("ran").exists());
}

/// What is changed after the yes, and what the refusal says.
type Change = (&'static str, fn(&World), &'static str);

#[test]
fn a_change_of_a_prompt_or_script_is_noticed() {
    let changes: &[Change] = &[
        ("the prompt", |world| put(world, ".claude/loops/fix/prompt.md", "Else."), "fix/prompt.md (prompt, changed"),
        ("a script", |world| put(world, "check.sh", "exit 0"), "check.sh (script, changed"),
        ("a script of an interpreter", |world| put(world, "tools/y.py", "1"), "tools/y.py (script, changed"),
        ("the definition", |world| put(world, ".claude/loops/fix/loop.yaml", ONE_RUN), "fix/loop.yaml (loop, changed"),
        (
            "a script that became a link to the same text",
            |world| {
                put(world, "same.sh", "true");
                std::fs::remove_file(world.in_project("check.sh")).unwrap();
                symlink("same.sh", world.in_project("check.sh")).unwrap();
            },
            "check.sh (script, changed",
        ),
    ];
    for (name, change, expected) in changes {
        let world = World::new();
        put(&world, "check.sh", "true");
        put(&world, "tools/y.py", "");
        put(&world, "read.md", "true");
        let yaml = "completion: {command: 'sh ./check.sh && python3 tools/y.py && grep -q true read.md'}";
        world.loop_type_in(&world.claude("loops"), "fix", yaml);
        typed(&world, &["trust", "fix", "--yes"]).succeeds();
        run_loop(&world, "fix", &[]).succeeds();
        put(&world, "read.md", "true, and changed");
        run_loop(&world, "fix", &[]).succeeds();
        change(&world);
        let refused = run_loop(&world, "fix", &[]);
        assert!(refused.code == 3 && refused.stderr.contains(expected), "{name}: {refused:?}");
    }
}

#[test]
fn a_change_of_a_recipe_behind_a_command_is_noticed() {
    let scripts = |test: &str, more: &str| format!("{{\"scripts\": {{\"test\": \"{test}\"}}{more}}}");
    for (command, file, first, same, changed) in [
        ("make check", "Makefile", "check:\n\ttrue\n".to_owned(), None, "check:\n\ttouch ran\n".to_owned()),
        ("just check || true", "justfile", "check:\n  true\n".to_owned(), None, "check:\n  touch ran\n".to_owned()),
        (
            "npm run test || true",
            "package.json",
            scripts("true", ""),
            Some(scripts("true", ", \"dependencies\": {\"x\": \"1\"}")),
            scripts("touch ran", ""),
        ),
    ] {
        let world = World::new();
        world.loop_type_in(&world.claude("loops"), "fix", &format!("completion: {{command: '{command}'}}\nruns: 1"));
        world.write(&world.in_project(file), &first);
        run_loop(&world, "fix", &["--dry-run"]).succeeds();
        run_loop(&world, "fix", &[]).fails_with(3, &format!("{file} (script, new)"));
        typed(&world, &["trust", "--yes"]).succeeds();
        run_loop(&world, "fix", &[]);
        world.write(&world.in_project(file), same.as_ref().unwrap_or(&first));
        let output = run_loop(&world, "fix", &[]);
        assert!(!output.stderr.contains("not trusted"), "{output:?}");
        world.write(&world.in_project(file), &changed);
        run_loop(&world, "fix", &[]).fails_with(3, &format!("{file} (script, changed since you trusted it)"));
        assert!(!world.in_project("ran").exists(), "{command}");
    }
}

#[test]
fn settings_hooks_and_servers_need_a_yes_before_a_client_loads_them() {
    let world = World::new();
    world.loop_type("once", ONE_RUN);
    let (path, _) = with_client(&world);
    let run = |arguments: &[&str]| finish(world.env.command_as_typed(arguments).env("PATH", &path), b"");
    let hooks = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh ./hook.sh"}]}]}}"#;
    put(&world, ".claude/settings.json", hooks);
    put(&world, "hook.sh", "touch pwned");
    for arguments in
        [&["loop", "run", "once"][..], &["loop", "run", "improve-plan"], &["run", "make it so", "--max", "1"]]
    {
        let refused = run(arguments);
        refused.fails_with(3, "not trusted: .claude/settings.json (settings, new), hook.sh (script, new)");
    }
    // Another kind of agent loads none of it.
    run_loop(&world, "once", &[]).succeeds();
    assert!(!run(&["loop", "run", "once", "--agent", "codex"]).stderr.contains("not trusted"));
    let told = run(&["run", "make it so", "--max", "1", "--trust"]).stderr;
    assert!(told.contains("  runs sh ./hook.sh\n"), "{told}");
    run(&["loop", "run", "once"]).succeeds();
    // A file that comes later, and a change, are noticed.
    put(&world, ".mcp.json", r#"{"mcpServers": {"x": {"command": "touch", "args": ["pwned"]}}}"#);
    run(&["loop", "run", "once"]).fails_with(3, "not trusted: .mcp.json (MCP servers, new)");
    run(&["loop", "run", "once", "--trust"]).succeeds();
    for file in
        [".claude/agents/a.md", ".claude/commands/b.md", ".claude/skills/c/SKILL.md", ".claude/settings.local.json"]
    {
        put(&world, file, "{}");
        run(&["loop", "run", "once"]).fails_with(3, file);
        run(&["loop", "run", "once", "--trust"]).succeeds();
    }
    put(&world, "hook.sh", "touch more");
    run(&["loop", "run", "once"]).fails_with(3, "hook.sh (script, changed since you trusted it)");
    // The client's own trust of this directory counts.
    let project = std::fs::canonicalize(world.env.project()).unwrap();
    let notes = json!({"projects": {project.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    world.write(&world.env.path("user/.claude.json"), &notes.to_string());
    run(&["loop", "run", "once"]).succeeds();
}

#[test]
fn a_project_below_the_top_of_its_repository_is_checked_up_to_there() {
    let world = World::new();
    world.loop_type("once", ONE_RUN);
    world.repository();
    let (path, _) = with_client(&world);
    put(&world, "web/page", "x");
    put(&world, ".mcp.json", r#"{"mcpServers": {"x": {"command": "touch", "args": ["pwned"]}}}"#);
    put(&world, "p.yaml", PIPELINE);
    let below = |arguments: &[&str]| {
        let mut command = world.env.command_as_typed(arguments);
        finish(command.env("PATH", &path).current_dir(world.in_project("web")), b"")
    };
    below(&["loop", "run", "once"]).fails_with(3, ".mcp.json (MCP servers, new)");
    below(&["pipeline", "run", "../p.yaml", "p", "--agent", "true"]).fails_with(3, "p.yaml (pipeline, new)");
    // A yes at the top holds below.
    typed(&world, &["trust", "--yes"]).succeeds();
    below(&["loop", "run", "once"]).succeeds();
}

#[test]
fn a_resumed_run_is_checked_again() {
    let world = World::new();
    put(&world, "check.sh", "test -f enough");
    world.loop_type_in(&world.claude("loops"), "fix", "completion: {command: sh check.sh}\nruns: 1");
    assert_eq!(run_loop(&world, "fix", &["--trust"]).code, 5);
    put(&world, "check.sh", "touch pwned");
    let resume = |more: &[&str]| typed(&world, &[&["loop", "resume", "fix", "--max", "2"], more].concat());
    resume(&[]).fails_with(3, "check.sh (script, changed since you trusted it)");
    assert!(!world.in_project("pwned").exists());
    resume(&["--trust"]).succeeds();
}

#[test]
fn trust_lists_everything_whole_and_can_be_taken_back() {
    let world = World::new();
    let long = format!("echo {} end", "x".repeat(500));
    let yaml = format!("completion: {{all: [{{command: '{long}'}}, {{command: \"a\\e[2K\\u202eb\"}}]}}");
    world.loop_type_in(&world.claude("loops"), "fix", &yaml);
    put(&world, ".claude/pipelines/own.yaml", PIPELINE);
    put(&world, ".claude/settings.json", r#"{"env": {"A": "b"}}"#);
    put(&world, ".codex/config.toml", "[mcp_servers.a]\ncommand = \"node\"\n");
    let listed = typed(&world, &["trust", "--list"]).succeeds().stdout.clone();
    for part in
        [&long, "  runs a\\u{1b}[2K\\u{202e}b", "own.yaml (pipeline, new)", "sets env: {\"A\":\"b\"}", "  runs node"]
    {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert!(!listed.contains('\u{1b}') && !listed.contains('\u{202e}'), "{listed}");
    // Without a terminal nobody is asked, and nothing is trusted.
    assert_eq!(typed(&world, &["trust"]).code, 3);
    let state = || {
        let json = typed(&world, &["trust", "--json"]).succeeds().json();
        let states = json["items"].as_array().unwrap().iter().map(|item| item["state"].clone()).collect::<Vec<Value>>();
        (json["trusted"].clone(), states.len(), states.into_iter().filter(|state| state == "trusted").count())
    };
    assert_eq!(state(), (json!(false), 5, 0));
    typed(&world, &["trust", "fix", "--yes"]).succeeds();
    assert_eq!(state(), (json!(false), 5, 2));
    typed(&world, &["trust", "--yes"]).succeeds();
    assert_eq!(state(), (json!(true), 5, 5));
    let revoked = typed(&world, &["trust", "fix", "--revoke"]).succeeds().stdout.clone();
    assert_eq!((revoked.as_str(), state()), ("2 files no longer trusted\n", (json!(false), 5, 3)));
    typed(&world, &["trust", "--revoke"]).succeeds();
    assert_eq!(state(), (json!(false), 5, 0));
    typed(&world, &["trust", "nothing"]).fails_with(2, "nothing");
    world.write(&world.env.home().join("trust.json"), "{");
    run_loop(&world, "fix", &[]).fails_with(4, "cannot parse");
}

#[test]
fn nothing_is_trusted_if_a_part_cannot_be_read() {
    for place in ["loops", "pipelines", "loops/more", "loops/more/loop.yaml", "loops/fix/prompt.md"] {
        let world = World::new();
        add_loop(&world, ".claude/loops/fix");
        let place = world.in_project(&format!(".claude/{place}"));
        let _ = std::fs::remove_dir_all(&place).or_else(|_| std::fs::remove_file(&place));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(place.file_name().unwrap(), &place).unwrap();
        for how in ["--yes", "--list"] {
            typed(&world, &["trust", how]).fails_with(4, &place.display().to_string());
        }
    }
}

#[test]
fn every_command_is_shown_however_many_there_are() {
    let world = World::new();
    let commands: Vec<String> = (1..=30).map(|number| format!("touch ran-{number}; true")).collect();
    let rules: Vec<String> = commands.iter().map(|command| format!("{{command: '{command}'}}")).collect();
    world.loop_type_in(&world.claude("loops"), "fix", &format!("completion: {{all: [{}]}}", rules.join(", ")));
    let listed = typed(&world, &["trust", "--list"]).succeeds().stdout.clone();
    let told = run_loop(&world, "fix", &["--trust"]).succeeds().stderr.clone();
    for command in commands {
        let line = format!("  runs {command}\n");
        assert!(listed.contains(&line) && told.contains(&line), "{line}: {listed} {told}");
    }
}

#[test]
fn only_a_person_can_trust() {
    let world = World::new();
    world.loop_type_in(&world.claude("loops"), "fix", ONE_RUN);
    let in_agent = |arguments: &[&str]| finish(world.env.command_as_typed(arguments).env("CLAUDECODE", "1"), b"");
    in_agent(&["trust", "--yes"]).fails_with(3, "an agent may not trust");
    in_agent(&["trust", "--revoke"]).fails_with(3, "an agent may not trust");
    in_agent(&["trust", "--list"]).succeeds();
    assert!(!world.env.home().join("trust.json").exists());
    world.env.start(&["x"]);
    in_agent_session(&world, &["loop", "run", "fix", "--agent", "true", "--trust"])
        .fails_with(3, "an agent may not trust");
    in_agent_session(&world, &["loop", "run", "fix", "--agent", "true"])
        .fails_with(3, "this repository is not trusted");
    // What an agent creates is not trusted, what the user creates is.
    in_agent(&["loop", "new", "theirs"]).succeeds();
    run_loop(&world, "theirs", &["--max", "1"]).fails_with(3, "theirs/loop.yaml");
    typed(&world, &["loop", "new", "ours"]).succeeds();
    typed(&world, &["pipeline", "new", "mine"]).succeeds();
    for name in ["ours", "mine"] {
        let listed = typed(&world, &["trust", name, "--list"]).succeeds().stdout.clone();
        assert!(listed.contains("trusted") && !listed.contains("new)"), "{listed}");
    }
}

fn in_agent_session(world: &World, arguments: &[&str]) -> Output {
    let mut command = world.env.command_as_typed(arguments);
    finish(command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
}

#[test]
fn agents_start_in_their_clients_own_sandbox_if_the_user_asks() {
    let world = World::new();
    world.loop_type("once", ONE_RUN);
    let (path, argv) = with_client(&world);
    let run = |arguments: &[&str]| finish(world.env.command_as_typed(arguments).env("PATH", &path), b"");
    let started = |file: &Path| std::fs::read_to_string(file).unwrap().replace('\n', " ");
    let told = run(&["loop", "run", "once", "--sandbox"]).succeeds().stderr.clone();
    assert!(told.contains("claude may change files of this project and run commands in its own sandbox"), "{told}");
    assert!(started(&argv).contains("--permission-mode acceptEdits") && !started(&argv).contains("dangerously"));
    run(&["loop", "run", "once", "--sandbox", "--agent", "codex"]);
    assert!(started(&argv).contains("--sandbox workspace-write") && !started(&argv).contains("dangerously"));
    run(&["loop", "run", "once", "--sandbox", "--agent", "true"]).fails_with(1, "has no sandbox");
    // The configuration does the same for all runs, and does not stop commands.
    let config = world.env.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + "[agents]\nsandbox = true\n[agents.claude]\nflags = [\"--x\"]\n").unwrap();
    run(&["run", "make it so", "--max", "1"]);
    assert!(started(&argv).contains("acceptEdits") && started(&argv).contains("--x"), "{}", started(&argv));
    run(&["loop", "run", "once", "--agent", "true"]).succeeds();
}

/// Answers a question on a terminal: the words that it ends with, the answer, and the command.
const TERMINAL: &str = r#"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    said += part
    if said.endswith(b"[y/N] "):
        os.write(terminal, sys.argv[1].encode() + b"\n")
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn a_terminal_is_shown_the_commands_and_asked() {
    let world = World::new();
    world.loop_type_in(&world.claude("loops"), "fix", "completion: {command: 'touch ran; true'}");
    let on_terminal = |answer: &str, arguments: &[&str]| {
        let typed = world.env.command_as_typed(arguments);
        let mut command = std::process::Command::new("python3");
        command.env_clear().envs(typed.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(world.env.project()).args(["-c", TERMINAL, answer]);
        finish(command.arg(typed.get_program()).args(typed.get_args()), b"")
    };
    let run = ["loop", "run", "fix", "--agent", "true"];
    let refused = on_terminal("n", &run);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stdout.contains("  runs touch ran; true") && !world.in_project("ran").exists(), "{refused:?}");
    assert_eq!(on_terminal("", &["trust"]).code, 3);
    assert_eq!(on_terminal("y", &run).code, 0);
    assert!(world.in_project("ran").exists());
    world.loop_type_in(&world.claude("loops"), "fix", ONE_RUN);
    let given = on_terminal("yes", &["trust"]);
    assert!(given.code == 0 && given.stdout.contains("loop.yaml (loop, changed since you trusted it)"), "{given:?}");
    run_loop(&world, "fix", &[]).succeeds();
}
