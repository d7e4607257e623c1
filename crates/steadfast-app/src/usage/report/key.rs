//! What a row of a view stands for, and how it is written in JSON.

use jiff::civil::{Date, Weekday};
use serde_json::{Value, json};

use super::{BLOCK_MS, View};
use steadfast_model::clock::{self, HOUR, Millis};

/// What a row stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `None` for responses without a time.
    Day(Option<Date>),
    /// The week's Monday.
    Week(Option<Date>),
    /// The month's first day.
    Month(Option<Date>),
    Session {
        id: String,
        project: String,
    },
    Block {
        start: Option<Millis>,
    },
    /// A model, a project, a kind of agent or a tool.
    Named(String),
}

/// What the keys of one sum are made of.
pub(super) struct SumPlace<'a> {
    pub(super) at: Option<Millis>,
    pub(super) day: Option<Date>,
    pub(super) session: &'a str,
    pub(super) project: &'a str,
    pub(super) model: &'a str,
    pub(super) tool: &'a str,
    pub(super) agent: &'a str,
}

impl Key {
    /// The row of a view that a sum belongs to. `block` is the block of the sum before it in time.
    pub(super) fn of(view: View, place: &SumPlace<'_>, block: &mut Option<Millis>) -> Self {
        match view {
            View::Daily => Self::Day(place.day),
            View::Weekly => Self::Week(place.day.and_then(monday_of)),
            View::Monthly => Self::Month(place.day.map(Date::first_of_month)),
            View::Session => Self::Session { id: place.session.to_owned(), project: place.project.to_owned() },
            View::Blocks => Self::Block { start: block_of(place.at, block) },
            View::Models => Self::Named(place.model.to_owned()),
            View::Projects => Self::Named(place.project.to_owned()),
            View::Agents => Self::Named(named(place.agent, "(main)")),
            View::Tools => Self::Named(named(place.tool, "(none)")),
        }
    }

    /// The end of a block.
    pub fn block_end(&self) -> Option<Millis> {
        match self {
            Self::Block { start } => start.map(|start| start + BLOCK_MS),
            _ => None,
        }
    }

    pub(super) fn json(&self, view: View, days: Option<(Date, Date)>, is_active: bool) -> Value {
        let text = |day: &Option<Date>| day.map(|day| day.to_string());
        match self {
            Self::Day(day) => json!({"date": text(day)}),
            Self::Week(day) => json!({"week": text(day)}),
            Self::Month(day) => json!({"month": day.map(|day| day.strftime("%Y-%m").to_string())}),
            Self::Session { id, project } => {
                let (first, last) = days.map(|(first, last)| (first.to_string(), last.to_string())).unzip();
                json!({"session_id": id, "project": project, "first_date": first, "last_date": last})
            }
            Self::Block { start } => {
                let (start, end) = (start.map(clock::wall_to_rfc3339), self.block_end().map(clock::wall_to_rfc3339));
                json!({"start": start, "end": end, "active": is_active})
            }
            Self::Named(name) => {
                let field = match view {
                    View::Projects => "project",
                    View::Agents => "agent_type",
                    View::Tools => "tool",
                    _ => "model",
                };
                json!({field: name})
            }
        }
    }
}

fn named(name: &str, otherwise: &str) -> String {
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

/// A week begins on Monday.
fn monday_of(day: Date) -> Option<Date> {
    if day.weekday() == Weekday::Monday { Some(day) } else { day.nth_weekday(-1, Weekday::Monday).ok() }
}

/// A block begins at the full hour (UTC) of the first response after the last block, and lasts five hours. Sums come
/// in order of time.
fn block_of(at: Option<Millis>, block: &mut Option<Millis>) -> Option<Millis> {
    let at = at?;
    let start = block.filter(|start| at < start + BLOCK_MS).unwrap_or(at - at.rem_euclid(HOUR));
    *block = Some(start);
    Some(start)
}
