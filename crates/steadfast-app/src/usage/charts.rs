//! The read model of the usage page and of `usage --chart`: days by model, hours by weekday, and the other views beside
//! them. Pure, as `report` is.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use serde::Serialize;

use super::report::{self, Amounts, Filter, Key, Row, Selection, UsageReport, View};
use super::summary::{SLOT_MS, Summary, UNDATED};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::price::dollars;

/// The longest chart.
const MOST_DAYS: usize = 366;
/// Rows of the other views.
const ROWS: usize = 20;
const BLOCKS: usize = 8;

/// What one model used on a day.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelDay {
    pub model: String,
    pub tokens: i64,
    /// The part with a known price.
    pub cost_usd: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageDayView {
    /// `2026-11-17`
    pub date: String,
    /// The most expensive first.
    pub models: Vec<ModelDay>,
    pub tokens: i64,
    pub cost_usd: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct UsageCharts {
    /// The last days up to today, oldest first, also those without usage.
    pub days: Vec<UsageDayView>,
    /// Tokens by weekday, Monday first, and hour of the day, over the same days.
    pub hours: Vec<[i64; 24]>,
    pub models: UsageReport,
    pub projects: UsageReport,
    /// The newest five-hour blocks, with the projection of the one that runs.
    pub blocks: UsageReport,
}

/// Charts of the last `days` days up to the day of `now`, by the wall clock.
pub fn charts(summaries: &[(Host, Summary)], days: usize, zone: &TimeZone, now: Millis) -> UsageCharts {
    let last = local(now, zone).map(|moment| moment.date());
    let count = days.clamp(1, MOST_DAYS);
    let first = last.and_then(|last| last.checked_sub(Span::new().days(i64::try_from(count).ok()? - 1)).ok());
    let filter = Filter { since: first, until: last, ..Filter::default() };
    let rows = |view, most| {
        report::report(view, summaries, &filter, Selection { last: most, ..Selection::default() }, zone, now)
    };
    UsageCharts {
        days: first.zip(last).map_or_else(Vec::new, |range| by_day(range, &rows(View::Daily, None).rows)),
        hours: by_hour(summaries, &filter, zone),
        models: rows(View::Models, Some(ROWS)),
        projects: rows(View::Projects, Some(ROWS)),
        blocks: rows(View::Blocks, Some(BLOCKS)),
    }
}

fn local(at: Millis, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(at).ok()?.to_zoned(zone.clone()))
}

/// Every day of the range, oldest first. The hosts of a day are one.
fn by_day((first, last): (Date, Date), rows: &[Row]) -> Vec<UsageDayView> {
    let mut days: BTreeMap<Date, BTreeMap<&str, Amounts>> = BTreeMap::new();
    for row in rows {
        let Key::Day(Some(day)) = row.key else { continue };
        for (model, amounts) in &row.models {
            *days.entry(day).or_default().entry(model).or_default() += *amounts;
        }
    }
    let dates = std::iter::successors(Some(first), |day| day.tomorrow().ok()).take_while(|day| *day <= last);
    dates.map(|date| day_view(date, &days.remove(&date).unwrap_or_default())).collect()
}

fn day_view(date: Date, models: &BTreeMap<&str, Amounts>) -> UsageDayView {
    let mut models: Vec<ModelDay> = models
        .iter()
        .map(|(model, amounts)| ModelDay {
            model: (*model).to_owned(),
            tokens: amounts.tokens.total(),
            cost_usd: dollars(amounts.priced_micros),
        })
        .collect();
    models.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd).then(b.tokens.cmp(&a.tokens)));
    UsageDayView {
        date: date.to_string(),
        tokens: models.iter().map(|model| model.tokens).sum(),
        cost_usd: models.iter().map(|model| model.cost_usd).sum(),
        models,
    }
}

fn by_hour(summaries: &[(Host, Summary)], filter: &Filter, zone: &TimeZone) -> Vec<[i64; 24]> {
    let mut hours = vec![[0; 24]; 7];
    let sums = summaries.iter().flat_map(|(_, summary)| &summary.sums).filter(|sum| sum.slot != UNDATED);
    for sum in sums {
        let Some(moment) = sum.slot.checked_mul(SLOT_MS).and_then(|at| local(at, zone)) else { continue };
        if !filter.has_day(Some(moment.date())) {
            continue;
        }
        let day = moment.weekday().to_monday_zero_offset();
        let place =
            usize::try_from(day).ok().and_then(|day| hours.get_mut(day)).zip(usize::try_from(moment.hour()).ok());
        if let Some(tokens) = place.and_then(|(day, hour)| day.get_mut(hour)) {
            *tokens += sum.tokens.total();
        }
    }
    hours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::summary::{Sum, UsageSession};
    use steadfast_model::clock::HOUR;
    use steadfast_model::reading::Tokens;

    /// Monday 2026-11-16, 10:00 UTC.
    const MONDAY: Millis = 1_794_823_200_000;

    fn summary() -> Summary {
        let sum = |at: Millis, model, input, cost_micros| Sum {
            slot: at / SLOT_MS,
            session: 0,
            model,
            tool: 0,
            agent: 0,
            responses: 1,
            tokens: Tokens { input, ..Tokens::default() },
            cost_micros,
        };
        Summary {
            models: vec!["opus".into(), "haiku".into()],
            names: vec![String::new()],
            sessions: vec![UsageSession { id: "s".into(), project: "/shop".into() }],
            sums: vec![
                sum(MONDAY - 24 * 40 * HOUR, 0, 7, Some(7)),
                sum(MONDAY, 0, 100, Some(2_000_000)),
                sum(MONDAY + HOUR / 2, 1, 50, Some(1_000_000)),
                sum(MONDAY + 25 * HOUR, 1, 30, None),
            ],
            ..Summary::default()
        }
    }

    #[test]
    fn every_day_is_there_with_its_models_the_most_expensive_first() {
        let now = MONDAY + 26 * HOUR;
        let charts = charts(&[(Host::Claude, summary())], 3, &TimeZone::UTC, now);
        let days: Vec<(&str, i64, usize)> =
            charts.days.iter().map(|day| (day.date.as_str(), day.tokens, day.models.len())).collect();
        assert_eq!(days, [("2026-11-15", 0, 0), ("2026-11-16", 150, 2), ("2026-11-17", 30, 1)]);
        let monday: Vec<&str> = charts.days[1].models.iter().map(|model| model.model.as_str()).collect();
        assert_eq!(monday, ["opus", "haiku"]);
        assert!((charts.days[1].cost_usd - 3.0).abs() < 1e-9);
    }

    #[test]
    fn hours_are_by_weekday_in_the_zone_and_only_of_the_days_shown() {
        let now = MONDAY + 26 * HOUR;
        let utc = charts(&[(Host::Claude, summary())], 3, &TimeZone::UTC, now).hours;
        assert_eq!((utc[0][10], utc[1][11]), (150, 30));
        assert_eq!(utc.iter().flatten().sum::<i64>(), 180, "what is older is not shown");
        let tokyo = TimeZone::fixed(jiff::tz::offset(9));
        let there = charts(&[(Host::Claude, summary())], 3, &tokyo, now).hours;
        assert_eq!(there[0][19], 150);
    }

    #[test]
    fn nothing_and_absurd_numbers_of_days_are_charts_too() {
        for days in [0, 1, 400, usize::MAX] {
            let charts = charts(&[], days, &TimeZone::UTC, MONDAY);
            assert_eq!(charts.days.len(), days.clamp(1, MOST_DAYS));
        }
        assert_eq!(charts(&[], 3, &TimeZone::UTC, i64::MAX).days, []);
    }
}
