//! From a path to what it means.

use percent_encoding::percent_decode_str;

use super::answer::PostedForm;
use super::fields::Fields;
use super::guard::{ENTER, METRICS};
use super::pages::Page;
use crate::actions::ActionTarget;
use steadfast_app::overview::now::Action;

const DAYS: usize = 30;
const MOST_DAYS: usize = 366;
const LONGEST_ID: usize = 100;
const LONGEST_SEARCH: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Page { page: Page, form: PostedForm },
    Log { run_id: String },
    Diff { run_id: String },
    Act { target: ActionTarget, action: Action },
    Asset(String),
    Events,
    Metrics,
    Enter(String),
}

impl Route {
    pub(crate) fn of(path: &str, query: &Fields) -> Option<Self> {
        match path {
            "/events" => return Some(Self::Events),
            METRICS => return Some(Self::Metrics),
            _ => {}
        }
        if let Some(key) = path.strip_prefix(ENTER) {
            return Some(Self::Enter(key.to_owned()));
        }
        if let Some(name) = path.strip_prefix("/assets/") {
            return Some(Self::Asset(name.to_owned()));
        }
        let (path, form) = match path.strip_suffix(".json") {
            Some(path) => (path, PostedForm::Json),
            None => (path, PostedForm::Html),
        };
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let page = |page| Some(Self::Page { page, form });
        match parts.as_slice() {
            [""] if form == PostedForm::Html => page(Page::Now),
            ["now"] => page(Page::Now),
            ["usage"] => page(Page::Usage { days: query.number("days").unwrap_or(DAYS).clamp(1, MOST_DAYS) }),
            ["search"] => {
                let words = query.get("q").unwrap_or_default().chars().take(LONGEST_SEARCH).collect();
                page(Page::Search { words })
            }
            ["help"] => page(Page::Help),
            ["goals", goal] => page(Page::Goal { id: id(goal)? }),
            ["runs", run] => {
                page(Page::Run { id: id(run)?, stage: query.number("stage"), iteration: query.number("iteration") })
            }
            ["runs", run, "log"] => Some(Self::Log { run_id: id(run)? }),
            ["runs", run, "diff"] => Some(Self::Diff { run_id: id(run)? }),
            ["goals", goal, action] => Some(Self::Act { target: ActionTarget::Goal(id(goal)?), action: word(action)? }),
            ["runs", run, action] => Some(Self::Act { target: ActionTarget::Run(id(run)?), action: word(action)? }),
            _ => None,
        }
    }

    pub(crate) fn changes(&self) -> bool {
        matches!(self, Self::Act { .. })
    }
}

fn word(action: &str) -> Option<Action> {
    action.replace('-', "_").parse().ok()
}

/// Ids are ours, or of hosts: letters, digits and a few signs.
fn id(encoded: &str) -> Option<String> {
    let id = percent_decode_str(encoded).decode_utf8().ok()?.into_owned();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let is_id = (1..=LONGEST_ID).contains(&id.len()) && id.starts_with(|c: char| c.is_ascii_alphanumeric());
    (is_id && id.chars().all(is_plain)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_pages_files_and_actions() {
        let none = Fields::default();
        let html = |page| Some(Route::Page { page, form: PostedForm::Html });
        let json = |page| Some(Route::Page { page, form: PostedForm::Json });
        let goal = || Page::Goal { id: "a-1".into() };
        let run = |stage, iteration| Page::Run { id: "r1".into(), stage, iteration };
        let of = |path| Route::of(path, &none);
        assert_eq!(of("/"), html(Page::Now));
        assert_eq!(of("/now.json"), json(Page::Now));
        assert_eq!(of("/goals/a-1"), html(goal()));
        assert_eq!(of("/goals/a%2d1.json"), json(goal()));
        assert_eq!(Route::of("/runs/r1", &Fields::parse("stage=2&iteration=x")), html(run(Some(2), None)));
        assert_eq!(Route::of("/usage.json", &Fields::parse("days=9999")), json(Page::Usage { days: 366 }));
        assert_eq!(of("/usage"), html(Page::Usage { days: 30 }));
        assert_eq!(Route::of("/search", &Fields::parse("q=a+b")), html(Page::Search { words: "a b".into() }));
        assert_eq!(of("/help"), html(Page::Help));
        assert_eq!(of("/runs/r1/log"), Some(Route::Log { run_id: "r1".into() }));
        assert_eq!(of("/runs/r1/diff"), Some(Route::Diff { run_id: "r1".into() }));
        let act = |target, action| Some(Route::Act { target, action });
        assert_eq!(of("/goals/g/queue-move"), act(ActionTarget::Goal("g".into()), Action::QueueMove));
        assert_eq!(of("/runs/r1/kill"), act(ActionTarget::Run("r1".into()), Action::Kill));
        for nothing in [
            "",
            "/.json",
            "//",
            "/goals",
            "/goals/",
            "/goals/../x",
            "/goals/..",
            "/goals/-x",
            "/goals/a%2fb",
            "/goals/a%00",
            "/goals/a/b",
            "/goals/a/kill/c",
            "/runs/r1/rm",
            "/nothing",
        ] {
            assert_eq!(of(nothing), None, "{nothing}");
        }
        assert_eq!(of(&format!("/goals/{}", "a".repeat(101))), None);
    }
}
