//! The files that pages use, part of the program.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use steadfast_model::text;

use super::answer;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
/// Name, type and content.
const ASSETS: [(&str, &str, &[u8]); 5] = [
    ("chart.css", STYLE, crate::chart::CSS.as_bytes()),
    ("icon.svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")),
    ("idiomorph.js", SCRIPT, include_bytes!("../../assets/idiomorph.js")),
    ("live.js", SCRIPT, include_bytes!("../../assets/live.js")),
    ("style.css", STYLE, include_bytes!("../../assets/style.css")),
];

/// A file by its name. The browser keeps it, and asks whether it has changed.
pub(crate) fn asset(name: &str, headers: &HeaderMap) -> Option<Response> {
    let (_, kind, content) = ASSETS.into_iter().find(|(known, _, _)| *known == name)?;
    let tag = format!("\"{}\"", text::hex(&Sha256::digest(content)));
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = answer::bytes(kind, if is_known { b"" } else { content });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    answer::set(&mut response, header::CACHE_CONTROL, "no-cache");
    Some(response)
}
