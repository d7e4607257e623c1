//! A client of one session that calls hooks, as several models use it.

use steadfast_app::action::Place;
use steadfast_app::hook;
use steadfast_model::goal::Goal;
use steadfast_model::hook::{HookEvent, HookInput};
use steadfast_model::host::Host;
use steadfast_store::testing::{SESSION, START, World};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;

pub(crate) struct Client {
    pub(crate) world: World,
}

impl Client {
    /// A session whose first prompt was typed.
    pub(crate) fn new() -> Self {
        let client = Self { world: World::new() };
        client.hook("UserPromptSubmit", HookEvent::Prompt { typed: true }, START);
        client
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths {
            home: self.world.root.path().join("home"),
            store: self.world.store.path().to_owned(),
            store_from: "test",
            config: Config::default(),
            closed: Vec::new(),
        }
    }

    pub(crate) fn place(&self) -> Place {
        let transcript = Some(self.world.transcript.clone());
        Place { session_id: SESSION.into(), host: Host::Claude, project_dir: None, transcript }
    }

    /// No hook may fail: that would pause the goal.
    pub(crate) fn hook(&self, event_name: &str, event: HookEvent, now: i64) {
        let input = HookInput {
            host: Host::Claude,
            event_name: event_name.into(),
            session_id: SESSION.into(),
            transcript: Some(self.world.transcript.clone()),
            cwd: "/p".into(),
            project_dir: "/p".into(),
            turn_id: None,
            event,
            observations: Vec::new(),
        };
        let reply = hook::handle_call(&input, &self.paths(), None, now).expect("a call of the client");
        let message = reply.message.unwrap_or_default();
        assert!(!message.starts_with("steadfast: "), "{message}");
    }

    pub(crate) fn goal(&self) -> Option<Goal> {
        self.world.store.read().goal(SESSION).expect("the goal")
    }

    pub(crate) fn turn_runs(&self) -> bool {
        let session = self.world.store.read().session(SESSION).expect("the session");
        session.is_some_and(|session| session.activity.turn_since_ms.is_some())
    }
}
