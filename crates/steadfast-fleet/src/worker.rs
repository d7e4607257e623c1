//! The process of a worker: one poller per queue that fits its agents and labels, all sharing its slots. SIGTERM drains
//! it, a second signal ends it at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::join_all;
use steadfast_system::config::Config;
use temporalio_client::Client;
use temporalio_sdk::error::WorkerRunError;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::runtime::{PollerBehavior, RuntimeOptions};
use temporalio_sdk::{Runtime, WorkerOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;

use crate::activities::{Agents, Checks, DriverActivities, Worker};
use crate::client::Fleet;
use crate::connect::{FleetError, one_line};
use crate::ledger::LedgerWorkflow;
use crate::work::{self, Allowed, WorkerContext};
use crate::workflow::{DRIVE_QUEUE, RunWorkflow, agent_queue, check_queue};

/// Every set of labels is a queue, so there are few of them.
pub const MOST_LABELS: usize = 3;
/// A driver that is gone holds a run up for this long.
const STICKY: Duration = Duration::from_secs(5);
/// Cancellation comes with the answer to a heartbeat.
const HEARTBEAT_THROTTLE: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(2);
const DRIVE_ACTIVITIES: usize = 100;
const TIDY_EVERY: Duration = Duration::from_hours(24);

/// What the user asked a worker to be.
#[derive(Debug, Clone)]
pub struct WorkerArguments {
    /// Agents at once.
    pub slots: usize,
    /// `claude`, `codex`, `command`.
    pub agents: Vec<String>,
    pub labels: Vec<String>,
    /// Also drives runs: decides and records for all of them.
    pub drive: bool,
    /// The repositories it takes; empty for all.
    pub repos: Vec<String>,
    /// Waits for a server that is not up yet.
    pub wait: bool,
    /// How long running agents may go on after SIGTERM.
    pub drain: Duration,
    /// Between TERM and KILL of an agent.
    pub grace: Duration,
    /// `$STEADFAST_HOME`.
    pub home: PathBuf,
    pub config: Config,
}

/// `HOST/PID`, as the server and heartbeats call a worker.
pub fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}/{}", std::process::id())
}

/// The queues of a worker, for attempts or for checks: its agents with every set of its labels.
fn queues(agents: &[String], labels: &[String], queue: fn(&str, &[String]) -> String) -> Vec<String> {
    let mut sets: Vec<Vec<String>> = vec![Vec::new()];
    for label in labels.iter().take(MOST_LABELS) {
        let with: Vec<Vec<String>> =
            sets.iter().map(|set| [set.as_slice(), std::slice::from_ref(label)].concat()).collect();
        sets.extend(with);
    }
    let mut queues: Vec<String> =
        agents.iter().flat_map(|agent| sets.iter().map(|set| queue(agent, set)).collect::<Vec<_>>()).collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

/// Works until a signal. `say` prints a line for the user.
pub async fn run(arguments: WorkerArguments, say: &mut dyn FnMut(&str)) -> Result<(), FleetError> {
    let program = std::env::current_exe().map_err(|error| FleetError::Settings(format!("own program: {error}")))?;
    let name = identity();
    let mut signals = Signals::new().map_err(|error| FleetError::Settings(format!("signals: {error}")))?;
    let fleet = tokio::select! {
        fleet = connected(&arguments, &name, say) => fleet?,
        () = signals.next() => return Ok(()),
    };
    let allowed = Allowed { repos: arguments.repos.clone(), agents: arguments.agents.clone() };
    let context = WorkerContext {
        home: arguments.home.clone(),
        program,
        config: arguments.config.clone(),
        grace: arguments.grace,
        name: name.clone(),
        allowed,
    };
    tidy(&context).await;
    tokio::spawn(tidy_daily(context.clone()));
    let shared = Arc::new(Worker {
        context,
        slots: Semaphore::new(arguments.slots),
        check_slots: Semaphore::new(arguments.slots.max(2)),
        is_draining: AtomicBool::new(false),
    });
    let mut workers = start(&arguments, &fleet, &shared)?;
    let queues: Vec<&str> = workers.iter().map(temporalio_sdk::Worker::task_queue).collect();
    let address = &fleet.address;
    say(&format!("worker {name} at {} ({}): {} slots", address.url, address.namespace, arguments.slots));
    say(&format!("queues: {}", queues.join(", ")));
    let stops: Vec<_> = workers.iter().map(temporalio_sdk::Worker::shutdown_handle).collect();
    let work = join_all(workers.iter_mut().map(temporalio_sdk::Worker::run));
    let mut work = std::pin::pin!(work);
    tokio::select! {
        results = &mut work => return ended(results, &address.namespace),
        () = signals.next() => {}
    }
    shared.drain();
    let busy = arguments.slots.saturating_sub(shared.slots.available_permits());
    let seconds = arguments.drain.as_secs();
    say(&format!("draining: {busy} agents may go on for {seconds} s; a second signal ends them at once"));
    for stop in stops {
        stop();
    }
    tokio::select! {
        results = work => ended(results, &address.namespace),
        () = signals.next() => {
            say("ended at once");
            Ok(())
        }
    }
}

async fn tidy(context: &WorkerContext) {
    let context = context.clone();
    let tidied = tokio::task::spawn_blocking(move || work::tidy(&context)).await;
    if let Ok(Err(error)) = tidied {
        tracing::warn!("old files of workers were not removed: {error}");
    }
}

async fn tidy_daily(context: WorkerContext) {
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        tidy(&context).await;
    }
}

/// Connects, and with `--wait` again and again.
async fn connected(arguments: &WorkerArguments, name: &str, say: &mut dyn FnMut(&str)) -> Result<Fleet, FleetError> {
    let mut has_said = false;
    loop {
        match Fleet::connect(&arguments.config.fleet, name).await {
            Err(error) if arguments.wait && error.is_transient() => {
                if !std::mem::replace(&mut has_said, true) {
                    say(&format!("{error}; waiting"));
                }
                tokio::time::sleep(WAIT).await;
            }
            result => return result,
        }
    }
}

fn start(
    arguments: &WorkerArguments,
    fleet: &Fleet,
    shared: &Arc<Worker>,
) -> Result<Vec<temporalio_sdk::Worker>, FleetError> {
    let failed = |error: &dyn std::fmt::Display| FleetError::Server(one_line(&error.to_string()));
    let options = RuntimeOptions::builder().disable_environment_info(true).build();
    let options = options.map_err(|error| failed(&error))?;
    let runtime = Runtime::from_current_tokio(options).map_err(|error| failed(&error))?;
    let mut workers = Vec::new();
    let mut add = |options: WorkerOptions| -> Result<(), FleetError> {
        let client: Client = fleet.client().clone();
        workers.push(temporalio_sdk::Worker::new(&runtime, client, options).map_err(|error| failed(&error))?);
        Ok(())
    };
    let (agents, labels) = (&arguments.agents, &arguments.labels);
    for queue in queues(agents, labels, agent_queue) {
        add(WorkerOptions::new(queue)
            .register_activities(Agents(Arc::clone(shared)))
            .tuner(tuner(arguments.slots))
            .activity_task_poller_behavior(PollerBehavior::SimpleMaximum(2))
            .max_heartbeat_throttle_interval(HEARTBEAT_THROTTLE)
            .graceful_shutdown_period(arguments.drain)
            .build())?;
    }
    for queue in queues(agents, labels, check_queue) {
        add(WorkerOptions::new(queue)
            .register_activities(Checks(Arc::clone(shared)))
            .tuner(tuner(arguments.slots.max(2)))
            .activity_task_poller_behavior(PollerBehavior::SimpleMaximum(2))
            .max_heartbeat_throttle_interval(HEARTBEAT_THROTTLE)
            .graceful_shutdown_period(arguments.drain)
            .build())?;
    }
    if arguments.drive {
        add(WorkerOptions::new(DRIVE_QUEUE)
            .register_workflow::<RunWorkflow>()
            .map_err(|error| failed(&error))?
            .register_workflow::<LedgerWorkflow>()
            .map_err(|error| failed(&error))?
            .register_activities(DriverActivities(Arc::clone(shared)))
            .tuner(tuner(DRIVE_ACTIVITIES))
            .sticky_queue_schedule_to_start_timeout(STICKY)
            .graceful_shutdown_period(arguments.drain)
            .build())?;
    }
    Ok(workers)
}

fn tuner(activities: usize) -> TunerHolder {
    TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(100))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(activities))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(100))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build()
}

fn ended(results: Vec<Result<(), WorkerRunError>>, namespace: &str) -> Result<(), FleetError> {
    for result in results {
        match result {
            Ok(()) => {}
            Err(WorkerRunError::Validation(error)) if error.to_string().contains("not found") => {
                return Err(FleetError::NoNamespace(namespace.to_owned()));
            }
            Err(error) => return Err(FleetError::Server(one_line(&error.to_string()))),
        }
    }
    Ok(())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Warnings of the SDK go to stderr, one line each.
pub fn log_to_stderr() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .compact();
    // A second one cannot be installed, and the first one is as good.
    drop(subscriber.try_init());
}

/// Runs a future of this crate. Threads that still block when it ends do not hold the process up.
pub fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_polls_every_set_of_its_labels() {
        let labels = ["gpu".to_owned(), "big".to_owned()];
        let found = queues(&["claude".to_owned()], &labels, agent_queue);
        let agent = "steadfast-agent-claude";
        let expected = [agent.to_owned(), format!("{agent}+big"), format!("{agent}+big+gpu"), format!("{agent}+gpu")];
        assert_eq!(found, expected);
    }
}
