//! The trace of a loop or pipeline: the run, and its committed iterations.

use steadfast_model::clock::Millis;

use steadfast_model::run::{AgentKind, Plan, RunReason, RunStatus};
use steadfast_model::text;
use steadfast_store::{Db, IterationRow, RunRow, StoreError};

use super::sent::{Sent, SentMark};
use super::span::{SpanStatus, TraceSpan};
use super::{Trace, TraceOptions, TraceSubject};

pub(super) fn trace(
    db: Db<'_>,
    row: &RunRow,
    sent: &Sent,
    options: TraceOptions,
    now: Millis,
) -> Result<Trace, StoreError> {
    let subject = TraceSubject::Run(row.run_id.clone());
    let key = subject.key();
    let mut mark = sent.mark(&key);
    let is_over = row.run.status != RunStatus::Running;
    let ended_at_ms = is_over.then(|| row.run.completed_at_ms.unwrap_or(row.updated_at_ms).min(now));
    let is_new = mark.ended_at_ms.is_none() && ended_at_ms.is_none_or(|ended| ended >= sent.since_ms);
    if !is_new {
        return Ok(Trace { subject, mark, spans: Vec::new() });
    }
    let mut spans = Vec::new();
    let mut last = mark.until_ms;
    for iteration in db.run_history(&row.run_id, None, usize::MAX)? {
        if mark.until_ms.is_none_or(|until| iteration.committed_at_ms > until) {
            spans.push(iteration_span(&key, row, &iteration, options).into_json());
        }
        last = last.max(Some(iteration.committed_at_ms));
    }
    mark.until_ms = last;
    if let Some(ended) = ended_at_ms {
        spans.push(root(&key, row, ended, options).into_json());
        mark = SentMark { ended_at_ms: Some(ended), ..mark };
    }
    Ok(Trace { subject, mark, spans })
}

fn iteration_span(key: &str, row: &RunRow, iteration: &IterationRow, options: TraceOptions) -> TraceSpan {
    let (stage, number) = (iteration.id.stage, iteration.id.iteration);
    let plan = usize::try_from(stage).ok().and_then(|stage| row.plan.stages.get(stage.checked_sub(1)?));
    let host = plan.and_then(|plan| match &plan.agent.kind {
        AgentKind::Host(host) => Some(*host),
        AgentKind::Command(_) => None,
    });
    let name =
        host.map_or_else(|| "invoke_agent".to_owned(), |host| format!("invoke_agent {}", host.capabilities().product));
    let (start, end) = (iteration.started_at_ms, iteration.committed_at_ms);
    let mut span = TraceSpan::child(key, &format!("{stage} {number}"), &name, start, end);
    span.with("gen_ai.operation.name", "invoke_agent");
    if let Some(host) = host {
        span.with_agent(host);
    }
    let model = plan.and_then(|plan| plan.agent.model.as_deref());
    span.with_some("gen_ai.request.model", model)
        .with("steadfast.run.id", row.run_id.as_str())
        .with("steadfast.stage", i64::from(stage))
        .with_some("steadfast.stage.name", plan.map(|plan| plan.name.as_str()))
        .with("steadfast.iteration", i64::from(number))
        .with("steadfast.iteration.attempts", i64::from(iteration.id.attempt))
        .with("steadfast.iteration.exit_code", i64::from(iteration.exit_code))
        .with_some("steadfast.tokens", (!iteration.tokens_unknown).then_some(iteration.tokens))
        .with_cost((!iteration.cost_unknown).then_some(iteration.cost_micros));
    if options.with_text {
        span.with_some("steadfast.iteration.summary", iteration.summary.as_deref());
    }
    span
}

fn root(key: &str, row: &RunRow, ended: Millis, options: TraceOptions) -> TraceSpan {
    let Plan { name, kind, .. } = &row.plan;
    let run = &row.run;
    let mut span = TraceSpan::root(key, (*kind).into(), run.started_at_ms, ended);
    span.status = if run.status == RunStatus::Completed { SpanStatus::Ok } else { SpanStatus::Error };
    // What follows the word may quote an error message or a person.
    let word = run.reason.as_deref().and_then(RunReason::parse).map(<&str>::from);
    let reason = if options.with_text { run.reason.as_deref().or(word) } else { word };
    span.with("steadfast.run.id", row.run_id.as_str())
        .with("steadfast.run.name", text::headline(name, 80).as_str())
        .with("steadfast.run.kind", <&str>::from(*kind))
        .with("steadfast.run.status", <&str>::from(run.status))
        .with_some("steadfast.run.reason", reason)
        .with_some("steadfast.tokens", (!run.tokens_unknown).then_some(run.tokens))
        .with_cost((!run.cost_unknown).then_some(run.cost_micros))
        .with("steadfast.project", crate::metrics::collect::base_name(&row.project_dir).as_str());
    span
}
