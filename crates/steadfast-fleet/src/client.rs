//! What commands ask of the server: start, signal, describe, list, wait, schedules and exported histories. None of it
//! needs a worker that is up.

mod schedules;
mod server;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use steadfast_model::clock::Millis;
use steadfast_system::config::FleetConfig;
use temporalio_client::errors::{ClientError, WorkflowGetResultError, WorkflowInteractionError, WorkflowStartError};
use temporalio_client::{
    Client, Memo, WorkflowDescribeOptions, WorkflowExecutionStatus, WorkflowFetchHistoryOptions,
    WorkflowGetResultOptions, WorkflowHandle, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowListOptions,
    WorkflowSignalOptions, WorkflowStartOptions, WorkflowTerminateOptions,
};
use temporalio_common::MemoValues;
use temporalio_common::data_converters::{DecodablePayloads, PayloadConversionError, SerializationContextData};
use temporalio_common::protos::temporal::api::failure::v1::Failure;
use temporalio_common::protos::temporal::api::workflow::v1::PendingActivityInfo;

pub use self::schedules::Scheduled;
pub use self::server::{Poller, ServerFacts};
use crate::connect::{self, FleetError, ServerAddress};
use crate::ledger::{self, LEDGER_ID, LedgerWorkflow};
use crate::wire::{Answer, Caps, LedgerState, RunInput, Status, WorkerProgress};
use crate::workflow::{self, DRIVE_QUEUE, RunWorkflow, run_name, workflow_id};

/// A run with an attempt of an activity, or anything else that a workflow waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// `S-I-A` of an attempt, or the name of what it does: `record`, `publish`.
    pub id: String,
    pub kind: String,
    /// The worker that has it; empty while no worker has taken it.
    pub worker: String,
    pub attempt: u32,
    /// From the last heartbeat.
    pub progress: Option<WorkerProgress>,
    pub scheduled_at_ms: Option<Millis>,
    pub started_at_ms: Option<Millis>,
    /// Why the last try failed.
    pub failure: Option<String>,
}

/// What the server knows of a run.
#[derive(Debug, Clone)]
pub struct Described {
    pub name: String,
    pub temporal_run_id: String,
    pub server_status: WorkflowExecutionStatus,
    /// What the run last said of itself; `None` before its first step.
    pub status: Option<Status>,
    /// Its repository, so that its directory can be found.
    pub repo: String,
    pub started_at_ms: Option<Millis>,
    pub closed_at_ms: Option<Millis>,
    pub history_length: usize,
    pub pending: Vec<Pending>,
    /// Why its last workflow task failed, for example without the key.
    pub trouble: Option<String>,
}

/// A connection to one namespace.
#[derive(Clone)]
pub struct Fleet {
    client: Client,
    pub address: ServerAddress,
}

impl Fleet {
    pub async fn connect(config: &FleetConfig, identity: &str) -> Result<Self, FleetError> {
        let (client, address) = connect::connect(config, identity).await?;
        let fleet = Self { client, address };
        // Finds a missing namespace and a wrong key before anything is done.
        fleet.ledger().await?;
        Ok(fleet)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    fn handle(&self, name: &str) -> WorkflowHandle<Client, RunWorkflow> {
        self.client.get_workflow_handle::<RunWorkflow>(workflow_id(name))
    }

    fn of_status(&self, status: &temporalio_client::tonic::Status, name: &str) -> FleetError {
        connect::of_status(status, name, &self.address.namespace)
    }

    fn of_interaction(&self, error: &WorkflowInteractionError, name: &str) -> FleetError {
        match error {
            WorkflowInteractionError::NotFound(status) | WorkflowInteractionError::Rpc(status) => {
                self.of_status(status, name)
            }
            WorkflowInteractionError::PayloadConversion(error) => of_payload(error),
            other => FleetError::Server(connect::one_line(&other.to_string())),
        }
    }

    fn of_start(&self, error: &WorkflowStartError, name: &str) -> FleetError {
        match error {
            WorkflowStartError::AlreadyStarted { .. } => FleetError::AlreadyRunning(name.to_owned()),
            WorkflowStartError::Rpc(status) => self.of_status(status, name),
            WorkflowStartError::PayloadConversion(error) => of_payload(error),
            other => FleetError::Server(connect::one_line(&other.to_string())),
        }
    }

    fn of_client(&self, error: &ClientError) -> FleetError {
        match error {
            ClientError::Rpc(status) => self.of_status(status, ""),
            ClientError::PayloadConversion(error) => of_payload(error),
            other => FleetError::Server(connect::one_line(&other.to_string())),
        }
    }

    /// Starts a run, or starts it again with what it carried. A run of this name that is over does not stand in the way.
    pub async fn start(&self, input: RunInput) -> Result<(), FleetError> {
        let name = input.run.name.clone();
        let mut memo = MemoValues::new();
        memo.insert(workflow::REPO_MEMO, input.run.repo.url.clone());
        let options = WorkflowStartOptions::new(DRIVE_QUEUE, workflow_id(&name))
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::Fail)
            .memo(memo)
            .build();
        let started = self.client.start_workflow(RunWorkflow::run, input, options).await;
        started.map(drop).map_err(|error| self.of_start(&error, &name))
    }

    /// Asks for the end of a run. Kept by the server until a worker drives the run.
    pub async fn kill(&self, name: &str, reason: &str) -> Result<(), FleetError> {
        let handle = self.handle(name);
        let sent = handle.signal(RunWorkflow::kill, reason.to_owned(), WorkflowSignalOptions::default());
        sent.await.map_err(|error| self.of_interaction(&error, name))
    }

    /// Answers a stage that asks.
    pub async fn answer(&self, name: &str, answer: Answer) -> Result<(), FleetError> {
        let handle = self.handle(name);
        let sent = handle.signal(RunWorkflow::answer, answer, WorkflowSignalOptions::default());
        sent.await.map_err(|error| self.of_interaction(&error, name))
    }

    /// Tells the next agent something.
    pub async fn say(&self, name: &str, note: &str) -> Result<(), FleetError> {
        let handle = self.handle(name);
        let sent = handle.signal(RunWorkflow::say, note.to_owned(), WorkflowSignalOptions::default());
        sent.await.map_err(|error| self.of_interaction(&error, name))
    }

    /// Ends a run on the server without its machine; for runs that nothing else ends.
    pub async fn terminate(&self, name: &str, reason: &str) -> Result<(), FleetError> {
        let options = WorkflowTerminateOptions::builder().reason(reason).build();
        self.handle(name).terminate(options).await.map_err(|error| self.of_interaction(&error, name))
    }

    pub async fn describe(&self, name: &str) -> Result<Described, FleetError> {
        let description = self.handle(name).describe(WorkflowDescribeOptions::default()).await;
        let description = description.map_err(|error| self.of_interaction(&error, name))?;
        let raw = description.raw();
        let trouble = raw.pending_workflow_task.as_ref().filter(|task| task.attempt > 2);
        let trouble = trouble.map(|task| format!("its workflow task failed {} times", task.attempt - 1));
        Ok(Described {
            name: run_name(description.id()),
            temporal_run_id: description.run_id().to_owned(),
            server_status: description.status(),
            status: status_of(&description.memo())?,
            repo: repo_of(&description.memo()),
            started_at_ms: description.start_time().and_then(millis),
            closed_at_ms: description.close_time().and_then(millis),
            history_length: description.history_length(),
            pending: raw.pending_activities.iter().map(|pending| self.pending(pending)).collect(),
            trouble,
        })
    }

    fn pending(&self, pending: &PendingActivityInfo) -> Pending {
        let details = pending.heartbeat_details.as_ref().map(|details| {
            let converter = self.client.options().data_converter.payload_converter().clone();
            DecodablePayloads::new(details.payloads.clone(), converter, SerializationContextData::None)
        });
        let time = |time: Option<&prost_types::Timestamp>| {
            time.map(|time| time.seconds.saturating_mul(1_000).saturating_add(i64::from(time.nanos) / 1_000_000))
        };
        Pending {
            id: pending.activity_id.clone(),
            kind: pending.activity_type.as_ref().map(|kind| kind.name.clone()).unwrap_or_default(),
            worker: pending.last_worker_identity.clone(),
            attempt: u32::try_from(pending.attempt).unwrap_or(0),
            progress: details.and_then(|details| details.deserialize::<WorkerProgress>().ok()),
            scheduled_at_ms: time(pending.scheduled_time.as_ref()),
            started_at_ms: time(pending.last_started_time.as_ref()),
            failure: pending.last_failure.as_ref().map(failure_text),
        }
    }

    /// The runs of the namespace, newest first.
    pub async fn list(&self, only_running: bool, limit: usize) -> Result<Vec<Described>, FleetError> {
        let running = if only_running { " AND ExecutionStatus = 'Running'" } else { "" };
        let query = format!("WorkflowType = '{}'{running}", workflow::WORKFLOW_TYPE);
        let mut stream = self.client.list_workflows(query, WorkflowListOptions::builder().limit(limit).build());
        let mut found = Vec::new();
        while let Some(execution) = stream.next().await {
            let execution = execution.map_err(|error| self.of_client(&error))?;
            if execution.status() == WorkflowExecutionStatus::ContinuedAsNew {
                continue;
            }
            found.push(Described {
                name: run_name(execution.id()),
                temporal_run_id: execution.run_id().to_owned(),
                server_status: execution.status(),
                status: status_of(&execution.memo())?,
                repo: repo_of(&execution.memo()),
                started_at_ms: execution.start_time().and_then(millis),
                closed_at_ms: execution.close_time().and_then(millis),
                history_length: usize::try_from(execution.history_length()).unwrap_or(0),
                pending: Vec::new(),
                trouble: None,
            });
        }
        Ok(found)
    }

    /// Waits for the end of a run, over outages of the server.
    pub async fn result(&self, name: &str) -> Result<Status, FleetError> {
        loop {
            let result = self.handle(name).get_result(WorkflowGetResultOptions::default()).await;
            let error = match result {
                Ok(status) => return Ok(status),
                Err(WorkflowGetResultError::Rpc(status)) => self.of_status(&status, name),
                Err(WorkflowGetResultError::NotFound(status)) => return Err(self.of_status(&status, name)),
                Err(WorkflowGetResultError::PayloadConversion(error)) => return Err(of_payload(&error)),
                Err(other) => return Err(FleetError::Server(connect::one_line(&other.to_string()))),
            };
            if !error.is_transient() {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The history of a run as the server has it, as JSON: with a key, nothing in it can be read.
    pub async fn history(&self, name: &str) -> Result<Vec<u8>, FleetError> {
        let history = self.handle(name).fetch_history(WorkflowFetchHistoryOptions::default());
        history.to_json().await.map_err(|error| match error {
            temporalio_client::WorkflowHistoryError::Fetch(error) => self.of_interaction(&error, name),
            other => FleetError::Server(connect::one_line(&other.to_string())),
        })
    }

    /// Sets the caps of a day over all runs of the namespace.
    pub async fn set_caps(&self, caps: Caps) -> Result<(), FleetError> {
        let options = ledger::start_options();
        let started = self.client.signal_with_start_workflow(
            LedgerWorkflow::run,
            LedgerState::default(),
            LedgerWorkflow::set_caps,
            caps,
            options,
        );
        started.await.map(drop).map_err(|error| self.of_start(&error, LEDGER_ID))
    }

    /// What was spent today and which caps hold; `None` before the first run. Kept in the ledger's memo.
    pub async fn ledger(&self) -> Result<Option<LedgerState>, FleetError> {
        let handle = self.client.get_workflow_handle::<LedgerWorkflow>(LEDGER_ID);
        match handle.describe(WorkflowDescribeOptions::default()).await {
            Ok(description) => description.memo().get(workflow::STATUS_MEMO).map_err(|error| of_payload(&error)),
            Err(error) => match self.of_interaction(&error, LEDGER_ID) {
                FleetError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }
}

/// The message of a failure. With a key it is not in the message itself, but in a payload that is decrypted by now.
fn failure_text(failure: &Failure) -> String {
    let encoded = failure.encoded_attributes.as_ref();
    let encoded = encoded.and_then(|payload| serde_json::from_slice::<serde_json::Value>(&payload.data).ok());
    let message = encoded.as_ref().and_then(|attributes| attributes.get("message")?.as_str());
    connect::one_line(message.unwrap_or(&failure.message))
}

fn of_payload(error: &PayloadConversionError) -> FleetError {
    FleetError::Payload(connect::one_line(&error.to_string()))
}

fn status_of(memo: &Memo) -> Result<Option<Status>, FleetError> {
    memo.get(workflow::STATUS_MEMO).map_err(|error| of_payload(&error))
}

fn repo_of(memo: &Memo) -> String {
    memo.get(workflow::REPO_MEMO).ok().flatten().unwrap_or_default()
}

fn millis(time: SystemTime) -> Option<Millis> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}
