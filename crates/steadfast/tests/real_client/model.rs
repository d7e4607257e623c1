//! The scripted model of Claude Code: it speaks the Anthropic Messages API.

use crate::reply::{self, Block, Reply, Usage};
use crate::request::{Kind, Request};
use crate::scripted::{self, Api, EVENTS, JSON, Scripted, respond};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::{any, post};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Messages;

pub(crate) type ScriptedModel = Scripted<Messages>;
type Shared = scripted::Shared<Messages>;

impl Api for Messages {
    type Part = Block;
    type Usage = Usage;
    const BASE_PATH: &'static str = "";
    const ID_PREFIX: &'static str = "msg";
    const REQUEST_ID_HEADER: &'static str = "request-id";
    const HEADERS: &'static [(&'static str, &'static str)] = &[("x-should-retry", "false")];
    const USAGE: Usage = Usage::new(11, 7, 5, 3);

    fn routes() -> Router<Arc<Shared>> {
        Router::new()
            .route("/v1/messages", post(scripted::answer::<Self>))
            .route("/v1/messages/count_tokens", post(count_tokens))
            .fallback(any(other))
    }

    fn body(request: &Request, reply: &Reply, id: &str, usage: Usage) -> (&'static str, String) {
        let model = request.json["model"].as_str().unwrap_or("claude-scripted");
        let message = reply.message(id, model, usage);
        if request.json["stream"] == true { (EVENTS, Reply::events(&message)) } else { (JSON, message.to_string()) }
    }

    fn error_body(status: u16, message: &str) -> Value {
        reply::error_body(status, message)
    }

    fn session_id(request: &Request) -> Option<String> {
        request.session_id()
    }

    fn kind(request: &Request) -> Kind {
        if request.is_side_call() {
            Kind::Side
        } else if request.is_subagent("") {
            Kind::Subagent
        } else {
            Kind::Main
        }
    }

    fn side_reply(request: &Request) -> Option<Reply> {
        request.side_reply()
    }

    fn summary(request: &Request) -> String {
        request.summary()
    }
}

/// A rough count is enough: the client only sizes its context with it.
async fn count_tokens(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    shared.note_other_call("POST /v1/messages/count_tokens");
    respond::<Messages>(200, JSON, json!({"input_tokens": body.len() / 4}).to_string())
}

async fn other(State(shared): State<Arc<Shared>>, method: Method, uri: Uri) -> Response {
    shared.note_other_call(format!("{method} {}", uri.path()));
    // The client probes the root with HEAD and accepts any 200.
    let status = if uri.path() == "/" { 200 } else { 404 };
    respond::<Messages>(status, JSON, "{}".into())
}
