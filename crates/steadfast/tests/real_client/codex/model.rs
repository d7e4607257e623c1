//! The scripted model of Codex: it speaks `OpenAI`'s Responses API.

use super::reply::{Reply, Usage};
use super::request::{Kind, Request};
use crate::scripted::{self, Api, Scripted, next_id};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Responses;

pub(crate) type ScriptedResponses = Scripted<Responses>;
type Shared = scripted::Shared<Responses>;

impl Api for Responses {
    type Reply = Reply;
    type Usage = Usage;
    const BASE_PATH: &'static str = "/v1";

    fn routes() -> Router<Arc<Shared>> {
        Router::new().route("/v1/responses", post(responses)).route("/v1/models", get(models)).fallback(any(other))
    }

    fn kind(request: &Request) -> Kind {
        let metadata = request.turn_metadata();
        match (metadata["request_kind"].as_str(), metadata["thread_source"].as_str()) {
            (Some("compaction"), _) => Kind::Compaction,
            (Some("turn"), Some("user")) => Kind::Main,
            (Some("turn"), Some("subagent")) => Kind::Subagent,
            _ => Kind::Side,
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
    scripted::respond(status, content_type, "x-request-id", body)
}

async fn responses(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(json) = serde_json::from_slice::<Value>(&body) else {
        return respond(400, "application/json", json!({"error": {"message": "no JSON"}}).to_string());
    };
    let request = shared.record(json, &headers);
    let reply = shared.ask_script(&request).await.unwrap_or_else(|panic| Reply::error(400, panic));
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    if let Some(error) = &reply.error {
        let response = respond(error.status, "application/json", error.body.to_string());
        return scripted::with_headers(response, &error.headers);
    }
    let id = next_id("resp");
    let usage = reply.usage.unwrap_or(Usage::new(11, 3, 7, 2));
    let model = request.json["model"].as_str().unwrap_or("scripted");
    let events = reply.events(&id, model, usage);
    shared.hand_out(&request, id, usage, request.thread_id());
    respond(200, "text/event-stream", events)
}

/// None: the client then takes its fallback for an unknown model, with plain function tools.
async fn models(State(shared): State<Arc<Shared>>) -> Response {
    shared.note_other_call("GET /v1/models");
    respond(200, "application/json", json!({"models": []}).to_string())
}

async fn other(State(shared): State<Arc<Shared>>, method: Method, uri: Uri) -> Response {
    shared.note_other_call(format!("{method} {}", uri.path()));
    respond(404, "application/json", "{}".into())
}
