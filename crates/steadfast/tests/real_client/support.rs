//! Tests of the test support itself: the model's answers without a client, and
//! the guards around the real client.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use crate::tui::Tui;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Status and body of a POST, by hand: no HTTP client is needed elsewhere.
fn post(model: &ScriptedModel, path: &str, body: &Value) -> (u16, String) {
    let address = model.base_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).expect("connect");
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}", body.len());
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).expect("send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    (head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("status"), body.to_owned())
}

#[test]
fn scripted_model_answers_whole_and_streamed() {
    let model = ScriptedModel::start(|request| match request.last_user_text().as_str() {
        "fail" => Reply::error(529, "too busy"),
        "panic" => panic!("as asked"),
        _ => Reply::tool("Bash", json!({"command": "true"})).and_text("Yes.").usage(Usage::new(1, 2, 3, 4)),
    });
    let ask = |text: &str, stream: bool| {
        let tools = json!([{"name": "mcp__plugin_x_y__update_goal"}]);
        let messages = json!([{"role": "user", "content": text}]);
        json!({"model": "m", "stream": stream, "tools": tools, "messages": messages})
    };

    let (status, whole) = post(&model, "/v1/messages?beta=true", &ask("hi", false));
    let whole: Value = serde_json::from_str(&whole).expect("JSON");
    assert_eq!((status, &whole["stop_reason"]), (200, &json!("tool_use")));
    assert_eq!(Usage::from_json(&whole["usage"]), Usage::new(1, 2, 3, 4));

    let (status, events) = post(&model, "/v1/messages", &ask("hi", true));
    assert_eq!(status, 200);
    for name in ["message_start", "content_block_delta", "message_delta", "message_stop"] {
        assert!(events.contains(&format!("event: {name}\n")), "{events}");
    }

    assert_eq!(post(&model, "/v1/messages", &ask("fail", true)).0, 529);
    assert_eq!(post(&model, "/v1/messages", &ask("panic", true)).0, 400);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.check_script())).is_err());
    assert_eq!(post(&model, "/v1/messages/count_tokens", &ask("hi", false)).0, 200);
    assert_eq!(post(&model, "/api/anything", &json!({})).0, 404);
    assert_eq!(model.other_calls(), ["POST /v1/messages/count_tokens", "POST /api/anything"]);

    let without_tools = json!({"model": "m", "messages": [{"role": "user", "content": "title?"}]});
    assert_eq!(post(&model, "/v1/messages", &without_tools).0, 200);
    assert_eq!(model.handed_out_of(Kind::Main).total(), 20);
    assert_eq!(model.requests_of(Kind::Side).len(), 1);
    assert_eq!(model.ledger().len(), 2);
    let tool = model.requests()[0].tool_named("update_goal");
    assert_eq!(tool.as_deref(), Some("mcp__plugin_x_y__update_goal"));
}

#[test]
#[should_panic(expected = "did not end in 3s")]
fn print_is_killed_after_its_limit() {
    let model = ScriptedModel::start(|_| Reply::text("Too late.").delay(Duration::from_mins(1)));
    let client = Client::new(&model).limit(Duration::from_secs(3));
    client.print(&[], "Hang.");
}

/// The chosen directory is first on the PATH of what the client starts, and
/// only chosen variables are there.
#[test]
fn environment_is_private() {
    let model = ScriptedModel::start(|request| match request.tool_result("toolu_env") {
        Some(result) => Reply::text(result),
        None => Reply::default().and_tool_with_id(
            "toolu_env",
            "Bash",
            json!({"command": "steadfast; echo $LAB_WORD ${CARGO_MANIFEST_DIR-cleared}", "description": "Look"}),
        ),
    });
    let client = Client::new(&model).env("LAB_WORD", "word");
    let bin = client.root().join("bin");
    fs::create_dir(&bin).expect("bin directory");
    fs::write(bin.join("steadfast"), "#!/bin/sh\necho found\n").expect("program");
    fs::set_permissions(bin.join("steadfast"), fs::Permissions::from_mode(0o755)).expect("mode");
    let client = client.bin_dir(&bin);

    let output = client.print(&["--allowedTools", "Bash"], "Look around.");

    assert_eq!(output.stdout.trim(), "found\nword cleared", "stderr: {}", output.stderr);
}

/// A request given up with Esc is not billed: the ledger counts a reply only
/// when it is sent. What the turn cost before stays counted.
#[test]
fn escape_cancels_a_request() {
    let model = ScriptedModel::start(|request| {
        if request.has_tool_result("toolu_true") {
            Reply::text("Too late.").delay(Duration::from_mins(10))
        } else {
            Reply::default().and_tool_with_id("toolu_true", "Bash", json!({"command": "true"}))
        }
    });
    let client = Client::new(&model);
    let limit = Duration::from_mins(1);

    let tui = Tui::start(&client, &["--allowedTools", "Bash"]);
    tui.submit("Do it");
    model.wait_for_request("the second step", limit, |r| r.has_tool_result("toolu_true"));
    tui.wait_for_text("esc to interrupt");
    tui.escape();
    tui.wait_for_text("Interrupted");
    tui.exit();

    assert_eq!(model.requests_of(Kind::Main).len(), 2);
    assert_eq!(model.ledger().len(), 1);
    assert_eq!(client.usage(), model.ledger());
}
