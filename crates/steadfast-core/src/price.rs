//! What tokens cost, from a dated table in the repository. A model the table does not know has no cost; none is
//! ever invented.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::usage::Response;

/// Dollars for a million tokens of each kind.
#[derive(Debug, Clone, Deserialize, PartialEq)]
struct Price {
    input: f64,
    output: f64,
    cache_write_5m: f64,
    cache_write_1h: f64,
    cache_read: f64,
}

#[derive(Debug, Deserialize)]
struct Table {
    models: BTreeMap<String, Price>,
}

fn table() -> Option<&'static Table> {
    static TABLE: OnceLock<Option<Table>> = OnceLock::new();
    TABLE.get_or_init(|| toml::from_str(include_str!("../prices.toml")).ok()).as_ref()
}

/// The cost of a response in millionths of a dollar; `None` when its model is not in the table.
pub fn cost_micros(response: &Response) -> Option<i64> {
    let price = table()?.models.get(plain_model(&response.model))?;
    #[expect(clippy::cast_precision_loss, reason = "token counts are below 2^53")]
    let part = |tokens: i64, dollars_per_million: f64| tokens as f64 * dollars_per_million;
    let short_lived = (response.cache_creation - response.cache_creation_1h).max(0);
    // A dollar a million tokens is a millionth of a dollar a token.
    let micros = part(response.input, price.input)
        + part(response.output, price.output)
        + part(short_lived, price.cache_write_5m)
        + part(response.cache_creation_1h, price.cache_write_1h)
        + part(response.cache_read, price.cache_read);
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^63")]
    Some(micros.round() as i64)
}

/// Strips what does not change the price: the context variant `[1m]` and the release date.
fn plain_model(model: &str) -> &str {
    let model = model.split_once('[').map_or(model, |(name, _)| name);
    match model.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_clients_own_bill() {
        // Claude Code 2.1.197 showed $0.0365 for four such responses of claude-opus-4-8.
        let response = Response {
            model: "claude-opus-4-8[1m]".into(),
            input: 1_000,
            output: 50,
            cache_creation: 300,
            cache_read: 2_000,
            ..Response::default()
        };
        assert_eq!(cost_micros(&response).map(|micros| micros * 4), Some(36_500));
    }

    #[test]
    fn an_unknown_model_has_no_cost() {
        assert_eq!(cost_micros(&Response { model: "mystery-1".into(), input: 5, ..Response::default() }), None);
    }
}
