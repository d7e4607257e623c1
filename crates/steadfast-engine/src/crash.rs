//! Points at which a test can kill the process as if by `kill -9`, or hold it and kill another one:
//! `STEADFAST_CRASH_AT=point[:nth[:hold]]`. All points are listed here, so that a test over all of them includes new
//! ones. Servers and the engine have places of their own, at which a test can make them panic. In release builds all of
//! them do nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use steadfast_system::env_vars;

/// A process that is held writes its number to this file in the home.
pub const HELD: &str = "held";

macro_rules! points {
    ($($(#[doc = $why:literal])* $point:ident = $name:literal,)+) => {
        /// A moment at which a process may die.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CrashPoint {
            $($(#[doc = $why])* $point,)+
        }

        impl CrashPoint {
            pub const ALL: &[Self] = &[$(Self::$point,)+];

            /// Its name in `STEADFAST_CRASH_AT`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)+
                }
            }
        }
    };
}

points! {
    /// The engine has the run's lock and is recorded in the store.
    Locked = "engine.locked",
    BeforeSave = "engine.before_save",
    Saved = "engine.saved",
    /// All observers have seen the step.
    Shown = "engine.shown",
    PromptWritten = "engine.prompt_written",
    Prepared = "engine.prepared",
    /// The supervisor was started.
    Started = "engine.started",
    /// An attempt that never started was abandoned.
    Abandoned = "engine.abandoned",
    /// The end of an attempt is known, and not yet saved.
    AttemptEnded = "engine.attempt_ended",
    /// The results of checks are known, and not yet saved.
    Checked = "engine.checked",
    /// The evidence of an iteration is saved with its goal, and its numbers are not.
    EvidenceKept = "engine.evidence_kept",
    /// The condition of a stage was tested, and the result is not saved.
    Decided = "engine.decided",
    /// The artifacts of an attempt are copied, and it is not recorded that they are.
    ArtifactsKept = "engine.artifacts_kept",
    /// What is merged next is recorded.
    MergeBegun = "engine.merge_begun",
    /// A branch was merged without a conflict.
    BranchMerged = "engine.branch_merged",
    /// A merge stopped at a conflict, and its agent is about to start.
    MergeConflict = "engine.merge_conflict",
    /// A merge that was given up is aborted.
    MergeAborted = "engine.merge_aborted",
    /// The branch name of a worktree is recorded.
    WorktreeChosen = "engine.worktree_chosen",
    /// Git has created the worktree, and it is not marked as ready.
    WorktreeMade = "engine.worktree_made",
    /// Everything in the worktree is committed, and it is about to be removed.
    WorktreeKept = "engine.worktree_kept",
    WorktreeRemoved = "engine.worktree_removed",
    SupervisorStarted = "supervisor.started",
    SupervisorLocked = "supervisor.locked",
    RecordWritten = "supervisor.record_written",
    Spawned = "supervisor.spawned",
    AgentEnded = "supervisor.agent_ended",
    ExitWritten = "supervisor.exit_written",
}

/// Kills or holds this process if the environment names this point and it is reached for the nth time (default 1).
pub(crate) fn point(point: CrashPoint) {
    static REACHED: Mutex<Option<HashMap<CrashPoint, u32>>> = Mutex::new(None);
    if !cfg!(debug_assertions) {
        return;
    }
    let Ok(mut reached) = REACHED.lock() else { return };
    let count = reached.get_or_insert_default().entry(point).or_insert(0);
    *count += 1;
    point_of(point, *count);
}

/// Panics if the environment names this place of a server: the first time that a process reaches it, or, with `place:N`,
/// the Nth time.
pub fn panic_once(place: &str) {
    static REACHED: AtomicU32 = AtomicU32::new(0);
    let wanted = if cfg!(debug_assertions) { env_vars::text(env_vars::CRASH_AT) } else { None };
    let Some(wanted) = wanted else { return };
    let (name, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    let is_here = name == place && nth.parse() == Ok(REACHED.fetch_add(1, Ordering::Relaxed) + 1);
    assert!(!is_here, "a test asked for this");
}

/// Which attempt of its run the one in this directory is, for tests that kill the supervisor of a certain one.
pub(crate) fn ordinal(attempt: &Path) -> u32 {
    if !cfg!(debug_assertions) || env_vars::text(env_vars::CRASH_AT).is_none() {
        return 0;
    }
    let beside = attempt.parent().and_then(|run| fs_err::read_dir(run).ok()).into_iter().flatten().flatten();
    let attempts = beside.filter(|entry| entry.path().is_dir() && entry.path() != attempt);
    u32::try_from(attempts.count() + 1).unwrap_or(u32::MAX)
}

/// The same as [`point`] in a process that reaches each point once; `count` counts processes of its kind.
pub(crate) fn point_of(point: CrashPoint, count: u32) {
    let wanted = if cfg!(debug_assertions) { env_vars::text(env_vars::CRASH_AT) } else { None };
    let Some(wanted) = wanted else { return };
    let mut words = wanted.split(':');
    let is_here = words.next() == Some(point.name()) && words.next().unwrap_or("1").parse() == Ok(count);
    if !is_here {
        return;
    }
    // Only SIGKILL ends a process without running one more line of it.
    if words.next() != Some("hold") {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    if let Some(home) = env_vars::path(env_vars::HOME) {
        let _ = fs_err::write(home.join(HELD), getpid().as_raw_nonzero().to_string());
    }
    let _ = kill_process(getpid(), Signal::STOP);
    // Other threads may run for a moment before the signal stops them.
    std::thread::sleep(Duration::from_millis(20));
}
