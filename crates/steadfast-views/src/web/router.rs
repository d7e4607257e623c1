//! From a request to its answer. Everything that reads files or runs commands does so on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use serde_json::json;
use steadfast_app::overview::now::Action;
use steadfast_engine::crash;
use steadfast_model::clock;
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;
use tokio::sync::Semaphore;

use super::answer::{self, PostedForm};
use super::fields::Fields;
use super::guard::{RequestGuard, RequestRefusal};
use super::notices::{self, Notices};
use super::pages::{self, Notice, PageShell};
use super::route::Route;
use super::stream::Streams;
use super::{assets, diff, enter, logs};
use crate::actions::{self, ActionTarget, Actions, CommandAnswer};
use crate::metrics;

const MOST_BODY: usize = 16 << 10;
const BODY_LIMIT: Duration = Duration::from_secs(10);
/// Commands that run at once.
const MOST_ACTIONS: usize = 4;
const NOT_FOUND: (&str, &str) = ("there is no such page", "go to the first page: /");

/// What all requests share.
pub(super) struct App {
    pub(super) paths: Paths,
    pub(super) guard: RequestGuard,
    pub(super) streams: Streams,
    read_only: bool,
    actions: Actions,
    running: Semaphore,
    notices: Notices,
}

impl App {
    pub(super) fn new(paths: Paths, guard: RequestGuard, actions: Actions, read_only: bool) -> Self {
        let (running, notices, streams) = (Semaphore::new(MOST_ACTIONS), Notices::default(), Streams::default());
        Self { paths, guard, streams, read_only, actions, running, notices }
    }
}

pub(super) fn router(app: Arc<App>) -> Router {
    Router::new().fallback(respond).with_state(app)
}

async fn respond(State(app): State<Arc<App>>, request: Request) -> Response {
    let form = PostedForm::wanted(request.headers());
    let (parts, body) = request.into_parts();
    let mut response = match app.guard.check(&parts) {
        Ok(()) => routed(app, &parts, body).await,
        Err(refusal) => answer::refused(refusal, form),
    };
    answer::secure(&mut response);
    response
}

async fn routed(app: Arc<App>, request: &Parts, body: Body) -> Response {
    crash::panic_once("ui.request");
    let query = Fields::parse(request.uri.query().unwrap_or_default());
    let form = PostedForm::wanted(&request.headers);
    let route = Route::of(request.uri.path(), &query);
    match (request.method.clone(), route) {
        (Method::POST, _) if app.read_only => answer::refused(RequestRefusal::ReadOnly, form),
        (Method::GET | Method::HEAD, Some(route)) if !route.changes() => {
            let only_head = request.method == Method::HEAD;
            show(app, request, route, query, only_head).await
        }
        (Method::POST, Some(Route::Act { target, action })) => act(app, request, body, target, action).await,
        (Method::GET | Method::HEAD | Method::POST, None) => answer::problem(404, NOT_FOUND.0, NOT_FOUND.1, form),
        (_, route) => {
            let allowed = if route.is_some_and(|route| route.changes()) { "POST" } else { "GET, HEAD" };
            let hint = "use the buttons and links of the page";
            let mut response = answer::problem(405, "this method is not allowed here", hint, form);
            answer::set(&mut response, header::ALLOW, allowed);
            response
        }
    }
}

async fn show(app: Arc<App>, request: &Parts, route: Route, query: Fields, only_head: bool) -> Response {
    let wanted = PostedForm::wanted(&request.headers);
    match route {
        Route::Page { page, form } if form == PostedForm::Json || wanted == PostedForm::Json => {
            blocking(PostedForm::Json, move || {
                let (status, json) = pages::json(&app.paths, &page);
                answer::json(status, json)
            })
            .await
        }
        Route::Page { page, .. } => {
            let notice = query.get("notice").and_then(|id| app.notices.show(id));
            let shell = PageShell { read_only: app.read_only, notice };
            blocking(wanted, move || {
                crash::panic_once("ui.page");
                let rendered = pages::html(&app.paths, &page, &shell);
                answer::html(rendered.status, rendered.html)
            })
            .await
        }
        Route::Log { run_id } => {
            let log = move || of_run(logs::log(&app.paths, &run_id, &query), |log| answer::json(200, log.to_string()));
            blocking(PostedForm::Json, log).await
        }
        Route::Diff { run_id } => {
            let diff = move || of_run(diff::diff(&app.paths, &run_id, &query), |diff| answer::text(200, diff));
            blocking(PostedForm::Json, diff).await
        }
        Route::Asset(name) => assets::asset(&name, &request.headers)
            .unwrap_or_else(|| answer::problem(404, NOT_FOUND.0, NOT_FOUND.1, wanted)),
        Route::Events if only_head => answer::stream(Body::empty()),
        Route::Events => app.streams.open().map_or_else(too_many_streams, answer::stream),
        Route::Metrics => blocking(PostedForm::Json, move || measured(&app.paths)).await,
        Route::Enter(key) => enter::enter(&app.guard, &key, only_head, wanted),
        // Only a POST reaches an action.
        Route::Act { .. } => answer::problem(405, "this is an action", "use the buttons of the page", wanted),
    }
}

fn of_run<T>(found: Result<Option<T>, StoreError>, show: impl FnOnce(T) -> Response) -> Response {
    match found {
        Ok(Some(found)) => show(found),
        Ok(None) => answer::problem(404, "there is no such run", "go to the first page: /", PostedForm::Json),
        Err(error) => answer::problem(500, &error.to_string(), error.hint(), PostedForm::Json),
    }
}

/// The numbers for Prometheus; none without a store.
fn measured(paths: &Paths) -> Response {
    let measure = |store: Store| metrics::prometheus(store.read(), paths, clock::now());
    match Store::open_if_there(&paths.store).and_then(|store| store.map(measure).transpose()) {
        Ok(text) => answer::metrics(text.unwrap_or_default()),
        Err(error) => answer::problem(503, &error.to_string(), error.hint(), PostedForm::Json),
    }
}

fn too_many_streams() -> Response {
    let hint = "close other tabs of this page";
    let mut response = answer::closing(answer::problem(503, "too many pages are open", hint, PostedForm::Json));
    answer::set(&mut response, header::RETRY_AFTER, "30");
    response
}

async fn act(app: Arc<App>, request: &Parts, body: Body, target: ActionTarget, action: Action) -> Response {
    let form = PostedForm::wanted(&request.headers);
    let fields = match read(request, body, form).await {
        Ok(fields) => fields,
        Err(refused) => return *refused,
    };
    let otherwise = match &target {
        ActionTarget::Goal(id) => format!("/goals/{id}"),
        ActionTarget::Run(id) => format!("/runs/{id}"),
    };
    let answer = match app.running.try_acquire() {
        Ok(_slot) => {
            let (actions, given) = (app.actions.clone(), entered(&fields));
            let done = tokio::task::spawn_blocking(move || actions.perform(&target, action, &given)).await;
            done.unwrap_or_else(|_| CommandAnswer::refused(500, "internal error", "run `steadfast doctor`"))
        }
        Err(_) => CommandAnswer::refused(503, "other actions are still under way", "wait a moment and try again"),
    };
    if form == PostedForm::Json {
        let json = json!({"ok": answer.is_ok, "message": answer.message, "hint": answer.hint});
        return answer::json(answer.status, json.to_string());
    }
    let notice = Notice { is_error: !answer.is_ok, text: answer.text() };
    let place = app.notices.add(notice).map(|id| notices::place(fields.get("back"), &otherwise, &id));
    let place = place.ok().and_then(|place| HeaderValue::from_str(&place).ok());
    place.map_or_else(|| answer::problem(answer.status, &answer.message, &answer.hint, form), answer::see_other)
}

/// The fields of a form. What is wrong with it closes the connection: the rest of its body is not read.
async fn read(request: &Parts, body: Body, form: PostedForm) -> Result<Fields, Box<Response>> {
    let problem =
        |status, message: &str, hint: &str| Box::new(answer::closing(answer::problem(status, message, hint, form)));
    let header = |name| request.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let kind = header(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(problem(415, "this kind of content is not accepted", "send a form"));
    }
    let too_large = || problem(413, "the form is too large", "send at most 16 KiB");
    let length = header(header::CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    if length.is_some_and(|length| length > MOST_BODY) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_LIMIT, axum::body::to_bytes(body, MOST_BODY)).await {
        Ok(Ok(bytes)) => Ok(Fields::parse(&String::from_utf8_lossy(&bytes))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(problem(408, "the form did not arrive in time", "try again")),
    }
}

fn entered(fields: &Fields) -> actions::ActionFields {
    let field = |name: &str| fields.get(name).map(str::to_owned);
    actions::ActionFields {
        tokens: field("tokens"),
        usd: field("usd"),
        turns: field("turns"),
        hours: field("hours"),
        text: field("text"),
        stage: field("stage"),
        reason: field("reason"),
        from: field("from"),
        to: field("to"),
        session: field("session"),
    }
}

/// Works on a thread of its own. It is not done if the server ends first.
async fn blocking(form: PostedForm, work: impl FnOnce() -> Response + Send + 'static) -> Response {
    let ended = |_| answer::problem(503, "the server ends", "start `steadfast ui` again", form);
    tokio::task::spawn_blocking(work).await.unwrap_or_else(ended)
}
