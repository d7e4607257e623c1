//! The process table with parents and groups, for finding everything below a process.

use std::collections::{BTreeSet, HashMap};
#[cfg(target_os = "linux")]
use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

#[cfg(target_os = "linux")]
use rustix::io::Errno;
use steadfast_system::process;

/// One live process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: i32,
    /// 0 where the system does not show it.
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    pub(super) started: String,
}

/// How long a table that cannot be read is tried again.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_mins(1);
#[cfg(target_os = "linux")]
const PAUSE: Duration = Duration::from_millis(100);

/// All live processes. If no file descriptor or memory is left to read all of them, this waits: a live agent that is
/// taken for gone would be started again.
#[cfg(target_os = "linux")]
pub(super) fn read() -> Vec<Entry> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (entries, is_whole) = read_once();
        if is_whole || Instant::now() >= deadline {
            return entries;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The processes that could be read, and whether these are all.
#[cfg(target_os = "linux")]
fn read_once() -> (Vec<Entry>, bool) {
    let (mut found, mut is_whole) = (Vec::new(), true);
    // Where /proc is not mounted, the system shows no processes.
    match fs_err::read_dir("/proc") {
        Ok(entries) => {
            for entry in entries {
                let name = entry.map(|entry| entry.file_name());
                is_whole &= name.is_ok();
                let pid = name.ok().and_then(|name| name.to_str()?.parse().ok());
                match pid.map(stat_of) {
                    Some(Ok(text)) => found.extend(text.and_then(|text| parse(pid?, &text))),
                    Some(Err(_)) => is_whole = false,
                    None => {}
                }
            }
        }
        Err(error) => is_whole = error.kind() == ErrorKind::NotFound,
    }
    (found, is_whole)
}

/// `None` if the process is gone or hidden.
#[cfg(target_os = "linux")]
fn stat_of(pid: i32) -> io::Result<Option<String>> {
    let is_gone = |error: &io::Error| {
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
            || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
    };
    #[expect(clippy::disallowed_methods, reason = "an error of fs_err has no number")]
    let read = std::fs::read(format!("/proc/{pid}/stat"));
    match read {
        // The name of a process may be anything.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// One live process, from its `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn parse(pid: i32, text: &str) -> Option<Entry> {
    // The name is in parentheses and may itself contain some.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i32>().ok());
    // A process whose first thread has ended looks like a zombie, but its other threads live.
    if matches!(*fields.first()?, "Z" | "X") && number(17)? <= 1 {
        return None;
    }
    let started = (*fields.get(19)?).to_owned();
    Some(Entry { pid, parent: number(1)?, group: number(2)?, session: number(3)?, started })
}

/// All live processes.
#[cfg(not(target_os = "linux"))]
pub(super) fn read() -> Vec<Entry> {
    let all = process::list().into_iter();
    all.map(|found| Entry { pid: found.pid, parent: 0, group: 0, session: found.session, started: found.started })
        .collect()
}

/// Whether the process with this number started at that time, and lives.
#[cfg(target_os = "linux")]
pub(super) fn is_same(pid: i32, started: &str) -> bool {
    let entry = stat_of(pid).ok().flatten().and_then(|text| parse(pid, &text));
    entry.is_some_and(|entry| entry.started == started)
}

/// Whether the process with this number started at that time, and lives.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_same(pid: i32, started: &str) -> bool {
    process::ProcessIdentity::of(pid).is_some_and(|found| found.started == started)
}

/// Whether a process has an entry in its environment.
pub(super) fn is_marked(entry: &Entry, mark: &str) -> bool {
    process::has_environment_entry(entry.pid, mark)
}

/// The numbers of all processes below these, without these.
pub(super) fn below(all: &[Entry], roots: impl IntoIterator<Item = i32>) -> BTreeSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in all.iter().filter(|entry| entry.parent > 0) {
        children.entry(entry.parent).or_default().push(entry.pid);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<i32> = roots.into_iter().collect();
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_a_process_is_found_and_nothing_else() {
        let entry = |pid, parent| Entry { pid, parent, group: pid, session: pid, started: "1".into() };
        let all = [entry(5, 2), entry(2, 1), entry(3, 2), entry(4, 3), entry(6, 1), entry(1, 0)];
        assert_eq!(below(&all, [2]).into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(below(&all, [6]).len(), 0);
    }

    #[test]
    fn this_process_is_in_the_table_under_its_start_time() {
        let own = process::ProcessIdentity::own();
        assert!(read().iter().any(|entry| entry.pid == own.pid && entry.started == own.started));
        assert!(is_same(own.pid, &own.started) && !is_same(own.pid, "0"));
    }
}
