//! The life of a stated goal.

use super::*;
use steadfast_model::directive::Directive;
use steadfast_model::memory::stated::{StatedChange, StatedStatus, decide};

impl World {
    /// What a hook does with a directive.
    fn direct(&mut self, session_id: &str, directive: Directive<&str>, now: Millis) {
        self.store
            .write(|db| {
                let change = decide(db.stated_goal(session_id)?.as_ref(), &directive);
                db.apply_stated(session_id, &change, None, now)
            })
            .unwrap();
    }

    fn stated(&self, session_id: &str) -> Option<(String, StatedStatus)> {
        let goal = self.store.read().stated_goal(session_id).unwrap();
        goal.map(|goal| (goal.objective, goal.status))
    }

    fn history(&self, session_id: &str) -> Vec<(String, StatedStatus)> {
        let history = self.store.read().stated_history(session_id).unwrap();
        history.into_iter().map(|goal| (goal.objective, goal.status)).collect()
    }
}

#[test]
fn a_goal_is_set_paused_replaced_and_done() {
    use StatedStatus::{Active, Cleared, Done, Paused, Replaced};
    let mut world = World::new();
    let goal = |text: &str, status| Some((text.to_owned(), status));
    for (directive, holds) in [
        (Directive::State("A"), goal("A", Active)),
        (Directive::Pause, goal("A", Paused)),
        (Directive::State("B"), goal("B", Active)),
        (Directive::State("A"), goal("A", Active)),
        (Directive::State("A"), goal("A", Active)),
        (Directive::Done, None),
        (Directive::Resume, None),
        (Directive::State("C"), goal("C", Active)),
        (Directive::Clear, None),
    ] {
        world.direct(SESSION, directive, START);
        assert_eq!(world.stated(SESSION), holds, "{directive:?}");
    }
    let history = [("A", Replaced), ("B", Replaced), ("A", Done), ("C", Cleared)];
    assert_eq!(world.history(SESSION), history.map(|(text, status)| (text.to_owned(), status)));
}

#[test]
fn a_fork_goes_on_with_the_goal_it_was_made_with() {
    use StatedStatus::{Active, Cleared, Replaced};
    let mut world = World::new();
    world.put(&session("parent", START));
    world.direct("parent", Directive::State("A"), START + 10);
    world.put(&fork("child", "parent", START + 20));
    world.direct("parent", Directive::State("B"), START + 30);
    world.direct("parent", Directive::Clear, START + 40);
    assert_eq!(world.stated("parent"), None);
    assert_eq!(world.stated("child"), Some(("A".into(), Active)), "as it was at the fork");

    world.direct("child", Directive::Clear, START + 50);
    assert_eq!(world.stated("child"), None);
    assert_eq!(world.history("child"), [("A".into(), Cleared)]);
    assert_eq!(world.history("parent"), [("A".into(), Replaced), ("B".into(), Cleared)], "not the child's to change");
    world.direct("child", Directive::State("C"), START + 60);
    assert_eq!(world.stated("child"), Some(("C".into(), Active)));
}

#[test]
fn a_goal_that_was_over_before_the_fork_is_not_inherited() {
    let mut world = World::new();
    world.put(&session("parent", START));
    world.direct("parent", Directive::State("A"), START + 10);
    world.direct("parent", Directive::Done, START + 15);
    world.put(&fork("child", "parent", START + 20));
    assert_eq!(world.stated("child"), None);
}

#[test]
fn a_session_after_clear_inherits_nothing() {
    let mut world = World::new();
    world.put(&session("parent", START));
    world.direct("parent", Directive::State("A"), START + 10);
    world.put(&Session { parent_link: Some(ParentLink::Clear), ..fork("child", "parent", START + 20) });
    assert_eq!(world.stated("child"), None);
}

#[test]
fn history_is_bounded_and_the_goal_that_holds_is_never_in_question() {
    let mut world = World::new();
    for number in 0..250 {
        let change = StatedChange::Set(number.to_string());
        world.store.write(|db| db.apply_stated(SESSION, &change, None, START)).unwrap();
    }
    let history = world.history(SESSION);
    assert_eq!((history.len(), history[0].0.as_str()), (100, "150"));
    assert_eq!(world.stated(SESSION), Some(("249".into(), StatedStatus::Active)));
}
