//! What Steadfast adds to every request of a session that has no goal.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::request::{Kind, Request};
use crate::with_steadfast::{client, work};

/// Tools, the skill and the evaluator. It was 8,600 characters once.
const MOST: usize = 4_300;

/// The second request of a turn: the tool server may start after the first one.
fn second_request(client: impl FnOnce(&ScriptedModel) -> Client) -> Request {
    let model = ScriptedModel::start(|request| match request.seq {
        1 => work("toolu_1"),
        _ => Reply::text("Done."),
    });
    client(&model).print(&["--allowedTools", "Bash"], "Hello");
    model.check_script();
    model.requests_of(Kind::Main).pop().expect("a request")
}

#[test]
fn a_session_without_a_goal_pays_little() {
    let (bare, with) = (second_request(Client::new), second_request(client));
    assert!(with.tool_named("get_goal").is_some(), "{}", with.summary());
    let size = |value: &serde_json::Value| value.to_string().chars().count();
    let added = size(&with.json).saturating_sub(size(&bare.json));
    let tools = size(&with.json["tools"]).saturating_sub(size(&bare.json["tools"]));
    assert!(added <= MOST, "{added} characters, {tools} of them in tools");
}
