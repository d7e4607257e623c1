//! Session memory in a real store: what is kept, what goes first, what is found again.

use super::*;
use crate::testing::{SESSION, START, World};
use crate::{ParentLink, Session};
use steadfast_model::host::Host;
use steadfast_model::memory::EVENTS_KEPT;

mod bounds;
mod fixes;
mod lineage;
mod plans;
mod retention;
mod search;
mod stated;
mod tasks;

fn finding(category: Category, kind: &'static str, importance: Importance, subject: &str, text: &str) -> Finding {
    Finding { category, kind, importance, subject: subject.into(), text: text.into() }
}

fn read_of(path: &str) -> Finding {
    finding(Category::File, "read", Importance::Low, path, path)
}

fn prompt(text: &str) -> Finding {
    finding(Category::Prompt, "prompt", Importance::High, "", text)
}

fn session(id: &str, started_at_ms: Millis) -> Session {
    Session {
        session_id: id.into(),
        host: Host::Codex,
        cwd: "/p/web".into(),
        project_dir: "/p/web".into(),
        transcript_path: String::new(),
        client: None,
        parent_session_id: None,
        parent_link: None,
        last_prompt_ms: None,
        started_at_ms,
        last_seen_ms: started_at_ms,
        ..Session::default()
    }
}

fn fork(id: &str, parent: &str, started_at_ms: Millis) -> Session {
    Session {
        parent_session_id: Some(parent.into()),
        parent_link: Some(ParentLink::Fork),
        ..session(id, started_at_ms)
    }
}

impl World {
    fn remember_in(&mut self, session_id: &str, findings: Vec<Finding>, now: Millis) {
        let found = Findings { findings, ..Findings::default() };
        self.store.write(|db| db.remember(session_id, &found, now)).unwrap();
    }

    fn remember(&mut self, findings: Vec<Finding>) {
        self.remember_in(SESSION, findings, START);
    }

    fn put(&mut self, session: &Session) {
        self.store.write(|db| db.put_session(session)).unwrap();
    }

    fn remembered(&self) -> Vec<MemoryEvent> {
        self.store.read().events_of(SESSION, MemoryFilter::default(), usize::MAX).unwrap()
    }

    fn texts_of(&self, category: Category) -> Vec<String> {
        let filter = MemoryFilter { category: Some(category), after: None };
        let events = self.store.read().events_of(SESSION, filter, usize::MAX).unwrap();
        events.into_iter().map(|event| event.text).collect()
    }
}

#[test]
fn an_event_comes_back_as_it_was_found() {
    let mut world = World::new();
    world.remember(vec![finding(Category::Git, "commit", Importance::Critical, "feat: 目", "git commit -m 'x'\n目")]);
    let expected = MemoryEvent {
        id: 1,
        session_id: SESSION.into(),
        category: Category::Git,
        kind: "commit".into(),
        importance: Importance::Critical,
        subject: "feat: 目".into(),
        text: "git commit -m 'x'\n目".into(),
        repeats: 1,
        resolved: false,
        created_at_ms: START,
    };
    assert_eq!(world.remembered(), [expected]);
}

#[test]
fn a_repetition_is_counted_and_only_what_comes_back_is_stored_again() {
    let mut world = World::new();
    for path in ["a", "a", "b", "a", "a", "a"] {
        // What happens in other categories in between makes no difference.
        world.remember(vec![read_of(path), prompt("go on")]);
    }
    let kept: Vec<(String, i64)> = world
        .remembered()
        .into_iter()
        .filter(|event| event.kind == "read")
        .map(|event| (event.subject, event.repeats))
        .collect();
    assert_eq!(kept, [("a".into(), 2), ("b".into(), 1), ("a".into(), 3)]);
    let counts = world.store.read().counts_by_category(SESSION).unwrap();
    assert_eq!(counts, [(Category::Prompt, 1), (Category::File, 3)], "an event counts once, however often it was seen");
}

#[test]
fn what_comes_back_after_something_else_of_its_category_is_told_again() {
    let of = |category, kind, text| finding(category, kind, Importance::Normal, "", text);
    for (category, order) in [
        (Category::File, [("read", "a"), ("edit", "a"), ("read", "a")]),
        (Category::Git, [("commit", "wip"), ("push", "git push"), ("commit", "wip")]),
        (
            Category::Intent,
            [("investigate", "investigate"), ("implement", "implement"), ("investigate", "investigate")],
        ),
    ] {
        let mut world = World::new();
        for (kind, text) in order {
            world.remember(vec![of(category, kind, text)]);
        }
        let kept = world.remembered();
        let kept: Vec<(&str, &str, i64)> =
            kept.iter().map(|event| (event.kind.as_str(), event.text.as_str(), event.repeats)).collect();
        assert_eq!(kept, order.map(|(kind, text)| (kind, text, 1)));
    }
}

#[test]
fn sessions_do_not_see_each_others_repetitions() {
    let mut world = World::new();
    world.remember(vec![read_of("a")]);
    world.remember_in("other", vec![read_of("a")], START);
    assert_eq!(world.remembered().len(), 1);
    assert_eq!(world.store.read().counts_by_category("other").unwrap(), [(Category::File, 1)]);
}

#[test]
fn events_are_listed_newest_or_page_by_page() {
    let mut world = World::new();
    world.remember((1..=9).map(|number| read_of(&number.to_string())).collect());
    let list = |after, limit| {
        let filter = MemoryFilter { category: None, after };
        let events = world.store.read().events_of(SESSION, filter, limit).unwrap();
        events.into_iter().map(|event| event.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 3), [7, 8, 9]);
    assert_eq!(list(Some(0), 3), [1, 2, 3]);
    assert_eq!(list(Some(3), 3), [4, 5, 6]);
    assert_eq!(list(Some(9), 3), Vec::<i64>::new());
}

#[test]
fn values_of_another_world_are_passed_over_and_cost_nothing_else() {
    let mut world = World::new();
    world.remember(vec![prompt("one")]);
    world
        .store
        .db
        .execute_batch(
            "INSERT INTO session_events (session_id, category, kind, importance, subject, text, created_at_ms) VALUES
               ('6dd8620c-ffe0-495b-a46f-f90ad33f492f', 'telepathy', 'x', 1, '', 'from the future', 1),
               ('6dd8620c-ffe0-495b-a46f-f90ad33f492f', 'prompt', x'ff00', 1, 7, x'c3280041', 'yesterday');
             INSERT INTO session_tasks VALUES ('6dd8620c-ffe0-495b-a46f-f90ad33f492f', x'ff', 1, 5, 'pending', 1);
             INSERT INTO stated_goals (session_id, objective, status, goal_id, set_at_ms, changed_at_ms)
               VALUES ('6dd8620c-ffe0-495b-a46f-f90ad33f492f', x'ff41', 'active', 5, 'x', 'y');
             INSERT INTO session_snapshots VALUES ('6dd8620c-ffe0-495b-a46f-f90ad33f492f', x'ff41', 1, 1, 'x', 5, 'y', 'z');",
        )
        .unwrap();
    let texts: Vec<String> = world.remembered().into_iter().map(|event| event.text).collect();
    assert_eq!(texts, ["one", "\u{fffd}(\0A"]);
    assert_eq!(world.store.read().counts_by_category(SESSION).unwrap(), [(Category::Prompt, 2)]);
    let known = world.store.read().session_memory(SESSION, Host::Claude, None).unwrap();
    assert_eq!((known.tasks.len(), known.events.len(), known.host), (1, 1, Host::Claude));
    assert_eq!(known.stated, None, "a goal of no known time is not a goal of now");
    assert_eq!(world.store.read().search("from the future", Scope::All, None, 5).unwrap(), []);
    world.remember(vec![prompt("two")]);
    assert_eq!(world.texts_of(Category::Prompt).last().unwrap(), "two");
    world.store.purge(&[SESSION.to_owned()], &mut |_, _, _| {}).unwrap();
    assert_eq!(world.remembered(), []);
}

#[test]
fn nothing_found_changes_nothing() {
    let mut world = World::new();
    world.store.write(|db| db.remember(SESSION, &Findings::default(), START)).unwrap();
    assert_eq!(world.store.read().known_sessions().unwrap(), []);
}

#[test]
fn texts_that_nobody_bounded_are_cut() {
    let mut world = World::new();
    world.remember(vec![finding(Category::Rule, "file", Importance::High, &"s".repeat(9_000), &"目".repeat(90_000))]);
    let kept = world.remembered();
    let lengths: Vec<_> = kept.iter().map(|e| (e.subject.chars().count(), e.text.chars().count())).collect();
    assert_eq!(lengths, [(1_000, 4_000)]);
}

/// Every hook is a process with a connection of its own.
#[test]
fn forty_eight_writers_at_once_all_get_their_word_in() {
    let world = World::new();
    let path = world.store.path().to_owned();
    std::thread::scope(|scope| {
        for number in 0..48 {
            let path = &path;
            scope.spawn(move || {
                let mut store = crate::Store::open(path).unwrap();
                let found = Findings { findings: vec![prompt(&number.to_string())], ..Findings::default() };
                store.write(|db| db.remember(SESSION, &found, START)).unwrap();
            });
        }
    });
    let mut texts: Vec<i32> = world.texts_of(Category::Prompt).iter().map(|text| text.parse().unwrap()).collect();
    texts.sort_unstable();
    assert_eq!(texts, (0..48).collect::<Vec<_>>());
    assert_eq!(world.store.integrity_faults().unwrap(), Vec::<String>::new());
}

#[test]
fn snapshots_are_kept_counted_and_noted() {
    let mut world = World::new();
    let empty = Snapshot {
        session_id: SESSION.into(),
        text: String::new(),
        compactions: 2,
        written_at_ms: START,
        injected_at_ms: None,
        injected_by: None,
        compacting_at_ms: None,
        compacting_bytes: None,
    };
    assert_eq!(world.store.read().snapshot(SESSION).unwrap(), None);
    for now in [START, START + 1] {
        world.store.write(|db| db.note_compaction(SESSION, now)).unwrap();
    }
    assert_eq!(world.store.read().snapshot(SESSION).unwrap(), Some(empty.clone()));
    world.store.write(|db| db.put_snapshot(SESSION, "<session_resume/>", START + 2)).unwrap();
    world.store.write(|db| db.note_injection(SESSION, "compact", START + 3)).unwrap();
    world.store.write(|db| db.note_injection(SESSION, "resume", START + 4)).unwrap();
    let told = Snapshot {
        text: "<session_resume/>".into(),
        written_at_ms: START + 2,
        injected_at_ms: Some(START + 4),
        injected_by: Some("resume".into()),
        ..empty
    };
    assert_eq!(world.store.read().snapshot(SESSION).unwrap(), Some(told));
    assert_eq!(world.store.read().session_memory(SESSION, Host::Claude, None).unwrap().compactions, 2);
}
