//! The way in: what setup adds, what it leaves alone, what it refuses.

use std::cell::Cell;

use super::*;
use crate::adapter;
use crate::install::Question;

#[test]
fn only_our_lines_are_added() {
    let world = World::with_settings(ODD);
    world.install();
    let text = world.read("claude/settings.json");
    let head = "{\n    \"model\": \"opus\",\n    \"permissions\": {\"allow\": [\"Bash(ls:*)\",   \"Read\"]},\n    \"x\": 1.50e2,\n    \"env\": { \"A\": \"1\", \"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": \"100\" },\n    \"extraKnownMarketplaces\": {\n        \"steadfast\": {\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.ends_with("\"refreshInterval\": 5\n    }\n}"), "{text}");
}

#[test]
fn crlf_files_stay_crlf() {
    let world = World::with_settings("{\r\n  \"a\": 1\r\n}\r\n");
    world.install();
    let text = world.read("claude/settings.json");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

#[test]
fn a_member_goes_in_and_out_without_moving_another_byte() {
    let texts = [
        "{\"o\":{\"a\":[1,{\"k\":\"}\"}]}}",
        "{ \"o\" : { \"a\" : \"\\\\\\\"\" } , \"z\" : null }",
        "{\n\t\"o\": {\n\t\t\"a\": 1\n\t}\n}\n",
        "{\r\n  \"y\": true, \"o\": {\r\n\r\n    \"a\": -1.5e3 }\r\n}",
    ];
    let value = json!({ "deep": [1, { "x": "y" }] });
    for text in texts {
        for keys in [vec!["o", "new"], vec!["new"]] {
            let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
            let with = splice::set(text, &keys, &value, Some("  ")).unwrap();
            let parsed: Value = serde_json::from_str(&with).unwrap();
            let found = keys.iter().fold(&parsed, |object, key| &object[key]);
            assert_eq!(found, &value, "{with}");
            assert_eq!(splice::remove(&with, &keys).as_deref(), Some(text));
        }
    }
}

#[test]
fn twice_is_once() {
    let world = World::with_settings(ODD);
    world.install();
    let once = world.tree();
    let again = world.plan(|wanted| wanted.request.now = "2030-01-01T00:00:00.000Z").unwrap();
    assert!(again.is_empty(), "{}", again.describe());
    assert_eq!(again.describe(), "nothing to change\n");
    again.apply().unwrap();
    assert_eq!(world.tree(), once);
}

#[test]
fn broken_files_are_refused_and_nothing_changes() {
    for (name, text) in [
        ("claude/settings.json", "{ \"a\": 1, }"),
        ("claude/settings.json", "// mine\n{}"),
        ("claude/settings.json", "[]"),
        ("claude/settings.json", "{\"enabledPlugins\": []}"),
        ("claude/plugins/known_marketplaces.json", "{"),
        ("home/config.toml", "db ="),
        ("home/setup/claude.json", "{}"),
    ] {
        let world = World::new();
        world.write(name, text);
        let before = world.tree();
        let error = world.plan(|_| {}).unwrap_err().to_string();
        assert!(error.contains(&world.path(name).display().to_string()), "{error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(world.tree(), before);
    }
}

#[cfg(unix)]
#[test]
fn what_the_user_has_is_never_overwritten() {
    let world = World::with_settings(r#"{"statusLine":{"type":"command","command":"mine"}}"#);
    world.write("claude/commands/goal-start.md", "mine");
    world.write("home/config.toml", "db = \"/elsewhere.db\"\n");
    let report = world.install();
    assert_eq!(world.json("claude/settings.json")["statusLine"]["command"], json!("mine"));
    assert_eq!(world.read("claude/commands/goal-start.md"), "mine");
    assert_eq!(world.read("home/config.toml"), "db = \"/elsewhere.db\"\n");
    assert_eq!(report.notes.len(), 3, "{:?}", report.notes);
    assert!(report.notes.iter().any(|note| note.contains("--segment")));
}

#[test]
fn a_marketplace_of_the_same_name_is_kept_while_it_is_alive() {
    let github = json!({"extraKnownMarketplaces": {"steadfast": {"source": {"source": "github", "repo": "a/b"}}}});
    let world = World::with_settings(&github.to_string());
    world.install();
    let settings = world.json("claude/settings.json");
    assert_eq!(settings["extraKnownMarketplaces"], github["extraKnownMarketplaces"]);
    assert!(!world.path("claude/plugins/known_marketplaces.json").exists());

    let gone =
        json!({"extraKnownMarketplaces": {"steadfast": {"source": {"source": "directory", "path": "/no/such"}}}});
    let world = World::with_settings(&gone.to_string());
    world.install();
    let path = world.path("home/claude").display().to_string();
    let settings = world.json("claude/settings.json");
    assert_eq!(settings["extraKnownMarketplaces"]["steadfast"]["source"]["path"], json!(path));
    world.uninstall();
    assert_eq!(world.json("claude/settings.json"), gone);
}

#[test]
fn an_earlier_answer_stands_until_it_is_taken_back() {
    let world = World::with_settings(r#"{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"20"}}"#);
    world.install();
    let leave = |wanted: &mut Wanted| (wanted.statusline, wanted.block_cap) = (Choice::Leave, Choice::Leave);
    assert!(world.plan(leave).unwrap().is_empty());

    let theirs = user_settings(&world.path("home"), &world.path("claude")).unwrap();
    let expected = json!({"env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "20"}});
    assert_eq!(Value::Object(theirs.root), expected, "ours do not count as theirs");

    let remove = |wanted: &mut Wanted| (wanted.statusline, wanted.block_cap) = (Choice::Remove, Choice::Remove);
    world.plan(remove).unwrap().apply().unwrap();
    let settings = world.json("claude/settings.json");
    assert_eq!(settings.get("statusLine"), None);
    assert_eq!(settings["env"]["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"], json!("20"));
}

#[test]
fn a_failure_half_way_leaves_no_trace() {
    let world = World::with_settings(ODD);
    // A file where a directory is needed, found only when the commands are written.
    world.write("claude/commands", "not a directory");
    let before = world.tree();
    let outcome = world.plan(|_| {}).and_then(InstallPlan::apply);
    assert!(outcome.is_err());
    assert_eq!(world.tree(), before);
}

#[test]
fn a_file_that_changed_after_planning_is_not_overwritten() {
    let world = World::with_settings("{}");
    let plan = world.plan(|_| {}).unwrap();
    world.write("claude/settings.json", "{\"model\":\"x\"}");
    let before = world.tree();
    assert!(matches!(plan.apply(), Err(InstallError::Raced { .. })));
    assert_eq!(world.tree(), before);
}

#[test]
fn a_dry_run_names_every_key_and_changes_nothing() {
    let world = World::with_settings("{\"env\":{\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\":\"20\"}}");
    let before = world.tree();
    let plan = world.plan(|_| {}).unwrap();
    let text = plan.describe();
    for line in [
        "    ~ env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP = \"100\" (was \"20\")\n",
        "    + enabledPlugins = {\"steadfast@steadfast\":true}\n",
        "commands: goal-start.md goal-status.md\n",
        "    + db = ",
    ] {
        assert!(text.contains(line), "{line} not in\n{text}");
    }
    assert_eq!(world.tree(), before);
}

#[test]
fn flags_come_first_then_what_is_there_then_yes_then_the_person() {
    let yes = || Some(|| Ok(true));
    let no_terminal = None::<fn() -> std::io::Result<bool>>;
    let answer = |consent, theirs, asked: bool| {
        if asked {
            decide(consent, 1, theirs, yes()).unwrap()
        } else {
            decide(consent, 1, theirs, no_terminal).unwrap()
        }
    };
    assert_eq!(answer(Consent::Given, true, false), Choice::Set(1));
    assert_eq!(answer(Consent::Refused, false, true), Choice::Remove);
    assert_eq!(answer(Consent::Presumed, false, false), Choice::Set(1));
    assert_eq!(answer(Consent::Presumed, true, false), Choice::Leave);
    assert_eq!(answer(Consent::Open, false, true), Choice::Set(1));
    assert_eq!(answer(Consent::Open, false, false), Choice::Leave);
    assert_eq!(answer(Consent::Open, true, true), Choice::Leave);
}

#[test]
fn what_the_user_refused_is_not_asked_for_again_and_not_set_by_yes() {
    let world = World::new();
    let (home, config_dir) = (world.path("home"), world.path("claude"));
    let asked = Cell::new(0);
    let no = |_: &Question<'_>| {
        asked.set(asked.get() + 1);
        Ok(false)
    };
    let set_up = |change: &dyn Fn(&mut InstallRequest<'_>)| {
        let mut request = InstallRequest { ask: Some(&no), ..request(&home, &config_dir) };
        change(&mut request);
        (adapter(Host::Claude).plan_install)(&request).unwrap().apply().unwrap();
        let settings = world.json("claude/settings.json");
        (settings.get("statusLine").is_some(), settings.get("env").is_some())
    };
    let yes = |request: &mut InstallRequest<'_>| {
        (request.statusline, request.block_cap, request.ask) = (Consent::Presumed, Consent::Presumed, None);
    };
    assert_eq!((set_up(&|_| {}), asked.get()), ((false, false), 3));
    assert_eq!((set_up(&|_| {}), asked.get()), ((false, false), 3), "asked once");
    assert_eq!(set_up(&yes), (false, false));
    assert_eq!(set_up(&|request| request.statusline = Consent::Given), (true, false), "a flag sets it");
    assert_eq!(set_up(&|request| request.statusline = Consent::Refused), (false, false));
    assert_eq!((set_up(&yes), asked.get()), ((false, false), 3));
    world.uninstall();
    assert_eq!(set_up(&yes), (true, true), "uninstall forgets the answers");
}
