//! `session export` and `session import`: session memory from one machine to another.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_model::clock;

use crate::env::{Env, Output, finish};
use crate::schemas::check;

const HEADING: &str = r#"{"format":"steadfast-session-memory","version":1,"exported_at_ms":1}"#;
const SECRET: &str = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

/// The lines of an export by hand, without its first and last.
#[derive(Default)]
struct Export {
    lines: String,
    counts: [u64; 4],
}

impl Export {
    fn line(mut self, of: usize, line: &Value) -> Self {
        writeln!(self.lines, "{line}").unwrap();
        self.counts[of] += 1;
        self
    }

    fn session(self, id: &str) -> Self {
        let at = clock::now() - 9_000;
        let line = json!({"type": "session", "session_id": id, "host": "codex", "project": "/p/web", "cwd": "/p/web",
            "parent_session_id": null, "parent_link": null, "started_at_ms": at, "last_seen_ms": at, "compactions": 0});
        self.line(0, &line)
    }

    fn goal(self, objective: &str) -> Self {
        let at = clock::now() - 5_000;
        let line = json!({"type": "stated_goal", "objective": objective, "status": "active", "set_at_ms": at,
            "changed_at_ms": at});
        self.line(1, &line)
    }

    fn event_at(self, category: &str, importance: &str, text: &str, at: i64) -> Self {
        let line = json!({"type": "event", "category": category, "kind": "typed", "importance": importance,
            "subject": "", "text": text, "repeats": 1, "resolved": false, "created_at_ms": at});
        self.line(3, &line)
    }

    fn prompt(self, text: &str) -> Self {
        self.event_at("prompt", "high", text, clock::now() - 5_000)
    }

    fn text(&self) -> String {
        let [sessions, stated_goals, tasks, events] = self.counts;
        let end = json!({"type": "end", "sessions": sessions, "stated_goals": stated_goals, "tasks": tasks,
            "events": events});
        format!("{HEADING}\n{}{end}\n", self.lines)
    }

    fn written(&self, env: &Env) -> PathBuf {
        file(env, self.text().as_bytes())
    }
}

fn file(env: &Env, bytes: &[u8]) -> PathBuf {
    let path = env.path("memory.jsonl");
    fs_err::write(&path, bytes).unwrap();
    path
}

impl Env {
    fn import(&self, path: &std::path::Path) -> Output {
        self.run(&["session", "import", path.to_str().unwrap(), "--json"])
    }

    fn export(&self, arguments: &[&str]) -> String {
        self.run(&[&["session", "export"], arguments].concat()).succeeds().stdout.clone()
    }

    fn of_session(&self, arguments: &[&str]) -> Value {
        self.run(&[&["session"], arguments, &["--json"]].concat()).succeeds().json()
    }

    fn rows(&self) -> Vec<Vec<String>> {
        self.sql(
            "SELECT session_id, category, kind, importance, subject, text, repeats, resolved, created_at_ms
             FROM session_events ORDER BY session_id, id",
        )
    }

    fn prompts(&self, session: &str, prompts: &[&str]) {
        for prompt in prompts {
            self.hook(session, &json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}));
        }
    }

    /// Two sessions with all kinds of memory, the second forked from the first, without a live goal.
    fn live_through(&self) {
        self.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        self.prompts(
            "s1",
            &["Why does the parser lose comments?", "rule: never touch <main>", "goal: ship the parser"],
        );
        let task = json!({"hook_event_name": "PostToolUse", "tool_name": "TodoWrite", "tool_use_id": "t1",
            "tool_input": {"todos": [{"content": "write tests", "status": "completed", "activeForm": "x"},
                                      {"content": "fix the lexer", "status": "in_progress", "activeForm": "y"}]},
            "tool_response": {}});
        self.hook("s1", &task);
        self.hook("s1", &json!({"hook_event_name": "PreCompact", "trigger": "auto"}));
        self.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "other"}));
        self.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        self.prompts("s2", &["decision: comments are nodes of their own"]);
        self.execute("UPDATE sessions SET parent_session_id = 's1', parent_link = 'fork' WHERE session_id = 's2'");
    }
}

fn snapshot(env: &Env, id: &str) -> String {
    env.of_session(&["snapshot", id])["text"].as_str().unwrap().to_owned()
}

fn hits(env: &Env, words: &str) -> Vec<(Value, Value)> {
    let found = env.of_session(&["search", words]);
    let hits = found["hits"].as_array().unwrap().iter();
    hits.map(|hit| (hit["session_id"].clone(), hit["text"].clone())).collect()
}

#[test]
fn a_round_trip_gives_the_same_snapshots_and_search_results() {
    let (from, to) = (Env::new(), Env::new());
    from.live_through();
    let path = to.path("memory.jsonl");
    let written = from.of_session(&["export", "--all", "--output", path.to_str().unwrap()]);
    check("session-export.schema.json", &written);
    assert_eq!((&written["sessions"], &written["stated_goals"], &written["tasks"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let counts = to.import(&path).succeeds().json();
    check("session-import.schema.json", &counts);
    assert_eq!(counts["sessions_added"], 2);
    assert_eq!(counts["events_added"], written["events"]);
    assert_eq!(to.rows(), from.rows());
    for id in ["s1", "s2"] {
        assert!(snapshot(&from, id).contains("never touch"), "{}", snapshot(&from, id));
        assert_eq!(snapshot(&to, id), snapshot(&from, id));
    }
    for words in ["parser", "comments", "lexer"] {
        assert!(!hits(&from, words).is_empty());
        assert_eq!(hits(&to, words), hits(&from, words), "{words}");
    }

    // An imported session is over, has no process, and no goal came with it.
    let listed = to.of_session(&["list", "--all"]);
    let alive: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|session| session["alive"].clone()).collect();
    assert_eq!(alive, [false, false]);
    let shown = to.of_session(&["show", "s2"]);
    assert_eq!((&shown["end_reason"], &shown["parent"]["session_id"]), (&json!("import"), &json!("s1")));
    let none = [["0".to_owned()]];
    for table in ["goals", "goal_history", "goal_events", "outbox", "goal_queue"] {
        if to.sql(&format!("SELECT 1 FROM sqlite_schema WHERE name = '{table}'")).is_empty() {
            continue;
        }
        assert_eq!(to.sql(&format!("SELECT count(*) FROM {table}")), none, "{table}");
    }
    assert_eq!(to.sql("SELECT count(*) FROM sessions WHERE host_pid IS NOT NULL OR ended_at_ms IS NULL"), none);
    assert_eq!(to.run(&["db", "check"]).succeeds().stdout, "ok\n");
}

#[test]
fn a_second_import_adds_nothing_and_says_what_was_there() {
    let (from, to) = (Env::new(), Env::new());
    from.live_through();
    let path = file(&to, from.export(&["--all"]).as_bytes());
    to.import(&path).succeeds();
    let (rows, sessions) = (to.rows(), to.sql("SELECT * FROM sessions"));
    let again = to.import(&path).succeeds().json();
    assert_eq!(
        (&again["sessions_added"], &again["sessions_extended"], &again["sessions_unchanged"]),
        (&json!(0), &json!(0), &json!(2))
    );
    for kind in ["events", "tasks", "stated_goals"] {
        assert_eq!(again[format!("{kind}_added")], 0);
        assert_ne!(again[format!("{kind}_already_here")], 0);
    }
    assert_eq!((to.rows(), to.sql("SELECT * FROM sessions")), (rows, sessions));
    let text = to.run(&["session", "import", path.to_str().unwrap()]).succeeds().stdout.clone();
    assert!(text.starts_with("Sessions      0 added  2 already here\n"), "{text}");
}

#[test]
fn a_later_export_adds_what_happened_since() {
    let (from, to) = (Env::new(), Env::new());
    from.live_through();
    to.import(&file(&to, from.export(&["--all"]).as_bytes())).succeeds();
    from.prompts("s1", &["goal: ship the lexer too"]);
    let counts = to.import(&file(&to, from.export(&["s1"]).as_bytes())).succeeds().json();
    assert_eq!((&counts["sessions_extended"], &counts["sessions_added"]), (&json!(1), &json!(0)));
    assert_eq!(to.rows(), from.rows());
    assert_eq!(snapshot(&to, "s1"), snapshot(&from, "s1"));
    let goals = "SELECT objective, status, set_at_ms, changed_at_ms FROM stated_goals ORDER BY id";
    assert_eq!(to.sql(goals), from.sql(goals));
}

#[test]
fn newer_local_memory_is_kept() {
    let env = Env::new();
    let old = Export::default().session("s1").goal("an old goal").prompt("from the other machine");
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.prompts("s1", &["goal: the goal of here", "the newest prompt of here"]);
    let (rows, session) = (env.rows(), env.sql("SELECT * FROM sessions"));
    let counts = env.import(&old.written(&env)).succeeds().json();
    assert_eq!((&counts["sessions_unchanged"], &counts["events_already_here"]), (&json!(1), &json!(1)));
    assert_eq!((env.rows(), env.sql("SELECT * FROM sessions")), (rows, session));
    assert_eq!(env.of_session(&["show", "s1"])["stated_goal"]["objective"], "the goal of here");
}

#[test]
fn the_words_of_a_durable_goal_are_left_alone() {
    let env = Env::new();
    env.start(&["Make every test pass"]);
    env.prompts("s1", &["goal: stated beside it"]);
    let goals = env.sql("SELECT * FROM goals");
    let stated = env.sql("SELECT * FROM stated_goals");
    let at = clock::now() + 60_000;
    let later = json!({"type": "stated_goal", "objective": "take over", "status": "active", "set_at_ms": at,
        "changed_at_ms": at});
    env.import(&Export::default().session("s1").line(1, &later).written(&env)).succeeds();
    assert_eq!((env.sql("SELECT * FROM goals"), env.sql("SELECT * FROM stated_goals")), (goals, stated));
}

#[test]
fn imported_text_is_cleaned_redacted_and_bounded() {
    let env = Env::new();
    let export = Export::default()
        .session("s1")
        .goal(&format!("deploy with {SECRET}"))
        .prompt(&format!("use {SECRET} \u{1b}[31mred\u{1b}[0m\u{7} zero\u{200b}width \u{202e}reversed"))
        .prompt(&"目".repeat(9_000))
        .event_at("rule", "critical", &"r".repeat(9_000), clock::now() - 4_000)
        .prompt("\u{1b}[0m")
        .line(
            2,
            &json!({"type": "task", "id": "1\n2", "subject": format!("rotate {SECRET}"), "status": "pending",
            "changed_at_ms": 5}),
        );
    let counts = env.import(&export.written(&env)).succeeds().json();
    assert_eq!((&counts["events_added"], &counts["events_left_out"]), (&json!(3), &json!(1)));
    let all = ["session_events", "session_tasks", "stated_goals", "sessions"];
    let stored: Vec<_> = all.iter().map(|table| env.sql(&format!("SELECT * FROM {table}"))).collect();
    let stored = format!("{stored:?}");
    assert!(!stored.contains("sk-ant"), "{stored}");
    let texts: Vec<String> = env.rows().into_iter().map(|row| row[5].clone()).collect();
    assert!(texts[0].ends_with(" red zerowidth reversed"), "{}", texts[0]);
    assert_eq!((texts[1].chars().count(), texts[2].chars().count()), (4_000, 500));
    assert_eq!(env.import(&export.written(&env)).succeeds().json()["events_added"], 0);
}

#[test]
fn a_secret_that_is_stored_unredacted_does_not_leave() {
    let env = Env::new();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.prompts("s1", &["hello"]);
    env.execute(&format!("UPDATE session_events SET text = 'key {SECRET}'"));
    let export = env.export(&["s1"]);
    assert!(export.contains("key ") && !export.contains("sk-ant"), "{export}");
}

#[test]
fn a_session_keeps_its_bound_and_its_floors() {
    let env = Env::new();
    let start = clock::now() - 100_000;
    let mut export = Export::default().session("s1").event_at("rule", "low", "the oldest rule", start);
    for number in 0..5_000 {
        export = export.event_at("file", "normal", &format!("/src/{number}.rs"), start + 1 + number);
    }
    let counts = env.import(&export.written(&env)).succeeds().json();
    assert_eq!((&counts["events_added"], &counts["events_left_out"]), (&json!(1_000), &json!(4_001)));
    let rows = env.rows();
    assert_eq!((rows.len(), rows[0][5].as_str(), rows[999][5].as_str()), (1_000, "the oldest rule", "/src/4999.rs"));
    assert_eq!(env.import(&export.written(&env)).succeeds().json()["events_added"], 0);
    // What is added later evicts in the same way.
    let more = Export::default().session("s1").event_at("git", "low", "push", clock::now());
    env.import(&more.written(&env)).succeeds();
    let rows = env.rows();
    assert_eq!((rows.len(), rows[0][5].as_str(), rows[999][5].as_str()), (1_000, "the oldest rule", "push"));
}

#[test]
fn what_is_no_whole_export_is_refused_and_nothing_of_it_is_stored() {
    let env = Env::new();
    let good = Export::default().session("s1").prompt("one").session("s2").prompt("two");
    let text = good.text();
    let lines: Vec<&str> = text.lines().collect();
    let long = format!("{HEADING}\n{}\n", "x".repeat(17 * 1024 * 1024));
    let future = clock::now() + 3 * 86_400_000;
    let bad_id = good.text().replace("\"s2\"", "\"../s2\"");
    let cases: Vec<(String, u64, &str)> = vec![
        (String::new(), 1, "nothing to import"),
        ("\n".into(), 1, "nothing to import"),
        ("hello\n".into(), 1, "not an export of session memory"),
        ("{\"format\":\"other\",\"version\":1}\n".into(), 1, "not an export of session memory"),
        ("\u{0}\u{1}\u{ff}".into(), 1, "not an export of session memory"),
        (text.replace("\"version\":1", "\"version\":9"), 1, "format version 9"),
        (long, 2, "longer than 1048576 bytes"),
        (text[..text.len() - 100].to_owned(), 5, "not valid JSON"),
        (lines[..5].join("\n"), 5, "has no last line"),
        (text.clone() + "{}\n", 7, "after the last line"),
        (text.replace("\"events\":2", "\"events\":3"), 6, "counts other lines"),
        (text.replace("\"prompt\"", "\"telepathy\""), 3, "unknown variant `telepathy`"),
        (text.replace("\"high\"", "7"), 3, "not a line of the format"),
        ([lines[0], lines[2], lines[5]].join("\n"), 2, "before the first session"),
        (bad_id, 4, "`../s2` is not a session id"),
        (good.text().replace("\"repeats\"", &format!("\"created_at_ms\":{future},\"repeats\"")), 3, "duplicate field"),
        (Export::default().session("s1").event_at("rule", "low", "x", future).text(), 3, "is not a moment between"),
    ];
    for (content, line, about) in cases {
        let path = file(&env, content.as_bytes());
        let refused = env.run(&["session", "import", path.to_str().unwrap()]);
        refused.fails_with(1, about);
        assert!(refused.stderr.contains(&format!("line {line}: ")), "{refused:?}");
        let json = env.import(&path);
        check("error.schema.json", &json.json());
        assert!(!env.store().exists(), "{about}");
    }
    env.run(&["session", "import", env.path("none").to_str().unwrap()]).fails_with(1, "none");
    env.run(&["session", "import", env.project().to_str().unwrap()]).fails_with(1, "is not a file");
    env.import(&good.written(&env)).succeeds();
    // A bad file changes nothing in a store that is there.
    let rows = env.rows();
    let bad = Export::default().session("s3").prompt("three").text();
    let cut = file(&env, &bad.as_bytes()[..bad.len() - 3]);
    env.run(&["session", "import", cut.to_str().unwrap()]).fails_with(1, "not valid JSON");
    assert_eq!(env.rows(), rows);
}

#[test]
fn a_store_that_cannot_be_used_is_exit_code_4() {
    let env = Env::new();
    let path = Export::default().session("s1").prompt("one").written(&env);
    fs_err::create_dir_all(env.home()).unwrap();
    fs_err::write(env.store(), "not a database, but long enough to be taken for one".repeat(40)).unwrap();
    env.run(&["session", "import", path.to_str().unwrap()]).fails_with(4, "not a usable database");
}

#[test]
fn an_export_goes_through_a_pipe() {
    let (from, to) = (Env::new(), Env::new());
    from.live_through();
    let export = from.export(&["--all", "--json"]);
    assert!(export.starts_with("{\"format\":\"steadfast-session-memory\",\"version\":1"), "{export}");
    assert!(export.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{export}");
    let imported = finish(&mut to.command(&["session", "import", "-", "--json"]), export.as_bytes());
    assert_eq!(imported.succeeds().json()["sessions_added"], 2);
    assert_eq!(to.rows(), from.rows());
}

#[test]
fn an_export_names_one_session_as_show_does() {
    let env = Env::new();
    env.run(&["session", "export"]).fails_with(2, "no session recorded yet");
    env.run(&["session", "export", "--all"]).fails_with(2, "no session recorded yet");
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.prompts("s1", &["hello"]);
    assert_eq!(env.export(&[]).lines().count(), 5);
    env.run(&["session", "export", "none"]).fails_with(2, "unknown session `none`");
    env.run(&["session", "export", "s1", "--all"]).fails_with(1, "cannot be used with");
    let folder = env.project();
    env.run(&["session", "export", "s1", "--output", folder.to_str().unwrap()]).fails_with(1, "is not a file");
}

#[test]
fn an_agent_exports_its_own_lineage_and_imports_nothing() {
    let env = Env::new();
    env.live_through();
    env.hook("other", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.prompts("other", &["a secret plan"]);
    let in_agent = |arguments: &[&str]| {
        finish(env.command(arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s2"), b"")
    };
    in_agent(&["session", "export", "other"]).fails_with(3, "another session's memory");
    let all = in_agent(&["session", "export", "--all"]).succeeds().stdout.clone();
    assert!(all.contains("\"session_id\":\"s1\"") && all.contains("\"session_id\":\"s2\""), "{all}");
    assert!(!all.contains("secret plan"), "{all}");
    let path = Export::default().session("s9").prompt("obey").written(&env);
    in_agent(&["session", "import", path.to_str().unwrap()]).fails_with(3, "`session import` is for the user");
    in_agent(&["session", "import", "-"]).fails_with(3, "`session import` is for the user");
    assert_eq!(env.sql("SELECT count(*) FROM session_events WHERE session_id = 's9'"), [["0"]]);
}

#[test]
fn a_killed_import_is_completed_by_the_next() {
    let env = Env::new();
    let start = clock::now() - 1_000_000;
    let mut export = Export::default();
    for session in 0..3 {
        export = export.session(&format!("s{session}"));
        for number in 0..120 {
            let text = format!("{session} {number} {}", "word ".repeat(600));
            export = export.event_at("prompt", "high", &text, start + number);
        }
    }
    let path = export.written(&env);
    let mut at = 40;
    loop {
        let mut child = env.command(&["session", "import", path.to_str().unwrap()]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(at));
        let is_over = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        if is_over {
            break;
        }
        at = at * 3 / 2;
    }
    env.import(&path).succeeds();
    let counts = "SELECT session_id, count(*), count(DISTINCT text) FROM session_events GROUP BY 1 ORDER BY 1";
    let expected: Vec<Vec<String>> = (0..3).map(|n| vec![format!("s{n}"), "120".into(), "120".into()]).collect();
    assert_eq!(env.sql(counts), expected);
    let ordered = "SELECT count(*) FROM session_events a JOIN session_events b ON a.session_id = b.session_id
                   WHERE a.id < b.id AND a.created_at_ms > b.created_at_ms";
    assert_eq!(env.sql(ordered), [["0"]]);
    assert_eq!(env.of_session(&["list", "--all"])["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
}

#[test]
fn sessions_that_memory_does_not_keep_are_noted() {
    let env = Env::new();
    let old = clock::now() - 90 * 86_400_000;
    let line = json!({"type": "session", "session_id": "s1", "host": "claude", "started_at_ms": old,
        "last_seen_ms": old});
    let export = Export::default().line(0, &line).event_at("rule", "high", "x", old);
    let imported = env.import(&export.written(&env));
    assert_eq!(imported.succeeds().json()["expiring"], 1);
    assert!(imported.stderr.contains("no activity for 30 days"), "{imported:?}");
}
