//! Hints name what can be typed where they are shown: slash commands in the client, `steadfast …` in a shell.

use super::lab::Lab;
use crate::reply::Reply;

/// What the client shows for a command, without a model call.
fn shown(lab: &Lab, command: &str) -> String {
    let output = lab.client.print(&[], command);
    assert!(output.status.success(), "{command}: {output:?}");
    output.stdout
}

#[test]
fn hints_in_the_client_are_slash_commands() {
    let lab = Lab::new(|_| panic!("the model was asked"));
    for (command, hint) in [
        ("/steadfast:goal-status", "goal-start \"OBJECTIVE\""),
        ("/steadfast:goal-start", "goal-start \"OBJECTIVE\""),
        ("/steadfast:goal-adopt", "goal-adopt GOAL"),
        ("/steadfast:goal-resume", "goal-start"),
    ] {
        let text = shown(&lab, command);
        assert!(text.contains(hint), "{command}: {text}");
        for foreign in ["steadfast goal ", "usage: start", "usage: adopt"] {
            assert!(!text.contains(foreign), "{command} names {foreign:?}: {text}");
        }
    }
    lab.model.check_script();
}

#[test]
fn hints_in_a_shell_are_commands_of_the_shell() {
    let lab = Lab::new(|_| Reply::text("Nothing to do."));
    let tui = lab.start("\"Do something\"");
    lab.wait_for_pause("no_progress");
    tui.wait_for_prompt();
    let status = lab.status();
    assert!(status.contains("steadfast goal resume") && !status.contains("/goal-"), "{status}");
    tui.submit("/steadfast:goal-status");
    let history = tui.wait_until_shown("paused_reason: no_progress");
    let next = history.lines().rfind(|line| line.trim_start().starts_with("next: ")).unwrap_or_default();
    assert!(next.contains("/goal-resume") && !next.contains("steadfast goal"), "{next}");
    lab.model.check_script();
}
