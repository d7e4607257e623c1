//! The process table with parents and groups, for finding everything below a process.

use std::collections::{BTreeSet, HashMap};

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

/// All live processes.
#[cfg(target_os = "linux")]
pub(super) fn read() -> Vec<Entry> {
    let Ok(entries) = fs_err::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| one(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// One live process, from `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn one(pid: i32) -> Option<Entry> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
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
    one(pid).is_some_and(|entry| entry.started == started)
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
