//! Facts about the client that the product relies on, one test each, so that
//! a new client version that breaks one fails here first.

use crate::client::Client;
use crate::lab_plugin::LabPlugin;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::tui::Tui;
use serde_json::json;
use std::fs;
use std::time::Duration;

fn write_user_command(client: &Client) {
    let commands = client.config_dir().join("commands");
    fs::create_dir_all(&commands).expect("commands directory");
    let text = "---\ndescription: Status of the goal\n---\nCOMMAND TEXT $ARGUMENTS\n";
    fs::write(commands.join("goal-status.md"), text).expect("command");
}

/// A user-level command can be answered by a hook without a model call.
#[test]
fn expansion_hook_answers_a_user_command() {
    let model = ScriptedModel::start(|_| Reply::text("The model was asked."));
    let client = Client::new(&model);
    write_user_command(&client);
    let answer = r#"[ "$event" = UserPromptExpansion ] && echo '{"decision":"block","reason":"All is well."}'
        exit 0"#;
    let lab = LabPlugin::write(&client, answer);
    let client = client.plugin_dir(&lab.dir);

    let output = client.print(&[], "/goal-status a \"b c\" $(id)");
    let tui = Tui::start(&client, &[]);
    tui.submit("/goal-status now");
    tui.wait_for_text("All is well.");
    tui.exit();

    assert!(output.status.success(), "{output:?}");
    let shown = "UserPromptExpansion operation blocked by hook:\nAll is well.";
    assert!(output.stdout.starts_with(shown), "{output:?}");
    let seen = lab.inputs_of("UserPromptExpansion");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0]["command_name"], "goal-status");
    assert_eq!(seen[0]["command_args"], "a \"b c\" $(id)");
    assert_eq!(seen[0]["command_source"], "userSettings");
    assert_eq!(seen[1]["command_args"], "now");
    assert!(lab.inputs_of("UserPromptSubmit").is_empty());
    assert!(lab.inputs_of("Stop").is_empty());
    assert!(model.requests().is_empty());
}

/// When it does not block, its context reaches the model and the ordinary
/// prompt hook runs after it.
#[test]
fn expansion_hook_adds_context() {
    let model = ScriptedModel::start(|_| Reply::text("Understood."));
    let client = Client::new(&model);
    write_user_command(&client);
    let context = json!({"hookSpecificOutput": {
        "hookEventName": "UserPromptExpansion", "additionalContext": "CONTEXT OF THE HOOK"
    }});
    let answer = format!("[ \"$event\" = UserPromptExpansion ] && echo '{context}'\nexit 0");
    let lab = LabPlugin::write(&client, &answer);
    let client = client.plugin_dir(&lab.dir);

    client.print(&[], "/goal-status now");

    let text = model.requests()[0].all_text();
    assert!(text.contains("UserPromptExpansion hook additional context: CONTEXT OF THE HOOK"), "{text}");
    assert!(text.contains("COMMAND TEXT now"), "{text}");
    let order = ["SessionStart", "UserPromptExpansion", "UserPromptSubmit", "Stop", "SessionEnd"];
    assert_eq!(lab.events(), order);
    assert_eq!(lab.inputs_of("UserPromptSubmit")[0]["prompt"], "/goal-status now");
}

/// In the TUI an `asyncRewake` hook beside an ordinary Stop hook wakes the
/// model after the turn has ended. Both run at every stop.
#[test]
fn rewake_hook_works_beside_a_stop_hook() {
    let model = ScriptedModel::start(|request| Reply::text(format!("Answer {}.", request.seq)));
    let client = Client::new(&model);
    let once = client.root().join("woken");
    let hooks = json!({"Stop": [{"hooks": [
        {"type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/hook.sh\" Stop"},
        {"type": "command", "asyncRewake": true,
         "command": format!("mkdir '{}' && echo WAKE UP >&2 && exit 2; exit 0", once.display())}
    ]}]});
    let lab = LabPlugin::write_with_hooks(&client, "", &hooks);
    let client = client.plugin_dir(&lab.dir);

    let tui = Tui::start(&client, &[]);
    tui.submit("Begin.");
    tui.wait_for_text("Answer 2.");
    tui.exit();

    let second = model.requests().into_iter().find(|r| r.seq == 2).expect("second turn");
    assert!(second.last_user_text().starts_with("<task-notification>"), "{}", second.summary());
    assert!(second.last_user_text().contains("WAKE UP"), "{}", second.summary());
    assert_eq!(lab.inputs_of("Stop").len(), 2);
    assert_eq!(client.usage(), model.ledger());
}

/// An API error ends the turn with `StopFailure` and without Stop.
#[test]
fn api_error_fires_stop_failure() {
    let model = ScriptedModel::start(|_| Reply::error(429, "slow down").delay(Duration::from_millis(50)));
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let output = client.print(&[], "Begin.");

    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lab.inputs_of("StopFailure")[0]["error"], "rate_limit");
    assert!(lab.inputs_of("Stop").is_empty());
    assert_eq!(model.requests().len(), 1);
    assert!(model.handed_out().is_empty() && client.usage().is_empty());
}

/// Esc before the first text of the model returns the whole prompt to the
/// input box. The prompt hook has run by then, and no hook reports the end.
#[test]
fn escape_withdraws_a_prompt() {
    let model = ScriptedModel::start(|_| Reply::text("Too late.").delay(Duration::from_mins(10)));
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let tui = Tui::start(&client, &[]);
    tui.submit("Please hang");
    tui.wait_for_text("esc to interrupt");
    tui.escape();
    tui.wait_for("the prompt in the input box", Duration::from_mins(1), |screen| {
        screen.matches("Please hang").count() == 1 && !screen.contains("esc to interrupt")
    });
    // Ctrl-C empties the input box.
    tui.key("C-c");
    tui.wait_for("an empty input box", Duration::from_mins(1), |screen| !screen.contains("Please hang"));
    tui.exit();

    assert_eq!(lab.events(), ["SessionStart", "UserPromptSubmit", "SessionEnd"]);
}
