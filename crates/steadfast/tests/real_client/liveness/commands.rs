//! Commands that the user types while a goal is driven: each is answered, and the goal continues by itself.

use super::lab::Lab;

/// Types lines into a running loop, waits until each shows its answer, and then for more turns.
fn continues_after(lines: &[(&str, &str)]) -> Lab {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Run and run\" --max-turns 500");
    for (line, _) in lines {
        tui.submit(line);
    }
    for (_, answer) in lines {
        tui.wait_until_shown(answer);
    }
    lab.continues(lines[0].0);
    assert_eq!(lab.goal()["status"], "active");
    lab.model.check_script();
    lab
}

#[test]
fn a_status_typed_in_the_loop_is_answered_and_the_loop_continues() {
    continues_after(&[("/steadfast:goal-status", "◎ Goal:")]);
}

#[test]
fn an_extension_typed_in_the_loop_is_applied_and_the_loop_continues() {
    let lab = continues_after(&[("/steadfast:goal-extend --add-turns 5", "goal extended")]);
    let goal = lab.goal();
    let turns = goal["continuations_used"].as_i64().zip(goal["continuations_remaining"].as_i64());
    assert_eq!(turns.map(|(used, left)| used + left), Some(505), "{goal:#}");
}

#[test]
fn a_mistyped_command_in_the_loop_is_refused_and_the_loop_continues() {
    continues_after(&[("/steadfast:goal-start --budgte 5k", "--budgte")]);
}

#[test]
fn two_commands_in_a_row_are_answered_and_the_loop_continues() {
    continues_after(&[
        ("/steadfast:goal-status", "◎ Goal:"),
        ("/steadfast:goal-extend --add-turns 7", "goal extended"),
    ]);
}

#[test]
fn a_compaction_typed_in_the_loop_is_made_and_the_loop_continues() {
    continues_after(&[("/compact", "Compacted (ctrl+o")]);
}

#[test]
fn a_view_of_the_client_opened_in_the_loop_does_not_end_the_loop() {
    continues_after(&[("/context", "Context Usage")]);
}

#[test]
fn an_edit_typed_in_the_loop_changes_the_objective_and_the_loop_continues() {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Run and run\"");
    tui.submit("/steadfast:goal-edit \"Walk and walk\"");
    lab.wait_for_goal("the new objective", |goal| goal["objective"] == "Walk and walk");
    lab.continues("the edit");
    lab.model.check_script();
}

/// The client closes the dialog only when the user does, so the goal must be on its way again right after that.
#[test]
fn a_dialog_opened_in_the_loop_delays_the_loop_only_while_it_is_open() {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Run and run\"");
    tui.submit("/config");
    tui.wait_for_text("Auto-compact");
    tui.escape_from("Auto-compact");
    lab.continues("the dialog");
    lab.model.check_script();
}
