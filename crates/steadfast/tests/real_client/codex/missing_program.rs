//! Codex with hooks of ours whose program is gone: one line says what to type, and everything else works as without us.

use super::client::Codex;
use super::goals::trust_all;
use super::model::ScriptedResponses;
use super::reply::Reply;
use super::tui::Tui;
use crate::with_steadfast::binary;
use std::fs;

/// Set up and trusted, then the program was deleted.
fn without_program(model: &ScriptedResponses) -> Codex {
    let codex = Codex::new(model);
    let home = codex.root().join("steadfast-home");
    let codex = codex.env("STEADFAST_HOME", &home.to_string_lossy());
    let program = codex.root().join("steadfast");
    fs::copy(binary(), &program).expect("copy");
    let done = codex.command(&program).args(["setup", "codex", "--yes"]).output().expect("setup");
    assert!(done.status.success(), "{done:?}");
    fs::remove_file(&program).expect("remove");
    trust_all(codex)
}

#[test]
fn a_session_in_the_terminal_says_what_to_type_and_no_hook_fails() {
    let model = ScriptedResponses::start(|request| Reply::text(format!("ANSWER {}", request.seq)));
    let codex = without_program(&model);
    let tui = Tui::start(&codex, &[]);
    tui.submit("Hello");
    tui.wait_for_turn("ANSWER 1");
    tui.submit("Once more");
    tui.wait_for_turn("ANSWER 2");
    let screen = tui.history();
    tui.exit();
    assert_eq!(screen.matches("the program is missing").count(), 1, "{screen}");
    assert!(screen.contains("steadfast setup"), "{screen}");
    assert!(!screen.to_lowercase().contains("fail") && !screen.contains("127"), "{screen}");
    model.check_script();
}

#[test]
fn a_run_without_the_program_works_as_without_hooks() {
    let model = ScriptedResponses::start(|_| Reply::text("Done."));
    let codex = without_program(&model);
    let output = codex.exec(&[], "Hello");
    model.check_script();
    assert!(!format!("{output:?}").contains("hook"), "{output:?}");
}
