//! The plugin where it cannot work: without its program, and in a client that is too old. One line says what to type, and
//! a command of ours makes no model call.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::request::Kind;
use crate::tui::Tui;
use crate::with_steadfast::{binary, repo, steadfast};
use std::fs;
use std::path::Path;

const TO_TYPE: &str = "then type in a terminal: steadfast setup";

fn model() -> ScriptedModel {
    ScriptedModel::start(|request| Reply::text(format!("Answer {}.", request.seq)))
}

/// PATH without any directory that has a `steadfast`.
fn without_program(client: Client) -> Client {
    let search = std::env::var("PATH").expect("PATH");
    let folders: Vec<&str> = search.split(':').filter(|folder| !Path::new(folder).join("steadfast").exists()).collect();
    client.env("PATH", &folders.join(":"))
}

#[test]
fn without_the_program_a_command_says_what_to_type_and_costs_nothing() {
    let model = model();
    let client = without_program(Client::new(&model)).plugin_dir(&repo().join("plugin"));
    for command in ["/steadfast:goal-start \"Ship it\"", "/steadfast:goal-status"] {
        let output = client.print(&[], command);
        assert!(output.status.success() && output.stdout.contains(TO_TYPE), "{output:?}");
    }
    assert_eq!(model.requests().len(), 0, "no model call for a command that nothing carries out");
    // Everything else works as without the plugin.
    let output = client.print(&["--output-format", "stream-json", "--verbose"], "Hello");
    assert!(output.stdout.contains("Answer 1."), "{output:?}");
    assert!(!output.stdout.contains("hook_error") && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn without_the_program_a_session_in_the_terminal_says_so_once() {
    let model = model();
    let client = without_program(Client::new(&model)).plugin_dir(&repo().join("plugin"));
    let tui = Tui::start(&client, &[]);
    tui.wait_for_text("the program is missing");
    tui.submit("Hello");
    tui.wait_for_text("Answer 1.");
    tui.submit("Once more");
    tui.wait_for_text("Answer 2.");
    let screen = tui.history();
    assert_eq!(screen.matches("the program is missing").count(), 1, "{screen}");
    assert!(!screen.contains("hook error"), "{screen}");
    tui.submit("/steadfast:goal-status");
    tui.wait_for("the second line about it", std::time::Duration::from_mins(1), |screen| {
        screen.matches("the program is missing").count() == 2
    });
    tui.exit();
    assert_eq!(model.requests_of(Kind::Main).len(), 2);
}

/// It does not load hooks.json, which names events that it does not know, and so no other hook of ours runs.
#[test]
fn a_client_that_is_too_old_says_so_and_a_command_costs_nothing() {
    let model = model();
    let client = Client::named_by("STEADFAST_OLD_CLAUDE", &model)
        .bin_dir(binary().parent().expect("directory of the binary"))
        .plugin_dir(&repo().join("plugin"));
    let tui = Tui::start(&client, &[]);
    tui.submit("/steadfast:goal-status");
    tui.wait_for_text("In a terminal: claude update");
    tui.submit("Hello");
    tui.wait_for_text("Answer 1.");
    tui.exit();
    // Print mode of that client shows no reason.
    client.print(&[], "/steadfast:goal-start \"Ship it\"");
    assert_eq!(model.requests_of(Kind::Main).len(), 1, "only for what was not a command");
}

/// Set up, then the program was deleted. The user's own command of our name still reaches the model.
#[test]
fn a_program_that_is_gone_after_setup_is_named_and_own_commands_still_work() {
    let model = model();
    let client = without_program(Client::new(&model));
    let home = client.root().join("sf-home");
    let client = client.env("STEADFAST_HOME", &home.to_string_lossy());
    let commands = client.config_dir().join("commands");
    fs::create_dir_all(&commands).expect("directory");
    fs::write(commands.join("goal-start.md"), "Deploy now: $ARGUMENTS\n").expect("command");
    let program = client.root().join("steadfast");
    fs::copy(binary(), &program).expect("copy");
    let done = client.command(&program).args(["setup", "claude", "--yes"]).output().expect("setup");
    assert!(done.status.success(), "{done:?}");
    fs::remove_file(&program).expect("remove");

    let output = client.print(&[], "/goal-status");
    assert!(output.stdout.contains(TO_TYPE), "{output:?}");
    assert_eq!(model.requests().len(), 0);
    let output = client.print(&[], "/goal-start the site");
    assert!(output.stdout.contains("Answer 1."), "{output:?}");
    assert!(model.requests()[0].all_text().contains("Deploy now: the site"));
    let (code, said) = steadfast(&client, &["doctor", "--fix"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("set up Claude Code again"), "{said}");
}
