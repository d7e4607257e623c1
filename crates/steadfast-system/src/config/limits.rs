//! `[limits]`: caps over everything on the machine, over one session, and over one model. Unlike in other sections, an
//! unknown key is an error: a mistyped cap must not hold nothing.

use steadfast_model::limit::{Axis, Cap, CapScope, Period};
use strum::IntoEnumIterator as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::did_you_mean;

pub(super) const SECTION: &str = "limits";
const MODELS: &str = "models";
const ENFORCE_SESSIONS: &str = "enforce_sessions";
const PLAN_PERCENT: &str = "plan_percent";
/// What can be summed.
const SUMMED: [Axis; 2] = [Axis::Tokens, Axis::Usd];
/// So far from `limits`, a word is taken for another section.
const MISTYPED: usize = 2;

/// The section `[limits]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitsConfig {
    pub caps: Vec<Cap>,
    /// Whether a cap that is reached stops tool calls of sessions without a goal.
    pub enforce_sessions: bool,
    /// How much of the plan's fuller window goals may use.
    pub plan_percent: Option<i64>,
}

/// What is wrong, and where in the file.
#[derive(Debug)]
pub(super) struct LimitFault {
    pub(super) at: usize,
    pub(super) message: String,
}

/// Reads the section from a file that is known to be TOML.
pub(super) fn read(text: &str, sections: &[&str]) -> Result<LimitsConfig, LimitFault> {
    let (file, _) = DeTable::parse_recoverable(text);
    let mut limits = LimitsConfig::default();
    for (key, value) in file.get_ref() {
        let name: &str = key.get_ref();
        let is_mistyped = || strsim::osa_distance(&name.to_lowercase(), SECTION) <= MISTYPED;
        if name == SECTION {
            section(table(key.span().start, name, value)?, &mut limits)?;
        } else if !sections.contains(&name) && is_mistyped() {
            return Err(unknown(key.span().start, name, &[SECTION.to_owned()]));
        }
    }
    Ok(limits)
}

/// Whether a key is one of this section.
pub(super) fn is_key(name: &str) -> bool {
    [ENFORCE_SESSIONS, PLAN_PERCENT].contains(&name) || known().iter().any(|cap| key_of(cap) == name)
}

/// The caps of the section itself, without amounts.
fn known() -> Vec<Cap> {
    let scopes = [CapScope::Machine(Period::Daily), CapScope::Machine(Period::Weekly), CapScope::Session];
    scopes.iter().flat_map(amounts).collect()
}

/// Every key of the section, with those of one model.
#[cfg(test)]
pub(super) fn every() -> Vec<String> {
    let of_machine = known().into_iter().map(|cap| key_of(&cap));
    let of_model = Period::iter().flat_map(|period| amounts(&CapScope::Model("claude-opus".into(), period)));
    let of_model = of_model.map(|cap| format!("{MODELS}.claude-opus.{}", key_of(&cap)));
    let others = [ENFORCE_SESSIONS, PLAN_PERCENT].map(str::to_owned);
    of_machine.chain(of_model).chain(others).map(|key| format!("{SECTION}.{key}")).collect()
}

fn section(keys: &DeTable<'_>, limits: &mut LimitsConfig) -> Result<(), LimitFault> {
    let known = known();
    for (key, value) in keys {
        let (name, at): (&str, usize) = (key.get_ref(), key.span().start);
        match name {
            ENFORCE_SESSIONS => {
                let is_on = value.get_ref().as_bool();
                limits.enforce_sessions = is_on.ok_or_else(|| wrong(at, name, "true or false"))?;
            }
            PLAN_PERCENT => {
                let percent = whole(value.get_ref()).filter(|percent| (1..=100).contains(percent));
                limits.plan_percent = Some(percent.ok_or_else(|| wrong(at, name, "a number from 1 to 100"))?);
            }
            MODELS => models(table(at, name, value)?, limits)?,
            _ => {
                let others = [ENFORCE_SESSIONS, PLAN_PERCENT, MODELS].map(str::to_owned);
                limits.caps.push(cap(&known, name, at, value, &others)?);
            }
        }
    }
    Ok(())
}

/// `[limits.models."NAME"]`
fn models(models: &DeTable<'_>, limits: &mut LimitsConfig) -> Result<(), LimitFault> {
    for (model, keys) in models {
        let name: &str = model.get_ref();
        if name.trim().is_empty() {
            return Err(wrong(model.span().start, MODELS, "the name of a model, or the beginning of one"));
        }
        let known: Vec<Cap> =
            Period::iter().flat_map(|period| amounts(&CapScope::Model(name.into(), period))).collect();
        for (key, value) in table(model.span().start, name, keys)? {
            let (name, at): (&str, usize) = (key.get_ref(), key.span().start);
            limits.caps.push(cap(&known, name, at, value, &[])?);
        }
    }
    Ok(())
}

/// The caps that a scope can have, without amounts.
fn amounts(scope: &CapScope) -> Vec<Cap> {
    SUMMED.iter().map(|axis| Cap { scope: scope.clone(), axis: *axis, most: 0 }).collect()
}

/// The key of a cap in its own section, which is the last part of its name.
fn key_of(cap: &Cap) -> String {
    cap.name().rsplit('.').next().unwrap_or_default().to_owned()
}

fn cap(
    known: &[Cap],
    name: &str,
    at: usize,
    value: &Spanned<DeValue<'_>>,
    others: &[String],
) -> Result<Cap, LimitFault> {
    let Some(cap) = known.iter().find(|cap| key_of(cap) == name) else {
        let keys: Vec<String> = known.iter().map(key_of).chain(others.iter().cloned()).collect();
        return Err(unknown(at, name, &keys));
    };
    let amount = match cap.axis {
        Axis::Usd => dollars(value.get_ref()),
        _ => whole(value.get_ref()),
    };
    let most = amount.filter(|amount| *amount > 0).ok_or_else(|| wrong(at, name, "a number above 0"))?;
    Ok(Cap { most, ..cap.clone() })
}

fn table<'a, 'i>(at: usize, name: &str, value: &'a Spanned<DeValue<'i>>) -> Result<&'a DeTable<'i>, LimitFault> {
    value.get_ref().as_table().ok_or_else(|| wrong(at, name, "a table"))
}

fn whole(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Money is written in dollars and counted in millionths.
fn dollars(value: &DeValue<'_>) -> Option<i64> {
    match value {
        DeValue::Float(number) => {
            let micros = number.as_str().parse::<f64>().ok()? * 1_000_000.0;
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (1.0..9e18).contains(&micros).then_some(micros as i64)
        }
        _ => whole(value)?.checked_mul(1_000_000),
    }
}

fn wrong(at: usize, key: &str, needs: &str) -> LimitFault {
    LimitFault { at, message: format!("`{key}` needs {needs}") }
}

fn unknown(at: usize, key: &str, known: &[String]) -> LimitFault {
    LimitFault { at, message: format!("unknown key `{key}`{}", did_you_mean(key, known)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_section(text: &str) -> Result<LimitsConfig, LimitFault> {
        read(text, &["goal", "limits", "memory"])
    }

    #[test]
    fn caps_are_read_with_their_scope_and_unit() {
        let text = "[limits]\ndaily_tokens = 50_000\nweekly_usd = 2.5\nsession_usd = 3\nenforce_sessions = true\n\
            plan_percent = 90\n[limits.models.\"claude-opus\"]\ndaily_tokens = 0x10\n";
        let limits = read_section(text).unwrap();
        let mut caps: Vec<(String, i64)> = limits.caps.iter().map(|cap| (cap.name(), cap.most)).collect();
        caps.sort();
        let expected = [
            ("daily_tokens", 50_000),
            ("models.\"claude-opus\".daily_tokens", 16),
            ("session_usd", 3_000_000),
            ("weekly_usd", 2_500_000),
        ];
        assert_eq!(caps, expected.map(|(name, most)| (name.to_owned(), most)));
        assert_eq!((limits.enforce_sessions, limits.plan_percent), (true, Some(90)));
        assert_eq!(read_section("[goal]\nx = 1\n").unwrap(), LimitsConfig::default());
    }

    #[test]
    fn what_cannot_be_a_cap_is_refused_with_its_place_and_the_nearest_key() {
        for (text, message, at) in [
            ("[limits]\ndayly_tokens = 1", "unknown key `dayly_tokens`; did you mean `daily_tokens`?", 9),
            ("[limits]\nhourly_tokens = 1", "unknown key `hourly_tokens`; did you mean", 9),
            ("[limits]\ndaily_dollars = 1.0", "unknown key `daily_dollars`", 9),
            ("[limits]\nenforce_session = true", "did you mean `enforce_sessions`?", 9),
            ("[limit]\nweekly_usd = 1.0", "unknown key `limit`; did you mean `limits`?", 1),
            ("[Limits]\nweekly_usd = 1.0", "unknown key `Limits`; did you mean `limits`?", 1),
            ("limits = 7", "`limits` needs a table", 0),
            ("[limits]\ndaily_tokens = 0", "`daily_tokens` needs a number above 0", 9),
            ("[limits]\ndaily_usd = -1", "`daily_usd` needs a number above 0", 9),
            ("[limits]\ndaily_usd = inf", "`daily_usd` needs a number above 0", 9),
            ("[limits]\ndaily_usd = 0.0000001", "`daily_usd` needs a number above 0", 9),
            ("[limits]\ndaily_tokens = 1.5", "`daily_tokens` needs a number above 0", 9),
            ("[limits]\ndaily_tokens = \"50k\"", "`daily_tokens` needs a number above 0", 9),
            ("[limits]\nenforce_sessions = 1", "`enforce_sessions` needs true or false", 9),
            ("[limits]\nplan_percent = 101", "`plan_percent` needs a number from 1 to 100", 9),
            ("[limits.models]\nopus = 1", "`opus` needs a table", 16),
            ("[limits.models.opus]\nsession_usd = 1", "unknown key `session_usd`; did you mean", 21),
            ("[limits.models.\"\"]\ndaily_usd = 1", "`models` needs the name of a model", 15),
        ] {
            let fault = read_section(text).unwrap_err();
            assert!(fault.message.contains(message), "{text}: {}", fault.message);
            assert_eq!(fault.at, at, "{text}");
        }
    }
}
