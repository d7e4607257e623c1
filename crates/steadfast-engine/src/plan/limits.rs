//! The limits of a run: `limits:` in a definition, and flags that replace them.

use steadfast_core::goal::budget;
use steadfast_core::run::RunLimits;

use super::Overrides;
use super::keys::{Setting, Value, count, count_or_zero, keys, text};

keys! {
    LimitsDef {
        tokens: Setting<i64> = tokens("tokens"),
        cost_micros: Setting<i64> = usd("usd"),
        wall_ms: Setting<i64> = hours("hours"),
        errors: Option<u32> = count("errors"),
        idle: Option<u32> = count_or_zero("idle"),
        parallel: Option<u32> = count("parallel"),
    }
}

pub(super) fn limits(value: &Value<'_>) -> Option<LimitsDef> {
    value.table("`limits`")
}

fn tokens(value: &Value<'_>) -> Option<i64> {
    amount(value, |text| budget::parse_tokens(text).ok(), "5M")
}

fn usd(value: &Value<'_>) -> Option<i64> {
    amount(value, |text| budget::parse_usd(text).ok(), "20")
}

fn hours(value: &Value<'_>) -> Option<i64> {
    amount(value, |text| budget::parse_hours(text).ok()?.checked_mul(1_000), "8")
}

fn amount(value: &Value<'_>, parse: impl FnOnce(&str) -> Option<i64>, example: &str) -> Option<i64> {
    let amount = text(value).and_then(|text| parse(text.trim()));
    let fix = format!("write for example `{}: {example}`", value.key);
    amount.or_else(|| value.at.refuse(format!("`{}` is not an amount", value.key), fix))
}

impl LimitsDef {
    pub(super) fn into_limits(self, flags: &Overrides) -> RunLimits {
        let default = RunLimits::default();
        RunLimits {
            tokens: flags.tokens.or(self.tokens.on()),
            cost_micros: flags.cost_micros.or(self.cost_micros.on()),
            wall_ms: flags.wall_ms.or(self.wall_ms.on()),
            errors: flags.errors.or(self.errors).unwrap_or(default.errors),
            idle: flags.idle.or(self.idle).unwrap_or(default.idle),
            parallel: flags.parallel.or(self.parallel).unwrap_or(default.parallel),
            back_off_ms: default.back_off_ms,
        }
    }
}
