//! Live runs, those that need the user, and runs that start later.

use super::{Action, NeedKind, RunCard, StageDot, Subject, UserNeed, WaitCard};
use crate::overview::runs::{RunView, Timestamp, talk};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{Run, StageStatus};
use steadfast_model::text;
use steadfast_store::{Appointment, Db, RunLine, RunRow, StoreError};

/// Characters of what the last iteration reported.
const SUMMARY_SHOWN: usize = 200;

pub(super) fn subject(line: &RunView) -> Subject {
    Subject::Run { run_id: line.run_id.clone(), name: line.name.clone(), kind: line.kind }
}

/// A live run with its stages, and what it needs.
pub(super) struct LiveRun {
    pub(super) card: RunCard,
    pub(super) needs: Vec<UserNeed>,
    pub(super) wait: Option<WaitCard>,
}

pub(super) fn live(db: Db<'_>, line: RunLine, is_live: bool, now: Millis) -> Result<Option<LiveRun>, StoreError> {
    let Some(row) = db.run(&line.run_id)? else { return Ok(None) };
    let updated_at_ms = line.updated_at_ms;
    let run = RunView::new(line, is_live);
    let last = db.last_iterations(&row.run_id, 1)?.pop();
    let mut needs = approvals(db, &row, &run)?;
    if run.is_orphaned {
        needs.push(orphan(&run, updated_at_ms));
    }
    let wait = is_live.then(|| wait(&run, &row.run, now)).flatten();
    let actions = if run.is_orphaned { vec![Action::Resume, Action::Kill] } else { vec![Action::Say, Action::Kill] };
    let card = RunCard {
        stages: dots(&row),
        last_summary: last.and_then(|iteration| iteration.summary).map(|said| text::headline(&said, SUMMARY_SHOWN)),
        actions,
        run,
    };
    Ok(Some(LiveRun { card, needs, wait }))
}

fn dots(row: &RunRow) -> Vec<StageDot> {
    let status = |number| row.run.stage_state(number).map_or(StageStatus::Pending, |state| state.status);
    let stages = (1_u32..).zip(&row.plan.stages);
    stages.map(|(number, stage)| StageDot { name: stage.name.clone(), status: status(number) }).collect()
}

fn approvals(db: Db<'_>, row: &RunRow, run: &RunView) -> Result<Vec<UserNeed>, StoreError> {
    if !run.is_asking {
        return Ok(Vec::new());
    }
    let open = talk::approval_views(db, row)?.into_iter().filter(|asked| asked.waiting);
    let need = |asked: talk::ApprovalView| {
        let Timestamp(since_ms) = asked.asked_at;
        let stage = asked.stage_name.unwrap_or_else(|| asked.stage.to_string());
        UserNeed {
            kind: NeedKind::Approval,
            subject: subject(run),
            title: format!("{} {}", run.kind, run.name),
            project: Some(run.project.clone()),
            since_ms,
            why: format!("stage {stage}: {}", asked.question),
            hint: format!("steadfast {} approve {} (or reject)", run.kind, run.name),
            items: Vec::new(),
            stage: Some(asked.stage),
            actions: vec![Action::Approve, Action::Reject, Action::Kill],
        }
    };
    Ok(open.map(need).collect())
}

fn orphan(run: &RunView, since_ms: Millis) -> UserNeed {
    UserNeed {
        kind: NeedKind::EngineGone,
        subject: subject(run),
        title: format!("{} {}", run.kind, run.name),
        project: Some(run.project.clone()),
        since_ms,
        why: "its engine died; every committed iteration is kept".to_owned(),
        hint: format!("steadfast {} resume {}", run.kind, run.name),
        items: Vec::new(),
        stage: None,
        actions: vec![Action::Resume, Action::Kill],
    }
}

fn wait(run: &RunView, state: &Run, now: Millis) -> Option<WaitCard> {
    let wait = state.wait.as_ref().filter(|wait| wait.until_ms > now)?;
    let why: String = serde_json::to_value(wait.why).ok()?.as_str()?.replace('_', " ");
    Some(WaitCard {
        subject: subject(run),
        title: format!("{} {}", run.kind, run.name),
        project: Some(run.project.clone()),
        what: why,
        until_ms: Some(wait.until_ms),
        woken_by: "its engine".to_owned(),
        actions: vec![Action::Kill],
    })
}

pub(super) fn appointment(row: &Appointment) -> Option<WaitCard> {
    let at = row.next_at_ms?;
    let every = row.every_ms.map(|every| format!(", every {}", text::duration(every / 1_000))).unwrap_or_default();
    Some(WaitCard {
        subject: Subject::Appointment { name: row.name.clone(), kind: row.kind },
        title: format!("{} {}", row.kind, row.name),
        project: Some(row.project_dir.clone()),
        what: format!("its start at {}{every}", clock::to_local(at)),
        until_ms: Some(at),
        woken_by: "steadfast watch".to_owned(),
        actions: Vec::new(),
    })
}
