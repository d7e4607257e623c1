//! The limits of a run: `limits:` in a definition, and flags that replace them.

use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::RunLimits;
use strum::IntoEnumIterator as _;

use super::Overrides;
use super::keys::{Count, FromYaml, Setting, Value, keys};

keys! {
    LimitsDef {
        tokens: Setting<Amount<TOKENS>>,
        usd: Setting<Amount<USD>>,
        hours: Setting<Amount<HOURS>>,
        errors: Option<Count<1>>,
        idle: Option<Count<0>>,
        parallel: Option<Count<1>>,
    }
}

/// An amount of one axis, as its axis reads it.
#[derive(Debug, Clone)]
pub(super) struct Amount<const AXIS: usize>(i64);

const TOKENS: usize = Axis::Tokens as usize;
const USD: usize = Axis::Usd as usize;
const HOURS: usize = Axis::Hours as usize;

impl<const AXIS: usize> FromYaml for Amount<AXIS> {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        let axis = Axis::iter().nth(AXIS)?;
        value.amount(|text| axis.parse(text, 0).ok(), axis.example()).map(Self)
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
        let mut limits = Limits::default();
        limits.set(Axis::Tokens, self.tokens.on().map(|Amount(tokens)| tokens));
        limits.set(Axis::Usd, self.usd.on().map(|Amount(micros)| micros));
        limits.set(Axis::Hours, self.hours.on().map(|Amount(ms)| ms));
        let mut flag_limits = flags.limits;
        // The turns of a profile limit the iterations of each stage, not the run.
        flag_limits.set(Axis::Turns, None);
        RunLimits {
            limits: flag_limits.or(limits),
            errors: flags.errors.or(self.errors.map(|Count(errors)| errors)).unwrap_or(default.errors),
            idle: flags.idle.or(self.idle.map(|Count(idle)| idle)).unwrap_or(default.idle),
            parallel: flags.parallel.or(self.parallel.map(|Count(agents)| agents)).unwrap_or(default.parallel),
            back_off_ms: default.back_off_ms,
        }
    }
}
