//! A scripted model that speaks the Anthropic Messages API on a loopback port.
//!
//! The test gives a closure that answers each request. Every token handed out
//! is written to a ledger, so that a test can compare what the product counted
//! with what was really spent.

use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{any, post};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// One message the model sent, as billed.
#[derive(Clone, Debug)]
pub(crate) struct HandedOut {
    pub(crate) kind: Kind,
    pub(crate) message_id: String,
    pub(crate) usage: Usage,
    pub(crate) session_id: Option<String>,
}

#[derive(Default)]
struct Book {
    requests: Vec<Request>,
    handed_out: Vec<HandedOut>,
    other_calls: Vec<String>,
    script_panics: Vec<String>,
    next_seq: usize,
}

struct Shared {
    script: Box<Script>,
    book: Mutex<Book>,
}

impl Shared {
    /// A panic of a script must not hide the records from the test.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct ScriptedModel {
    shared: Arc<Shared>,
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts a model that answers side calls (titles, compaction) by itself.
    /// The script gets the turns of the conversation and of subagents; it is
    /// called on a thread of its own, so it may block.
    pub(crate) fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with_side_calls(move |r| r.side_reply().unwrap_or_else(|| script(r)))
    }

    /// Starts a model whose script answers side calls too.
    pub(crate) fn start_with_side_calls(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let book = Mutex::new(Book::default());
        let shared = Arc::new(Shared { script: Box::new(script), book });
        let (stop, stopped) = oneshot::channel();
        let (tell_port, port) = mpsc::channel();
        let state = shared.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("tokio runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
                tell_port.send(listener.local_addr().expect("address").port()).expect("port");
                let app = Router::new()
                    .route("/v1/messages", post(messages))
                    .route("/v1/messages/count_tokens", post(count_tokens))
                    .fallback(any(other))
                    .with_state(state);
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
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests so far, side calls included, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.book().requests.clone()
    }

    pub(crate) fn requests_of(&self, kind: Kind) -> Vec<Request> {
        self.requests().into_iter().filter(|r| r.kind == kind).collect()
    }

    /// The ledger: every message that was sent with its usage.
    pub(crate) fn handed_out(&self) -> Vec<HandedOut> {
        self.shared.book().handed_out.clone()
    }

    pub(crate) fn handed_out_of(&self, kind: Kind) -> Usage {
        self.handed_out().iter().filter(|h| h.kind == kind).map(|h| h.usage).sum()
    }

    /// What transcripts show: usage by message id, without side calls.
    /// Equals `Client::usage()` once the client has ended.
    pub(crate) fn ledger(&self) -> BTreeMap<String, Usage> {
        let visible = self.handed_out().into_iter().filter(|h| h.kind != Kind::Side);
        visible.map(|h| (h.message_id, h.usage)).collect()
    }

    /// `METHOD /path` of calls that were no message requests.
    pub(crate) fn other_calls(&self) -> Vec<String> {
        self.shared.book().other_calls.clone()
    }

    /// Waits until a request fulfils the condition and returns it.
    pub(crate) fn wait_for_request(&self, what: &str, limit: Duration, wanted: impl Fn(&Request) -> bool) -> Request {
        let end = Instant::now() + limit;
        loop {
            if let Some(found) = self.requests().into_iter().find(|r| wanted(r)) {
                return found;
            }
            if Instant::now() > end {
                let seen: Vec<String> = self.requests().iter().map(Request::summary).collect();
                panic!("no request for {what} in {limit:?}; seen:\n{}", seen.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Panics with the script's own panic messages, if there were any. A test
    /// calls it at its end, as a panic on the server's thread fails nothing.
    pub(crate) fn check_script(&self) {
        let panics = self.shared.book().script_panics.clone();
        assert!(panics.is_empty(), "the script panicked: {panics:?}");
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn respond(status: u16, content_type: &str, body: String) -> Response {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .header(header::CONTENT_TYPE, content_type)
        .header("request-id", next_id("req"))
        .header("x-should-retry", "false")
        .body(Body::from(body))
        .expect("response")
}

/// Unique over all models of this test process: the product may dedupe by id
/// over several sessions, which must not hide anything here.
fn next_id(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}_{}x{number:06}", std::process::id())
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(json) = serde_json::from_slice::<Value>(&body) else {
        return respond(400, "application/json", json!({"type": "error"}).to_string());
    };
    let mut request = Request::new(json, &headers);
    {
        let mut book = shared.book();
        if request.kind != Kind::Side {
            book.next_seq += 1;
            request.seq = book.next_seq;
        }
        book.requests.push(request.clone());
    }
    let asked = request.clone();
    let answering = shared.clone();
    let reply = match tokio::task::spawn_blocking(move || (answering.script)(&asked)).await {
        Ok(reply) => reply,
        Err(panic) => {
            let text = format!("{} ({})", panic, request.summary());
            shared.book().script_panics.push(text.clone());
            Reply::error(400, text)
        }
    };
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    if let Some(error) = &reply.error {
        return respond(error.status, "application/json", error.body().to_string());
    }
    let id = next_id("msg");
    let usage = reply.usage.unwrap_or(Usage::new(11, 7, 5, 3));
    let model = request.json["model"].as_str().unwrap_or("claude-scripted").to_owned();
    let message = reply.message(&id, &model, usage);
    let session_id = request.session_id();
    shared.book().handed_out.push(HandedOut { kind: request.kind, message_id: id, usage, session_id });
    if request.json["stream"] == true {
        respond(200, "text/event-stream", Reply::events(&message))
    } else {
        respond(200, "application/json", message.to_string())
    }
}

/// A rough count is enough: the client only sizes its context with it.
async fn count_tokens(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    shared.book().other_calls.push("POST /v1/messages/count_tokens".into());
    respond(200, "application/json", json!({"input_tokens": body.len() / 4}).to_string())
}

async fn other(State(shared): State<Arc<Shared>>, method: Method, uri: Uri) -> Response {
    shared.book().other_calls.push(format!("{method} {}", uri.path()));
    // The client probes the root with HEAD and takes any 200 as a sign of life.
    let status = if uri.path() == "/" { 200 } else { 404 };
    respond(status, "application/json", "{}".into())
}
