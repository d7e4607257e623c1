//! `steadfast statusline`: prints one line about the goal of the session that the host names on stdin. It never fails:
//! without a goal, a store or valid input it prints nothing.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use steadfast_app::{liveness, overview};
use steadfast_model::clock;
use steadfast_store::Store;
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
    let store = Store::open_existing(&paths.store).ok()?;
    let (db, now) = (store.read(), clock::now());
    let goal = db.goal(input["session_id"].as_str()?).ok()??;
    let goal = liveness::by_now(db, &goal, now).ok()?;
    let next = liveness::next(db, &goal, &paths, now).ok()?;
    Some(overview::statusline(&goal, next, now))
}
