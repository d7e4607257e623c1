//! Progress of a run on stderr: one line for each event, and on a terminal a live line below them.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};

use steadfast_app::overview::runs::ended_by;
use steadfast_engine::observer::{Observer, SavedStep};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{AttemptId, Outcome, Phase, Plan, Record, Run, RunStatus, StageStatus};
use steadfast_model::text;

use crate::output;

const NARROWEST: usize = 40;
const USUAL_WIDTH: usize = 100;

pub(super) struct Progress {
    on_terminal: bool,
    /// Whether the live line is on the screen.
    is_drawn: bool,
    shown: Option<(Plan, Run)>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), is_drawn: false, shown: None }
    }

    pub(super) fn show(&mut self, plan: &Plan, run: &Run) {
        self.shown = Some((plan.clone(), run.clone()));
        self.draw();
    }

    pub(super) fn line(&mut self, text: &str) {
        self.clear();
        output::note(text);
    }

    pub(super) fn draw(&mut self) {
        let Some((plan, run)) = self.shown.as_ref().filter(|_| self.on_terminal) else { return };
        if run.status != RunStatus::Running {
            self.clear();
            return;
        }
        let width = terminal_size::terminal_size_of(std::io::stderr())
            .map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0))
            .max(NARROWEST);
        let line = text::cut(&live_line(plan, run, clock::now()), width - 1);
        // A closed terminal is not an error.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
        self.is_drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Observer for Progress {
    fn saved(&mut self, step: &SavedStep<'_>, _notes: &mut Vec<String>) {
        for line in step.records.iter().filter_map(|record| event_line(step.plan, step.run, record)) {
            self.line(&line);
        }
        self.show(step.plan, step.run);
    }

    fn idle(&mut self) {
        self.draw();
    }

    fn note(&mut self, message: &str) {
        self.line(&text::printable(message));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Lists checks that failed or could not be run: they are why a run continues.
pub(super) fn open_checks<'a>(checks: impl Iterator<Item = (Option<bool>, &'a str)>) -> String {
    let open = checks.filter(|(holds, detail)| *holds != Some(true) && !detail.is_empty());
    let line = |(holds, detail): (Option<bool>, &str)| {
        let head = if holds.is_none() { "unknown" } else { "not yet" };
        format!("; {head}: {}", text::headline(detail, 120))
    };
    open.map(line).collect()
}

/// The iteration, with its stage if there are several.
fn place(plan: &Plan, run: &Run, id: AttemptId) -> String {
    let most = run.max_iterations(plan, id.stage);
    let stage = if plan.stages.len() > 1 { format!("{}: ", stage_name(plan, id.stage)) } else { String::new() };
    format!("{stage}iteration {}/{most}", id.iteration)
}

fn stage_name(plan: &Plan, stage: u32) -> &str {
    plan.stage(stage).map_or("?", |stage| stage.name.as_str())
}

/// A time: relative within a minute, otherwise local.
fn again(until: Millis, now: Millis) -> String {
    match until.saturating_sub(now) {
        ..=0 => "at once".to_owned(),
        left @ ..60_000 => format!("in {}s", (left + 999) / 1_000),
        _ => format!("at {}", clock::to_local(until)),
    }
}

fn event_line(plan: &Plan, run: &Run, record: &Record) -> Option<String> {
    Some(match record {
        Record::ApprovalAsked { stage } => {
            let (kind, name, stage) = (plan.kind, &plan.name, stage_name(plan, *stage));
            format!("stage {stage} waits for your yes: `steadfast {kind} approve {name} {stage}`")
        }
        Record::StageStarted { stage } if plan.stages.len() > 1 => {
            format!("stage {stage}/{}: {}", plan.stages.len(), stage_name(plan, *stage))
        }
        Record::AttemptStarted { id } => {
            let again = if id.attempt > 1 { format!(", attempt {}", id.attempt) } else { String::new() };
            format!("{} started{again}", place(plan, run, *id))
        }
        Record::AttemptEnded { id, outcome: Outcome::Failed(failure) } => {
            let then =
                run.active.iter().find(|flight| (flight.id.stage, flight.id.iteration) == (id.stage, id.iteration));
            let then = then.and_then(|flight| flight.wait.as_ref()).map_or_else(String::new, |wait| {
                format!("; tries again {}", again(wait.until_ms, failure.ended_at_ms))
            });
            let message = text::headline(&failure.message, 200);
            format!("{} failed ({}): {message}{then}", place(plan, run, *id), failure.kind.name())
        }
        Record::Committed { id, success, facts } => {
            let said = success.result.summary.as_deref().or(success.result.reasoning.as_deref()).unwrap_or("done");
            let usage = &success.usage;
            let (tokens, cost) = (text::tokens(usage.known_tokens()), text::cost(usage.known_cost()));
            let said = text::headline(said, 120);
            let checks = open_checks(facts.iter().map(|fact| (fact.holds, fact.detail.as_str())));
            format!("{} done ({tokens}, {cost}): {said}{checks}", place(plan, run, *id))
        }
        Record::StageEnded { stage, status, reason } if plan.stages.len() > 1 => {
            let name = stage_name(plan, *stage);
            format!("stage {stage}/{}: {name} {status} ({})", plan.stages.len(), text::headline(reason, 120))
        }
        Record::Finished { status, reason } => {
            let why = ended_by(plan, run).map(|ended| format!(" ({})", ended.why)).unwrap_or_default();
            format!("{} {} {status}: {}{why}", plan.kind, plan.name, text::headline(reason, 200))
        }
        Record::Reopened => format!("{} {} resumed", plan.kind, plan.name),
        Record::StageStarted { .. } | Record::AttemptEnded { .. } | Record::StageEnded { .. } => return None,
    })
}

fn live_line(plan: &Plan, run: &Run, now: Millis) -> String {
    let mut parts = vec![format!("◎ {}", plan.name)];
    let active: BTreeSet<u32> = run.active.iter().map(|flight| flight.id.stage).collect();
    if active.len() > 1 {
        let stages = active.iter().map(|stage| format!("{} {}", stage_name(plan, *stage), count(plan, run, *stage)));
        parts.push(format!("stages {}", stages.collect::<Vec<_>>().join(", ")));
    } else {
        let stage = active.first().copied().unwrap_or(run.stage);
        if plan.stages.len() > 1 {
            parts.push(format!("stage {stage}/{} {}", plan.stages.len(), stage_name(plan, stage)));
        }
        parts.push(format!("iteration {}", count(plan, run, stage)));
    }
    let waiting = (1_u32..).zip(&run.stages).filter(|(_, state)| state.status == StageStatus::AwaitingApproval);
    parts.extend(waiting.map(|(stage, _)| format!("{} waits for your yes", stage_name(plan, stage))));
    if run.active.iter().any(|flight| matches!(flight.phase, Phase::Checking(_) | Phase::CheckingBefore)) {
        parts.push("checking".into());
    }
    parts.push(text::tokens((!run.tokens_unknown).then_some(run.tokens)));
    parts.push(text::cost((!run.cost_unknown).then_some(run.cost_micros)));
    parts.push(text::duration((now - run.started_at_ms - run.closed_ms).max(0) / 1_000));
    if run.stopping.is_some() {
        parts.push("stopping".into());
    } else if run.is_asking() {
        parts.push("waits for your yes".into());
    } else if let Some(wait) = run.wait.as_ref().filter(|wait| wait.until_ms > now) {
        let why = wait.why.to_string().replace('_', " ");
        parts.push(format!("waiting until {} ({why})", clock::to_local(wait.until_ms)));
    }
    parts.join(" · ")
}

/// The newest iteration of a stage and its maximum.
fn count(plan: &Plan, run: &Run, stage: u32) -> String {
    let committed = run.stage_state(stage).map_or(0, |state| state.iterations);
    let active = run.active.iter().filter(|flight| flight.id.stage == stage).map(|flight| flight.id.iteration);
    format!("{}/{}", active.max().unwrap_or(committed), run.max_iterations(plan, stage))
}

#[cfg(test)]
mod tests {
    use steadfast_model::run::{
        ActiveAttempt, Rule, RunKind, RunLimits, RunPurpose, StagePlan, Wait, WaitReason, machine,
    };

    use super::*;

    #[test]
    fn the_live_line_shows_stage_iteration_spending_and_wait() {
        let stages = ["plan", "review"].map(|name| StagePlan::new(name, Rule::FixedN, 5)).to_vec();
        let plan = Plan {
            name: "auth".into(),
            kind: RunKind::Pipeline,
            title: "t".into(),
            pipeline_file: None,
            stages,
            limits: RunLimits::default(),
            purpose: RunPurpose::Definition,
        };
        let mut run = machine::begin(&plan, 0);
        run.stage = 2;
        run.tokens = 120_000;
        run.cost_micros = 1_200_000;
        let id = AttemptId { stage: 2, iteration: 3, attempt: 1 };
        run.active = vec![ActiveAttempt::new(id, Phase::Running)];
        let line = "◎ auth · stage 2/2 review · iteration 3/5 · 120k tokens · $1.20 · 4m 05s";
        assert_eq!(live_line(&plan, &run, 245_000), line);
        run.wait = Some(Wait { until_ms: 300_000, why: WaitReason::UsageLimit });
        let waiting = format!("{line} · waiting until {} (usage limit)", clock::to_local(300_000));
        assert_eq!(live_line(&plan, &run, 245_000), waiting);
        run.wait = None;
        run.active.push(ActiveAttempt::new(AttemptId { stage: 1, iteration: 1, attempt: 1 }, Phase::Running));
        let both = "◎ auth · stages plan 1/5, review 3/5 · 120k tokens · $1.20 · 4m 05s";
        assert_eq!(live_line(&plan, &run, 245_000), both);
    }
}
