//! The read model of `usage`: rows by day, month, session, five-hour block or model. Table and JSON are two forms of
//! the same [`UsageReport`]. Pure: time zone and filters come in, rows go out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use super::summary::{SLOT_MS, Sum, Summary, UNDATED};
use steadfast_model::clock::{self, HOUR, Millis};
use steadfast_model::host::Host;
use steadfast_model::price::dollars;
use steadfast_model::reading::Tokens;

mod filter;

pub use filter::{Filter, ProjectFilter};

/// The length of a block, from the hour of its first response.
const BLOCK_MS: Millis = 5 * HOUR;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantNames, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum View {
    #[default]
    Daily,
    Monthly,
    Session,
    Blocks,
    Models,
}

/// What a row stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `None` for responses without a time.
    Day(Option<Date>),
    /// The month's first day.
    Month(Option<Date>),
    Session {
        id: String,
        project: String,
    },
    Block {
        start: Option<Millis>,
    },
    Model(String),
}

/// Responses, their tokens and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(into = "Value")]
pub struct Amounts {
    /// `None` where responses are not counted: a run knows the tokens of its agents only.
    pub responses: Option<i64>,
    pub tokens: Tokens,
    /// The cost of all tokens that have a known price.
    pub priced_micros: i64,
    /// The other tokens.
    pub unpriced_tokens: i64,
}

impl From<Amounts> for Value {
    fn from(amounts: Amounts) -> Self {
        let tokens = amounts.tokens;
        json!({
            "responses": amounts.responses, "input_tokens": tokens.input, "output_tokens": tokens.output,
            "cache_creation_tokens": tokens.cache_creation, "cache_read_tokens": tokens.cache_read,
            "total_tokens": tokens.total(), "cost_usd": amounts.cost_micros().map(dollars),
            "priced_cost_usd": dollars(amounts.priced_micros), "unpriced_tokens": amounts.unpriced_tokens,
        })
    }
}

impl From<&Sum> for Amounts {
    fn from(sum: &Sum) -> Self {
        Self {
            responses: Some(sum.responses),
            tokens: sum.tokens,
            priced_micros: sum.cost_micros.unwrap_or(0),
            unpriced_tokens: if sum.cost_micros.is_some() { 0 } else { sum.tokens.total() },
        }
    }
}

impl Amounts {
    /// The cost in millionths of a dollar; `None` when a part of it is unknown.
    pub fn cost_micros(&self) -> Option<i64> {
        (self.unpriced_tokens == 0).then_some(self.priced_micros)
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.responses = self.responses.map_or(other.responses, |own| Some(own + other.responses.unwrap_or(0)));
        self.tokens += other.tokens;
        self.priced_micros += other.priced_micros;
        self.unpriced_tokens += other.unpriced_tokens;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    pub host: Host,
    /// Empty in the view by model.
    pub models: BTreeSet<String>,
    /// The days of the first and the last response.
    pub days: Option<(Date, Date)>,
    /// A block that has not ended yet.
    pub is_active: bool,
    pub amounts: Amounts,
}

impl Row {
    /// The end of a block.
    pub fn block_end(&self) -> Option<Millis> {
        match self.key {
            Key::Block { start } => start.map(|start| start + BLOCK_MS),
            _ => None,
        }
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct RowJson<'a> {
            #[serde(flatten)]
            key: Value,
            host: Host,
            #[serde(skip_serializing_if = "BTreeSet::is_empty")]
            models: &'a BTreeSet<String>,
            #[serde(flatten)]
            amounts: Amounts,
        }
        let key = match &self.key {
            Key::Day(day) => json!({"date": day.map(|day| day.to_string())}),
            Key::Month(month) => json!({"month": month.map(|day| day.strftime("%Y-%m").to_string())}),
            Key::Session { id, project } => {
                let (first, last) = self.days.map(|(first, last)| (first.to_string(), last.to_string())).unzip();
                json!({"session_id": id, "project": project, "first_date": first, "last_date": last})
            }
            Key::Block { start } => {
                let (start, end) = (start.map(clock::to_rfc3339), self.block_end().map(clock::to_rfc3339));
                json!({"start": start, "end": end, "active": self.is_active})
            }
            Key::Model(model) => json!({"model": model}),
        };
        RowJson { key, host: self.host, models: &self.models, amounts: self.amounts }.serialize(serializer)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    pub view: View,
    pub totals: Amounts,
    pub rows: Vec<Row>,
}

/// Sums up what the hosts wrote, as one view shows it.
pub fn report(view: View, summaries: &[(Host, Summary)], filter: &Filter, zone: &TimeZone, now: Millis) -> UsageReport {
    let totals = Amounts { responses: Some(0), ..Amounts::default() };
    let mut report = UsageReport { view, totals, rows: Vec::new() };
    for (host, summary) in summaries {
        let wanted: Vec<bool> = summary.sessions.iter().map(|session| filter.matches(session)).collect();
        let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
        let mut block: Option<Millis> = None;
        for sum in &summary.sums {
            let (Some(true), Some(session), Some(model)) = (
                wanted.get(sum.session as usize),
                summary.sessions.get(sum.session as usize),
                summary.models.get(sum.model as usize),
            ) else {
                continue;
            };
            let day = day_of(sum.slot, zone);
            if filter.since.is_some_and(|since| day.is_none_or(|day| day < since)) {
                continue;
            }
            let key = match view {
                View::Daily => Key::Day(day),
                View::Monthly => Key::Month(day.map(Date::first_of_month)),
                View::Session => Key::Session { id: session.id.clone(), project: session.project.clone() },
                View::Blocks => Key::Block { start: block_of(sum.slot, &mut block) },
                View::Models => Key::Model(model.clone()),
            };
            let row = rows.entry(key).or_insert_with_key(|key| Row {
                key: key.clone(),
                host: *host,
                models: BTreeSet::new(),
                days: None,
                is_active: false,
                amounts: Amounts::default(),
            });
            if view != View::Models && !row.models.contains(model) {
                row.models.insert(model.clone());
            }
            if let Some(day) = day {
                let (first, last) = row.days.unwrap_or((day, day));
                row.days = Some((first.min(day), last.max(day)));
            }
            row.amounts += sum.into();
        }
        report.rows.extend(rows.into_values());
    }
    for row in &mut report.rows {
        row.is_active = row.block_end().is_some_and(|end| now < end);
        report.totals += row.amounts;
    }
    match view {
        // The newest session is printed last, next to the prompt.
        View::Session => report.rows.sort_by(|a, b| (a.days.map(|d| d.1), &a.key).cmp(&(b.days.map(|d| d.1), &b.key))),
        View::Models => {
            report.rows.sort_by_key(|row| std::cmp::Reverse((row.amounts.priced_micros, row.amounts.tokens.total())));
        }
        View::Daily | View::Monthly | View::Blocks => report.rows.sort_by(|a, b| a.key.cmp(&b.key)),
    }
    report
}

/// Total tokens of each of the days up to `last`, the oldest first.
pub fn recent_days(rows: &[Row], last: Date, count: usize) -> Vec<i64> {
    let total = |day: Date| {
        rows.iter().filter(|row| row.key == Key::Day(Some(day))).map(|row| row.amounts.tokens.total()).sum()
    };
    let mut days: Vec<i64> =
        std::iter::successors(Some(last), |day| day.yesterday().ok()).take(count).map(total).collect();
    days.reverse();
    days
}

/// A block begins at the full hour (UTC) of the first response after the last block, and lasts five hours. Slots come
/// in order of time.
fn block_of(slot: i64, block: &mut Option<Millis>) -> Option<Millis> {
    if slot == UNDATED {
        return None;
    }
    let at = slot * SLOT_MS;
    let start = block.filter(|start| at < start + BLOCK_MS).unwrap_or(at - at.rem_euclid(HOUR));
    *block = Some(start);
    Some(start)
}

/// The local day of a slot.
fn day_of(slot: i64, zone: &TimeZone) -> Option<Date> {
    if slot == UNDATED {
        return None;
    }
    let moment = Timestamp::from_millisecond(slot.checked_mul(SLOT_MS)?).ok()?;
    Some(zone.to_datetime(moment).date())
}

#[cfg(test)]
mod tests;
