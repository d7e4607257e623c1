//! From the store to the values of all metrics.

use std::path::Path;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use steadfast_app::liveness;
use steadfast_app::overview::now::NeedKind;
use steadfast_model::clock::{self, DAY, Millis};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::price::dollars;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_model::text;
use steadfast_store::{Db, RunFilter, RunLine, StatusCount, StoreError, UsageTotal};
use steadfast_system::bounded;
use steadfast_system::paths::Paths;
use strum::IntoEnumIterator as _;

use super::family::{self, Family, METRICS, Sample, Spec};
use crate::facts;

/// Goals and runs with series of their own.
const LIVE_SHOWN: usize = 100;
/// Pairs of host and model with series of their own; those that came later share one for each host.
const MODELS_SHOWN: usize = 100;
const OTHER_MODELS: &str = "other";
/// The model of agents of runs, and of responses that name none.
const NO_MODEL: &str = "unknown";
/// Characters of a label.
const LONGEST_LABEL: usize = 80;
/// What the log of hooks has besides failures, as `steadfast doctor` knows it.
const LOG_NOTE: &str = "note: ";

const NEEDS: [NeedKind; 8] = [
    NeedKind::Blocked,
    NeedKind::SignOff,
    NeedKind::Approval,
    NeedKind::Stalled,
    NeedKind::Limit,
    NeedKind::Refused,
    NeedKind::Paused,
    NeedKind::EngineGone,
];
const RUN_STATUSES: [RunStatus; 5] =
    [RunStatus::Running, RunStatus::Completed, RunStatus::Failed, RunStatus::Killed, RunStatus::UnknownTermination];
/// The status of a goal that another one replaced before its end.
const REPLACED: &str = "replaced";

/// The families while they are filled.
struct MetricCollector {
    families: Vec<Family>,
}

impl MetricCollector {
    fn add(&mut self, spec: Spec, labels: &[&str], value: f64) {
        self.add_since(spec, labels, value, None);
    }

    fn add_since(&mut self, spec: Spec, labels: &[&str], value: f64, since_ms: Option<Millis>) {
        let values = labels.iter().map(|label| text::headline(label, LONGEST_LABEL)).collect();
        if let Some(family) = self.families.iter_mut().find(|family| family.spec == spec) {
            family.samples.push(Sample { values, value, since_ms });
        }
    }
}

/// All metrics as of now, each family in its place, also those without a value.
pub fn collect(db: Db<'_>, paths: &Paths, now: Millis) -> Result<Vec<Family>, StoreError> {
    let mut all = MetricCollector { families: METRICS.iter().copied().map(Family::of).collect() };
    all.add(family::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
    goals(&mut all, db, now)?;
    totals(&mut all, db)?;
    spending(&mut all, db, paths, now)?;
    runs(&mut all, db)?;
    let page = facts::now(db, paths, now)?;
    for cap in &page.header.caps {
        all.add(family::CAP_USED, &[&cap.name], number(cap.percent) / 100.0);
    }
    for kind in NEEDS {
        let count = page.needs.iter().filter(|need| need.kind == kind).count();
        all.add(family::NEEDS_YOU, &[kind.into()], whole(count));
    }
    all.add(family::WAITING, &[], whole(page.waiting.len()));
    all.add(family::HOOK_FAILURES, &[], whole(hook_failures(paths, now)));
    all.add(family::STORE_SIZE, &[], store_bytes(&paths.store));
    Ok(all.families)
}

fn goals(all: &mut MetricCollector, db: Db<'_>, now: Millis) -> Result<(), StoreError> {
    let counts = db.goals_by_status()?;
    for host in Host::ALL {
        for status in GoalStatus::iter().map(<&str>::from).chain([REPLACED]) {
            all.add(family::GOALS, &[status, host.name()], counted(&counts, host.name(), status));
        }
    }
    let live = db.oldest_live_goals()?;
    all.add(family::GOALS_LEFT_OUT, &[], whole(live.len().saturating_sub(LIVE_SHOWN)));
    for at in live.iter().take(LIVE_SHOWN) {
        // It may have ended since.
        let Some(goal) = db.goal_at_row(at)?.filter(|goal| goal.status.is_live()) else { continue };
        live_goal(all, liveness::by_now(db, &goal, now)?.as_ref(), now);
    }
    Ok(())
}

fn live_goal(all: &mut MetricCollector, goal: &Goal, now: Millis) {
    let project = base_name(goal.project_dir.as_deref().unwrap_or_default());
    let labels = [goal.goal_id.as_str(), goal.host.name(), &project];
    let since = Some(goal.created_at_ms);
    let [id, host, project] = labels;
    for (agent, tokens) in [("worker", goal.tokens_used), ("subagent", goal.subagent_tokens)] {
        all.add_since(family::GOAL_TOKENS, &[id, host, project, agent], number(tokens), since);
    }
    if goal.unpriced_tokens == 0 {
        all.add_since(family::GOAL_COST, &labels, dollars(goal.cost_micros), since);
    }
    all.add_since(family::GOAL_TURNS, &labels, number(goal.continuations_used), since);
    all.add_since(family::GOAL_ACTIVE, &labels, number(goal.active_seconds(now)), since);
    for standing in goal.limits.standings(&goal.used(now)) {
        if standing.most > 0 {
            let ratio = number(standing.used.max(0)) / number(standing.most);
            all.add(family::GOAL_LIMIT, &[id, host, project, standing.axis.into()], ratio);
        }
    }
}

/// What each model used. Models beyond the bound share a series; the order by first use keeps a model in its place.
fn totals(all: &mut MetricCollector, db: Db<'_>) -> Result<(), StoreError> {
    let mut shown: Vec<UsageTotal> = Vec::new();
    for mut total in db.usage_totals()? {
        total.model = match text::headline(&total.model, LONGEST_LABEL) {
            model if model.is_empty() => NO_MODEL.to_owned(),
            model => model,
        };
        if shown.len() >= MODELS_SHOWN {
            OTHER_MODELS.clone_into(&mut total.model);
        }
        // Two long names may have the same beginning.
        match shown.iter_mut().find(|known| known.host == total.host && known.model == total.model) {
            Some(known) => {
                known.responses += total.responses;
                known.tokens += total.tokens;
                known.cost_micros += total.cost_micros;
                known.unpriced_tokens += total.unpriced_tokens;
            }
            None => shown.push(total),
        }
    }
    for total in shown {
        let (labels, since) = ([total.host.as_str(), total.model.as_str()], midnight(&total.first_day));
        let tokens = total.tokens;
        for (kind, count) in [
            ("input", tokens.input),
            ("output", tokens.output),
            ("cache_creation", tokens.cache_creation),
            ("cache_read", tokens.cache_read),
        ] {
            all.add_since(family::TOKENS, &[labels[0], labels[1], kind], number(count), since);
        }
        all.add_since(family::COST, &labels, dollars(total.cost_micros), since);
        all.add_since(family::UNPRICED, &labels, number(total.unpriced_tokens), since);
        all.add_since(family::RESPONSES, &labels, number(total.responses), since);
    }
    Ok(())
}

/// Today, the caps of the configuration, and the plan.
fn spending(all: &mut MetricCollector, db: Db<'_>, paths: &Paths, now: Millis) -> Result<(), StoreError> {
    let midnight = clock::day_start(now);
    let today = db.spent_since(midnight)?;
    all.add(family::TODAY_TOKENS, &[], number(today.tokens));
    if !db.has_unknown_cost_since(midnight)? {
        all.add(family::TODAY_COST, &[], dollars(today.cost_micros));
    }
    for cap in &paths.config.limits.caps {
        match cap.axis {
            Axis::Usd => all.add(family::CAP_LIMIT_USD, &[&cap.name()], dollars(cap.most)),
            _ => all.add(family::CAP_LIMIT_TOKENS, &[&cap.name()], number(cap.most)),
        }
    }
    for host in Host::ALL {
        for quota in db.quotas(*host)?.iter().filter(|quota| quota.holds(now)) {
            let labels = [host.name(), quota.window.into()];
            all.add(family::PLAN_USED, &labels, number(quota.used_percent) / 100.0);
            if let Some(reset) = quota.resets_at_ms {
                all.add(family::PLAN_RESET, &labels, number(clock::to_wall(reset) / 1_000));
            }
        }
    }
    Ok(())
}

fn runs(all: &mut MetricCollector, db: Db<'_>) -> Result<(), StoreError> {
    let counts = db.runs_by_status()?;
    for kind in [RunKind::Loop, RunKind::Pipeline].map(<&str>::from) {
        for status in RUN_STATUSES.map(<&str>::from) {
            all.add(family::RUNS, &[status, kind], counted(&counts, kind, status));
        }
    }
    let is_running = |count: &&StatusCount| count.status == <&str>::from(RunStatus::Running);
    let running: i64 = counts.iter().filter(is_running).map(|count| count.count).sum();
    let live = db.runs(RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() }, LIVE_SHOWN)?;
    all.add(family::RUNS_LEFT_OUT, &[], number(running) - whole(live.len()));
    live.iter().try_for_each(|run| live_run(all, db, run))
}

fn live_run(all: &mut MetricCollector, db: Db<'_>, run: &RunLine) -> Result<(), StoreError> {
    let project = base_name(&run.project_dir);
    let labels = [run.run_id.as_str(), run.kind.into(), &run.name, &project];
    let since = Some(run.started_at_ms);
    all.add_since(family::RUN_ITERATIONS, &labels, number(db.committed_iterations(&run.run_id)?), since);
    if !run.tokens_unknown {
        all.add_since(family::RUN_TOKENS, &labels, number(run.tokens), since);
    }
    if !run.cost_unknown {
        all.add_since(family::RUN_COST, &labels, dollars(run.cost_micros), since);
    }
    Ok(())
}

fn counted(counts: &[StatusCount], sort: &str, status: &str) -> f64 {
    counts.iter().find(|count| count.sort == sort && count.status == status).map_or(0.0, |count| number(count.count))
}

/// The last part of a directory's path: the rest may name people and customers.
pub(super) fn base_name(directory: &str) -> String {
    Path::new(directory).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The moment at which a day began here.
fn midnight(day: &str) -> Option<Millis> {
    let day: Date = day.parse().ok()?;
    Some(clock::from_zoned(&day.to_zoned(TimeZone::system()).ok()?))
}

fn hook_failures(paths: &Paths, now: Millis) -> usize {
    let log = bounded::text(&paths.log_file(), 1024 * 1024).unwrap_or_default();
    let day_ago = clock::to_rfc3339(now - DAY);
    let is_recent_failure = |line: &&str| {
        let (at, message) = line.split_at_checked(day_ago.len()).unwrap_or_default();
        at > day_ago.as_str() && !message.trim_start().starts_with(LOG_NOTE)
    };
    log.lines().filter(is_recent_failure).count()
}

fn store_bytes(store: &Path) -> f64 {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    let bytes = |path: &Path| fs_err::metadata(path).map_or(0, |meta| meta.len());
    number(i64::try_from(bytes(store).saturating_add(bytes(Path::new(&log)))).unwrap_or(i64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53, and metrics are floating-point numbers")]
fn number(count: i64) -> f64 {
    count as f64
}

fn whole(count: usize) -> f64 {
    number(i64::try_from(count).unwrap_or(i64::MAX))
}
