//! Answers: their kinds, and the headers that every one of them has.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use super::guard::RequestRefusal;

/// Scripts, styles and requests only from and to this server, no inline code, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// `no-referrer` would make browsers send `Origin: null` with our own forms.
const REFERRER: &str = "same-origin";
const PROBLEM: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Steadfast</title>\n\
<h1>{{ message }}</h1>\n<p>{{ hint }}</p>\n</html>\n";

/// The form in which the caller wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostedForm {
    Html,
    Json,
}

impl PostedForm {
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let is_json = accept.contains("application/json") && !accept.contains("text/html");
        if is_json { Self::Json } else { Self::Html }
    }
}

fn answer(status: u16, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, header::CONTENT_TYPE, kind);
    response
}

pub(crate) fn html(status: u16, html: String) -> Response {
    answer(status, "text/html; charset=utf-8", html)
}

pub(crate) fn json(status: u16, json: String) -> Response {
    answer(status, "application/json", json)
}

pub(crate) fn text(status: u16, text: String) -> Response {
    answer(status, "text/plain; charset=utf-8", text)
}

pub(crate) fn metrics(text: String) -> Response {
    answer(200, "text/plain; version=0.0.4; charset=utf-8", text)
}

pub(crate) fn bytes(kind: &'static str, bytes: &'static [u8]) -> Response {
    answer(200, kind, bytes)
}

pub(crate) fn stream(body: Body) -> Response {
    answer(200, "text/event-stream", body)
}

pub(crate) fn see_other(place: HeaderValue) -> Response {
    let mut response = answer(303, "text/plain; charset=utf-8", Body::empty());
    response.headers_mut().insert(header::LOCATION, place);
    response
}

/// What is wrong and what to do.
pub(crate) fn problem(status: u16, message: &str, hint: &str, form: PostedForm) -> Response {
    if form == PostedForm::Json {
        return json(status, json!({"ok": false, "message": message, "hint": hint}).to_string());
    }
    let context = minijinja::context!(message, hint);
    // The name makes the text of the fields inert.
    let page = minijinja::Environment::new().render_named_str("problem.html", PROBLEM, context);
    html(status, page.unwrap_or_default())
}

pub(crate) fn refused(refusal: RequestRefusal, form: PostedForm) -> Response {
    problem(403, &refusal.to_string(), refusal.hint(), form)
}

/// Closes the connection after the answer.
pub(crate) fn closing(mut response: Response) -> Response {
    set(&mut response, header::CONNECTION, "close");
    response
}

pub(crate) fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// Adds what every answer has; an answer that may be kept says so before.
pub(crate) fn secure(response: &mut Response) {
    set(response, header::CONTENT_SECURITY_POLICY, POLICY);
    set(response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(response, header::REFERRER_POLICY, REFERRER);
    set(response, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(response, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        set(response, header::CACHE_CONTROL, "no-store");
    }
}
