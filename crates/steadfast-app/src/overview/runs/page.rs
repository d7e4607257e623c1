//! The page of one run as text, and its row in a list: the same words for runs of this machine and of the fleet.

use super::progress::open_checks;
use super::talk::{ApprovalView, NoteView};
use super::{AttemptView, BranchView, IterationView, RunDetail, RunView, StageView, left};
use steadfast_model::goal::PausedReason;
use steadfast_model::run::{RunKind, RunReason, RunStatus, StageStatus};
use steadfast_model::{clock, text};

/// Messages on the page that were read.
const NOTES_SHOWN: usize = 3;

/// The heads of a list of runs.
pub const HEADS: [&str; 7] = ["NAME", "TYPE", "STATUS", "ITERATION", "TOKENS", "COST", "STARTED"];

/// A run as a row of a list.
pub fn run_row(run: &RunView) -> Vec<String> {
    vec![
        run.name.clone(),
        run.title.clone(),
        status_text(run),
        place(run, None),
        run.tokens.map_or_else(|| "unknown".to_owned(), text::short_number),
        text::cost(run.cost.map(|cost| cost.0)),
        clock::to_local(run.started_at.0),
    ]
}

/// How far a run is. The iterations of a pipeline are those of its current stage, and say nothing once it is over.
fn place(run: &RunView, stages: Option<usize>) -> String {
    let iterations = format!("{}/{}", run.iteration, run.max_iterations);
    let of_stages = stages.map(|stages| format!("/{stages}")).unwrap_or_default();
    match (run.kind, stages) {
        (RunKind::Loop, None) => iterations,
        (RunKind::Loop, Some(_)) => format!("iteration {iterations}"),
        (RunKind::Pipeline, _) if !run.is_live => format!("stage {}{of_stages}", run.stage),
        (RunKind::Pipeline, None) => format!("stage {}, {iterations}", run.stage),
        (RunKind::Pipeline, Some(_)) => format!("stage {}{of_stages} · iteration {iterations}", run.stage),
    }
}

/// The status in words.
pub fn status_text(run: &RunView) -> String {
    let status = run.status.to_string();
    let reason = run.reason.as_deref().map(|reason| text::headline(reason, 60)).filter(|reason| *reason != status);
    match reason {
        _ if run.is_orphaned => "gone (was running)".to_owned(),
        _ if run.is_live && run.is_stop_requested => "running (stopping)".to_owned(),
        _ if run.is_live && run.is_asking => "running (waits for your yes)".to_owned(),
        Some(reason) => format!("{status} ({reason})"),
        None => status,
    }
}

/// The page with all iterations that the detail has.
pub fn status_page(detail: &RunDetail) -> String {
    let run = &detail.run;
    let mut lines = vec![
        format!("{} {} ({}): {}", run.kind, run.name, run.title, status_text(run)),
        format!(
            "{} · {} · {} · {}",
            place(run, Some(detail.stages.len())),
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
            let (command, name, question) = (run.command(), &run.name, text::headline(&asked.question, 200));
            Some(format!(
                "  stage {stage} waits for your yes: {question} (`{command} approve {name} {stage}`, or reject)"
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
        let (command, name) = (detail.run.command(), &detail.run.name);
        let question = text::headline(question, 100);
        more.push(format!("\"{question}\" `{command} approve {name} {}`", stage.name));
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
    let (command, name) = (run.command(), &run.name);
    if detail.is_history_only {
        return None;
    }
    let resume = format!("next: {command} resume {name}");
    let reason = run.reason.as_deref().and_then(RunReason::parse);
    match run.status {
        RunStatus::Running => Some(format!("next: {command} attach {name} (or kill, logs -f)")),
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

/// One line about something that was said.
pub fn note_line(note: &NoteView, has_stages: bool) -> String {
    let state = match (note.stage, note.iteration) {
        (Some(stage), Some(iteration)) if has_stages => format!("read by #{stage}.{iteration}"),
        (_, Some(iteration)) => format!("read by #{iteration}"),
        _ => "waits for the next iteration".to_owned(),
    };
    format!("said: {} ({state})", text::headline(&note.text, 90))
}
