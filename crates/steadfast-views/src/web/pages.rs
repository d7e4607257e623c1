//! The pages as HTML and as JSON. Both are forms of the same read models; a page opens the store itself and never fails:
//! a store that is missing or unusable is a page, too.

mod extend;
mod goal;
mod log;
mod now;
mod run;
mod template;
mod usage;

use minijinja::{Value, context};
use serde::Serialize;
use serde_json::json;
use steadfast_app::overview::find;
use steadfast_app::usage::collect::UsageError;
use steadfast_model::clock;
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;

use self::template::{seg, serde};

/// Results of a search that are shown.
const MOST_FOUND: usize = 100;

/// What a request wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Now,
    Goal { id: String },
    Run { id: String, stage: Option<u32>, iteration: Option<u32> },
    Usage { days: usize },
    Search { words: String },
    Help,
}

/// What surrounds a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageShell {
    pub(crate) read_only: bool,
    pub(crate) notice: Option<Notice>,
}

/// The answer of the last action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct RenderedPage {
    pub(crate) status: u16,
    pub(crate) html: String,
}

#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error("no {noun} with the id `{id}`")]
    NotFound { noun: &'static str, id: String },
}

impl PageError {
    fn hint(&self) -> String {
        match self {
            Self::Store(error) => error.hint().to_owned(),
            Self::Usage(error) => error.hint(),
            Self::NotFound { noun: "goal", .. } => "`steadfast goal history` lists all goals".to_owned(),
            Self::NotFound { .. } => "`steadfast loop list` and `steadfast pipeline list` show all runs".to_owned(),
        }
    }

    fn status(&self) -> u16 {
        match self {
            Self::NotFound { .. } | Self::Store(StoreError::Missing(_)) => 404,
            Self::Store(_) | Self::Usage(_) => 503,
        }
    }
}

impl Page {
    /// The template, and the part of the navigation that is current.
    fn template(&self) -> (&'static str, &'static str) {
        match self {
            Self::Now => ("now.html", "now"),
            Self::Goal { .. } => ("goal.html", "goal"),
            Self::Run { .. } => ("run.html", "run"),
            Self::Usage { .. } => ("usage.html", "usage"),
            Self::Search { .. } => ("search.html", "search"),
            Self::Help => ("help.html", "help"),
        }
    }

    /// Where the page is: what actions return to.
    fn address(&self) -> String {
        match self {
            Self::Now => "/".to_owned(),
            Self::Goal { id } => format!("/goals/{}", seg(id)),
            Self::Run { id, stage, iteration } => {
                let chosen = [("stage", stage), ("iteration", iteration)];
                let chosen = chosen.iter().filter_map(|(name, number)| number.map(|number| format!("{name}={number}")));
                let query = chosen.collect::<Vec<_>>().join("&");
                format!("/runs/{}{}{query}", seg(id), if query.is_empty() { "" } else { "?" })
            }
            Self::Usage { days } => format!("/usage?days={days}"),
            Self::Search { words } => format!("/search?q={}", seg(words)),
            Self::Help => "/help".to_owned(),
        }
    }
}

/// A page as HTML.
pub(crate) fn html(paths: &Paths, page: &Page, shell: &PageShell) -> RenderedPage {
    rendered(page, shell, content(paths, page))
}

fn rendered(page: &Page, shell: &PageShell, content: Result<(String, Value), PageError>) -> RenderedPage {
    let (name, part) = page.template();
    let (status, template, title, values) = match content {
        Ok((title, values)) => (200, name, title, values),
        Err(PageError::Store(StoreError::Missing(path))) => {
            let status = if *page == Page::Now { 200 } else { 404 };
            (status, "first.html", "Welcome".to_owned(), context! { store => path.to_string_lossy() })
        }
        Err(error) => {
            let values = context! { message => error.to_string(), hint => error.hint() };
            (error.status(), "trouble.html", "Trouble".to_owned(), values)
        }
    };
    let notice = shell.notice.as_ref().map(|notice| context! { is_error => notice.is_error, text => &notice.text });
    let around = context! {
        title, part, notice, is_read_only => shell.read_only, address => page.address(), now_ms => clock::now(),
    };
    match template::render(template, &context! { ..values, ..around }) {
        Ok(html) => RenderedPage { status, html },
        Err(message) => RenderedPage { status: 500, html: template::broken(&message) },
    }
}

/// The title of a page and the values of its template.
fn content(paths: &Paths, page: &Page) -> Result<(String, Value), PageError> {
    let at = clock::now();
    if *page == Page::Help {
        return Ok(("Help".to_owned(), context! {}));
    }
    let store = Store::open_existing(&paths.store)?;
    let db = store.read();
    match page {
        Page::Now => now::content(db, paths, at),
        Page::Goal { id } => goal::content(db, paths, id, at),
        Page::Run { id, stage, iteration } => run::content(db, paths, id, (*stage, *iteration), at),
        Page::Usage { days } => usage::content(db, paths, *days, at),
        Page::Search { words } => {
            let found = find::find(db, words, MOST_FOUND)?;
            let is_cut = found.len() >= MOST_FOUND;
            Ok(("Search".to_owned(), context! { words, is_cut, found => serde(&found) }))
        }
        Page::Help => Ok(("Help".to_owned(), context! {})),
    }
}

/// A page as JSON: its read model, with a status.
pub(crate) fn json(paths: &Paths, page: &Page) -> (u16, String) {
    match model(paths, page) {
        Ok(text) => (200, text),
        Err(error) => (error.status(), json!({"error": error.to_string(), "hint": error.hint()}).to_string()),
    }
}

fn model(paths: &Paths, page: &Page) -> Result<String, PageError> {
    let at = clock::now();
    if *page == Page::Help {
        return Ok(json!({}).to_string());
    }
    let store = Store::open_existing(&paths.store)?;
    let db = store.read();
    match page {
        Page::Now => text(&crate::facts::now(db, paths, at)?),
        Page::Goal { id } => text(&goal::model(db, paths, id, at)?),
        Page::Run { id, .. } => text(&run::model(db, paths, id, None, at)?),
        Page::Usage { days } => text(&usage::model(paths, *days)?),
        Page::Search { words } => text(&find::find(db, words, MOST_FOUND)?),
        Page::Help => Ok(json!({}).to_string()),
    }
}

fn text(model: &impl Serialize) -> Result<String, PageError> {
    serde_json::to_string(model).map_err(|error| StoreError::Value(error.to_string()).into())
}

#[cfg(test)]
mod tests;
