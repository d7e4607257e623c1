//! Usage over weeks: days as columns of models, and hours of the week as squares.

use steadfast_app::usage::charts::UsageDayView;
use steadfast_model::{price, text};

use super::number::{count, float, sane};
use super::svg::{Anchor, Svg};
use super::ticks;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 710.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 210.0;
/// The newest days that are drawn.
const MOST_DAYS: usize = 366;
/// Models with a colour of their own; the others are one.
const MOST_MODELS: usize = 5;
const COLOURS: [&str; MOST_MODELS + 1] = ["chart-c0", "chart-c1", "chart-c2", "chart-c3", "chart-c4", "chart-c5"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const CELL: f64 = 26.0;

/// Tokens of each day, stacked by model.
pub fn stacked_days(days: &[UsageDayView]) -> String {
    let days = days.get(days.len().saturating_sub(MOST_DAYS)..).unwrap_or(days);
    let models = models(days);
    let total = days.iter().fold(0_i64, |sum, day| sum.saturating_add(sane(day.tokens)));
    let dollars = days.iter().map(|day| day.cost_usd).filter(|usd| usd.is_finite()).sum::<f64>();
    let money = text::usd(sane(price::micros(dollars)));
    let span = match (days.first(), days.last()) {
        (Some(first), Some(last)) => format!("from {} to {}", first.date, last.date),
        _ => "no days".to_owned(),
    };
    let title = format!("Tokens by day and model: {} tokens, {money}", text::thousands(sane(total)));
    let rows = (models.len() + usize::from(models.len() == MOST_MODELS)).div_ceil(2);
    let height = BOTTOM + 40.0 + count(rows) * 26.0;
    let mut svg = Svg::new("chart-days", (WIDTH, height), &title, &description(days, &span));
    svg.hatchings();

    let most = days.iter().map(|day| stack(day, &models).iter().sum::<i64>()).max().unwrap_or(0);
    let marks = ticks::amounts(sane(most), 4);
    let highest = marks.last().copied().unwrap_or(1).max(1);
    let y = |amount: i64| BOTTOM - float(amount) / float(highest) * (BOTTOM - TOP);
    svg.text("chart-text chart-unit", (2.0, 14.0), Anchor::Start, "tokens");
    for amount in marks {
        let class = if amount == 0 { "chart-axis" } else { "chart-grid" };
        svg.line(class, [LEFT, y(amount), RIGHT, y(amount)]);
        svg.text("chart-text", (LEFT - 8.0, y(amount) + 4.0), Anchor::End, &text::short_number(amount));
    }
    let width = (RIGHT - LEFT) / count(days.len().max(1));
    let bar = (width * 0.8).min(60.0);
    // About six names fit below the columns.
    let named = days.len().div_ceil(6).max(1);
    for (index, day) in days.iter().enumerate() {
        let middle = LEFT + (count(index) + 0.5) * width;
        svg.group("chart-day", &in_words(day), |svg| {
            let mut below = 0_i64;
            for (colour, amount) in stack(day, &models).into_iter().enumerate().filter(|(_, amount)| *amount > 0) {
                let above = below.saturating_add(amount);
                let area = [middle - bar / 2.0, y(above), bar, y(below) - y(above)];
                svg.rect(COLOURS.get(colour).copied().unwrap_or("chart-c5"), area, 0.0);
                svg.hatch(colour, area);
                below = above;
            }
        });
        if index % named == 0 {
            let class = if index / named % 2 == 1 { "chart-text chart-minor" } else { "chart-text" };
            let date = day.date.split_once('-').map_or(day.date.as_str(), |(_, date)| date);
            svg.text(class, (middle, BOTTOM + 22.0), Anchor::Middle, &text::headline(date, 10));
        }
    }
    draw_models(&mut svg, &models);
    if total == 0 {
        svg.text("chart-text", (f64::midpoint(LEFT, RIGHT), 120.0), Anchor::Middle, "no usage in these days");
    }
    svg.finish()
}

/// The models that used the most, over all days.
fn models(days: &[UsageDayView]) -> Vec<&str> {
    let mut sums: Vec<(&str, i64)> = Vec::new();
    for model in days.iter().flat_map(|day| &day.models) {
        match sums.iter_mut().find(|(name, _)| *name == model.model) {
            Some((_, sum)) => *sum = sum.saturating_add(sane(model.tokens)),
            None => sums.push((&model.model, sane(model.tokens))),
        }
    }
    sums.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    sums.into_iter().take(MOST_MODELS).map(|(name, _)| name).collect()
}

/// What each of the models used on a day, and last all others.
fn stack(day: &UsageDayView, models: &[&str]) -> Vec<i64> {
    let mut parts = vec![0_i64; MOST_MODELS + 1];
    for used in &day.models {
        let place = models.iter().position(|model| *model == used.model).unwrap_or(MOST_MODELS);
        if let Some(part) = parts.get_mut(place) {
            *part = sane(part.saturating_add(sane(used.tokens)));
        }
    }
    parts
}

fn draw_models(svg: &mut Svg, models: &[&str]) {
    let others = (models.len() == MOST_MODELS).then_some("others");
    for (index, name) in models.iter().copied().chain(others).enumerate() {
        let x = count(index % 2) * 356.0 + 8.0;
        let y = BOTTOM + 46.0 + count(index / 2) * 26.0;
        let area = [x, y - 8.0, 16.0, 14.0];
        svg.rect(COLOURS.get(index).copied().unwrap_or("chart-c5"), area, 0.0);
        svg.hatch(index, area);
        svg.text("chart-text", (x + 26.0, y + 4.0), Anchor::Start, &text::headline(name, 28));
    }
}

fn in_words(day: &UsageDayView) -> String {
    let tokens = text::thousands(sane(day.tokens));
    let money = text::usd(sane(price::micros(day.cost_usd)));
    let parts: Vec<String> = day
        .models
        .iter()
        .map(|used| format!("{} {}", text::headline(&used.model, 40), text::short_number(sane(used.tokens))))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("{}: {tokens} tokens, {money}{parts}", day.date)
}

fn description(days: &[UsageDayView], span: &str) -> String {
    match days.iter().max_by_key(|day| day.tokens).filter(|day| day.tokens > 0) {
        Some(most) => format!("{span}; the most on {}", in_words(most)),
        None => format!("{span}; no usage"),
    }
}

/// Tokens by weekday and hour: the larger and darker a square, the more.
pub fn heat_map(hours: &[[i64; 24]]) -> String {
    let all = hours.iter().take(7).flatten().map(|tokens| sane(*tokens));
    let most = all.max().unwrap_or(0);
    let (left, top) = (52.0, 28.0);
    let busiest = busiest(hours).map_or_else(
        || "No usage".to_owned(),
        |(day, hour, tokens)| format!("The most on {day} at {hour:02}:00: {} tokens", text::thousands(tokens)),
    );
    let size = (left + 24.0 * CELL + 8.0, top + 7.0 * CELL + 30.0);
    let mut svg = Svg::new("chart-heat", size, "Tokens by weekday and hour", &busiest);
    for hour in (0..24).step_by(3) {
        let x = left + (count(hour) + 0.5) * CELL;
        let class = if hour % 6 == 3 { "chart-text chart-minor" } else { "chart-text" };
        svg.text(class, (x, 18.0), Anchor::Middle, &format!("{hour:02}"));
    }
    for (row, (day, tokens)) in WEEKDAYS.into_iter().zip(hours).enumerate() {
        let y = top + count(row) * CELL;
        svg.text("chart-text", (left - 8.0, y + CELL / 2.0 + 5.0), Anchor::End, day);
        for (hour, amount) in tokens.iter().map(|amount| sane(*amount)).enumerate() {
            let center = (left + (count(hour) + 0.5) * CELL, y + CELL / 2.0);
            draw_hour(
                &mut svg,
                center,
                level(amount, most),
                &format!("{day} {hour:02}:00: {} tokens", text::thousands(amount)),
            );
        }
    }
    svg.text("chart-text", (left, size.1 - 10.0), Anchor::Start, &busiest);
    svg.finish()
}

/// Five steps from nothing to the most.
fn level(amount: i64, most: i64) -> usize {
    match (amount, amount.saturating_mul(100) / most.max(1)) {
        (0, _) => 0,
        (_, 75..) => 4,
        (_, 45..) => 3,
        (_, 15..) => 2,
        _ => 1,
    }
}

fn draw_hour(svg: &mut Svg, (x, y): (f64, f64), level: usize, words: &str) {
    let (class, side) = match level {
        0 => return svg.circle("chart-heat-none", (x, y), 1.5),
        1 => ("chart-heat-1", 10.0),
        2 => ("chart-heat-2", 14.0),
        3 => ("chart-heat-3", 18.0),
        _ => ("chart-heat-4", 22.0),
    };
    let half = side / 2.0;
    svg.group("chart-hour", words, |svg| svg.rect(class, [x - half, y - half, side, side], 2.0));
}

fn busiest(hours: &[[i64; 24]]) -> Option<(&'static str, usize, i64)> {
    let days = WEEKDAYS.into_iter().zip(hours);
    let all =
        days.flat_map(|(day, hours)| hours.iter().enumerate().map(move |(hour, tokens)| (day, hour, sane(*tokens))));
    all.max_by_key(|(_, _, tokens)| *tokens).filter(|(_, _, tokens)| *tokens > 0)
}
