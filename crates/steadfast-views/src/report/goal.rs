//! The report of a goal: what was wanted, whether it is met and how that is known, what it cost, and what is open.

use minijinja::context;
use serde::Serialize;
use steadfast_app::overview::GoalView;
use steadfast_app::overview::goal_page::{EvidenceView, GoalPage, ModelSpend, TimelineRow};
use steadfast_app::overview::report::{GoalReport, ReportedResult};
use steadfast_model::clock::Millis;
use steadfast_model::limit::Axis;
use steadfast_model::{price, text};

use super::ReportError;
use super::outcome::ReportOutcome;
use super::template::{markup, money, render, serde};
use crate::chart::{self, BurnDown, ChartBar};

/// Events that the chart shows better than a list.
const COUNTING: [&str; 3] = ["tokens_accounted", "continuation_injected", "run_iteration"];

/// The report of a goal as one HTML file.
pub fn goal_html(page: &GoalPage, now: Millis) -> Result<String, ReportError> {
    let goal = &page.report.goal;
    let rings: Vec<_> = page
        .bars
        .iter()
        .map(|bar| {
            let ring = markup(chart::ring(bar.percent, bar.axis.noun()));
            context! { ring, noun => bar.axis.noun(), used => &bar.used, most => &bar.most, percent => bar.percent }
        })
        .collect();
    let rows: Vec<&TimelineRow> =
        page.timeline.iter().rev().filter(|row| !COUNTING.contains(&row.kind.as_str())).collect();
    let values = context! {
        title => format!("Goal report: {}", text::headline(&goal.objective, 80)),
        made_at => now,
        goal => serde(goal),
        report => serde(&page.report),
        outcome => serde(&ReportOutcome::of_goal(goal)),
        done_when => &goal.done.when,
        is_live => goal.status.is_live(),
        rings,
        burn => markup(burn(page, now)),
        checks => serde(&checks(page)),
        models => serde(&page.models),
        model_bars => model_bars(&page.models),
        timeline => serde(&rows),
        is_cut => page.timeline_left_out > 0 || page.timeline_is_cut,
        open => serde(&open(&page.report)),
    };
    render("report_goal.html", values)
}

/// The chart of what the goal spent, until now or until its end.
pub(super) fn burn(page: &GoalPage, now: Millis) -> String {
    let goal = &page.report.goal;
    chart::burn_down(&BurnDown {
        points: &page.burn,
        budget: goal.token_budget,
        usd_budget_micros: goal.usd_budget.map(price::micros),
        pauses: &page.pauses,
        marks: &page.marks,
        from_ms: goal.created_at_ms,
        to_ms: if goal.status.is_live() { now } else { goal.updated_at_ms },
        pace: page.pace.as_ref(),
    })
}

/// A verification command with its results.
#[derive(Debug, Serialize)]
pub(super) struct CheckRow<'a> {
    command: &'a str,
    /// Whether the goal still asks for it.
    is_asked: bool,
    result: Option<&'a ReportedResult>,
    tail: Option<&'a str>,
    earlier: Vec<&'a EvidenceView>,
}

/// The goal's commands in their order, then those that it no longer asks for.
pub(super) fn checks(page: &GoalPage) -> Vec<CheckRow<'_>> {
    let runs_of = |command: &str| page.evidence.iter().filter(|run| run.command == command).collect::<Vec<_>>();
    let mut checks: Vec<CheckRow<'_>> = Vec::new();
    for check in &page.report.checks {
        let runs = runs_of(&check.command);
        checks.push(CheckRow {
            command: &check.command,
            is_asked: true,
            result: check.result.as_ref(),
            tail: runs.first().map(|run| run.output_tail.as_str()),
            earlier: runs.into_iter().skip(1).collect(),
        });
    }
    for run in &page.evidence {
        if checks.iter().all(|check| check.command != run.command) {
            let earlier = runs_of(&run.command);
            checks.push(CheckRow { command: &run.command, is_asked: false, result: None, tail: None, earlier });
        }
    }
    checks
}

/// What each model used, as a chart; with one model there is nothing to compare.
fn model_bars(models: &[ModelSpend]) -> Option<minijinja::Value> {
    let bar = |spent: &ModelSpend| {
        let counted = spent.input_tokens + spent.output_tokens + spent.cache_creation_tokens;
        let of = if spent.is_subagent { " (subagents)" } else { "" };
        let cost = spent.cost_usd.map(|usd| format!(", {}", money(Some(usd)))).unwrap_or_default();
        (format!("{}{of}", spent.model), counted, format!("{} tokens{cost}", text::short_number(counted)))
    };
    let bars: Vec<_> = models.iter().map(bar).collect();
    let rows: Vec<ChartBar<'_>> =
        bars.iter().map(|(label, value, words)| ChartBar { label, value: *value, words: words.clone() }).collect();
    (rows.len() > 1).then(|| markup(chart::bars("Tokens by model", &rows)))
}

/// What a reader must not take for granted.
pub(super) fn open(report: &GoalReport) -> Vec<String> {
    let goal = &report.goal;
    let mut open = Vec::new();
    let without = goal.done.items.iter().filter(|item| item.proof.is_none()).count();
    if without > 0 {
        open.push(format!("{without} of {} items have no proof.", goal.done.items.len()));
    }
    for check in &report.checks {
        match &check.result {
            None => open.push(format!("The check “{}” never ran.", text::headline(&check.command, 120))),
            Some(result) if !result.passed => {
                open.push(format!("The check “{}” failed when it last ran.", text::headline(&check.command, 120)));
            }
            Some(result) if result.git_dirty == Some(true) => open.push(format!(
                "The check “{}” ran with uncommitted changes, so its commit does not hold all that was checked.",
                text::headline(&check.command, 120)
            )),
            Some(_) => {}
        }
    }
    if report.verdicts.last().is_some_and(|verdict| !verdict.for_current_objective) {
        open.push("The last verdict is about an earlier objective.".to_owned());
    }
    if let Some(limit) = reached(goal) {
        open.push(format!("Stopped by its {limit}."));
    }
    if goal.accounting_uncertain {
        open.push("Some tokens may not be counted.".to_owned());
    }
    if goal.cost_usd.is_none() {
        open.push("The cost is not known: the price of a model is missing.".to_owned());
    }
    if goal.queue > 0 {
        open.push(format!("{} behind this one in the queue.", text::count(goal.queue, "goal")));
    }
    if goal.status.is_live() {
        open.push(format!("The goal is not over. Next: {}", goal.next));
    }
    open
}

fn reached(goal: &GoalView) -> Option<&'static str> {
    goal.paused_reason.and_then(Axis::of_pause).map(Axis::noun)
}
