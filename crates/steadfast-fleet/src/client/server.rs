//! What `fleet doctor` asks of the server: itself, the namespace, its clock, and the workers that poll.

use std::time::Duration;

use steadfast_model::clock::{self, Millis};
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{NamespacedClient, UntypedWorkflow, WorkflowDescribeOptions, WorkflowStartOptions};
use temporalio_common::data_converters::RawValue;
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeNamespaceRequest, DescribeTaskQueueRequest, GetClusterInfoRequest,
};

use super::{Fleet, millis};
use crate::connect::FleetError;

/// The type and queue of a workflow that only tells the server's time.
const CLOCK: &str = "steadfast-clock";

/// A worker that polls a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poller {
    pub identity: String,
    pub last_seen_ms: Option<Millis>,
}

/// What `fleet doctor` asks of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    pub version: String,
    pub retention_days: i64,
    /// The server's time minus this machine's.
    pub clock_difference_ms: Option<i64>,
}

impl Fleet {
    /// The workers that poll a queue: for activities, or for workflows.
    pub async fn pollers(&self, queue: &str, workflows: bool) -> Result<Vec<Poller>, FleetError> {
        let kind = if workflows { TaskQueueType::Workflow } else { TaskQueueType::Activity };
        let request = DescribeTaskQueueRequest {
            namespace: self.client.namespace(),
            task_queue: Some(TaskQueue { name: queue.to_owned(), ..TaskQueue::default() }),
            task_queue_type: kind.into(),
            ..DescribeTaskQueueRequest::default()
        };
        let answer = self.client.connection().workflow_service().describe_task_queue(request.into_request()).await;
        let pollers = answer.map_err(|status| self.of_status(&status, queue))?.into_inner().pollers;
        let seen = |time: prost_types::Timestamp| time.seconds.saturating_mul(1_000);
        Ok(pollers
            .into_iter()
            .map(|poller| Poller { identity: poller.identity, last_seen_ms: poller.last_access_time.map(seen) })
            .collect())
    }

    /// The server's time minus this machine's. Only an event has the server's time, so a workflow is started that no
    /// worker takes and the server ends at once.
    async fn clock_difference(&self) -> Result<Option<i64>, FleetError> {
        let id = format!("{CLOCK}-{}", uuid::Uuid::new_v4());
        let options = WorkflowStartOptions::new(CLOCK, id).execution_timeout(Duration::from_secs(1)).build();
        let before = clock::now();
        let started = self.client.start_workflow(UntypedWorkflow::new(CLOCK), RawValue::empty(), options).await;
        let handle = started.map_err(|error| self.of_start(&error, CLOCK))?;
        let after = clock::now();
        let described = handle.describe(WorkflowDescribeOptions::default()).await;
        let described = described.map_err(|error| self.of_interaction(&error, CLOCK))?;
        let between = before.saturating_add(after) / 2;
        Ok(described.start_time().and_then(millis).map(|at| at.saturating_sub(between)))
    }

    /// Asks the server about itself and the namespace.
    pub async fn facts(&self) -> Result<ServerFacts, FleetError> {
        let mut service = self.client.connection().workflow_service();
        let cluster = service.get_cluster_info(GetClusterInfoRequest::default().into_request()).await;
        let cluster = cluster.map_err(|status| self.of_status(&status, ""))?;
        let request = DescribeNamespaceRequest { namespace: self.client.namespace(), ..Default::default() };
        let namespace = service.describe_namespace(request.into_request()).await;
        let namespace = namespace.map_err(|status| self.of_status(&status, ""))?.into_inner();
        let clock_difference_ms = self.clock_difference().await?;
        let retention = namespace.config.and_then(|config| config.workflow_execution_retention_ttl);
        Ok(ServerFacts {
            version: cluster.into_inner().server_version,
            retention_days: retention.map_or(0, |retention| retention.seconds / 86_400),
            clock_difference_ms,
        })
    }
}
