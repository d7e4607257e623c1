//! The limits of a run: `limits:` in a definition, and flags that replace them.

use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::RunLimits;

use super::Overrides;
use super::keys::{Setting, Value, count, count_or_zero, keys, text};

keys! {
    LimitsDef {
        tokens: Setting<i64> = tokens("tokens"),
        usd: Setting<i64> = usd("usd"),
        hours: Setting<i64> = hours("hours"),
        errors: Option<u32> = count("errors"),
        idle: Option<u32> = count_or_zero("idle"),
        parallel: Option<u32> = count("parallel"),
    }
}

pub(super) fn limits(value: &Value<'_>) -> Option<LimitsDef> {
    value.table("`limits`")
}

fn tokens(value: &Value<'_>) -> Option<i64> {
    amount(value, Axis::Tokens)
}

fn usd(value: &Value<'_>) -> Option<i64> {
    amount(value, Axis::Usd)
}

fn hours(value: &Value<'_>) -> Option<i64> {
    amount(value, Axis::Hours)
}

/// An amount of an axis; only a deadline would depend on the time.
fn amount(value: &Value<'_>, axis: Axis) -> Option<i64> {
    let amount = text(value).and_then(|text| axis.parse(text.trim(), 0).ok());
    let fix = format!("write for example `{}: {}`", value.key, axis.example());
    amount.or_else(|| value.at.refuse(format!("`{}` is not an amount", value.key), fix))
}

impl LimitsDef {
    pub(super) fn into_limits(self, flags: &Overrides) -> RunLimits {
        let default = RunLimits::default();
        let mut limits = Limits::default();
        limits.set(Axis::Tokens, self.tokens.on());
        limits.set(Axis::Usd, self.usd.on());
        limits.set(Axis::Hours, self.hours.on());
        let mut flag_limits = flags.limits;
        // The turns of a profile limit the iterations of each stage, not the run.
        flag_limits.set(Axis::Turns, None);
        RunLimits {
            limits: flag_limits.or(limits),
            errors: flags.errors.or(self.errors).unwrap_or(default.errors),
            idle: flags.idle.or(self.idle).unwrap_or(default.idle),
            parallel: flags.parallel.or(self.parallel).unwrap_or(default.parallel),
            back_off_ms: default.back_off_ms,
        }
    }
}
