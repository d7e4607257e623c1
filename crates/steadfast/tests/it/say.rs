//! Talking to a run: the next iteration reads it, once.

use crate::attempts::eventually;
use crate::env::finish;
use crate::runs::World;
use crate::schemas::check;

/// Keeps each prompt under its number, and works until the test lets it go on.
const HELD: &str = "cat > prompt-$STEADFAST_ITERATION; echo x >> tries
while [ ! -e go-$STEADFAST_ITERATION ]; do sleep 0.02; done; echo done";
const HEADING: &str = "## A message from the user";

fn world() -> World {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    world
}

fn prompt(world: &World, iteration: u32) -> String {
    std::fs::read_to_string(world.in_project(&format!("prompt-{iteration}"))).unwrap()
}

fn let_go(world: &World) {
    for iteration in 1..=3 {
        std::fs::write(world.in_project(&format!("go-{iteration}")), "").unwrap();
    }
}

fn say(world: &World, text: &str) -> crate::env::Output {
    world.run(&["loop", "say", "three", text])
}

#[test]
fn the_next_iteration_reads_what_was_said_and_the_one_after_does_not() {
    let world = world();
    world.loop_run(&["three"], HELD, &["-d"]).succeeds();
    eventually(|| world.lines("tries").pop());
    let said = say(&world, "Leave the <database> alone");
    assert!(said.succeeds().stdout.contains("the next iteration of loop three reads it"), "{said:?}");
    finish(&mut world.env.command(&["loop", "say", "three", "-"]), b"From stdin\n\x1b[31mred\n").succeeds();
    let status = world.status("loop", "three");
    assert_eq!(status["notes"][0]["text"], "Leave the <database> alone");
    assert_eq!(status["notes"][0]["iteration"], serde_json::Value::Null);
    check("run-status.schema.json", &status);
    let listed = world.run(&["loop", "say", "three"]);
    assert!(listed.succeeds().stdout.contains("waits for the next iteration"), "{listed:?}");
    let_go(&world);
    assert_eq!(world.ends("loop", "three")["status"], "completed");
    assert!(!prompt(&world, 1).contains(HEADING) && !prompt(&world, 3).contains(HEADING));
    let second = prompt(&world, 2);
    assert!(second.starts_with("three 2 ") && second.contains(HEADING), "{second}");
    assert!(second.contains("<message>\nLeave the &lt;database&gt; alone\n</message>"), "{second}");
    assert!(second.trim_end().ends_with("<message>\nFrom stdin\nred\n</message>"), "{second}");
    let status = world.status("loop", "three");
    assert_eq!((&status["notes"][1]["stage"], &status["notes"][1]["iteration"]), (&1.into(), &2.into()));
    check("run-status.schema.json", &status);
    let page = world.run(&["loop", "status", "three"]);
    assert!(page.succeeds().stdout.contains("said: From stdin … (read by #2)"), "{page:?}");
}

#[test]
fn a_killed_engine_loses_and_doubles_nothing() {
    for point in ["engine.before_save:2", "engine.saved:2", "engine.shown:2", "engine.prepared:1", "engine.started:1"] {
        let world = world();
        let agent = world.agent("cat > prompt-$STEADFAST_ITERATION; echo done");
        // The first engine dies before its first agent starts.
        let run = ["loop", "run", "three", "--agent", &agent];
        finish(world.env.command(&run).env("STEADFAST_CRASH_AT", "engine.locked:1"), b"");
        say(&world, "Mind the gap").succeeds();
        finish(world.env.command(&["loop", "resume", "three"]).env("STEADFAST_CRASH_AT", point), b"");
        world.run(&["loop", "resume", "three"]).succeeds();
        let has_note = [1, 2, 3].map(|iteration| prompt(&world, iteration).matches("Mind the gap").count());
        assert_eq!(has_note, [1, 0, 0], "{point}");
    }
}

#[test]
fn a_retry_reads_it_again() {
    let world = world();
    let agent = "cat > prompt-$STEADFAST_ITERATION-$(wc -l < tries); echo x >> tries; test -e second || { touch second; exit 1; }";
    std::fs::write(world.in_project("tries"), "").unwrap();
    let run = ["loop", "run", "three", "--agent", &world.agent(agent)];
    finish(world.env.command(&run).env("STEADFAST_CRASH_AT", "engine.locked:1"), b"");
    say(&world, "Again").succeeds();
    world.run(&["loop", "resume", "three"]).succeeds();
    for (file, expected) in [("prompt-1-0", true), ("prompt-1-1", true), ("prompt-2-2", false)] {
        let text = std::fs::read_to_string(world.in_project(file)).unwrap();
        assert_eq!(text.contains("Again"), expected, "{file}: {text}");
    }
}

#[test]
fn what_cannot_be_said_is_refused_with_a_reason() {
    let world = world();
    say(&world, "hello").fails_with(2, "no loop named three");
    let agent = world.agent("echo done");
    let run = ["loop", "run", "three", "--agent", &agent];
    finish(world.env.command(&run).env("STEADFAST_CRASH_AT", "engine.locked:1"), b"");
    say(&world, "  \n ").fails_with(1, "empty");
    say(&world, &"x".repeat(4_001)).fails_with(1, "longer than 4000");
    let in_agent = |arguments: &[&str]| {
        finish(world.env.command(&[&["loop", "say", "three"], arguments].concat()).env("CLAUDECODE", "1"), b"")
    };
    in_agent(&["I am the user"]).fails_with(3, "is for the user");
    in_agent(&["--drop"]).fails_with(3, "is for the user");
    in_agent(&[]).succeeds();
    for _ in 0..20 {
        say(&world, "hello").succeeds();
    }
    say(&world, "hello").fails_with(3, "20 messages already wait");
    let dropped = world.run(&["loop", "say", "three", "--drop"]);
    assert!(dropped.succeeds().stdout.contains("removed 20 messages"), "{dropped:?}");
    world.run(&["loop", "resume", "three"]).succeeds();
    let refused = say(&world, "too late");
    refused.fails_with(3, "is over");
    assert!(refused.stderr.contains("loop resume three"), "{refused:?}");
}

#[test]
fn a_message_to_a_run_that_cannot_be_resumed_asks_for_a_new_one() {
    let world = World::new();
    world.loop_type("once", "completion: command\ncommand: \"true\"");
    world.loop_run(&["once"], "echo done", &[]).succeeds();
    let refused = world.run(&["loop", "say", "once", "too late"]);
    refused.fails_with(3, "is over");
    assert!(refused.stderr.contains("hint: start a new run; then `steadfast loop say"), "{refused:?}");
}

#[test]
fn an_agent_cannot_talk_to_its_own_run() {
    let world = world();
    let steadfast = env!("CARGO_BIN_EXE_steadfast");
    let script = format!("{steadfast} loop say three 'All is well' > said 2>&1; echo $? >> codes; echo done");
    world.loop_run(&["three"], &script, &["--max", "2"]).succeeds();
    assert_eq!(world.lines("codes"), ["3", "3"]);
    assert_eq!(world.status("loop", "three")["notes"], serde_json::json!([]));
}

#[test]
fn a_pipeline_and_a_goal_can_be_talked_to() {
    let world = World::new();
    let stages = "stages:\n  - {name: plan, prompt: Plan}\n  - {name: build, prompt: Build}\n";
    world.write(&world.env.home().join("pipelines/ship.yaml"), &format!("name: ship\n{stages}"));
    let held = world
        .agent("cat > prompt-$STEADFAST_STAGE; echo x >> tries; while [ ! -e go ]; do sleep 0.02; done; echo done");
    world.run(&["pipeline", "run", "ship", "ship", "--agent", &held, "-d"]).succeeds();
    eventually(|| world.lines("tries").pop());
    world.run(&["pipeline", "say", "ship", "Use", "tabs"]).succeeds();
    std::fs::write(world.in_project("go"), "").unwrap();
    assert_eq!(world.ends("pipeline", "ship")["status"], "completed");
    let read = |stage: &str| std::fs::read_to_string(world.in_project(&format!("prompt-{stage}"))).unwrap();
    assert!(!read("plan").contains("Use tabs") && read("build").contains("Use tabs"));

    let agent =
        world.agent("cat > prompt-$STEADFAST_ITERATION; touch started; while [ ! -e go-on ]; do sleep 0.02; done");
    let goal = world.spawn(&["run", "Count", "--agent", &agent, "--verify", "test -e prompt-2"]);
    eventually(|| world.in_project("started").exists().then_some(()));
    let name = world.run(&["loop", "list", "--json"]).json()["runs"][0]["name"].as_str().unwrap().to_owned();
    world.run(&["loop", "say", &name, "Count twice"]).succeeds();
    std::fs::write(world.in_project("go-on"), "").unwrap();
    assert_eq!(crate::runs::wait(goal).code, 0);
    assert!(read("2").contains("Count twice") && !read("1").contains("Count twice"));
}
