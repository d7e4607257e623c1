//! What several test modules share: a store, and a goal that a person started in it.

use std::ops::{Deref, DerefMut};

use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::budget::Budget;
use steadfast_model::host::Host;
pub(crate) use steadfast_store::testing::{
    HOOK, HOUR, MINUTE, SECOND, SESSION, START, USER, WORKER, append, goal, new_goal, reply, reply_with_usage,
    tool_call,
};

use steadfast_system::config::Config;
use steadfast_system::paths::Paths;

use crate::action::{self, Place};

/// A store and a session file in a directory of their own, on which tests act.
pub(crate) struct World(steadfast_store::testing::World);

impl Deref for World {
    type Target = steadfast_store::testing::World;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self(steadfast_store::testing::World::new())
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths {
            home: self.root.path().join("home"),
            store: self.store.path().to_owned(),
            store_from: "test",
            config: Config::default(),
            closed: Vec::new(),
        }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            session_id: SESSION.into(),
            host: Host::Claude,
            project_dir: None,
            transcript: Some(self.transcript.clone()),
        }
    }

    pub(crate) fn start(&mut self, budget: Budget, now: Millis) -> Goal {
        let place = self.place();
        action::start(&mut self.store, &place, new_goal(budget), USER, now).unwrap()
    }
}
