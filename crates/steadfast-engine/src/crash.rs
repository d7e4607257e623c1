//! Places at which a test can let the process die as if by `kill -9`: `STEADFAST_CRASH_AT=point[:nth]`. In release
//! builds there is nothing here.

/// Dies here if the environment names this point and it is reached for the nth time (1 if not said).
#[cfg(debug_assertions)]
pub(crate) fn point(name: &'static str) {
    use std::collections::HashMap;
    use std::sync::Mutex;

    static REACHED: Mutex<Option<HashMap<&'static str, u32>>> = Mutex::new(None);
    let Ok(mut reached) = REACHED.lock() else { return };
    let count = reached.get_or_insert_default().entry(name).or_insert(0);
    *count += 1;
    die_at(name, *count);
}

/// The same in a process that reaches its points once: `ordinal` says which of its kind it is.
#[cfg(debug_assertions)]
pub(crate) fn point_of(name: &str, ordinal: u32) {
    die_at(name, ordinal);
}

/// Which attempt of its run the one in this directory is, for tests that let the keeper of a certain one die.
#[cfg(debug_assertions)]
pub(crate) fn ordinal(attempt: &std::path::Path) -> u32 {
    use steadfast_core::env_vars;
    if env_vars::text(env_vars::CRASH_AT).is_none() {
        return 0;
    }
    let beside = attempt.parent().and_then(|run| fs_err::read_dir(run).ok());
    let attempts =
        beside.into_iter().flatten().flatten().filter(|entry| entry.path().is_dir() && entry.path() != attempt);
    u32::try_from(attempts.count() + 1).unwrap_or(u32::MAX)
}

#[cfg(debug_assertions)]
fn die_at(name: &str, count: u32) {
    use steadfast_core::env_vars;
    let Some(wanted) = env_vars::text(env_vars::CRASH_AT) else { return };
    let (point, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if point == name && nth.parse() == Ok(count) {
        // Nothing else ends a process without running a single line more of it.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn point(_name: &'static str) {}

#[cfg(not(debug_assertions))]
pub(crate) fn point_of(_name: &str, _ordinal: u32) {}

#[cfg(not(debug_assertions))]
pub(crate) fn ordinal(_attempt: &std::path::Path) -> u32 {
    0
}
