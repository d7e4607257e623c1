//! Clocks that jump, machines that sleep and boot: no limit, span, wait or retention goes wrong.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};
use steadfast_model::clock::{DAY, HOUR, MINUTE, Millis, SECOND, to_rfc3339};

use crate::env::{Env, assistant, finish};
use crate::runs::World;

const YEAR: Millis = 365 * DAY;

/// The clocks of a machine, as every process of a test sees them.
struct Machine {
    env: Env,
    wall: Cell<Millis>,
    boot: Cell<Millis>,
    slept: Cell<Millis>,
    boot_id: RefCell<String>,
}

impl Machine {
    fn new() -> Self {
        Self::of(Env::new())
    }

    fn of(env: Env) -> Self {
        std::fs::create_dir_all(env.home()).unwrap();
        let boot_id = RefCell::new("first-boot".to_owned());
        let machine = Self { env, wall: Cell::new(0), boot: Cell::new(0), slept: Cell::new(0), boot_id };
        machine.set();
        machine
    }

    /// What the file of the fake clocks contains.
    fn clocks(&self) -> String {
        format!("{} {} {} {}", self.wall.get(), self.boot.get(), self.slept.get(), self.boot_id.borrow())
    }

    fn set(&self) {
        // Whole at once: a process may read it now.
        let file = self.env.home().join("test-clock");
        let new = file.with_extension("new");
        std::fs::write(&new, self.clocks()).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Sets the wall clock.
    fn jump(&self, by: Millis) {
        self.wall.set(self.wall.get() + by);
        self.set();
    }

    /// Lets time pass.
    fn pass(&self, time: Millis) {
        self.boot.set(self.boot.get() + time);
        self.jump(time);
    }

    fn sleep(&self, time: Millis) {
        self.slept.set(self.slept.get() + time);
        self.pass(time);
    }

    /// Boots a minute ago, with another time on the wall clock.
    fn boot(&self, jump: Millis) {
        let up: f64 = std::fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since the boot")]
        self.boot.set(MINUTE - (up * 1_000.0) as Millis);
        self.slept.set(0);
        self.boot_id.borrow_mut().push_str("-next");
        self.jump(jump);
    }

    /// What the wall clock shows.
    fn now(&self) -> Millis {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Millis::try_from(now.as_millis()).unwrap() + self.wall.get()
    }

    /// An answer of the model, stamped by the wall clock.
    fn says(&self, id: &str, tokens: i64) {
        let mut line = assistant(id, id, tokens);
        let now = self.now();
        line["timestamp"] = json!(to_rfc3339(now).replace('Z', &format!(".{:03}Z", now % SECOND)));
        self.env.append(&self.env.transcript("s1"), &line);
    }

    fn stop(&self, text: &str) -> Value {
        self.env.stop("s1", text, false)
    }

    fn spans(&self) -> Vec<(Millis, Option<Millis>)> {
        let rows = self.env.sql("SELECT from_ms, to_ms FROM goal_spans ORDER BY from_ms");
        rows.iter().map(|row| (row[0].parse().unwrap(), row[1].parse().ok())).collect()
    }

    /// Active time and time since the start, in seconds.
    fn seconds(&self) -> (i64, i64) {
        let goal = self.env.status();
        (goal["active_seconds"].as_i64().unwrap(), goal["wall_seconds"].as_i64().unwrap())
    }

    fn look(&self) -> String {
        self.env.run(&["__look", "s1"]).succeeds().stdout.trim().to_owned()
    }
}

fn is_short(seconds: i64) -> bool {
    (0..300).contains(&seconds)
}

#[test]
fn a_clock_an_hour_back_lifts_no_limit() {
    for boots in [false, true] {
        let machine = Machine::new();
        machine.env.start(&["x", "--budget", "5k"]);
        machine.says("m1", 100);
        assert_eq!(machine.stop("m1")["decision"], "block");
        if boots {
            machine.boot(-HOUR);
            machine.env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "resume"}));
            machine.env.begin_turn();
        } else {
            machine.jump(-HOUR);
        }
        machine.says("m2", 12_000);
        machine.stop("m2");
        let goal = machine.env.status();
        assert_eq!((&goal["total_tokens"], &goal["status"]), (&json!(12_100), &json!("budget_limited")), "{boots}");
    }
}

#[test]
fn a_clock_that_goes_back_and_forth_changes_no_span_and_no_active_time() {
    for jump in [-HOUR, HOUR, -90 * SECOND, 90 * SECOND, YEAR] {
        let machine = Machine::new();
        machine.env.start(&["x", "--max-hours", "2"]);
        machine.says("m1", 100);
        machine.stop("m1");
        machine.jump(jump);
        machine.says("m2", 100);
        machine.env.goal(&["pause"]).succeeds();
        machine.says("m3", 7_000);
        machine.env.goal(&["resume"]).succeeds();
        machine.env.begin_turn();
        machine.says("m4", 100);
        assert_eq!(machine.stop("m4")["decision"], "block", "{jump}");
        machine.jump(-jump);
        machine.says("m5", 100);
        assert_eq!(machine.stop("m5")["decision"], "block", "{jump}");
        let spans = machine.spans();
        assert!(spans.iter().all(|(from, to)| to.is_none_or(|to| to >= *from)), "{jump}: {spans:?}");
        assert!(spans.windows(2).all(|pair| pair[0].1.is_some_and(|end| end <= pair[1].0)), "{jump}: {spans:?}");
        let (active, all) = machine.seconds();
        assert!(is_short(active) && is_short(all) && active <= all + 1, "{jump}: {active} {all}");
        assert_eq!(machine.env.status()["total_tokens"], 400, "{jump}");
    }
}

/// The lines were written before the clock was set, and are read after that.
#[test]
fn responses_from_before_a_jump_are_charged_after_it() {
    for jump in [-HOUR, HOUR, -5 * DAY, YEAR] {
        let machine = Machine::new();
        machine.env.start(&["x", "--budget", "5k"]);
        machine.says("m1", 100);
        machine.stop("m1");
        machine.says("m2", 6_000);
        machine.jump(jump);
        machine.stop("m2");
        let goal = machine.env.status();
        assert_eq!((&goal["total_tokens"], &goal["status"]), (&json!(6_100), &json!("budget_limited")), "{jump}");
    }
}

#[test]
fn times_are_typed_and_shown_by_the_wall_clock() {
    let machine = Machine::new();
    machine.env.start(&["x"]);
    machine.jump(-3 * HOUR);
    let wanted = to_rfc3339(machine.now() + 30 * MINUTE);
    let said = machine.env.goal(&["wait", "--until", &wanted]);
    let shown = wanted.replace('T', " ");
    assert!(said.succeeds().stdout.contains(&shown[..16]), "{wanted} {said:?}");
    assert_eq!(machine.env.status()["wakes_at"].as_str().unwrap_or(&wanted), wanted);
    machine.pass(20 * MINUTE);
    machine.jump(YEAR);
    assert_eq!(machine.env.status()["paused_reason"], "waiting");
    machine.jump(-YEAR);
    machine.pass(11 * MINUTE);
    machine.env.begin_turn();
    assert_eq!(machine.env.status()["status"], "active", "the wait is over");
}

#[test]
fn a_wait_takes_as_long_as_it_was_meant_to() {
    let machine = Machine::new();
    machine.env.start(&["x"]);
    machine.env.goal(&["wait", "--for", "1h"]).succeeds();
    machine.stop("waiting");
    for jump in [2 * HOUR, -YEAR] {
        machine.jump(jump);
        assert_eq!(machine.look(), "not_due");
        machine.env.begin_turn();
        assert_eq!(machine.env.status()["paused_reason"], "waiting", "{jump}");
    }
    // A sleep is real time.
    machine.sleep(HOUR);
    machine.env.begin_turn();
    assert_eq!(machine.env.status()["status"], "active");
}

#[test]
fn a_deadline_keeps_its_distance_over_a_boot() {
    let machine = Machine::new();
    machine.env.start(&["x"]);
    machine.env.goal(&["abandon"]).succeeds();
    // The clock of a machine without a battery is put right some time after the boot.
    machine.jump(2 * DAY);
    let deadline = to_rfc3339(machine.now() + 5 * HOUR);
    machine.env.goal(&["start", "y", "--deadline", &deadline]).succeeds();
    assert_eq!(machine.env.status()["deadline"], json!(deadline));
    machine.boot(HOUR);
    machine.env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "resume"}));
    let goal = machine.env.status();
    assert_eq!((&goal["deadline"], &goal["status"]), (&json!(deadline), &json!("active")));
    machine.env.begin_turn();
    machine.says("m1", 10);
    assert_eq!(machine.stop("m1")["decision"], "block", "four hours are left");
    machine.pass(5 * HOUR);
    machine.says("m2", 10);
    machine.stop("m2");
    machine.stop("m2");
    assert_eq!(machine.env.status()["status"], "paused");
}

#[test]
fn a_sleeping_machine_uses_no_hours_and_reaches_deadlines() {
    let machine = Machine::new();
    machine.env.start(&["x", "--max-hours", "1"]);
    machine.sleep(8 * HOUR);
    let (active, all) = machine.seconds();
    assert!(is_short(active) && is_short(all - 8 * 3_600), "{active} {all}");
    machine.says("m1", 10);
    assert_eq!(machine.stop("m1")["decision"], "block");
    let adjusted = machine.env.sql("SELECT payload FROM goal_events WHERE kind = 'clock_adjusted'");
    assert_eq!(adjusted, [[json!({"slept_ms": 8 * HOUR}).to_string()]]);
    // Awake, hours count.
    machine.pass(2 * HOUR);
    machine.says("m2", 10);
    machine.stop("m2");
    machine.stop("m2");
    assert_eq!(machine.env.status()["paused_reason"], "wall_clock_cap");

    let machine = Machine::new();
    machine.env.start(&["x", "--deadline", "in 2h"]);
    machine.sleep(8 * HOUR);
    machine.says("m1", 10);
    machine.stop("m1");
    machine.stop("m1");
    assert_eq!(machine.env.status()["status"], "paused", "a deadline is real time");
}

/// The clock was set wrong while the machine was off: no more is known than that the deadline is over.
#[test]
fn the_message_about_a_deadline_a_year_ago_says_how_long() {
    let machine = Machine::new();
    machine.env.start(&["x", "--deadline", "in 2h"]);
    machine.boot(YEAR);
    machine.env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "resume"}));
    machine.env.begin_turn();
    machine.says("m1", 10);
    let first = machine.stop("m1").to_string();
    let second = machine.stop("m1").to_string();
    let said = format!("{first} {second}");
    assert_eq!(machine.env.status()["paused_reason"], "deadline", "{said}");
    assert!(said.contains("deadline") && !said.contains("0s of 2h 00m"), "{said}");
}

#[test]
fn a_clock_a_year_ahead_forgets_no_session() {
    let machine = Machine::new();
    for number in 0..12 {
        let id = format!("old-{number}");
        machine.env.hook(&id, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        machine.env.hook(&id, &json!({"hook_event_name": "UserPromptSubmit", "prompt": "decision: use tabs"}));
        machine.env.hook(&id, &json!({"hook_event_name": "SessionEnd", "reason": "exit"}));
    }
    let remembered = || machine.env.sql("SELECT DISTINCT session_id FROM session_events").len();
    let before = remembered();
    assert!(before >= 12, "{before}");
    let start = |id: &str| machine.env.hook(id, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    machine.jump(YEAR);
    start("new-1");
    machine.boot(0);
    start("new-2");
    start("new-3");
    assert!(remembered() >= before, "{} of {before}", remembered());
    // It is right again; the next boot sees that.
    machine.boot(-YEAR);
    start("new-4");
    assert!(remembered() >= before);
    // A year that really passes is noticed, a day per hour of running.
    for _ in 0..10 {
        machine.pass(40 * DAY);
        start("new-5");
    }
    assert!(remembered() < before, "{} of {before}", remembered());
}

/// The clock was set wrong while the machine was off, so that only real time shows how old rows are.
#[test]
fn a_boot_with_a_clock_a_year_ahead_forgets_no_session() {
    let machine = Machine::new();
    let start = |id: &str| machine.env.hook(id, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    for number in 0..12 {
        let id = format!("old-{number}");
        start(&id);
        machine.env.hook(&id, &json!({"hook_event_name": "UserPromptSubmit", "prompt": "decision: use tabs"}));
        machine.env.hook(&id, &json!({"hook_event_name": "SessionEnd", "reason": "exit"}));
    }
    let remembered = || machine.env.sql("SELECT DISTINCT session_id FROM session_events").len();
    let before = remembered();
    assert!(before >= 12, "{before}");
    machine.boot(YEAR);
    for number in 0..10 {
        start(&format!("new-{number}"));
        machine.pass(MINUTE);
    }
    assert!(remembered() >= before, "{} of {before}", remembered());
}

/// What the user deletes by age is as old as it looks: a machine that boots a year ahead shows the time since its boot.
#[test]
fn a_boot_with_a_clock_a_year_ahead_makes_nothing_old_enough_to_clean_up() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let machine = Machine::of(world.env);
    machine.env.start(&["Keep me"]);
    machine.env.goal(&["pause"]).succeeds();
    machine.env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": "decision: use tabs"}));
    machine.env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "exit"}));
    let world = World { env: machine.env };
    world.loop_run(&["once", "a"], "echo done", &[]).succeeds();
    let machine = Machine { env: world.env, ..Machine::of(Env::new()) };
    machine.boot(YEAR);
    let cleaned = machine.env.run(&["loop", "cleanup", "--json"]).succeeds().json();
    for what in ["pruned", "removed", "files"] {
        assert_eq!(cleaned[what], json!([]), "{what} of {cleaned}");
    }
    let purged = machine.env.run(&["session", "purge", "--older-than", "30", "--json"]).succeeds().json();
    assert_eq!(purged["purged"], json!([]), "{purged}");
    let deleted = machine.env.goal(&["cleanup", "--delete", "--json"]).succeeds().json();
    assert_eq!(deleted["goals"], json!([]), "{deleted}");
    let deleted = machine.env.goal(&["cleanup", "--delete", "--older-than", "0", "--json"]).succeeds().json();
    assert_eq!(deleted["goals"].as_array().unwrap().len(), 1, "the user means all that are left alone: {deleted}");
}

/// The clock was ahead at one boot and put right within it; then the machine was off for longer than the deadline.
#[test]
fn time_without_power_counts_after_a_clock_that_was_ahead() {
    let machine = Machine::new();
    machine.jump(20 * HOUR);
    machine.env.hook("s0", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    machine.jump(-20 * HOUR);
    machine.env.start(&["x", "--deadline", "in 12h"]);
    machine.says("m1", 10);
    assert_eq!(machine.stop("m1")["decision"], "block");
    let deadline = machine.env.status()["deadline"].clone();
    machine.boot(14 * HOUR);
    machine.env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "resume"}));
    assert_eq!(machine.env.status()["deadline"], deadline, "as the user typed it");
    machine.env.begin_turn();
    machine.says("m2", 10);
    machine.stop("m2");
    machine.stop("m2");
    assert_eq!(machine.env.status()["status"], "paused");
}

#[test]
fn a_run_is_not_moved_by_jumps_and_sleep() {
    let world = World::new();
    world.loop_type("three", "max: 3");
    let machine = Machine::of(world.env);
    let world = World { env: machine.env };
    let file = world.env.home().join("test-clock");
    // The second iteration sleeps for eight hours, between jumps to a year ahead and an hour back.
    let clocks = [
        format!("{YEAR} 0 0 first-boot"),
        format!("{} {} {} first-boot", YEAR + 8 * HOUR, 8 * HOUR, 8 * HOUR),
        format!("{} {} {} first-boot", 7 * HOUR, 8 * HOUR, 8 * HOUR),
    ];
    let script = format!(
        "case $STEADFAST_ITERATION in 1) echo '{}' ;; 2) echo '{}' ;; *) echo '{}' ;; esac > {}; echo x >> tries; sleep 1.2",
        clocks[0],
        clocks[1],
        clocks[2],
        file.display()
    );
    let output = world.loop_run(&["three", "r"], &script, &["--max-hours", "1", "--json"]);
    let status = output.succeeds().json();
    assert_eq!((&status["status"], world.lines("tries").len()), (&json!("completed"), 3), "{status}");
    let rows = world.env.sql("SELECT started_at_ms, ended_at_ms FROM run_attempts ORDER BY started_at_ms");
    let times: Vec<Millis> = rows.iter().flatten().map(|text| text.parse().unwrap()).collect();
    assert!(times.is_sorted() && times.len() == 6, "{times:?}");
    assert!(times[5] - times[0] < 8 * HOUR + 10 * MINUTE, "{times:?}");
}

#[test]
fn a_waker_that_runs_is_not_moved_by_jumps() {
    let machine = Machine::new();
    machine.env.start(&["x"]);
    machine.env.goal(&["wait", "--for", "1h"]).succeeds();
    machine.stop("waiting");
    let mut command = machine.env.command(&["hook", "claude", "--rewake"]);
    command.env("CLAUDE_CODE_ENTRYPOINT", "cli");
    let stop = json!({
        "hook_event_name": "Stop", "session_id": "s1", "transcript_path": machine.env.transcript("s1"),
        "cwd": machine.env.project(),
    });
    let mut waker = crate::client::spawn(&command);
    waker.write(stop.to_string().as_bytes());
    waker.close_stdin();
    let is_registered = || machine.env.sql("SELECT 1 FROM sessions WHERE waker_pid IS NOT NULL").pop();
    crate::attempts::eventually(is_registered);
    machine.jump(YEAR);
    assert_eq!((machine.look(), waker.try_wait()), ("not_due".to_owned(), None));
    machine.pass(HOUR + SECOND);
    assert_eq!(waker.wait(), 2);
    assert_eq!(machine.env.status()["status"], "active");
}

/// Two calls in different time zones agree about everything but the text.
#[test]
fn another_time_zone_changes_no_limit() {
    let machine = Machine::new();
    machine.env.start(&["x", "--deadline", "in 3h", "--max-hours", "2"]);
    let status = |zone: &str| {
        let mut command = machine.env.command(&["goal", "status", "--json", "--session", "s1"]);
        finish(command.env("TZ", zone), b"").succeeds().json()["goal"].clone()
    };
    let (here, there) = (status("Pacific/Kiritimati"), status("Pacific/Pago_Pago"));
    assert_eq!((&here["deadline"], &here["status"]), (&there["deadline"], &there["status"]));
    machine.says("m1", 10);
    assert_eq!(machine.stop("m1")["decision"], "block");
}

/// Half a day ahead it is tomorrow already.
#[test]
fn a_clock_that_jumps_ahead_lifts_no_daily_or_weekly_cap() {
    let machine = Machine::new();
    let config = "[limits]\ndaily_tokens = 5000\nweekly_tokens = 5000\n";
    std::fs::write(machine.env.home().join("config.toml"), config).unwrap();
    machine.jump(12 * HOUR - machine.now() % DAY);
    machine.env.start(&["x"]);
    machine.says("m1", 6_000);
    machine.stop("m1");
    let reached = |zone: &str| {
        let mut command = machine.env.command(&["goal", "status", "--json", "--session", "s1"]);
        let caps = finish(command.env("TZ", zone), b"").succeeds().json()["goal"]["caps"].clone();
        let caps = caps.as_array().unwrap().iter().filter(|cap| cap["reached"] == true);
        caps.map(|cap| cap["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(reached("UTC"), ["daily_tokens", "weekly_tokens"]);
    machine.pass(30 * 60_000);
    assert_eq!(reached("XXX-11:45"), ["daily_tokens", "weekly_tokens"], "a quarter past midnight there");
    machine.jump(11 * HOUR + 45 * 60_000);
    assert_eq!(reached("UTC"), ["daily_tokens", "weekly_tokens"]);
    machine.jump(7 * DAY);
    assert_eq!(reached("UTC"), ["daily_tokens", "weekly_tokens"]);
    machine.jump(-7 * DAY);
    machine.pass(24 * HOUR);
    assert!(!reached("UTC").contains(&"daily_tokens".to_owned()), "the next day");
}

/// A day of a cap is a local one. A journey does not begin it anew.
#[test]
fn another_time_zone_lifts_no_daily_cap() {
    let machine = Machine::new();
    std::fs::write(machine.env.home().join("config.toml"), "[limits]\ndaily_tokens = 5000\n").unwrap();
    // 18:00 in UTC is long after midnight at both ends of the world.
    machine.jump(18 * HOUR - machine.now() % DAY);
    machine.env.start(&["x"]);
    machine.says("m1", 6_000);
    machine.stop("m1");
    let reached = || {
        let zones = ["Pacific/Kiritimati", "UTC", "Pacific/Pago_Pago"].map(|zone| {
            let mut command = machine.env.command(&["goal", "status", "--json", "--session", "s1"]);
            finish(command.env("TZ", zone), b"").succeeds().json()["goal"]["caps"].clone()
        });
        assert!(zones.iter().all(|caps| caps == &zones[0]), "{zones:?}");
        zones[0].as_array().unwrap().iter().any(|cap| cap["name"] == "daily_tokens" && cap["reached"] == true)
    };
    assert!(reached());
    machine.pass(4 * HOUR);
    assert!(reached(), "it is the same day in all of them");
    machine.pass(24 * HOUR);
    assert!(!reached(), "and the next day in all of them");
}
