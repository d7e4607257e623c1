//! `fleet status`: the page and the JSON of a run, from its run directory, with what its workers do now.

use std::time::Duration;

use steadfast_app::overview::runs::page::status_page;
use steadfast_model::clock;
use steadfast_model::text;

use super::{FoundRun, Here};
use crate::cli::NamedRunArgs;
use crate::client::{Described, Pending};
use crate::output::{self, CommandResult, Output};
use crate::show::ShownRun;

/// Iterations on the page; JSON has all of them.
const ITERATIONS_SHOWN: usize = 15;
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) async fn status(here: &Here, arguments: &NamedRunArgs, watch: bool) -> CommandResult {
    let mut shown = String::new();
    loop {
        let found = here.find_run(arguments).await?;
        let output = show(&found, here.json)?;
        if !watch || !found.is_live() {
            return Ok(output);
        }
        if output.text != shown {
            shown.clone_from(&output.text);
            output::write_line(&format!("{shown}\n"))?;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The page of a run, or its JSON.
pub(super) fn show(found: &FoundRun, json: bool) -> CommandResult {
    let shown = ShownRun::new(&found.directory, &found.repo)?;
    let detail = shown.detail(found.is_live(), (!json).then_some(ITERATIONS_SHOWN))?;
    if json {
        return Output::new("", &detail);
    }
    let mut page = status_page(&detail);
    if let Some((_, described)) = &found.server {
        for line in at_work(described) {
            page.push('\n');
            page.push_str(&line);
        }
    }
    Ok(Output { text: page, ..Output::default() })
}

/// What workers do for a run now.
fn at_work(described: &Described) -> Vec<String> {
    let mut lines: Vec<String> = described.pending.iter().map(pending_line).collect();
    lines.extend(
        described.trouble.iter().map(|trouble| format!("! {trouble}; look at the log of a worker with --drive")),
    );
    lines
}

fn pending_line(pending: &Pending) -> String {
    let failure = pending.failure.as_deref().map(|failure| format!("; last try: {}", text::headline(failure, 100)));
    let failure = failure.unwrap_or_default();
    if pending.worker.is_empty() {
        return format!("  {} {} waits for a worker{failure}", pending.kind, pending.id);
    }
    let since = pending.started_at_ms.map(|at| format!(" since {}", clock::to_local(at))).unwrap_or_default();
    let used = pending.progress.as_ref().map(|progress| format!(", {}", text::tokens(progress.usage.known_tokens())));
    format!("  {} {} on {}{since}{}{failure}", pending.kind, pending.id, pending.worker, used.unwrap_or_default())
}
