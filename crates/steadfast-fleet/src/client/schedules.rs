//! Schedules, by which the server starts runs.

use futures_util::StreamExt;
use steadfast_model::clock::Millis;
use temporalio_client::schedules::{
    CreateScheduleOptions, DeleteScheduleOptions, ListSchedulesOptions, ScheduleAction, ScheduleError,
    ScheduleOverlapPolicy, ScheduleSpec,
};

use super::{Fleet, millis, of_payload};
use crate::connect::{self, FleetError};
use crate::wire::RunInput;
use crate::workflow::{self, DRIVE_QUEUE, RunWorkflow, run_name, workflow_id};

/// A schedule that starts runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    pub name: String,
    pub paused: bool,
    pub next_at_ms: Option<Millis>,
    pub note: String,
}

impl Fleet {
    fn of_schedule(&self, error: &ScheduleError, name: &str) -> FleetError {
        match error {
            ScheduleError::Rpc(status) => self.of_status(status, name),
            ScheduleError::PayloadConversion(error) => of_payload(error),
            other => FleetError::Server(connect::one_line(&other.to_string())),
        }
    }

    /// Starts runs by the clock. Each gets the name with the time appended.
    pub async fn create_schedule(&self, cron: &str, timezone: &str, input: RunInput) -> Result<(), FleetError> {
        let name = input.run.name.clone();
        let spec = ScheduleSpec::builder().cron_strings(vec![cron.to_owned()]).timezone_name(timezone).build();
        // The server keeps a note in clear, so it has no more than the times, which it has to know.
        let note = cron.to_owned();
        let action = ScheduleAction::start_workflow(RunWorkflow::run, input, DRIVE_QUEUE, workflow_id(&name));
        let options = CreateScheduleOptions::builder()
            .action(action)
            .spec(spec)
            .overlap_policy(ScheduleOverlapPolicy::Skip)
            .note(note)
            .build();
        let created = self.client.create_schedule(workflow_id(&name), options).await;
        created.map(drop).map_err(|error| self.of_schedule(&error, &name))
    }

    pub async fn list_schedules(&self) -> Result<Vec<Scheduled>, FleetError> {
        let mut stream = self.client.list_schedules(ListSchedulesOptions::default());
        let mut found = Vec::new();
        while let Some(schedule) = stream.next().await {
            let schedule = schedule.map_err(|error| self.of_schedule(&error, ""))?;
            if schedule.workflow_type() != Some(workflow::WORKFLOW_TYPE) {
                continue;
            }
            found.push(Scheduled {
                name: run_name(schedule.schedule_id()),
                paused: schedule.paused(),
                next_at_ms: schedule.future_action_times().first().copied().and_then(millis),
                note: schedule.note().unwrap_or_default().to_owned(),
            });
        }
        Ok(found)
    }

    pub async fn delete_schedule(&self, name: &str) -> Result<(), FleetError> {
        let handle = self.client.get_schedule_handle(workflow_id(name));
        handle.delete(DeleteScheduleOptions::default()).await.map_err(|error| self.of_schedule(&error, name))
    }
}
