//! `--cron`: Temporal starts the runs.

use serde_json::json;

use crate::world::{World, until};

#[test]
fn a_schedule_starts_runs_of_its_own_name_until_it_is_deleted() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", "completion: fixed-n\ndelay: 0", "go");
    let _worker = world.driver("w1", "1");
    let agent = world.writer("0");
    let arguments =
        ["loop", "run", "work", "nightly", "--agent", &agent, "--max", "1", "--fleet", "--cron", "* * * * *"];
    let said = world.ok(&arguments);
    assert!(said.contains("* * * * *"), "{said}");
    // Lists of the server are a moment late.
    until("the schedule is listed", || {
        let schedules = world.json(&["fleet", "schedules"]);
        (schedules["schedules"][0]["name"] == "nightly").then_some(())
    });
    // Now, and not in a minute.
    let started = world.temporal(&["schedule", "trigger", "--schedule-id", "steadfast/nightly"]);
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let name = until("a run of the schedule ends", || {
        let list = world.json(&["fleet", "list"]);
        let runs = list["runs"].as_array().unwrap().clone();
        let done = runs.iter().find(|run| run["live"] == false)?;
        Some(done["name"].as_str().unwrap().to_owned())
    });
    assert!(name.starts_with("nightly-") && !name.contains(':'), "{name}");
    assert_eq!(world.file_of(&format!("steadfast/{name}"), "log.txt"), "1");
    world.ok(&["fleet", "schedules", "delete", "nightly"]);
    until("it is gone", || (world.json(&["fleet", "schedules"])["schedules"] == json!([])).then_some(()));
}
