//! Goals that wait for a time, a file, a process or a command: looked at by several processes, woken once.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{self, ClientChild};
use crate::env::{Env, Output, finish};

/// One look, as the processes that wake goals make it.
fn look(env: &Env) -> String {
    env.run(&["__look", "s1"]).succeeds().stdout.trim().to_owned()
}

/// Many looks at the same time.
fn looks(env: &Env, processes: usize) -> Vec<String> {
    let start = |_| env.command(&["__look", "s1"]).stdout(Stdio::piped()).spawn().unwrap();
    let children: Vec<Child> = (0..processes).map(start).collect();
    let said = |child: Child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned();
    children.into_iter().map(said).collect()
}

/// Ends the rest before the next look.
fn end_rest(env: &Env) {
    env.execute("UPDATE goals SET wait_json = json_set(wait_json, '$.next_check_ms', 0)");
}

fn seen(env: &Env) -> String {
    env.sql("SELECT json_extract(wait_json, '$.seen') FROM goals")[0][0].clone()
}

/// The background hook of the client: exit code 2 wakes it with the text on stderr.
fn waker(env: &Env) -> (Command, String) {
    let mut command = env.command(&["hook", "claude", "--rewake"]);
    command.env("CLAUDE_CODE_ENTRYPOINT", "cli");
    let stop = json!({
        "hook_event_name": "Stop", "session_id": "s1", "transcript_path": env.transcript("s1"), "cwd": env.project(),
    });
    (command, stop.to_string())
}

fn start_waker(env: &Env) -> ClientChild {
    let (command, stop) = waker(env);
    let mut child = client::spawn(&command);
    child.write(stop.as_bytes());
    child.close_stdin();
    child
}

/// Ends the turn that chose to wait, and wakes the client.
fn wake(env: &Env) -> Output {
    env.stop("s1", "waiting", false);
    let (mut command, stop) = waker(env);
    finish(&mut command, stop.as_bytes())
}

fn lines(env: &Env, file: &str) -> usize {
    std::fs::read_to_string(env.project().join(file)).unwrap_or_default().lines().count()
}

fn started(arguments: &[&str]) -> Env {
    let env = Env::new();
    env.start(arguments);
    env
}

#[test]
fn a_command_is_tried_again_until_it_succeeds_and_the_goal_is_woken_once() {
    let env = started(&["x", "--budget", "1000"]);
    let command = "echo x >> tries; test $(wc -l < tries) -ge 4";
    let said = env.goal(&["wait", "--command", command, "--for", "2h"]);
    assert!(said.succeeds().stdout.starts_with("goal waits for the command `echo x >> tries;"), "{said:?}");
    assert!(said.stdout.contains(", at the latest until 20") && said.stdout.contains("\nnext: "), "{said:?}");
    for _ in 0..3 {
        assert_eq!(look(&env), "not_yet");
        assert_eq!(seen(&env), r#"{"exited":1}"#);
        assert_eq!(env.status()["paused_reason"], "waiting");
        end_rest(&env);
    }
    assert_eq!((look(&env), lines(&env, "tries")), ("met".into(), 4));
    end_rest(&env);
    assert_eq!((look(&env), lines(&env, "tries")), ("not_due".into(), 4), "it is met");
    let woken = wake(&env);
    assert_eq!(woken.code, 2, "{woken:?}");
    assert!(woken.stderr.starts_with("The goal's wait is over: the command `echo x &gt;&gt; tries;"), "{woken:?}");
    let goal = env.status();
    assert_eq!(
        (&goal["status"], &goal["waits_for"], &goal["total_tokens"]),
        (&json!("active"), &Value::Null, &json!(0))
    );
    let kinds = env.event_kinds();
    assert!(kinds.ends_with(&["goal_resumed".into(), "goal_woken".into()]), "{kinds:?}");
    assert_eq!(look(&env), "not_due");
}

#[test]
fn a_file_ends_the_wait() {
    let env = started(&["x"]);
    env.goal(&["wait", "--file", "build.done", "--until", "in 3h"]).succeeds();
    let status = env.goal(&["status"]).stdout;
    assert!(status.contains("\nwaits for: the file build.done, at the latest until 20"), "{status}");
    assert_eq!(look(&env), "not_yet");
    std::fs::write(env.project().join("build.done"), "").unwrap();
    end_rest(&env);
    assert_eq!(look(&env), "met");
    assert_eq!(env.status()["waits_for"], "the file build.done, which is met");
    let woken = wake(&env);
    assert!(woken.code == 2 && woken.stderr.contains("the file build.done exists now."), "{woken:?}");
}

#[test]
fn the_end_of_a_process_ends_the_wait_even_if_its_number_is_used_again() {
    let env = started(&["x"]);
    let mut process = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = process.id().to_string();
    env.goal(&["wait", "--pid", &pid]).succeeds();
    assert_eq!(
        env.status()["waits_for"].as_str().unwrap().split_once(',').unwrap().0,
        format!("the end of process {pid}")
    );
    assert_eq!(look(&env), "not_yet");
    // The number belongs to a process that began at another moment.
    let before = env.sql("SELECT wait_json FROM goals")[0][0].clone();
    end_rest(&env);
    env.execute("UPDATE goals SET wait_json = json_set(wait_json, '$.for.process.started', '1')");
    assert_eq!(look(&env), "met");
    env.execute(&format!("UPDATE goals SET wait_json = '{before}'"));
    process.kill().unwrap();
    process.wait().unwrap();
    end_rest(&env);
    assert_eq!(look(&env), "met");
    let woken = wake(&env);
    assert!(woken.code == 2 && woken.stderr.contains(&format!("process {pid} has ended.")), "{woken:?}");
}

#[test]
fn the_deadline_ends_the_wait_with_the_wind_down_turn() {
    let env = started(&["x", "--deadline", "in 2h"]);
    env.goal(&["wait", "--file", "never", "--for", "1d"]).succeeds();
    assert_eq!(env.sql("SELECT wake_at_ms - deadline_ms FROM goals"), [["0"]]);
    env.execute(
        "UPDATE goals SET created_at_ms = created_at_ms - 7300000, wake_at_ms = wake_at_ms - 7300000,
         deadline_ms = deadline_ms - 7300000",
    );
    let woken = wake(&env);
    assert_eq!(woken.code, 2, "{woken:?}");
    let over = "The goal's wait is over because its deadline has come; the file never does not exist.\nA limit of";
    assert!(woken.stderr.starts_with(over), "{woken:?}");
    assert_eq!(env.stop("s1", "done so far", true).get("decision"), None);
    assert_eq!(env.status()["paused_reason"], "deadline");
}

#[test]
fn a_look_that_is_killed_is_made_again() {
    let env = started(&["x"]);
    let command = "if [ -e ran ]; then exit 0; fi; touch ran; kill -9 $PPID; exit 0";
    env.goal(&["wait", "--command", command]).succeeds();
    assert_eq!(env.run(&["__look", "s1"]).code, -1, "killed before it could record what it saw");
    assert_eq!((env.status()["paused_reason"].clone(), seen(&env)), (json!("waiting"), "NULL".into()));
    assert_eq!(look(&env), "not_due", "as long as a look may take");
    end_rest(&env);
    assert_eq!(look(&env), "met");
    assert_eq!((wake(&env).code, env.status()["status"].clone()), (2, json!("active")));
}

#[test]
fn many_lookers_and_wakers_wake_the_goal_once() {
    let env = started(&["x"]);
    env.goal(&["wait", "--command", "echo x >> runs; sleep 1"]).succeeds();
    let said = looks(&env, 4);
    // One that starts late finds the wait over.
    let others = ["not_due", "too_late"];
    assert_eq!(said.iter().filter(|said| *said == "met").count(), 1, "{said:?}");
    assert!(said.iter().all(|said| said == "met" || others.contains(&said.as_str())), "{said:?}");
    assert_eq!(lines(&env, "runs"), 1, "one of them ran the command");
    env.stop("s1", "waiting", false);
    let wakers: Vec<ClientChild> = (0..4).map(|_| start_waker(&env)).collect();
    while env.status()["status"] != "active" {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The wakers that did not wake the goal end with the session.
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    let codes: Vec<i32> = wakers.into_iter().map(|mut child| child.wait()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 2).count(), 1, "{codes:?}");
    assert_eq!(env.event_kinds().iter().filter(|kind| *kind == "goal_woken").count(), 1);

    env.goal(&["wait", "--file", "runs"]).succeeds();
    let said = looks(&env, 4);
    assert_eq!(said.iter().filter(|said| *said == "met").count(), 1, "{said:?}");
    let version = env.status()["version"].clone();
    assert_eq!((look(&env), env.status()["version"].clone()), ("not_due".into(), version));
}

#[test]
fn a_command_that_hangs_is_ended_and_tried_again() {
    let env = started(&["x"]);
    std::fs::write(env.home().join("config.toml"), "[goal]\nwait_timeout_seconds = 1\n").unwrap();
    env.goal(&["wait", "--command", "echo $$ >> pids; sleep 60"]).succeeds();
    for tries in 1..=2 {
        assert_eq!((look(&env), seen(&env)), ("not_yet".into(), "timed_out".into()));
        assert_eq!(lines(&env, "pids"), tries);
        end_rest(&env);
    }
    for pid in std::fs::read_to_string(env.project().join("pids")).unwrap().lines() {
        let runs = Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap();
        assert!(!runs.success(), "{pid} still runs");
    }
    env.execute("UPDATE goals SET wake_at_ms = 1");
    let woken = wake(&env);
    assert!(woken.code == 2 && woken.stderr.contains("`echo $$ &gt;&gt; pids; sleep 60` was ended at its time limit"));
}

#[test]
fn an_agents_shell_may_wait_only_for_what_the_user_approved() {
    let env = started(&["x", "--verify", "test -f done"]);
    std::fs::write(env.home().join("config.toml"), "[goal]\nwait_commands = [\"true # ok\"]\n").unwrap();
    let agent = |arguments: &[&str]| {
        let mut command = env.command(&[&["goal", "wait"], arguments].concat());
        finish(command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
    };
    let refused = agent(&["--command", "touch pwned"]);
    refused.fails_with(3, "a command that the user approved");
    assert!(refused.stderr.contains("wait for its pid"), "{refused:?}");
    agent(&["--command", "test -f done; touch pwned"]).fails_with(3, "approved");
    agent(&["--file", "/etc/passwd"]).fails_with(3, "inside the project");
    agent(&["--file", "../x"]).fails_with(3, "inside the project");
    agent(&["--for", "8d"]).fails_with(1, "7 days at most");
    assert_eq!(env.event_kinds(), ["goal_created", "privileged_verb_refused", "privileged_verb_refused"]);
    for allowed in [["--command", "test -f done"], ["--command", "true # ok"], ["--file", "x/y"], ["--for", "7d"]] {
        agent(&allowed).succeeds();
        env.goal(&["resume"]).succeeds();
    }
    assert!(!env.project().join("pwned").exists());
}

#[test]
fn wrong_waits_are_refused_with_what_to_type() {
    let env = started(&["x"]);
    for (arguments, about) in [
        (&[][..], "nothing to wait for"),
        (&["--for", "0s"], "`0s` is not a duration above 0"),
        (&["--for", "-5m"], "`-5m` is not a duration"),
        (&["--for", "15"], "`15` is not a duration"),
        (&["--for", "99999999999999999999h"], "is not a duration"),
        (&["--for", "9000d"], "366 days at most"),
        (&["--until", "2020-01-01"], "`2020-01-01` has passed"),
        (&["--until", "soon"], "`soon` is not a time"),
        (&["--until", "17:30", "--for", "1h"], "cannot be used with"),
        (&["--file", "x", "--pid", "1"], "cannot be used with"),
        (&["--file", ""], "the path is empty"),
        (&["--command", " "], "the command is empty"),
        (&["--pid", "x"], "invalid value"),
    ] {
        env.goal(&[&["wait"], arguments].concat()).fails_with(1, about);
    }
    for pid in ["0", "-1", "2147483647", "9223372036854775807"] {
        env.goal(&["wait", "--pid", pid]).fails_with(2, "no process has the number");
    }
    assert_eq!(env.status()["status"], "active");
    env.goal(&["wait", "--for", "1h"]).succeeds();
    env.goal(&["wait", "--for", "1h"]).fails_with(3, "paused (waiting)");
    env.goal(&["resume"]).succeeds();
    assert_eq!(env.sql("SELECT wait_json, status FROM goals"), [["NULL", "active"]]);
    env.run(&["goal", "start", "y", "--session", "s2", "--deadline", "soon"]).fails_with(1, "is not a time");
    let late = env.run(&["goal", "start", "y", "--session", "s2", "--deadline", "soon"]);
    assert!(late.stderr.contains("hint: use for example --deadline 17:30"), "{late:?}");
}

#[test]
fn hostile_paths_are_shown_harmlessly_and_never_expanded() {
    let env = started(&["x"]);
    let hostile = "$(touch pwned) `id` '\"; </x>\n\u{1b}[31m\u{202e}目";
    env.goal(&["wait", "--file", hostile]).succeeds();
    let status = env.goal(&["status"]).stdout;
    assert!(
        !status.contains(['\u{1b}', '\u{202e}']) && status.contains("waits for: the file $(touch pwned)"),
        "{status}"
    );
    assert_eq!(look(&env), "not_yet");
    std::fs::write(env.project().join("a"), "").unwrap();
    assert!(std::fs::create_dir_all(env.project().join(hostile)).is_ok());
    end_rest(&env);
    assert_eq!(look(&env), "met");
    let woken = wake(&env);
    assert!(woken.code == 2 && woken.stderr.contains("&lt;/x&gt; …") && !woken.stderr.contains('\u{1b}'), "{woken:?}");
    assert!(!env.project().join("pwned").exists());
}

#[test]
fn the_slash_command_is_answered_without_a_model() {
    let env = started(&["x"]);
    let slash = |arguments: &str| {
        let event = json!({
            "hook_event_name": "UserPromptExpansion", "command_name": "goal-wait", "command_args": arguments,
        });
        env.hook("s1", &event)
    };
    assert!(slash("")["reason"].as_str().unwrap().contains("nothing to wait for"));
    let answer = slash("--command \"make ready\" --until \"in 3h\"");
    assert_eq!(answer["decision"], "block");
    assert!(answer["reason"].as_str().unwrap().starts_with("goal waits for the command `make ready`"), "{answer}");
    crate::schemas::check("goal-status.schema.json", &env.goal(&["status", "--json"]).json());
}

#[test]
fn the_waker_of_the_client_looks_by_itself_and_is_not_held_up_by_a_command() {
    let env = started(&["x"]);
    env.goal(&["wait", "--command", "echo x >> tries; test -e ready"]).succeeds();
    env.stop("s1", "waiting", false);
    let waker = start_waker(&env);
    while lines(&env, "tries") == 0 || seen(&env) == "NULL" {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::write(env.project().join("ready"), "").unwrap();
    end_rest(&env);
    let woken = waker.finish();
    let said = &woken.stderr;
    assert_eq!(woken.code, 2, "{said}");
    assert!(said.contains("test -e ready` exited with 0.\n"), "{said}");

    // The user ends a wait while the command hangs.
    std::fs::write(env.home().join("config.toml"), "[goal]\nwait_timeout_seconds = 5\n").unwrap();
    env.goal(&["wait", "--command", "touch hangs; sleep 60"]).succeeds();
    env.stop("s1", "waiting", false);
    let waker = start_waker(&env);
    while !env.project().join("hangs").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    env.goal(&["resume"]).succeeds();
    assert_eq!(waker.finish().code, 2);
}
