//! The scripted model of Claude Code: it speaks the Anthropic Messages API.

use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use crate::scripted::{self, Api, Scripted, next_id};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::Response;
use axum::routing::{any, post};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Messages;

pub(crate) type ScriptedModel = Scripted<Messages>;
type Shared = scripted::Shared<Messages>;

impl Api for Messages {
    type Reply = Reply;
    type Usage = Usage;
    const BASE_PATH: &'static str = "";

    fn routes() -> Router<Arc<Shared>> {
        Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/messages/count_tokens", post(count_tokens))
            .fallback(any(other))
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

fn respond(status: u16, content_type: &str, body: String) -> Response {
    let mut response = scripted::respond(status, content_type, "request-id", body);
    response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(json) = serde_json::from_slice::<Value>(&body) else {
        return respond(400, "application/json", json!({"type": "error"}).to_string());
    };
    let request = shared.record(json, &headers);
    let reply = shared.ask_script(&request).await.unwrap_or_else(|panic| Reply::error(400, panic));
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    if let Some(error) = &reply.error {
        let response = respond(error.status, "application/json", error.body().to_string());
        return scripted::with_headers(response, &error.headers);
    }
    let id = next_id("msg");
    let usage = reply.usage.unwrap_or(Usage::new(11, 7, 5, 3));
    let model = request.json["model"].as_str().unwrap_or("claude-scripted");
    let message = reply.message(&id, model, usage);
    shared.hand_out(&request, id, usage, request.session_id());
    if request.json["stream"] == true {
        respond(200, "text/event-stream", Reply::events(&message))
    } else {
        respond(200, "application/json", message.to_string())
    }
}

/// A rough count is enough: the client only sizes its context with it.
async fn count_tokens(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    shared.note_other_call("POST /v1/messages/count_tokens");
    respond(200, "application/json", json!({"input_tokens": body.len() / 4}).to_string())
}

async fn other(State(shared): State<Arc<Shared>>, method: Method, uri: Uri) -> Response {
    shared.note_other_call(format!("{method} {}", uri.path()));
    // The client probes the root with HEAD and takes any 200 as a sign of life.
    let status = if uri.path() == "/" { 200 } else { 404 };
    respond(status, "application/json", "{}".into())
}
