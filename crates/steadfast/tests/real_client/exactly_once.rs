//! A goal that the user stated in a prompt, with the real Claude Code: after a compaction, a resume, both and in a
//! fork, each request has its text exactly once; after `/clear` it is offered; elsewhere it is absent.

use crate::client::Client;
use crate::memory::{begin, compact, occurrences, resume, talking};
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use crate::tui::Tui;
use crate::with_steadfast::{client, steadfast_json, work};
use serde_json::json;
use std::time::Duration;

const GOAL: &str = "Keep <the lighthouse> & \"its lamp\" burning";
/// A word that occurs only in the goal, however it is escaped, cut or quoted.
const WORD: &str = "lighthouse";
const LIMIT: Duration = Duration::from_mins(1);

/// How often each request of the conversation has the goal, whole and in any form.
fn readings(model: &ScriptedModel) -> Vec<(usize, usize)> {
    let requests = model.requests_of(Kind::Main);
    requests.iter().map(|request| (occurrences(request, GOAL), occurrences(request, WORD))).collect()
}

/// Asserts that there were this many requests since then, each with the goal once.
fn assert_read_once(model: &ScriptedModel, since: usize, requests: usize, when: &str) {
    assert_eq!(readings(model)[since..], vec![(1, 1); requests], "{when}");
}

fn asked(model: &ScriptedModel) -> usize {
    model.requests_of(Kind::Main).len()
}

fn state_goal(client: &Client) -> String {
    begin(client, &format!("goal: {GOAL}"))
}

#[test]
fn a_stated_goal_is_read_once_in_every_process_that_resumes_the_session() {
    let model = talking();
    let client = client(&model);
    let session = state_goal(&client);
    assert_read_once(&model, 0, 1, "at first");
    for (step, prompt) in [
        ("resumed", "Second."),
        ("resumed twice", "Third."),
        ("compact", ""),
        ("compacted, then resumed", "Fourth."),
        ("compacted, then resumed twice", "Fifth."),
        ("compact", ""),
        ("compacted twice, then resumed", "Sixth."),
    ] {
        let before = asked(&model);
        if prompt.is_empty() {
            compact(&client, &session);
            assert_eq!(asked(&model), before, "a compaction is no turn");
        } else {
            resume(&client, &session, prompt);
            assert_read_once(&model, before, 1, step);
        }
    }
    let shown = steadfast_json(&client, &["session", "show", &session, "--json"]);
    assert_eq!((&shown["stated_goal"]["objective"], &shown["compactions"]), (&json!(GOAL), &json!(2)), "{shown:#}");
}

#[test]
fn a_stated_goal_is_read_once_after_compactions_in_mid_turn() {
    let model = ScriptedModel::start(|request| match request.seq {
        n @ (1 | 2 | 4) => work(&format!("toolu_{n}")).usage(Usage::new(190_000, 10, 0, 0)),
        n => Reply::text(format!("Answer {n}.")),
    });
    let client = client(&model).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let session = state_goal(&client);
    let summaries = || model.requests().iter().filter(|request| request.is_compaction()).count();
    assert_eq!(summaries(), 1);
    assert_read_once(&model, 0, 3, "compacted in its first turn");
    resume(&client, &session, "Second.");
    assert_eq!(summaries(), 2);
    assert_read_once(&model, 3, 2, "resumed, and compacted again in mid-turn");
    resume(&client, &session, "Third.");
    assert_read_once(&model, 5, 1, "resumed after that");
}

#[test]
fn a_stated_goal_is_read_once_in_the_terminal_and_after_it() {
    let model = talking();
    let client = client(&model);
    let tui = Tui::start(&client, &[]);
    let mut answers = 0;
    let mut prompt = |text: &str| {
        tui.submit(text);
        answers += 1;
        tui.wait_for_answer(&format!("Answer {answers}."));
    };
    // The screens of both compactions look the same.
    let compact = |times: usize| {
        tui.submit("/compact");
        tui.wait_for("the compaction", LIMIT, |screen| {
            let session = client.session_ids().pop().expect("a session");
            let shown = steadfast_json(&client, &["session", "show", &session, "--json"]);
            shown["compactions"] == times && screen.contains("Compacted (ctrl+o")
        });
    };
    prompt(&format!("goal: {GOAL}"));
    prompt("Second.");
    compact(1);
    prompt("Third.");
    prompt("Fourth.");
    compact(2);
    prompt("Fifth.");
    tui.exit();
    assert_read_once(&model, 0, 5, "in one process");
    let session = client.session_ids().pop().expect("a session");
    let tui = Tui::start(&client, &["--resume", &session]);
    tui.submit("Sixth.");
    tui.wait_for_answer("Answer 6.");
    tui.submit("/compact");
    tui.wait_for_text("Compacted (ctrl+o");
    tui.submit("Seventh.");
    tui.wait_for_answer("Answer 7.");
    tui.exit();
    assert_read_once(&model, 5, 2, "resumed and compacted in another");
    resume(&client, &session, "Eighth.");
    assert_read_once(&model, 7, 1, "resumed outside of the terminal");
}

#[test]
fn after_clear_the_goal_is_offered_once_and_nothing_drives() {
    let model = talking();
    let client = client(&model);
    let tui = Tui::start(&client, &[]);
    tui.submit(&format!("goal: {GOAL}"));
    tui.wait_for_answer("Answer 1.");
    tui.submit("/clear");
    tui.wait_for("an empty conversation", LIMIT, |screen| !screen.contains("Answer 1."));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(asked(&model), 1, "no further request");
    tui.submit("What now?");
    tui.wait_for_answer("Answer 2.");
    std::thread::sleep(Duration::from_secs(1));
    tui.exit();
    assert_read_once(&model, 1, 1, "offered");
    let offer = model.requests_of(Kind::Main).pop().expect("a request").all_text();
    assert!(offer.contains("an offer, not an order") && offer.contains("Do not work on it unless asked."), "{offer}");
    assert!(!offer.contains("Work toward it"), "{offer}");
}

#[test]
fn a_fork_keeps_its_memory_by_lineage() {
    let model = talking();
    let client = client(&model);
    let session = state_goal(&client);
    resume(&client, &session, "Trim the wick.");
    let fork = client.print(&["--output-format", "json", "--resume", &session, "--fork-session"], "Fork.").session_id();
    assert_ne!(fork, session);
    assert_read_once(&model, 2, 1, "forked");
    compact(&client, &fork);
    resume(&client, &fork, "Second.");
    assert_read_once(&model, 3, 1, "forked, compacted and resumed");
    let told = model.requests_of(Kind::Main).pop().expect("a request").all_text();
    let remembered = "<message>Trim the wick.</message>\n<message>Fork.</message>";
    assert!(told.contains("<session_goal>") && told.contains(remembered), "{told}");
    // Later events of the parent are not inherited.
    resume(&client, &session, "goal: Paint the tower");
    resume(&client, &fork, "Third.");
    assert_read_once(&model, 5, 1, "the fork after its parent went on");
    let shown =
        |id: &str| steadfast_json(&client, &["session", "show", id, "--json"])["stated_goal"]["objective"].clone();
    assert_eq!([shown(&session), shown(&fork)], ["Paint the tower", GOAL]);
}

#[test]
fn an_unrelated_session_of_the_project_gets_nothing() {
    let model = talking();
    let client = client(&model);
    let session = state_goal(&client);
    let other = begin(&client, "Hello.");
    assert_ne!(other, session);
    resume(&client, &other, "Hello again.");
    compact(&client, &other);
    resume(&client, &other, "And again.");
    assert_eq!(readings(&model)[1..], [(0, 0); 3]);
    let told = model.requests_of(Kind::Main)[1].all_text();
    assert!(!told.contains("session_resume"), "{told}");
}
