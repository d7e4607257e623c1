//! The report of a run: its stages, its iterations, what people said to it, and the evidence of the goal it pursued.

use minijinja::context;
use steadfast_app::overview::goal_page::GoalPage;
use steadfast_app::overview::now::Point;
use steadfast_app::overview::runs::RunDetail;
use steadfast_model::clock::Millis;
use steadfast_model::run::StageStatus;
use steadfast_model::text;

use super::ReportError;
use super::goal::{checks, open as open_of_goal};
use super::outcome::ReportOutcome;
use super::template::{markup, render, serde};
use crate::chart::{self, BurnDown};

/// The newest iterations in the table; the chart is made of all of them.
const ITERATIONS_SHOWN: usize = 500;

/// The report of a run with all its iterations as one HTML file. `goal` is the one that it pursued.
pub fn run_html(detail: &RunDetail, goal: Option<&GoalPage>, now: Millis) -> Result<String, ReportError> {
    let run = &detail.run;
    let earlier = detail.history.len().saturating_sub(ITERATIONS_SHOWN);
    let has_stages = detail.stages.len() > 1;
    let values = context! {
        title => format!("Run report: {}", text::headline(&run.name, 80)),
        made_at => now,
        run => serde(detail),
        outcome => serde(&ReportOutcome::of_run(detail)),
        goal => goal.map(|page| serde(&page.report.goal)),
        checks => goal.map(|page| serde(&checks(page))),
        verdicts => goal.map(|page| serde(&page.report.verdicts)),
        elapsed => detail.elapsed_seconds,
        iterations => detail.history.len(),
        graph => has_stages.then(|| markup(chart::stage_graph(&detail.stages))),
        has_stages,
        burn => markup(burn(detail, now)),
        history => serde(&detail.history.get(earlier..).unwrap_or_default()),
        earlier,
        branches => serde(&branches(detail)),
        open => serde(&open(detail, goal)),
    };
    render("report_run.html", values)
}

/// What the iterations spent, each when it was committed.
fn burn(detail: &RunDetail, now: Millis) -> String {
    let run = &detail.run;
    let mut spent = Point { at_ms: run.started_at.0, tokens: 0, cost_micros: 0 };
    let mut points = vec![spent];
    let mut history: Vec<_> = detail.history.iter().collect();
    history.sort_by_key(|iteration| iteration.timestamp.0);
    for iteration in history {
        spent = Point {
            at_ms: iteration.timestamp.0,
            tokens: spent.tokens.saturating_add(iteration.tokens.unwrap_or(0)),
            cost_micros: spent.cost_micros.saturating_add(iteration.cost.map_or(0, |cost| cost.0)),
        };
        points.push(spent);
    }
    chart::burn_down(&BurnDown {
        points: &points,
        budget: detail.limits.tokens,
        usd_budget_micros: detail.limits.usd.map(|usd| usd.0),
        pauses: &[],
        marks: &[],
        from_ms: run.started_at.0,
        to_ms: run.completed_at.map_or(now, |ended| ended.0),
        pace: None,
    })
}

/// The branches that hold work of the run, each once.
fn branches(detail: &RunDetail) -> Vec<&str> {
    let mut branches: Vec<&str> = Vec::new();
    let places = detail.history.iter().map(|iteration| &iteration.place);
    let kept = places.chain(detail.under_way.iter().map(|attempt| &attempt.place)).filter_map(|p| p.branch.as_deref());
    let reported = detail.history.iter().flat_map(|iteration| &iteration.branches).map(String::as_str);
    for branch in kept.chain(reported) {
        if !branches.contains(&branch) {
            branches.push(branch);
        }
    }
    branches
}

/// What a reader must not take for granted.
fn open(detail: &RunDetail, goal: Option<&GoalPage>) -> Vec<String> {
    let run = &detail.run;
    let mut open = Vec::new();
    for stage in &detail.stages {
        let name = text::headline(&stage.name, 60);
        match stage.status {
            StageStatus::Failed => open.push(format!("The stage {name} failed.")),
            StageStatus::Skipped => open.push(format!("The stage {name} was skipped.")),
            StageStatus::AwaitingApproval => open.push(format!("The stage {name} waits for a person.")),
            StageStatus::Pending | StageStatus::Deciding if !run.is_live => {
                open.push(format!("The stage {name} did not run."));
            }
            _ => {}
        }
        open.extend(stage.note.as_ref().map(|note| format!("The stage {name}: {note}.")));
    }
    let held = detail.history.last().into_iter().flat_map(|iteration| &iteration.checks);
    for check in held.filter(|check| check.holds == Some(false)) {
        open.push(format!("A check of the last iteration does not hold: {}", text::headline(&check.detail, 200)));
    }
    let unread = detail.notes.iter().filter(|note| note.is_waiting()).count();
    if unread > 0 {
        let count = text::count(unread, "message");
        open.push(format!("No iteration has read {count} to the run."));
    }
    if !detail.under_way.is_empty() {
        let count = i64::try_from(detail.under_way.len()).unwrap_or(i64::MAX);
        open.push(format!("{} not ended.", text::count(count, "attempt") + if count == 1 { " has" } else { " have" }));
    }
    if run.tokens.is_none() {
        open.push("Some tokens are not known.".to_owned());
    }
    if run.cost.is_none() {
        open.push("The cost is not known.".to_owned());
    }
    open.extend(goal.into_iter().flat_map(|page| open_of_goal(&page.report)));
    open
}
