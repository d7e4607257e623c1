//! Actions of the page: each changes the store as its command does, and no field becomes anything else.

use serde_json::Value;

use super::Ui;
use crate::approvals;
use crate::attempts::eventually;
use crate::env::Env;
use crate::runs::World;

const ENDLESS: &str = "cat > /dev/null; while :; do sleep 0.1; done";

fn id_of(goal: &Value) -> String {
    goal["goal_id"].as_str().unwrap().to_owned()
}

fn done(ui: &Ui, path: &str, form: &str) -> String {
    let reply = ui.post(path, form);
    let answer = reply.json();
    assert_eq!((reply.status, &answer["ok"]), (200, &Value::Bool(true)), "{path}: {reply:?}");
    answer["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_goal_is_paused_resumed_extended_and_completed() {
    let env = Env::new();
    let goal = id_of(&env.start(&["x", "--budget", "1000", "--usd", "1", "--max-turns", "5", "--max-hours", "1"]));
    let ui = Ui::start(&env, &[]);
    let act = |verb: &str, form: &str| done(&ui, &format!("/goals/{goal}/{verb}"), form);
    assert!(act("pause", "back=%2F").starts_with("goal paused"));
    assert_eq!(env.status()["status"], "paused");
    assert!(act("resume", "").starts_with("goal resumed"));
    assert_eq!(env.status()["status"], "active");
    act("extend", "tokens=1k&usd=2&turns=3&hours=1.5");
    let status = env.status();
    assert_eq!(
        (&status["token_budget"], &status["usd_budget"], &status["continuations_remaining"]),
        (&2000.into(), &3.0.into(), &8.into())
    );
    assert_eq!(env.sql("SELECT max_wall_clock_seconds FROM goals"), [["9000"]]);
    env.execute("UPDATE goals SET status = 'paused', paused_reason = 'accounting_uncertain', accounting_uncertain = 1");
    act("reconcile", "");
    assert_eq!(env.status()["accounting_uncertain"], false);
    act("complete", "");
    assert_eq!(env.status()["status"], "complete");
    let by = |actor: &str| env.sql(&format!("SELECT count(*) >= 5 FROM goal_events WHERE actor = '{actor}'"));
    assert_eq!((by("user"), by("worker")), (vec![vec!["1".into()]], vec![vec!["0".into()]]), "who started the server");
    let late = ui.post(&format!("/goals/{goal}/pause"), "");
    assert_eq!((late.status, &late.json()["ok"]), (409, &Value::Bool(false)), "{late:?}");
    assert!(!late.json()["hint"].as_str().unwrap().is_empty());
}

#[test]
fn checks_run_in_the_background_and_leave_their_evidence() {
    let env = Env::new();
    let goal = id_of(&env.start(&["x", "--verify", "while [ ! -e go ]; do sleep 0.05; done; echo fine"]));
    let ui = Ui::start(&env, &[]);
    let path = format!("/goals/{goal}/verify");
    assert!(done(&ui, &path, "").contains("the checks run"));
    ui.post(&path, "").is(409, "run already");
    std::fs::write(env.project().join("go"), "").unwrap();
    let evidence = || env.sql("SELECT exit_code FROM verifications").into_iter().next();
    assert_eq!(eventually(evidence), ["0"]);
    env.goal(&["abandon"]).succeeds();
    let plain = id_of(&env.start(&["y"]));
    ui.post(&format!("/goals/{plain}/verify"), "").is(409, "no verification commands");
    // A page of a goal that was replaced must not act on the new one.
    ui.post(&format!("/goals/{goal}/abandon"), "").is(409, "a newer goal replaced this one");
    done(&ui, &format!("/goals/{plain}/abandon"), "");
    assert_eq!(env.status()["status"], "abandoned");
}

#[test]
fn a_queue_is_ordered_and_a_goal_is_adopted() {
    let env = Env::new();
    let goal = id_of(&env.start(&["x"]));
    for objective in ["one", "two", "three"] {
        env.goal(&["start", objective, "--queue"]).succeeds();
    }
    let queue = || -> Vec<String> {
        let listed = env.goal(&["queue", "list", "--json"]).json();
        let entries = listed["queue"].as_array().unwrap();
        entries.iter().map(|entry| entry["objective"].as_str().unwrap().to_owned()).collect()
    };
    let ui = Ui::start(&env, &[]);
    done(&ui, &format!("/goals/{goal}/queue_move"), "from=3&to=1");
    assert_eq!(queue(), ["three", "one", "two"]);
    done(&ui, &format!("/goals/{goal}/queue_drop"), "from=2");
    assert_eq!(queue(), ["three", "two"]);
    ui.post(&format!("/goals/{goal}/queue_drop"), "from=9").is(409, "");
    ui.post(&format!("/goals/{goal}/adopt"), "").is(400, "session");
    env.hook("s1", &serde_json::json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    env.hook("s2", &serde_json::json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let adopted = ui.post(&format!("/goals/{goal}/adopt"), "session=s2");
    assert_eq!(adopted.status, 200, "{adopted:?}");
    assert_eq!(env.sql("SELECT session_id FROM goals"), [["s2"]]);
}

#[test]
fn a_run_is_told_something_killed_and_resumed() {
    let world = World::new();
    world.loop_type("work", "completion: fixed");
    let agent = world.agent(ENDLESS);
    world.run(&["loop", "run", "work", "w", "--max", "3", "--agent", &agent, "--detach"]).succeeds();
    let first = world.status("loop", "w")["run_id"].as_str().unwrap().to_owned();
    let ui = Ui::start(&world.env, &[]);
    let act = |verb: &str, form: &str| done(&ui, &format!("/runs/{first}/{verb}"), form);
    act("say", "text=--drop+the+%22database%22%0D%0A%24(touch+pwned)");
    let notes = &world.status("loop", "w")["notes"];
    assert_eq!(notes[0]["text"], "--drop the \"database\"\n$(touch pwned)");
    act("kill", "");
    assert_eq!(world.status("loop", "w")["status"], "killed");
    act("resume", "");
    assert_eq!(world.status("loop", "w")["status"], "running");
    world.engine("loop", "w");
    act("kill", "");
    ui.post(&format!("/runs/{first}/kill"), "").is(409, "is over (killed");
    // The name means a newer run now.
    world.run(&["loop", "run", "work", "w", "--max", "3", "--agent", &agent, "--detach"]).succeeds();
    ui.post(&format!("/runs/{first}/kill"), "").is(409, "a newer run has the name w");
    assert_eq!(world.status("loop", "w")["status"], "running");
    world.run(&["loop", "kill", "w"]).succeeds();
    let newest = world.status("loop", "w")["run_id"].as_str().unwrap().to_owned();
    ui.post(&format!("/runs/{newest}/approve"), "").is(400, "does not apply to a run");
    assert!(!world.in_project("pwned").exists());
}

#[test]
fn a_stage_is_approved_or_rejected() {
    let world = approvals::waiting(&[2]);
    let status = || world.status("pipeline", "ship");
    let run = status()["run_id"].as_str().unwrap().to_owned();
    let ui = Ui::start(&world.env, &[]);
    done(&ui, &format!("/runs/{run}/reject"), "stage=2&reason=--json+not+today");
    let answer = || status()["approvals"][0].clone();
    assert_eq!((&answer()["approved"], &answer()["note"]), (&false.into(), &"--json not today".into()));
    done(&ui, &format!("/runs/{run}/approve"), "stage=deploy");
    assert_eq!(answer()["approved"], true);
    ui.post(&format!("/runs/{run}/approve"), "stage=--help").is(409, "has no stage");
}

#[test]
fn no_field_becomes_a_flag_a_shell_word_or_another_goal() {
    let env = Env::new();
    let goal = id_of(&env.start(&["x", "--budget", "1000"]));
    env.run(&["goal", "start", "other", "--session", "s2"]).succeeds();
    let ui = Ui::start(&env, &[]);
    let extend = format!("/goals/{goal}/extend");
    for hostile in ["--session%3Ds2", "-5", "1k%3Btouch+pwned", "%24(touch+pwned)", "1k%00", "1k+--session+s2", "%1b"] {
        let reply = ui.post(&extend, &format!("tokens={hostile}"));
        assert!(matches!(reply.status, 400 | 409), "{hostile}: {reply:?}");
    }
    ui.post(&extend, "").is(400, "`amount` is missing");
    ui.post(&extend, "session=s2").is(400, "`amount` is missing");
    for path in ["/goals/--all/pause", "/goals/x%20y/pause", "/goals/..%2f/pause", "/runs/-x/kill"] {
        assert_eq!(ui.post(path, "").status, 404, "{path}");
    }
    ui.post("/goals/none/pause", "").is(404, "no such goal");
    ui.post("/runs/none/kill", "").is(404, "no such run");
    ui.post(&format!("/goals/{goal}/kill"), "").is(400, "does not apply to a goal");
    // Only the beginning of the id is not enough.
    ui.post(&format!("/goals/{}/pause", &goal[..8]), "").is(404, "no such goal");
    assert_eq!((env.status()["token_budget"].as_i64(), env.status()["status"].as_str()), (Some(1000), Some("active")));
    assert!(!env.project().join("pwned").exists());
}

#[test]
fn a_form_leads_back_to_its_page_with_the_answer() {
    let env = Env::new();
    let goal = id_of(&env.start(&["x"]));
    let ui = Ui::start(&env, &[]);
    let pause = format!("/goals/{goal}/pause");
    let reply = ui.submit(&pause, "back=%2Fusage%3Fdays%3D7", &[]);
    let place = reply.header("location").unwrap().to_owned();
    assert!(reply.status == 303 && place.starts_with("/usage?days=7&notice="), "{reply:?}");
    assert!(!place.contains("paused"), "no text in addresses: {place}");
    ui.get(&place).is(200, "goal paused");
    assert!(!ui.get("/usage?days=7").body.contains("goal paused"));
    assert!(!ui.get("/?notice=1234").body.contains("goal paused"));
    for evil in ["%2F%2Fevil.example", "https%3A%2F%2Fevil.example", "%2F%5Cevil.example", "%2Fa%0D%0Ax%3A+y"] {
        let reply = ui.submit(&format!("/goals/{goal}/abandon"), &format!("back={evil}"), &[]);
        let place = reply.header("location").unwrap();
        assert!(place.starts_with(&format!("/goals/{goal}?notice=")), "{evil}: {reply:?}");
        assert_eq!(reply.header("x"), None);
    }
}

#[test]
fn a_read_only_server_changes_nothing() {
    let env = Env::new();
    let goal = id_of(&env.start(&["x"]));
    let ui = Ui::start(&env, &["--read-only"]);
    for verb in ["pause", "abandon", "complete", "dance"] {
        ui.post(&format!("/goals/{goal}/{verb}"), "").is(403, "read-only");
    }
    ui.post("/", "").is(403, "read-only");
    assert_eq!((env.status()["status"].as_str(), ui.get("/").status), (Some("active"), 200));
}
