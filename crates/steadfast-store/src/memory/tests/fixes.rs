//! From a failure to what made it go away.

use super::*;

fn failed(command: &str, error: &str) -> Finding {
    finding(Category::Error, "command", Importance::High, command, error)
}

fn edited(path: &str) -> Finding {
    finding(Category::File, "edit", Importance::Normal, path, path)
}

impl World {
    fn worked(&mut self, findings: Vec<Finding>, subjects: &[&str]) {
        let worked = subjects.iter().map(|subject| (*subject).to_owned()).collect();
        let found = Findings { findings, worked, ..Findings::default() };
        self.store.write(|db| db.remember(SESSION, &found, START + 1)).unwrap();
    }

    fn errors(&self) -> Vec<(String, bool)> {
        let events = self.remembered().into_iter().filter(|event| event.category == Category::Error);
        events.map(|event| (event.text, event.resolved)).collect()
    }
}

#[test]
fn a_success_resolves_the_error_and_tells_what_was_done() {
    let mut world = World::new();
    world.remember(vec![edited("src/before.rs")]);
    world.remember(vec![failed("cargo test", "error[E0308]: mismatched types\n --> src/a.rs:1")]);
    world.remember(vec![read_of("src/a.rs"), edited("src/a.rs"), edited("src/b.rs"), edited("src/a.rs")]);
    world.remember(vec![failed("npm test", "another matter")]);
    world.remember(vec![finding(Category::Git, "commit", Importance::High, "", "git commit -m 'fix types'")]);
    world.worked(vec![], &["cargo test", "never failed", ""]);
    let fix = world.remembered().pop().unwrap();
    let expected = MemoryEvent {
        id: fix.id,
        session_id: SESSION.into(),
        category: Category::Fix,
        kind: "fixed".into(),
        importance: Importance::High,
        subject: "cargo test".into(),
        text: "cargo test failed: error[E0308]: mismatched types …; works now after changes to src/a.rs, src/b.rs and \
               git commit -m 'fix types'"
            .into(),
        repeats: 1,
        resolved: false,
        created_at_ms: START + 1,
    };
    assert_eq!(fix, expected);
    let open = world.errors().into_iter().filter(|(_, resolved)| !resolved).collect::<Vec<_>>();
    assert_eq!(open, [("another matter".into(), false)]);
    world.worked(vec![], &["cargo test"]);
    assert_eq!(world.texts_of(Category::Fix).len(), 1, "there was nothing left to fix");
}

#[test]
fn a_resolved_error_that_comes_back_is_a_new_one() {
    let mut world = World::new();
    for _ in 0..2 {
        world.remember(vec![failed("make", "no rule")]);
        world.remember(vec![failed("make", "no rule")]);
        world.worked(vec![], &["make"]);
    }
    assert_eq!(world.errors(), [("no rule".into(), true), ("no rule".into(), true)]);
    assert_eq!(world.remembered().last().unwrap().repeats, 2, "the same story twice");
    assert_eq!(world.texts_of(Category::Fix), ["make failed 2 times: no rule; works now"]);
}

#[test]
fn several_errors_about_one_thing_end_together() {
    let mut world = World::new();
    world.remember(vec![failed("make", "one"), edited("a"), failed("make", "two"), edited("b")]);
    world.worked(vec![], &["make"]);
    assert_eq!(world.texts_of(Category::Fix), ["make failed 2 times: two; works now after changes to b"]);
    assert!(world.errors().into_iter().all(|(_, resolved)| resolved));
}

#[test]
fn a_story_begins_with_the_words_of_the_error_and_not_with_its_code() {
    for (error, told) in [
        ("Exit code 1\ncat: a: No such file", "cat: a: No such file"),
        ("Exit code 101\n\n  error: no\nmore", "error: no …"),
        ("Exit code 3", "Exit code 3"),
        ("Exit code 3\n \n", "Exit code 3 …"),
        ("Exit code of the thing\nx", "Exit code of the thing …"),
    ] {
        let mut world = World::new();
        world.remember(vec![failed("make", error)]);
        world.worked(vec![], &["make"]);
        assert_eq!(world.texts_of(Category::Fix), [format!("make failed: {told}; works now")], "{error:?}");
    }
}

#[test]
fn what_failed_and_worked_within_one_call_stays_open() {
    let mut world = World::new();
    world.worked(vec![failed("make", "no rule")], &["make"]);
    assert_eq!(world.errors(), [("no rule".into(), false)]);
}

#[test]
fn a_long_story_is_told_from_its_end() {
    let mut world = World::new();
    let long = "x".repeat(500);
    world.remember(vec![failed("make", &long)]);
    for number in 0..150 {
        world.remember(vec![edited(&format!("{number}{long}"))]);
    }
    world.worked(vec![], &["make"]);
    let text = world.texts_of(Category::Fix).pop().unwrap();
    assert!(text.contains("149xxx") && !text.contains("141xxx"), "{text}");
    assert!(text.contains("(142 earlier left out)"), "{text}");
    assert!(text.chars().count() < 1_600);
}
