//! Places at which a test can let the process die as if by `kill -9`, or hold it so that the test may kill whom it likes:
//! `STEADFAST_CRASH_AT=point[:nth[:hold]]`. Every place is listed here, so that tests which go through all of them find
//! new ones by themselves. In release builds nothing happens at any of them.

/// A process that is held writes its number into this file of the home.
pub const HELD: &str = "held";

macro_rules! points {
    ($($(#[doc = $why:literal])* $point:ident = $name:literal,)+) => {
        /// A moment at which everything may end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Point {
            $($(#[doc = $why])* $point,)+
        }

        impl Point {
            pub const ALL: &[Self] = &[$(Self::$point,)+];

            /// How the environment names it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)+
                }
            }
        }
    };
}

points! {
    /// The engine has the run's lock and is in the store as its driver.
    Locked = "engine.locked",
    BeforeSave = "engine.before_save",
    Saved = "engine.saved",
    /// The public files are up to date.
    Shown = "engine.shown",
    PromptWritten = "engine.prompt_written",
    Prepared = "engine.prepared",
    /// The keeper was started.
    Started = "engine.started",
    /// An attempt that never began was given up for good.
    Abandoned = "engine.abandoned",
    /// It is known how an attempt ended, and not yet written down.
    AttemptEnded = "engine.attempt_ended",
    /// The rule was tested, and not yet written down.
    Checked = "engine.checked",
    /// The evidence of an iteration is with its goal, and not yet what the goal counts.
    EvidenceKept = "engine.evidence_kept",
    /// It is written down which branch a worktree gets.
    WorktreeChosen = "engine.worktree_chosen",
    /// Git has made the worktree, and nobody has worked in it.
    WorktreeMade = "engine.worktree_made",
    /// Everything in it is committed, and it is about to go.
    WorktreeKept = "engine.worktree_kept",
    WorktreeRemoved = "engine.worktree_removed",
    KeeperStarted = "shim.started",
    KeeperLocked = "shim.locked",
    IdentityWritten = "shim.identity_written",
    Spawned = "shim.spawned",
    AgentEnded = "shim.agent_ended",
    ExitWritten = "shim.exit_written",
}

/// Dies here if the environment names this point and it is reached for the nth time (1 if not said).
#[cfg(debug_assertions)]
pub(crate) fn point(point: Point) {
    use std::collections::HashMap;
    use std::sync::Mutex;

    static REACHED: Mutex<Option<HashMap<Point, u32>>> = Mutex::new(None);
    let Ok(mut reached) = REACHED.lock() else { return };
    let count = reached.get_or_insert_default().entry(point).or_insert(0);
    *count += 1;
    die_at(point, *count);
}

/// The same in a process that reaches its points once: `ordinal` says which of its kind it is.
#[cfg(debug_assertions)]
pub(crate) fn point_of(point: Point, ordinal: u32) {
    die_at(point, ordinal);
}

/// Which attempt of its run the one in this directory is, for tests that let the keeper of a certain one die.
#[cfg(debug_assertions)]
pub(crate) fn ordinal(attempt: &std::path::Path) -> u32 {
    use steadfast_system::env_vars;
    if env_vars::text(env_vars::CRASH_AT).is_none() {
        return 0;
    }
    let beside = attempt.parent().and_then(|run| fs_err::read_dir(run).ok());
    let attempts =
        beside.into_iter().flatten().flatten().filter(|entry| entry.path().is_dir() && entry.path() != attempt);
    u32::try_from(attempts.count() + 1).unwrap_or(u32::MAX)
}

#[cfg(debug_assertions)]
fn die_at(point: Point, count: u32) {
    use rustix::process::{Signal, getpid, kill_process};
    use steadfast_system::env_vars;
    let Some(wanted) = env_vars::text(env_vars::CRASH_AT) else { return };
    let mut words = wanted.split(':');
    let is_here = words.next() == Some(point.name()) && words.next().unwrap_or("1").parse() == Ok(count);
    if !is_here {
        return;
    }
    // Nothing else ends a process without running a single line more of it.
    if words.next() != Some("hold") {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    if let Some(home) = env_vars::path(env_vars::HOME) {
        let _ = fs_err::write(home.join(HELD), getpid().as_raw_nonzero().to_string());
    }
    let _ = kill_process(getpid(), Signal::STOP);
    // All threads stop, but not in the same instant.
    std::thread::sleep(std::time::Duration::from_millis(20));
}

#[cfg(not(debug_assertions))]
pub(crate) fn point(_point: Point) {}

#[cfg(not(debug_assertions))]
pub(crate) fn point_of(_point: Point, _ordinal: u32) {}

#[cfg(not(debug_assertions))]
pub(crate) fn ordinal(_attempt: &std::path::Path) -> u32 {
    0
}
