//! What a run does, on stderr: on a terminal one live line below what has happened, elsewhere one line an event.

use std::io::{IsTerminal as _, Write as _};

use steadfast_core::clock::{self, Millis};
use steadfast_core::run::{AttemptId, Checked, Outcome, Phase, Plan, Record, Run, RunStatus};
use steadfast_core::text;
use steadfast_engine::dispatcher::Saved;

use crate::output;

const NARROWEST: usize = 40;
const USUAL_WIDTH: usize = 100;

pub(super) struct Progress {
    on_terminal: bool,
    /// Whether a live line stands on the terminal now.
    is_drawn: bool,
    shown: Option<(Plan, Run)>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), is_drawn: false, shown: None }
    }

    pub(super) fn stepped(&mut self, saved: &Saved<'_>) {
        for line in saved.records.iter().filter_map(|record| event_line(saved.plan, saved.run, record)) {
            self.line(&line);
        }
        self.show(saved.plan, saved.run);
    }

    /// Shows where a run stands now.
    pub(super) fn show(&mut self, plan: &Plan, run: &Run) {
        self.shown = Some((plan.clone(), run.clone()));
        self.draw();
    }

    /// A line that stays.
    pub(super) fn line(&mut self, text: &str) {
        self.clear();
        output::note(text);
    }

    /// Draws the live line again: time has passed.
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
        // A terminal that went away is not an error.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
        self.is_drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What checks found that did not hold or could not be told: otherwise nobody sees why a run goes on and on.
pub(super) fn doubts(facts: &[Checked]) -> String {
    let doubt = |fact: &Checked| {
        let head = if fact.holds.is_none() { "cannot be told" } else { "not yet" };
        format!("; {head}: {}", text::headline(&fact.detail, 120))
    };
    facts.iter().filter(|fact| fact.holds != Some(true) && !fact.detail.is_empty()).map(doubt).collect()
}

/// Where an iteration is, as far as that needs saying.
fn place(plan: &Plan, run: &Run, id: AttemptId) -> String {
    let most = run.max_iterations(plan, id.stage);
    let stage = match plan.stage(id.stage) {
        Some(stage) if plan.stages.len() > 1 => format!("{}: ", stage.name),
        _ => String::new(),
    };
    format!("{stage}iteration {}/{most}", id.iteration)
}

/// When, for people: a moment that is near is told by its distance.
fn again(until: Millis, now: Millis) -> String {
    match until.saturating_sub(now) {
        ..=0 => "at once".to_owned(),
        left @ ..60_000 => format!("in {}s", (left + 999) / 1_000),
        _ => format!("at {}", clock::to_local(until)),
    }
}

fn event_line(plan: &Plan, run: &Run, record: &Record) -> Option<String> {
    Some(match record {
        Record::StageStarted { stage } if plan.stages.len() > 1 => {
            let name = plan.stage(*stage).map_or("?", |stage| stage.name.as_str());
            format!("stage {stage}/{}: {name}", plan.stages.len())
        }
        Record::AttemptStarted { id } => {
            let again = if id.attempt > 1 { format!(", attempt {}", id.attempt) } else { String::new() };
            format!("{} started{again}", place(plan, run, *id))
        }
        Record::AttemptEnded { id, outcome: Outcome::Failed(failure) } => {
            let then = run.flights.iter().find(|flight| flight.id.iteration == id.iteration);
            let then = then.and_then(|flight| flight.wait.as_ref()).map_or_else(String::new, |wait| {
                format!("; tries again {}", again(wait.until_ms, failure.ended_at_ms))
            });
            let message = text::headline(&failure.message, 200);
            format!("{} failed ({}): {message}{then}", place(plan, run, *id), failure.kind.name())
        }
        Record::Committed { id, success, facts } => {
            let said = success.result.summary.as_deref().or(success.result.reasoning.as_deref()).unwrap_or("done");
            let tokens = text::short_number(success.usage.tokens.charged());
            let cost = text::usd(success.usage.cost_micros);
            let said = text::headline(said, 120);
            format!("{} done ({tokens} tokens, {cost}): {said}{}", place(plan, run, *id), doubts(facts))
        }
        Record::StageEnded { stage, status, reason } if plan.stages.len() > 1 => {
            let name = plan.stage(*stage).map_or("?", |stage| stage.name.as_str());
            format!("stage {stage}/{}: {name} {status} ({})", plan.stages.len(), text::headline(reason, 120))
        }
        Record::Finished { status, reason } => {
            format!("{} {} {status}: {}", plan.kind, plan.name, text::headline(reason, 200))
        }
        Record::Reopened => format!("{} {} goes on", plan.kind, plan.name),
        Record::StageStarted { .. } | Record::AttemptEnded { .. } | Record::StageEnded { .. } => return None,
    })
}

fn live_line(plan: &Plan, run: &Run, now: Millis) -> String {
    let committed = run.stage_state(run.stage).map_or(0, |stage| stage.iterations);
    let most = run.max_iterations(plan, run.stage);
    let flying = run.flights.iter().map(|flight| flight.id.iteration).max().unwrap_or(committed);
    let mut parts = vec![format!("◎ {}", plan.name)];
    if plan.stages.len() > 1 {
        let name = plan.stage(run.stage).map_or("?", |stage| stage.name.as_str());
        parts.push(format!("stage {}/{} {name}", run.stage, plan.stages.len()));
    }
    parts.push(format!("iteration {flying}/{most}"));
    if run.flights.iter().any(|flight| matches!(flight.phase, Phase::Checking(_) | Phase::CheckingBefore)) {
        parts.push("checking".into());
    }
    parts.push(format!("{} tokens", text::short_number(run.tokens)));
    parts.push(text::usd(run.cost_micros));
    parts.push(text::duration((now - run.started_at_ms - run.closed_ms).max(0) / 1_000));
    if run.stopping.is_some() {
        parts.push("stopping".into());
    } else if let Some(wait) = run.wait.as_ref().filter(|wait| wait.until_ms > now) {
        let why = wait.why.to_string().replace('_', " ");
        parts.push(format!("waiting until {} ({why})", clock::to_local(wait.until_ms)));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use steadfast_core::run::{Flight, Rule, RunKind, RunLimits, StagePlan, Wait, WaitReason, machine};

    use super::*;

    #[test]
    fn the_live_line_says_where_the_run_is_and_what_it_waits_for() {
        let stages = ["plan", "review"].map(|name| StagePlan::new(name, Rule::FixedN, 5)).to_vec();
        let plan = Plan {
            name: "auth".into(),
            kind: RunKind::Pipeline,
            title: "t".into(),
            pipeline_file: None,
            stages,
            limits: RunLimits::default(),
        };
        let mut run = machine::begin(&plan, 0);
        run.stage = 2;
        run.tokens = 120_000;
        run.cost_micros = 1_200_000;
        let id = AttemptId { stage: 2, iteration: 3, attempt: 1 };
        run.flights = vec![Flight::new(id, Phase::Running)];
        let line = "◎ auth · stage 2/2 review · iteration 3/5 · 120k tokens · $1.20 · 4m 05s";
        assert_eq!(live_line(&plan, &run, 245_000), line);
        run.wait = Some(Wait { until_ms: 300_000, why: WaitReason::UsageLimit });
        let waiting = format!("{line} · waiting until {} (usage limit)", clock::to_local(300_000));
        assert_eq!(live_line(&plan, &run, 245_000), waiting);
    }
}
