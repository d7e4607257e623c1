//! One attempt from the engine's side: its directory, starting its supervisor, its state, and ending it. Everything here
//! also works for attempts of an engine that is gone: the directory, its lock and the process table are enough.

mod left;
mod record;
mod token;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::AttemptId;
use steadfast_system::{bounded, env_vars, paths};

use self::record::{ANSWER, EVIDENCE, OWN_OUTPUT, STATUS};
use crate::descendants::{self, Descendants, FoundProcess};
use crate::environment::StageEnvironment;
use crate::run_folder::RunFolder;
use crate::{crash, durable, lock};

pub use self::left::LeftAttempt;
pub(crate) use self::record::{
    ABANDONED, CONTEXT, ERRORS, ESCAPED, EXIT, EscapedRecord, OUTPUT, PROMPT, RESULT, SPEC, SUPERVISOR, SUPERVISOR_LOG,
};
pub use self::record::{AttemptExit, AttemptSpec, SupervisorRecord};
pub use self::token::RunKey;
pub(crate) use self::token::{AttemptToken, TOKEN_BYTES};

/// How often orphaned processes are looked at. They are not our children, so there is nothing to wait for.
const ORPHAN_POLL: Duration = Duration::from_millis(200);
const SUPERVISOR_POLL: Duration = Duration::from_millis(50);
/// How long a supervisor may take to end after its agent is gone.
const SUPERVISOR_GRACE: Duration = Duration::from_secs(3);

const ANSWER_BYTES: u64 = 4 << 20;
/// Prompts contain the outputs of earlier stages.
const PROMPT_BYTES: u64 = 16 << 20;
/// The records of a supervisor are far shorter.
const RECORD_BYTES: u64 = 1 << 20;

/// The directory of an attempt and the files in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    directory: PathBuf,
    /// Records without a seal made with it are not believed. `None` believes all, as for attempts of earlier versions.
    key: Option<RunKey>,
}

/// The state of an attempt, as its directory and the process table show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    Ended(AttemptExit),
    /// Its supervisor lives.
    Supervised,
    /// Its supervisor died without recording an exit, but processes of the attempt live.
    Orphaned {
        supervisor: SupervisorRecord,
        descendants: Descendants,
    },
    /// Its supervisor died without recording an exit, and no process of the attempt lives.
    Gone,
    /// It never started, and from now on it cannot.
    NeverStarted,
}

impl Attempt {
    /// The attempt of a run.
    pub fn at(home: &Path, run_id: &str, id: AttemptId) -> Self {
        Self::in_directory(RunFolder::at(home, run_id).attempt(id))
    }

    pub fn in_directory(directory: PathBuf) -> Self {
        Self { directory, key: None }
    }

    /// The same attempt, of which only records are believed that a supervisor with a token of this key wrote.
    #[must_use]
    pub fn with_key(self, key: Option<RunKey>) -> Self {
        Self { key, ..self }
    }

    /// The attempt in the directory with this addition to its name, with the same key.
    pub(crate) fn beside(&self, addition: &str) -> Self {
        let mut directory = self.directory.as_os_str().to_owned();
        directory.push(addition);
        Self { directory: directory.into(), key: self.key.clone() }
    }

    fn token(&self) -> Option<AttemptToken> {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        self.key.as_ref().map(|key| key.token(&name))
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn output(&self) -> PathBuf {
        self.directory.join(OUTPUT)
    }

    pub fn errors(&self) -> PathBuf {
        self.directory.join(ERRORS)
    }

    /// Where the agent may write its result.
    pub fn result(&self) -> PathBuf {
        self.directory.join(RESULT)
    }

    /// Where an agent may write its result in the words of other tools.
    pub fn status(&self) -> PathBuf {
        self.directory.join(STATUS)
    }

    /// What the agent can look up about its iteration.
    pub fn context(&self) -> PathBuf {
        self.directory.join(CONTEXT)
    }

    /// Where the agent of a loop may write its output.
    pub(crate) fn own_output(&self) -> PathBuf {
        self.directory.join(OWN_OUTPUT)
    }

    /// Locked by the supervisor from its start to its end.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.directory.join("lock")
    }

    /// The stderr of the supervisor.
    pub(crate) fn supervisor_log(&self) -> PathBuf {
        self.directory.join(SUPERVISOR_LOG)
    }

    /// The agent's last message, kept for later stages.
    pub fn answer(&self) -> PathBuf {
        self.directory.join(ANSWER)
    }

    pub(crate) fn read_answer(&self) -> Option<String> {
        read_text(&self.answer(), ANSWER_BYTES)
    }

    pub(crate) fn read_prompt(&self) -> Option<String> {
        read_text(&self.directory.join(PROMPT), PROMPT_BYTES)
    }

    /// The results of the user's verify commands after this attempt.
    pub fn evidence(&self) -> PathBuf {
        self.directory.join(EVIDENCE)
    }

    /// Removes files that only the running agent needed.
    pub(crate) fn remove_files(&self, names: &[&str]) {
        for name in names {
            // Usually there is none.
            let _ = fs_err::remove_file(self.directory.join(name));
        }
    }

    /// The entry in the environment of every process of this attempt.
    pub(crate) fn mark(&self) -> String {
        format!("{}={}", env_vars::ATTEMPT, self.directory.display())
    }

    /// Writes what the supervisor is to run. An attempt that has started keeps what it started with.
    pub fn prepare(&self, spec: &AttemptSpec, prompt: &str, files: &[(&str, String)]) -> std::io::Result<()> {
        paths::create_private_dir(&self.directory)?;
        if self.directory.join(SUPERVISOR).exists() {
            return Ok(());
        }
        let mut spec =
            AttemptSpec { has_token: self.key.is_some(), clock: steadfast_system::clock::anchor(), ..spec.clone() };
        spec.env.push((env_vars::ATTEMPT.to_owned(), self.directory.display().to_string()));
        // Not synced: after a power cut another attempt is started.
        durable::hand_over(&self.directory.join(PROMPT), prompt.as_bytes())?;
        for (name, content) in files {
            durable::hand_over(&self.directory.join(name), content.as_bytes())?;
        }
        crash::point(crash::CrashPoint::PromptWritten);
        durable::hand_over(&self.directory.join(SPEC), durable::json(&spec).as_bytes())
    }

    /// Starts the supervisor, `program __exec DIR`. It outlives this process, and starts nothing if this process dies
    /// before it has handed over the token.
    pub fn start(&self, program: &Path) -> std::io::Result<Child> {
        self.start_in(program, &StageEnvironment::default(), false)
    }

    /// Like [`Attempt::start`], for an attempt that was prepared to end with this process: it ends when the stdin of the
    /// supervisor is closed, which `Child::wait` does.
    pub fn start_bound(&self, program: &Path) -> std::io::Result<Child> {
        self.start_in(program, &StageEnvironment::default(), true)
    }

    /// Like [`Attempt::start`] or [`Attempt::start_bound`], in the environment of a stage.
    pub(crate) fn start_in(
        &self,
        program: &Path,
        environment: &StageEnvironment,
        bound: bool,
    ) -> std::io::Result<Child> {
        let log = durable::open_to_append(&self.supervisor_log())?.into_parts().0;
        let token = self.token();
        let mut command = Command::new(program);
        environment.apply(&mut command);
        let mut supervisor = command
            .arg("__exec")
            .arg(&self.directory)
            .stdin(if token.is_some() || bound { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        if let (Some(token), Some(stdin)) = (token, &mut supervisor.stdin) {
            // A supervisor that ended at once is noticed by what it did not write.
            let _ = stdin.write_all(format!("{}\n", token.as_str()).as_bytes());
        }
        if !bound {
            supervisor.stdin = None;
        }
        Ok(supervisor)
    }

    /// Finds out the state of the attempt. One that never started is abandoned first, under its lock, so that a
    /// supervisor that comes late starts nothing.
    pub fn inspect(&self) -> std::io::Result<AttemptState> {
        paths::create_private_dir(&self.directory)?;
        let Some(_lock) = lock::try_take(&self.lock_file())? else { return Ok(AttemptState::Supervised) };
        let supervisor = self.supervisor()?;
        if let Some(exit) = self.exit(supervisor.as_ref())? {
            return Ok(AttemptState::Ended(exit));
        }
        let Some(supervisor) = supervisor else {
            durable::mark(&self.directory.join(ABANDONED))?;
            crash::point(crash::CrashPoint::Abandoned);
            return Ok(AttemptState::NeverStarted);
        };
        let descendants = self.descendants(&supervisor);
        Ok(if descendants.is_empty() { AttemptState::Gone } else { AttemptState::Orphaned { supervisor, descendants } })
    }

    /// Waits for the attempt to end, whichever process started it; returns the exit if its supervisor recorded it.
    /// Orphaned processes are waited for until the time limit, then ended.
    pub fn wait(&self, limit: Duration, grace: Duration) -> std::io::Result<Option<AttemptExit>> {
        self.wait_with(limit, grace, |_| {})
    }

    /// Like [`Attempt::wait`]; calls `on_orphans` with one of them each time it finds orphaned processes to wait for.
    pub(crate) fn wait_with(
        &self,
        limit: Duration,
        grace: Duration,
        on_orphans: impl Fn(i32),
    ) -> std::io::Result<Option<AttemptExit>> {
        loop {
            match self.inspect()? {
                AttemptState::Ended(exit) => return Ok(Some(exit)),
                AttemptState::Gone | AttemptState::NeverStarted => return Ok(None),
                // Only while a supervisor holds the lock: a new one would find it taken.
                AttemptState::Supervised => lock::open(&self.lock_file())?.lock()?,
                AttemptState::Orphaned { supervisor, descendants } => {
                    let limit = Millis::try_from(limit.as_millis()).unwrap_or(Millis::MAX);
                    let is_past_limit = clock::now().saturating_sub(supervisor.started_at_ms) >= limit;
                    match descendants.session.first() {
                        Some(found) if !is_past_limit => on_orphans(found.pid),
                        // Escaped processes alone are what the agent left behind, not the agent.
                        _ => self.end_orphans(&supervisor, grace),
                    }
                    std::thread::sleep(ORPHAN_POLL);
                }
            }
        }
    }

    /// Ends the attempt and everything it started. The supervisor does it in order; if there is none, or it does not
    /// end, all processes get TERM and after the grace KILL.
    pub fn stop(&self, grace: Duration) -> std::io::Result<()> {
        match self.inspect()? {
            AttemptState::Ended(_) | AttemptState::Gone | AttemptState::NeverStarted => {}
            AttemptState::Orphaned { supervisor, .. } => self.end_orphans(&supervisor, grace),
            AttemptState::Supervised => self.ask_supervisor(grace)?,
        }
        // The supervisor may have missed processes in sessions of their own.
        self.kill()
    }

    /// Like [`Attempt::stop`], but a supervisor whose agent has ended lives on: on a full disk it waits to record that, and
    /// without its record the work would be repeated.
    pub(crate) fn stop_agent(&self, grace: Duration) -> std::io::Result<()> {
        if self.inspect()? == AttemptState::Supervised {
            self.ask_supervisor(grace)?;
            if let Some(supervisor) = self.supervisor()? {
                let is_agent = |found: &FoundProcess| found.pid != supervisor.identity.pid;
                if !self.descendants(&supervisor).all().iter().any(is_agent) {
                    return Ok(());
                }
            }
        }
        self.stop(grace)
    }

    /// Asks the supervisor to end its agent and waits for that. A supervisor that is just starting is asked once it has
    /// written its record.
    fn ask_supervisor(&self, grace: Duration) -> std::io::Result<()> {
        let deadline = Instant::now() + grace + SUPERVISOR_GRACE;
        let mut is_asked = false;
        while Instant::now() < deadline && lock::try_take(&self.lock_file())?.is_none() {
            if !is_asked && let Some(supervisor) = self.supervisor()?.filter(|found| found.identity.is_alive()) {
                descendants::signal_all(&[(&supervisor.identity).into()], Signal::TERM);
                is_asked = true;
            }
            std::thread::sleep(SUPERVISOR_POLL);
        }
        Ok(())
    }

    /// Kills everything at once, the supervisor included.
    pub fn kill(&self) -> std::io::Result<()> {
        if let Some(supervisor) = self.supervisor()? {
            descendants::end_at(None, || self.descendants(&supervisor).all());
        }
        Ok(())
    }

    fn end_orphans(&self, supervisor: &SupervisorRecord, grace: Duration) {
        descendants::end(grace, || self.descendants(supervisor).all());
    }

    fn descendants(&self, supervisor: &SupervisorRecord) -> Descendants {
        Descendants::of(&supervisor.identity, &self.mark(), &self.escaped())
    }

    /// What the supervisor wrote down of processes that left the group of its agent.
    fn escaped(&self) -> Vec<FoundProcess> {
        let record: Option<EscapedRecord> = read_record(&self.directory.join(ESCAPED)).ok().flatten();
        record.map(|record| record.believed(self.token().as_ref())).unwrap_or_default()
    }

    /// The exit that the supervisor recorded. Where tokens are used, a record that another process wrote is no record.
    fn exit(&self, supervisor: Option<&SupervisorRecord>) -> std::io::Result<Option<AttemptExit>> {
        let exit = read_record::<AttemptExit>(&self.directory.join(EXIT));
        let Some(token) = self.token() else { return exit };
        let is_believed = |exit: &AttemptExit| supervisor.is_some_and(|found| exit.is_of(&token, &found.identity));
        Ok(exit
            .or_else(|error| if error.kind() == std::io::ErrorKind::Other { Ok(None) } else { Err(error) })?
            .filter(is_believed))
    }

    /// The record of the supervisor, if the attempt has started.
    pub fn supervisor(&self) -> std::io::Result<Option<SupervisorRecord>> {
        read_record(&self.directory.join(SUPERVISOR))
    }
}

/// The deadline of a supervisor that starts now: one that was stopped or hangs cannot enforce the limit of its agent.
/// Measured on the supervisor's own clock, which stands still while the machine sleeps.
pub(crate) fn supervisor_deadline(limit: Duration, grace: Duration) -> Option<Instant> {
    let longest = limit.checked_add(grace.checked_mul(2)?)?.checked_add(SUPERVISOR_GRACE)?;
    Instant::now().checked_add(longest)
}

/// Reads the beginning of a file. The agent knows its directory, and may have replaced a file by anything.
fn read_text(path: &Path, most: u64) -> Option<String> {
    Some(String::from_utf8_lossy(&bounded::start_of(path, most).ok()?.bytes).into_owned())
}

/// Reads one of our records; `None` if it was not written yet.
fn read_record<T: serde::de::DeserializeOwned>(path: &Path) -> std::io::Result<Option<T>> {
    let Some(bytes) = durable::if_exists(bounded::whole(path, RECORD_BYTES))? else { return Ok(None) };
    let damaged = |error| std::io::Error::other(format!("{} is damaged: {error}", path.display()));
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}
