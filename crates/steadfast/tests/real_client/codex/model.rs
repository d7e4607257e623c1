//! A scripted model that speaks `OpenAI`'s Responses API on a loopback port.
//!
//! The test gives a closure that answers each request. Every token handed out is written to a ledger, so that a test
//! can compare what the product counted with what was really spent.

use super::reply::{Reply, Usage};
use super::request::{Kind, Request};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// One response the model gave, as billed.
#[derive(Clone, Debug)]
pub(crate) struct HandedOut {
    pub(crate) kind: Kind,
    pub(crate) response_id: String,
    pub(crate) usage: Usage,
    pub(crate) thread_id: Option<String>,
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

pub(crate) struct ScriptedResponses {
    shared: Arc<Shared>,
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ScriptedResponses {
    /// Starts a model that answers side calls (titles, compaction) by itself. The script gets the turns of the
    /// conversation and of subagents; it is called on a thread of its own, so it may block.
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
                    .route("/v1/responses", post(responses))
                    .route("/v1/models", get(models))
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
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// All requests so far, side calls included, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.book().requests.clone()
    }

    pub(crate) fn requests_of(&self, kind: Kind) -> Vec<Request> {
        self.requests().into_iter().filter(|r| r.kind == kind).collect()
    }

    /// The ledger: every response that was sent with its usage.
    pub(crate) fn handed_out(&self) -> Vec<HandedOut> {
        self.shared.book().handed_out.clone()
    }

    pub(crate) fn handed_out_of(&self, kind: Kind) -> Usage {
        self.handed_out().iter().filter(|h| h.kind == kind).map(|h| h.usage).sum()
    }

    /// What rollouts show: usage by response id, compactions included, titles not. Equals `Codex::usage()` once the
    /// client has ended.
    pub(crate) fn ledger(&self) -> BTreeMap<String, Usage> {
        let visible = self.handed_out().into_iter().filter(|h| h.kind != Kind::Side);
        visible.map(|h| (h.response_id, h.usage)).collect()
    }

    /// `METHOD /path` of calls that asked for no response.
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

    /// Panics with the script's own panic messages, if there were any. A test calls it at its end, as a panic on the
    /// server's thread fails nothing.
    pub(crate) fn check_script(&self) {
        let panics = self.shared.book().script_panics.clone();
        assert!(panics.is_empty(), "the script panicked: {panics:?}");
    }
}

impl Drop for ScriptedResponses {
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
        .header("x-request-id", next_id("req"))
        .body(Body::from(body))
        .expect("response")
}

/// Unique over all models of this test process: the product may dedupe by id over several sessions, which must not
/// hide anything here.
fn next_id(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}_{}x{number:06}", std::process::id())
}

async fn responses(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(json) = serde_json::from_slice::<Value>(&body) else {
        return respond(400, "application/json", json!({"error": {"message": "no JSON"}}).to_string());
    };
    let mut request = Request::new(json, &headers);
    {
        let mut book = shared.book();
        if matches!(request.kind, Kind::Main | Kind::Subagent) {
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
        return respond(error.status, "application/json", error.body.to_string());
    }
    let response_id = next_id("resp");
    let usage = reply.usage.unwrap_or(Usage::new(11, 3, 7, 2));
    let model = request.json["model"].as_str().unwrap_or("scripted").to_owned();
    let events = reply.events(&response_id, &model, usage);
    let thread_id = request.thread_id();
    shared.book().handed_out.push(HandedOut { kind: request.kind, response_id, usage, thread_id });
    respond(200, "text/event-stream", events)
}

/// None: the client then takes its fallback for an unknown model, with plain function tools.
async fn models(State(shared): State<Arc<Shared>>) -> Response {
    shared.book().other_calls.push("GET /v1/models".into());
    respond(200, "application/json", json!({"models": []}).to_string())
}

async fn other(State(shared): State<Arc<Shared>>, method: Method, uri: Uri) -> Response {
    shared.book().other_calls.push(format!("{method} {}", uri.path()));
    respond(404, "application/json", "{}".into())
}
