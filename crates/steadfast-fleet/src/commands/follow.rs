//! Follows a run until its end, as a run in the foreground does: a line for each record on stderr, a live line on a
//! terminal, the page at the end. Ctrl-C only detaches.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use steadfast_app::overview::runs::progress::{event_line, live_line};
use steadfast_model::clock;
use steadfast_model::run::Record;
use steadfast_model::text;

use super::{FoundRun, Here, exit_code, status};
use crate::cli::NamedRunArgs;
use crate::output::{self, CommandError, CommandResult, Output, code};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const COMMAND: &str = "steadfast fleet";
const WIDTH: usize = 100;

pub(super) async fn attach(here: &Here, run: &NamedRunArgs) -> CommandResult {
    let found = here.find_run(run).await?;
    if !found.is_live() {
        let (name, status) = (&run.name, found.directory.state.run.status);
        let hint = format!("`steadfast fleet status {name}` or `logs {name}` shows what it did");
        return Err(CommandError::new(code::WRONG_STATE, format!("run {name} is over ({status})"), hint));
    }
    let seen = found.directory.state.seq;
    follow(here, run, seen).await
}

/// Prints records from number `seen` on until the run ends, then its page. Returns the exit code of the run.
pub(super) async fn follow(here: &Here, run: &NamedRunArgs, seen: u64) -> CommandResult {
    let mut screen = FollowScreen::new();
    let followed = tokio::select! {
        followed = until_end(here, run, seen, &mut screen) => followed,
        _ = tokio::signal::ctrl_c() => {
            screen.clear();
            let name = &run.name;
            output::note(&format!("detached; {name} is still running (`steadfast fleet kill {name}` ends it)"));
            return Ok(Output { code: code::INTERRUPTED, ..Output::default() });
        }
    };
    screen.clear();
    let found = followed?;
    let code = exit_code(&found.directory.plan, &found.directory.state.run);
    Ok(Output { code, ..status::show(&found, here.json)? })
}

async fn until_end(
    here: &Here,
    run: &NamedRunArgs,
    mut seen: u64,
    screen: &mut FollowScreen,
) -> Result<FoundRun, CommandError> {
    loop {
        let found = match here.find_run(run).await {
            Ok(found) => found,
            // The first records of a new run, or a server that is down for a moment.
            Err(error) if error.code == code::ENVIRONMENT && screen.patience() => {
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        screen.failures = 0;
        let (plan, state) = (&found.directory.plan, &found.directory.state);
        let records: Vec<Record> = found.directory.records(seen)?;
        seen += u64::try_from(records.len()).unwrap_or(0);
        for line in records.iter().filter_map(|record| event_line(COMMAND, plan, &state.run, record)) {
            screen.line(&line);
        }
        // The end is pushed before the workflow ends.
        if !found.is_live() && found.server.is_some() {
            return Ok(found);
        }
        screen.draw(&live_line(plan, &state.run, clock::now()));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The live line below the others.
struct FollowScreen {
    on_terminal: bool,
    is_drawn: bool,
    failures: u32,
}

impl FollowScreen {
    fn new() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), is_drawn: false, failures: 0 }
    }

    /// Whether one more failure in a row is no reason to give up.
    fn patience(&mut self) -> bool {
        self.failures += 1;
        self.failures < 120
    }

    fn line(&mut self, line: &str) {
        self.clear();
        output::note(line);
    }

    fn draw(&mut self, line: &str) {
        if self.on_terminal {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K{}", text::cut(line, WIDTH));
            self.is_drawn = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
