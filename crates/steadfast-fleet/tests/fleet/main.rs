//! The fleet with a real Temporal server, real workers in homes of their own, real git and scripted agents.
//! `scripts/fleet_tests` builds what these tests need and runs them; without the server they say that they were skipped.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests look at the world from outside")]

mod caps;
mod chaos;
mod commands;
mod conformance;
mod errors;
mod faults;
mod keys;
mod net;
mod schedules;
mod tls;
mod world;
