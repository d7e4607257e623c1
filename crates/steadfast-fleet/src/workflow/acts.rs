//! What the machine's acts mean on a fleet: which queue, which place, how long. Pure, and called where the plan is.

use steadfast_model::clock::Millis;
use steadfast_model::run::machine::{self, attempt_time_left};
use steadfast_model::run::{Act, AgentKind, AgentPlan, AttemptId, Check, Plan, Run, StagePlan};

use crate::wire::{Decided, Face, FleetAct, FleetOptions, RUN_PLACE, StepRequest};

/// One step of the machine.
pub(crate) fn decide(plan: &Plan, question: StepRequest) -> Decided {
    let StepRequest { options, run, event, now, .. } = question;
    let run = run.unwrap_or_else(|| machine::begin(plan, now));
    let step = machine::step(plan, run, event, now);
    let acts = step.acts.into_iter().map(|act| fleet_act(plan, &step.run, &options, act, now)).collect();
    let max_iterations = step.run.max_iterations(plan, step.run.stage);
    let face = Face { kind: plan.kind.to_string(), title: plan.title.clone(), max_iterations };
    Decided { run: step.run, records: step.records, acts, face }
}

fn fleet_act(plan: &Plan, run: &Run, options: &FleetOptions, act: Act, now: Millis) -> FleetAct {
    match act {
        Act::Start(id) => {
            let agent = plan.stage(id.stage).map(|stage| stage.agent_of(id.iteration));
            FleetAct::Start {
                id,
                queue: agent_queue(agent_name(agent), &options.labels),
                timeout_ms: plan.stage(id.stage).map(|stage| stage.timeout_ms),
                deadline_ms: attempt_time_left(plan, run, id.stage, now).map(|left| now.saturating_add(left)),
                place: place_of(plan, id),
                base_place: base_place_of(plan, id.stage),
            }
        }
        Act::Check { id, checks } => FleetAct::Check {
            queue: check_queue(agent_name(checker(plan, id, &checks)), &options.labels),
            place: place_of(plan, id),
            base_place: base_place_of(plan, id.stage),
            id,
            checks,
        },
        Act::Decide(stage) => FleetAct::Condition {
            stage,
            queue: check_queue(agent_name(plan.stage(stage).map(|stage| stage.agent_of(1))), &options.labels),
            place: base_place_of(plan, stage),
            base_place: RUN_PLACE.to_owned(),
        },
        Act::Stop(ids) => FleetAct::Stop(ids),
        Act::WakeAt(at) => FleetAct::WakeAt(at),
        Act::Finish => FleetAct::Finish,
    }
}

/// The agent whose worker tests a rule: the judge, where one is asked.
fn checker<'a>(plan: &'a Plan, id: AttemptId, checks: &[Check]) -> Option<&'a AgentPlan> {
    let stage = plan.stage(id.stage)?;
    let judge = stage.judge.as_ref().filter(|_| checks.contains(&Check::Judge));
    Some(judge.unwrap_or_else(|| stage.agent_of(id.iteration.max(1))))
}

fn agent_name(agent: Option<&AgentPlan>) -> &'static str {
    match agent.map(|agent| &agent.kind) {
        Some(AgentKind::Host(host)) => (*host).into(),
        Some(AgentKind::Command(_)) | None => "command",
    }
}

/// The queue of the workers that run this agent and have these labels.
pub fn agent_queue(agent: &str, labels: &[String]) -> String {
    with_labels(format!("steadfast-agent-{agent}"), labels)
}

/// Checks and conditions have a queue of their own: a quick check does not wait until a long agent is done.
pub fn check_queue(agent: &str, labels: &[String]) -> String {
    with_labels(format!("steadfast-check-{agent}"), labels)
}

fn with_labels(queue: String, labels: &[String]) -> String {
    let mut labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    labels.sort_unstable();
    labels.dedup();
    labels.iter().fold(queue, |queue, label| format!("{queue}+{label}"))
}

/// The place of an attempt's work.
fn place_of(plan: &Plan, id: AttemptId) -> String {
    let parallel = plan.stage(id.stage).is_some_and(|stage| stage.parallel);
    if parallel { format!("{}-{}", id.stage, id.iteration) } else { base_place_of(plan, id.stage) }
}

/// The place that a stage works in, or that its parallel iterations start from.
fn base_place_of(plan: &Plan, stage: u32) -> String {
    let lane = |stage: &StagePlan| stage.lane.as_ref().map(|lane| format!("lane-{lane}"));
    plan.stage(stage).and_then(lane).unwrap_or_else(|| RUN_PLACE.to_owned())
}

#[cfg(test)]
mod tests {
    use steadfast_model::run::{Rule, RunEvent, RunKind, RunLimits, RunPurpose};

    use super::*;
    use crate::wire::RunRef;

    fn plan(stages: Vec<StagePlan>) -> Plan {
        let (name, title) = ("work".to_owned(), "work".to_owned());
        let (limits, purpose) = (RunLimits::default(), RunPurpose::default());
        Plan { name, kind: RunKind::Pipeline, title, pipeline_file: None, stages, limits, purpose }
    }

    fn command() -> AgentPlan {
        AgentPlan::new(AgentKind::Command(vec!["true".to_owned()]))
    }

    fn first(plan: &Plan, labels: &[&str]) -> FleetAct {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let options = FleetOptions { labels, ..FleetOptions::default() };
        let question =
            StepRequest { run_ref: RunRef::default(), options, run: None, event: RunEvent::Started, now: 1_000 };
        decide(plan, question).acts.remove(0)
    }

    #[test]
    fn an_attempt_goes_to_the_queue_of_its_agent_and_labels() {
        let stage = StagePlan { agent: command(), ..StagePlan::new("build", Rule::FixedN, 1) };
        let FleetAct::Start { queue, place, base_place, .. } = first(&plan(vec![stage]), &["gpu", "big"]) else {
            panic!("no start")
        };
        assert_eq!(queue, "steadfast-agent-command+big+gpu");
        assert_eq!((place.as_str(), base_place.as_str()), ("run", "run"));
    }

    #[test]
    fn parallel_iterations_and_lanes_have_places_of_their_own() {
        let parallel = StagePlan { parallel: true, lane: Some("a".to_owned()), ..StagePlan::new("p", Rule::FixedN, 2) };
        let FleetAct::Start { place, base_place, queue, .. } = first(&plan(vec![parallel]), &[]) else {
            panic!("no start")
        };
        assert_eq!((place.as_str(), base_place.as_str()), ("1-1", "lane-a"));
        assert_eq!(queue, "steadfast-agent-claude");
    }
}
