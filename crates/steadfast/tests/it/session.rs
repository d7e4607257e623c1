//! `steadfast session`: list, show, search and purge.

use serde_json::{Value, json};
use steadfast_model::clock;
use steadfast_model::directive::Directive;
use steadfast_model::memory::stated::decide;
use steadfast_model::memory::{Category, Finding, Findings, Importance, TaskChange, TaskStatus};
use steadfast_store::Store;

use crate::env::{Env, Output, finish};
use crate::schemas::check;

const DAY: i64 = 86_400_000;

impl Env {
    fn remember(&self, session_id: &str, found: &Findings, at: i64) {
        let mut store = Store::open(&self.store()).unwrap();
        store.write(|db| db.remember(session_id, found, at)).unwrap();
    }

    fn add_event(&self, session_id: &str, category: Category, text: &str) {
        self.remember(session_id, &found(category, text), clock::now());
    }

    fn state(&self, session_id: &str, objective: &str) {
        let mut store = Store::open(&self.store()).unwrap();
        let change = decide(None, &Directive::State(objective));
        store.write(|db| db.apply_stated(session_id, &change, None, clock::now())).unwrap();
    }

    /// An ended session in a directory, known from hooks.
    fn session_in(&self, session_id: &str, directory: &std::path::Path) {
        self.hook(session_id, &json!({"hook_event_name": "SessionStart", "source": "startup", "cwd": directory}));
        self.hook(session_id, &json!({"hook_event_name": "SessionEnd", "reason": "other", "cwd": directory}));
    }

    fn session(&self, arguments: &[&str]) -> Output {
        self.run(&[&["session"], arguments].concat())
    }

    fn session_json(&self, arguments: &[&str]) -> Value {
        self.session(&[arguments, &["--json"]].concat()).succeeds().json()
    }

    /// Makes the memory of a session, and its last hook, older.
    fn age(&self, session_id: &str, days: i64) {
        let at = clock::now() - days * DAY;
        self.execute(&format!(
            "UPDATE sessions SET last_seen_ms = {at} WHERE session_id = '{session_id}';
             UPDATE session_events SET created_at_ms = {at} WHERE session_id = '{session_id}';"
        ));
    }
}

fn found(category: Category, text: &str) -> Findings {
    let finding =
        Finding { category, kind: "kind", importance: Importance::Normal, subject: String::new(), text: text.into() };
    Findings { findings: vec![finding], ..Findings::default() }
}

fn ids(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().unwrap().iter().map(|session| session["session_id"].as_str().unwrap()).collect()
}

#[test]
fn without_a_store_nothing_is_listed_and_none_is_created() {
    let env = Env::new();
    assert_eq!(env.session_json(&["list"]), json!({"sessions": [], "left_out": 0}));
    assert_eq!(env.session_json(&["search", "x"]), json!({"query": "x", "hits": []}));
    assert_eq!(
        env.session_json(&["purge", "--all"]),
        json!({"dry_run": false, "purged": [], "kept": 0, "rewritten": null})
    );
    for arguments in [&["show", "x"][..], &["show"], &["events", "x"], &["snapshot", "x"], &["purge", "x"]] {
        env.session(arguments).fails_with(2, "session");
    }
    env.session(&["show"]).fails_with(2, "no session recorded yet");
    env.session(&["search", "x", "--session", "y"]).fails_with(2, "unknown session `y`");
    assert!(!env.store().exists());
}

#[test]
fn show_prints_everything_about_a_session() {
    let env = Env::new();
    env.start(&["Make every test pass", "--budget", "10M"]);
    env.state("s1", "ship the parser");
    for text in ["one", "two", "two"] {
        env.add_event("s1", Category::Prompt, text);
    }
    env.add_event("s1", Category::Error, "it failed\n\u{1b}[31mred");
    let tasks = vec![TaskChange::Replace(vec![
        ("write tests".into(), TaskStatus::Completed),
        ("fix the lexer".into(), TaskStatus::InProgress),
    ])];
    env.remember("s1", &Findings { tasks, ..Findings::default() }, clock::now());

    let shown = env.session_json(&["show", "s1"]);
    check("session-show.schema.json", &shown);
    assert_eq!((&shown["session_id"], &shown["host"]), (&json!("s1"), &json!("claude")));
    assert_eq!(shown["project"], json!(env.project()));
    assert_eq!(shown["goal"], env.goal(&["status", "--json"]).json()["goal"]);
    assert_eq!(shown["stated_goal"]["objective"], "ship the parser");
    assert_eq!(shown["events"], json!({"prompt": 2, "error": 1}));
    assert_eq!(
        shown["analytics"],
        json!([{"category": "prompt", "label": "User prompts", "count": 2}, {"category": "error", "label": "Errors", "count": 1}])
    );
    assert_eq!(
        shown["tasks"],
        json!([{"id": "list-1", "subject": "write tests", "status": "completed"},
               {"id": "list-2", "subject": "fix the lexer", "status": "in_progress"}])
    );
    assert_eq!((&shown["snapshot"], &shown["compactions"]), (&Value::Null, &json!(0)));

    let text = env.session(&["show", "s1"]).succeeds().stdout.clone();
    for line in [
        "Goal         active: Make every test pass",
        "Stated goal  active: ship the parser",
        "User prompts  2",
        "Errors        1",
        "[~] fix the lexer\n[x] write tests",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
}

#[test]
fn a_session_is_named_by_an_id_prefix_and_never_guessed() {
    let env = Env::new();
    for id in ["abc-1", "abc-2", "xyz"] {
        env.session_in(id, &env.project());
    }
    assert_eq!(env.session_json(&["show", "xy"])["session_id"], "xyz");
    env.session(&["show", "abc"]).fails_with(2, "2 sessions begin with `abc`: abc-1, abc-2");
    env.session(&["show", "nothing"]).fails_with(2, "unknown session `nothing`");
    env.session(&["show", "../x"]).fails_with(2, "unknown session `../x`");
    env.session_in("team/a\\b", &env.project());
    env.add_event("team/a\\b", Category::Prompt, "x");
    assert_eq!(ids(&env.session_json(&["list", "--all", "--limit", "1"])), ["team/a\\b"]);
    for beginning in ["team/a\\b", "team/"] {
        assert_eq!(env.session_json(&["show", beginning])["session_id"], "team/a\\b");
    }
    env.session(&["show", &"x".repeat(5_000)]).fails_with(2, "unknown session `xxx");
    env.session(&["show", ""]).fails_with(2, "the session id is empty");
    let error = env.session(&["show", "nothing", "--json"]);
    assert_eq!(error.code, 2);
    check("error.schema.json", &error.json());
}

#[test]
fn without_an_id_the_one_live_session_of_this_directory_is_used() {
    let env = Env::new();
    env.session(&["show"]).fails_with(2, "no session");
    env.start(&["x"]);
    assert_eq!(env.session_json(&["show"])["session_id"], "s1");
    env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.session(&["events"]).fails_with(2, "several live sessions");
    let own = finish(env.command(&["session", "show", "--json"]).env("CLAUDE_CODE_SESSION_ID", "s2"), b"");
    assert_eq!(own.succeeds().json()["session_id"], "s2");
}

#[test]
fn from_a_subdirectory_the_one_live_session_of_the_project_is_used() {
    let env = Env::new();
    for directory in ["project/.git", "project/src/deep", "elsewhere"] {
        std::fs::create_dir_all(env.path(directory)).unwrap();
    }
    let from = |directory: &str, arguments: &[&str]| {
        finish(env.command(&[&["session", "show"], arguments].concat()).current_dir(env.path(directory)), b"")
    };
    env.session_in("over", &env.project());
    from("project/src/deep", &[]).fails_with(2, "no live session in the project of");
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    assert_eq!(from("project/src/deep", &["--json"]).succeeds().json()["session_id"], "s1");
    from("elsewhere", &[]).fails_with(2, "no live session in the project of");
    env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    from("project/src/deep", &[]).fails_with(2, "2 live sessions in this project: ");
}

#[test]
fn finished_goals_are_shown_with_their_outcome() {
    let env = Env::new();
    env.session_in("s1", &env.project());
    for prompt in ["goal: one", "goal: two", "/goal done", "goal: three", "/goal clear", "goal: four"] {
        env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}));
    }
    let shown = env.session_json(&["show", "s1"]);
    check("session-show.schema.json", &shown);
    let goals: Vec<(&str, &str)> = shown["stated_goals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|goal| (goal["status"].as_str().unwrap(), goal["objective"].as_str().unwrap()))
        .collect();
    assert_eq!(goals, [("replaced", "one"), ("done", "two"), ("cleared", "three"), ("active", "four")]);
    let text = env.session(&["show", "s1"]).succeeds().stdout.clone();
    for line in [
        "Stated goal   active: four",
        "Earlier goal  replaced: one",
        "Earlier goal  done: two",
        "Earlier goal  cleared: three",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
}

#[test]
fn a_purge_leaves_no_text_in_any_file_of_the_store() {
    let env = Env::new();
    env.session_in("s1", &env.project());
    for number in 0..6 {
        let prompt = format!("WORDPROMPT {number}, do the thing please");
        env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}));
        env.hook("s1", &json!({"hook_event_name": "PreCompact", "trigger": "auto"}));
        env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "compact"}));
    }
    let words = || {
        let files = std::fs::read_dir(env.store().parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let bytes: Vec<u8> =
            files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect();
        bytes.windows(10).filter(|window| window == b"WORDPROMPT").count()
    };
    assert!(words() > 0, "the test sees words that are there");
    let purged = env.session_json(&["purge", "s1"]);
    check("session-purge.schema.json", &purged);
    assert_eq!((&purged["rewritten"], words()), (&json!(true), 0));
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
}

#[test]
fn list_has_this_project_and_its_worktrees_newest_first() {
    let env = Env::new();
    let git = env.project().join(".git");
    std::fs::create_dir_all(git.join("worktrees/fix")).unwrap();
    std::fs::write(git.join("worktrees/fix/commondir"), "../..\n").unwrap();
    for directory in ["worktree", "elsewhere", "project/src"] {
        std::fs::create_dir_all(env.path(directory)).unwrap();
    }
    std::fs::write(env.path("worktree/.git"), format!("gitdir: {}\n", git.join("worktrees/fix").display())).unwrap();
    for (id, directory) in [("top", "project"), ("sub", "project/src"), ("tree", "worktree"), ("far", "elsewhere")] {
        env.session_in(id, &env.path(directory));
    }
    env.age("tree", 3);
    env.age("sub", 1);
    env.add_event("top", Category::Prompt, "one");
    env.state("tree", "ship it");
    let list = env.session_json(&["list"]);
    check("session-list.schema.json", &list);
    assert_eq!(ids(&list), ["top", "sub", "tree"]);
    assert_eq!((&list["sessions"][0]["events"], &list["sessions"][0]["alive"]), (&json!(1), &json!(false)));
    assert_eq!(list["sessions"][2]["stated_goal"], json!({"status": "active", "objective": "ship it"}));
    assert_eq!(ids(&env.session_json(&["list", "--all"])), ["top", "far", "sub", "tree"]);
    let one = env.session_json(&["list", "--limit", "1"]);
    assert_eq!((ids(&one), &one["left_out"]), (vec!["top"], &json!(2)));
    let from_worktree = finish(env.command(&["session", "list", "--json"]).current_dir(env.path("worktree")), b"");
    assert_eq!(ids(&from_worktree.json()), ["top", "sub", "tree"]);

    let text = env.session(&["list"]).succeeds().stdout.clone();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ID    HOST    ACTIVE   PROJECT   EVENTS  GOAL");
    assert_eq!(lines[3], "tree  claude  3d ago   worktree  0       stated, active: ship it");
    let elsewhere = finish(env.command(&["session", "list"]).current_dir(env.home()), b"");
    assert_eq!((elsewhere.succeeds().stdout.as_str(), elsewhere.stderr.contains("4 in other projects")), ("", true));
}

#[test]
fn events_are_filtered_and_paged() {
    let env = Env::new();
    env.session_in("s1", &env.project());
    for number in 1..=5 {
        env.add_event("s1", Category::Prompt, &format!("prompt {number}"));
        env.add_event("s1", Category::Git, &format!("commit {number}\nsecond line"));
    }
    let texts = |arguments: &[&str]| {
        let listed = env.session_json(&[&["events", "s1"], arguments].concat());
        check("session-events.schema.json", &listed);
        listed["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&[]).len(), 10);
    assert_eq!(texts(&["--category", "prompt", "--limit", "2"]), ["prompt 4", "prompt 5"]);
    let first = env.session_json(&["events", "s1", "--after", "0", "--limit", "1"])["events"][0]["id"].clone();
    assert_eq!(texts(&["--after", &first.to_string(), "--category", "prompt", "--limit", "1"]), ["prompt 2"]);
    assert_eq!(env.session(&["events", "s1", "--category", "gossip"]).code, 1);
    let text = env.session(&["events", "s1", "--limit", "1"]).succeeds().stdout.clone();
    assert!(text.contains("  git/kind  commit 5 …\n"), "{text}");
}

#[test]
fn search_covers_all_projects_or_the_given_one() {
    let env = Env::new();
    std::fs::create_dir_all(env.path("elsewhere")).unwrap();
    env.session_in("s1", &env.project());
    env.session_in("s2", &env.path("elsewhere"));
    env.add_event("s1", Category::Prompt, "the lexer needs tabs");
    env.add_event("s1", Category::Error, "lexer.rs: 解析错误");
    env.add_event("s2", Category::Prompt, "another lexer");
    let found = |arguments: &[&str]| {
        let found = env.session_json(&[&["search"], arguments].concat());
        check("session-search.schema.json", &found);
        found["hits"].as_array().unwrap().len()
    };
    assert_eq!(found(&["lexer"]), 3);
    assert_eq!(found(&["lexer", "tab"]), 1);
    assert_eq!(found(&["析错"]), 1);
    assert_eq!(found(&["lexer", "--session", "s1"]), 2);
    assert_eq!(found(&["lexer", "--project", "."]), 2);
    assert_eq!(found(&["lexer", "--project", "elsewhere"]), 1);
    assert_eq!(found(&["lexer", "--project", "../elsewhere"]), 1);
    assert_eq!(found(&["lexer", "--project", "nowhere"]), 0);
    assert_eq!(found(&["lexer", "--category", "error"]), 1);
    assert_eq!(found(&["lexer", "--limit", "2"]), 2);
    env.session(&["search", "x", "--session", "unknown"]).fails_with(2, "unknown session `unknown`");
    env.session(&["search", "  "]).fails_with(1, "the search is empty");
    let text = env.session(&["search", "tabs"]).succeeds().stdout.clone();
    assert!(text.ends_with("  s1  project  prompt  the lexer needs tabs\n"), "{text}");
    let huge = "x".repeat(100_000);
    for query in ["\"", "*", "-", "NEAR(", "--", "-x", "🚀", "a AND", "%", huge.as_str()] {
        let output = env.session(&["search", "--json", "--", query]);
        assert_eq!((output.code, output.json()["hits"].as_array().unwrap().len()), (0, 0), "{query:.20}");
    }
}

#[test]
fn the_snapshot_is_the_text_that_a_model_gets() {
    let env = Env::new();
    env.session_in("s1", &env.project());
    assert_eq!(env.session_json(&["snapshot", "s1"])["text"], "");
    env.add_event("s1", Category::Prompt, "one");
    let mut store = Store::open(&env.store()).unwrap();
    store.write(|db| db.put_snapshot("s1", "<session_resume>\n目\n</session_resume>", 5)).unwrap();
    store.write(|db| db.note_injection("s1", "compact", 7)).unwrap();
    let told = env.session_json(&["snapshot", "s1", "--host", "codex"]);
    check("session-snapshot.schema.json", &told);
    assert_eq!(told["host"], "codex");
    assert_eq!(
        env.session_json(&["show", "s1"])["snapshot"],
        json!({"characters": 36, "written_at_ms": 5, "injected_at_ms": 7, "injected_by": "compact"})
    );
    env.session(&["snapshot", "unknown"]).fails_with(2, "unknown session `unknown`");
    assert_eq!(env.session(&["snapshot", "s1", "--host", "gemini"]).code, 1);
}

#[test]
fn purge_deletes_the_given_sessions_and_prints_them() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[memory]\nretention_days = 0\n").unwrap();
    for id in ["old", "older", "stated", "new"] {
        env.session_in(id, &env.project());
        env.add_event(id, Category::Prompt, id);
    }
    env.state("stated", "ship it");
    for (id, days) in [("old", 40), ("older", 90), ("stated", 90)] {
        env.age(id, days);
    }
    env.start(&["keeps its goal"]);
    env.add_event("s1", Category::Prompt, "one");

    env.session(&["purge"]).fails_with(1, "required");
    env.session(&["purge", "old", "--all"]).fails_with(1, "cannot be used with");
    env.session(&["purge", "--older-than", "0"]).fails_with(1, "0");
    let would = env.session_json(&["purge", "--older-than", "30", "--dry-run"]);
    check("session-purge.schema.json", &would);
    let names = |purged: &Value| -> Vec<String> {
        let purged = purged["purged"].as_array().unwrap();
        purged.iter().map(|gone| gone["session_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(&would), &would["kept"]), (vec!["older".into(), "old".into()], &json!(1)));
    assert_eq!(env.sql("SELECT count(*) FROM session_events"), [["5"]], "a dry run changes nothing");
    let output = env.session(&["purge", "--older-than", "30"]);
    assert_eq!(output.succeeds().stdout.lines().count(), 2);
    assert!(
        output.stdout.starts_with("deleted  older  90d ago  project  1 events, 0 tasks, 0 stated goals\n"),
        "{output:?}"
    );
    assert!(output.stderr.contains("1 more are kept"), "{output:?}");
    env.session(&["show", "older"]).fails_with(2, "unknown session `older`");

    env.session(&["purge", "unknown"]).fails_with(2, "unknown session `unknown`");
    assert_eq!(names(&env.session_json(&["purge", "new"])), ["new"]);
    let mut all = names(&env.session_json(&["purge", "--all"]));
    all.sort();
    assert_eq!(all, ["s1", "stated"]);
    assert_eq!(env.sql("SELECT count(*) FROM session_events"), [["0"]]);
    assert_eq!(env.sql("SELECT count(*) FROM stated_goals"), [["0"]]);
    assert_eq!(env.status()["objective"], "keeps its goal");
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
}

#[test]
fn an_agent_may_not_purge_and_the_attempt_is_logged() {
    let env = Env::new();
    let in_agent = |arguments: &[&str]| {
        let arguments = [&["session", "purge"], arguments].concat();
        finish(env.command(&arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
    };
    in_agent(&["--all"]).fails_with(3, "is for the user");
    env.start(&["x"]);
    env.add_event("s1", Category::Prompt, "one");
    for arguments in [&["--all"][..], &["s1"], &["--older-than", "1"], &["--all", "--dry-run"]] {
        in_agent(arguments).fails_with(3, "`session purge` is for the user");
    }
    assert_eq!(env.sql("SELECT count(*) FROM session_events"), [["1"]]);
    assert_eq!(
        env.sql(
            "SELECT DISTINCT kind, json_extract(payload, '$.verb'), actor FROM goal_events WHERE kind LIKE 'priv%'"
        ),
        [["privileged_verb_refused", "session purge", "worker"]]
    );
}

#[test]
fn help_has_examples_for_every_verb() {
    let env = Env::new();
    for verb in ["list", "show", "events", "snapshot", "search", "export", "import", "purge"] {
        let help = env.session(&[verb, "--help"]).succeeds().stdout.clone();
        assert!(help.contains(&format!("steadfast session {verb}")) && help.contains("Example"), "{help}");
    }
}

#[test]
fn goals_of_closed_sessions_are_listed_when_no_session_lives_here() {
    let env = Env::new();
    env.start(&["Survive the exit"]);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}));
    let output = env.run(&["goal", "status"]);
    output.fails_with(2, "no live session");
    assert!(output.stderr.contains("s1  claude  active: Survive the exit"), "{output:?}");
    let status = env.goal(&["status", "--json"]).json();
    assert!(status["goal"]["next"].as_str().unwrap().contains("`claude --resume s1` continues it"), "{status}");
}
