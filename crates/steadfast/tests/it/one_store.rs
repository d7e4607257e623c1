//! The plugin alone keeps goals in the client's directory, where a terminal does not look. The terminal names that store,
//! and `setup` brings its goals here, live ones too.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::{Env, finish};

/// A session of the plugin without `setup`, with a live goal.
struct PluginAlone {
    env: Env,
    data: PathBuf,
}

impl PluginAlone {
    fn with_goal() -> Self {
        let env = Env::new();
        let data = env.claude_config().join("plugins/data/steadfast-inline");
        let plugin = Self { env, data };
        plugin.hook(&json!({"hook_event_name": "SessionStart", "source": "startup"}));
        let said = plugin.typed("start", "\"Ship it\"");
        assert!(said.contains("Ship it"), "{said}");
        assert!(plugin.store().exists() && !plugin.env.store().exists());
        plugin
    }

    fn store(&self) -> PathBuf {
        self.data.join("goals.db")
    }

    fn hook(&self, event: &Value) -> String {
        let mut input =
            json!({"session_id": "s1", "cwd": self.env.project(), "transcript_path": self.env.transcript("s1")});
        for (name, value) in event.as_object().unwrap() {
            input[name] = value.clone();
        }
        let mut command = self.env.command(&["hook", "claude"]);
        let output = finish(command.env("CLAUDE_PLUGIN_DATA", &self.data), input.to_string().as_bytes());
        output.succeeds().stdout.clone()
    }

    /// A command in the client.
    fn typed(&self, verb: &str, arguments: &str) -> String {
        self.hook(&json!({"hook_event_name": "UserPromptExpansion", "command_name": format!("steadfast:goal-{verb}"),
                          "command_args": arguments}))
    }

    fn starts_again(&self) -> String {
        self.hook(&json!({"hook_event_name": "SessionStart", "source": "resume"}))
    }

    fn one_store(&self) -> Value {
        let report = self.env.run(&["doctor", "--json"]).json();
        report["checks"].as_array().unwrap().iter().find(|check| check["id"] == "one_store").cloned().unwrap()
    }
}

#[test]
fn setup_imports_the_live_goal_of_the_plugin_and_the_session_keeps_it() {
    let plugin = PluginAlone::with_goal();
    let shown = plugin.env.run(&["setup", "claude", "--dry-run"]);
    let import = format!("import 1 goal from {}", plugin.store().display());
    assert!(shown.succeeds().stdout.contains(&import), "{shown:?}");
    assert!(!plugin.env.store().exists(), "a dry run imports nothing");
    let unasked = plugin.env.run(&["setup", "claude"]);
    let note = format!("not imported: 1 goal in {}; `steadfast setup --yes` imports them", plugin.store().display());
    assert!(unasked.succeeds().stdout.contains(&note), "{unasked:?}");

    let done = plugin.env.run(&["setup", "claude", "--yes"]);
    let expected = format!("imported 1 goal from {}; 1 goal paused there", plugin.store().display());
    assert!(done.succeeds().stdout.contains(&expected), "{done:?}");
    let left =
        plugin.env.run(&["--db", plugin.store().to_str().unwrap(), "goal", "status", "--session", "s1", "--json"]);
    let left = &left.succeeds().json()["goal"];
    assert_eq!((&left["status"], &left["paused_reason"]), (&json!("paused"), &json!("user")), "two must not be driven");
    let said = plugin.typed("status", "");
    assert!(said.contains("Ship it") && said.contains("active"), "the same session: {said}");
    assert_eq!(plugin.env.goal(&["status", "--json"]).succeeds().json()["goal"]["objective"], "Ship it");
    assert_eq!(plugin.one_store()["status"], "ok", "{}", plugin.one_store());
    assert!(!plugin.starts_again().contains("steadfast setup"));

    let again = plugin.env.run(&["setup", "claude", "--yes"]);
    assert!(again.succeeds().stdout.starts_with("nothing to change"), "{again:?}");
    assert!(!again.stdout.contains("import"), "{again:?}");
}

/// An import has several transactions, and pauses the goals of the other store last.
#[test]
fn an_import_that_was_cut_short_is_completed_by_the_next_setup() {
    let plugin = PluginAlone::with_goal();
    let other = rusqlite::Connection::open(plugin.store()).unwrap();
    let refuse = "CREATE TRIGGER refused BEFORE UPDATE ON goals BEGIN SELECT RAISE(ABORT, 'refused here'); END";
    other.execute_batch(refuse).unwrap();
    let cut_short = plugin.env.run(&["setup", "claude", "--yes"]);
    let said = &cut_short.succeeds().stdout;
    assert!(said.contains("is not over: ") && said.contains("refused here; `steadfast setup` continues it"), "{said}");
    assert_eq!(plugin.one_store()["status"], "warn", "{}", plugin.one_store());

    other.execute_batch("DROP TRIGGER refused").unwrap();
    let completed = plugin.env.run(&["setup", "claude", "--yes"]);
    assert!(completed.succeeds().stdout.contains("1 goal paused there"), "{completed:?}");
    assert_eq!(plugin.one_store()["status"], "ok", "{}", plugin.one_store());
    let again = plugin.env.run(&["setup", "claude", "--yes"]);
    assert!(!again.succeeds().stdout.contains("import"), "{again:?}");
}

#[test]
fn an_import_brings_what_waits_and_leaves_runs_alone() {
    let plugin = PluginAlone::with_goal();
    let store = plugin.store();
    let there = |arguments: &[&str]| {
        plugin.env.run(&[&["--db", store.to_str().unwrap()], arguments].concat()).succeeds();
    };
    there(&["goal", "start", "Then tidy up", "--queue", "--session", "s1"]);
    let files = [("loop.yaml", "name: count\ndelay: 0\ncompletion: fixed-n\nmax: 1\n"), ("prompt.md", "go\n")];
    let types = plugin.env.home().join("loops/count");
    std::fs::create_dir_all(&types).unwrap();
    for (name, text) in files {
        std::fs::write(types.join(name), text).unwrap();
    }
    there(&["loop", "run", "count", "night", "--agent", "echo said"]);
    let sql = |sql: &str| rusqlite::Connection::open(&store).unwrap().execute(sql, []).unwrap();
    sql("UPDATE runs SET status = 'running', completed_at_ms = NULL");

    let done = plugin.env.run(&["setup", "claude", "--yes"]);
    assert!(done.succeeds().stdout.contains("1 goal paused there; left running there: 1 run"), "{done:?}");
    let left = rusqlite::Connection::open(&store).unwrap();
    let stops: i64 = left.query_row("SELECT count(stop_requested) FROM runs", [], |row| row.get(0)).unwrap();
    assert_eq!(stops, 0, "no run was asked to end");
    let waiting = plugin.env.run(&["goal", "queue", "--session", "s1", "--json"]).succeeds().json();
    assert_eq!(waiting["queue"][0]["objective"], "Then tidy up", "{waiting}");
    plugin.env.run(&["setup", "claude", "--yes"]).succeeds();
    let waiting = plugin.env.run(&["goal", "queue", "--session", "s1", "--json"]).succeeds().json();
    assert_eq!(waiting["queue"].as_array().unwrap().len(), 1, "once");
}

#[test]
fn an_import_by_hand_ends_the_warning_of_doctor() {
    let plugin = PluginAlone::with_goal();
    let warning = plugin.one_store();
    assert_eq!(warning["status"], "warn", "{warning}");
    assert!(warning["hint"].as_str().unwrap().contains("steadfast setup claude"), "{warning}");
    plugin.env.run(&["db", "import", plugin.store().to_str().unwrap()]).succeeds();
    assert_eq!(plugin.one_store()["status"], "ok", "{}", plugin.one_store());
}

#[test]
fn a_terminal_without_goals_names_the_store_of_the_plugin() {
    let plugin = PluginAlone::with_goal();
    let store = plugin.store().display().to_string();
    let names_it = |text: &str| text.contains(&store) && text.contains("steadfast setup claude");
    let without_store = plugin.env.run(&["goal", "status"]);
    assert!(names_it(&without_store.fails_with(2, "no goal yet").stderr), "{without_store:?}");
    let history = ["goal", "history", "--all"];
    assert!(names_it(&plugin.env.run(&history).succeeds().stdout));
    assert_eq!(plugin.env.run(&[&history[..], &["--json"]].concat()).succeeds().json()["goals"], json!([]));

    // A store that has a session and no goal.
    plugin.env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let session = plugin.env.run(&["goal", "status", "--session", "s2"]);
    assert!(session.code == 2 && names_it(&session.stdout), "{session:?}");
    assert!(names_it(&plugin.env.run(&history).succeeds().stdout));
    assert!(names_it(&plugin.env.run(&[&history[..], &["--limit", "0"]].concat()).succeeds().stdout));
    plugin.env.run(&["setup", "claude", "--yes"]).succeeds();
    let session = plugin.env.run(&["goal", "status", "--session", "s2"]);
    assert!(session.code == 2 && !session.stdout.contains(&store), "{session:?}");
}

#[test]
fn a_store_of_the_plugin_that_cannot_be_read_does_not_stop_setup() {
    let env = Env::new();
    let data = env.claude_config().join("plugins/data/steadfast-inline");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("goals.db"), "no database, but long enough to look at".repeat(50)).unwrap();
    let done = env.run(&["setup", "claude", "--yes"]);
    assert!(done.succeeds().stdout.contains("not imported"), "{done:?}");
    assert!(env.claude_config().join("commands/goal-start.md").exists());
}
