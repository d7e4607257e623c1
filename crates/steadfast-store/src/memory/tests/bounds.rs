//! At most a thousand events, and which of them.

use super::*;
use steadfast_model::memory::stated::{StatedChange, StatedGoal, StatedStatus};

fn numbered(category: Category, importance: Importance, numbers: std::ops::Range<usize>) -> Vec<Finding> {
    numbers.map(|number| finding(category, "k", importance, "", &number.to_string())).collect()
}

/// One hook call each, as they come.
fn one_by_one(world: &mut World, findings: Vec<Finding>) {
    world
        .store
        .write(|db| {
            for finding in findings {
                let found = Findings { findings: vec![finding], ..Findings::default() };
                db.remember(SESSION, &found, START)?;
            }
            Ok::<(), StoreError>(())
        })
        .unwrap();
}

/// The regression that the priority of goals once failed: a goal, then the cap filled with less important events.
#[test]
fn a_goal_survives_a_session_full_of_less_important_events() {
    let mut world = World::new();
    world.remember(vec![finding(Category::Goal, "stated", Importance::Critical, "", "ship the parser")]);
    one_by_one(&mut world, numbered(Category::File, Importance::Normal, 0..1_500));
    assert_eq!(world.texts_of(Category::Goal), ["ship the parser"]);
    assert_eq!(world.remembered().len(), EVENTS_KEPT);
}

#[test]
fn no_number_of_critical_events_reaches_a_stated_goal() {
    let mut world = World::new();
    let change = StatedChange::Set("ship the parser".into());
    world.store.write(|db| db.apply_stated(SESSION, &change, Some("g1"), START)).unwrap();
    let stated = StatedGoal {
        id: 1,
        session_id: SESSION.into(),
        objective: "ship the parser".into(),
        status: StatedStatus::Active,
        goal_id: Some("g1".into()),
        set_at_ms: START,
        changed_at_ms: START,
    };
    for range in [0..1_000, 1_000..11_000] {
        one_by_one(&mut world, numbered(Category::Goal, Importance::Critical, range));
        assert_eq!(world.store.read().stated_goal(SESSION).unwrap(), Some(stated.clone()));
        assert_eq!(world.remembered().len(), EVENTS_KEPT);
    }
    let texts = world.texts_of(Category::Goal);
    assert_eq!((texts[0].as_str(), texts[999].as_str()), ("10000", "10999"), "of equals, the oldest went");
}

#[test]
fn the_words_of_a_goal_are_found_after_any_number_of_critical_events() {
    let mut world = World::new();
    world.remember(vec![finding(Category::Goal, "stated", Importance::Critical, "", "ship the parser")]);
    one_by_one(&mut world, numbered(Category::Decision, Importance::Critical, 0..3_000));
    // All at once, too.
    world.remember(numbered(Category::Decision, Importance::Critical, 3_000..5_500));
    assert_eq!(world.texts_of(Category::Goal), ["ship the parser"]);
    let hits = world.store.read().search("ship parser", Scope::Lineage(SESSION), None, 5).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.event.category).collect::<Vec<_>>(), [Category::Goal]);
    assert_eq!(world.remembered().len(), EVENTS_KEPT);
    // Of many goals, the newest.
    one_by_one(&mut world, numbered(Category::Goal, Importance::Critical, 0..30));
    one_by_one(&mut world, numbered(Category::Decision, Importance::Critical, 6_000..8_000));
    assert_eq!(world.texts_of(Category::Goal), (20..30).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn the_least_important_go_first_and_of_those_the_oldest() {
    let mut world = World::new();
    one_by_one(&mut world, numbered(Category::Git, Importance::High, 0..400));
    one_by_one(&mut world, numbered(Category::File, Importance::Low, 0..400));
    one_by_one(&mut world, numbered(Category::Skill, Importance::Normal, 0..400));
    assert_eq!(world.texts_of(Category::Git).len(), 400);
    assert_eq!(world.texts_of(Category::Skill).len(), 400);
    let left: Vec<String> = (200..400).map(|number| number.to_string()).collect();
    assert_eq!(world.texts_of(Category::File), left);
}

#[test]
fn an_insert_never_evicts_itself_however_little_it_matters() {
    let mut world = World::new();
    one_by_one(&mut world, numbered(Category::Git, Importance::Critical, 0..1_000));
    for number in 0..3 {
        world.remember(vec![read_of(&number.to_string())]);
        assert_eq!(world.texts_of(Category::File), [number.to_string()], "the newest is there");
    }
    // What one call brings stays together.
    world.remember((10..40).map(|number| read_of(&number.to_string())).collect());
    let together: Vec<String> = (10..40).map(|number| number.to_string()).collect();
    assert_eq!(world.texts_of(Category::File), together);
    assert_eq!(world.remembered().len(), EVENTS_KEPT);
}

#[test]
fn one_call_with_more_than_fits_keeps_its_last_and_stays_within_bounds() {
    let mut world = World::new();
    one_by_one(&mut world, numbered(Category::Git, Importance::Critical, 0..1_000));
    world.remember((0..3_000).map(|number| read_of(&number.to_string())).collect());
    assert_eq!(world.remembered().len(), EVENTS_KEPT);
    assert_eq!(world.texts_of(Category::File).last().unwrap(), "2999");
}

#[test]
fn floors_hold_the_newest_prompts_rules_decisions_and_open_errors() {
    let mut world = World::new();
    for (category, kind) in [
        (Category::Prompt, "prompt"),
        (Category::Rule, "file"),
        (Category::Decision, "choice"),
        (Category::Error, "command"),
    ] {
        let findings = (0..30)
            .map(|number| finding(category, kind, Importance::Low, &format!("subject {number}"), &number.to_string()));
        world.remember(findings.collect());
    }
    // A resolved error is not held: the eleventh newest takes its place.
    let worked = Findings { worked: vec!["subject 29".into()], ..Findings::default() };
    world.store.write(|db| db.remember(SESSION, &worked, START)).unwrap();
    one_by_one(&mut world, numbered(Category::Git, Importance::Critical, 0..2_000));
    let held = |from: usize, to: usize| (from..to).map(|number| number.to_string()).collect::<Vec<_>>();
    for category in [Category::Prompt, Category::Rule, Category::Decision] {
        assert_eq!(world.texts_of(category), held(10, 30), "{category}");
    }
    assert_eq!(world.texts_of(Category::Error), held(19, 29));
    assert_eq!(world.remembered().len(), EVENTS_KEPT);
}

#[test]
fn a_session_of_nothing_but_prompts_keeps_the_newest_thousand() {
    let mut world = World::new();
    one_by_one(&mut world, numbered(Category::Prompt, Importance::Low, 0..1_100));
    let texts = world.texts_of(Category::Prompt);
    assert_eq!((texts.len(), texts[0].as_str(), texts[999].as_str()), (EVENTS_KEPT, "100", "1099"));
}

#[test]
fn what_was_evicted_is_not_found_any_more() {
    let mut world = World::new();
    world.remember(vec![finding(Category::File, "read", Importance::Low, "", "needle")]);
    one_by_one(&mut world, numbered(Category::Git, Importance::High, 0..1_000));
    assert_eq!(world.store.read().search("needle", Scope::All, None, 5).unwrap(), []);
    let consistent = "INSERT INTO session_events_fts (session_events_fts, rank) VALUES ('integrity-check', 1)";
    world.store.db.execute(consistent, []).unwrap();
}
