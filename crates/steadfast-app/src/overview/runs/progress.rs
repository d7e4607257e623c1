//! What happens in a run, as lines for a terminal: one for each record, and one that shows where the run is now.

use std::collections::BTreeSet;

use super::ended_by;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{AttemptId, Outcome, Phase, Plan, Record, Run, StageStatus};
use steadfast_model::text;

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

/// The line of a record; `command` is what the user types before a verb.
pub fn event_line(command: &str, plan: &Plan, run: &Run, record: &Record) -> Option<String> {
    Some(match record {
        Record::ApprovalAsked { stage } => {
            let (name, stage) = (&plan.name, stage_name(plan, *stage));
            format!("stage {stage} waits for your yes: `{command} approve {name} {stage}`")
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
            let reason = text::headline(reason, 200);
            // The only stage ends for the reason of its run.
            let is_said = |why: &str| plan.stages.len() == 1 && why.ends_with(&format!(": {reason}"));
            let why = ended_by(plan, run).filter(|ended| !is_said(&ended.why));
            let why = why.map(|ended| format!(" ({})", ended.why)).unwrap_or_default();
            let reason = if reason == status.to_string() { String::new() } else { format!(": {reason}") };
            format!("{} {} {status}{reason}{why}", plan.kind, plan.name)
        }
        Record::Reopened => format!("{} {} resumed", plan.kind, plan.name),
        Record::StageStarted { .. } | Record::AttemptEnded { .. } | Record::StageEnded { .. } => return None,
    })
}

/// Where a run is now.
pub fn live_line(plan: &Plan, run: &Run, now: Millis) -> String {
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
