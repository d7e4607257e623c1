//! Runs on the fleet beside those of this machine. `steadfast fleet list --json` is asked as a child process, at most
//! every 10 s and only where a fleet is configured, so that nothing of Temporal is in this binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use steadfast_app::overview::now::fleet::FleetCard;
use steadfast_model::text;
use steadfast_system::paths::Paths;
use steadfast_system::{bounded, env_vars};

const ASK_EVERY: Duration = Duration::from_secs(10);
const MOST_BYTES: u64 = 4 << 20;

struct FleetQuery {
    at: Option<Instant>,
    is_asking: bool,
    trouble: Option<String>,
}

static ASKED: Mutex<FleetQuery> = Mutex::new(FleetQuery { at: None, is_asking: false, trouble: None });

fn kept_list(paths: &Paths) -> PathBuf {
    paths.home.join("fleet/runs.json")
}

fn is_known(paths: &Paths) -> bool {
    let is_configured = paths.config.fleet.is_set() || env_vars::text(env_vars::TEMPORAL_ADDRESS).is_some();
    is_configured || kept_list(paths).exists()
}

/// Asks now and waits for the answer, for a view that is shown once.
pub(crate) fn wait_for_answer(paths: &Paths) {
    if is_known(paths) {
        let trouble = ask().err();
        let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        (asked.at, asked.trouble) = (Some(Instant::now()), trouble);
    }
}

/// What is known of the fleet; `None` where there is none. Never waits: a newer list is there at one of the next looks.
pub(crate) fn look(paths: &Paths) -> Option<FleetCard> {
    if !is_known(paths) {
        return None;
    }
    let kept = kept_list(paths);
    ask_now_and_then();
    let trouble = ASKED.lock().unwrap_or_else(PoisonError::into_inner).trouble.clone();
    let card = read(&kept).unwrap_or_default();
    Some(FleetCard { trouble, ..card })
}

fn read(kept: &Path) -> Option<FleetCard> {
    FleetCard::parse(&bounded::whole(kept, MOST_BYTES).ok()?)
}

/// Starts the question in the background if the last one is old.
fn ask_now_and_then() {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.is_asking || asked.at.is_some_and(|at| at.elapsed() < ASK_EVERY) {
        return;
    }
    (asked.is_asking, asked.at) = (true, Some(Instant::now()));
    drop(asked);
    std::thread::spawn(|| {
        let trouble = ask().err();
        let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        (asked.is_asking, asked.at, asked.trouble) = (false, Some(Instant::now()), trouble);
    });
}

/// Asks once; the command itself keeps the list.
fn ask() -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["fleet", "list", "--json"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or("the fleet did not answer");
    Err(text::headline(message, 160))
}
