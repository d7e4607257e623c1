//! The page of one run.

use steadfast_app::overview::runs::talk::{ApprovalView, NoteView};
use steadfast_app::overview::runs::{AttemptView, BranchView, IterationView, RunDetail, RunView, StageView};
use steadfast_model::goal::PausedReason;
use steadfast_model::run::{RunReason, RunStatus, StageStatus};
use steadfast_model::{clock, text};
use steadfast_store::{Db, RunRow};
use steadfast_views::facts;

use super::{answer, left, manual_entry, show_entry};
use crate::commands::runs::RunContext;
use crate::commands::runs::progress::open_checks;
use crate::commands::runs::say::note_line;
use crate::error::code;
use crate::output::CommandResult;

/// Iterations on the page; JSON has all of them.
const ITERATIONS_SHOWN: usize = 15;
/// Messages on the page that were read.
const NOTES_SHOWN: usize = 3;

pub(in crate::commands::runs) fn status(context: &RunContext, name: &str) -> CommandResult {
    match context.find(name) {
        Ok((store, row)) => show_status(context, store.read(), &row, context.is_live(&row)?, 0),
        Err(failure) if failure.code == code::NOT_FOUND => match manual_entry(context, name) {
            Some(entry) => show_entry(context, entry),
            None => Err(failure),
        },
        Err(failure) => Err(failure),
    }
}

pub(in crate::commands::runs) fn show_status(
    context: &RunContext,
    db: Db<'_>,
    row: &RunRow,
    is_live: bool,
    code: u8,
) -> CommandResult {
    let most = (!context.json).then_some(ITERATIONS_SHOWN);
    let detail = facts::run_detail_if(is_live, db, row, &context.paths, most, context.now)?;
    answer(context, &detail, code, || status_page(&detail))
}

/// The page with all iterations that the detail has.
pub(in crate::commands::runs) fn show_detail(context: &RunContext, detail: &RunDetail) -> CommandResult {
    answer(context, detail, 0, || status_page(detail))
}

fn status_page(detail: &RunDetail) -> String {
    let run = &detail.run;
    let mut lines = vec![
        format!("{} {} ({}): {}", run.kind, run.name, run.title, super::status_text(run)),
        format!(
            "iteration {}/{} · {} · {} · {}",
            run.iteration,
            run.max_iterations,
            text::tokens(run.tokens),
            text::cost(run.cost.map(|cost| cost.0)),
            text::duration(detail.elapsed_seconds)
        ),
    ];
    lines.extend(detail.ended_by.iter().map(|ended| ended.why.clone()));
    lines.extend(detail.goal.iter().filter(|_| !run.is_live).map(|goal| format!("goal: {}", goal.state)));
    lines.extend(run.pid.map(|pid| format!("engine: pid {pid}")));
    if let Some((until, why)) = detail.waiting_until.zip(detail.waiting_for).filter(|_| run.is_live) {
        lines.push(format!("waiting until {} ({})", clock::to_local(until.0), why.to_string().replace('_', " ")));
    }
    let has_stages = detail.stages.len() > 1;
    if has_stages {
        lines.extend(detail.stages.iter().map(|stage| stage_line(detail, stage)));
    }
    lines.extend(detail.history.iter().map(|iteration| iteration_line(iteration, has_stages)));
    lines.extend(detail.approvals.iter().filter_map(|asked| approval_line(run, asked)));
    lines.extend(last_notes(detail).map(|note| format!("  {}", note_line(note, has_stages))));
    let places = detail.history.iter().map(|iteration| &iteration.place);
    for line in places.chain(detail.under_way.iter().map(|attempt| &attempt.place)).filter_map(branch_line) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if run.is_orphaned && !detail.is_history_only {
        lines.extend(left::lines(detail));
    } else {
        lines.extend(next_step(detail));
    }
    lines.join("\n")
}

/// A question that waits, or an answer.
fn approval_line(run: &RunView, asked: &ApprovalView) -> Option<String> {
    let stage = text::headline(asked.stage_name.as_deref().unwrap_or_default(), 60);
    let note = asked.note.as_deref().filter(|note| !note.is_empty());
    let note = note.map(|note| format!(": {}", text::headline(note, 90))).unwrap_or_default();
    match asked.approved {
        Some(true) => Some(format!("  stage {stage} was approved{note}")),
        Some(false) => Some(format!("  stage {stage} was rejected{note}")),
        None if asked.waiting => {
            let (kind, name, question) = (run.kind, &run.name, text::headline(&asked.question, 200));
            Some(format!(
                "  stage {stage} waits for your yes: {question} (`steadfast {kind} approve {name} {stage}`, or reject)"
            ))
        }
        None => None,
    }
}

/// The messages that wait, and the last of those that were read.
fn last_notes(detail: &RunDetail) -> impl Iterator<Item = &NoteView> {
    let read = detail.notes.iter().filter(|note| !note.is_waiting()).count();
    detail.notes.iter().skip(read.saturating_sub(NOTES_SHOWN))
}

fn stage_line(detail: &RunDetail, stage: &StageView) -> String {
    let reason = stage.reason.as_deref().map(|reason| format!(" ({})", text::headline(reason, 60)));
    let status = stage.status.to_string().replace('_', " ");
    let counted = match stage.status {
        StageStatus::Skipped => String::new(),
        _ => format!(", {}/{}", stage.iterations, stage.max_iterations),
    };
    let active: Vec<String> = detail.under_way.iter().filter(|attempt| attempt.stage == stage.stage).map(at).collect();
    let mut more = Vec::new();
    if !active.is_empty() && detail.run.is_live {
        more.push(format!("now {}", active.join(", ")));
    }
    if let Some(needs) = stage.needs.as_ref().filter(|needs| !needs.is_empty() && !stage.status.is_over()) {
        more.push(format!("needs {}", needs.join(", ")));
    }
    if let Some(question) = stage.approve.as_deref().filter(|_| stage.status == StageStatus::AwaitingApproval) {
        let (kind, name) = (detail.run.kind, &detail.run.name);
        let question = text::headline(question, 100);
        more.push(format!("\"{question}\" `steadfast {kind} approve {name} {}`", stage.name));
    }
    more.extend(stage.answer.as_deref().map(|answer| format!("answer: {}", text::headline(answer, 100))));
    more.extend(stage.note.clone());
    let first = format!("  {}. {}: {status}{}{counted}", stage.stage, stage.name, reason.unwrap_or_default());
    std::iter::once(first).chain(more).collect::<Vec<_>>().join("; ")
}

fn at(attempt: &AttemptView) -> String {
    let phase = if attempt.phase == "running" { String::new() } else { format!(" ({})", attempt.phase) };
    format!("iteration {}{phase}", attempt.iteration)
}

fn iteration_line(iteration: &IterationView, has_stages: bool) -> String {
    let stage = if has_stages { format!("{}.", iteration.stage) } else { String::new() };
    let said = iteration.summary.as_deref().or(iteration.reasoning.as_deref()).unwrap_or("");
    let vote = if iteration.plateau { " [nothing left]" } else { "" };
    let checks = iteration.checks.iter().map(|check| (check.holds, check.detail.as_str()));
    let line = format!(
        "  #{stage}{}  {:>7}  {:>7}  {}{vote}{}",
        iteration.iteration,
        text::duration(iteration.duration_seconds),
        iteration.tokens.map_or_else(|| "unknown".to_owned(), text::short_number),
        text::headline(said, 90),
        open_checks(checks)
    );
    line.trim_end().to_owned()
}

fn branch_line(place: &BranchView) -> Option<String> {
    let branch = text::printable(place.branch.as_ref()?);
    let stays = place.kept_because.as_ref().map(|why| format!(" stays: {}", text::printable(why))).unwrap_or_default();
    let worktree = place.worktree.as_ref().map(|path| format!(" (worktree {path}{stays})")).unwrap_or_default();
    Some(format!("branch {branch}{worktree}"))
}

fn next_step(detail: &RunDetail) -> Option<String> {
    let run = &detail.run;
    let (kind, name) = (run.kind, &run.name);
    if detail.is_history_only {
        return None;
    }
    let resume = format!("next: steadfast {kind} resume {name}");
    let reason = run.reason.as_deref().and_then(RunReason::parse);
    match run.status {
        RunStatus::Running => Some(format!("next: steadfast {kind} attach {name} (or kill, logs -f)")),
        RunStatus::Completed if reason == Some(RunReason::CostCap) => {
            Some(format!("{resume}, once the daily or weekly cap (`[limits]` in config.toml) allows"))
        }
        RunStatus::Completed
            if reason.is_some_and(|reason| reason == RunReason::MaxIterations || reason.is_limit()) =>
        {
            let flag = match reason {
                Some(RunReason::BudgetTokens) => "--budget N",
                Some(RunReason::BudgetUsd) => "--usd X",
                Some(RunReason::MaxHours) => "--max-hours H",
                _ => "--max N",
            };
            Some(format!("{resume} {flag}"))
        }
        RunStatus::Completed => {
            let waits = detail.goal.as_ref().filter(|goal| goal.paused_reason == Some(PausedReason::SignOff));
            waits.map(|goal| format!("next: {}", goal.next))
        }
        RunStatus::Failed | RunStatus::Killed | RunStatus::UnknownTermination => Some(resume),
    }
}
