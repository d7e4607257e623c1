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
fn marked_lines_are_rules_and_decisions() {
    for (prompt, category, text) in [
        ("rule: Use tabs", Category::Rule, "Use tabs"),
        ("Remember: use the staging database", Category::Rule, "use the staging database"),
        ("decision: we go with SQLite", Category::Decision, "we go with SQLite"),
        ("Fix the build.\n  RULE : never push to main", Category::Rule, "never push to main"),
        ("Rule：タブを使う", Category::Rule, "タブを使う"),
        ("Decision：使用方案二", Category::Decision, "使用方案二"),
        ("goal: ship v2\nrule: no new dependencies", Category::Rule, "no new dependencies"),
        ("rule: the token is hunter2, use it", Category::Rule, "the token is [redacted], use it"),
    ] {
        let seen = only(Observation::Prompt(prompt.into()));
        let is_marked = |it: &&Finding| matches!(it.category, Category::Rule | Category::Decision);
        let marked: Vec<&Finding> = seen.findings.iter().filter(is_marked).collect();
        assert_eq!(marked, [&found(category, "stated", Importance::Critical, "", text)], "{prompt}");
    }
    let both = "Do it.\nrule: use tabs\ndecision: no spaces\nremember: 4 wide";
    let expected = ["prompt/typed", "intent/implement", "rule/stated", "decision/stated", "rule/stated"];
    assert_eq!(kinds(both), expected);
}

#[test]
fn a_prompt_with_many_marked_lines_keeps_the_first() {
    let seen = kinds(&"rule: use tabs\n".repeat(500));
    assert_eq!(seen.iter().filter(|kind| *kind == "rule/stated").count(), 20);
}

#[test]
fn a_marker_in_a_private_block_is_not_kept() {
    let seen = only(Observation::Prompt("a\n<private>\nrule: the code is swordfish\n</private>".into()));
    assert!(seen.findings.iter().all(|it| it.category != Category::Rule), "{seen:?}");
}

#[test]
fn free_talk_is_a_prompt_and_nothing_more() {
    for prompt in [
        "Never got this to work on my machine",
        "Every time I push, CI breaks",
        "It crashes, then it restarts",
        "use Postgres, or what do you think?",
        "use Postgres not MySQL for this",
        "ok, go on",
        "1, 2, 3, 4, 5, 6, 7, 8, 9",
        "Thanks, looks good to me",
        "ok, now run the tests",
        "hm, wait a second",
        "Great, thank you, that works",
        "yes, looks good to me",
        "Perfect, thanks, go ahead please",
        "danke, das sieht gut aus",
        "merci, c'est parfait",
        "gracias, se ve muy bien",
        "спасибо, теперь всё хорошо работает",
        "好的，谢谢你，继续吧，看起来没有问题",
        "ありがとう、いい感じです、続けてください",
        "rule:",
        "remember: \nwhat we said",
        "the rule: use tabs",
        "rules: are made to be broken",
        "a decision: none",
        "- rule: in a list",
        "let's use Postgres, not MySQL",
        "使用方案二，不要用方案一，因为它更简单并且更容易维护",
        "これはPostgresで行きましょう、MySQLはやめます",
        "نستخدم الخيار الثاني، وليس الأول",
        "No, keep the old format; the new one breaks clients",
        "yes, take the second option",
        "ok, we go with Postgres, not MySQL",
        "gut, dann nehmen wir Postgres, nicht MySQL",
        "好的，使用方案二，不要用方案一，因为它更简单",
        "Always run the tests before you commit.",
        "never use unwrap",
        "From now on, use pnpm v9.1 here. Then fix the build",
        "ok, please always answer in German",
        "You are a senior Rust engineer\nLook at main.rs",
        "Remember to update the changelog",
        "ab jetzt nur noch auf Deutsch",
        "toujours utiliser des tabulations",
        "你是一名资深工程师。看看",
        "常に日本語で答えて",
        "항상 한국어로 답해 주세요",
        "Always pass the context as the first argument",
        "never embed secrets in code",
        "Always in English, please",
        "Going forward, squash commits",
        "in the future please run clippy first",
        "Every time you change the schema, write a migration",
        "You are the reviewer of this repository",
        "You are not allowed to push",
        "you're an expert in SQL",
        "Respond in German",
        "respond only with JSON",
        "Remember that tabs are used here",
        "immer auf Deutsch antworten",
        "Nie direkt auf main pushen",
        "Du bist ein erfahrener Entwickler",
        "Antworte auf Deutsch",
        "ne jamais pousser sur main",
        "Tu es développeur senior",
        "Réponds en français",
        "siempre usa tabuladores",
        "Eres un ingeniero de Rust",
        "sempre use tabs no código",
        "Mai usare unwrap nel codice",
        "d'ora in poi scrivi i test",
        "всегда используй табы",
        "никогда не коммить в main",
        "总是使用中文回答",
        "永远不要提交密钥",
        "必ずエラーを処理してください",
        "あなたはシニアエンジニアです",
        "절대 main에 푸시하지 마세요",
        "never mind, try again",
        "You are right, do that",
        "you are wrong about this one",
        "Alwaysland is a place",
        "are you always that slow?",
        "always?",
        "fix it and always run tests",
        "niente da fare qui oggi",
        // Praise, complaints and jobs for once.
        "You are amazing",
        "You are a genius",
        "you're the best!",
        "You are on the wrong branch",
        "you are looking at the wrong file",
        "You are not helping here",
        "You are now on the wrong branch",
        "Always crashes on startup",
        "Always the same error",
        "Never worked for me",
        "Never seen that before",
        "Every time I run it it crashes",
        "Every time I run it, it crashes",
        "Every time you edit it, the build breaks",
        "Respond to the reviewer on PR 5",
        "reply in the thread on PR 5",
        "Answer in the issue, please",
        "In the future tab the button is broken",
        "Going forward button is broken on Safari",
        "Remember that bug from yesterday",
        "Mai ist der Monat des Release",
        "Immer noch kaputt, trotz der neuen Versionen",
        "Immer stürzt es ab",
        "Nie funktioniert das hier",
        "Du bist super heute",
        "Du bist ein Genie",
        "Antworte dem Kunden auf Ticket 7",
        "Antworte auf die Mail von gestern",
        "toujours le même bug",
        "Tu es génial aujourd'hui",
        "Réponds à Paul sur la PR",
        "Eres un genio",
        "Eres increíble hoy",
        "siempre falla al arrancar",
        "nunca funcionó en mi máquina",
        "você é incrível hoje",
        "sempre falha ao iniciar",
        "всегда падает при запуске",
        "никогда не работало у меня",
        "你是对的，就这样做",
        "你是天才啊",
        "总是在启动时崩溃",
        "必ず起動時に落ちます",
        "あなたは天才です",
        "항상 시작할 때 실패해요",
    ] {
        let guessed = |kind: &String| kind.starts_with("rule") || kind.starts_with("decision");
        assert!(!kinds(prompt).iter().any(guessed), "{prompt}");
    }
}

#[test]
fn a_goal_is_no_prompt_and_commands_are_nothing() {
    let goal = |kind, text, mode| {
        let goal = found(Category::Goal, kind, Importance::Critical, "", text);
        vec![goal, found(Category::Intent, mode, Importance::Low, "", mode)]
    };
    let long = "cut the time that the parser takes for every kind of literal we have today";
    for (prompt, expected) in [
        ("/goal ship v2, not v3", goal("stated", "ship v2, not v3", "implement")),
        ("goal: why do all tests fail?", goal("stated", "why do all tests fail?", "investigate")),
        ("Objective： 日本語の目標\n二行目", goal("stated", "日本語の目標\n二行目", "implement")),
        ("/goal edit cut p95", goal("edited", "cut p95", "implement")),
        (&format!("/goal {long}"), goal("stated", long, "implement")),
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
