//! Trust in hooks and plugins of the real Codex.

use super::client::Codex;
use super::model::ScriptedResponses;
use super::reply::Reply;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn command(more: &Value) -> Value {
    let mut handler = json!({"type": "command", "command": "true"});
    for (name, value) in more.as_object().into_iter().flatten() {
        handler[name] = value.clone();
    }
    handler
}

#[test]
fn trust_is_written_as_the_client_computes_it() {
    let model = ScriptedResponses::start(|_| Reply::text("no"));
    let one = |more: Value| json!([{"hooks": [command(&more)]}]);
    let hooks = json!({
        "SessionStart": [{"matcher": "compact|resume", "hooks": [command(&json!({"timeout": 5})), command(&json!({}))]}],
        "UserPromptSubmit": [{"matcher": "x", "hooks": [command(&json!({"statusMessage": "s"}))]}],
        "PreToolUse": [{"matcher": "", "hooks": [command(&json!({"additionalContextLimit": 9, "timeout": 0}))]}],
        "PostToolUse": one(json!({"async": true, "commandWindows": "w"})),
        "PermissionRequest": [{"matcher": "*", "hooks": [command(&json!({}))]}],
        "PreCompact": one(json!({})), "PostCompact": one(json!({})),
        "SubagentStart": one(json!({})), "SubagentStop": one(json!({})),
        "PreModelRequest": one(json!({})),
        "PostModelRequest": [{"matcher": "x", "hooks": [command(&json!({}))]}],
        "Stop": [{"matcher": "x", "hooks": [command(&json!({"timeout": 900}))]}],
        "SessionEnd": one(json!({"timeout": 30})),
        "Interrupt": one(json!({"timeout": 30}))
    });
    let codex = Codex::new(&model).with_hooks(&hooks);
    let listed = codex.hooks_list();
    assert_eq!(listed.len(), 15, "{listed:#?}");
    let odd: Vec<&Value> = listed.iter().filter(|hook| hook["trustStatus"] != "trusted").collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

fn lab_market(codex: &Codex) -> PathBuf {
    let market = codex.root().join("market");
    let log = codex.root().join("hook.log");
    let hook = format!("cat >> {}; env | grep ^PLUGIN_ >> {}", log.display(), log.display());
    let files = [
        (
            ".claude-plugin/marketplace.json",
            json!({"name": "lab", "owner": {"name": "lab"},
            "plugins": [{"name": "probe", "source": "./probe"}]})
            .to_string(),
        ),
        ("probe/.claude-plugin/plugin.json", json!({"name": "probe", "version": "1.0.0"}).to_string()),
        (
            "probe/hooks/hooks.json",
            json!({"hooks": {"UserPromptSubmit": [{"hooks": [
            {"type": "command", "command": hook}]}]}})
            .to_string(),
        ),
        ("probe/skills/shine/SKILL.md", "---\nname: shine\ndescription: d\n---\nSHINE BODY\n".to_owned()),
        ("probe/commands/glow.md", "---\ndescription: Glows.\n---\nGLOW BODY\n".to_owned()),
    ];
    for (name, text) in files {
        let path = market.join(name);
        fs::create_dir_all(path.parent().expect("directory")).expect("directory");
        fs::write(path, text).expect("file");
    }
    market
}

#[test]
fn a_plugin_brings_hooks_and_skills() {
    let model = ScriptedResponses::start(|_| Reply::text("ok"));
    let codex = Codex::new(&model);
    let market = lab_market(&codex);
    let codex = codex.with_plugin(&market, "probe@lab");
    for prompt in ["$probe:shine now", "$probe:source-command-glow now"] {
        let output = codex.exec(&[], prompt);
        assert!(output.status.success(), "{output:?}");
    }
    let log = fs::read_to_string(codex.root().join("hook.log")).expect("the hook ran");
    assert!(log.contains("$probe:shine now"), "{log}");
    assert!(log.contains("PLUGIN_ROOT="), "{log}");
    assert!(model.requests()[0].all_text().contains("SHINE BODY"));
    assert!(model.requests()[1].all_text().contains("GLOW BODY"));
}

#[test]
fn hooks_of_an_untrusted_plugin_are_skipped() {
    let model = ScriptedResponses::start(|_| Reply::text("ok"));
    let codex = Codex::new(&model);
    let market = lab_market(&codex);
    let (codex, _) = codex.with_untrusted_plugin(&market, "probe@lab");
    let output = codex.exec(&[], "hello");
    assert_eq!(output.last_message().as_deref(), Some("ok"), "{output:?}");
    assert!(!codex.root().join("hook.log").exists());
    assert_eq!(codex.hooks_list()[0]["trustStatus"], "untrusted");
}
