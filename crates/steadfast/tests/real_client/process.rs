//! Runs a real client as a process: without network, with a time limit, and killed with its children.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// The output of a finished client run; each client's module has its readers.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

/// Runs the command to its end; panics when it takes longer than the limit. Output goes to files in the directory, not
/// to pipes: a process left behind would keep a pipe open and hang the test.
pub(crate) fn run(command: &mut Command, what: &str, dir: &Path, limit: Duration) -> Output {
    let (out, err) = (dir.join("stdout.txt"), dir.join("stderr.txt"));
    command.stdout(fs::File::create(&out).expect("stdout file"));
    command.stderr(fs::File::create(&err).expect("stderr file"));
    let mut child = command.process_group(0).spawn().unwrap_or_else(|e| panic!("start {what}: {e}"));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().expect("wait") {
            break Some(status);
        }
        if Instant::now() > end {
            kill_group(child.id());
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let (stdout, stderr) = (read(&out), read(&err));
    let Some(status) = status else {
        panic!("{what} did not end in {limit:?}\nstdout: {stdout}\nstderr: {stderr}");
    };
    Output { stdout, stderr, status }
}

pub(crate) fn kill_group(leader: u32) {
    kill(&format!("-{leader}"));
}

/// `kill -9` of one process.
pub(crate) fn kill_process(id: u32) {
    kill(&id.to_string());
}

fn kill(target: &str) {
    // The shell's own kill: no unsafe code and no further dependency.
    let _ = Command::new("sh").args(["-c", &format!("kill -KILL {target} 2>/dev/null")]).status();
}

/// The client that a variable of the environment names; `./test` installs it.
pub(crate) fn client_named_by(variable: &str) -> PathBuf {
    let client = std::env::var_os(variable).map(PathBuf::from);
    client.unwrap_or_else(|| panic!("set {variable} to the path of the client's executable"))
}

/// Panics where a network can be reached: a real client must only ever talk to the scripted model.
pub(crate) fn assert_no_network() {
    let devices = fs::read_to_string("/proc/net/dev").expect("/proc/net/dev");
    let names = devices.lines().skip(2).filter_map(|line| line.split(':').next());
    let others: Vec<&str> = names.map(str::trim).filter(|name| *name != "lo").collect();
    assert!(others.is_empty(), "run this under scripts/netless; network devices found: {others:?}");
}
