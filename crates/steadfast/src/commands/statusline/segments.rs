//! The segments that the user chose. Each asks the store only for what it shows, and a failure of one leaves the others.

use serde_json::Value;
use steadfast_app::liveness;
use steadfast_app::overview::statusline;
use steadfast_hosts::adapters;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Goal;
use steadfast_store::{Db, Store, StoreError};
use steadfast_system::config::Segment;
use steadfast_system::paths::Paths;

use super::store_quota;

const BETWEEN: &str = " · ";

/// What the segments are about.
struct SegmentFacts<'a> {
    paths: &'a Paths,
    input: &'a Value,
    store: Option<&'a Store>,
    session_id: Option<&'a str>,
    goal: Option<Goal>,
    shows_plan: bool,
    now: Millis,
}

pub(super) fn line(paths: &Paths, input: &Value, asked: &[Segment]) -> String {
    // The time is that of the store.
    let mut store = super::open(paths).ok();
    let (session_id, now) = (input["session_id"].as_str(), clock::now());
    if let (Some(store), Some(id)) = (&mut store, session_id) {
        // A line that cannot store what the client says about the plan is printed all the same.
        store_quota(store, id, input, now).unwrap_or_default();
    }
    let needs_goal = asked.iter().any(|segment| matches!(segment, Segment::Goal | Segment::Bar));
    let goal = store.as_ref().zip(session_id).filter(|_| needs_goal).and_then(|(store, id)| {
        let db = store.read();
        let goal = db.goal(id).ok()??;
        liveness::by_now(db, &goal, now).ok().map(std::borrow::Cow::into_owned)
    });
    let shows_plan = asked.contains(&Segment::Plan);
    let facts = SegmentFacts { paths, input, store: store.as_ref(), session_id, goal, shows_plan, now };
    let shown: Vec<String> = asked
        .iter()
        .filter_map(|segment| facts.show(*segment).ok().flatten())
        .filter(|text| !text.is_empty())
        .collect();
    shown.join(BETWEEN)
}

impl SegmentFacts<'_> {
    fn show(&self, segment: Segment) -> Result<Option<String>, StoreError> {
        Ok(match segment {
            Segment::Goal => self.db().zip(self.goal.as_ref()).map(|(db, goal)| self.goal(db, goal)).transpose()?,
            Segment::Bar => self.goal.as_ref().map(|goal| statusline::bar(goal, self.now)),
            Segment::Plan => self.plan()?,
            Segment::Context => {
                adapters().find_map(|adapter| (adapter.statusline_context)(self.input)).map(statusline::context)
            }
            Segment::Today => {
                let limits = &self.paths.config.limits;
                self.db().map(|db| statusline::today(db, limits, self.now)).transpose()?
            }
        })
    }

    fn db(&self) -> Option<Db<'_>> {
        self.store.map(Store::read)
    }

    fn goal(&self, db: Db<'_>, goal: &Goal) -> Result<String, StoreError> {
        let line = statusline::goal(goal, liveness::next(db, goal, self.paths, self.now)?, self.now);
        // The segment of the plan says more.
        let has_plan = !line.is_empty() && !self.shows_plan;
        let plan = if has_plan { statusline::near_plan(db, goal, self.now)? } else { String::new() };
        Ok(format!("{line}{plan}"))
    }

    /// What the client reports with this call, else what it reported last.
    fn plan(&self) -> Result<Option<String>, StoreError> {
        let reported = adapters().map(|adapter| (adapter.statusline_quotas)(self.input, self.now));
        if let Some(quotas) = reported.filter(|quotas| !quotas.is_empty()).last() {
            return Ok(Some(statusline::plan(&quotas, self.now)));
        }
        let (Some(db), Some(id)) = (self.db(), self.session_id) else { return Ok(None) };
        let Some(session) = db.session(id)? else { return Ok(None) };
        Ok(Some(statusline::plan(&db.quotas(session.host)?, self.now)))
    }
}
