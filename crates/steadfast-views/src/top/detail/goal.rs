//! The page of a goal: standing, limits and burn, items, checks, spending, the last events.

use ratatui::text::Line;
use steadfast_app::overview::goal_page::{EvidenceView, GoalPage, TimelineRow};
use steadfast_app::overview::now::LimitBar;
use steadfast_model::clock::{self, Millis, SECOND};
use steadfast_model::host::Host;
use steadfast_model::text;

use super::DetailPage;
use crate::top::cards::{limit_bar, pace_words};
use crate::top::style::{Tone, fit};
use crate::top::words::{self, plain};

const EVENTS: usize = 12;
const CHECKS: usize = 6;
/// Lines of the output of a check that failed.
const TAIL: usize = 6;
const SPARK: usize = 48;

pub(super) fn lines(page: &mut DetailPage, goal: &GoalPage, now: Millis) {
    standing(page, goal, now);
    limits(page, goal);
    items(page, goal);
    checks(page, goal, now);
    events(page, goal, now);
    spending(page, goal);
    for entry in goal.queue.iter().take(5) {
        if entry.position == 1 {
            page.heading("Queue");
        }
        page.wrap(Tone::Quiet, &format!("  {}. ", entry.position), &plain(&entry.objective), 2);
    }
    page.blank();
    let view = &goal.report.goal;
    page.push(Tone::Quiet, &format!("goal {}", plain(&view.goal_id)));
    page.push(Tone::Quiet, &format!("session {}", plain(&view.session_id)));
}

fn standing(page: &mut DetailPage, goal: &GoalPage, now: Millis) {
    let view = &goal.report.goal;
    let reason = view.paused_reason.map(|reason| format!(" ({})", reason.to_string().replace('_', " ")));
    let host = view.host.parse::<Host>().unwrap_or_default().capabilities().product;
    let project = view.project_dir.as_deref().map(|dir| format!(" · {}", plain(dir))).unwrap_or_default();
    let state = format!("{}{} · {host}{project}", view.state().replace('_', " "), reason.unwrap_or_default());
    page.wrap(Tone::Plain, "", &state, 2);
    let cost = view.cost_usd.map_or_else(|| "cost unknown".to_owned(), words::money);
    let active = words::span(view.active_seconds.saturating_mul(SECOND));
    let begun = words::ago(view.created_at_ms, now);
    let tokens = text::short_number(view.total_tokens);
    let turns = text::count(view.continuations_used, "turn");
    page.wrap(Tone::Quiet, "", &format!("{tokens} tokens · {cost} · {turns} · {active} active · begun {begun}"), 2);
    if let Some(reason) = &view.blocked_reason {
        page.wrap(Tone::Warn, "blocked: ", &plain(reason), 8);
    }
    if let Some(wait) = &view.waits_for {
        page.wrap(Tone::Plain, "waits for: ", &plain(wait), 3);
    }
    page.wrap(Tone::Accent, "next: ", &plain(&view.next), 4);
}

fn limits(page: &mut DetailPage, goal: &GoalPage) {
    if !goal.bars.is_empty() || goal.pace.is_some() {
        page.heading("Limits");
    }
    let widest =
        |part: fn(&LimitBar) -> String| goal.bars.iter().map(|bar| words::width(&part(bar))).max().unwrap_or(0);
    let label = widest(|bar| bar.axis.to_string());
    for bar in &goal.bars {
        let columns = if page.columns >= 70 { 24 } else { 12 };
        let name = bar.axis.to_string();
        let mut spans =
            vec![page.palette.span(Tone::Plain, format!("  {}", " ".repeat(label.saturating_sub(name.len()))))];
        spans.extend(limit_bar(bar, columns, page.palette));
        spans.push(page.palette.span(Tone::Quiet, format!("  {} of {}", plain(&bar.used), plain(&bar.most))));
        page.lines.push(Line::from(fit(spans, page.columns)));
    }
    if let Some(pace) = &goal.pace {
        let rate = format!("{} tokens an hour", text::short_number(pace.tokens_per_hour));
        let usd = pace.usd_per_hour.map(|usd| format!(", {} an hour", words::money(usd))).unwrap_or_default();
        let first = pace.seconds_left.map(|_| format!("{} · ", pace_words(pace))).unwrap_or_default();
        page.wrap(Tone::Plain, "  ", &format!("{first}{rate}{usd}"), 2);
    }
    if goal.burn.len() > 1 {
        let points: Vec<(Millis, i64)> = goal.burn.iter().map(|point| (point.at_ms, point.tokens)).collect();
        let spark = words::sparkline(&words::rates(&points, SPARK.min(page.columns.saturating_sub(8))));
        page.push(Tone::Accent, &format!("  burn {spark}"));
    }
}

fn items(page: &mut DetailPage, goal: &GoalPage) {
    let done = &goal.report.goal.done;
    if let Some(when) = &done.when {
        page.blank();
        page.wrap(Tone::Plain, "done when: ", &plain(when), 3);
    }
    let items = &done.items;
    if items.is_empty() {
        return;
    }
    let proven = items.iter().filter(|item| item.proof.is_some()).count();
    page.heading(&format!("Items: {proven} of {} proven", items.len()));
    for (number, item) in (1..).zip(items) {
        let (tone, shape) = if item.proof.is_some() { (Tone::Good, "✓") } else { (Tone::Plain, "☐") };
        page.wrap(tone, &format!("  {shape} {number}. "), &plain(&item.text), 4);
        if let Some(proof) = &item.proof {
            page.wrap(Tone::Quiet, "       ", &plain(proof), 4);
        }
    }
}

fn checks(page: &mut DetailPage, goal: &GoalPage, now: Millis) {
    if goal.report.checks.is_empty() {
        return;
    }
    page.heading("Checks");
    for check in goal.report.checks.iter().take(CHECKS) {
        let Some(result) = &check.result else {
            page.wrap(Tone::Quiet, "  ○ ", &format!("{} (never ran)", plain(&check.command)), 2);
            continue;
        };
        let (tone, shape, word) =
            if result.passed { (Tone::Good, "✓", "passed") } else { (Tone::Bad, "✗", "failed") };
        let exit = match result.exit_code {
            _ if result.timed_out => ", timed out".to_owned(),
            Some(0) | None => String::new(),
            Some(code) => format!(", exit {code}"),
        };
        let when = words::ago(result.created_at_ms, now);
        let took = words::span(result.duration_ms);
        page.wrap(
            tone,
            &format!("  {shape} "),
            &format!("{} ({word}{exit}, {took}, {when})", plain(&check.command)),
            3,
        );
        let is_its = |run: &&EvidenceView| run.command == check.command && run.created_at_ms == result.created_at_ms;
        if let Some(run) = goal.evidence.iter().find(is_its).filter(|_| !result.passed) {
            let tail: Vec<String> = words::plain_lines(&run.output_tail).collect();
            for line in tail.iter().skip(tail.len().saturating_sub(TAIL)) {
                page.push(Tone::Quiet, &format!("    │ {line}"));
            }
        }
    }
}

fn events(page: &mut DetailPage, goal: &GoalPage, now: Millis) {
    if goal.timeline.is_empty() {
        return;
    }
    page.heading("Last events");
    for row in goal.timeline.iter().take(EVENTS) {
        event(page, row, now);
    }
    let left = goal.timeline.len().saturating_sub(EVENTS) + goal.timeline_left_out;
    if left > 0 {
        page.push(Tone::Quiet, &format!("  … and {left} more: steadfast goal history"));
    }
}

fn event(page: &mut DetailPage, row: &TimelineRow, now: Millis) {
    let when = clock::to_local_short(row.at_ms, now);
    let count = if row.count > 1 { format!(" ×{}", row.count) } else { String::new() };
    let tokens = if row.tokens > 0 { format!(" · +{} tokens", text::short_number(row.tokens)) } else { String::new() };
    let detail = row.detail.as_deref().map(|detail| format!(" — {}", plain(detail))).unwrap_or_default();
    page.wrap(Tone::Plain, &format!("  {when} "), &format!("{}{count}{tokens}{detail}", plain(&row.title)), 3);
}

fn spending(page: &mut DetailPage, goal: &GoalPage) {
    if goal.models.is_empty() {
        return;
    }
    page.heading("Spent by model");
    for spend in &goal.models {
        let kind = if spend.is_subagent { " (subagents)" } else { "" };
        let tokens = spend.input_tokens + spend.output_tokens + spend.cache_creation_tokens;
        let cost = spend.cost_usd.map_or_else(|| "cost unknown".to_owned(), words::money);
        let line = format!("  {}{kind}: {} tokens · {cost}", plain(&spend.model), text::short_number(tokens));
        page.push(Tone::Quiet, &line);
    }
}
