//! Writes a finished loop of so many iterations into a store, step by step as an engine does: something long for
//! `./bench loop` to look at. `long_run STORE PROJECT NAME ITERATIONS`

use std::path::Path;

use steadfast_model::clock;
use steadfast_model::run::machine::{begin, step};
use steadfast_model::run::{
    AgentKind, AgentPlan, AgentResult, AttemptId, Outcome, Plan, Rule, RunEvent, RunKind, RunLimits, RunPurpose,
    StagePlan, Success,
};
use steadfast_store::{Store, StoreError};

/// Steps saved together: who waits for the disk after each one measures the disk.
const AT_ONCE: u32 = 1_000;

fn plan(name: &str, iterations: u32) -> Plan {
    let agent = AgentPlan::new(AgentKind::Command(vec!["true".to_owned()]));
    let stage = StagePlan { prompt: "Go on.".to_owned(), agent, ..StagePlan::new("long", Rule::FixedN, iterations) };
    Plan {
        name: name.to_owned(),
        kind: RunKind::Loop,
        title: "long".to_owned(),
        pipeline_file: None,
        stages: vec![stage],
        limits: RunLimits::default(),
        purpose: RunPurpose::Definition,
    }
}

fn came_through(iteration: u32) -> RunEvent {
    let summary = Some(format!("Moved the parser of part {iteration} to the new reader, with its tests"));
    let result = AgentResult { summary, plateau: Some(false), ..AgentResult::default() };
    let now = clock::now();
    let success = Success { result, started_at_ms: now, ended_at_ms: now, ..Success::default() };
    RunEvent::Ended {
        id: AttemptId { stage: 1, iteration, attempt: 1 },
        outcome: Outcome::Succeeded(Box::new(success)),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, project, name, iterations] = arguments.as_slice() else {
        return Err("long_run STORE PROJECT NAME ITERATIONS".into());
    };
    let iterations: u32 = iterations.parse()?;
    let plan = plan(name, iterations);
    let mut store = Store::open(Path::new(store))?;
    let run_id = format!("long-{name}");
    let mut run = begin(&plan, clock::now());
    let mut version = store.write(|db| db.create_run(&run_id, project, &plan, &run, clock::now()))?.version;
    let mut events = std::iter::once(RunEvent::Started).chain((1..=iterations).map(came_through)).peekable();
    while events.peek().is_some() {
        store.write(|db| {
            for event in events.by_ref().take(AT_ONCE as usize) {
                let now = clock::now();
                let made = step(&plan, run.clone(), event, now);
                version = db.save_step(&run_id, version, &made, now)?;
                run = made.run;
            }
            Ok::<(), StoreError>(())
        })?;
    }
    Ok(())
}
