//! Rules as tables: the checks they request, and their results.

use super::*;
use crate::host::Host;
use crate::run::AgentKind;

const NOTHING: Known<'_> =
    Known { iterations: 1, max: 5, items: 3, agreeing: Some(0), promises: &[], facts: Some(&[]) };

fn fact(check: Check, holds: Option<bool>) -> Checked {
    Checked { check, holds, detail: String::new(), usage: None }
}

fn verify() -> Rule {
    Rule::Verify(vec!["cargo test".into(), "cargo fmt --check".into()])
}

fn verify_check() -> Check {
    Check::Verify(vec!["cargo test".into(), "cargo fmt --check".into()])
}

fn beads() -> Rule {
    Rule::BeadsEmpty("loop/auth".into())
}

fn promise() -> Rule {
    Rule::Promise("COMPLETE".into())
}

#[test]
fn leaves_returns_the_combined_rules_in_order() {
    let nested = Rule::Any(vec![promise(), Rule::All(vec![verify(), Rule::Any(vec![]), beads()]), Rule::FixedN]);
    assert_eq!(nested.leaves().collect::<Vec<_>>(), [&promise(), &verify(), &beads(), &Rule::FixedN]);
    assert_eq!(promise().leaves().collect::<Vec<_>>(), [&promise()]);
    assert_eq!(Rule::All(vec![]).leaves().count(), 0);
    let counts = |rules: &[Rule]| Rule::All(rules.to_vec()).only_counts();
    assert_eq!(
        [counts(&[]), counts(&[Rule::FixedN, Rule::AllItems]), counts(&[Rule::FixedN, beads()])],
        [false, true, false]
    );
}

#[test]
fn counting_rules_compare_numbers() {
    for (rule, iterations, holds) in [
        (Rule::FixedN, 4, false),
        (Rule::FixedN, 5, true),
        (Rule::FixedN, 6, true),
        (Rule::AllItems, 2, false),
        (Rule::AllItems, 3, true),
    ] {
        let expected = if holds { Holding::Yes(vec![rule.name()]) } else { Holding::No };
        assert_eq!(rule.holds(&Known { iterations, ..NOTHING }), expected, "{rule:?} after {iterations}");
    }
}

#[test]
fn a_plateau_needs_as_many_votes_as_it_says() {
    for (needed, agreeing, expected) in [
        (2, Some(1), Holding::No),
        (2, Some(2), Holding::Yes(vec!["plateau"])),
        (3, Some(2), Holding::No),
        (0, Some(0), Holding::No),
        (0, Some(1), Holding::Yes(vec!["plateau"])),
        (2, None, Holding::Unknown(vec![Check::Judge])),
    ] {
        let known = Known { agreeing, ..NOTHING };
        assert_eq!(Rule::Plateau(needed).holds(&known), expected, "{needed} needed, {agreeing:?} agree");
    }
}

#[test]
fn a_promise_must_match_the_text() {
    for (said, expected) in [
        ("COMPLETE", Holding::Yes(vec!["promise"])),
        ("complete", Holding::No),
        ("COMPLETE!", Holding::No),
        ("", Holding::No),
    ] {
        assert_eq!(promise().holds(&Known { promises: &[said.to_owned()], ..NOTHING }), expected, "{said}");
    }
}

#[test]
fn external_checks_are_requested_and_count_only_if_certain() {
    let table = [
        (beads(), Check::BeadsEmpty("loop/auth".into())),
        (Rule::Command("test -f done".into()), Check::Command("test -f done".into())),
        (verify(), verify_check()),
        (Rule::Checklist("TODO.md".into()), Check::Checklist("TODO.md".into())),
    ];
    for (rule, check) in table {
        assert_eq!(rule.holds(&Known { facts: None, ..NOTHING }), Holding::Unknown(vec![check.clone()]));
        let say = |holds| rule.holds(&Known { facts: Some(&[fact(check.clone(), holds)]), ..NOTHING });
        assert_eq!(say(Some(true)), Holding::Yes(vec![rule.name()]));
        assert_eq!(say(Some(false)), Holding::No, "{rule:?}");
        assert_eq!(say(None), Holding::No, "{rule:?}");
        let other = [fact(Check::Command("true".into()), Some(true))];
        assert_eq!(rule.holds(&Known { facts: Some(&other), ..NOTHING }), Holding::No, "{rule:?}: another's fact");
    }
}

#[test]
fn combined_rules_request_only_checks_that_can_change_the_result() {
    let complete = ["COMPLETE".to_owned()];
    let silent: [String; 0] = [];
    let unasked = |promises| Known { promises, facts: None, ..NOTHING };
    let any = Rule::Any(vec![promise(), verify()]);
    let all = Rule::All(vec![promise(), verify()]);
    assert_eq!(any.holds(&unasked(&complete)), Holding::Yes(vec!["promise"]));
    assert_eq!(any.holds(&unasked(&silent)), Holding::Unknown(vec![verify_check()]));
    assert_eq!(all.holds(&unasked(&complete)), Holding::Unknown(vec![verify_check()]));
    assert_eq!(all.holds(&unasked(&silent)), Holding::No);
    let facts = [fact(verify_check(), Some(true))];
    let asked = Known { promises: &complete, facts: Some(&facts), ..NOTHING };
    assert_eq!(any.holds(&asked), Holding::Yes(vec!["promise", "verify"]));
    assert_eq!(all.holds(&asked), Holding::Yes(vec!["promise", "verify"]));
    assert_eq!(all.holds(&Known { facts: Some(&[]), ..asked }), Holding::No);
}

#[test]
fn nested_rules_name_and_request_each_check_once() {
    let rule = Rule::Any(vec![
        Rule::All(vec![verify(), beads()]),
        Rule::All(vec![verify(), Rule::Checklist("TODO.md".into())]),
        Rule::FixedN,
    ]);
    let checks = vec![verify_check(), Check::BeadsEmpty("loop/auth".into()), Check::Checklist("TODO.md".into())];
    assert_eq!(rule.holds(&Known { facts: None, ..NOTHING }), Holding::Unknown(checks.clone()));
    let facts: Vec<Checked> = checks.into_iter().map(|check| fact(check, Some(true))).collect();
    let known = Known { iterations: 5, facts: Some(&facts), ..NOTHING };
    assert_eq!(rule.holds(&known), Holding::Yes(vec!["verify", "beads-empty", "checklist", "fixed-n"]));
}

#[test]
fn an_empty_combination_never_holds() {
    for rule in [Rule::Any(vec![]), Rule::All(vec![]), Rule::All(vec![Rule::Any(vec![])])] {
        assert_eq!(rule.holds(&NOTHING), Holding::No, "{rule:?}");
        assert_eq!(rule.holds(&Known { facts: None, ..NOTHING }), Holding::No, "{rule:?}");
        assert!(!rule.only_counts(), "{rule:?}");
    }
}

#[test]
fn rules_know_whether_they_count_and_whether_they_need_votes() {
    let judge =
        AgentPlan { kind: AgentKind::Host(Host::Claude), model: None, effort: None, user_hooks: false, sandbox: false };
    for (rule, only_counts, needs_vote) in [
        (Rule::FixedN, true, false),
        (Rule::AllItems, true, false),
        (Rule::Plateau(2), false, true),
        (verify(), false, false),
        (Rule::Any(vec![Rule::FixedN, Rule::AllItems]), true, false),
        (Rule::Any(vec![Rule::FixedN, Rule::Plateau(2)]), false, true),
        (Rule::All(vec![verify(), Rule::Any(vec![promise(), Rule::Plateau(3)])]), false, true),
    ] {
        assert_eq!((rule.only_counts(), rule.needs_vote()), (only_counts, needs_vote), "{rule:?}");
        assert_eq!(rule.is_judged(Some(&judge)), needs_vote, "{rule:?}");
        assert!(!rule.is_judged(None), "{rule:?}");
    }
}
