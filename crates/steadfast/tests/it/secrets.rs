//! A key that is given to every input of the product is in no row, log or public file, and public files are their
//! owner's only. Raw output stays in the private folders of runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::attempts::eventually;
use crate::env::{Env, finish};
use crate::runs::World;

/// Made up, in two parts so that no scanner takes it for a real one.
const KEY: &str = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");

fn with_key(before: &str) -> String {
    format!("{before} {KEY}")
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The files of the home, except the private folders of runs, and the public files of the project.
fn kept_files(env: &Env) -> Vec<PathBuf> {
    let mut files = Vec::new();
    files_below(&env.home(), &mut files);
    files.retain(|path| !path.starts_with(env.home().join("runs")));
    if !env.store().starts_with(env.home()) {
        files_below(env.store().parent().unwrap(), &mut files);
    }
    files_below(&env.project().join(".claude"), &mut files);
    files
}

/// The files that have the key, with what stands before it.
fn places_of_key(env: &Env) -> Vec<String> {
    // What was overwritten may still be in the write-ahead log.
    let files = kept_files(env);
    assert!(files.iter().any(|path| path.file_name() == env.store().file_name()), "{files:?}");
    let place = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let at = bytes.windows(KEY.len()).position(|window| window == KEY.as_bytes())?;
        let before = String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at]).into_owned();
        Some(format!("{}: {before}", path.display()))
    };
    files.into_iter().filter_map(place).collect()
}

fn assert_clean(env: &Env) {
    assert_eq!(places_of_key(env), [""; 0], "files with the key");
}

#[test]
fn goals_keep_no_secret() {
    let env = Env::new();
    std::fs::write(env.project().join("key.txt"), with_key("the key is")).unwrap();
    let item = with_key("it works with");
    let started = env.goal(&["start", &with_key("Ship it with"), "--verify", "cat key.txt; false", "--item", &item]);
    assert!(started.succeeds().stdout.contains("a secret was removed from the objective"), "{started:?}");
    assert!(!started.stdout.contains(KEY), "{started:?}");
    assert_eq!(env.status()["objective"], "Ship it with [redacted]");
    env.goal(&["start", "--queue", &with_key("Then use")]).succeeds();
    let edited = env.goal(&["edit", &with_key("Deploy it with")]);
    assert!(edited.succeeds().stdout.contains("a secret was removed"), "{edited:?}");
    let verified = env.goal(&["verify"]);
    assert!(verified.code == 6 && !verified.stdout.contains(KEY) && !verified.stderr.contains(KEY), "{verified:?}");
    env.goal(&["block", "--reason", &with_key("no access with")]).succeeds();
    for arguments in [&["status"][..], &["history", "--events"], &["report"], &["status", "--json"]] {
        let shown = env.goal(arguments);
        assert!(!shown.succeeds().stdout.contains(KEY), "{arguments:?}: {shown:?}");
    }
    assert_clean(&env);
}

#[test]
fn a_verification_command_runs_as_typed_and_is_shown_without_its_secret() {
    let env = Env::new();
    let command = format!("test {KEY} = $(cat key.txt)");
    std::fs::write(env.project().join("key.txt"), KEY).unwrap();
    env.goal(&["start", "Ship", "--verify", &command]).succeeds();
    let verified = env.goal(&["verify"]);
    assert!(!verified.succeeds().stdout.contains(KEY), "{verified:?}");
    for arguments in [&["status"][..], &["history", "--events"], &["report"], &["status", "--json"]] {
        let shown = env.goal(arguments);
        assert!(!shown.succeeds().stdout.contains(KEY), "{arguments:?}: {shown:?}");
    }
    let report = env.goal(&["report", "--json"]).json();
    assert_eq!(report["checks"][0]["result"]["passed"], true, "{report}");
    let others = "SELECT count(*) FROM goal_events WHERE payload_json LIKE '%ghp_%'
                  UNION ALL SELECT count(*) FROM verifications WHERE command LIKE '%ghp_%'";
    assert_eq!(env.sql(others), [["0"], ["0"]]);
}

#[test]
fn hooks_keep_no_secret() {
    let env = Env::new();
    env.start(&["Ship"]);
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    for prompt in ["use", "goal: deploy with", "rule: always use"] {
        env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": with_key(prompt)}));
    }
    let hidden: String = KEY.chars().flat_map(|letter| [letter, '\u{200b}']).collect();
    env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": format!("use {hidden}")}));
    env.hook(
        "s1",
        &json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_use_id": "t",
            "tool_input": {"command": format!("curl -H 'X: {KEY}' h")}, "error": with_key("Exit code 3\n")}),
    );
    env.hook("s1", &json!({"hook_event_name": "StopFailure", "error": with_key("overloaded"), "error_type": "x"}));
    env.stop("s1", &with_key("I used"), false);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "exit"}));
    assert_clean(&env);
    let kept = env.sql("SELECT text FROM session_events");
    assert!(kept.iter().flatten().all(|text| !text.contains('\u{200b}') && !text.contains("ghp")), "{kept:?}");
}

#[test]
fn runs_publish_no_secret_and_only_for_their_owner() {
    for umask in ["000", "022"] {
        let world = World::new();
        world.loop_type("once", "completion: fixed-n\nruns: 1");
        world.write(
            &world.env.home().join("pipelines/ship.yaml"),
            "name: ship\nstages:\n  - {name: build, prompt: B}\n  - {name: tell, prompt: T, runs: 2}\n",
        );
        // A file that an older version left for everyone.
        world.write(&world.claude("loop-sessions.json"), "{\"sessions\": {}}\n");
        let failing = world.agent(&format!("cat > /dev/null; echo '{KEY}' >&2; exit 1"));
        let talking = world.agent(&format!("cat > /dev/null; echo 'done with {KEY}'"));
        let calls: [&[&str]; 3] = [
            &["loop", "run", "once", "bad", "--agent", &failing],
            &["loop", "run", "once", "good", "--agent", &talking],
            &["pipeline", "run", "ship", "ship", "--agent", &talking],
        ];
        for arguments in calls {
            let plain = world.env.command(arguments);
            let mut command = Command::new("sh");
            command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(plain.get_program());
            command.args(plain.get_args()).current_dir(plain.get_current_dir().unwrap());
            plain.get_envs().for_each(|(name, value)| {
                command.env(name, value.unwrap_or_default());
            });
            let ran = finish(&mut command, b"");
            assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
        }
        assert_clean(&world.env);
        let mut public = Vec::new();
        files_below(&world.env.project().join(".claude"), &mut public);
        assert!(public.iter().any(|path| path.ends_with("output.md")), "{public:?}");
        for path in public {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{} with umask {umask}", path.display());
        }
    }
}

#[test]
fn what_is_said_to_a_run_is_kept_without_its_secret() {
    let world = World::new();
    world.loop_type("two", "completion: fixed-n\nruns: 2");
    let script = "cat > /dev/null; echo x >> tries; while [ ! -e go ]; do sleep 0.02; done; echo done";
    world.loop_run(&["two"], script, &["-d"]).succeeds();
    eventually(|| world.lines("tries").pop());
    world.run(&["loop", "say", "two", &with_key("use")]).succeeds();
    std::fs::write(world.in_project("go"), "").unwrap();
    world.ends("loop", "two");
    assert_clean(&world.env);
}

/// The agent gets the prompt as it was written, also after a resume; no row, backup or list has it.
#[test]
fn the_prompt_of_a_run_is_kept_whole_only_in_its_private_folder() {
    let world = World::new();
    let env = &world.env;
    world.loop_type("deploy", "completion: fixed-n\n");
    let prompt = env.home().join("loops/deploy/prompt.md");
    std::fs::write(&prompt, with_key("Deploy it with")).unwrap();
    let script = "cat >> got; echo; echo done";
    world.loop_run(&["deploy", "r"], script, &["--max", "1"]).succeeds();
    // The plan was read once.
    std::fs::write(&prompt, "Something else").unwrap();
    let id = env.sql("SELECT run_id FROM runs")[0][0].clone();
    let sealed = env.home().join("runs").join(&id).join("sealed.json");
    assert_eq!(std::fs::metadata(&sealed).unwrap().permissions().mode() & 0o777, 0o600);
    world.run(&["db", "backup"]).succeeds();
    assert_clean(env);
    assert!(!world.run(&["loop", "status", "r", "--json"]).succeeds().stdout.contains(KEY));
    world.run(&["loop", "resume", "r", "--max", "2"]).succeeds();
    let got = || std::fs::read_to_string(world.in_project("got")).unwrap();
    assert_eq!(got().matches(KEY).count(), 2);
    assert_clean(env);
    std::fs::remove_file(&sealed).unwrap();
    world.run(&["loop", "resume", "r", "--max", "3"]).fails_with(3, "sealed.json");
    assert_eq!(got().matches("Deploy").count(), 2);
}

#[test]
fn logs_show_secrets_only_to_a_person_who_asks_for_them() {
    let world = World::new();
    world.loop_type("print", "completion: fixed-n\n");
    world.loop_run(&["print", "r"], &format!("echo the key is {KEY}; echo and {KEY} >&2"), &["--max", "1"]).succeeds();
    for arguments in [&["loop", "logs", "r"][..], &["loop", "logs", "r", "--json"], &["loop", "logs", "r", "-f"]] {
        let shown = world.run(arguments);
        assert!(
            !shown.succeeds().stdout.contains(KEY) && shown.stdout.contains("[redacted]"),
            "{arguments:?}: {shown:?}"
        );
    }
    let raw = &["loop", "logs", "r", "--raw"];
    assert!(world.run(raw).succeeds().stdout.contains(KEY));
    let inside = finish(world.env.command(raw).env("CLAUDECODE", "1"), b"");
    assert!(!inside.succeeds().stdout.contains(KEY), "{inside:?}");
}

/// A line of a private key, as an agent prints it.
const KEY_LINE: &str = "MIIEow+BAAKCAQEA/1SU1LfVLPHC+zMxH2Mo4lg/EePzNm0tRg+LezV6ffAt0gun";

/// What it is, and what is shown on it.
type Way = (&'static str, fn(&World) -> Vec<String>);

#[test]
fn no_way_out_keeps_or_shows_a_secret() {
    let ways: [Way; 6] = [
        ("artifact", artifact),
        ("output that the agent wrote", own_output),
        ("appointment", appointment),
        ("errors of typed commands", typed_errors),
        ("errors, checks and dry runs", errors_and_dry_runs),
        ("key of several lines", key_of_several_lines),
    ];
    let mut leaks = Vec::new();
    for (way, walk) in ways {
        let world = World::new();
        let shown = walk(&world).into_iter().filter(|shown| shown.contains(KEY) || shown.contains(KEY_LINE));
        leaks.extend(shown.chain(places_of_key(&world.env)).map(|leak| format!("{way}: {leak}")));
        let mut public = Vec::new();
        files_below(&world.env.project().join(".claude"), &mut public);
        let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let open = public.iter().filter(|path| mode(path) != 0o600);
        leaks.extend(open.map(|path| format!("{way}: {} is open", path.display())));
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

fn shown(world: &World, arguments: &[&str]) -> String {
    let ran = world.run(arguments);
    ran.stdout + &ran.stderr
}

fn pipeline(world: &World, yaml: &str) {
    world.write(&world.env.home().join("pipelines/ship.yaml"), yaml);
}

fn run_pipeline(world: &World, script: &str) -> Vec<String> {
    let ran = world.run(&["pipeline", "run", "ship", "ship", "--agent", &world.agent(script)]);
    vec![ran.succeeds().stdout.clone()]
}

/// The stage after it reads the whole text, where `git clean` does not reach.
fn artifact(world: &World) -> Vec<String> {
    pipeline(
        world,
        "name: ship\nstages:\n  - {name: build, prompt: B, artifacts: {report: out/report.txt}}\n  \
         - {name: use, prompt: 'FILE ${ARTIFACTS.report}'}\n",
    );
    let script = format!(
        "cat > prompt; mkdir -p out; echo 'use {KEY}' > out/report.txt; \
         file=$(sed -n 's/^FILE //p' prompt); [ -z \"$file\" ] || cat \"$file\" > got; echo done"
    );
    let shown = run_pipeline(world, &script);
    assert_eq!(std::fs::read_to_string(world.in_project("got")).unwrap(), format!("use {KEY}\n"));
    let copy = world.claude("pipeline-runs/ship/artifacts/report");
    assert_eq!(std::fs::read_to_string(copy).unwrap(), "use [redacted]\n");
    shown
}

fn own_output(world: &World) -> Vec<String> {
    pipeline(
        world,
        "name: ship\nstages:\n  - {name: build, prompt: 'FILE ${OUTPUT}'}\n  - {name: use, prompt: 'GOT ${INPUTS}'}\n",
    );
    let script = format!(
        "cat > prompt; file=$(sed -n 's/^FILE //p' prompt); [ -z \"$file\" ] || echo 'use {KEY}' > \"$file\"; \
         grep GOT prompt > got; echo done"
    );
    let shown = run_pipeline(world, &script);
    assert!(std::fs::read_to_string(world.in_project("got")).unwrap().contains("GOT "));
    shown
}

/// The run gets the words as they were typed.
fn appointment(world: &World) -> Vec<String> {
    world.loop_type("one", "completion: fixed-n\nruns: 1");
    world.write(&world.env.home().join("loops/one/prompt.md"), "${CONTEXT}");
    let agent = world.agent("cat > got; echo done");
    let make = |name: &str| {
        let context = with_key("use");
        shown(world, &["loop", "run", "one", name, "--agent", &agent, "--at", "in 2h", "--context", &context, "--json"])
    };
    let mut seen = vec![make("later"), make("never"), shown(world, &["loop", "list", "--json"])];
    seen.extend(places_of_key(&world.env));
    seen.push(shown(world, &["loop", "cancel", "never"]));
    assert_eq!(std::fs::read_dir(world.env.home().join("runs")).unwrap().count(), 1, "the words of one");
    world.env.execute("UPDATE appointments SET next_at_ms = 1, first_at_ms = 1");
    seen.push(shown(world, &["watch", "--once"]));
    world.ends("loop", "later");
    assert!(std::fs::read_to_string(world.in_project("got")).unwrap().contains(KEY), "{seen:?}");
    assert_eq!(std::fs::read_dir(world.env.home().join("runs")).unwrap().count(), 1, "the run");
    seen
}

fn typed_errors(world: &World) -> Vec<String> {
    let env = &world.env;
    env.start(&["Ship"]);
    let commands = [
        ("start", format!("x --budget {KEY}")),
        ("wait", format!("--until {KEY}")),
        ("start", format!("--{KEY} x")),
        ("adopt", KEY.to_owned()),
        ("extend", format!("--add-tokens {KEY}")),
    ];
    let slash = commands.iter().map(|(verb, arguments)| {
        let event = json!({"hook_event_name": "UserPromptExpansion", "command_name": format!("goal-{verb}"),
            "command_args": arguments});
        env.hook("s1", &event)
    });
    let codex = env.codex("t1", "UserPromptSubmit", &json!({"prompt": format!("$goal-extend --add-tokens {KEY}")}));
    slash.chain([codex]).map(|answer| answer.to_string()).collect()
}

fn errors_and_dry_runs(world: &World) -> Vec<String> {
    world.env.start(&["Ship"]);
    pipeline(
        world,
        &format!(
            "name: ship\nstages:\n  - {{name: build, prompt: 'use {KEY}', approve: 'with {KEY}?', \
             completion: {{verify: ['test {KEY}']}}}}\n"
        ),
    );
    world.write(&world.env.home().join("pipelines/bad.yaml"), &format!("name: bad\n{KEY}: 1\nstages: []\n"));
    let calls: [&[&str]; 9] = [
        &["goal", "start", &format!("--{KEY}"), "x"],
        &["goal", "start", &format!("--{KEY}"), "x", "--json"],
        &["pipeline", "validate", "bad"],
        &["pipeline", "validate", "bad", "--json"],
        &["pipeline", "run", "bad", "--json"],
        &["pipeline", "run", "ship", "--dry-run"],
        &["pipeline", "run", "ship", "--dry-run", "--json"],
        &["pipeline", "graph", "ship"],
        &["pipeline", "graph", "ship", "--json"],
    ];
    let shown = calls.map(|arguments| shown(world, arguments)).into();
    // The user wrote these.
    std::fs::remove_dir_all(world.env.home().join("pipelines")).unwrap();
    shown
}

fn key_of_several_lines(world: &World) -> Vec<String> {
    world.loop_type("print", "completion: fixed-n\nruns: 1");
    let lines = format!("{KEY_LINE}\n").repeat(5);
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{lines}-----END RSA PRIVATE KEY-----\n");
    std::fs::write(world.in_project("key.pem"), key).unwrap();
    world.loop_run(&["print", "r"], "cat > /dev/null; cat key.pem; cat key.pem >&2", &[]).succeeds();
    let calls: [&[&str]; 3] = [
        &["loop", "logs", "r", "-n", "4"],
        &["loop", "logs", "r", "-n", "4", "--json"],
        &["loop", "logs", "r", "-n", "4", "-f"],
    ];
    calls.map(|arguments| shown(world, arguments)).into()
}
