//! `steadfast watch` as users and hooks start it, with agents that record how they are called.

mod process;
mod runs;
mod waking;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use steadfast_model::clock;

use crate::attempts::eventually;
use crate::env::{Env, Output, finish};

/// Sessions whose client is this test, and agents on PATH that record their arguments.
struct World {
    env: Env,
}

impl World {
    fn new() -> Self {
        let world = Self { env: Env::new() };
        std::fs::create_dir_all(world.env.path("bin")).unwrap();
        std::fs::create_dir_all(world.env.home()).unwrap();
        world.config("");
        world.agents("exit 0");
        world
    }

    /// Adds keys to the section `[watch]`.
    fn config(&self, keys: &str) {
        let text = format!("[notify]\ndesktop = false\n[runs]\nback_off_ms = 10\n[watch]\n{keys}\n");
        std::fs::write(self.env.home().join("config.toml"), text).unwrap();
    }

    /// What both agents do after they recorded a call.
    fn agents(&self, script: &str) {
        for name in ["codex", "claude"] {
            let program = self.env.path("bin").join(name);
            let calls = self.env.path("calls");
            let text =
                format!("#!/bin/sh\nprintf '%s\\n' \"{name} $*\" | head -n 1 >> '{}'\n{script}\n", calls.display());
            std::fs::write(&program, text).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// How the agents were called so far.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.command(&[&["watch"], arguments].concat());
        let path = format!("{}:{}", self.env.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("STEADFAST_DB", self.env.store());
        command
    }

    fn watch(&self, arguments: &[&str]) -> Output {
        finish(&mut self.command(arguments), b"")
    }

    fn spawn(&self, arguments: &[&str]) -> Watching {
        let mut command = self.command(arguments);
        Watching(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// A session of an agent with an active goal that waits to be woken.
    fn goal_in(&self, host: &str, session: &str, wake_at: i64) {
        if host == "codex" {
            self.env.codex(session, "SessionStart.startup", &json!({}));
        } else {
            self.env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        }
        self.env.run(&["goal", "start", "x", "--session", session]).succeeds();
        self.due(session, wake_at);
    }

    fn due(&self, session: &str, wake_at: i64) {
        self.env.execute(&format!(
            "UPDATE goals SET wake_at_ms = {wake_at}, resume_at_ms = NULL WHERE session_id = '{session}'"
        ));
    }

    /// The client of a session ended a while ago.
    fn close(&self, session: &str) {
        let ago = clock::now() - 600_000;
        self.env.execute(&format!(
            "UPDATE sessions SET ended_at_ms = {ago}, last_seen_ms = {ago} WHERE session_id = '{session}'"
        ));
    }

    fn events(&self, kind: &str) -> usize {
        self.env.event_kinds().iter().filter(|found| *found == kind).count()
    }

    fn goal(&self, columns: &str) -> Vec<String> {
        self.env.sql(&format!("SELECT {columns} FROM goals")).remove(0)
    }

    /// The process that has the lock, once there is one.
    fn holder(&self) -> u32 {
        let holder = eventually(|| steadfast_system::watch_lock::holder(&self.env.home()));
        u32::try_from(holder.pid).unwrap()
    }

    /// The process in the background.
    fn pid(&self) -> Pid {
        let output = self.watch(&["--detach", "--json"]);
        let pid = output.succeeds().json()["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    fn is_held(&self) -> bool {
        steadfast_system::watch_lock::is_held(&self.env.home())
    }
}

impl Drop for World {
    /// Ends what a test left in the background.
    fn drop(&mut self) {
        if self.is_held() {
            self.watch(&["--stop"]);
        }
    }
}

/// A process that works in the foreground, ended with the test.
struct Watching(Child);

impl Watching {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap(), signal).unwrap();
    }

    fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(condition: impl Fn() -> bool) {
    eventually(|| condition().then_some(()));
}
