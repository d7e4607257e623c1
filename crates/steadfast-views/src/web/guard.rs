//! Who may ask for what. Every request passes the same gates in the same order: the Host it names (a name that was
//! rebound to this machine is refused), Sec-Fetch-Site and Origin (no other page may send requests), then the token.
//! Only the one-time link needs no token, and a metrics token opens `/metrics` alone.

use std::sync::{Mutex, PoisonError};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, header};

use super::secret::Secret;

/// Links that were printed and not used; a new one pushes the oldest out.
const MOST_KEYS: usize = 8;
/// The path of the one-time link.
pub(crate) const ENTER: &str = "/enter/";
pub(crate) const METRICS: &str = "/metrics";

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestRefusal {
    #[error("this address is not allowed")]
    Host,
    #[error("the request comes from another page")]
    Site,
    #[error("the request comes from another origin")]
    Origin,
    #[error("this browser has no access yet")]
    Token,
    #[error("this link is used or wrong")]
    Key,
    #[error("this server is read-only")]
    ReadOnly,
}

impl RequestRefusal {
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Host => "open the link that `steadfast ui` printed; for a tunnel of yours, add `--allow-host NAME`",
            Self::Site => "open the address directly, not from another page",
            Self::Origin => "reload the page of `steadfast ui` and try again there",
            Self::Token | Self::Key => "press Enter in the terminal where `steadfast ui` runs to get a fresh link",
            Self::ReadOnly => "start `steadfast ui` without `--read-only` to act from the page",
        }
    }
}

/// A name under which the page may be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    name: String,
    /// A tunnel of the user may end in TLS, or listen on any port if none is named.
    is_tunnel: bool,
}

#[derive(Debug)]
pub(crate) struct RequestGuard {
    port: u16,
    hosts: Vec<AllowedHost>,
    token: Secret,
    keys: Mutex<Vec<Secret>>,
    metrics: Option<Secret>,
}

impl RequestGuard {
    /// `secrets` are those of a server before, as [`Self::secrets`] returned them.
    pub(crate) fn new(
        port: u16,
        tunnels: &[String],
        metrics: Option<Secret>,
        secrets: Option<&str>,
    ) -> std::io::Result<Self> {
        let own = ["127.0.0.1", "localhost", "[::1]"].map(|name| AllowedHost {
            // Browsers leave out the port that is the default one.
            name: if port == 80 { name.to_owned() } else { format!("{name}:{port}") },
            is_tunnel: false,
        });
        let tunnels = tunnels.iter().map(|name| AllowedHost { name: name.to_ascii_lowercase(), is_tunnel: true });
        let hosts = own.into_iter().chain(tunnels).collect();
        let mut known = secrets.unwrap_or_default().lines().map(|line| Secret::of(line.to_owned()));
        let token = known.next().map_or_else(Secret::new, Ok)?;
        Ok(Self { port, hosts, token, keys: Mutex::new(known.collect()), metrics })
    }

    /// The token and the unused keys, one in each line.
    pub(crate) fn secrets(&self) -> String {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::iter::once(&self.token).chain(keys.iter());
        all.map(Secret::reveal).collect::<Vec<_>>().join("\n")
    }

    /// A new one-time key.
    pub(crate) fn add_key(&self) -> std::io::Result<Secret> {
        let key = Secret::new()?;
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push(key.clone());
        let excess = keys.len().saturating_sub(MOST_KEYS);
        keys.drain(..excess);
        Ok(key)
    }

    /// Uses up a key, and returns the cookie that it is worth.
    pub(crate) fn enter(&self, key: &str) -> Option<String> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let at = keys.iter().position(|known| known.is(key.as_bytes()))?;
        keys.remove(at);
        let (name, token) = (self.cookie_name(), self.token.reveal());
        Some(format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/"))
    }

    /// Servers on other ports share the browser's cookies, so the name has the port.
    fn cookie_name(&self) -> String {
        format!("steadfast_{}", self.port)
    }

    pub(crate) fn check(&self, request: &Parts) -> Result<(), RequestRefusal> {
        let host = self.allowed_host(request).ok_or(RequestRefusal::Host)?;
        check_site(&request.headers)?;
        check_origin(request, &host)?;
        let path = request.uri.path();
        let is_open = path.starts_with(ENTER) || (path == METRICS && self.is_metrics_token(&request.headers));
        if is_open || self.has_token(&request.headers) { Ok(()) } else { Err(RequestRefusal::Token) }
    }

    fn allowed_host(&self, request: &Parts) -> Option<AllowedHost> {
        let named = single(&request.headers, &header::HOST).ok()??.to_ascii_lowercase();
        // A request line may name a host too.
        if request.uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(&named)) {
            return None;
        }
        let is_it = |host: &&AllowedHost| {
            let any_port = host.is_tunnel && !has_port(&host.name);
            host.name == named || (any_port && has_port(&named) && without_port(&named) == host.name)
        };
        let found = self.hosts.iter().find(is_it)?;
        Some(AllowedHost { name: named, is_tunnel: found.is_tunnel })
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let own = self.cookie_name();
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        cookies.any(|(name, value)| name == own && self.token.is(value.as_bytes()))
    }

    fn is_metrics_token(&self, headers: &HeaderMap) -> bool {
        let given = single(headers, &header::AUTHORIZATION).ok().flatten();
        let token = given.and_then(|given| given.strip_prefix("Bearer "));
        token.zip(self.metrics.as_ref()).is_some_and(|(token, own)| own.is(token.trim().as_bytes()))
    }
}

/// Whether a host has a port after its name or bracketed address.
fn has_port(host: &str) -> bool {
    without_port(host) != host
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn check_site(headers: &HeaderMap) -> Result<(), RequestRefusal> {
    match single(headers, &HeaderName::from_static("sec-fetch-site")) {
        Ok(None | Some("same-origin" | "none")) => Ok(()),
        _ => Err(RequestRefusal::Site),
    }
}

/// A page of ours, under the name that the request uses; a request that changes something must say so.
fn check_origin(request: &Parts, host: &AllowedHost) -> Result<(), RequestRefusal> {
    let origin = single(&request.headers, &header::ORIGIN).map_err(|()| RequestRefusal::Origin)?;
    let Some(origin) = origin else {
        let only_reads = request.method == Method::GET || request.method == Method::HEAD;
        return if only_reads { Ok(()) } else { Err(RequestRefusal::Origin) };
    };
    let origin = origin.to_ascii_lowercase();
    let of = |scheme: &str| origin.strip_prefix(scheme) == Some(host.name.as_str());
    if of("http://") || (host.is_tunnel && of("https://")) { Ok(()) } else { Err(RequestRefusal::Origin) }
}

/// The value of a header that may be there once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(());
    }
    value.to_str().map(Some).map_err(|_| ())
}

#[cfg(test)]
mod tests;
