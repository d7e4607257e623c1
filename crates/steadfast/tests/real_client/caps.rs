//! Caps of `[limits]` in a real session without a goal.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Request;
use crate::tui::Tui;
use crate::with_steadfast::{client, work};
use std::time::Duration;

const TOOLS: &[&str] = &["--allowedTools", "Bash"];
const LIMIT: Duration = Duration::from_mins(1);

/// Runs a command in the first two rounds of a turn, then talks.
fn two_rounds(request: &Request) -> Reply {
    let reply = match request.seq {
        1 | 2 => work(&format!("toolu_{}", request.seq)),
        _ => Reply::text("All done."),
    };
    reply.usage(Usage::new(700, 10, 0, 50))
}

fn limit(client: &Client, limits: &str) {
    let home = client.root().join("steadfast");
    std::fs::create_dir_all(&home).expect("home");
    std::fs::write(home.join("config.toml"), format!("[limits]\n{limits}\n")).expect("configuration");
}

#[test]
fn at_the_cap_the_next_tool_call_of_a_session_without_a_goal_is_refused() {
    let model = ScriptedModel::start(two_rounds);
    let client = client(&model);
    limit(&client, "daily_tokens = 700\nenforce_sessions = true");
    let tui = Tui::start(&client, TOOLS);
    tui.submit("Work a little");
    let screen = tui.wait_for("the refusal", LIMIT, |screen| screen.contains("tools are refused in this session"));
    assert!(screen.contains("cap reached (daily_tokens:"), "{screen}");
    tui.wait_for_text("All done.");
    let last = model.requests().into_iter().last().expect("a request");
    assert!(last.all_text().contains("daily_tokens"), "the model hears why: {}", last.summary());
    tui.exit();
    model.check_script();
}

#[test]
fn a_cap_that_is_not_enforced_is_only_told() {
    let model = ScriptedModel::start(two_rounds);
    let client = client(&model);
    limit(&client, "daily_tokens = 700");
    let tui = Tui::start(&client, TOOLS);
    tui.submit("Work a little");
    let screen = tui.wait_for("the end", LIMIT, |screen| screen.contains("All done."));
    assert!(screen.contains("cap reached (daily_tokens:") && !screen.contains("refused"), "{screen}");
    let last = model.requests().into_iter().last().expect("a request");
    assert!(!last.all_text().contains("daily_tokens"), "{}", last.summary());
    tui.exit();
    model.check_script();
}
