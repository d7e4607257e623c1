//! Prompts: which of them are remembered, and as what.

use super::*;

/// What a prompt gives, without its text: `prompt/typed`.
fn kinds(prompt: &str) -> Vec<String> {
    let seen = only(Observation::Prompt(prompt.into()));
    assert_eq!((seen.tasks.len(), seen.worked.len()), (0, 0));
    seen.findings.iter().map(|it| format!("{}/{}", it.category, it.kind)).collect()
}

#[test]
fn a_prompt_is_kept_with_what_it_asks_for() {
    let seen = only(Observation::Prompt("  fix the login bug ".into()));
    let expected = vec![
        found(Category::Prompt, "typed", Importance::High, "", "fix the login bug"),
        found(Category::Intent, "implement", Importance::Low, "", "implement"),
    ];
    assert_eq!(seen.findings, expected);
    let long = "Refactor the parser so that it handles every kind of literal we have today";
    for (prompt, expected) in [
        ("why does it fail?", vec!["prompt/typed", "intent/investigate"]),
        ("なぜ失敗しますか？", vec!["prompt/typed", "intent/investigate"]),
        ("¿por qué", vec!["prompt/typed", "intent/investigate"]),
        ("open https://h/p?a=b", vec!["prompt/typed", "intent/implement"]),
        (long, vec!["prompt/typed"]),
        ("123", vec!["prompt/typed"]),
        ("/home/user/app.log shows it", vec!["prompt/typed", "intent/implement"]),
        ("$goals are many", vec!["prompt/typed", "intent/implement"]),
    ] {
        assert_eq!(kinds(prompt), expected, "{prompt}");
    }
}

#[test]
fn a_prompt_that_decides_is_a_decision() {
    for prompt in [
        "let's use Postgres, not MySQL",
        "使用方案二，不要用方案一，因为它更简单并且更容易维护",
        "これはPostgresで行きましょう、MySQLはやめます",
        "نستخدم الخيار الثاني، وليس الأول",
    ] {
        assert!(kinds(prompt).contains(&"decision/prompt".to_owned()), "{prompt}");
    }
    for prompt in [
        "use Postgres, or what do you think?",
        "use Postgres not MySQL for this",
        "ok, go on",
        "1, 2, 3, 4, 5, 6, 7, 8, 9",
        &format!("{}, {}", "word ".repeat(80), "word ".repeat(80)),
    ] {
        assert!(!kinds(prompt).iter().any(|kind| kind.starts_with("decision")), "{prompt}");
    }
}

#[test]
fn a_prompt_may_set_a_rule() {
    for (prompt, rule) in [
        ("Always run the tests before you commit.", "Always run the tests before you commit"),
        ("never use unwrap", "never use unwrap"),
        ("From now on, use pnpm v9.1 here. Then fix the build", "From now on, use pnpm v9.1 here"),
        ("ok, please always answer in German", "ok, please always answer in German"),
        ("You are a senior Rust engineer\nLook at main.rs", "You are a senior Rust engineer"),
        ("Remember to update the changelog", "Remember to update the changelog"),
        ("ab jetzt nur noch auf Deutsch", "ab jetzt nur noch auf Deutsch"),
        ("toujours utiliser des tabulations", "toujours utiliser des tabulations"),
        ("你是一名资深工程师。看看", "你是一名资深工程师"),
        ("常に日本語で答えて", "常に日本語で答えて"),
        ("항상 한국어로 답해 주세요", "항상 한국어로 답해 주세요"),
    ] {
        let seen = only(Observation::Prompt(prompt.into()));
        let rules: Vec<&Finding> = seen.findings.iter().filter(|it| it.category == Category::Rule).collect();
        assert_eq!(rules, [&found(Category::Rule, "standing", Importance::Critical, "", rule)], "{prompt}");
    }
    for prompt in [
        "never mind, try again",
        "You are right, do that",
        "you are wrong about this one",
        "Alwaysland is a place",
        "are you always that slow?",
        "always?",
        "fix it and always run tests",
        "niente da fare qui oggi",
    ] {
        assert!(!kinds(prompt).iter().any(|kind| kind.starts_with("rule")), "{prompt}");
    }
}

#[test]
fn a_goal_is_no_prompt_and_commands_are_nothing() {
    let goal = |kind, text| vec![found(Category::Goal, kind, Importance::Critical, "", text)];
    for (prompt, expected) in [
        ("/goal ship v2, not v3", goal("stated", "ship v2, not v3")),
        ("goal: all tests pass?", goal("stated", "all tests pass?")),
        ("Objective： 日本語の目標\n二行目", goal("stated", "日本語の目標\n二行目")),
        ("/goal edit cut p95", goal("edited", "cut p95")),
        ("/goal clear", vec![]),
        ("/goal pause", vec![]),
        ("/goal status", vec![]),
        ("/compact", vec![]),
        ("/steadfast:goal-start do it, now", vec![]),
        ("$goal-start do it", vec![]),
        (" $steadfast:goal-status", vec![]),
        ("", vec![]),
        ("  \n", vec![]),
    ] {
        assert_eq!(only(Observation::Prompt(prompt.into())).findings, expected, "{prompt}");
    }
}
