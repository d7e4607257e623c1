//! `steadfast top` in a real terminal (tmux), on a store that the program made itself; and what it prints without one.

mod terminal;

use serde_json::{Value, json};

use self::terminal::Terminal;
use crate::attempts::eventually;
use crate::env::{Env, finish};
use crate::runs::World;

/// Works until it is killed.
const HELD: &str = "cat > /dev/null; echo working on it; echo x >> tries; sleep 600";

/// A world with a goal that works, one that is blocked, and one that is over.
fn world() -> World {
    let world = World::new();
    let env = &world.env;
    env.start(&["Make every test pass", "--budget", "10M", "--max-turns", "40", "--verify", "true"]);
    env.says("s1", "m1", "Looking at the tests", 6_200_000);
    env.stop("s1", "I looked at the tests", false);
    env.begin_turn();
    for (session, objective) in [("s2", "Fix the login"), ("s3", "Remove the old API")] {
        env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        env.run(&["goal", "start", "--session", session, objective, "--max-turns", "9"]).succeeds();
    }
    env.run(&["goal", "block", "--session", "s2", "--reason", "needs the staging password"]).succeeds();
    env.run(&["goal", "complete", "--session", "s3"]).succeeds();
    world
}

fn start_run(world: &World) {
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    world.loop_run(&["three", "auth"], HELD, &["-d"]).succeeds();
    eventually(|| world.lines("tries").pop());
}

fn status(env: &Env, session: &str) -> Value {
    env.run(&["goal", "status", "--json", "--session", session]).json()["goal"]["status"].clone()
}

/// The line with the mark of the selection.
fn selected(screen: &str) -> String {
    screen.lines().find(|line| line.starts_with('▸')).unwrap_or_default().to_owned()
}

#[test]
fn the_first_page_shows_what_needs_the_user_first_at_80_by_24() {
    let world = world();
    let Some(terminal) = Terminal::start(&world.env, (80, 24), &["top"]) else { return };
    let screen = terminal.wait_for("NEEDS YOU 1");
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[0].starts_with("steadfast  1 needs you · 2 goals · 0 runs · today "), "{screen}");
    assert_eq!(lines[1], "NEEDS YOU 1", "{screen}");
    assert!(lines[2].starts_with("▸ ! blocked     Fix the login"), "{screen}");
    assert!(screen.contains("needs the staging password"), "{screen}");
    let place = |text: &str| lines.iter().position(|line| line.starts_with(text)).unwrap_or_else(|| panic!("{screen}"));
    let working = place("WORKING 1");
    assert!(working > 2 && place("RECENTLY ENDED 1") > working, "{screen}");
    assert!(lines[working + 1].starts_with("  ● Make every test pass"), "{screen}");
    assert!(lines[working + 2].trim_start().starts_with("tokens ██████░░░░ 6"), "{screen}");
    assert!(lines[place("RECENTLY ENDED 1") + 1].contains("Remove the old API"), "{screen}");
    assert_eq!(lines.len(), 24, "{screen}");
    assert!(lines[23].ends_with("? help  q quit"), "{screen}");
}

#[test]
fn a_goal_is_paused_and_resumed_by_a_key() {
    let world = world();
    let Some(terminal) = Terminal::start(&world.env, (80, 24), &["top"]) else { return };
    terminal.wait_for("WORKING 1");
    terminal.keys(&["j"]);
    terminal.wait_until("the second row is selected", |screen| selected(screen).contains("Make every test pass"));
    terminal.keys(&["p"]);
    let screen = terminal.wait_until("it is paused", |screen| {
        screen.contains("✓ goal paused") && screen.contains("WAITING 1") && !screen.contains("WORKING")
    });
    assert!(selected(&screen).contains("Make every test pass"), "it stays selected: {screen}");
    assert_eq!(status(&world.env, "s1"), "paused");
    terminal.keys(&["p"]);
    terminal.wait_until("it works again", |screen| screen.contains("✓ goal resumed") && screen.contains("WORKING 1"));
    assert_eq!(status(&world.env, "s1"), "active");
}

#[test]
fn a_limit_is_extended_and_a_goal_abandoned_only_after_a_yes() {
    let world = world();
    let Some(terminal) = Terminal::start(&world.env, (80, 24), &["top"]) else { return };
    terminal.wait_for("WORKING 1");
    terminal.keys(&["j", "e"]);
    terminal.wait_for("Extend by:");
    terminal.text("+10M tokens");
    terminal.wait_for("adds 10M tokens; resumes it if that limit had stopped it");
    terminal.keys(&["Enter"]);
    terminal.wait_for("✓ limits raised");
    let goal = world.env.run(&["goal", "status", "--json", "--session", "s1"]).json()["goal"].clone();
    assert_eq!(goal["token_budget"], 20_000_000, "{goal}");
    terminal.keys(&["x"]);
    terminal.wait_for("Abandon goal Make every test pass? It ends for good");
    terminal.keys(&["n"]);
    terminal.wait_for("nothing was done");
    assert_eq!(status(&world.env, "s1"), "active");
    terminal.keys(&["x", "y"]);
    terminal.wait_for("✓ goal abandoned");
    terminal.wait_for("RECENTLY ENDED 2");
}

#[test]
fn a_run_is_killed_only_after_a_yes() {
    let world = world();
    start_run(&world);
    let Some(terminal) = Terminal::start(&world.env, (80, 24), &["top"]) else { return };
    terminal.wait_for("RUNS 1");
    terminal.keys(&["g", "r"]);
    terminal.wait_until("only the run", |screen| {
        screen.contains("only runs") && selected(screen).contains("auth (three)") && !screen.contains("NEEDS YOU")
    });
    terminal.keys(&["x"]);
    let asked = terminal.wait_for("Kill loop auth? Its agents stop now");
    assert!(asked.contains("y yes"), "{asked}");
    terminal.keys(&["q"]);
    terminal.wait_for("nothing was done");
    assert_eq!(world.status("loop", "auth")["status"], "running");
    terminal.keys(&["s"]);
    terminal.wait_for("Say:");
    terminal.text("leave the database alone");
    terminal.keys(&["Enter"]);
    terminal.wait_for("✓ the next iteration reads it");
    terminal.keys(&["Enter"]);
    let page = terminal.wait_for("leave the database alone (not read yet)");
    assert!(page.contains("working on it"), "the end of its log: {page}");
    terminal.keys(&["Escape", "x", "y"]);
    terminal.wait_for("✓ the run is stopped");
    assert_eq!(world.status("loop", "auth")["status"], "killed");
}

#[test]
fn a_wide_terminal_has_the_details_beside_the_list_and_a_resize_moves_them() {
    let world = world();
    let Some(terminal) = Terminal::start(&world.env, (200, 50), &["top"]) else { return };
    terminal.wait_until("details of the first row", |screen| {
        screen.contains("NEEDS YOU 1") && screen.contains("│") && screen.contains("blocked: needs the staging password")
    });
    terminal.keys(&["j"]);
    terminal
        .wait_until("details of the second row", |screen| screen.contains("Last events") && screen.contains("Checks"));
    terminal.resize(80, 24);
    let small = terminal.wait_until("one column", |screen| {
        screen.lines().count() == 24 && !screen.contains("Last events") && screen.contains("q quit")
    });
    assert!(!small.contains('│'), "nothing of the pane is left: {small}");
    terminal.keys(&["Enter"]);
    terminal
        .wait_until("details fill the screen", |screen| screen.contains("esc back") && !screen.contains("NEEDS YOU"));
    terminal.keys(&["Escape"]);
    terminal.wait_for("NEEDS YOU 1");
    terminal.resize(200, 50);
    terminal.wait_for("Last events");
}

#[test]
fn a_search_narrows_the_page_and_finds_what_is_not_on_it() {
    let world = world();
    let Some(terminal) = Terminal::start(&world.env, (80, 24), &["top"]) else { return };
    terminal.wait_for("WORKING 1");
    terminal.keys(&["/"]);
    terminal.text("login");
    terminal.wait_until("one row", |screen| screen.contains("Fix the login") && !screen.contains("WORKING"));
    terminal.keys(&["Enter"]);
    terminal.wait_until("results", |screen| screen.contains("FOUND") && screen.contains("for “login”"));
    terminal.keys(&["Escape"]);
    terminal.wait_for("WORKING 1");
}

#[test]
fn leaving_gives_the_terminal_back() {
    let world = world();
    for leave in ["q", "C-c", "TERM"] {
        let Some(terminal) = Terminal::start_shell(&world.env, (80, 24)) else { return };
        terminal.text("echo before-$((40+2))");
        terminal.keys(&["Enter"]);
        let before = terminal.wait_for("before-42");
        assert!(!before.contains("NEEDS YOU"));
        terminal.text(&format!("{} top", env!("CARGO_BIN_EXE_steadfast")));
        terminal.keys(&["Enter"]);
        terminal.wait_for("NEEDS YOU 1");
        match leave {
            "TERM" => terminal.terminate_foreground(),
            key => terminal.keys(&[key]),
        }
        terminal
            .wait_until("the shell is back", |screen| screen.contains("before-42") && !screen.contains("NEEDS YOU"));
        // In raw mode, what is typed would not appear and a line would not end the command.
        terminal.text("stty -a | grep -o ' icanon' ; echo after-$((40+2))");
        terminal.keys(&["Enter"]);
        let after = terminal.wait_for("after-42");
        assert!(
            after.contains("\n icanon") && !after.contains("NEEDS YOU") && !after.contains('▸'),
            "{leave}: {after}"
        );
        assert!(terminal.is_cursor_visible(), "{leave}");
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_for_a_while() {
    let world = world();
    let Some(terminal) = Terminal::start_shell(&world.env, (80, 24)) else { return };
    terminal.text(&format!("{} top", env!("CARGO_BIN_EXE_steadfast")));
    terminal.keys(&["Enter"]);
    terminal.wait_for("NEEDS YOU 1");
    terminal.keys(&["C-z"]);
    terminal.wait_until("the shell is back", |screen| screen.contains("Stopped") && !screen.contains("NEEDS YOU"));
    terminal.text("fg");
    terminal.keys(&["Enter"]);
    terminal.wait_for("NEEDS YOU 1");
    terminal.keys(&["q"]);
    terminal.wait_until("the shell is back", |screen| !screen.contains("NEEDS YOU"));
}

#[test]
fn a_missing_store_teaches_and_a_broken_one_is_tried_again() {
    let env = Env::new();
    let Some(terminal) = Terminal::start(&env, (80, 24), &["top"]) else { return };
    terminal.wait_for("/goal-start OBJECTIVE");
    assert!(!env.store().exists(), "looking creates nothing");
    env.start(&["Make every test pass"]);
    terminal.wait_for("● Make every test pass");
    let away = env.path("away.db");
    for part in ["goals.db", "goals.db-wal", "goals.db-shm"] {
        let _ = std::fs::rename(env.home().join(part), env.path(&part.replace("goals", "away")));
    }
    std::fs::write(env.store(), "this is no database, and long enough to be looked at as one".repeat(40)).unwrap();
    let broken = terminal.wait_for("error: ");
    assert!(broken.contains("hint: ") && broken.contains("not read since"), "{broken}");
    assert!(broken.contains("Make every test pass"), "what was read stays: {broken}");
    for part in ["away.db", "away.db-wal", "away.db-shm"] {
        let _ = std::fs::rename(env.path(part), env.home().join(part.replace("away", "goals")));
    }
    assert!(!away.exists());
    terminal.wait_until("it is read again", |screen| !screen.contains("error: ") && !screen.contains("not read since"));
}

#[test]
fn without_a_terminal_it_prints_once_or_refuses() {
    let world = world();
    let env = &world.env;
    env.run(&["top"]).fails_with(1, "not a terminal");
    assert!(env.run(&["top"]).stderr.contains("hint: use --once"));
    let page = env.run(&["top", "--once"]);
    let text = &page.succeeds().stdout;
    assert!(text.starts_with("steadfast  1 needs you · 2 goals"), "{text}");
    assert!(
        text.contains("Fix the login") && text.contains("Remove the old API") && !text.contains('\u{1b}'),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let narrow = finish(env.command(&["top", "--once"]).env("COLUMNS", "60"), b"");
    assert!(narrow.succeeds().stdout.lines().all(|line| line.chars().count() <= 60), "{narrow:?}");
    let data = env.run(&["top", "--json"]).succeeds().json();
    assert_eq!(data["needs"][0]["kind"], "blocked", "{data}");
    assert_eq!((&data["needs"][0]["subject"], &data["header"]["live_goals"]), (&json!("goal"), &json!(2)));
    assert_eq!(data["working"][0]["goal"]["objective"], "Make every test pass");
    let nothing = Env::new();
    assert_eq!(nothing.run(&["top", "--json"]).succeeds().json()["working"], json!([]));
    assert!(nothing.run(&["top", "--once"]).succeeds().stdout.contains("steadfast demo"));
    assert!(!nothing.store().exists(), "looking creates nothing");
}

#[test]
fn runs_of_the_fleet_are_shown_where_one_is_known_and_trouble_is_one_line() {
    let world = world();
    let env = &world.env;
    assert!(!env.run(&["top", "--once"]).succeeds().stdout.contains("FLEET"));
    std::fs::create_dir_all(env.home().join("fleet")).unwrap();
    let run = |name: &str, live: bool| {
        let status = if live { "running" } else { "failed" };
        json!({"name": name, "kind": "loop", "type": "work", "status": status, "reason": "errors", "live": live,
            "iteration": 2, "max_iterations": 9, "tokens": 10, "cost_usd": 1.5, "project": "git@host:team/app.git"})
    };
    let list = json!({"runs": [run("over", false), run("remote", true)], "appointments": []});
    std::fs::write(env.home().join("fleet/runs.json"), list.to_string()).unwrap();
    let page = env.run(&["top", "--once"]).succeeds().stdout.clone();
    assert!(page.contains("FLEET 2") && page.contains("remote (work)") && page.contains("2/9"), "{page}");
    assert!(page.find("remote (work)") < page.find("over (work)"), "live ones first: {page}");
    let json = env.run(&["top", "--once", "--json"]).json();
    assert_eq!(json["fleet"]["runs"][0]["name"], json!("remote"), "{json}");
    crate::schemas::check("top.schema.json", &json);
}

#[test]
fn a_missing_fleet_program_is_an_error_with_a_hint() {
    let env = Env::new();
    // A copy of the program without the other one beside it.
    let alone = env.home().join("alone");
    std::fs::create_dir_all(&alone).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), alone.join("steadfast")).unwrap();
    for arguments in [&["fleet", "list"][..], &["run", "x", "--agent", "true", "--fleet"]] {
        let usual = env.command(arguments);
        let mut copy = std::process::Command::new(alone.join("steadfast"));
        copy.args(arguments).current_dir(env.project());
        copy.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", "/usr/bin:/bin");
        let output = finish(&mut copy, b"");
        assert_eq!(output.code, 4, "{}", output.stderr);
        assert!(output.stderr.contains("`steadfast-fleet` is not installed"), "{}", output.stderr);
        assert!(output.stderr.contains("hint: run `cargo install --locked steadfast-fleet`"), "{}", output.stderr);
    }
}
