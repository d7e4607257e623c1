//! What a command says it used: `usage: {input_tokens, output_tokens, cost_usd}` in its result file, else the final
//! events of the clients that it called and whose output it passed on. A claim that cannot be right is no claim: what is
//! not known is unknown, never zero.

use serde_json::{Map, Value};
use steadfast_hosts::stream;
use steadfast_model::clock;
use steadfast_model::host::Host;
use steadfast_model::price::{self, Table};
use steadfast_model::reading::{Bill, Tier, Tokens};
use steadfast_model::run::AttemptUsage;

use super::result;
use crate::attempt::Attempt;

/// Larger numbers are mistakes.
const MOST_TOKENS: f64 = 1e12;
const MOST_DOLLARS: f64 = 1e6;

/// What the command of an attempt used; `model` is the one that it was asked to use.
pub(crate) fn of_command(attempt: &Attempt, model: Option<&str>) -> AttemptUsage {
    let file = result::object_in(&attempt.result());
    let reported = file.as_ref().and_then(|object| object.get("usage")).filter(|usage| !usage.is_null());
    match (reported, file.as_ref()) {
        (Some(Value::Object(usage)), Some(file)) => {
            let named = |object: &Map<String, Value>| object.get("model").and_then(Value::as_str).map(str::to_owned);
            let model = named(usage).or_else(|| named(file)).or_else(|| model.map(str::to_owned));
            read(usage, model.as_deref())
        }
        (Some(_), _) => AttemptUsage::unknown(),
        (None, _) => {
            let printed = stream::printed_usage(&attempt.output()).ok().flatten();
            printed.map_or_else(AttemptUsage::unknown, |usage| priced(usage, model))
        }
    }
}

/// What the client of an attempt used so far, by the files of its session.
pub(crate) fn in_session(host: Host, attempt: &Attempt) -> Option<AttemptUsage> {
    let started = attempt.supervisor().ok()??.started_at_ms;
    let stream = stream::read(host, &attempt.output()).ok()?;
    stream::session_usage(host, &stream, started, clock::now())
}

fn read(usage: &Map<String, Value>, model: Option<&str>) -> AttemptUsage {
    let tokens = tokens(usage);
    let cost = match usage.get("cost_usd").filter(|cost| !cost.is_null()) {
        Some(cost) => cost.as_f64().filter(|usd| (0.0..MOST_DOLLARS).contains(usd)).map(price::micros),
        None => tokens.as_ref().zip(model).and_then(|(tokens, model)| price_of(tokens, model)),
    };
    AttemptUsage {
        tokens: tokens.unwrap_or_default(),
        cost_micros: cost.unwrap_or(0),
        cost_unknown: cost.is_none(),
        tokens_unknown: tokens.is_none(),
    }
}

/// The tokens, if input and output are both told and every number makes sense.
fn tokens(usage: &Map<String, Value>) -> Option<Tokens> {
    let count = |name: &str| match usage.get(name).filter(|value| !value.is_null()) {
        Some(value) => Some(Some(whole_number(value)?)),
        None => Some(None),
    };
    Some(Tokens {
        input: count("input_tokens")??,
        output: count("output_tokens")??,
        cache_creation: count("cache_creation_tokens")?.unwrap_or(0),
        cache_creation_1h: 0,
        cache_read: count("cache_read_tokens")?.unwrap_or(0),
    })
}

/// Some tools write whole numbers with a decimal point.
fn whole_number(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| (0.0..=MOST_TOKENS).contains(number) && number.fract() == 0.0)?;
    // Exact: smaller than 2^53.
    format!("{number:.0}").parse().ok()
}

/// A client that reports tokens and no cost; the price table has the cost of its model.
pub(super) fn priced(reported: AttemptUsage, model: Option<&str>) -> AttemptUsage {
    let cost = model.filter(|_| reported.cost_unknown).and_then(|model| price_of(&reported.tokens, model));
    match cost {
        Some(cost_micros) => AttemptUsage { cost_micros, cost_unknown: false, ..reported },
        None => reported,
    }
}

fn price_of(tokens: &Tokens, model: &str) -> Option<i64> {
    Table::shipped().cost_micros(&Bill { model, tier: Tier::Standard, tokens })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reads(usage: &Value, model: Option<&str>) -> (Option<i64>, Option<i64>) {
        let usage = read(usage.as_object().unwrap(), model);
        (usage.known_tokens(), usage.known_cost())
    }

    #[test]
    fn what_is_reported_is_known_and_the_rest_is_unknown() {
        let whole = json!({"input_tokens": 10, "output_tokens": 5.0, "cache_creation_tokens": 2,
            "cache_read_tokens": 90, "cost_usd": 0.25});
        assert_eq!(reads(&whole, None), (Some(17), Some(250_000)));
        assert_eq!(reads(&json!({"input_tokens": 10, "output_tokens": 5}), None), (Some(15), None));
        assert_eq!(reads(&json!({"cost_usd": 0}), None), (None, Some(0)));
        assert_eq!(reads(&json!({"output_tokens": 5, "cost_usd": null}), None), (None, None));
        assert_eq!(reads(&json!({}), Some("claude-opus-4-5")), (None, None));
    }

    #[test]
    fn a_number_that_makes_no_sense_is_unknown() {
        for bad in [json!(-1), json!("12"), json!(1e13), json!(0.5), json!([]), json!(true)] {
            for name in ["input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"] {
                let mut usage = json!({"input_tokens": 1, "output_tokens": 1, "cost_usd": 0.1});
                usage[name] = bad.clone();
                assert_eq!(reads(&usage, None), (None, Some(100_000)), "{usage}");
            }
        }
        for bad in [json!(-0.1), json!("0.1"), json!(1e7), json!({})] {
            let usage = json!({"input_tokens": 1, "output_tokens": 1, "cost_usd": bad});
            assert_eq!(reads(&usage, Some("claude-opus-4-5")), (Some(2), None), "{usage}");
        }
    }

    #[test]
    fn tokens_of_a_known_model_are_priced() {
        let usage = json!({"input_tokens": 1_000_000, "output_tokens": 0});
        assert_eq!(reads(&usage, Some("claude-opus-4-5")).1, Some(5_000_000));
        assert_eq!(reads(&usage, Some("gpt-99-mystery")).1, None);
    }
}
