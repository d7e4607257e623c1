//! A change that is saved is reported as done, also if nothing can be read afterwards.

use crate::env::Env;

#[test]
fn a_read_that_fails_after_the_change_does_not_undo_the_answer() {
    let env = Env::new();
    env.start(&["x"]);
    env.execute("ALTER TABLE verifications RENAME TO away");
    env.goal(&["status"]).fails_with(4, "verifications");
    let paused = env.goal(&["pause", "--json"]);
    let json = paused.succeeds().json();
    assert_eq!(json["goal"]["status"], "paused", "{json}");
    assert!(json["incomplete"].as_str().unwrap().contains("the change is saved"), "{json}");
    crate::schemas::check("goal-status.schema.json", &json);
    let started = env.run(&["goal", "start", "y", "--session", "s2"]);
    assert!(started.succeeds().stdout.contains("Goal started: y"), "{started:?}");
    env.execute("ALTER TABLE away RENAME TO verifications");
    assert_eq!(env.status()["status"], "paused");
}
