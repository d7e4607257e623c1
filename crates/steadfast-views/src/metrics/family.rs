//! The list of all metrics, and the values of one. `docs/metrics.md` has the same list; a test compares them.

use serde_json::{Map, Value, json};
use steadfast_model::clock::Millis;
use strum::{Display, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum MetricKind {
    /// Only grows.
    Counter,
    Gauge,
}

/// What is true of a metric whatever its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    /// As OpenTelemetry writes it.
    pub unit: &'static str,
    pub labels: &'static [&'static str],
}

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// In the order of the labels of its [`Spec`].
    pub values: Vec<String>,
    pub value: f64,
    /// Since when a counter counts.
    pub since_ms: Option<Millis>,
}

/// A metric with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    pub spec: Spec,
    pub samples: Vec<Sample>,
}

impl Spec {
    const fn counter(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: MetricKind::Counter, help, unit, labels }
    }

    const fn gauge(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: MetricKind::Gauge, help, unit, labels }
    }
}

const GOAL: &[&str] = &["goal_id", "host", "project"];
const RUN: &[&str] = &["run_id", "kind", "name", "project"];
const MODEL: &[&str] = &["host", "model"];

macro_rules! metrics {
    ($($constant:ident = $spec:expr;)*) => {
        $(pub(super) const $constant: Spec = $spec;)*
        /// All metrics, in the order in which they are written.
        pub const METRICS: &[Spec] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO = Spec::gauge("steadfast_build_info", "1", &["version"], "Version of the program; always 1.");
    GOALS = Spec::gauge("steadfast_goals", "{goal}", &["status", "host"], "Goals in the store.");
    GOALS_LEFT_OUT = Spec::gauge("steadfast_goals_left_out", "{goal}", &[],
        "Live goals without series of their own, because there are too many.");
    GOAL_TOKENS = Spec::counter("steadfast_goal_tokens_total", "{token}", &["goal_id", "host", "project", "agent"],
        "Tokens that a live goal was charged for, by kind of agent.");
    GOAL_COST = Spec::counter("steadfast_goal_cost_usd_total", "USD", GOAL,
        "Cost of a live goal in US dollars; absent while a part of it is unknown.");
    GOAL_TURNS = Spec::counter("steadfast_goal_turns_total", "{turn}", GOAL, "Continuations of a live goal.");
    GOAL_ACTIVE = Spec::counter("steadfast_goal_active_seconds_total", "s", GOAL,
        "Time in which turns of a live goal ran.");
    GOAL_LIMIT = Spec::gauge("steadfast_goal_limit_used_ratio", "1", &["goal_id", "host", "project", "limit"],
        "Used part of each limit of a live goal; 1 is all of it.");
    TOKENS = Spec::counter("steadfast_tokens_total", "{token}", &["host", "model", "type"],
        "Tokens of all sessions and runs that Steadfast has seen.");
    COST = Spec::counter("steadfast_cost_usd_total", "USD", MODEL, "Cost of the tokens with a known price in US dollars.");
    UNPRICED = Spec::counter("steadfast_unpriced_tokens_total", "{token}", MODEL, "Tokens without a known price.");
    RESPONSES = Spec::counter("steadfast_responses_total", "{response}", MODEL,
        "Responses of models; of runs, attempts of agents.");
    TODAY_TOKENS = Spec::gauge("steadfast_today_tokens", "{token}", &[], "Charged tokens on this machine since midnight.");
    TODAY_COST = Spec::gauge("steadfast_today_cost_usd", "USD", &[],
        "Cost on this machine since midnight in US dollars; absent while a part of it is unknown.");
    CAP_LIMIT_USD = Spec::gauge("steadfast_cap_limit_usd", "USD", &["cap"], "Caps on money in the configuration.");
    CAP_LIMIT_TOKENS = Spec::gauge("steadfast_cap_limit_tokens", "{token}", &["cap"],
        "Caps on tokens in the configuration.");
    CAP_USED = Spec::gauge("steadfast_cap_used_ratio", "1", &["cap"], "Used part of each cap over the machine.");
    PLAN_USED = Spec::gauge("steadfast_plan_used_ratio", "1", &["host", "window"],
        "Used part of the plan's quota, as the agent last reported it.");
    PLAN_RESET = Spec::gauge("steadfast_plan_reset_timestamp_seconds", "s", &["host", "window"],
        "When the window of the plan is reset, in seconds since 1970.");
    RUNS = Spec::gauge("steadfast_runs", "{run}", &["status", "kind"], "Loops and pipelines in the store.");
    RUNS_LEFT_OUT = Spec::gauge("steadfast_runs_left_out", "{run}", &[],
        "Running runs without series of their own, because there are too many.");
    RUN_ITERATIONS = Spec::counter("steadfast_run_iterations_total", "{iteration}", RUN,
        "Committed iterations of a running run.");
    RUN_TOKENS = Spec::counter("steadfast_run_tokens_total", "{token}", RUN, "Charged tokens of a running run.");
    RUN_COST = Spec::counter("steadfast_run_cost_usd_total", "USD", RUN,
        "Cost of a running run in US dollars; absent while a part of it is unknown.");
    NEEDS_YOU = Spec::gauge("steadfast_needs_you", "1", &["reason"], "Goals and runs that need the user.");
    WAITING = Spec::gauge("steadfast_waiting", "1", &[], "Goals, runs and appointments that wait for a known moment.");
    HOOK_FAILURES = Spec::gauge("steadfast_hook_failures", "{failure}", &[],
        "Failures in the log of hooks in the last 24 hours.");
    STORE_SIZE = Spec::gauge("steadfast_store_size_bytes", "By", &[], "Size of the store with its write-ahead log.");
}

impl Family {
    pub(super) fn of(spec: Spec) -> Self {
        Self { spec, samples: Vec::new() }
    }

    /// As `steadfast metrics --json` prints it.
    pub fn json(&self) -> Value {
        let Spec { name, kind, help, unit, labels } = self.spec;
        let sample = |sample: &Sample| {
            let pairs = labels.iter().zip(&sample.values).map(|(label, value)| ((*label).to_owned(), json!(value)));
            json!({"labels": pairs.collect::<Map<_, _>>(), "value": sample.value})
        };
        let samples: Vec<Value> = self.samples.iter().map(sample).collect();
        json!({"name": name, "type": <&str>::from(kind), "help": help, "unit": unit, "samples": samples})
    }
}
