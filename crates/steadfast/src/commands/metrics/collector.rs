//! The address of an OpenTelemetry collector, and requests to it. Neither the address beyond the host nor the headers are
//! ever printed.

use std::time::Duration;

use serde_json::Value;
use steadfast_model::text;
use ureq::http::uri::Scheme;
use ureq::http::{HeaderName, HeaderValue, StatusCode, Uri};

use crate::error::{CliError, code};
use crate::http_client;

const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const LONGEST_ANSWER: u64 = 64 * 1024;

pub(super) struct Collector {
    agent: ureq::Agent,
    base: String,
    /// What people see of the address.
    pub(super) shown: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CollectorError {
    #[error("cannot reach the collector at {shown}: {cause}")]
    Unreachable { shown: String, cause: String },
    #[error("the collector at {shown} answered {status} to {path}")]
    Refused { shown: String, path: &'static str, status: StatusCode },
}

impl CollectorError {
    /// Whether the same request may succeed later.
    pub(super) fn can_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error()
                    || matches!(*status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
            }
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "check the address, and that a collector listens there for OTLP over HTTP (port 4318)"
            }
            Self::Refused { status, .. } => match *status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    "pass what the collector asks for, such as --header 'Authorization=Bearer TOKEN'"
                }
                StatusCode::NOT_FOUND => "pass the address without /v1/metrics; that is added",
                StatusCode::UNSUPPORTED_MEDIA_TYPE => "use a receiver that accepts OTLP with JSON encoding",
                status if status.is_redirection() => "pass the address to which it redirects",
                _ if self.can_pass() => "try again later; --every tries again by itself",
                _ => "read the log of the collector",
            },
        }
    }
}

impl From<CollectorError> for CliError {
    fn from(error: CollectorError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), error.hint())
    }
}

impl Collector {
    pub(super) fn new(url: &str, headers: &[String]) -> Result<Self, CliError> {
        let (base, shown) = address(url)?;
        let headers = headers.iter().map(|pair| header(pair)).collect::<Result<_, _>>()?;
        Ok(Self { agent: http_client::new(LIMIT), base, shown, headers })
    }

    /// Identifies the collector in the file of what was sent.
    pub(super) fn fingerprint(&self) -> String {
        text::fingerprint(&self.base)
    }

    /// Posts to `/v1/metrics` or `/v1/traces`. Returns what the collector says that it left out.
    pub(super) fn post(&self, path: &'static str, body: &Value) -> Result<Option<String>, CollectorError> {
        let unreachable = |error: ureq::Error| CollectorError::Unreachable {
            shown: self.shown.clone(),
            cause: text::headline(&error.to_string().replace(&self.base, &self.shown), 200),
        };
        let mut request = self.agent.post(format!("{}{path}", self.base)).header("Content-Type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = request.send(&body.to_string()).map_err(unreachable)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(CollectorError::Refused { shown: self.shown.clone(), path, status });
        }
        let said = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string().unwrap_or_default();
        Ok(left_out(&said))
    }
}

/// `{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "…"}}`
fn left_out(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer.as_bytes()).ok()?;
    let partial = answer["partialSuccess"].as_object()?;
    let count = partial.iter().filter(|(key, _)| key.starts_with("rejected")).find_map(|(_, count)| {
        // A 64-bit number is a string in this encoding, but not all collectors know that.
        count.as_i64().or_else(|| count.as_str()?.parse().ok()).filter(|count| *count > 0)
    })?;
    let message = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    Some(text::headline(&format!("the collector left out {count}: {message}"), 300))
}

/// The address to add a path to, and the part that is shown.
fn address(url: &str) -> Result<(String, String), CliError> {
    let wrong = |hint: &str| CliError::new(code::USAGE, "--otlp needs the address of a collector", hint);
    let example = "use for example --otlp http://localhost:4318";
    let uri: Uri = url.parse().map_err(|_| wrong(example))?;
    let is_http = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
    let (Some(scheme), Some(host), true) = (uri.scheme_str(), uri.host(), is_http) else { return Err(wrong(example)) };
    if uri.query().is_some() || url.contains('#') {
        return Err(wrong("leave out what follows `?` or `#`; pass secrets with --header"));
    }
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    let base = url.trim_end_matches('/');
    let base = ["/v1/metrics", "/v1/traces"].iter().find_map(|path| base.strip_suffix(path)).unwrap_or(base);
    Ok((base.to_owned(), format!("{scheme}://{host}{port}")))
}

fn header(pair: &str) -> Result<(HeaderName, HeaderValue), CliError> {
    // The value may be a secret, so it is not repeated.
    let wrong = || CliError::new(code::USAGE, "--header needs NAME=VALUE", "use for example --header 'X-Tenant=me'");
    let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
    let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
    let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, base, shown) in [
            ("http://localhost:4318", "http://localhost:4318", "http://localhost:4318"),
            ("http://localhost:4318/", "http://localhost:4318", "http://localhost:4318"),
            ("https://me:pass@example.com/otlp/", "https://me:pass@example.com/otlp", "https://example.com"),
            ("http://[::1]:4318/v1/metrics", "http://[::1]:4318", "http://[::1]:4318"),
        ] {
            assert_eq!(address(url).unwrap(), (base.to_owned(), shown.to_owned()));
        }
        for url in ["", "localhost:4318", "ftp://example.com", "http://", "http://example.com/?key=1", "https://a b"] {
            assert_eq!(address(url).unwrap_err().code, code::USAGE, "{url}");
        }
    }

    #[test]
    fn a_header_is_a_name_and_a_value_that_errors_do_not_repeat() {
        let (name, value) = header("Authorization=Basic a=b").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("authorization", "Basic a=b"));
        for pair in ["secret", "=secret", "a b=secret", "a=secret\n"] {
            if let Err(error) = header(pair) {
                assert!(!error.message.contains("secret") && !error.hint.contains("secret"), "{error:?}");
            } else {
                assert_eq!(pair, "a=secret\n", "trimmed");
            }
        }
    }

    #[test]
    fn what_a_collector_left_out_is_reported() {
        assert_eq!(left_out("{}"), None);
        assert_eq!(left_out(""), None);
        assert_eq!(left_out(r#"{"partialSuccess": {}}"#), None);
        assert_eq!(left_out(r#"{"partialSuccess": {"rejectedSpans": "0", "errorMessage": "fine"}}"#), None);
        let said = left_out(r#"{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too\u001b[31m old"}}"#);
        assert_eq!(said.as_deref(), Some("the collector left out 3: too old"));
        assert!(left_out(r#"{"partialSuccess": {"rejectedDataPoints": 7}}"#).unwrap().contains("left out 7"));
    }
}
