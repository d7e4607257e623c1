//! A cap of the day stops the runs of every worker, and those that start later.

use serde_json::json;

use crate::world::{World, until};

#[test]
fn a_cap_stops_runs_on_every_worker() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", "completion: fixed-n\ndelay: 0", "go");
    let _driver = world.driver("driver", "0");
    let workers = ["w1", "w2"].map(|name| world.worker(name, &["--slots", "1"]));
    workers.iter().for_each(crate::world::Worker::wait_ready);
    world.ok(&["fleet", "caps", "--tokens", "60"]);
    let agent = world.writer("1");
    for name in ["a", "b"] {
        world.start_loop("work", name, &agent, &["--max", "200"]);
    }
    for name in ["a", "b"] {
        let status = world.wait_end(name);
        assert_eq!((&status["status"], &status["reason"]), (&json!("completed"), &json!("cost_cap")), "{status}");
    }
    let caps = until("the ledger has all", || {
        let caps = world.json(&["fleet", "caps"]);
        (caps["tokens"].as_i64()? >= 60).then_some(caps)
    });
    assert_eq!(caps["caps"]["tokens"], json!(60), "{caps}");
    // One that starts later on the same day ends too.
    world.start_loop("work", "late", &agent, &["--max", "200"]);
    let status = world.wait_end("late");
    assert_eq!(status["reason"], json!("cost_cap"), "{status}");
    // Without the cap it goes on.
    world.ok(&["fleet", "caps", "--none"]);
    world.ok(&["fleet", "resume", "late", "--max", "300", "--detach"]);
    until("an agent works again", || (world.status("late")["status"] == "running").then_some(()));
    world.ok(&["fleet", "kill", "late"]);
}
