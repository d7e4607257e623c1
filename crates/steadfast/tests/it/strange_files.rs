//! What is no plain file, or has no end, in the place of a file that hooks and commands read: no process waits for it
//! or fills the memory, the client's turn continues, and the user hears of it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client;
use crate::env::{Env, Output};

const THREAD: &str = "01a1de4d-469f-7d62-b479-f9ee8e1e36ee";
/// Far longer than anything here takes; a process that runs longer hangs.
const WATCHDOG: Duration = Duration::from_mins(1);
/// Kilobytes of address space: a process that reads a long line into memory does not fit.
const MEMORY: &str = "400000";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Thing {
    Pipe,
    Device,
    Directory,
    /// One line of 1 GB that takes no space on the disk.
    LongLine,
}

const THINGS: [Thing; 4] = [Thing::Pipe, Thing::Device, Thing::Directory, Thing::LongLine];

impl Thing {
    fn put(self, path: &Path) {
        let _ = std::fs::remove_file(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match self {
            Self::Pipe => {
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            }
            Self::Device => symlink("/dev/zero", path).unwrap(),
            Self::Directory => std::fs::create_dir(path).unwrap(),
            Self::LongLine => std::fs::File::create(path).unwrap().set_len(1 << 30).unwrap(),
        }
    }
}

/// A command with little memory.
fn limited(env: &Env, arguments: &[&str]) -> Command {
    let plain = env.command(arguments);
    let mut command = Command::new("bash");
    command.arg("-c").arg(format!("ulimit -v {MEMORY} 2>/dev/null; exec \"$0\" \"$@\"")).arg(plain.get_program());
    command.args(plain.get_args()).env_clear().current_dir(env.project());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Runs a command of a person and ends it if it hangs.
fn guarded(env: &Env, arguments: &[&str]) -> Output {
    let mut command = limited(env, arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish_in_time(command, arguments)
}

/// Runs a hook as the client does and ends it if it hangs.
fn guarded_hook(env: &Env, host: &str, stdin: &str) -> Output {
    let by = if host == "codex" { client::Stdin::Pipe } else { client::Stdin::Socket };
    let mut child = client::spawn_with(&limited(env, &["hook", host]), by);
    child.write(stdin.as_bytes());
    child.close_stdin();
    end_in_time(&mut child, host);
    child.finish()
}

fn end_in_time(child: &mut client::ClientChild, what: &str) {
    let end = Instant::now() + WATCHDOG;
    while child.try_wait().is_none() {
        if Instant::now() > end {
            child.kill();
            panic!("{what} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn finish_in_time(mut command: Command, what: &[&str]) -> Output {
    let mut child = command.spawn().unwrap();
    let end = Instant::now() + WATCHDOG;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("{what:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Output { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// One of the two hosts, with a goal that is at work.
struct World {
    env: Env,
    host: &'static str,
}

impl World {
    fn new(host: &'static str) -> Self {
        let env = Env::new();
        if host == "claude" {
            env.start(&["all is well"]);
            env.says("s1", "msg_1", "a step", 100);
        } else {
            env.codex(THREAD, "SessionStart.startup", &json!({}));
            env.codex_says(THREAD, "resp_0", "before", 100);
            env.codex(THREAD, "UserPromptSubmit", &json!({"prompt": "goal: all is well"}));
        }
        Self { env, host }
    }

    fn session(&self) -> &'static str {
        if self.host == "claude" { "s1" } else { THREAD }
    }

    fn transcript(&self) -> PathBuf {
        if self.host == "claude" { self.env.transcript("s1") } else { self.env.rollout(THREAD) }
    }

    fn hook(&self, event: &Value) -> Value {
        let mut input = json!({
            "session_id": self.session(), "transcript_path": self.transcript(), "cwd": self.env.project(),
        });
        for (name, value) in event.as_object().unwrap() {
            input[name] = value.clone();
        }
        let output = guarded_hook(&self.env, self.host, &input.to_string());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{event}: {output:?}");
        if output.stdout.is_empty() { Value::Null } else { output.json() }
    }

    /// A session that is resumed, works, is compacted and ends; returns all messages to the user.
    fn live_on(&self) -> String {
        let agent = self.env.path("agent-a1.jsonl");
        let events = [
            json!({"hook_event_name": "SessionStart", "source": "resume"}),
            json!({"hook_event_name": "UserPromptSubmit", "prompt": "go on", "turn_id": "t1"}),
            json!({"hook_event_name": "PostToolBatch", "tool_calls": []}),
            json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "true"},
                   "tool_response": "ok"}),
            json!({"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "default",
                   "transcript_path": agent}),
            json!({"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "default",
                   "agent_transcript_path": agent}),
            json!({"hook_event_name": "PreCompact", "trigger": "auto"}),
            json!({"hook_event_name": "SessionStart", "source": "compact"}),
            json!({"hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "a step",
                   "background_tasks": []}),
            json!({"hook_event_name": "SessionEnd", "reason": "other"}),
        ];
        let replies = events.iter().map(|event| self.hook(event));
        replies.filter_map(|reply| reply["systemMessage"].as_str().map(|text| format!("{text}\n"))).collect()
    }

    fn command(&self, arguments: &[&str]) -> Output {
        guarded(&self.env, arguments)
    }

    fn goal(&self) -> Value {
        self.command(&["goal", "status", "--json", "--session", self.session()]).json()["goal"].clone()
    }
}

/// Calls the test for both hosts and everything that can be in the place of a file.
fn each(mut test: impl FnMut(&World, Thing, &str)) {
    for host in ["claude", "codex"] {
        for thing in THINGS {
            test(&World::new(host), thing, &format!("{host}, {thing:?}"));
        }
    }
}

#[test]
fn in_the_place_of_a_transcript_it_pauses_the_goal_and_the_user_hears_of_it() {
    each(|world, thing, what| {
        thing.put(&world.transcript());
        let said = world.live_on();
        let goal = world.goal();
        if thing == Thing::LongLine {
            assert_ne!(goal["status"], "complete", "{what}");
            let sql = "SELECT sum(broken_lines) > 0 FROM transcript_cursors";
            assert_eq!(world.env.sql(sql), [["1"]], "{what}: the line is counted as broken");
        } else {
            assert_eq!(goal["paused_reason"], "degraded", "{what}: {said} {goal:#}");
            assert!(said.contains("is not a file"), "{what}: {said}");
        }
        for command in [&["usage", "--json"][..], &["session", "list"], &["doctor"]] {
            assert_ne!(world.command(command).code, -1, "{what}: {command:?}");
        }
    });
}

#[test]
fn in_the_place_of_a_subagents_file_it_stops_no_hook() {
    each(|world, thing, what| {
        let beside = world.transcript().with_extension("").join("subagents/agent-a1.jsonl");
        for path in [beside, world.env.path("agent-a1.jsonl")] {
            thing.put(&path);
        }
        world.live_on();
        assert_ne!(world.goal()["status"], "complete", "{what}");
    });
}

#[test]
fn in_the_place_of_the_log_or_the_configuration_it_stops_no_hook() {
    each(|world, thing, what| {
        let home = world.env.home();
        thing.put(&home.join("log/hooks.log"));
        thing.put(&home.join("config.toml"));
        let said = world.live_on();
        assert!(said.contains("config.toml"), "{what}: {said}");
        let doctor = world.command(&["doctor", "--json"]);
        assert_ne!(doctor.code, -1, "{what}: {doctor:?}");
    });
}

#[test]
fn in_the_place_of_the_clients_own_files_it_stops_no_hook_and_no_command() {
    each(|world, thing, what| {
        let user = world.env.path("user");
        for name in [".claude/settings.json", ".codex/config.toml", ".codex/hooks.json", ".codex/goals_1.sqlite"] {
            thing.put(&user.join(name));
        }
        world.live_on();
        for command in [&["doctor"][..], &["setup", "claude", "--dry-run"], &["setup", "codex", "--dry-run"]] {
            assert_ne!(world.command(command).code, -1, "{what}: {command:?}");
        }
        let prices = world.env.path("prices.toml");
        thing.put(&prices);
        let refused = world.command(&["usage", "--prices", prices.to_str().unwrap()]);
        assert!(refused.code > 0, "{what}: {refused:?}");
    });
}

#[test]
fn in_the_place_of_the_store_it_stops_no_hook() {
    each(|world, thing, what| {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(world.env.home().join(format!("goals.db{end}")));
        }
        thing.put(&world.env.store());
        world.live_on();
        assert_eq!(world.command(&["goal", "status", "--session", "s1"]).code, 4, "{what}");
    });
}

/// A client that keeps the pipe open: the hook gives up, and says so in the log.
#[test]
fn a_hook_whose_input_does_not_end_gives_up() {
    let env = Env::new();
    env.start(&["all is well"]);
    let mut child = client::spawn(&env.command(&["hook", "claude"]));
    end_in_time(&mut child, "the hook");
    assert_eq!(child.wait(), 0);
    let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap();
    assert!(log.contains("stdin does not end"), "{log}");
}
