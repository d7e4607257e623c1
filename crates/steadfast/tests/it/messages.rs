//! Messages to the user: written with the change that causes them, delivered once, on the desktop.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::json;

use crate::attempts::eventually;
use crate::env::{Env, finish};

/// A `notify-send` that records its arguments.
struct Desktop {
    env: Env,
    shown: PathBuf,
    path: String,
}

impl Desktop {
    fn new() -> Self {
        let env = Env::new();
        let (shown, program) = (env.path("shown"), env.path("bin/notify-send"));
        fs_err::create_dir_all(env.path("bin")).unwrap();
        fs_err::write(&program, format!("#!/bin/sh\nprintf '%s\\n' \"$3\" >> '{}'\n", shown.display())).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
        Self { env, shown, path }
    }

    fn hook(&self, event: serde_json::Value) {
        let mut event = event;
        event["session_id"] = json!("s1");
        event["transcript_path"] = json!(self.env.transcript("s1"));
        event["cwd"] = json!(self.env.project());
        let mut command = self.env.command(&["hook", "claude"]);
        finish(command.env("PATH", &self.path), event.to_string().as_bytes()).succeeds();
    }

    fn stop(&self) {
        self.hook(json!({"hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": "x"}));
    }

    /// The titles shown so far, once there are that many.
    fn titles(&self, count: usize) -> Vec<String> {
        eventually(|| {
            let text = fs_err::read_to_string(&self.shown).unwrap_or_default();
            let titles: Vec<String> = text.lines().map(str::to_owned).collect();
            (titles.len() >= count).then_some(titles)
        })
    }
}

#[test]
fn a_limit_in_a_hook_is_shown_once() {
    let desktop = Desktop::new();
    desktop.env.start(&["x", "--budget", "100"]);
    desktop.env.says("s1", "m1", "one", 150);
    desktop.stop();
    assert_eq!(desktop.titles(1), ["Goal stopped: its budget is spent"]);
    desktop.stop();
    desktop.hook(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    assert_eq!(desktop.titles(1), ["Goal stopped: its budget is spent"]);
    let waiting = desktop.env.sql("SELECT count(*) FROM outbox WHERE taken_at_ms IS NULL");
    assert_eq!(waiting, [["0"]]);
}

#[test]
fn a_message_of_another_process_is_shown_at_the_next_session_start_or_end_of_a_turn() {
    let desktop = Desktop::new();
    desktop.env.start(&["x"]);
    let waiting = "SELECT count(*) FROM outbox WHERE taken_at_ms IS NULL";
    let left = "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES ('goal_blocked', 'g', 'Goal blocked', 'b', 1)";
    desktop.env.execute(left);
    desktop.hook(json!({"hook_event_name": "PostToolBatch"}));
    assert_eq!(desktop.env.sql(waiting), [["1"]], "a hook in the middle of a turn does not look");
    desktop.hook(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    assert_eq!(desktop.titles(1), ["Goal blocked"]);
    desktop.env.execute(left);
    desktop.stop();
    assert_eq!(desktop.titles(2), ["Goal blocked", "Goal blocked"]);
}

#[test]
fn what_a_person_does_is_no_message_and_the_desktop_can_be_off() {
    let desktop = Desktop::new();
    desktop.env.start(&["x", "--budget", "100"]);
    desktop.env.goal(&["pause"]).succeeds();
    desktop.env.goal(&["resume"]).succeeds();
    assert_eq!(desktop.env.sql("SELECT count(*) FROM outbox"), [["0"]]);
    fs_err::write(desktop.env.home().join("config.toml"), "[notify]\ndesktop = false\n").unwrap();
    desktop.env.says("s1", "m1", "one", 150);
    desktop.stop();
    eventually(|| (desktop.env.sql("SELECT count(taken_at_ms) FROM outbox") == [["1"]]).then_some(()));
    assert_eq!(desktop.titles(0), Vec::<String>::new());
}
