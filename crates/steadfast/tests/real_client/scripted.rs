//! A scripted model on a loopback port, whatever API its host speaks.
//!
//! The test gives a closure that answers each request. Every billed token is recorded in a ledger, so that a test can
//! compare it with what the product counted.

mod reply;

pub(crate) use self::reply::{EVENTS, JSON, Reply, answer, event, respond};

use axum::Router;
use axum::http::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::iter::Sum;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The request and reply types of one host's API.
pub(crate) trait Api: Clone + Debug + Send + Sync + 'static {
    /// A part of a reply: a text or a tool call.
    type Part: Clone + Debug + Send + 'static;
    type Usage: Clone + Copy + Debug + Sum + Send + 'static;
    /// The base URL given to the client.
    const BASE_PATH: &'static str;
    /// The prefix of message or response ids.
    const ID_PREFIX: &'static str;
    const REQUEST_ID_HEADER: &'static str;
    /// Headers of every answer.
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    /// The default usage of a reply.
    const USAGE: Self::Usage;

    fn routes() -> Router<Arc<Shared<Self>>>;

    /// A reply on the wire: its content type and its body.
    fn body(request: &Request<Self>, reply: &Reply<Self>, id: &str, usage: Self::Usage) -> (&'static str, String);

    fn error_body(status: u16, message: &str) -> Value;

    /// The session that is billed.
    fn session_id(request: &Request<Self>) -> Option<String>;

    fn kind(request: &Request<Self>) -> Kind;

    /// An answer the client accepts, if this is a side call.
    fn side_reply(request: &Request<Self>) -> Option<Reply<Self>>;

    /// One line for failure messages.
    fn summary(request: &Request<Self>) -> String;
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A turn of the conversation.
    Main,
    /// A turn of a subagent.
    Subagent,
    /// The summary for a compaction, if the session's file shows its usage (Codex only).
    Compaction,
    /// Anything else: titles, probes, native goal evaluators, the compaction of Claude Code. No session's file shows
    /// its usage.
    Side,
}

#[derive(Clone, Debug)]
pub(crate) struct Request<A> {
    /// 1, 2, 3... over the requests of kind main and subagent; 0 for the others.
    pub(crate) seq: usize,
    pub(crate) kind: Kind,
    pub(crate) json: Value,
    pub(crate) headers: Vec<(String, String)>,
    api: PhantomData<A>,
}

impl<A: Api> Request<A> {
    fn new(json: Value, headers: &HeaderMap) -> Self {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
        let mut request = Self { seq: 0, kind: Kind::Main, json, headers, api: PhantomData };
        request.kind = A::kind(&request);
        request
    }

    /// A header by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// One message or response of the model, as billed.
#[derive(Clone, Debug)]
pub(crate) struct HandedOut<Usage> {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) usage: Usage,
    pub(crate) session_id: Option<String>,
}

struct Book<A: Api> {
    requests: Vec<Request<A>>,
    handed_out: Vec<HandedOut<A::Usage>>,
    other_calls: Vec<String>,
    script_panics: Vec<String>,
    next_seq: usize,
}

type Script<A> = dyn Fn(&Request<A>) -> Reply<A> + Send + Sync;

/// State shared by the server and the test.
pub(crate) struct Shared<A: Api> {
    script: Box<Script<A>>,
    book: Mutex<Book<A>>,
}

impl<A: Api> Shared<A> {
    /// A panic of a script must not hide the records from the test.
    fn book(&self) -> MutexGuard<'_, Book<A>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, json: Value, headers: &HeaderMap) -> Request<A> {
        let mut request = Request::new(json, headers);
        let mut book = self.book();
        if matches!(request.kind, Kind::Main | Kind::Subagent) {
            book.next_seq += 1;
            request.seq = book.next_seq;
        }
        book.requests.push(request.clone());
        request
    }

    /// The answer of the script, or its panic message.
    async fn ask_script(self: &Arc<Self>, request: &Request<A>) -> Result<Reply<A>, String> {
        let (shared, asked) = (self.clone(), request.clone());
        let reply = tokio::task::spawn_blocking(move || (shared.script)(&asked)).await;
        reply.map_err(|panic| {
            let text = format!("{panic} ({})", A::summary(request));
            self.book().script_panics.push(text.clone());
            text
        })
    }

    fn hand_out(&self, request: &Request<A>, id: String, usage: A::Usage) {
        let session_id = A::session_id(request);
        self.book().handed_out.push(HandedOut { kind: request.kind, id, usage, session_id });
    }

    pub(crate) fn note_other_call(&self, call: impl Into<String>) {
        self.book().other_calls.push(call.into());
    }
}

pub(crate) struct Scripted<A: Api> {
    shared: Arc<Shared<A>>,
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl<A: Api> Scripted<A> {
    /// Starts a model that answers side calls (titles, compaction) by itself. The script gets the turns of the
    /// conversation and of subagents; it is called on a thread of its own, so it may block.
    pub(crate) fn start(script: impl Fn(&Request<A>) -> Reply<A> + Send + Sync + 'static) -> Self {
        Self::start_with_side_calls(move |r| A::side_reply(r).unwrap_or_else(|| script(r)))
    }

    /// Starts a model whose script answers side calls too.
    pub(crate) fn start_with_side_calls(script: impl Fn(&Request<A>) -> Reply<A> + Send + Sync + 'static) -> Self {
        let book =
            Book { requests: vec![], handed_out: vec![], other_calls: vec![], script_panics: vec![], next_seq: 0 };
        let shared = Arc::new(Shared { script: Box::new(script), book: Mutex::new(book) });
        let (stop, stopped) = oneshot::channel();
        let (tell_port, port) = mpsc::channel();
        let app = A::routes().with_state(shared.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("tokio runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
                tell_port.send(listener.local_addr().expect("address").port()).expect("port");
                tokio::select! {
                    _ = axum::serve(listener, app) => {}
                    _ = stopped => {}
                }
            });
            // A script may still be blocked; the test is over, so leave it.
            runtime.shutdown_background();
        });
        let port = port.recv().expect("the model did not start");
        Self { shared, port, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, A::BASE_PATH)
    }

    /// All requests so far, side calls included, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request<A>> {
        self.shared.book().requests.clone()
    }

    pub(crate) fn requests_of(&self, kind: Kind) -> Vec<Request<A>> {
        self.requests().into_iter().filter(|r| r.kind == kind).collect()
    }

    /// The ledger: every sent reply with its usage.
    pub(crate) fn handed_out(&self) -> Vec<HandedOut<A::Usage>> {
        self.shared.book().handed_out.clone()
    }

    pub(crate) fn handed_out_of(&self, kind: Kind) -> A::Usage {
        self.handed_out().iter().filter(|h| h.kind == kind).map(|h| h.usage).sum()
    }

    /// What the files of the sessions show: usage by id of the message or response, without side calls. Equals
    /// `usage()` of the client once it has ended.
    pub(crate) fn ledger(&self) -> BTreeMap<String, A::Usage> {
        let visible = self.handed_out().into_iter().filter(|h| h.kind != Kind::Side);
        visible.map(|h| (h.id, h.usage)).collect()
    }

    /// `METHOD /path` of calls that asked for no message or response.
    pub(crate) fn other_calls(&self) -> Vec<String> {
        self.shared.book().other_calls.clone()
    }

    /// Waits for a request that meets the condition and returns it.
    pub(crate) fn wait_for_request(
        &self,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Request<A>) -> bool,
    ) -> Request<A> {
        let end = Instant::now() + limit;
        loop {
            if let Some(found) = self.requests().into_iter().find(|r| wanted(r)) {
                return found;
            }
            if Instant::now() > end {
                let seen: Vec<String> = self.requests().iter().map(A::summary).collect();
                panic!("no request for {what} in {limit:?}; seen:\n{}", seen.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Panics with the script's own panic messages, if there were any. A test calls it at its end, as a panic on the
    /// server's thread fails nothing.
    pub(crate) fn check_script(&self) {
        let panics = self.shared.book().script_panics.clone();
        assert!(panics.is_empty(), "the script panicked: {panics:?}");
    }
}

impl<A: Api> Drop for Scripted<A> {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Unique over all models of this test process: the product may dedupe by id over several sessions, which must not
/// hide anything here.
fn next_id(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}_{}x{number:06}", std::process::id())
}
