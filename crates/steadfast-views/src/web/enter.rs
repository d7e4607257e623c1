//! The first visit: a one-time link becomes a cookie.

use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::answer::{self, PostedForm};
use super::guard::{RequestGuard, RequestRefusal};

/// A browser sends a strict cookie only when a page of ours leads to the next one, so this page goes on by itself.
const WELCOME: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\">\
<meta http-equiv=\"refresh\" content=\"0;url=/\">\n<title>Steadfast</title>\n<p><a href=\"/\">Go on</a></p>\n</html>\n";

/// Exchanges the key for a cookie. Only looking at the link does not use it up.
pub(super) fn enter(guard: &RequestGuard, key: &str, only_head: bool, form: PostedForm) -> Response {
    if only_head {
        return answer::html(200, String::new());
    }
    let cookie = guard.enter(key).and_then(|cookie| HeaderValue::from_str(&cookie).ok());
    let Some(cookie) = cookie else { return answer::refused(RequestRefusal::Key, form) };
    let mut response = answer::html(200, WELCOME.to_owned());
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}
