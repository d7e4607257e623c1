//! What is found, in which order, and that no query breaks anything.

use super::*;

impl World {
    fn found(&self, query: &str, scope: Scope<'_>) -> Vec<String> {
        let hits = self.store.read().search(query, scope, None, 10).unwrap();
        hits.into_iter().map(|hit| hit.event.text).collect()
    }
}

fn world_with(texts: &[&str]) -> World {
    let mut world = World::new();
    world.remember(texts.iter().map(|text| prompt(text)).collect());
    world
}

#[test]
fn all_words_must_occur_and_the_last_may_be_a_beginning() {
    let world = world_with(&["fix the parser now", "fix the printer", "PARSER tests", "naïve café"]);
    for (query, found) in [
        ("parser", vec!["PARSER tests", "fix the parser now"]),
        ("fix pars", vec!["fix the parser now"]),
        ("fix the", vec!["fix the printer", "fix the parser now"]),
        ("naive CAFE", vec!["naïve café"]),
        ("missing", vec![]),
    ] {
        assert_eq!(world.found(query, Scope::All), found, "{query}");
    }
}

#[test]
fn better_matches_come_first_and_of_equal_ones_the_newest() {
    let mut world = world_with(&["budget and many other words that say nothing at all about it", "budget", "other"]);
    world.remember_in("s2", vec![prompt("budget")], START + 1);
    let hits = world.store.read().search("budget", Scope::All, None, 10).unwrap();
    let order: Vec<i64> = hits.iter().map(|hit| hit.event.id).collect();
    assert_eq!(order, [4, 2, 1]);
    assert_eq!(world.store.read().search("budget", Scope::All, None, 1).unwrap()[0].event.id, 4);
}

#[test]
fn parts_of_words_are_found_when_no_word_is() {
    let world = world_with(&["我们修复解析器的错误", "let x = foo_bar::<T>(y);", "100% sure", "under_score"]);
    for (query, found) in [
        ("解析器", "我们修复解析器的错误"),
        ("修复 错误", "我们修复解析器的错误"),
        ("o_bar::<T>(", "let x = foo_bar::<T>(y);"),
        ("0%", "100% sure"),
        ("r_s", "under_score"),
        ("::<", "let x = foo_bar::<T>(y);"),
    ] {
        assert_eq!(world.found(query, Scope::All), [found], "{query}");
    }
    assert_eq!(world.found("e%e", Scope::All), Vec::<String>::new(), "a wildcard is a character like others");
}

#[test]
fn a_sentence_finds_what_has_some_of_its_words() {
    let world = world_with(&["the parser fails on tabs", "unrelated"]);
    assert_eq!(world.found("why did parser break yesterday", Scope::All), ["the parser fails on tabs"]);
}

#[test]
fn subjects_and_categories_count_too() {
    let mut world = World::new();
    world.remember(vec![
        finding(Category::File, "edit", Importance::Normal, "src/lexer.rs", "changed"),
        finding(Category::Error, "command", Importance::High, "cargo test", "lexer.rs does not compile"),
    ]);
    let search = |category| {
        let hits = world.store.read().search("lexer.rs", Scope::All, category, 10).unwrap();
        hits.into_iter().map(|hit| hit.event.category).collect::<Vec<_>>()
    };
    assert_eq!(search(None).len(), 2);
    assert_eq!(search(Some(Category::File)), [Category::File]);
    assert_eq!(search(Some(Category::Rule)), []);
}

#[test]
fn a_scope_is_a_lineage_a_project_or_everything() {
    let mut world = World::new();
    world.put(&session("a", START));
    world.put(&fork("b", "a", START + 10));
    world.put(&Session { project_dir: "/p/other".into(), ..session("c", START) });
    for (id, text, at) in [
        ("a", "needle a", START),
        ("a", "needle a after the fork", START + 20),
        ("b", "needle b", START + 20),
        ("c", "needle c", START + 20),
        ("unknown", "needle of nobody", START + 20),
    ] {
        world.remember_in(id, vec![prompt(text)], at);
    }
    let other = ["/p/other".to_owned()];
    let sorted = |query: &str, scope| {
        let mut found = world.found(query, scope);
        found.sort();
        found
    };
    // By word and by a part of one.
    for query in ["needle", "eedl"] {
        assert_eq!(sorted(query, Scope::Lineage("b")), ["needle a", "needle b"]);
        assert_eq!(sorted(query, Scope::Lineage("a")), ["needle a", "needle a after the fork"]);
        assert_eq!(sorted(query, Scope::Project(&other)), ["needle c"]);
        assert_eq!(sorted(query, Scope::Project(&[])), Vec::<String>::new());
        assert_eq!(sorted(query, Scope::All).len(), 5);
    }
    let hit = world.store.read().search("needle c", Scope::All, None, 1).unwrap().remove(0);
    assert_eq!((hit.host, hit.project.as_deref()), (Some(Host::Codex), Some("/p/other")));
}

#[test]
fn no_query_is_an_error_or_an_expression() {
    let world = world_with(&["plain words", "subject of NEAR things"]);
    let huge = "x ".repeat(500_000);
    let quotes = "\"".repeat(999);
    for query in [
        "\"",
        "\"\"",
        "*",
        "a*",
        "-",
        "-plain",
        "NEAR(",
        "NEAR(a b, 5)",
        "AND",
        "OR OR",
        "NOT",
        "a AND",
        "(",
        ")",
        "^",
        "text:plain",
        "{text subject}: x",
        "+",
        "plain + words",
        "🚀",
        "🚀*\"",
        "\0",
        "a\0b",
        "'; DROP TABLE session_events; --",
        "%",
        "_",
        "\\",
        "\u{e31}",
        "\u{202e}",
        "?1",
        ":name",
        "",
        "   \n\t ",
        &huge,
        &quotes,
    ] {
        let shown: String = query.chars().take(20).collect();
        for scope in [Scope::All, Scope::Lineage(SESSION), Scope::Lineage("'"), Scope::Project(&["\"".to_owned()])] {
            let hits = world.store.read().search(query, scope, None, 10);
            assert!(hits.is_ok(), "{shown:?}: {hits:?}");
        }
    }
    assert_eq!(world.found("text:plain", Scope::All), Vec::<String>::new(), "no column filter");
    assert_eq!(world.found("plain NOT words", Scope::All), ["plain words"], "no operator: some of the words");
    assert_eq!(world.store.read().search("plain", Scope::All, None, 0).unwrap(), []);
}

/// The index collects all hits of all words with a beginning before it returns one.
#[test]
fn a_common_word_is_not_searched_as_a_beginning() {
    let mut world = World::new();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001)
        INSERT INTO session_events (session_id, category, kind, importance, text, created_at_ms)
        SELECT 'many', 'prompt', 'prompt', 2, 'parser ' || i, 1 FROM n";
    world.store.db.execute_batch(fill).unwrap();
    world.remember(vec![prompt("parsers"), prompt("printers")]);
    let found = |query| {
        let hits = world.store.read().search(query, Scope::All, None, 5_000).unwrap();
        let texts: Vec<String> = hits.into_iter().map(|hit| hit.event.text).collect();
        (texts.len(), texts.contains(&"parsers".to_owned()))
    };
    assert_eq!(found("parser"), (1_000, false));
    assert_eq!((found("parsers"), found("print")), ((1, true), (1, false)), "others may be beginnings");
}
