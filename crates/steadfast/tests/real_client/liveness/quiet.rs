//! What a loop costs the user's screen and the model's context.

use super::lab::Lab;
use crate::reply::Reply;
use crate::request::{Kind, Request};
use serde_json::Value;
use std::time::Duration;

const CONTINUATIONS: usize = 50;

/// Characters of everything the conversation holds that the model did not write itself.
fn given(request: &Request) -> usize {
    let messages = request.json["messages"].as_array().expect("messages");
    let others = messages.iter().filter(|message| message["role"] != "assistant");
    let texts = |content: &Value| match content {
        Value::String(text) => text.chars().count(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).map(|text| text.chars().count()).sum()
        }
    };
    others.map(|message| texts(&message["content"])).sum()
}

/// The lines of the pane between the first and the last continuation that are not the agent's own, without blank ones.
fn other_lines(history: &str) -> Vec<&str> {
    let lines: Vec<&str> = history.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_own = |line: &&str| line.contains("Talk ");
    let first = lines.iter().position(is_own).expect("the first turn");
    let last = lines.iter().rposition(is_own).expect("the last turn");
    lines[first..=last].iter().filter(|line| !is_own(line)).copied().collect()
}

#[test]
fn fifty_continuations_cost_two_lines_each_at_most() {
    let lab =
        Lab::new(|request| Reply::text(format!("Talk {}.", request.seq))).configured("[goal]\nno_progress_limit = 0\n");
    let tui = lab.start("\"Talk and talk\"");
    let limit = Duration::from_mins(5);
    lab.model.wait_for_request("fifty continuations", limit, |request| request.seq > CONTINUATIONS);
    tui.wait_for_text(&format!("Talk {}", CONTINUATIONS + 1));
    lab.terminal(&["pause"]);
    tui.wait_for_prompt();

    let history = tui.history();
    let others = other_lines(&history);
    let shown = history.lines().filter(|line| line.contains("Talk ")).count() - 1;
    assert!(others.len() <= 2 * shown, "{} lines for {shown} continuations:\n{}", others.len(), others.join("\n"));
    for words in ["Stop hook error", "hook error occurred"] {
        assert!(!history.contains(words), "{words}:\n{history}");
    }
    let requests = lab.model.requests_of(Kind::Main);
    let (first, last) = (&requests[0], &requests[CONTINUATIONS]);
    let each = (given(last) - given(first)) / CONTINUATIONS;
    #[expect(clippy::print_stdout, reason = "a measurement for the page of benchmarks")]
    {
        println!("{CONTINUATIONS} continuations: {} lines, {each} characters each", others.len());
    }
    assert!(each < 700, "{each} characters per continuation");
    lab.model.check_script();
}
