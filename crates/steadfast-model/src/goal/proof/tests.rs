//! Which claims prove a goal.

use super::*;
use crate::goal::change::{complete, edit, prove_items};
use crate::goal::item::Item;
use crate::testing::{START, goal};

const CHECKS: [&str; 2] = ["cargo test", "cargo clippy"];

fn checked_goal() -> Goal {
    Goal { verify: CHECKS.map(str::to_owned).to_vec(), ..goal() }
}

fn ended(command: &str, exit_code: Option<i32>) -> Evidence {
    Evidence {
        command: command.to_owned(),
        exit_code,
        timed_out: exit_code.is_none(),
        duration_ms: 1,
        output_sha256: String::new(),
        output_tail: String::new(),
        git_commit: None,
        git_dirty: None,
        created_at_ms: START,
    }
}

fn all_passed() -> [Evidence; 2] {
    CHECKS.map(|command| ended(command, Some(0)))
}

fn verdict(goal: &Goal, verdict: &str) -> Verdict {
    let reason = Some("tests are missing\nstatus: complete".to_owned());
    Verdict { verdict: verdict.to_owned(), reason, objective_hash: text::fingerprint(&goal.objective) }
}

/// A claim with these verdicts, the newest first.
fn basis(goal: &Goal, judged: bool, verdicts: &[&str]) -> Basis {
    let verified = Verified::from_evidence(goal, &all_passed()).ok();
    Basis { judged, verified, verdicts: verdicts.iter().map(|word| verdict(goal, word)).collect() }
}

fn by(goal: &Goal, judged: bool, verdicts: &[&str]) -> CompletedBy {
    Proof::from_agent(goal, &basis(goal, judged, verdicts)).unwrap().by()
}

/// The message and the hint of a refused proof.
fn refusal<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (String, String) {
    match result {
        Err(Refusal::NotProven { message, hint }) => (message, hint),
        other => panic!("{other:?}"),
    }
}

fn refused(goal: &Goal, judged: bool, verdicts: &[&str]) -> String {
    refusal(Proof::from_agent(goal, &basis(goal, judged, verdicts))).0
}

#[test]
fn evidence_counts_only_if_every_command_passed() {
    let goal = checked_goal();
    assert!(Verified::from_evidence(&goal, &all_passed()).is_ok());
    let [first, second] = all_passed();
    for (evidence, named) in [
        (vec![], CHECKS[0]),
        (vec![first.clone()], CHECKS[1]),
        (vec![second.clone()], CHECKS[0]),
        (vec![first.clone(), ended(CHECKS[1], Some(1))], CHECKS[1]),
        (vec![first.clone(), ended(CHECKS[1], None)], CHECKS[1]),
        (vec![first.clone(), ended("cargo clippy --fix", Some(0))], CHECKS[1]),
        (vec![first.clone(), first], CHECKS[1]),
    ] {
        let (message, hint) = refusal(Verified::from_evidence(&goal, &evidence));
        assert_eq!(message, format!("`{named}` has not passed"), "{evidence:?}");
        assert!(hint.contains("`/goal-verify`"), "{hint}");
    }
}

#[test]
fn evidence_says_nothing_about_a_goal_without_commands() {
    for evidence in [&[][..], &all_passed()[..]] {
        let (message, _) = refusal(Verified::from_evidence(&goal(), evidence));
        assert_eq!(message, "the goal has no verification commands");
    }
}

#[test]
fn the_agents_word_counts_where_nothing_else_is_asked_for() {
    assert_eq!(by(&goal(), false, &[]), CompletedBy::SelfUpdate);
    assert_eq!(by(&goal(), false, &["unverifiable"]), CompletedBy::SelfUpdate);
    // With a verdict it is more than the agent's word.
    assert_eq!(by(&goal(), false, &["complete", "incomplete"]), CompletedBy::Evaluator);
    assert_eq!(by(&checked_goal(), false, &["complete"]), CompletedBy::Verification);
}

#[test]
fn no_claim_overrides_a_verdict_against_this_objective() {
    for goal in [goal(), checked_goal()] {
        for against in ["incomplete", "impossible"] {
            for verdicts in [&[against][..], &[against, "complete"], &["unverifiable", against]] {
                let message = refused(&goal, false, verdicts);
                assert_eq!(message, format!("the newest verdict is '{against}': tests are missing status: complete"));
                refused(&goal, true, verdicts);
            }
        }
        // Work was done, and the evaluator looked again.
        by(&goal, false, &["complete", "incomplete"]);
        // Changing the text and changing it back does not make it go away.
        let verdicts = basis(&goal, false, &["incomplete"]);
        let edited = edit(&goal, "Other".into(), START).unwrap().goal;
        let verified = Verified::from_evidence(&edited, &all_passed()).ok();
        assert!(Proof::from_agent(&edited, &Basis { verified, ..verdicts }).is_ok());
        let restored = edit(&edited, goal.objective.clone(), START).unwrap().goal;
        refused(&restored, false, &["incomplete"]);
    }
}

#[test]
fn a_verdict_must_exist_say_complete_and_be_about_this_text() {
    let judged = Goal { judge: true, ..goal() };
    for (goal, claimed) in [(goal(), true), (judged.clone(), false), (judged, true)] {
        assert_eq!(by(&goal, claimed, &["complete", "incomplete"]), CompletedBy::Evaluator);
        assert_eq!(refused(&goal, claimed, &[]), "the evaluator has given no verdict on this goal");
        for other in ["incomplete", "unverifiable", "impossible", "", "Complete"] {
            let message = refused(&goal, claimed, &[other, "complete"]);
            assert!(message.starts_with(&format!("the newest verdict is '{other}'")), "{message}");
        }
        let verdicts = basis(&goal, claimed, &["complete"]);
        let edited = edit(&goal, "Other".into(), START).unwrap().goal;
        let (message, hint) = refusal(Proof::from_agent(&edited, &verdicts));
        assert_eq!(message, "the newest verdict is about an earlier text of the objective");
        assert!(hint.contains("goal-evaluator"), "{hint}");
    }
}

#[test]
fn commands_must_pass_whatever_else_holds() {
    let judged = Goal { judge: true, ..checked_goal() };
    for (goal, claimed) in [(checked_goal(), false), (checked_goal(), true), (judged.clone(), false)] {
        let of_other = Verified::from_evidence(&checked_goal(), &all_passed()).unwrap();
        for verified in [None, Some(of_other)] {
            let basis = Basis { verified, ..basis(&goal, claimed, &["complete"]) };
            let (message, hint) = refusal(Proof::from_agent(&goal, &basis));
            assert_eq!(message, "the verification commands of the goal must pass");
            assert!(hint.contains("`/goal-verify`"), "{hint}");
        }
    }
    // A goal to be judged needs the verdict as well.
    assert_eq!(refused(&judged, false, &[]), "the evaluator has given no verdict on this goal");
    assert_eq!(by(&judged, false, &["complete"]), CompletedBy::Evaluator);
}

#[test]
fn open_items_are_named_before_anything_else_but_commands() {
    let texts = ["first thing", "second thing"];
    let items: Vec<Item> = texts.iter().map(|text| Item::open((*text).to_owned())).collect();
    let goal = Goal { items, ..goal() };
    for judged in [false, true] {
        let message = refused(&goal, judged, &["complete"]);
        assert_eq!(message, "items without a proof: 1. first thing; 2. second thing");
    }
    let half = prove_items(&goal, &[(1, "ls shows it".into())], START).unwrap().goal;
    assert_eq!(refused(&half, false, &[]), "items without a proof: 2. second thing");
    let proven = prove_items(&half, &[(2, "cargo test: ok".into())], START).unwrap().goal;
    assert_eq!(by(&proven, false, &[]), CompletedBy::SelfUpdate);
    let edited = edit(&proven, "Other".into(), START).unwrap().goal;
    assert!(refused(&edited, false, &[]).contains("1. first thing; 2. second thing"));
    let many = Goal { items: vec![Item::open("x".into()); 12], ..goal };
    assert!(refused(&many, false, &[]).ends_with("10. x; 2 more"));
}

#[test]
fn only_the_user_completes_a_goal_without_proof() {
    for goal in [goal(), checked_goal(), Goal { judge: true, items: vec![Item::open("x".into())], ..goal() }] {
        assert_eq!(Proof::from_user(&goal, Actor::User).unwrap().by(), CompletedBy::User);
        for actor in [Actor::Worker, Actor::Evaluator, Actor::Steadfast] {
            let (message, hint) = refusal(Proof::from_user(&goal, actor));
            assert_eq!(message, "only the user can complete a goal without proof", "{actor}");
            assert_eq!(hint, "ask the user", "{actor}");
        }
    }
}

#[test]
fn a_run_proves_a_goal_with_commands_by_them() {
    assert_eq!(Proof::from_run(&goal()).by(), CompletedBy::SelfUpdate);
    assert_eq!(Proof::from_run(&checked_goal()).by(), CompletedBy::Verification);
}

#[test]
fn a_proof_completes_only_its_own_goal_and_text() {
    let (plain, checked) = (goal(), checked_goal());
    let claimed =
        |goal: &Goal, judged, verdicts: &[&str]| Proof::from_agent(goal, &basis(goal, judged, verdicts)).unwrap();
    let cases = [
        (&plain, claimed(&plain, false, &[])),
        (&plain, Proof::from_user(&plain, Actor::User).unwrap()),
        (&plain, Proof::from_run(&plain)),
        (&checked, claimed(&checked, false, &[])),
        (&checked, claimed(&checked, true, &["complete"])),
    ];
    for (goal, proof) in cases {
        assert!(complete(goal, &proof, START).is_ok(), "{proof:?}");
        let edited = edit(goal, "Other".into(), START).unwrap().goal;
        // The same objective and session, started again.
        let other = Goal { goal_id: "other".into(), ..goal.clone() };
        for unproven in [edited, other] {
            let refused = complete(&unproven, &proof, START).unwrap_err();
            let expected = "the proof is for another goal, or for an earlier text of the objective";
            assert_eq!(refused.to_string(), expected, "{proof:?}");
            assert_eq!(refused.hint(), "prove the goal again");
        }
    }
}

#[test]
fn a_proof_stays_good_while_the_text_is_the_same() {
    let goal = goal();
    let proof = Proof::from_agent(&goal, &Basis::default()).unwrap();
    let edited = edit(&goal, "Other".into(), START).unwrap().goal;
    let restored = edit(&edited, goal.objective, START).unwrap().goal;
    assert!(complete(&restored, &proof, START).is_ok());
}
