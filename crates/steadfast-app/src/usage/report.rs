//! Views over what was collected: by day, month, session, five-hour block or model. Pure: time zone and filters
//! come in, rows go out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use super::summary::{SLOT_MS, SessionOf, Sum, Summary, Tokens, UNDATED};
use steadfast_model::clock::{HOUR, Millis};
use steadfast_model::host::Host;

/// How long a block lasts from the hour of its first response on.
const BLOCK_MS: Millis = 5 * HOUR;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum View {
    #[default]
    Daily,
    Monthly,
    Session,
    Blocks,
    Models,
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `None` for responses whose time is not known.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub responses: i64,
    pub tokens: Tokens,
    /// The cost of all responses that have a known price.
    pub priced_micros: i64,
    /// The tokens of the others.
    pub unpriced_tokens: i64,
}

impl Amounts {
    /// The cost in millionths of a dollar; `None` when a part of it is not known.
    pub fn cost_micros(&self) -> Option<i64> {
        (self.unpriced_tokens == 0).then_some(self.priced_micros)
    }

    fn add(&mut self, sum: &Sum) {
        self.responses += sum.responses;
        self.tokens.add(&sum.tokens);
        match sum.cost_micros {
            Some(cost) => self.priced_micros += cost,
            None => self.unpriced_tokens += sum.tokens.total(),
        }
    }

    pub fn join(&mut self, other: &Self) {
        self.responses += other.responses;
        self.tokens.add(&other.tokens);
        self.priced_micros += other.priced_micros;
        self.unpriced_tokens += other.unpriced_tokens;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    pub host: Host,
    pub models: BTreeSet<String>,
    /// The days of the first and the last response.
    pub days: Option<(Date, Date)>,
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

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub rows: Vec<Row>,
    pub totals: Amounts,
}

/// What to leave out.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub since: Option<Date>,
    pub project: Option<ProjectFilter>,
}

/// Sums up what the hosts wrote, as one view shows it.
pub fn report(view: View, summaries: &[(Host, Summary)], filter: &Filter, zone: &TimeZone) -> Report {
    let mut report = Report::default();
    for (host, summary) in summaries {
        let mut days = Days::new(zone);
        let wanted: Vec<bool> = summary.sessions.iter().map(|session| filter.takes(session)).collect();
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
            let day = days.of(sum.slot);
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
                amounts: Amounts::default(),
            });
            if !row.models.contains(model) {
                row.models.insert(model.clone());
            }
            if let Some(day) = day {
                let (first, last) = row.days.unwrap_or((day, day));
                row.days = Some((first.min(day), last.max(day)));
            }
            row.amounts.add(sum);
        }
        report.rows.extend(rows.into_values());
    }
    for row in &report.rows {
        report.totals.join(&row.amounts);
    }
    match view {
        // What was touched last is printed last, next to the prompt.
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
    let mut days = Vec::with_capacity(count);
    let mut day = last;
    for _ in 0..count {
        let total =
            rows.iter().filter(|row| row.key == Key::Day(Some(day))).map(|row| row.amounts.tokens.total()).sum();
        days.push(total);
        day = day.yesterday().unwrap_or(day);
    }
    days.reverse();
    days
}

/// Blocks begin at the full hour (UTC) of the first response that is in none, and last five hours. Slots come
/// in order of time. A pause of five hours always ends a block, since no block is longer.
fn block_of(slot: i64, block: &mut Option<Millis>) -> Option<Millis> {
    if slot == UNDATED {
        return None;
    }
    let at = slot * SLOT_MS;
    let start = block.filter(|start| at < start + BLOCK_MS).unwrap_or(at - at.rem_euclid(HOUR));
    *block = Some(start);
    Some(start)
}

/// The local day of a slot. Slots come in order, so that the last day's bounds nearly always answer.
struct Days<'a> {
    zone: &'a TimeZone,
    last: Option<(i64, i64, Date)>,
}

impl<'a> Days<'a> {
    fn new(zone: &'a TimeZone) -> Self {
        Self { zone, last: None }
    }

    fn of(&mut self, slot: i64) -> Option<Date> {
        if slot == UNDATED {
            return None;
        }
        if let Some((from, to, day)) = self.last
            && (from..to).contains(&slot)
        {
            return Some(day);
        }
        let moment = Timestamp::from_millisecond(slot.checked_mul(SLOT_MS)?).ok()?;
        let local = moment.to_zoned(self.zone.clone());
        let day = local.date();
        if let (Ok(from), Ok(to)) = (local.start_of_day(), local.tomorrow().and_then(|next| next.start_of_day())) {
            let first = from.timestamp().as_millisecond().div_euclid(SLOT_MS);
            let end = to.timestamp().as_millisecond().div_euclid(SLOT_MS);
            self.last = Some((first, end, day));
        }
        Some(day)
    }
}

impl Filter {
    fn takes(&self, session: &SessionOf) -> bool {
        self.project.as_ref().is_none_or(|project| project.takes(&session.project))
    }
}

/// Projects a person named: a directory with everything below it, or the name of a directory anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectFilter {
    Below(PathBuf),
    Named(String),
}

impl ProjectFilter {
    /// What has a slash, `.` and `..` are paths, seen from `here`; everything else is a name.
    pub fn new(text: &str, here: &Path) -> Self {
        if text.contains('/') || matches!(text, "." | "..") {
            Self::Below(plain_path(&here.join(text)))
        } else {
            Self::Named(text.to_owned())
        }
    }

    /// Whether a project is one of them.
    pub fn takes(&self, project: &str) -> bool {
        match self {
            Self::Below(directory) => Path::new(project).starts_with(directory),
            Self::Named(name) => {
                project == name || Path::new(project).file_name().is_some_and(|last| last == name.as_str())
            }
        }
    }
}

/// A path without `.` and `..`. Projects may be gone, so the disk cannot be asked.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
