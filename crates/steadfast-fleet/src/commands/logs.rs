//! `fleet logs`: what agents answered. An attempt pushes its files when it ends, so `-f` prints whole answers, one after
//! the other; output that an agent prints meanwhile is only on its worker's machine.

use std::time::Duration;

use serde_json::json;
use steadfast_app::overview::runs::progress::event_line;
use steadfast_model::run::{AttemptId, Record};

use super::{FoundRun, Here};
use crate::cli::FleetLogsArgs;
use crate::output::{self, CommandError, CommandResult, Output, code};
use crate::work::RunDirectory;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// All that a command printed, else the answer, else the file that the agent wrote.
const FILES: [&str; 3] = ["out.log", "answer.md", "output.md"];

pub(super) async fn logs(here: &Here, arguments: &FleetLogsArgs) -> CommandResult {
    let found = here.find_run(&arguments.run).await?;
    if arguments.follow {
        return follow(here, arguments, found).await;
    }
    let records = found.directory.records(0)?;
    let ended: Vec<AttemptId> = records.iter().filter_map(ended).filter(|id| is_wanted(arguments, *id)).collect();
    let Some(id) = ended.last().copied() else {
        let name = &arguments.run.name;
        let hint = format!("`steadfast fleet status {name}` shows where it is; `logs -f {name}` waits");
        return Err(CommandError::new(code::NOT_FOUND, format!("no attempt of {name} has ended there yet"), hint));
    };
    let text = text_of(&found.directory, id)?;
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(arguments.lines)..).unwrap_or_default();
    Output::new(
        last.join("\n"),
        json!({"stage": id.stage, "iteration": id.iteration, "attempt": id.attempt, "text": text}),
    )
}

fn is_wanted(arguments: &FleetLogsArgs, id: AttemptId) -> bool {
    arguments.stage.is_none_or(|stage| stage == id.stage)
        && arguments.iteration.is_none_or(|iteration| iteration == id.iteration)
}

fn ended(record: &Record) -> Option<AttemptId> {
    match record {
        Record::AttemptEnded { id, .. } => Some(*id),
        _ => None,
    }
}

fn text_of(directory: &RunDirectory, id: AttemptId) -> Result<String, CommandError> {
    for name in FILES {
        if let Some(bytes) = directory.file(id, name)? {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(String::new())
}

async fn follow(here: &Here, arguments: &FleetLogsArgs, mut found: FoundRun) -> CommandResult {
    let mut seen = 0;
    loop {
        let (plan, run) = (&found.directory.plan, &found.directory.state.run);
        for record in found.directory.records(seen)? {
            seen += 1;
            if let Some(line) = event_line("steadfast fleet", plan, run, &record) {
                output::note(&line);
            }
            let Some(id) = ended(&record).filter(|id| is_wanted(arguments, *id)) else { continue };
            match output::write_line(&text_of(&found.directory, id)?) {
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Output::default()),
                written => written?,
            }
        }
        if !found.is_live() {
            return Ok(Output::default());
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Output { code: code::INTERRUPTED, ..Output::default() }),
        }
        found = here.find_run(&arguments.run).await?;
    }
}
