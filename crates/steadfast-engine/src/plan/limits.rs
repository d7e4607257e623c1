//! The limits of a run: `limits:` in a definition, and flags that replace them.

use steadfast_model::clock::Millis;
use steadfast_model::goal::budget;
use steadfast_model::run::RunLimits;

use super::Overrides;
use super::keys::{Count, FromYaml, Setting, Value, keys};

keys! {
    LimitsDef {
        tokens: Setting<Tokens>,
        cost: Setting<Cost> = "usd",
        wall: Setting<Wall> = "hours",
        errors: Option<Count<1>>,
        idle: Option<Count<0>>,
        parallel: Option<Count<1>>,
    }
}

#[derive(Debug, Clone)]
pub(super) struct Tokens(i64);

/// In micro-dollars.
#[derive(Debug, Clone)]
pub(super) struct Cost(i64);

#[derive(Debug, Clone)]
pub(super) struct Wall(Millis);

impl FromYaml for Tokens {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        value.amount(|text| budget::parse_tokens(text).ok(), "5M").map(Self)
    }
}

impl FromYaml for Cost {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        value.amount(|text| budget::parse_usd(text).ok(), "20").map(Self)
    }
}

impl FromYaml for Wall {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        value.amount(|text| budget::parse_hours(text).ok()?.checked_mul(1_000), "8").map(Self)
    }
}

impl FromYaml for LimitsDef {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        value.table("`limits`")
    }
}

impl LimitsDef {
    pub(super) fn into_limits(self, flags: &Overrides) -> RunLimits {
        let default = RunLimits::default();
        RunLimits {
            tokens: flags.tokens.or(self.tokens.on().map(|Tokens(tokens)| tokens)),
            cost_micros: flags.cost_micros.or(self.cost.on().map(|Cost(micros)| micros)),
            wall_ms: flags.wall_ms.or(self.wall.on().map(|Wall(ms)| ms)),
            errors: flags.errors.or(self.errors.map(|Count(errors)| errors)).unwrap_or(default.errors),
            idle: flags.idle.or(self.idle.map(|Count(idle)| idle)).unwrap_or(default.idle),
            parallel: flags.parallel.or(self.parallel.map(|Count(agents)| agents)).unwrap_or(default.parallel),
            back_off_ms: default.back_off_ms,
        }
    }
}
