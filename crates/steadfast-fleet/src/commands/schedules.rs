//! `fleet schedules`: what `--cron` starts. Temporal keeps the times.

use serde_json::{Value, json};
use steadfast_model::clock;

use super::Here;
use crate::client::Scheduled;
use crate::output::{CommandResult, Output};

pub(super) async fn list(here: &Here) -> CommandResult {
    let schedules = here.connect().await?.list_schedules().await?;
    let object = |schedule: &Scheduled| {
        json!({
            "name": schedule.name, "paused": schedule.paused, "note": schedule.note,
            "next_at": schedule.next_at_ms.map(clock::to_rfc3339),
        })
    };
    let line = |schedule: &Scheduled| {
        let next = schedule.next_at_ms.map_or_else(|| "never".to_owned(), clock::to_local);
        let paused = if schedule.paused { " (paused)" } else { "" };
        format!("{}: next {next}{paused}; {}", schedule.name, schedule.note)
    };
    let objects: Value = schedules.iter().map(object).collect();
    let text = if schedules.is_empty() {
        "no schedules\nmake one: steadfast loop run TYPE NAME --fleet --cron \"0 3 * * *\"".to_owned()
    } else {
        schedules.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    Output::new(text, json!({"schedules": objects}))
}

pub(super) async fn delete(here: &Here, name: &str) -> CommandResult {
    here.connect().await?.delete_schedule(name).await?;
    Output::new(
        format!("schedule {name} is deleted; runs that it started stay"),
        json!({"name": name, "deleted": true}),
    )
}
