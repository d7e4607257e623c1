//! What can be selected: the rows of the list, in the order in which they are shown.

use steadfast_app::overview::find::Found;
use steadfast_app::overview::now::{Action, GoalCard, NeedKind, Now, RunCard, Subject};

use super::words;

/// Where a row is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowSection {
    Needs,
    Working,
    Runs,
    /// Runs on the fleet: nothing can be done to them from here.
    Fleet,
    Waiting,
    Ended,
    Found,
}

/// One goal, run or result of a search. `index` is its place in the list of its section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopRow {
    pub(super) section: RowSection,
    pub(super) index: usize,
    pub(super) subject: Option<Subject>,
    pub(super) title: String,
    pub(super) actions: Vec<Action>,
    /// The stage that waits for an approval.
    pub(super) stage: Option<u32>,
    pub(super) need: Option<NeedKind>,
    /// What a search looks through.
    words: String,
}

impl TopRow {
    fn new(section: RowSection, index: usize, subject: Option<Subject>, title: &str, actions: &[Action]) -> Self {
        let title = words::plain(title);
        let words = title.to_lowercase();
        Self { section, index, subject, title, actions: actions.to_vec(), stage: None, need: None, words }
    }

    fn found_by(mut self, more: &[&str]) -> Self {
        for text in more {
            self.words.push(' ');
            self.words.push_str(&text.to_lowercase());
        }
        self
    }

    /// Whether all words of a search are in it.
    fn matches(&self, search: &str) -> bool {
        search.to_lowercase().split_whitespace().all(|word| self.words.contains(word))
    }

    pub(super) fn is_run(&self) -> bool {
        matches!(self.subject, Some(Subject::Run { .. } | Subject::Appointment { .. }))
    }

    /// Whether both are about the same goal or run.
    pub(super) fn is_about(&self, other: &Self) -> bool {
        self.subject.is_some() && self.subject == other.subject
    }
}

pub(super) fn of_goal(card: &GoalCard) -> Subject {
    Subject::Goal {
        goal_id: card.goal.goal_id.clone(),
        session_id: card.goal.session_id.clone(),
        host: card.goal.host.parse().unwrap_or_default(),
    }
}

pub(super) fn of_run(card: &RunCard) -> Subject {
    Subject::Run { run_id: card.run.run_id.clone(), name: card.run.name.clone(), kind: card.run.kind }
}

/// All rows about a machine, as far as they match a search.
pub(super) fn of_now(now: &Now, search: &str) -> Vec<TopRow> {
    let mut rows = Vec::new();
    for (index, need) in now.needs.iter().enumerate() {
        let mut row = TopRow::new(RowSection::Needs, index, Some(need.subject.clone()), &need.title, &need.actions);
        row.stage = need.stage;
        row.need = Some(need.kind);
        rows.push(row.found_by(&[need.kind.into(), need.project.as_deref().unwrap_or_default(), &need.why]));
    }
    for (index, card) in now.working.iter().enumerate() {
        let row = TopRow::new(RowSection::Working, index, Some(of_goal(card)), &card.goal.objective, &card.actions);
        rows.push(row.found_by(&[card.goal.host, card.goal.project_dir.as_deref().unwrap_or_default()]));
    }
    for (index, card) in now.runs.iter().enumerate() {
        let row = TopRow::new(RowSection::Runs, index, Some(of_run(card)), &card.run.name, &card.actions);
        rows.push(row.found_by(&[&card.run.title, &card.run.project]));
    }
    for (index, run) in now.fleet.iter().flat_map(|fleet| &fleet.runs).enumerate() {
        let row = TopRow::new(RowSection::Fleet, index, None, &run.name, &[]);
        rows.push(row.found_by(&["fleet", &run.title, &run.project]));
    }
    for (index, card) in now.waiting.iter().enumerate() {
        let row = TopRow::new(RowSection::Waiting, index, Some(card.subject.clone()), &card.title, &card.actions);
        rows.push(row.found_by(&[&card.what, card.project.as_deref().unwrap_or_default()]));
    }
    for (index, card) in now.ended.iter().enumerate() {
        let row = TopRow::new(RowSection::Ended, index, Some(card.subject.clone()), &card.title, &[]);
        rows.push(row.found_by(&[card.ending.into(), card.project.as_deref().unwrap_or_default()]));
    }
    rows.retain(|row| row.matches(search));
    rows
}

/// The rows of a search, with what can be done to those that are live.
pub(super) fn of_found(found: &[Found], live: &[TopRow]) -> Vec<TopRow> {
    let row = |(index, found): (usize, &Found)| {
        let mut row = TopRow::new(RowSection::Found, index, found.subject.clone(), &found.title, &[]);
        if let Some(same) = live.iter().find(|same| same.is_about(&row)) {
            (row.actions, row.stage, row.need) = (same.actions.clone(), same.stage, same.need);
        }
        row
    };
    found.iter().enumerate().map(row).collect()
}
