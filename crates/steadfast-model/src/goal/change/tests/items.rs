//! Proofs of items, and goals that wait for a person's sign-off.

use super::*;
use crate::goal::item::Item;

fn with_items(texts: &[&str]) -> Goal {
    Goal { items: texts.iter().map(|text| Item::open((*text).to_owned())).collect(), ..goal() }
}

#[test]
fn a_proof_belongs_to_the_item_with_its_number_and_is_an_event() {
    let before = with_items(&["one", "two"]);
    let change = prove_items(&before, &[(2, "ls two\n\u{1b}[31mtwo".into())], NOW).unwrap();
    let proofs: Vec<_> = change.goal.items.iter().map(|item| item.proof.clone().map(|proof| proof.text)).collect();
    assert_eq!(proofs, [None, Some("ls two two".into())]);
    let payload = json!({"item": 2, "text": "two", "proof": "ls two two"});
    assert_eq!(change.events, [Event::new(EventKind::ItemProven, payload)]);
    assert_eq!((change.span, change.goal.status), (Span::Keep, GoalStatus::Active));
}

#[test]
fn a_wrong_proof_changes_nothing() {
    let goal = with_items(&["one"]);
    for (number, proof, said) in [
        (0, "x", "the goal has no item 0"),
        (2, "x", "the goal has no item 2"),
        (i64::MIN, "x", "the goal has no item"),
        (1, " ", "the proof of item 1 is empty"),
        (1, "ONE.", "the proof of item 1 only repeats the item"),
        (1, &"x".repeat(1_001), "the proof of item 1 has 1001 characters"),
    ] {
        let refused = prove_items(&goal, &[(1, "good".into()), (number, proof.into())], NOW).unwrap_err();
        assert!(refused.to_string().starts_with(said), "{refused}");
    }
    for stopped in [paused(PausedReason::User), paused(PausedReason::SignOff), goal_in(GoalStatus::Complete, None)] {
        let stopped = Goal { items: goal.items.clone(), ..stopped };
        assert!(prove_items(&stopped, &[(1, "good".into())], NOW).is_err(), "{}", stopped.state());
    }
}

#[test]
fn only_another_objective_clears_the_proofs() {
    let proven = prove_items(&with_items(&["one"]), &[(1, "ls one".into())], NOW).unwrap().goal;
    let same = edit(&proven, proven.objective.clone(), NOW).unwrap().goal;
    assert_eq!(same.open_items().count(), 0);
    let other = edit(&proven, "Other".into(), NOW).unwrap().goal;
    assert_eq!(other.open_items().map(|(number, item)| (number, item.text.as_str())).collect::<Vec<_>>(), [(1, "one")]);
}

#[test]
fn a_goal_with_sign_off_waits_for_the_user_whoever_says_that_it_is_done() {
    let goal = Goal { sign_off: true, ..goal() };
    for prove in [by_self, by_evaluator, by_checks] {
        let change = complete(&goal, &prove(&goal), NOW).unwrap();
        assert_eq!((change.goal.state().as_str(), change.span), ("paused (sign_off)", Span::Keep));
        assert_eq!(change.goal.completed_by, None);
        let [event] = &change.events[..] else { panic!("{:?}", change.events) };
        assert_eq!(event.kind, EventKind::SignOffRequested);
        let again = complete(&change.goal, &prove(&change.goal), NOW).unwrap_err();
        assert!(again.hint().contains("/goal-complete"), "{}", again.hint());
        let agreed = complete(&change.goal, &by_user(&change.goal), NOW).unwrap();
        assert_eq!((agreed.goal.state().as_str(), agreed.goal.completed_by), ("complete", Some(CompletedBy::User)));
        assert_eq!(agreed.events[0].kind, EventKind::GoalCompletedByUser);
        let sent_back = resume(&change.goal, NOW).unwrap();
        assert_eq!(sent_back.goal.state(), "active");
    }
}
