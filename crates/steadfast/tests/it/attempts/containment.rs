//! Nothing that an agent starts outlives its attempt, however it hides: another session, a cleared environment, double
//! forks, ignored signals, or the death of its supervisor.

use super::*;

/// A process that left session, group and environment of its agent; its number is in a file.
const HIDDEN: &str = "env -i setsid -f sh -c 'echo $$ > NAME; exec sleep 62'";
/// The same, after two forks each of whose parents has ended, and deaf to TERM.
const DAEMON: &str = r#"(env -i setsid sh -c '(trap "" TERM; setsid sh -c "trap \"\" TERM; echo \$\$ > NAME; while :; do sleep 1; done" &)' &)"#;

fn hidden(name: &str) -> String {
    format!("{}; {}", HIDDEN.replace("NAME", name), waits_for(name))
}

fn daemon(name: &str) -> String {
    format!("{}; {}", DAEMON.replace("NAME", name), waits_for(name))
}

fn waits_for(name: &str) -> String {
    format!("while [ ! -s {name} ]; do sleep 0.02; done")
}

/// Processes with these words on their command line.
fn with_words(words: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim() == words).count()
}

#[test]
fn a_time_limit_ends_what_hid_from_it() {
    let world = World::new();
    world.run(&format!("{}; {}; sleep 60", hidden("hidden"), daemon("daemon")), Duration::from_secs(2));
    let (hidden, daemon) = (world.appears("hidden"), world.appears("daemon"));
    let exit = world.exit();
    assert!(exit.timed_out);
    assert!(!is_alive(&hidden) && !is_alive(&daemon));
}

#[test]
fn what_an_agent_leaves_running_ends_with_it() {
    let world = World::new();
    world.run(&format!("{}; {}; exit 3", hidden("server"), daemon("daemon")), LONG);
    let (server, daemon) = (world.appears("server"), world.appears("daemon"));
    let exit = world.exit();
    assert_eq!((exit.exit_code, exit.stopped, exit.timed_out), (Some(3), false, false));
    assert!(!is_alive(&server) && !is_alive(&daemon));
}

#[test]
fn a_fork_bomb_ends_with_its_agent() {
    let world = World::new();
    // Each of them forks again and again, so that a list of processes is always out of date.
    let bomb = r#"env -i setsid -f sh -c 'i=0; while [ $i -lt 200 ]; do
        setsid sh -c "while :; do sleep 0.7193; done" & i=$((i + 1)); done; echo $$ > bomb; wait'"#;
    world.run(&format!("{bomb}; {}", waits_for("bomb")), LONG);
    let bomb = world.appears("bomb");
    assert_eq!(world.exit().exit_code, Some(0));
    assert!(!is_alive(&bomb));
    assert_eq!(with_words("sleep 0.7193"), 0);
    assert_eq!(with_words("sh -c while :; do sleep 0.7193; done"), 0);
}

#[test]
fn a_supervisor_that_gets_term_ends_what_hid() {
    let world = World::new();
    world.run(&format!("{}; {}; sleep 60", hidden("hidden"), daemon("daemon")), LONG);
    let (hidden, daemon) = (world.appears("hidden"), world.appears("daemon"));
    kill_process(Pid::from_raw(world.supervisor_pid()).unwrap(), Signal::TERM).unwrap();
    assert!(world.exit().stopped);
    assert!(!is_alive(&hidden) && !is_alive(&daemon));
}

#[test]
fn killing_an_attempt_kills_what_hid() {
    let world = World::new();
    world.run(&format!("{}; {}; sleep 60", hidden("hidden"), daemon("daemon")), LONG);
    let (hidden, daemon) = (world.appears("hidden"), world.appears("daemon"));
    world.attempt.kill().unwrap();
    assert!(!is_alive(&hidden) && !is_alive(&daemon));
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::Gone);
}

#[test]
fn what_hid_is_found_after_its_supervisor_was_killed() {
    let world = World::new();
    world.run(&format!("{}; {}; sleep 60", hidden("hidden"), daemon("daemon")), LONG);
    let (hidden, daemon) = (world.appears("hidden"), world.appears("daemon"));
    let written = world.attempt.directory().join("escaped.json");
    eventually(|| {
        let text = std::fs::read_to_string(&written).unwrap_or_default();
        (text.contains(hidden.trim()) && text.contains(daemon.trim())).then_some(())
    });
    kill(world.supervisor_pid());
    assert_eq!(world.attempt.wait(Duration::ZERO, GRACE).unwrap(), None);
    assert!(!is_alive(&hidden) && !is_alive(&daemon));
}

#[test]
fn zombies_of_daemons_are_reaped_while_the_agent_works() {
    let world = World::new();
    let forks = "i=0; while [ $i -lt 20 ]; do setsid -f true; i=$((i + 1)); done";
    world.run(&format!("{forks}; echo done > forked; while [ ! -e go ]; do sleep 0.05; done; exit 4"), LONG);
    world.appears("forked");
    let parent = format!(" {} ", world.supervisor_pid());
    eventually(|| {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let mut stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        let is_left = stats.any(|stat| stat.contains(&format!(") Z{parent}")));
        (!is_left).then_some(())
    });
    std::fs::write(world.path("go"), "").unwrap();
    assert_eq!(world.exit().exit_code, Some(4), "reaping others leaves the agent's own status alone");
}

#[test]
fn another_attempt_is_left_alone() {
    let (ending, other) = (World::new(), World::new());
    other.run(&format!("{}; echo $$ > agent; while [ ! -e go ]; do sleep 0.05; done", hidden("hidden")), LONG);
    let (agent, hidden) = (other.appears("agent"), other.appears("hidden"));
    ending.run("sleep 60", Duration::from_millis(300));
    ending.supervisor_pid();
    assert!(ending.exit().timed_out);
    assert!(is_alive(&agent) && is_alive(&hidden));
    std::fs::write(other.path("go"), "").unwrap();
    assert_eq!(other.exit().exit_code, Some(0));
    assert!(!is_alive(&hidden));
}

#[test]
fn an_agent_that_left_its_own_group_is_killed_at_its_limit() {
    if !std::process::Command::new("perl").arg("-v").output().is_ok_and(|output| output.status.success()) {
        crate::outages::skipped("no perl here");
        return;
    }
    let world = World::new();
    let leave = r#"$SIG{TERM} = "IGNORE"; $child = fork; if (!$child) { setpgrp(0, 0); sleep 60; exit } sleep 1;
        setpgrp(0, $child); open F, ">", "agent"; print F "$$\n"; close F; sleep 1 while 1"#;
    world.prepare(&["perl", "-e", leave], Duration::from_secs(3));
    let mut supervisor = world.start();
    std::thread::spawn(move || supervisor.wait());
    let agent = world.appears("agent");
    let exit = world.exit();
    assert_eq!((exit.timed_out, exit.signal), (true, Some(9)));
    assert!(!is_alive(&agent));
}
