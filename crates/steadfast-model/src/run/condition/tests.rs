use proptest::prelude::*;

use super::*;

fn facts(stage: &str, fact: &str) -> Option<FactValue> {
    let text = |text: &str| Some(FactValue::Text(text.into()));
    match (stage, fact) {
        ("tests", "status") => text("completed"),
        ("tests", "reason") => text("verify"),
        ("tests", "exit_code") => Some(FactValue::Number(0)),
        ("tests", "iterations") => Some(FactValue::Number(12)),
        ("tests", "summary") => text("3 \"flaky\" tests"),
        ("tests", "fields.risk") => text(" 7"),
        ("tests", "fields.word") => text("high"),
        ("v1.2", "decision") => text("stop"),
        ("gone", "status") => text("skipped"),
        _ => None,
    }
}

fn holds(text: &str) -> bool {
    let condition = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let known = condition.evaluate(facts, |path| path == "docs/PLAN.md").unwrap();
    assert_eq!(parse(&condition.to_string()), Ok(condition), "{text}");
    known
}

#[test]
fn conditions_hold_or_not() {
    for text in [
        "tests.status == \"completed\"",
        "tests.status == 'completed'",
        "'completed' == tests.status",
        "tests.exit_code == 0",
        "tests.exit_code != 1 and tests.iterations >= 12",
        "tests.exit_code < 1 and tests.exit_code <= 0 and tests.exit_code > -1",
        "tests.iterations > 13 or tests.iterations < 13",
        "not tests.exit_code == 1",
        "not (tests.exit_code == 1 or tests.exit_code == 2)",
        "tests.summary contains '\"flaky\"'",
        "tests.summary contains \"\\\"flaky\\\"\"",
        "v1.2.decision == \"stop\"",
        "gone.status == \"skipped\"",
        "exists(\"docs/PLAN.md\")",
        "not exists('docs/none.md')",
        "tests.fields.risk >= 7",
        "tests.fields.risk == 7",
        "tests.fields.word == \"high\"",
        "tests.fields.word != 7",
        "tests.fields.risk < tests.iterations",
        // `and` binds more tightly than `or`.
        "tests.exit_code == 0 or tests.exit_code == 1 and tests.exit_code == 2",
        "gone.exit_code != 0",
        "tests.fields.none != \"x\"",
    ] {
        assert!(holds(text), "{text}");
        assert!(!holds(&format!("not ({text})")), "{text}");
    }
    // A missing fact makes every comparison false, except `!=`.
    for text in ["gone.exit_code == 0", "gone.exit_code < 1", "tests.fields.word >= 0", "gone.summary contains ''"] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn faults_have_their_position_and_a_hint() {
    for (text, at, what, hint) in [
        ("", 1, "a value is missing", "a fact, a number"),
        ("tests", 1, "`tests` is not a value", "`tests.FACT` with one of status, reason"),
        ("tests.stauts == 'failed'", 1, "`tests.stauts` is not a value", "status"),
        ("tests.status", 13, "compared with nothing", "tests.status == …"),
        ("tests.status = 'failed'", 14, "`=` is not a comparison", "`==`"),
        ("tests.status == 'done'", 1, "`tests.status` is never \"done\"", "completed, failed, skipped"),
        ("'done' != tests.status", 1, "is never \"done\"", "completed, failed, skipped"),
        ("tests.decision == 'halt'", 1, "is never \"halt\"", "continue, stop, error"),
        ("tests.exit_code == '0'", 1, "is a number and `\"0\"` is a text", "without quotes"),
        ("tests.summary == 0", 1, "`0` is a number and `tests.summary` is a text", "fact that is a number"),
        ("tests.summary < 'b'", 1, "`<` compares numbers only", "contains"),
        ("tests.exit_code contains 1", 1, "`contains` compares texts only", "=="),
        ("1 == 1", 1, "both sides are fixed", "fact of a stage"),
        ("(tests.exit_code == 0", 22, "a `)` is missing", "close"),
        ("tests.exit_code == 0)", 21, "without its `(`", "remove"),
        ("tests.exit_code == 0 tests.exit_code == 1", 22, "without `and` or `or`", "`and`"),
        ("a.exit_code == 0 && b.exit_code == 0", 18, "`&` is not an operator", "`and`"),
        ("!exists('a')", 1, "`!` is not an operator", "`not`"),
        ("exists('../a')", 8, "not a path of the project", "inside the project"),
        ("exists('/etc/passwd')", 8, "not a path of the project", "inside the project"),
        ("exists('')", 8, "not a path of the project", "inside the project"),
        ("exists(a)", 8, "not a text in quotes", "exists(\"FILE\")"),
        ("exists 'a'", 8, "in parentheses", "exists(\"FILE\")"),
        ("ü.status == 'failed", 13, "quote is not closed", "close"),
        ("${X} == 1", 1, "variables have no value", "fact"),
        ("a.exit_code == 99999999999999999999", 16, "is not a value", "FACT"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.what.contains(what), "{text}: {error}");
        assert!(error.hint().contains(hint), "{text}: {}", error.hint());
    }
}

#[test]
fn length_and_depth_are_limited() {
    for text in ["(".repeat(1_999), "not ".repeat(400), format!("a.summary == '{}'", "x".repeat(3_000))] {
        assert!(parse(&text).is_err());
    }
    let deep = format!("{}a.exit_code == 0{}", "(".repeat(30), ")".repeat(30));
    assert_eq!(parse(&deep).unwrap().to_string(), "a.exit_code == 0");
}

#[test]
fn a_condition_knows_its_stages_and_fields() {
    let condition = parse("a.exit_code == 0 and not (b.fields.x == 'y' or exists('z')) or a.fields.n > 1").unwrap();
    assert_eq!(condition.stages().into_iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(condition.fields().into_iter().collect::<Vec<_>>(), [("a", "n"), ("b", "x")]);
}

#[test]
fn a_fact_of_another_type_is_an_error_and_not_an_answer() {
    let condition = parse("a.summary contains 'x'").unwrap();
    let answer = condition.evaluate(|_, _| Some(FactValue::Number(1)), |_| false);
    assert!(answer.unwrap_err().contains("a.summary contains"));
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let fact = |names: &'static [&'static str]| {
        ("[a-zA-Z0-9][a-z0-9_-]{0,8}", proptest::sample::select(names))
            .prop_map(|(stage, fact)| Operand::Fact { stage, fact: fact.into() })
    };
    let number = (fact(&["exit_code", "iterations", "fields.n"]), 0..6_usize, any::<i64>())
        .prop_map(|(fact, which, number)| Condition::Compare(fact, Comparison::ALL[which].0, Operand::Number(number)));
    let text =
        (fact(&["summary", "reason", "fields.ü"]), any::<bool>(), any::<String>()).prop_map(|(fact, same, text)| {
            let comparison = if same { Comparison::Equal } else { Comparison::Contains };
            Condition::Compare(fact, comparison, Operand::Text(text))
        });
    let leaf = prop_oneof![number, text, "[a-z .\"'\\\\]{1,5}(/[a-z]{1,4}){0,2}".prop_map(Condition::Exists)];
    leaf.prop_filter("only paths of the project", |leaf| match leaf {
        Condition::Exists(path) => parse::is_inside_project(path),
        _ => true,
    })
    .prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Condition::Not(Box::new(inner))),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Condition::All),
            proptest::collection::vec(inner, 2..4).prop_map(Condition::Any),
        ]
    })
}

proptest! {
    #[test]
    fn a_condition_is_read_back_from_its_text(condition in any_condition()) {
        let text = condition.to_string();
        prop_assume!(text.chars().count() <= 2_000);
        prop_assert_eq!(parse(&text), Ok(condition));
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn nothing_that_looks_like_a_condition_makes_it_panic(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "a.status", "b.fields.x", "==", "!=", "<", "contains", "and", "or", "not", "(", ")", "exists", "\"x\"",
                "'", "7", "-", ".", "\\",
            ]),
            0..40,
        ),
    ) {
        if let Ok(condition) = parse(&words.join(" ")) {
            prop_assert_eq!(parse(&condition.to_string()), Ok(condition.clone()));
            let _ = condition.evaluate(facts, |_| true);
        }
    }
}
