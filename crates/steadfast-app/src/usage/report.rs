//! The read model of `usage`: rows by day, week, month, session, five-hour block, model, project, kind of agent or tool.
//! Table and JSON are two forms of the same [`UsageReport`]. Pure: time zone and filters come in, rows go out.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use super::summary::{SLOT_MS, Sum, Summary, UNDATED};
use steadfast_model::clock::{HOUR, Millis};
use steadfast_model::host::Host;
use steadfast_model::price::dollars;
use steadfast_model::reading::Tokens;

mod burn;
mod filter;
mod key;

use self::key::SumPlace;
pub use burn::Burn;
pub use filter::{Filter, ProjectFilter};
pub use key::Key;

/// The length of a block, from the hour of its first response.
const BLOCK_MS: Millis = 5 * HOUR;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantNames, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum View {
    #[default]
    Daily,
    Weekly,
    Monthly,
    Session,
    Blocks,
    Models,
    Projects,
    Agents,
    Tools,
}

impl View {
    /// Whether rows are in order of time; others are in order of cost.
    pub fn is_by_time(self) -> bool {
        matches!(self, Self::Daily | Self::Weekly | Self::Monthly | Self::Session | Self::Blocks)
    }
}

/// Which rows of a view to return, and in which order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this many rows: the newest, or the most expensive.
    pub last: Option<usize>,
    /// The newest, or the most expensive, row first. By default views by time are ascending and others descending.
    pub is_descending: Option<bool>,
    /// Only blocks that run now.
    pub only_active: bool,
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
    /// A part of the cost is unknown, even if no tokens are.
    pub cost_unknown: bool,
    /// A part of the tokens is unknown: an agent of a run did not report them.
    pub tokens_unknown: bool,
}

impl From<Amounts> for Value {
    fn from(amounts: Amounts) -> Self {
        let tokens = amounts.tokens;
        let known = |count: i64| amounts.known(count);
        let total = (!amounts.tokens_unknown).then(|| tokens.total());
        json!({
            "responses": amounts.responses, "input_tokens": known(tokens.input), "output_tokens": known(tokens.output),
            "cache_creation_tokens": known(tokens.cache_creation), "cache_read_tokens": known(tokens.cache_read),
            "total_tokens": total, "cost_usd": amounts.cost_micros().map(dollars),
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
            cost_unknown: sum.cost_micros.is_none(),
            tokens_unknown: false,
        }
    }
}

impl Amounts {
    /// The cost in millionths of a dollar; `None` when a part of it is unknown.
    pub fn cost_micros(&self) -> Option<i64> {
        (!self.cost_unknown).then_some(self.priced_micros)
    }

    /// One of the counts of tokens; `None` when nothing of them is known. Of a sum, the known part is shown.
    pub fn known(&self, count: i64) -> Option<i64> {
        (!self.tokens_unknown || self.tokens != Tokens::default()).then_some(count)
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.responses = self.responses.map_or(other.responses, |own| Some(own + other.responses.unwrap_or(0)));
        self.tokens += other.tokens;
        self.priced_micros += other.priced_micros;
        self.unpriced_tokens += other.unpriced_tokens;
        self.cost_unknown |= other.cost_unknown;
        self.tokens_unknown |= other.tokens_unknown;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub view: View,
    pub key: Key,
    pub host: Host,
    /// Empty in the view by model.
    pub models: BTreeMap<String, Amounts>,
    /// Whether the amounts of each model are part of the row.
    pub has_breakdown: bool,
    /// The days of the first and the last response.
    pub days: Option<(Date, Date)>,
    /// The rate of a block that has not ended yet.
    pub burn: Option<Burn>,
    /// The first moment that is known of, exact to a quarter of an hour.
    pub first_ms: Option<Millis>,
    pub amounts: Amounts,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct RowJson<'a> {
            #[serde(flatten)]
            key: Value,
            host: Host,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            models: Vec<&'a String>,
            #[serde(flatten)]
            amounts: Amounts,
            #[serde(skip_serializing_if = "Option::is_none")]
            breakdown: Option<Vec<Value>>,
            #[serde(flatten)]
            burn: Option<Value>,
        }
        let breakdown = self.models.iter().map(|(model, amounts)| {
            let mut part = Value::from(*amounts);
            part["model"] = json!(model);
            part
        });
        RowJson {
            key: self.key.json(self.view, self.days, self.burn.is_some()),
            host: self.host,
            models: self.models.keys().collect(),
            amounts: self.amounts,
            breakdown: self.has_breakdown.then(|| breakdown.collect()),
            burn: self.burn.map(|burn| burn.json()),
        }
        .serialize(serializer)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    pub view: View,
    pub totals: Amounts,
    pub rows: Vec<Row>,
}

/// Sums up what the hosts wrote, as one view shows it.
pub fn report(
    view: View,
    summaries: &[(Host, Summary)],
    filter: &Filter,
    select: Selection,
    zone: &TimeZone,
    now: Millis,
) -> UsageReport {
    let mut rows: Vec<Row> = Vec::new();
    for (host, summary) in summaries {
        rows.extend(rows_of_host(view, *host, summary, filter, zone));
    }
    for row in &mut rows {
        let end = row.key.block_end().filter(|end| now < *end);
        row.burn = end.zip(row.first_ms).map(|(end, first)| Burn::new(&row.amounts, first, end, now));
    }
    rows.retain(|row| !select.only_active || row.burn.is_some());
    match view {
        // The newest session is printed last, next to the prompt.
        View::Session => rows.sort_by(|a, b| (a.days.map(|d| d.1), &a.key).cmp(&(b.days.map(|d| d.1), &b.key))),
        _ if view.is_by_time() => rows.sort_by(|a, b| a.key.cmp(&b.key)),
        _ => rows.sort_by_key(|row| (row.amounts.priced_micros, row.amounts.tokens.total())),
    }
    rows.drain(..rows.len().saturating_sub(select.last.unwrap_or(usize::MAX)));
    if select.is_descending.unwrap_or(!view.is_by_time()) {
        rows.reverse();
    }
    let mut totals = Amounts { responses: Some(0), ..Amounts::default() };
    for row in &rows {
        totals += row.amounts;
    }
    UsageReport { view, totals, rows }
}

fn rows_of_host(
    view: View,
    host: Host,
    summary: &Summary,
    filter: &Filter,
    zone: &TimeZone,
) -> impl Iterator<Item = Row> + use<> {
    let wanted: Vec<bool> = summary.sessions.iter().map(|session| filter.matches(session)).collect();
    let name = |index: u32| summary.names.get(index as usize).map_or("", String::as_str);
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
        let (at, day) = (moment_of(sum.slot), day_of(sum.slot, zone));
        if !filter.has_day(day) {
            continue;
        }
        let (tool, agent) = (name(sum.tool), name(sum.agent));
        let place = SumPlace { at, day, session: &session.id, project: &session.project, model, tool, agent };
        let row = rows.entry(Key::of(view, &place, &mut block)).or_insert_with_key(|key| Row {
            view,
            key: key.clone(),
            host,
            models: BTreeMap::new(),
            has_breakdown: filter.breakdown,
            days: None,
            burn: None,
            first_ms: at,
            amounts: Amounts::default(),
        });
        if view != View::Models {
            *row.models.entry(model.clone()).or_default() += sum.into();
        }
        if let Some(day) = day {
            let (first, last) = row.days.unwrap_or((day, day));
            row.days = Some((first.min(day), last.max(day)));
        }
        row.amounts += sum.into();
    }
    rows.into_values()
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

fn moment_of(slot: i64) -> Option<Millis> {
    if slot == UNDATED { None } else { slot.checked_mul(SLOT_MS) }
}

/// The local day of a slot.
fn day_of(slot: i64, zone: &TimeZone) -> Option<Date> {
    let moment = Timestamp::from_millisecond(moment_of(slot)?).ok()?;
    Some(zone.to_datetime(moment).date())
}

#[cfg(test)]
mod tests;
