//! One attempt from the engine's side: its directory, starting its keeper, what became of it, and ending it. All of
//! this works for attempts of an engine that is long dead, too: the directory, a lock and the process table tell.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_model::run::AttemptId;
use steadfast_system::{bounded, env_vars, paths};

use crate::processes::Family;
use crate::shim::{ABANDONED, ERRORS, EXIT, Exit, IDENTITY, Keeper, LOCK, OUTPUT, PROMPT, RESULT, SPEC, Spec};
use crate::{crash, durable, processes, shim};

/// How often processes that nobody can wait for are looked at.
const POLL: Duration = Duration::from_millis(200);
/// How long a keeper may take to end itself after its agent is gone.
const KEEPER_GRACE: Duration = Duration::from_secs(3);

/// More of an answer is never kept; what is asked is kept whole, with the inputs it was filled in with.
const ANSWER_BYTES: u64 = 4 << 20;
const PROMPT_BYTES: u64 = 16 << 20;
/// What a keeper writes is far shorter.
const OWN_BYTES: u64 = 1 << 20;

/// The directory of an attempt and everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    directory: PathBuf,
}

/// What became of an attempt, as far as one can see now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// It ended, and this is how.
    Ended(Exit),
    /// Its keeper lives; wait for it.
    Kept,
    /// Its keeper is gone without a word, but processes of it live.
    Orphaned { keeper: Keeper, family: Family },
    /// Its keeper is gone without a word, and so is everything else.
    Gone,
    /// It never began; from now on it never will.
    NeverBegan,
}

impl Attempt {
    /// Where an attempt of a run lives. The run's id is one of ours, so it is a plain file name.
    pub fn at(home: &Path, run_id: &str, id: AttemptId) -> Self {
        let name = format!("{}-{}-{}", id.stage, id.iteration, id.attempt);
        Self { directory: run_directory(home, run_id).join(name) }
    }

    pub fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
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

    /// Where the agent may leave its result.
    pub fn result(&self) -> PathBuf {
        self.directory.join(RESULT)
    }

    /// What the keeper itself complains of.
    pub(crate) fn keeper_log(&self) -> PathBuf {
        self.directory.join("keeper.log")
    }

    pub fn prompt(&self) -> PathBuf {
        self.directory.join(PROMPT)
    }

    /// The agent's last words, kept for later stages.
    pub fn answer(&self) -> PathBuf {
        self.directory.join("answer.md")
    }

    /// The last words as they were kept, if they were.
    pub(crate) fn read_answer(&self) -> Option<String> {
        text_of(&self.answer(), ANSWER_BYTES)
    }

    /// What the agent was asked.
    pub(crate) fn read_prompt(&self) -> Option<String> {
        text_of(&self.prompt(), PROMPT_BYTES)
    }

    /// How the user's verify commands went after it.
    pub fn evidence(&self) -> PathBuf {
        self.directory.join("evidence.json")
    }

    pub(crate) fn keep_answer(&self, text: &str) -> std::io::Result<()> {
        durable::replace(&self.answer(), text.as_bytes())
    }

    /// Removes what only the running agent needed.
    pub(crate) fn tidy(&self, files: &[&str]) {
        for name in files {
            // Usually there is none.
            let _ = fs_err::remove_file(self.directory.join(name));
        }
    }

    /// The entry in the environment of everything that this attempt starts.
    pub(crate) fn mark(&self) -> String {
        format!("{}={}", env_vars::ATTEMPT, self.directory.display())
    }

    /// Writes down what is to be run. An attempt that began already keeps what it began with.
    pub fn prepare(&self, spec: &Spec, prompt: &str, files: &[(&str, String)]) -> std::io::Result<()> {
        paths::create_private_dir(&self.directory)?;
        if self.directory.join(IDENTITY).exists() {
            return Ok(());
        }
        let mut spec = spec.clone();
        spec.env.push((env_vars::ATTEMPT.to_owned(), self.directory.display().to_string()));
        // Whoever starts after a power cut starts another attempt, so nothing of this has to outlive one.
        durable::hand_over(&self.prompt(), prompt.as_bytes())?;
        for (name, content) in files {
            durable::hand_over(&self.directory.join(name), content.as_bytes())?;
        }
        crash::point(crash::Point::PromptWritten);
        durable::hand_over(&self.directory.join(SPEC), shim::json(&spec).as_bytes())
    }

    /// Starts the keeper: `program __exec DIR`. It outlives us.
    pub fn start(&self, program: &Path) -> std::io::Result<Child> {
        let log = durable::open_to_append(&self.keeper_log())?.into_parts().0;
        Command::new(program)
            .arg("__exec")
            .arg(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }

    /// Looks what became of the attempt. If it never began, it is given up first, under the lock: a keeper that comes
    /// late starts nothing.
    pub fn look(&self) -> std::io::Result<Sighting> {
        paths::create_private_dir(&self.directory)?;
        let lock = durable::open_lock(&self.directory.join(LOCK))?;
        if !durable::try_lock(&lock)? {
            return Ok(Sighting::Kept);
        }
        if let Some(exit) = read::<Exit>(&self.directory.join(EXIT))? {
            return Ok(Sighting::Ended(exit));
        }
        let Some(keeper) = read::<Keeper>(&self.directory.join(IDENTITY))? else {
            durable::mark(&self.directory.join(ABANDONED))?;
            crash::point(crash::Point::Abandoned);
            return Ok(Sighting::NeverBegan);
        };
        let family = keeper.identity.family(&self.mark());
        Ok(if family.is_empty() { Sighting::Gone } else { Sighting::Orphaned { keeper, family } })
    }

    /// Waits until the keeper is gone. Only for a keeper that holds its lock already: a new one would find it taken.
    fn wait_for_keeper(&self) -> std::io::Result<()> {
        durable::open_lock(&self.directory.join(LOCK))?.lock()
    }

    /// Waits for the attempt to end, whoever started it; the exit if its keeper saw it. Processes whose keeper was
    /// killed are waited for until the time limit, then ended.
    pub fn wait(&self, limit: Duration, grace: Duration) -> std::io::Result<Option<Exit>> {
        self.wait_and_tell(limit, grace, |_| {})
    }

    /// Like [`Attempt::wait`], and tells each time it looks whose end is waited for without a keeper.
    pub(crate) fn wait_and_tell(
        &self,
        limit: Duration,
        grace: Duration,
        mut tell: impl FnMut(&Family),
    ) -> std::io::Result<Option<Exit>> {
        loop {
            match self.look()? {
                Sighting::Ended(exit) => return Ok(Some(exit)),
                Sighting::Gone | Sighting::NeverBegan => return Ok(None),
                Sighting::Kept => self.wait_for_keeper()?,
                Sighting::Orphaned { keeper, family } => {
                    // Strays alone are what the agent left behind, not the agent.
                    if family.session.is_empty() || is_over(&keeper, limit, clock::now()) {
                        self.end_all(&family, grace);
                    } else {
                        tell(&family);
                    }
                    std::thread::sleep(POLL);
                }
            }
        }
    }

    /// Ends the attempt and everything it started. The keeper does it in order; where there is none, or it does not
    /// come to an end, all processes get TERM and after the grace KILL.
    pub fn stop(&self, grace: Duration) -> std::io::Result<()> {
        match self.look()? {
            Sighting::Ended(_) | Sighting::Gone | Sighting::NeverBegan => {}
            Sighting::Orphaned { family, .. } => self.end_all(&family, grace),
            Sighting::Kept => self.ask_keeper(grace)?,
        }
        // What runs in sessions of its own went unnoticed by the keeper.
        self.kill()
    }

    /// Asks the keeper to end its agent and waits for that; a keeper that is only just beginning is asked once it has
    /// written down who it is.
    fn ask_keeper(&self, grace: Duration) -> std::io::Result<()> {
        let patience = Instant::now() + grace + KEEPER_GRACE;
        let mut is_asked = false;
        while Instant::now() < patience && self.is_kept()? {
            if let Some(keeper) = self.keeper()?.filter(|keeper| !is_asked && keeper.identity.is_alive()) {
                processes::signal_all(&[keeper.identity.pid], Signal::TERM);
                is_asked = true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends everything at once, the keeper too.
    pub fn kill(&self) -> std::io::Result<()> {
        if let Some(keeper) = self.keeper()? {
            keeper.identity.kill_family(&self.mark());
        }
        Ok(())
    }

    fn end_all(&self, family: &Family, grace: Duration) {
        family.signal(Signal::TERM);
        let patience = Instant::now() + grace;
        while Instant::now() < patience && matches!(self.look(), Ok(Sighting::Orphaned { .. })) {
            std::thread::sleep(Duration::from_millis(50));
        }
        // The lists above already say that they could be read.
        let _ = self.kill();
    }

    fn is_kept(&self) -> std::io::Result<bool> {
        Ok(!durable::try_lock(&durable::open_lock(&self.directory.join(LOCK))?)?)
    }

    /// Who keeps or kept the attempt, if it began.
    pub fn keeper(&self) -> std::io::Result<Option<Keeper>> {
        read(&self.directory.join(IDENTITY))
    }
}

/// The directory of a run.
pub fn run_directory(home: &Path, run_id: &str) -> PathBuf {
    home.join("runs").join(run_id)
}

/// Until when to believe in a keeper that began now: one that was stopped or hangs cannot hold its agent to the limit.
/// Measured on the keeper's own clock, which stands still while the machine sleeps.
pub(crate) fn patience(limit: Duration, grace: Duration) -> Option<Instant> {
    let longest = limit.checked_add(grace.checked_mul(2)?)?.checked_add(KEEPER_GRACE)?;
    Instant::now().checked_add(longest)
}

fn is_over(keeper: &Keeper, limit: Duration, now: Millis) -> bool {
    let limit = Millis::try_from(limit.as_millis()).unwrap_or(Millis::MAX);
    now.saturating_sub(keeper.started_at_ms) >= limit
}

/// The agent knows its directory, and may have put anything in the place of a file.
fn text_of(path: &Path, most: u64) -> Option<String> {
    Some(String::from_utf8_lossy(&bounded::start_of(path, most).ok()?.bytes).into_owned())
}

/// Reads one of our own files; absent means that it was not written yet.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> std::io::Result<Option<T>> {
    match bounded::whole(path, OWN_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| std::io::Error::other(format!("{} is damaged: {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
