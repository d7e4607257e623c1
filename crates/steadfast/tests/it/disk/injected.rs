//! Faults that no test can make for real: a quota, an error of the disk, a network file system. `strace` injects them; each
//! is named with the path and what to do, and `doctor` says the same.

use std::process::Command;

use serde_json::json;

use crate::env::{Env, Output, finish};
use crate::outages::skipped;

/// Runs a command under `strace` with faults; `None` if it cannot trace here.
fn with_faults(env: &Env, faults: &[&str], arguments: &[&str]) -> Option<Output> {
    with_faults_and_input(env, faults, arguments, "")
}

fn with_faults_and_input(env: &Env, faults: &[&str], arguments: &[&str], input: &str) -> Option<Output> {
    let plain = env.command(arguments);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null"]);
    for fault in faults {
        command.arg("-e").arg(format!("inject={fault}"));
    }
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(env.project());
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|done| done.status.success()) {
        skipped("strace cannot trace here");
        return None;
    }
    Some(finish(&mut command, input.as_bytes()))
}

fn check(faults: &[&str], said: &str, hint: &str) {
    let env = Env::new();
    env.start(&["Ship it"]);
    let store = env.store().display().to_string();
    let Some(output) = with_faults(&env, faults, &["goal", "pause", "--session", "s1"]) else { return };
    output.fails_with(4, said);
    assert!(output.stderr.contains(&store) && output.stderr.contains(hint), "{output:?}");
    assert!(!output.stderr.contains("disk full"), "{output:?}");
    let doctor = with_faults(&env, faults, &["doctor"]).unwrap();
    assert!(doctor.code == 4 && doctor.stdout.contains(said) && doctor.stdout.contains(hint), "{doctor:?}");
    assert_eq!(env.status()["status"], "active", "nothing was half written");
}

/// Plain writes fail only at first, where the reason is looked for: later ones print. How many there are differs.
#[test]
fn a_disk_over_quota_is_named() {
    let env = Env::new();
    env.start(&["Ship it"]);
    let said = format!("disk quota exceeded: {}", env.store().display());
    let (mut of_command, mut of_doctor) = (0, 0);
    for writes in 1..8 {
        let faults = ["pwrite64:error=EDQUOT", &format!("write:error=EDQUOT:when=1..{writes}")];
        let Some(output) = with_faults(&env, &faults, &["goal", "pause", "--session", "s1"]) else { return };
        assert!(output.code != 0 && !output.stderr.contains("disk full"), "{writes}: {output:?}");
        of_command += usize::from(output.stderr.contains(&said) && output.stderr.contains("ask for a larger quota"));
        let doctor = with_faults(&env, &faults, &["doctor"]).unwrap();
        of_doctor += usize::from(doctor.stdout.contains(&said) && doctor.stdout.contains("ask for a larger quota"));
    }
    assert!(of_command > 0 && of_doctor > 0, "named {of_command} times by the command, {of_doctor} times by doctor");
    assert_eq!(env.status()["status"], "active", "nothing was half written");
}

#[test]
fn a_network_file_system_is_refused() {
    check(&["statfs:poke_exit=@arg2=6969000000000000"], "is on a network file system", "on a local disk");
}

#[test]
fn an_index_that_cannot_be_written_is_no_full_disk() {
    check(&["pwrite64:error=EIO"], "the index of the log cannot be written", "errors of the disk");
}

/// SQLite says of it only "disk I/O error".
#[test]
fn a_disk_that_fails_when_it_is_synced_is_named() {
    let faults = [
        ("ENOSPC", "disk full", "free some space there"),
        ("EDQUOT", "disk quota exceeded", "ask for a larger quota"),
        ("EIO", "the disk ", "errors of the disk"),
    ];
    for (error, said, hint) in faults {
        let env = Env::new();
        env.start(&["Ship it"]);
        let store = env.store().display().to_string();
        let fault = format!("fsync,fdatasync:error={error}");
        let Some(output) = with_faults(&env, &[&fault], &["goal", "pause", "--session", "s1"]) else { return };
        output.fails_with(4, said);
        assert!(output.stderr.contains(&store) && output.stderr.contains(hint), "{output:?}");
        let doctor = with_faults(&env, &[&fault], &["doctor"]).unwrap();
        assert!(doctor.code == 4 && doctor.stdout.contains(said) && doctor.stdout.contains(hint), "{doctor:?}");
        let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "stop_hook_active": false,
            "cwd": env.project(), "transcript_path": env.transcript("s1"), "last_assistant_message": "so far"});
        let hook = with_faults_and_input(&env, &[&fault], &["hook", "claude"], &stop.to_string()).unwrap();
        assert!(hook.stdout.contains(said) && hook.stdout.contains("the goal continues when"), "{hook:?}");
        assert_eq!(env.status()["status"], "active", "nothing was half written");
    }
}

#[test]
fn a_store_that_cannot_be_read_is_no_strange_database() {
    let env = Env::new();
    env.start(&["Ship it"]);
    // The loader of the program reads its libraries by the first two.
    for read in 3..16 {
        let fault = format!("pread64:error=EIO:when={read}+");
        let Some(output) = with_faults(&env, &[&fault], &["goal", "status", "--session", "s1"]) else { return };
        output.fails_with(4, &env.store().display().to_string());
        assert!(!output.stderr.contains("not a goal store"), "{read}: {output:?}");
    }
}

#[test]
fn a_file_that_cannot_be_locked_or_renamed_is_named() {
    let env = Env::new();
    env.start(&["Ship it"]);
    for (fault, arguments, file) in [
        ("flock:error=ENOLCK", &["db", "backup"][..], "backups/lock"),
        ("flock:error=ENOLCK", &["watch", "--once"], "watch.lock"),
        ("link,linkat,rename,renameat,renameat2:error=EDQUOT", &["db", "backup"], "manual.bak"),
    ] {
        let Some(output) = with_faults(&env, &[fault], arguments) else { return };
        assert!(output.code != 0 && output.stderr.contains(file), "{fault}: {output:?}");
    }
}
