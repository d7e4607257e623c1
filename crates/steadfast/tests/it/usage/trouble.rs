//! Missing files, bad input, unreadable trees, broken caches, concurrent calls.

use std::process::Stdio;

use serde_json::Value;

use super::{ALL, VIEWS, amounts, line, shapes, totals, write};
use crate::env::{Env, finish};
use crate::schemas::check;

#[test]
fn missing_transcripts_are_not_an_error() {
    let env = Env::new();
    for view in VIEWS {
        let output = env.run(&["usage", view, "--json"]);
        assert_eq!(amounts(&output.succeeds().json()["totals"]), (0, [0; 4]));
        assert_eq!(output.json()["totals"]["cost_usd"], 0.0);
        assert!(output.stderr.contains("no transcripts found"), "{output:?}");
        check("usage.schema.json", &output.json());
        assert_eq!(env.run(&["usage", view]).succeeds().stdout, "");
    }
    assert!(!env.home().exists(), "nothing was written");
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    let env = Env::new();
    shapes(&env);
    let output = env.run(&["usage", "weekley"]);
    output.fails_with(1, "weekley");
    assert!(output.stderr.contains("weekly"), "{output:?}");
    env.run(&["usage", "hourly"]).fails_with(1, "hourly");
    for bad in [
        &["--until", "someday"][..],
        &["--since", "2026-11-12", "--until", "2026-11-11"],
        &["--last", "0"],
        &["--last", "-3"],
        &["--last", "many"],
        &["--timezone", "Mars/Olympus"],
        &["--timezone", "+99:00"],
        &["-z", ""],
        &["--order", "sideways"],
        &["daily", "--active"],
        &["models", "--id", "s1"],
        &["session", "--id", ""],
        &["runs", "--breakdown"],
        &["--check", "daily"],
        &["--check", "--since", "today"],
    ] {
        let output = env.run(&[&["usage"], bad].concat());
        output.fails_with(1, "");
        assert!(output.stderr.contains("hint: "), "{bad:?}: {output:?}");
        check("error.schema.json", &env.run(&[&["usage", "--json"], bad].concat()).json());
    }
    env.run(&["usage", "session", "--id", "nothing-like-it"]).fails_with(2, "nothing-like-it");
    env.run(&["usage", "--since", "someday"]).fails_with(1, "someday");
    env.run(&["usage", "--since", "-1"]).fails_with(1, "-1");
    env.run(&["usage", "--project", ""]).fails_with(1, "--project");
    env.run(&["usage", "--host", "cursor"]).fails_with(1, "cursor");
    env.run(&["usage", "--prices", "none.toml"]).fails_with(1, "none.toml");
    let prices = env.path("prices.toml");
    std::fs::write(&prices, "[models.x]\ninput = \"five\"\n").unwrap();
    env.run(&["usage", "--prices", prices.to_str().unwrap()]).fails_with(1, "line 2");
    check("error.schema.json", &env.run(&["usage", "--json", "--since", "x"]).json());

    let broken = env.path("broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("projects"), "a file").unwrap();
    let run = |arguments: &[&str]| finish(env.command(arguments).env("CLAUDE_CONFIG_DIR", &broken), b"");
    run(&["usage"]).fails_with(4, "projects");
    run(&["usage", "--host", "codex"]).succeeds();
}

#[test]
fn a_broken_or_foreign_cache_changes_nothing() {
    let env = Env::new();
    shapes(&env);
    assert_eq!(totals(&env, &[]), ALL);
    let cache = env.home().join("usage-cache/claude");
    for bytes in [&b""[..], b"sf-use02", b"something else entirely, and longer than a header of forty bytes"] {
        std::fs::write(&cache, bytes).unwrap();
        assert_eq!(totals(&env, &[]), ALL);
    }
    std::fs::remove_file(&cache).unwrap();
    std::fs::create_dir(&cache).unwrap();
    assert_eq!(totals(&env, &[]), ALL);
}

#[test]
fn concurrent_calls_agree_and_leave_a_valid_cache() {
    let env = Env::new();
    shapes(&env);
    for round in 0..3 {
        let file = format!("-p/round{round}.jsonl");
        write(&env, &file, &[line(&format!("r{round}"), "2026-11-10T10:00:00.000Z", [0, 0, 0, 0])]);
        let children: Vec<_> = (0..6)
            .map(|_| {
                let mut command = env.command(&["usage", "--json"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(amounts(&report["totals"]), (ALL.0 + round + 1, ALL.1));
        }
    }
    let left = std::fs::read_dir(env.home().join("usage-cache")).unwrap().count();
    assert_eq!(left, 1, "no temporary file is left");
}
