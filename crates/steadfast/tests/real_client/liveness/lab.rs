//! A scripted model, a client with Steadfast, and what tests of liveness ask of them.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::request::{Kind, Request};
use crate::tui::Tui;
use crate::with_steadfast::{self, client, event_kinds, steadfast, steadfast_json, work};
use serde_json::Value;
use std::time::{Duration, Instant};

pub(super) const TOOLS: &[&str] = &["--allowedTools", "Bash"];
/// How long something may take that needs nobody. Generous for a busy machine, and well below the 60 s after which
/// the client itself reports that it is idle.
pub(super) const SOON: Duration = Duration::from_secs(40);
/// How long a test watches that nothing happens.
pub(super) const A_WHILE: Duration = Duration::from_secs(6);
/// A command that does not end while the project of the test exists.
pub(super) const FOR_EVER: &str = "while test -d .git; do sleep 1; done";
/// More requests than the turns that were already under way can make.
const MORE: usize = 5;

pub(super) struct Lab {
    pub(super) model: ScriptedModel,
    pub(super) client: Client,
}

impl Lab {
    pub(super) fn new(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let model = ScriptedModel::start(script);
        let client = client(&model);
        Self { model, client }
    }

    /// A model that works for ever: one tool call and one sentence in each turn.
    pub(super) fn looping() -> Self {
        Self::new(step)
    }

    /// With this `config.toml`.
    pub(super) fn configured(self, config: &str) -> Self {
        let home = self.client.root().join("steadfast");
        std::fs::create_dir_all(&home).expect("home");
        std::fs::write(home.join("config.toml"), config).expect("configuration");
        self
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.client = self.client.env(name, value);
        self
    }

    /// The client says that it is idle after this time in place of a minute.
    pub(super) fn idle_after(self, time: Duration) -> Self {
        let path = self.client.home().join(".claude.json");
        let mut state: Value = serde_json::from_slice(&std::fs::read(&path).expect("state")).expect("JSON");
        state["messageIdleNotifThresholdMs"] = u64::try_from(time.as_millis()).expect("time").into();
        std::fs::write(path, state.to_string()).expect("state");
        self
    }

    pub(super) fn open(&self) -> Tui {
        Tui::start(&self.client, TOOLS)
    }

    /// Opens the client and starts a goal in it, with these arguments.
    pub(super) fn start(&self, arguments: &str) -> Tui {
        let tui = self.open();
        tui.submit(&format!("/steadfast:goal-start {arguments}"));
        tui
    }

    /// Starts a goal and waits until some continuations were made.
    pub(super) fn start_loop(&self, arguments: &str) -> Tui {
        let tui = self.start(arguments);
        self.wait_for_goal("some continuations", |goal| goal["continuations_used"].as_i64() >= Some(2));
        tui
    }

    /// How many requests the conversation made.
    pub(super) fn asked(&self) -> usize {
        self.model.requests_of(Kind::Main).len()
    }

    /// Waits until the model was asked this often.
    pub(super) fn wait_until_asked(&self, times: usize, what: &str) {
        let end = Instant::now() + SOON;
        while self.asked() < times {
            assert!(Instant::now() < end, "no request for {what}; {} so far\n{}", self.asked(), self.state());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// For failure messages: the goal and what went wrong in hooks.
    fn state(&self) -> String {
        let log = std::fs::read_to_string(self.client.root().join("steadfast/log/hooks.log")).unwrap_or_default();
        format!("{}\nevents: {:?}\nlog: {log}", self.status(), event_kinds(&self.client))
    }

    /// The model is asked again and again, and nothing is typed.
    pub(super) fn continues(&self, after: &str) {
        self.wait_until_asked(self.asked() + MORE, &format!("turns after {after}"));
    }

    pub(super) fn stays_quiet(&self, time: Duration, why: &str) {
        let before = self.asked();
        let end = Instant::now() + time;
        while Instant::now() < end {
            assert_eq!(self.asked(), before, "the model was asked although {why}; {}", self.status());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(super) fn goal(&self) -> Value {
        with_steadfast::goal(&self.client)
    }

    pub(super) fn wait_for_goal(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        with_steadfast::wait_for_goal(&self.client, what, wanted)
    }

    pub(super) fn wait_for_pause(&self, reason: &str) -> Value {
        self.wait_for_goal(reason, |goal| goal["paused_reason"] == reason)
    }

    /// The session of the goal, which may be starting.
    pub(super) fn session(&self) -> String {
        self.wait_for_goal("a session", |_| true)["session_id"].as_str().expect("session").to_owned()
    }

    /// `goal status` as a person reads it in a second terminal.
    pub(super) fn status(&self) -> String {
        let (_, text) = steadfast(&self.client, &["goal", "status", "--session", &self.session()]);
        text
    }

    /// Waits until `goal status` has all these words, in any case of letters.
    pub(super) fn wait_for_status(&self, words: &[&str]) -> String {
        let end = Instant::now() + SOON;
        loop {
            let status = self.status();
            let lower = status.to_lowercase();
            if words.iter().all(|word| lower.contains(word)) {
                return status;
            }
            assert!(Instant::now() < end, "no {words:?} in\n{status}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub(super) fn active_seconds(&self) -> i64 {
        let shown = steadfast_json(&self.client, &["goal", "status", "--json", "--session", &self.session()]);
        shown["goal"]["active_seconds"].as_i64().expect("active seconds")
    }

    /// `steadfast goal …` in a second terminal.
    pub(super) fn terminal(&self, arguments: &[&str]) -> String {
        let (code, said) = steadfast(&self.client, &[&["goal"], arguments].concat());
        assert_eq!(code, 0, "{arguments:?}: {said}");
        said
    }

    /// How often the log of the goal has an event.
    pub(super) fn events(&self, kind: &str) -> usize {
        event_kinds(&self.client).iter().filter(|found| *found == kind).count()
    }
}

/// Whether the client just ran tools for the model.
pub(super) fn follows_tool(request: &Request) -> bool {
    let messages = request.json["messages"].as_array().expect("messages");
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    let blocks = last.and_then(|message| message["content"].as_array()).into_iter().flatten();
    blocks.into_iter().any(|block| block["type"] == "tool_result")
}

/// One step of a turn that works a little and then ends. No two calls are alike.
pub(super) fn step(request: &Request) -> Reply {
    let reply = if follows_tool(request) {
        Reply::text(format!("Step {}.", request.seq))
    } else {
        work(&format!("toolu_{}", request.seq))
    };
    reply.delay(Duration::from_millis(300))
}

/// A call of a tool of Claude Code's shell.
pub(super) fn bash(id: &str, command: &str) -> Reply {
    let input = serde_json::json!({"command": command, "description": "Run it"});
    Reply::default().and_tool_with_id(id, "Bash", input)
}
