//! The page of a run: stages, questions and messages, iterations, and the end of the log.

use steadfast_app::overview::runs::{IterationView, RunDetail, StageView};
use steadfast_model::clock::{self, Millis, SECOND};
use steadfast_model::text;

use super::DetailPage;
use crate::top::cards::stage_shape;
use crate::top::style::Tone;
use crate::top::words::{self, plain};

const ITERATIONS: usize = 8;
const NOTES: usize = 5;

pub(super) fn lines(page: &mut DetailPage, detail: &RunDetail, log: &[String], now: Millis) {
    standing(page, detail, now);
    if detail.stages.len() > 1 {
        page.heading("Stages");
        for stage in &detail.stages {
            stage_lines(page, stage);
        }
    }
    talk(page, detail);
    iterations(page, detail, now);
    if !log.is_empty() {
        page.heading("Log");
        for line in log {
            page.push(Tone::Quiet, &format!("  {line}"));
        }
    }
    page.blank();
    page.push(Tone::Quiet, &format!("run {}", plain(&detail.run.run_id)));
}

fn standing(page: &mut DetailPage, detail: &RunDetail, now: Millis) {
    let run = &detail.run;
    let reason = run.reason.as_deref().map(|reason| format!(" ({})", plain(reason).replace('_', " ")));
    let state = match () {
        () if run.is_orphaned => "its engine is gone".to_owned(),
        () if run.is_live && detail.is_stopping => "running, stopping".to_owned(),
        () => format!("{}{}", run.status.to_string().replace('_', " "), reason.unwrap_or_default()),
    };
    let title = plain(&run.title);
    page.wrap(Tone::Plain, "", &format!("{state} · {} {title} · {}", run.kind, plain(&run.project)), 3);
    let numbers = format!(
        "iteration {}/{} · {} · {} · {}",
        run.iteration,
        run.max_iterations,
        text::tokens(run.tokens),
        text::cost(run.cost.map(|cost| cost.0)),
        words::span(detail.elapsed_seconds.saturating_mul(SECOND)),
    );
    page.wrap(Tone::Quiet, "", &numbers, 2);
    let limits = [
        detail.limits.tokens.map(|most| format!("{} tokens", text::short_number(most))),
        detail.limits.usd.map(|most| text::usd(most.0)),
        detail.limits.hours.map(|most| words::span(most.0)),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        page.push(Tone::Quiet, &format!("limits: {}", limits.join(" · ")));
    }
    if let Some(ended) = &detail.ended_by {
        page.wrap(Tone::Warn, "", &plain(&ended.why), 4);
    }
    if let Some((until, why)) = detail.waiting_until.zip(detail.waiting_for).filter(|_| run.is_live) {
        let why = why.to_string().replace('_', " ");
        page.wrap(Tone::Warn, "", &format!("waits {} ({why})", words::countdown(until.0, now)), 2);
    }
    for attempt in &detail.under_way {
        let tries = if attempt.attempt > 1 { format!(", attempt {}", attempt.attempt) } else { String::new() };
        let text = format!("stage {}, iteration {}{tries}: {}", attempt.stage, attempt.iteration, attempt.phase);
        page.wrap(Tone::Accent, "now: ", &text, 2);
    }
    if let Some(goal) = &detail.goal {
        page.wrap(Tone::Plain, "goal: ", &format!("{}; {}", plain(&goal.state), plain(&goal.next)), 3);
    }
}

fn stage_lines(page: &mut DetailPage, stage: &StageView) {
    let (tone, shape) = stage_shape(stage.status);
    let reason = stage.reason.as_deref().map(|reason| format!(" · {}", plain(reason).replace('_', " ")));
    let status = stage.status.to_string().replace('_', " ");
    let text = format!(
        "{} {} · {status} · {}/{}{}",
        stage.stage,
        plain(&stage.name),
        stage.iterations,
        stage.max_iterations,
        reason.unwrap_or_default()
    );
    page.wrap(tone, &format!("  {shape} "), &text, 2);
    if let Some(note) = &stage.note {
        page.wrap(Tone::Quiet, "    ", &plain(note), 2);
    }
}

/// Questions to the user and what the user said.
fn talk(page: &mut DetailPage, detail: &RunDetail) {
    for approval in detail.approvals.iter().filter(|approval| approval.waiting) {
        page.heading(&format!("Stage {} waits for your yes", approval.stage));
        page.wrap(Tone::Warn, "  ", &plain(&approval.question), 8);
    }
    let waiting = detail.notes.iter().rev().take(NOTES);
    for (at, note) in waiting.enumerate() {
        if at == 0 {
            page.heading("Said to it");
        }
        let read = note.iteration.map_or_else(|| "not read yet".to_owned(), |by| format!("read by iteration {by}"));
        page.wrap(Tone::Plain, "  ", &format!("{} ({read})", plain(&note.text)), 3);
    }
}

fn iterations(page: &mut DetailPage, detail: &RunDetail, now: Millis) {
    if detail.history.is_empty() {
        return;
    }
    page.heading("Iterations");
    for iteration in detail.history.iter().rev().take(ITERATIONS) {
        iteration_lines(page, iteration, detail.stages.len() > 1, now);
    }
    let left = detail.history.len().saturating_sub(ITERATIONS);
    if left > 0 {
        page.push(
            Tone::Quiet,
            &format!("  … and earlier ones: steadfast {} status {}", detail.run.kind, plain(&detail.run.name)),
        );
    }
}

fn iteration_lines(page: &mut DetailPage, iteration: &IterationView, has_stages: bool, now: Millis) {
    let number = if has_stages {
        format!("{}.{}", iteration.stage, iteration.iteration)
    } else {
        iteration.iteration.to_string()
    };
    let when = clock::to_local_short(iteration.timestamp.0, now);
    let took = words::span(iteration.duration_seconds.saturating_mul(SECOND));
    let cost = text::cost(iteration.cost.map(|cost| cost.0));
    let attempts = if iteration.attempts > 1 { format!(" · {} attempts", iteration.attempts) } else { String::new() };
    page.push(
        Tone::Plain,
        &format!("  {number} · {when} · {took} · {} · {cost}{attempts}", text::tokens(iteration.tokens)),
    );
    if let Some(summary) = &iteration.summary {
        page.wrap(Tone::Quiet, "    ", &plain(summary), 3);
    }
    for check in iteration.checks.iter().filter(|check| check.holds == Some(false)) {
        page.wrap(Tone::Bad, "    ✗ ", &plain(&check.detail), 2);
    }
}
