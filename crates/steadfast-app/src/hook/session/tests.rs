//! Which session a new one follows after `/clear`.

use super::*;
use steadfast_model::host::Host;

fn session(id: &str, cwd: &str, pid: Option<i64>) -> Session {
    Session {
        session_id: id.into(),
        host: Host::Claude,
        cwd: cwd.into(),
        project_dir: cwd.into(),
        transcript_path: String::new(),
        client: pid.map(|pid| ProcessId { pid, started: 1 }),
        parent_session_id: None,
        parent_link: None,
        last_prompt_ms: None,
        started_at_ms: 1,
        last_seen_ms: 1,
        ended_at_ms: None,
        end_reason: None,
        ..Session::default()
    }
}

#[test]
fn the_parent_is_the_session_that_ended_for_this_one_and_is_never_guessed() {
    let (a, b) = (session("a", "/p", Some(7)), session("b", "/p", Some(7)));
    let (elsewhere, other) = (session("c", "/q", Some(7)), session("d", "/p", Some(8)));
    let codex = Session { host: Host::Codex, ..session("e", "/p", Some(7)) };
    let nameless = session("n", "/p", None);
    for (client, left, open, parent) in [
        (Some(7), vec![&a], vec![&b], Some("a")),
        (Some(7), vec![&a, &b], vec![], None),
        (Some(7), vec![&other, &elsewhere, &codex], vec![&b], Some("b")),
        (Some(7), vec![], vec![&a], Some("a")),
        (Some(7), vec![], vec![&a, &elsewhere, &other], Some("a")),
        (Some(7), vec![], vec![&a, &b], None),
        (Some(7), vec![], vec![&nameless], None),
        // Where processes cannot be identified, only the client's own report counts.
        (None, vec![&nameless], vec![&a], Some("n")),
        (None, vec![&nameless, &a], vec![], None),
        (None, vec![], vec![&nameless], None),
    ] {
        let found = left_for(
            &session("new", "/p", client),
            left.iter().map(|session| (*session).clone()).collect(),
            open.iter().map(|session| (*session).clone()).collect(),
        );
        assert_eq!(found.map(|session| session.session_id).as_deref(), parent, "{client:?} {left:?} {open:?}");
    }
}
