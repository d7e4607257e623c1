//! Requests to the page, as bytes of a connection. `@HOST` and `@COOKIE` stand for those of the server.

use std::path::PathBuf;

use steadfast_app::action::{self, Place};
use steadfast_model::goal::{Actor, NewGoal};
use steadfast_model::host::Host;
use steadfast_store::{Origin, Store};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;
use steadfast_views::web::testing::InMemory;
use tempfile::TempDir;

use crate::scratch;

const START: i64 = 1_800_000_000_000;
/// A text that only those may see who have the cookie, and that must be escaped in HTML.
const OBJECTIVE: &str = "<b>known-only-inside</b>";
const SECRET: &str = "known-only-inside";

struct RequestWorld {
    _root: TempDir,
    server: InMemory,
    cookie: String,
}

thread_local! {
    static WORLD: RequestWorld = RequestWorld::new();
}

impl RequestWorld {
    fn new() -> Self {
        let root = scratch::new_directory();
        let home = root.path().to_owned();
        let store = home.join("goals.db");
        let place = Place { session_id: "s-1".to_owned(), host: Host::Claude, project_dir: None, transcript: None };
        let new = NewGoal { objective: OBJECTIVE.to_owned(), ..NewGoal::default() };
        let origin = Origin { actor: Actor::User, place: "goal-cli" };
        action::start(&mut Store::open(&store).expect("a store"), &place, new, origin, START).expect("a goal");
        let paths = Paths { home, store, store_from: "test", config: Config::default(), closed: Vec::new() };
        // Actions run a program that does nothing.
        let server = InMemory::new(paths, PathBuf::from("/bin/true")).expect("a server");
        let cookie = server.cookie().expect("a cookie");
        Self { _root: root, server, cookie }
    }
}

pub(crate) fn run(data: &[u8]) {
    WORLD.with(|world| {
        let request = replaced(data, b"@HOST", world.server.host().as_bytes());
        let has_cookie = request.windows(7).any(|window| window == b"@COOKIE");
        let request = replaced(&request, b"@COOKIE", world.cookie.as_bytes());
        let answer = world.server.answer(&request).expect("a server in memory");
        check(&String::from_utf8_lossy(&answer), has_cookie);
    });
}

fn check(answer: &str, has_cookie: bool) {
    assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
    assert!(!answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(has_cookie || !answer.contains(SECRET), "shown without the cookie: {answer}");
    let head = answer.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
    // What the HTTP library refuses by itself has no body.
    let is_ours = head.contains("content-type");
    assert!(!is_ours || head.contains("content-security-policy"), "{head}");
    assert!(!head.contains("text/html") || !answer.contains(OBJECTIVE), "not escaped: {answer}");
}

fn replaced(data: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some(at) = rest.windows(what.len()).position(|window| window == what) {
        made.extend_from_slice(rest.get(..at).unwrap_or_default());
        made.extend_from_slice(with);
        rest = rest.get(at + what.len()..).unwrap_or_default();
    }
    made.extend_from_slice(rest);
    made
}
