//! The scripted model of Codex: it speaks `OpenAI`'s Responses API.

use super::reply::{self, Item, Reply, Usage};
use super::request::{Kind, Request};
use crate::scripted::{self, Api, EVENTS, JSON, Scripted, respond};
use axum::Router;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Responses;

pub(crate) type ScriptedResponses = Scripted<Responses>;
type Shared = scripted::Shared<Responses>;

impl Api for Responses {
    type Part = Item;
    type Usage = Usage;
    const BASE_PATH: &'static str = "/v1";
    const ID_PREFIX: &'static str = "resp";
    const REQUEST_ID_HEADER: &'static str = "x-request-id";
    const USAGE: Usage = Usage::new(11, 3, 7, 2);

    fn routes() -> Router<Arc<Shared>> {
        Router::new()
            .route("/v1/responses", post(scripted::answer::<Self>))
            .route("/v1/models", get(models))
            .fallback(any(other))
    }

    fn body(request: &Request, reply: &Reply, id: &str, usage: Usage) -> (&'static str, String) {
        let model = request.json["model"].as_str().unwrap_or("scripted");
        (EVENTS, reply.events(id, model, usage))
    }

    fn error_body(status: u16, message: &str) -> Value {
        reply::error_body(status, message)
    }

    fn session_id(request: &Request) -> Option<String> {
        request.thread_id()
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

/// None: the client then uses its fallback for an unknown model, with plain function tools.
async fn models(State(shared): State<Arc<Shared>>) -> Response {
    shared.note_other_call("GET /v1/models");
    respond::<Responses>(200, JSON, json!({"models": []}).to_string())
}

async fn other(State(shared): State<Arc<Shared>>, method: Method, uri: Uri) -> Response {
    shared.note_other_call(format!("{method} {}", uri.path()));
    respond::<Responses>(404, JSON, "{}".into())
}
