//! A run of an older tool in our shape: the stages of its plan, how far each of them is, and what its iterations did.

use steadfast_engine::old_state::{OldIteration, OldRun, OldStage};
use steadfast_model::clock::Millis;
use steadfast_model::run::{
    AgentResult, AttemptId, AttemptUsage, Outcome, Plan, Record, Rule, Run, RunKind, RunLimits, RunPurpose, StagePlan,
    StageState, StageStatus, Step, Success, machine,
};

use super::DEFINITION;

/// A plan without prompts: the run can be looked at and not resumed.
pub(super) fn history_only(old: &OldRun) -> Plan {
    let done = |stage: u32| old.iterations.iter().filter(|it| it.row.id.stage == stage).count();
    let stages = (1_u32..).zip(&old.stages).map(|(number, stage)| {
        let done = u32::try_from(done(number)).unwrap_or(u32::MAX);
        let runs = stage.runs.or(old.max_iterations).unwrap_or(done).max(1);
        let name = if stage.name.is_empty() { format!("stage-{number}") } else { stage.name.clone() };
        StagePlan { loop_type: stage.loop_type.clone(), ..StagePlan::new(name, Rule::FixedN, runs) }
    });
    let mut stages: Vec<StagePlan> = stages.collect();
    if stages.is_empty() {
        stages.push(StagePlan::new(old.title.clone(), Rule::FixedN, 1));
    }
    Plan {
        name: old.name.clone(),
        kind: old.kind,
        title: old.title.clone(),
        pipeline_file: (old.kind == RunKind::Pipeline).then(|| DEFINITION.to_owned()),
        stages,
        limits: RunLimits::default(),
        purpose: RunPurpose::Definition,
    }
}

/// The stage of the plan for one of the old stages: by its name, or by its number if all are counted alike.
pub(super) fn number_in(plan: &Plan, old: &OldRun, stage: u32) -> Option<u32> {
    let index = usize::try_from(stage).ok()?.checked_sub(1)?;
    let name = &old.stages.get(index)?.name;
    let by_name = plan.stages.iter().position(|planned| planned.name == *name);
    let at = by_name.or_else(|| Some(index).filter(|_| plan.stages.len() == old.stages.len()))?;
    u32::try_from(at).ok()?.checked_add(1)
}

/// A step that writes the rows of all stages. It is no end of a run that people have to hear of.
pub(super) fn all_stages(run: Run) -> Step {
    let ended = |(stage, state): (u32, &StageState)| Record::StageEnded {
        stage,
        status: state.status,
        reason: state.reason.clone().unwrap_or_default(),
    };
    let records = (1_u32..).zip(&run.stages).map(ended).collect();
    Step { run, records, acts: Vec::new() }
}

/// The state in which the run ended, from which `resume` continues.
pub(super) fn state_of(plan: &Plan, old: &OldRun, now: Millis) -> Run {
    let started = old.started_at_ms.unwrap_or(now);
    let mut run = machine::begin(plan, started);
    let last = old.iterations.iter().map(|iteration| iteration.row.committed_at_ms).max();
    run.status = old.status;
    run.reason = old.reason.clone().or(Some("imported".into()));
    run.completed_at_ms = old.completed_at_ms.or(last).or(Some(started));
    // The older tools did not count.
    run.cost_unknown = !old.iterations.is_empty();
    for (number, stage) in (1_u32..).zip(&old.stages) {
        let Some(at) = number_in(plan, old, number) else { continue };
        let index = usize::try_from(at).unwrap_or(1) - 1;
        let (Some(state), Some(planned)) = (run.stages.get_mut(index), plan.stages.get(index)) else { continue };
        let own: Vec<&OldIteration> = old.iterations.iter().filter(|it| it.row.id.stage == number).collect();
        state.iterations = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let agreeing = own.iter().rev().take_while(|iteration| iteration.row.plateau == Some(true)).count();
        state.agreeing = u32::try_from(agreeing).unwrap_or(u32::MAX);
        set_reached(state, planned, stage, started);
    }
    wait_for_needs(plan, &mut run);
    let open = run.stages.iter().position(|state| !state.status.is_over() || state.cut_off);
    let stage = open.map_or(plan.stages.len(), |at| at + 1);
    run.stage = u32::try_from(stage).unwrap_or(1).max(1);
    run
}

fn set_reached(reached: &mut StageState, planned: &StagePlan, stage: &OldStage, started: Millis) {
    // A crash between the last iteration and the end of its stage left it open.
    let is_counted = planned.completion.only_counts() && reached.iterations >= planned.runs;
    let has_begun = stage.status != StageStatus::Pending || reached.iterations > 0;
    reached.status = match stage.status {
        StageStatus::Completed => StageStatus::Completed,
        _ if is_counted => StageStatus::Completed,
        StageStatus::Failed => StageStatus::Failed,
        _ if has_begun => StageStatus::Running,
        other => other,
    };
    reached.cut_off = reached.status == StageStatus::Failed;
    reached.started_at_ms = stage.started_at_ms.or_else(|| has_begun.then_some(started));
    reached.completed_at_ms = stage.completed_at_ms.filter(|_| reached.status.is_over());
    reached.reason.clone_from(&stage.reason);
}

/// A stage that had begun before all that it needs were over begins again when they are.
fn wait_for_needs(plan: &Plan, run: &mut Run) {
    let done: Vec<bool> = run.stages.iter().map(|state| state.status.is_over() && !state.cut_off).collect();
    let is_done = |need: u32| usize::try_from(need).is_ok_and(|need| done.get(need.wrapping_sub(1)) == Some(&true));
    for (number, state) in (1_u32..).zip(&mut run.stages) {
        let is_early = !is_done(number) && !plan.needs_of(number).into_iter().all(is_done);
        if is_early {
            (state.status, state.cut_off, state.started_at_ms) = (StageStatus::Pending, false, None);
        }
    }
}

pub(super) fn records_of(iteration: &OldIteration, stage: u32) -> Vec<Record> {
    let row = &iteration.row;
    let id = AttemptId { stage, ..row.id };
    let success = Box::new(Success {
        result: AgentResult {
            summary: row.summary.clone(),
            plateau: row.plateau,
            reasoning: row.reasoning.clone(),
            decision: row.decision,
            ..AgentResult::default()
        },
        usage: AttemptUsage { cost_unknown: true, tokens_unknown: true, ..AttemptUsage::default() },
        started_at_ms: row.started_at_ms,
        ended_at_ms: row.committed_at_ms,
        ..Success::default()
    });
    vec![
        Record::AttemptStarted { id },
        Record::AttemptEnded { id, outcome: Outcome::Succeeded(success.clone()) },
        Record::Committed { id, success, facts: Vec::new() },
    ]
}
