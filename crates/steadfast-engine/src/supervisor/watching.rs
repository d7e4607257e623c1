//! Watching one agent: its time limit, requests to stop, and what leaves its process group. When it has ended, everything
//! that it started is ended: the next agent must not work beside it, and no limit counts what it would do.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use steadfast_system::log;

use super::output_cap::CappedOutput;
use super::reaper;
use crate::attempt::{
    AttemptExit, AttemptSpec, AttemptToken, ESCAPED, EscapedRecord, SUPERVISOR_LOG, SupervisorRecord,
};
use crate::descendants::{self, Descendants, FoundProcess};
use crate::{durable, process};

/// How often to look for processes that left the agent's group.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// KILL is repeated: a process may start another one while it is being killed.
const KILL_ROUNDS: u32 = 100;
const KILL_PAUSE: Duration = Duration::from_millis(50);

pub(super) enum SupervisorMessage {
    /// The agent ended.
    Ended(std::io::Result<ExitStatus>),
    /// Nothing is left below this process.
    AllEnded,
    StopRequested,
}

pub(super) struct Supervision<'a> {
    pub(super) spec: &'a AttemptSpec,
    pub(super) record: &'a SupervisorRecord,
    pub(super) directory: &'a Path,
    pub(super) mark: &'a str,
    pub(super) token: Option<&'a AttemptToken>,
}

impl Supervision<'_> {
    /// Waits for the agent, and ends it when its time is over or a signal asks for that.
    pub(super) fn watch(
        &self,
        agent: &Child,
        mut outputs: Vec<CappedOutput>,
        sender: mpsc::Sender<SupervisorMessage>,
        messages: &mpsc::Receiver<SupervisorMessage>,
    ) -> std::io::Result<AttemptExit> {
        let signal = process::signal_group_of(agent);
        let group = i32::try_from(agent.id()).unwrap_or(0);
        // The agent itself may have left its group.
        let kill = || {
            signal(Signal::KILL);
            descendants::kill_all(descendants::below_this_process);
        };
        reaper::report_ends(agent, sender);
        let grace = Duration::from_millis(self.spec.grace_ms);
        let (mut timed_out, mut stopped) = (false, false);
        let mut deadline = Instant::now().checked_add(Duration::from_millis(self.spec.limit_ms));
        let mut noted = Vec::new();
        let status = loop {
            let left = deadline.map_or(LOOK_EVERY, |deadline| deadline.saturating_duration_since(Instant::now()));
            let received = messages.recv_timeout(left.min(LOOK_EVERY));
            match received {
                Ok(SupervisorMessage::Ended(status)) => break status?,
                // Only after the agent.
                Ok(SupervisorMessage::AllEnded) => continue,
                Err(_) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {
                    self.note_escaped(group, &mut noted);
                    outputs.retain_mut(CappedOutput::trim);
                    continue;
                }
                Ok(SupervisorMessage::StopRequested) if stopped || timed_out => {
                    kill();
                    continue;
                }
                Err(_) if stopped || timed_out => kill(),
                request => {
                    (stopped, timed_out) = (request.is_ok(), request.is_err());
                    signal(Signal::TERM);
                    self.terminate_escaped(group);
                }
            }
            deadline = Instant::now().checked_add(grace);
        };
        if !cfg!(target_os = "linux") {
            // Kill what the agent left running in its group.
            signal(Signal::KILL);
        }
        let mut is_over = all_ended_within(KILL_PAUSE, messages);
        let (in_group, escaped) = if is_over { Default::default() } else { descendants::below_by_group(group) };
        // Not by the number of the group: the agent is gone, and another process may have that number by now.
        descendants::signal_all(&in_group, Signal::KILL);
        if !timed_out && !stopped {
            deadline = Instant::now().checked_add(grace);
            descendants::signal_all(&escaped, Signal::TERM);
            if status.code().is_none() {
                descendants::signal_all(&self.marked().escaped, Signal::TERM);
            }
        }
        is_over = is_over || end_all(deadline, messages);
        if !is_over {
            let left: Vec<i32> = descendants::below_this_process().iter().map(|found| found.pid).collect();
            self.log(&format!("these processes cannot be ended: {left:?}"));
        }
        if timed_out || stopped || status.code().is_none() {
            // What another process started for the agent is known by its mark only.
            descendants::end_at(deadline, || self.marked().all());
        }
        outputs.retain_mut(CappedOutput::trim);
        Ok(AttemptExit {
            exit_code: status.code(),
            signal: status.signal(),
            timed_out,
            stopped,
            ..AttemptExit::default()
        })
    }

    fn marked(&self) -> Descendants {
        Descendants::of(&self.record.identity, self.mark, &[])
    }

    /// The shells of some agents begin sessions of their own, and servers leave the group of their shell.
    fn terminate_escaped(&self, group: i32) {
        let mut escaped = descendants::below_by_group(group).1;
        escaped.extend(self.marked().escaped);
        escaped.sort();
        escaped.dedup();
        descendants::signal_all(&escaped, Signal::TERM);
    }

    /// Writes down what left the agent's group, for an engine that finds this process killed.
    fn note_escaped(&self, group: i32, noted: &mut Vec<FoundProcess>) {
        let mut escaped = descendants::below_by_group(group).1;
        escaped.sort();
        if escaped == *noted {
            return;
        }
        let record = EscapedRecord::new(escaped.clone(), self.token);
        // On a full disk, the next look tries again.
        if durable::hand_over(&self.directory.join(ESCAPED), durable::json(&record).as_bytes()).is_ok() {
            *noted = escaped;
        }
    }

    /// The supervisor's stderr is its log.
    fn log(&self, message: &str) {
        log::line(&self.directory.join(SUPERVISOR_LOG), message);
    }
}

/// Whether everything below this process ends in this time.
fn all_ended_within(time: Duration, messages: &mpsc::Receiver<SupervisorMessage>) -> bool {
    let deadline = Instant::now() + time;
    loop {
        match messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(SupervisorMessage::AllEnded) => return true,
            // The agent has ended, so there is no second end, and what is left is being ended.
            Ok(SupervisorMessage::Ended(_) | SupervisorMessage::StopRequested) => {}
            Err(_) => return false,
        }
    }
}

/// Waits for the end of everything below this process, and kills it at the deadline. Returns whether nothing is left.
fn end_all(deadline: Option<Instant>, messages: &mpsc::Receiver<SupervisorMessage>) -> bool {
    let left = deadline.unwrap_or_else(Instant::now).saturating_duration_since(Instant::now());
    let mut is_over = all_ended_within(left, messages);
    for _ in 0..KILL_ROUNDS {
        if is_over {
            break;
        }
        descendants::kill_all(descendants::below_this_process);
        is_over = all_ended_within(KILL_PAUSE, messages);
    }
    is_over
}
