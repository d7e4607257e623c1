//! What a run may use: `limits:` in a definition, and flags over it.

use steadfast_model::clock::Millis;
use steadfast_model::goal::budget;
use steadfast_model::run::RunLimits;

use super::Overrides;
use super::fault::Faults;
use super::fields::{Fields, Value};

#[derive(Debug, Clone, Default)]
pub(super) struct LimitsDef {
    tokens: Option<i64>,
    cost_micros: Option<i64>,
    wall_ms: Option<Millis>,
    errors: Option<u32>,
    idle: Option<u32>,
    parallel: Option<u32>,
}

impl LimitsDef {
    pub(super) fn read(fields: &mut Fields<'_>, faults: &mut Faults) -> Self {
        let Some(value) = fields.take(&["limits"], faults).filter(|value| !value.is_off()) else {
            return Self::default();
        };
        let Some(mut limits) = Fields::of(value.node, &value.at, "`limits`", faults) else { return Self::default() };
        let amount = |value: Option<Value<'_>>, read: fn(&str) -> Option<i64>, example: &str, faults: &mut Faults| {
            let value = value.filter(|value| !value.is_off())?;
            let amount = value.text(faults).and_then(|text| read(text.trim()));
            if amount.is_none() {
                faults.error(
                    &value.at,
                    format!("`{}` is no amount", value.key),
                    format!("write for example `{example}`"),
                );
            }
            amount
        };
        let tokens = limits.take(&["tokens"], faults);
        let tokens = amount(tokens, |text| budget::parse_tokens(text).ok(), "tokens: 5M", faults);
        let usd = limits.take(&["usd"], faults);
        let cost_micros = amount(usd, |text| budget::parse_usd(text).ok(), "usd: 20", faults);
        let hours = limits.take(&["hours"], faults);
        let seconds = amount(hours, |text| budget::parse_hours(text).ok(), "hours: 8", faults);
        let def = Self {
            tokens,
            cost_micros,
            wall_ms: seconds.and_then(|seconds| seconds.checked_mul(1_000)),
            errors: limits.whole(&["errors"], 1, faults),
            idle: limits.whole(&["idle"], 0, faults),
            parallel: limits.whole(&["parallel"], 1, faults),
        };
        limits.finish("`limits`", faults);
        def
    }

    pub(super) fn into_limits(self, flags: &Overrides) -> RunLimits {
        let default = RunLimits::default();
        RunLimits {
            tokens: flags.tokens.or(self.tokens),
            cost_micros: flags.cost_micros.or(self.cost_micros),
            wall_ms: flags.wall_ms.or(self.wall_ms),
            errors: flags.errors.or(self.errors).unwrap_or(default.errors),
            idle: flags.idle.or(self.idle).unwrap_or(default.idle),
            parallel: flags.parallel.or(self.parallel).unwrap_or(default.parallel),
            back_off_ms: default.back_off_ms,
        }
    }
}
