//! What Claude Code sends to the model after a compaction, a resume and both: prompts and hook context.
//! `holds_text` must never claim more than the next request contains.

use crate::client::Client;
use crate::lab_plugin::LabPlugin;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use crate::tui::Tui;
use crate::with_steadfast::work;
use std::path::Path;
use steadfast_hosts::{Since, holds_text};
use steadfast_model::host::Host;

const GOAL: &str = "Keep <this> & \"that\", word for word";

/// Hooks that inject their own goal each time (`START 1`, `PROMPT 1`...), and one that continues the first turn.
const STATING: &str = r#"
say() { printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"<objective>\\n%s %s\\n</objective>"}}' "$event" "$1" "$count"; }
case "$event" in
  SessionStart) say START;;
  UserPromptSubmit) case "$input" in *FORBIDDEN*) echo '{"decision":"block","reason":"No."}';; *) say PROMPT;; esac;;
  Stop) [ "$count" = 1 ] && printf '%s' '{"decision":"block","reason":"<objective>\nSTOP 1\n</objective>"}';;
esac
exit 0"#;

pub(crate) fn talking() -> ScriptedModel {
    ScriptedModel::start(|request| Reply::text(format!("Answer {}.", request.seq)))
}

fn stating(client: Client) -> Client {
    let lab = LabPlugin::write(&client, STATING);
    client.plugin_dir(&lab.dir)
}

/// The first prompt of a session, and its id.
pub(crate) fn begin(client: &Client, prompt: &str) -> String {
    client.print(&["--output-format", "json", "--allowedTools", "Bash"], prompt).session_id()
}

/// Another process resumes the session.
pub(crate) fn resume(client: &Client, session: &str, prompt: &str) {
    client.print(&["--resume", session, "--allowedTools", "Bash"], prompt);
}

/// Another process resumes the session and compacts it.
pub(crate) fn compact(client: &Client, session: &str) {
    resume(client, session, "/compact");
    let boundary = |record: &serde_json::Value| record["subtype"] == "compact_boundary";
    assert!(crate::transcript::records(&client.transcript(session)).iter().any(boundary), "nothing was compacted");
}

/// How many times the model reads a text in a request, raw or escaped.
pub(crate) fn occurrences(request: &Request, text: &str) -> usize {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let all = request.all_text();
    let plain = all.matches(text).count();
    if escaped == text { plain } else { plain + all.matches(&escaped).count() }
}

/// The same for the last request of the conversation.
pub(crate) fn in_last_request(model: &ScriptedModel, text: &str) -> usize {
    let requests = model.requests_of(Kind::Main);
    occurrences(requests.last().expect("a request"), text)
}

fn held(transcript: &Path, objective: &str) -> bool {
    holds_text(Host::Claude, transcript, objective, Since::Resume)
}

/// Which of the statements the file contains, and how many times the resumed model reads them.
fn resumed(client: &Client, model: &ScriptedModel, session: &str, statements: &[&str]) -> Vec<(bool, usize)> {
    let held: Vec<bool> = statements.iter().map(|text| held(&client.transcript(session), text)).collect();
    resume(client, session, "Go on.");
    held.into_iter().zip(statements).map(|(held, text)| (held, in_last_request(model, text))).collect()
}

#[test]
fn a_resumed_session_sends_its_prompts_and_hook_context() {
    let model = talking();
    let client = stating(Client::new(&model));
    let session = begin(&client, &format!("goal: {GOAL}"));
    resume(&client, &session, "goal: FORBIDDEN");
    // The reason of a Stop hook is sent twice: as a message, and as the error that it counts for.
    let statements = [GOAL, "START 1", "PROMPT 1", "STOP 1", "FORBIDDEN", "START 2"];
    let wanted = [(true, 1), (true, 1), (true, 1), (true, 2), (false, 0), (true, 1)];
    assert_eq!(resumed(&client, &model, &session, &statements), wanted);

    let fork = client.print(&["--output-format", "json", "--resume", &session, "--fork-session"], "Fork.").session_id();
    assert_ne!(fork, session);
    assert_eq!(statements.map(|text| in_last_request(&model, text)), [1, 1, 1, 2, 0, 1]);
    assert!(held(&client.transcript(&fork), GOAL) && held(&client.transcript(&fork), "PROMPT 1"));
}

#[test]
fn a_compacted_session_sends_only_what_followed() {
    let model = talking();
    let client = stating(Client::new(&model));
    let session = begin(&client, &format!("goal: {GOAL}"));
    resume(&client, &session, "Second.");
    // The third start is of the process that compacts; its earlier context is kept, so the injection repeats it.
    compact(&client, &session);
    let statements = [GOAL, "START 1", "PROMPT 1", "STOP 1", "PROMPT 2", "START 3", "START 4"];
    let wanted = [(false, 0), (false, 0), (false, 0), (false, 0), (false, 0), (false, 1), (true, 1)];
    assert_eq!(resumed(&client, &model, &session, &statements), wanted);
    assert_eq!(resumed(&client, &model, &session, &["START 4", "START 5", "PROMPT 3"]), [(true, 1); 3]);
}

#[test]
fn a_compaction_in_mid_turn_loses_the_prompt_and_keeps_the_injected_context() {
    let model = ScriptedModel::start(|request| match request.seq {
        n @ 1..=2 => work(&format!("toolu_{n}")).usage(Usage::new(190_000, 10, 0, 0)),
        n => Reply::text(format!("Answer {n}.")),
    });
    let client = stating(Client::new(&model).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    let session = begin(&client, &format!("goal: {GOAL}"));
    let third = model.requests().into_iter().find(|request| request.seq == 3).expect("a third request");
    assert!(third.all_text().contains("SCRIPTED SUMMARY"), "{}", third.summary());
    assert_eq!([GOAL, "START 1", "PROMPT 1", "START 2"].map(|text| occurrences(&third, text)), [0, 0, 0, 1]);
    assert_eq!(resumed(&client, &model, &session, &[GOAL, "START 2"]), [(false, 0), (true, 1)]);
}

#[test]
fn a_compaction_in_the_terminal_behaves_the_same() {
    let model = talking();
    let client = stating(Client::new(&model));
    let tui = Tui::start(&client, &[]);
    tui.submit("goal: Keep this");
    tui.wait_for_answer("Answer 2.");
    tui.submit("Second.");
    tui.wait_for_answer("Answer 3.");
    tui.submit("/compact");
    tui.wait_for_text("Compacted (ctrl+o");
    tui.submit("Third.");
    tui.wait_for_answer("Answer 4.");
    tui.exit();
    let statements = ["Keep this", "START 1", "START 2", "PROMPT 3"];
    assert_eq!(statements.map(|text| in_last_request(&model, text)), [0, 0, 1, 1]);
    let session = client.session_ids().pop().expect("a session");
    assert_eq!(resumed(&client, &model, &session, &statements), [(false, 0), (false, 0), (true, 1), (true, 1)]);
}
