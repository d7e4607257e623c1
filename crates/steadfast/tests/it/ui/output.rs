//! Logs and diffs of runs.

use super::Ui;
use crate::runs::World;

fn run_id(world: &World, name: &str) -> String {
    world.status("loop", name)["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_log_is_printable_and_comes_in_pieces() {
    let world = World::new();
    world.loop_type("work", "completion: fixed");
    let script = r"cat > /dev/null; printf '\033[31mred\033[0m <script>\n\033]0;title\007end\n'
        yes 0123456789 | head -c 600000; printf 'oops\033[2J\n' >&2";
    world.loop_run(&["work", "w"], script, &["--max", "1"]).succeeds();
    let ui = Ui::start(&world.env, &[]);
    let id = run_id(&world, "w");
    let (mut from, mut text, mut pieces) = (0, String::new(), 0);
    loop {
        let piece = ui.get(&format!("/runs/{id}/log?from={from}")).json();
        let said = piece["text"].as_str().unwrap();
        assert!(said.len() <= 256 << 10);
        text.push_str(said);
        (from, pieces) = (piece["next"].as_u64().unwrap(), pieces + 1);
        if piece["is_over"] == true {
            break;
        }
    }
    assert!(text.starts_with("red <script>\nend\n0123456789\n"), "{}", &text[..60]);
    assert!(text.ends_with("--- stderr\noops\n") && !text.contains('\u{1b}'), "{}", &text[text.len() - 60..]);
    assert!(pieces > 2, "{pieces}");
    // Without a position it begins near the end.
    let last = ui.get(&format!("/runs/{id}/log")).json();
    assert!(last["text"].as_str().unwrap().lines().count() <= 1_000);
    for nothing in ["?stage=9", "?iteration=7&from=0"] {
        assert_eq!(ui.get(&format!("/runs/{id}/log{nothing}")).json()["text"], "");
    }
    assert_eq!(
        ui.get(&format!("/runs/{id}/log?from=999999999")).json()["text"].as_str().unwrap(),
        "--- stderr\noops\n"
    );
    ui.get("/runs/none/log").is(404, "no such run");
    ui.get("/runs/none/diff").is(404, "no such run");
}

#[test]
fn a_diff_shows_the_branch_of_an_iteration_and_runs_no_program_of_the_repository() {
    let world = World::new();
    world.repository();
    world.loop_type("work", "completion: fixed");
    let script = "cat > /dev/null; printf 'one\\033[31m\\n' > made.txt";
    world.loop_run(&["work", "w"], script, &["--max", "1", "--worktree"]).succeeds();
    for (name, value) in [
        ("diff.external", "touch pwned; true"),
        ("core.pager", "touch pwned"),
        ("core.fsmonitor", "touch pwned; true"),
        ("diff.bad.textconv", "touch pwned; cat"),
        ("diff.bad.command", "touch pwned; true"),
        ("filter.bad.smudge", "touch pwned; cat"),
    ] {
        world.git(&["config", name, value]);
    }
    world.write(&world.in_project(".git/info/attributes"), "* diff=bad filter=bad\n");
    let ui = Ui::start(&world.env, &[]);
    let path = format!("/runs/{}/diff?stage=1&iteration=1", run_id(&world, "w"));
    let diff = ui.get(&path);
    diff.is(200, "+++ b/made.txt").is(200, "+one\n");
    ui.get(path.split_once('?').unwrap().0).is(200, "+one\n");
    assert_eq!(diff.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(!diff.body.contains('\u{1b}'), "{diff:?}");
    // The same after the project took it in.
    world.git(&["-c", "filter.bad.smudge=cat", "merge", "-q", "--no-ff", "-m", "merged", "steadfast/w/run"]);
    let _ = std::fs::remove_file(world.in_project("pwned"));
    ui.get(&path).is(200, "+one\n");
    assert!(!world.in_project("pwned").exists());
    world.loop_run(&["work", "plain"], "cat > /dev/null", &["--max", "1"]).succeeds();
    ui.get(&format!("/runs/{}/diff", run_id(&world, "plain"))).is(200, "No branch of its own");
}
