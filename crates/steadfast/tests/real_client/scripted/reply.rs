//! Replies of all scripted models: a reply built step by step, an error in its place, and both over HTTP. The parts of
//! a reply are defined by each model.

use super::{Api, Shared, next_id};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body::Frame;
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// An HTTP error in place of an answer.
#[derive(Clone, Debug)]
struct HttpError {
    status: u16,
    body: Value,
    headers: Vec<(&'static str, String)>,
}

/// One answer of a model. Start with `Reply::text`, `Reply::tool` or [`Reply::error`] and add to it.
#[derive(Clone, Debug)]
pub(crate) struct Reply<A: Api> {
    pub(crate) parts: Vec<A::Part>,
    usage: Option<A::Usage>,
    error: Option<HttpError>,
    delay: Duration,
    is_stalled: bool,
}

impl<A: Api> Default for Reply<A> {
    fn default() -> Self {
        Self { parts: vec![], usage: None, error: None, delay: Duration::ZERO, is_stalled: false }
    }
}

impl<A: Api> Reply<A> {
    /// The client does not try again, so the turn fails at once.
    pub(crate) fn error(status: u16, message: impl Into<String>) -> Self {
        Self::failure(status, A::error_body(status, &message.into()), vec![])
    }

    pub(crate) fn failure(status: u16, body: Value, headers: Vec<(&'static str, String)>) -> Self {
        Self { error: Some(HttpError { status, body, headers }), ..Self::default() }
    }

    pub(crate) fn and(mut self, part: A::Part) -> Self {
        self.parts.push(part);
        self
    }

    pub(crate) fn usage(mut self, usage: A::Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Waits before the first byte is sent.
    pub(crate) fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Streams the first part without its end, and then nothing, until the client gives up. It is not billed.
    pub(crate) fn stalled(mut self) -> Self {
        self.is_stalled = true;
        self
    }
}

/// Answers a request of the client by the script, and records the billed usage.
pub(crate) async fn answer<A: Api>(State(shared): State<Arc<Shared<A>>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(json) = serde_json::from_slice::<Value>(&body) else {
        return respond::<A>(400, JSON, A::error_body(400, "no JSON").to_string());
    };
    let request = shared.record(json, &headers);
    let reply = shared.ask_script(&request).await.unwrap_or_else(|panic| Reply::error(400, panic));
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    if let Some(error) = reply.error {
        let mut response = respond::<A>(error.status, JSON, error.body.to_string());
        for (name, value) in error.headers {
            response.headers_mut().insert(name, HeaderValue::from_str(&value).expect("header"));
        }
        return response;
    }
    let id = next_id(A::ID_PREFIX);
    let usage = reply.usage.unwrap_or(A::USAGE);
    let (content_type, body) = A::body(&request, &reply, &id, usage);
    if reply.is_stalled {
        let begun = body.split("event: content_block_stop").next().unwrap_or_default().to_owned();
        return respond_with::<A>(200, content_type, Body::new(Stalled(Some(begun.into()))));
    }
    shared.hand_out(&request, id, usage);
    respond::<A>(200, content_type, body)
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";

/// A server-sent event under the name of its type.
pub(crate) fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

/// A body whose rest never comes.
struct Stalled(Option<Bytes>);

impl http_body::Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.0.take().map_or(Poll::Pending, |begun| Poll::Ready(Some(Ok(Frame::data(begun)))))
    }
}

/// An HTTP response with an id of its own.
pub(crate) fn respond<A: Api>(status: u16, content_type: &str, body: String) -> Response {
    respond_with::<A>(status, content_type, Body::from(body))
}

fn respond_with<A: Api>(status: u16, content_type: &str, body: Body) -> Response {
    let mut response = Response::builder()
        .status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .header(header::CONTENT_TYPE, content_type)
        .header(A::REQUEST_ID_HEADER, next_id("req"));
    for (name, value) in A::HEADERS {
        response = response.header(*name, *value);
    }
    response.body(body).expect("response")
}
