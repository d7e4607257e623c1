//! `steadfast statusline`: prints one line about the goal of the session that the host names on stdin. It never fails:
//! without a goal, a store or valid input it prints nothing.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use steadfast_app::{liveness, overview};
use steadfast_hosts::adapters;
use steadfast_model::clock::{self, Millis};
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;

use super::stdin;
use crate::output;

pub(crate) fn run(db: Option<&Path>, is_segment: bool) -> ExitCode {
    if let Some(line) = line(db).filter(|line| !line.is_empty()) {
        if is_segment {
            output::segment(&line);
        } else {
            output::line(&line);
        }
    }
    ExitCode::SUCCESS
}

fn line(db: Option<&Path>) -> Option<String> {
    let stdin = stdin::read(1024 * 1024).ok()?;
    let input: Value = serde_json::from_slice(&stdin).ok()?;
    let paths = Paths::find(db).ok()?;
    let mut store = Store::open_existing(&paths.store).ok()?;
    let (session_id, now) = (input["session_id"].as_str()?, clock::now());
    // A line that cannot store what the client says about the plan is printed all the same.
    store_quota(&mut store, session_id, &input, now).unwrap_or_default();
    let db = store.read();
    let goal = db.goal(session_id).ok()??;
    let goal = liveness::by_now(db, &goal, now).ok()?;
    let next = liveness::next(db, &goal, &paths, now).ok()?;
    let line = overview::statusline(&goal, next, now);
    let plan = if line.is_empty() { String::new() } else { overview::plan_segment(db, &goal, now).unwrap_or_default() };
    Some(format!("{line}{plan}"))
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
