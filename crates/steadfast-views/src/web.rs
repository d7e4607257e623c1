//! `steadfast ui`: the page, served on loopback. `guard` decides who may ask, `route` what a path means, `pages` builds
//! the pages, `stream` says when they changed, and `actions` does what a person asks for.

mod answer;
mod assets;
mod diff;
mod enter;
mod fields;
mod guard;
mod logs;
mod notices;
mod pages;
mod route;
mod router;
mod secret;
mod server;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod timed;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use steadfast_engine::interrupt::EndRequest;
use steadfast_system::bounded;
use steadfast_system::paths::Paths;

use crate::actions::Actions;
use guard::RequestGuard;
use router::App;
use secret::Secret;

const SHORTEST_TOKEN: usize = 32;
const LONGEST_TOKEN: u64 = 4_096;

#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error("port {0} is in use")]
    PortTaken(u16),
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(std::io::Error),
    #[error("`{0}` is not the name of a host")]
    HostName(String),
    #[error("cannot read the metrics token: {0}")]
    Token(std::io::Error),
    #[error("other users can read the metrics token `{}`", .0.display())]
    OpenToken(PathBuf),
    #[error("the metrics token is shorter than {SHORTEST_TOKEN} characters")]
    ShortToken,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl WebError {
    pub fn hint(&self) -> String {
        match self {
            Self::PortTaken(_) => "choose another one, or leave out `--port`".into(),
            Self::Listen(_) => "ports below 1024 are for administrators; leave out `--port`".into(),
            Self::HostName(_) => "give a name as in the address bar, such as laptop.example or localhost:8080".into(),
            Self::Token(_) => "write a token to the file: `openssl rand -hex 32`".into(),
            Self::OpenToken(path) => format!("close it: `chmod 600 {}`", path.display()),
            Self::ShortToken => "make a longer one: `openssl rand -hex 32`".into(),
            Self::Io(_) => "run `steadfast doctor`".into(),
        }
    }
}

/// How to serve.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// A free one if none is given.
    pub port: Option<u16>,
    pub read_only: bool,
    /// Names of the user's own tunnels.
    pub hosts: &'a [String],
    /// A file with a token that opens `/metrics`.
    pub metrics_token: Option<&'a Path>,
    /// The [`Links::secrets`] of the server that this one replaces.
    pub secrets: Option<&'a str>,
}

/// A server that listens.
pub struct WebServer {
    app: Arc<App>,
    listener: TcpListener,
    port: u16,
}

/// Makes one-time links of a server.
#[derive(Clone)]
pub struct Links {
    app: Arc<App>,
    port: u16,
}

impl Links {
    /// A new link that works once.
    pub fn link(&self) -> std::io::Result<String> {
        let key = self.app.guard.add_key()?;
        Ok(format!("http://127.0.0.1:{}{}{}", self.port, guard::ENTER, key.reveal()))
    }

    /// What browsers and unused links have to show. A restarted server accepts it, too.
    pub fn secrets(&self) -> String {
        self.app.guard.secrets()
    }
}

impl WebServer {
    /// Listens on loopback. `program` is this program, which runs the commands of actions; the paths are absolute.
    pub fn bind(paths: Paths, program: PathBuf, options: &Options<'_>) -> Result<Self, WebError> {
        if let Some(wrong) = options.hosts.iter().find(|host| !is_host(host)) {
            return Err(WebError::HostName(wrong.clone()));
        }
        let metrics = options.metrics_token.map(read_token).transpose()?;
        let asked = options.port.unwrap_or(0);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, asked)).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => WebError::PortTaken(asked),
            _ => WebError::Listen(error),
        })?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let guard = RequestGuard::new(port, options.hosts, metrics, options.secrets)?;
        let actions = Actions::new(paths.clone(), program);
        let app = Arc::new(App::new(paths, guard, actions, options.read_only));
        Ok(Self { app, listener, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn links(&self) -> Links {
        Links { app: Arc::clone(&self.app), port: self.port }
    }

    /// Serves until a request to end arrives, and returns it.
    pub fn serve(self, requests: mpsc::Receiver<EndRequest>) -> std::io::Result<EndRequest> {
        let router = router::router(Arc::clone(&self.app));
        server::serve(&self.app, &router, self.listener, requests)
    }
}

/// A name or address, with or without a port.
fn is_host(host: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    !host.is_empty() && host.len() <= 255 && host.starts_with(|c: char| c != ':') && host.chars().all(is_part)
}

/// Reads the token of a file that only its owner can read.
fn read_token(path: &Path) -> Result<Secret, WebError> {
    use std::os::unix::fs::MetadataExt as _;
    let file = bounded::open(path).map_err(WebError::Token)?;
    let mode = file.metadata().map_err(WebError::Token)?.mode();
    if mode & 0o077 != 0 {
        return Err(WebError::OpenToken(path.to_owned()));
    }
    let text = bounded::text(path, LONGEST_TOKEN).map_err(WebError::Token)?;
    let token = text.trim();
    if token.chars().count() < SHORTEST_TOKEN {
        return Err(WebError::ShortToken);
    }
    Ok(Secret::of(token.to_owned()))
}
