//! Many processes write to one store: they are served in the order in which they came, none sees an error, and a process
//! that is killed or stopped does not hold up the others.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::attempts::eventually;
use crate::client::{self, ClientChild};
use crate::env::{Env, finish};
use crate::outages::Lock;

/// An environment in which sessions have a goal and a turn that runs.
fn with_goals(sessions: &[String]) -> Env {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[goal]\nno_progress_limit = 0\n").unwrap();
    for session in sessions {
        env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        env.run(&["goal", "start", "--session", session, "--max-turns", "9000", "x"]).succeeds();
        env.hook(session, &json!({"hook_event_name": "UserPromptSubmit", "prompt": "<task-notification>"}));
    }
    env
}

fn sessions(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number}")).collect()
}

/// Starts the hook of a turn's end, with one answer to count.
fn stop(env: &Env, session: &str, answer: usize) -> ClientChild {
    env.says(session, &format!("{session}-{answer}"), "hi", 100);
    let mut child = client::spawn(&env.command(&["hook", "claude"]));
    let input = json!({"session_id": session, "transcript_path": env.transcript(session), "cwd": env.project(),
        "hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "hi", "background_tasks": []});
    child.write(input.to_string().as_bytes());
    child.close_stdin();
    child
}

fn line(env: &Env) -> PathBuf {
    env.home().join("goals.db-line")
}

/// Starts the end of a turn in each session, each when the one before it is in line.
fn stops_in_line(env: &Env, sessions: &[String]) -> Vec<ClientChild> {
    let waiting = || std::fs::read_dir(line(env)).map_or(0, Iterator::count);
    let stopped = sessions.iter().enumerate().map(|(before, session)| {
        let child = stop(env, session, 0);
        eventually(|| (waiting() == before + 1).then_some(()));
        child
    });
    stopped.collect()
}

/// The sessions whose turn was ended, in order.
fn served(env: &Env) -> Vec<String> {
    let sql = "SELECT session_id FROM goal_events WHERE kind = 'continuation_injected' ORDER BY id";
    env.sql(sql).into_iter().flatten().collect()
}

fn signal(child: &ClientChild, signal: Signal) {
    kill_process(Pid::from_raw(child.pid).unwrap(), signal).unwrap();
}

fn succeeds(child: ClientChild) {
    let output = child.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert!(output.stdout.contains("\"decision\":\"block\""), "{output:?}");
}

#[test]
fn hooks_are_served_in_the_order_in_which_they_came() {
    let sessions = sessions(6);
    let env = with_goals(&sessions);
    let lock = Lock::of(&env.store());
    let hooks = stops_in_line(&env, &sessions);
    drop(lock);
    for hook in hooks {
        succeeds(hook);
    }
    assert_eq!(served(&env), sessions);
    assert!(!line(&env).exists());
}

#[test]
fn killed_and_stopped_hooks_do_not_hold_up_the_others() {
    let sessions = sessions(6);
    let env = with_goals(&sessions);
    let lock = Lock::of(&env.store());
    let mut hooks = stops_in_line(&env, &sessions).into_iter();
    let (mut killed, stopped) = (hooks.next().unwrap(), hooks.next().unwrap());
    killed.kill();
    signal(&stopped, Signal::STOP);
    drop(lock);
    for hook in hooks {
        succeeds(hook);
    }
    assert_eq!(served(&env), sessions[2..], "the others keep their order");
    signal(&stopped, Signal::CONT);
    succeeds(stopped);
    assert_eq!(served(&env).last(), Some(&sessions[1]));
    let goals = env.sql("SELECT tokens_used FROM goals ORDER BY session_id");
    assert_eq!(goals, [["0"], ["100"], ["100"], ["100"], ["100"], ["100"]]);
    assert!(!line(&env).exists());
}

#[test]
fn many_processes_write_at_once_and_none_sees_an_error() {
    const ROUNDS: usize = 4;
    let sessions = sessions(8);
    let env = with_goals(&sessions);
    let extend = |session: &str| {
        let mut command: Command = env.command(&["goal", "extend", "--session", session, "--add-turns", "1"]);
        finish(&mut command, b"").succeeds();
    };
    std::thread::scope(|scope| {
        for (number, session) in (0..).zip(&sessions) {
            let (env, extend) = (&env, &extend);
            scope.spawn(move || {
                for (round, pause) in (0..ROUNDS).zip(number..) {
                    let mut killed = stop(env, session, 2 * round);
                    std::thread::sleep(std::time::Duration::from_millis(5 * pause));
                    killed.kill();
                    killed.wait();
                    succeeds(stop(env, session, 2 * round + 1));
                }
            });
            scope.spawn(move || (0..ROUNDS).for_each(|_| extend(session)));
        }
    });
    let goals = env.sql("SELECT tokens_used FROM goals");
    assert_eq!(goals, vec![[(2 * ROUNDS * 100).to_string()]; sessions.len()], "each answer is charged once");
    let extended = env.sql("SELECT count(*) FROM goal_events WHERE kind = 'goal_extended'");
    assert_eq!(extended, [[(ROUNDS * sessions.len()).to_string()]]);
    let forks = "SELECT goal_id, version_before FROM goal_events WHERE version_before < version_after
        GROUP BY 1, 2 HAVING count(DISTINCT version_after) > 1";
    assert_eq!(env.sql(forks), Vec::<Vec<String>>::new());
    let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap_or_default();
    assert!(!log.contains("busy") && !log.contains("locked"), "{log}");
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
}

/// A row that cannot be changed shows where a transaction ended: what was committed before it stays.
#[test]
fn many_goals_are_deleted_and_paused_in_steps_so_that_others_write_in_between() {
    let env = with_goals(&sessions(1));
    env.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
         INSERT INTO goals (session_id, goal_id, objective, status, created_at_ms, updated_at_ms)
         SELECT 'm' || i, 'many-' || i, 'Objective', 'active', i, i FROM n",
    );
    let last_of =
        |sql: &str| env.execute(&format!("CREATE TRIGGER held BEFORE {sql} BEGIN SELECT RAISE(ABORT, 'held'); END"));
    let left = |what: &str| {
        env.sql(&format!("SELECT count(*) FROM goals WHERE session_id LIKE 'm%' AND {what}"))[0][0]
            .parse::<usize>()
            .unwrap()
    };

    // The newest goal is the first of the list.
    last_of("UPDATE ON goals WHEN OLD.session_id = 'm1'");
    env.run(&["goal", "pause", "--all"]).fails_with(4, "held");
    assert!((1..600).contains(&left("status = 'active'")), "{} are active", left("status = 'active'"));
    env.execute("DROP TRIGGER held");
    env.run(&["goal", "pause", "--all"]).succeeds();
    assert_eq!(left("status = 'active'"), 0);

    env.execute("UPDATE goals SET updated_at_ms = 1 WHERE session_id LIKE 'm%'");
    last_of("DELETE ON goals WHEN OLD.session_id = 'm600'");
    env.run(&["goal", "cleanup", "--delete"]).fails_with(4, "held");
    assert!((1..600).contains(&left("1")), "{} are left", left("1"));
    env.execute("DROP TRIGGER held");
    let cleanup =
        env.command(&["goal", "cleanup", "--delete", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let others: Vec<ClientChild> = (0..3).map(|answer| stop(&env, "s0", answer)).collect();
    assert!(cleanup.wait_with_output().unwrap().status.success());
    for mut other in others {
        other.wait();
    }
    assert_eq!(
        (left("1"), env.sql("SELECT count(*) FROM goals WHERE session_id = 's0'")),
        (0, vec![vec!["1".to_owned()]])
    );
}
