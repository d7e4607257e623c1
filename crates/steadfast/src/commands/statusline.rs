//! `steadfast statusline`: prints one line about the session that the host names on stdin: its goal, or the segments that
//! the user chose. It never fails: without a goal, a store or valid input it prints less, or nothing.

mod segments;
mod wrap;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use steadfast_app::liveness;
use steadfast_app::overview::statusline;
use steadfast_hosts::adapters;
use steadfast_model::clock::{self, Millis};
use steadfast_store::{Store, StoreError};
use steadfast_system::config::Segment;
use steadfast_system::paths::Paths;

use self::wrap::Wrapped;
use super::stdin;
use crate::cli::StatuslineArgs;
use crate::output;

/// How long a line waits for other processes in all.
const PATIENCE: Duration = Duration::from_secs(1);
const LONGEST_INPUT: usize = 1024 * 1024;

pub(crate) fn run(db: Option<&Path>, arguments: &StatuslineArgs) -> ExitCode {
    let Ok(input) = stdin::read(LONGEST_INPUT) else { return ExitCode::SUCCESS };
    // The user's own command works while we do.
    let wrapped = arguments.wrap.as_deref().map(|command| Wrapped::start(command, &input));
    let line = line(db, &input, &arguments.segments).unwrap_or_default();
    match wrapped {
        Some(wrapped) => wrapped.print_before(&line),
        None if line.is_empty() => {}
        None if arguments.segment => output::segment(&line),
        None => output::line(&line),
    }
    ExitCode::SUCCESS
}

fn line(db: Option<&Path>, input: &[u8], asked: &[Segment]) -> Option<String> {
    let input: Value = serde_json::from_slice(input).ok()?;
    let paths = Paths::find(db).ok()?;
    let asked = if asked.is_empty() { &paths.config.statusline.segments } else { asked };
    if !asked.is_empty() {
        return Some(segments::line(&paths, &input, asked));
    }
    let mut store = open(&paths).ok()?;
    let (session_id, now) = (input["session_id"].as_str()?, clock::now());
    // A line that cannot store what the client says about the plan is printed all the same.
    store_quota(&mut store, session_id, &input, now).unwrap_or_default();
    let db = store.read();
    let goal = db.goal(session_id).ok()??;
    let goal = liveness::by_now(db, &goal, now).ok()?;
    let next = liveness::next(db, &goal, &paths, now).ok()?;
    let line = statusline::goal(&goal, next, now);
    let plan = if line.is_empty() { String::new() } else { statusline::near_plan(db, &goal, now).unwrap_or_default() };
    Some(format!("{line}{plan}"))
}

/// The client shows the line of the next call if this one takes long, so it neither waits long nor migrates.
fn open(paths: &Paths) -> Result<Store, StoreError> {
    Store::open_migrated_within(&paths.store, PATIENCE)
}

/// Stores what the client says about the user's plan, if that is new. The client calls this several times a second.
fn store_quota(store: &mut Store, session_id: &str, input: &Value, now: Millis) -> Result<(), StoreError> {
    for adapter in adapters() {
        let reported = (adapter.statusline_quotas)(input, now);
        let news = store.read().news_of_quota(adapter.host, &reported)?;
        let is_of_host =
            || Ok::<_, StoreError>(store.read().session(session_id)?.is_some_and(|it| it.host == adapter.host));
        if !news.is_empty() && is_of_host()? {
            store.write(|db| news.iter().try_for_each(|quota| db.put_quota(adapter.host, quota)))?;
        }
    }
    Ok(())
}
