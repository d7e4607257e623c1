//! What the screen shows and what the user is doing on it. Plain data: `update` changes it, `draw` shows it.

use steadfast_app::overview::find::Found;
use steadfast_app::overview::goal_page::GoalPage;
use steadfast_app::overview::now::{Action, Now, Subject};
use steadfast_app::overview::runs::RunDetail;
use steadfast_app::usage::charts::UsageCharts;
use steadfast_model::clock::Millis;

use super::rows::{self, TopRow};
use super::style::Palette;

/// From this width on, the details of the selected row are beside the list.
pub(super) const PANE_FROM: u16 = 140;

/// What fills the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TopPlace {
    #[default]
    Now,
    /// Only runs.
    Runs,
    Usage,
    /// The results of a search.
    Found,
}

/// What keys mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Normal,
    /// After `g`.
    Go,
    Help,
    Search,
    /// Words for an action.
    Prompt(Box<TextPrompt>),
    /// Yes or no to an action.
    Confirm(Box<OpenQuestion>),
}

/// An action that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenQuestion {
    pub(super) action: Action,
    pub(super) subject: Subject,
    pub(super) stage: Option<String>,
    pub(super) question: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPrompt {
    pub(super) action: Action,
    pub(super) subject: Subject,
    pub(super) stage: Option<String>,
    pub(super) label: &'static str,
    pub(super) help: &'static str,
    pub(super) typed: String,
}

/// What is known about the store.
#[derive(Debug, Clone, Default)]
pub(super) enum SeenView {
    /// The first look is under way.
    #[default]
    Nothing,
    /// There is no store yet.
    Missing,
    Now(Box<Now>),
}

/// Why the store cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadTrouble {
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) since_ms: Millis,
}

/// The details of a goal or run.
#[derive(Debug, Clone)]
pub(super) enum Detail {
    Goal(Box<GoalPage>),
    Run {
        run: Box<RunDetail>,
        log: Vec<String>,
    },
    /// Nothing more than its row is known.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopStatus {
    pub(super) text: String,
    pub(super) kind: StatusKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusKind {
    /// Something is under way.
    Busy,
    Done,
    Failed,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Usage {
    #[default]
    Unread,
    Reading,
    Failed(String),
    Read(Box<UsageCharts>),
}

#[derive(Debug, Clone)]
pub(super) struct TopState {
    pub(super) palette: Palette,
    pub(super) columns: u16,
    pub(super) lines: u16,
    /// The time of the last tick.
    pub(super) at_ms: Millis,
    pub(super) seen: SeenView,
    pub(super) trouble: Option<ReadTrouble>,
    pub(super) place: TopPlace,
    pub(super) mode: Mode,
    pub(super) search: String,
    pub(super) found: Vec<Found>,
    pub(super) rows: Vec<TopRow>,
    pub(super) selected: usize,
    /// The details fill the screen.
    pub(super) is_open: bool,
    pub(super) detail: Option<(Subject, Detail)>,
    /// The details that were asked for.
    pub(super) asked: Option<Subject>,
    pub(super) scroll: usize,
    pub(super) status: Option<TopStatus>,
    pub(super) usage: Usage,
}

impl TopState {
    pub(super) fn new(columns: u16, lines: u16, palette: Palette) -> Self {
        Self {
            palette,
            columns,
            lines,
            at_ms: 0,
            seen: SeenView::Nothing,
            trouble: None,
            place: TopPlace::Now,
            mode: Mode::Normal,
            search: String::new(),
            found: Vec::new(),
            rows: Vec::new(),
            selected: 0,
            is_open: false,
            detail: None,
            asked: None,
            scroll: 0,
            status: None,
            usage: Usage::Unread,
        }
    }

    pub(super) fn now(&self) -> Option<&Now> {
        match &self.seen {
            SeenView::Now(now) => Some(now),
            SeenView::Nothing | SeenView::Missing => None,
        }
    }

    pub(super) fn row(&self) -> Option<&TopRow> {
        self.rows.get(self.selected)
    }

    pub(super) fn has_pane(&self) -> bool {
        self.columns >= PANE_FROM && !self.is_open && self.place != TopPlace::Usage
    }

    /// The goal or run whose details are on the screen.
    pub(super) fn shown(&self) -> Option<&Subject> {
        self.row().and_then(|row| row.subject.as_ref()).filter(|_| self.is_open || self.has_pane())
    }

    /// Makes the rows anew. What was selected stays selected, also where it moved to another section.
    pub(super) fn list_rows(&mut self) {
        let before = self.row().cloned();
        let live = self.now().map(|now| rows::of_now(now, "")).unwrap_or_default();
        self.rows = match self.place {
            TopPlace::Found => rows::of_found(&self.found, &live),
            TopPlace::Now | TopPlace::Usage => {
                self.now().map(|now| rows::of_now(now, &self.search)).unwrap_or_default()
            }
            TopPlace::Runs => {
                let rows = self.now().map(|now| rows::of_now(now, &self.search)).unwrap_or_default();
                rows.into_iter().filter(TopRow::is_run).collect()
            }
        };
        let had_row = before.is_some();
        let same = before.and_then(|before| {
            let at = |is_same: &dyn Fn(&TopRow) -> bool| self.rows.iter().position(is_same);
            at(&|row| row.section == before.section && row.is_about(&before))
                .or_else(|| at(&|row| row.is_about(&before)))
        });
        // The details of another goal must not take the place of those that the user looks at.
        self.is_open &= same.is_some() || !had_row;
        self.selected = same.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }
}
