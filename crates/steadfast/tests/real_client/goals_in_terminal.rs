//! A durable goal in the real client's terminal interface: a second terminal, compaction, resume, `/clear`, forks,
//! two sessions side by side, and waking the client past its cap on blocks.

use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use crate::tui::Tui;
use crate::with_steadfast::{client, event_kinds, goal, steadfast, steadfast_json, wait_for_goal, work};
use serde_json::json;
use std::time::Duration;

const TOOLS: &[&str] = &["--allowedTools", "Bash"];
const LIMIT: Duration = Duration::from_mins(1);

/// Works a little in every turn, so that neither breaker nor cap ends the loop, and never finishes.
fn busy(request: &Request) -> Reply {
    let id = format!("toolu_{}", request.seq);
    let reply = if request.seq % 2 == 1 { work(&id) } else { Reply::text(format!("Step {}.", request.seq)) };
    reply.usage(Usage::new(100, 10, 0, 50)).delay(Duration::from_millis(100))
}

fn wait_until_driven(client: &crate::client::Client, continuations: i64) {
    wait_for_goal(client, "some continuations", |goal| goal["continuations_used"].as_i64() >= Some(continuations));
}

#[test]
fn a_pause_from_a_second_terminal_stops_the_loop() {
    let model = ScriptedModel::start(busy);
    let client = client(&model);
    let tui = Tui::start(&client, TOOLS);
    tui.submit("/steadfast:goal-start \"Run and run\"");
    tui.wait_for("the first steps", LIMIT, |screen| screen.contains("Step"));
    wait_until_driven(&client, 2);

    // The one live session of this directory is found without naming it.
    let (code, said) = steadfast(&client, &["goal", "pause"]);
    assert_eq!(code, 0, "{said}");

    tui.wait_for("the prompt", LIMIT, |screen| !screen.contains("esc to interrupt"));
    std::thread::sleep(Duration::from_secs(1));
    let requests = model.requests().len();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(model.requests().len(), requests, "nothing is driven while paused");
    let paused = goal(&client);
    assert_eq!((&paused["status"], &paused["paused_reason"]), (&json!("paused"), &json!("user")));

    tui.submit("/steadfast:goal-status");
    tui.wait_for_text("paused_reason: user");
    tui.submit("/steadfast:goal-resume");
    wait_until_driven(&client, paused["continuations_used"].as_i64().unwrap_or(0) + 1);
    let (code, _) = steadfast(&client, &["goal", "pause"]);
    assert_eq!(code, 0);
    tui.exit();
    model.check_script();
}

#[test]
fn the_objective_comes_back_after_compaction_and_resume() {
    let model = ScriptedModel::start(|request| {
        // Each turn works once, then talks; three continuations in all, by the cap on turns.
        busy(request)
    });
    let client = client(&model);
    let tui = Tui::start(&client, TOOLS);
    tui.submit("/steadfast:goal-start \"Remember the milk, word for word\" --max-turns 2");
    wait_for_goal(&client, "its cap", |goal| goal["paused_reason"] == "continuation_cap");
    tui.wait_for("the end of the turn", LIMIT, |screen| !screen.contains("esc to interrupt"));
    tui.submit("/compact");
    tui.wait_for_text("Compacted (ctrl+o");
    let before = model.requests_of(Kind::Main).len();
    tui.submit("Hello again");
    model.wait_for_request("a request after compaction", LIMIT, |r| {
        r.kind == Kind::Main && r.last_user_text().contains("Hello again")
    });
    let after = model.requests_of(Kind::Main).into_iter().nth(before).expect("the request");
    assert!(after.all_text().contains("Remember the milk, word for word"), "{}", after.summary());
    let id = goal(&client)["session_id"].as_str().expect("session").to_owned();
    tui.wait_for("the end of the turn", LIMIT, |screen| !screen.contains("esc to interrupt"));
    tui.exit();

    let (code, said) = steadfast(&client, &["goal", "extend", "--add-turns", "1", "--session", &id]);
    assert_eq!(code, 0, "{said}");
    client.print(&[&["--resume", &id], TOOLS].concat(), "And now?");
    let request =
        model.requests_of(Kind::Main).into_iter().find(|r| r.last_user_text().contains("And now?")).expect("resumed");
    let restored = request.all_text();
    let told = restored.split("after=\"resume\"").nth(1).unwrap_or_default();
    assert!(told.contains("Remember the milk, word for word"), "{}", request.summary());
    model.check_script();
    let kinds = event_kinds(&client);
    assert!(
        kinds.contains(&"session_resumed".to_owned()) && !kinds.contains(&"accounting_uncertain_set".to_owned()),
        "{kinds:?}"
    );
}

#[test]
fn after_clear_the_goal_is_offered_and_can_be_adopted() {
    let model = ScriptedModel::start(busy);
    let client = client(&model);
    let tui = Tui::start(&client, TOOLS);
    tui.submit("/steadfast:goal-start \"Outlive the clear\" --max-turns 1");
    wait_for_goal(&client, "its cap", |goal| goal["paused_reason"] == "continuation_cap");
    tui.wait_for("the end of the turn", LIMIT, |screen| !screen.contains("esc to interrupt"));
    let old = goal(&client);
    tui.submit("/clear");
    tui.wait_for_text("/goal-adopt");
    let id = &old["goal_id"].as_str().expect("id")[..8];
    tui.submit(&format!("/steadfast:goal-adopt {id}"));
    let adopted = wait_for_goal(&client, "a new session", |goal| goal["session_id"] != old["session_id"]);
    assert_eq!((&adopted["goal_id"], &adopted["tokens_used"]), (&old["goal_id"], &old["tokens_used"]));
    // It is still at its cap, so the adoption alone needs no model.
    tui.submit("/steadfast:goal-extend --add-turns 1");
    model.wait_for_request("the adopted goal", LIMIT, |r| {
        r.kind == Kind::Main
            && r.session_id().as_deref() == adopted["session_id"].as_str()
            && r.all_text().contains("Outlive the clear")
    });
    tui.wait_for("the end of the turn", LIMIT, |screen| !screen.contains("esc to interrupt"));
    tui.exit();
    assert!(event_kinds(&client).contains(&"goal_orphaned".to_owned()));
    model.check_script();
}

#[test]
fn two_parallel_sessions_never_change_each_others_goal() {
    let model = ScriptedModel::start(|request| {
        let mine = if request.all_text().contains("ALPHA") { 100 } else { 1 };
        let reply = if request.has_tool_result(&format!("toolu_w{mine}")) {
            Reply::text("Done talking.")
        } else {
            work(&format!("toolu_w{mine}"))
        };
        reply.usage(Usage::new(mine, 0, 0, 0)).delay(Duration::from_millis(100))
    });
    let client = client(&model);
    let first = Tui::start(&client, TOOLS);
    let second = Tui::start(&client, TOOLS);
    first.submit("/steadfast:goal-start \"ALPHA\" --max-turns 3");
    second.submit("/steadfast:goal-start \"BETA\" --max-turns 3");
    let deadline = std::time::Instant::now() + LIMIT;
    let goals = loop {
        let history = steadfast_json(&client, &["goal", "history", "--all", "--format=json"]);
        let goals = history["goals"].as_array().expect("goals").clone();
        if goals.len() == 2 && goals.iter().all(|goal| goal["status"] == "paused") {
            break goals;
        }
        assert!(std::time::Instant::now() < deadline, "{history:#}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let (code, said) = steadfast(&client, &["goal", "status"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("several live sessions"), "{said}");
    first.exit();
    second.exit();
    for goal in &goals {
        let unit = if goal["objective"] == "ALPHA" { 100 } else { 1 };
        let tokens = goal["total_tokens"].as_i64().expect("tokens");
        let session = goal["session_id"].as_str();
        let handed: u64 = model
            .handed_out()
            .iter()
            .filter(|h| h.kind == Kind::Main && h.session_id.as_deref() == session)
            .map(|h| h.usage.total())
            .sum();
        assert!(tokens % unit == 0 && tokens == handed.cast_signed(), "{goal:#} {handed}");
    }
    model.check_script();
}

#[test]
fn a_fork_is_offered_the_goal_and_copied_responses_are_not_counted() {
    let model = ScriptedModel::start(busy);
    let client = client(&model);
    let first = client
        .print(&[&["--output-format", "json"], TOOLS].concat(), "/steadfast:goal-start \"Fork me\" --max-turns 1");
    let before = goal(&client);
    let fork = client.print(
        &[&["--output-format", "json", "--resume", &first.session_id(), "--fork-session"], TOOLS].concat(),
        "In the fork.",
    );
    assert_ne!(fork.session_id(), first.session_id());
    let offered = model.requests().pop().expect("a request").all_text();
    assert!(offered.contains("not to this one") && offered.contains("/goal-adopt"), "{offered}");
    let after = goal(&client);
    assert_eq!((&after["session_id"], &after["tokens_used"]), (&before["session_id"], &before["tokens_used"]));
    model.check_script();
}

#[test]
fn the_client_is_woken_after_the_block_cap() {
    let model = ScriptedModel::start(|request| Reply::text(format!("Just talk {}.", request.seq)));
    let client = client(&model).env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2");
    let home = client.root().join("steadfast");
    std::fs::create_dir_all(&home).expect("home");
    std::fs::write(home.join("config.toml"), "[goal]\nno_progress_limit = 0\n").expect("configuration");
    let tui = Tui::start(&client, &[]);
    tui.submit("/steadfast:goal-start \"Keep talking\"");
    // Two blocks, a wake-up, two blocks, a wake-up: far more turns than the client's cap allows in a row.
    model.wait_for_request("the eighth turn", LIMIT, |r| r.kind == Kind::Main && r.seq >= 8);
    let (code, said) = steadfast(&client, &["goal", "pause"]);
    assert_eq!(code, 0, "{said}");
    tui.exit();
    let kinds = event_kinds(&client);
    assert!(kinds.iter().filter(|kind| *kind == "goal_woken").count() >= 2, "{kinds:?}");
    assert!(!tui_overridden(&model), "the client never had to override a block");
    model.check_script();
}

fn tui_overridden(model: &ScriptedModel) -> bool {
    model.requests().iter().any(|r| r.all_text().contains("consecutive times"))
}

#[test]
fn an_api_error_is_retried_by_waking_the_client() {
    let model = ScriptedModel::start(|request| match request.seq {
        1 => Reply::error(429, "scripted 429"),
        2 => work("toolu_2"),
        n => Reply::text(format!("Recovered {n}.")),
    });
    let client = client(&model);
    let tui = Tui::start(&client, TOOLS);
    tui.submit("/steadfast:goal-start \"Come back\" --max-turns 1");
    model.wait_for_request("the turn after the error", LIMIT, |r| r.kind == Kind::Main && r.seq >= 2);
    tui.wait_for_text("Recovered");
    tui.exit();
    let kinds = event_kinds(&client);
    assert!(kinds.contains(&"turn_failed".to_owned()) && kinds.contains(&"goal_woken".to_owned()), "{kinds:?}");
    model.check_script();
}
