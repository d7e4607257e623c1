//! What a person and a run say to each other, and when a run is to start.

use serde::Serialize;
use steadfast_model::redact::redact;
use steadfast_model::run::{RunKind, RunStatus, StageStatus};
use steadfast_store::{Appointment, ApprovalRow, Db, NoteRow, RunRow, StoreError};

use super::Timestamp;

/// What a person said to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteView {
    pub text: String,
    pub added_at: Timestamp,
    /// The stage and iteration that read it; null while it waits.
    pub stage: Option<u32>,
    pub iteration: Option<u32>,
}

impl NoteView {
    pub fn is_waiting(&self) -> bool {
        self.iteration.is_none()
    }
}

impl From<NoteRow> for NoteView {
    fn from(row: NoteRow) -> Self {
        let (stage, iteration) = row.taken_by.unzip();
        Self { text: row.text, added_at: Timestamp(row.added_at_ms), stage, iteration }
    }
}

/// What people said to a run, in order.
pub fn note_views(db: Db<'_>, run_id: &str) -> Result<Vec<NoteView>, StoreError> {
    Ok(db.notes(run_id)?.into_iter().map(NoteView::from).collect())
}

/// A question to a person before a stage starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalView {
    pub stage: u32,
    pub stage_name: Option<String>,
    pub question: String,
    pub asked_at: Timestamp,
    /// Whether the stage waits for the answer now.
    pub waiting: bool,
    /// Null until a person answers.
    pub approved: Option<bool>,
    pub note: Option<String>,
    pub answered_at: Option<Timestamp>,
}

/// The questions of a run, in the order of its stages.
pub fn approval_views(db: Db<'_>, row: &RunRow) -> Result<Vec<ApprovalView>, StoreError> {
    let view = |asked: ApprovalRow| {
        let state = row.run.stage_state(asked.stage);
        let is_open = row.run.status == RunStatus::Running && asked.approved.is_none();
        ApprovalView {
            stage: asked.stage,
            stage_name: row.plan.stage(asked.stage).map(|stage| stage.name.clone()),
            question: asked.question,
            asked_at: Timestamp(asked.asked_at_ms),
            waiting: is_open && state.is_some_and(|state| state.status == StageStatus::AwaitingApproval),
            approved: asked.approved,
            note: asked.note,
            answered_at: asked.answered_at_ms.map(Timestamp),
        }
    };
    Ok(db.approvals(&row.run_id)?.into_iter().map(view).collect())
}

/// A run to start later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppointmentView {
    pub name: String,
    pub kind: RunKind,
    pub project: String,
    /// Null if there is no further time.
    pub next_at: Option<Timestamp>,
    pub every_seconds: Option<i64>,
    pub made_at: Timestamp,
    pub last_at: Option<Timestamp>,
    /// The run of the last time; null if it started none.
    pub last_run_id: Option<String>,
    pub last_error: Option<String>,
    /// The command line of each run, without the program and without secrets.
    pub arguments: Vec<String>,
}

impl From<&Appointment> for AppointmentView {
    fn from(row: &Appointment) -> Self {
        Self {
            name: row.name.clone(),
            kind: row.kind,
            project: row.project_dir.clone(),
            next_at: row.next_at_ms.map(Timestamp),
            every_seconds: row.every_ms.map(|every| every / 1_000),
            made_at: Timestamp(row.made_at_ms),
            last_at: row.last_at_ms.map(Timestamp),
            last_run_id: row.last_run_id.clone(),
            last_error: row.last_error.clone(),
            arguments: row.arguments.iter().map(|word| redact(word).into_owned()).collect(),
        }
    }
}
