//! What tokens cost, by a dated table in the repository. A model that is not in the table has no cost; costs are never
//! guessed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::reading::{Bill, Tier, Tokens};
use crate::text;

/// Dollars per million tokens of each kind.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    output: f64,
    cache_write_5m: f64,
    cache_write_1h: f64,
    cache_read: f64,
    /// A response to more tokens than this, cached ones included, has the rates below for all its tokens. If they are
    /// missing, the vendor has not published them, and the response has no cost.
    long_context_above: Option<i64>,
    input_long: Option<f64>,
    output_long: Option<f64>,
    cache_write_5m_long: Option<f64>,
    cache_write_1h_long: Option<f64>,
    cache_read_long: Option<f64>,
    /// What multiplies all rates in that tier. If it is missing, the response has no cost.
    fast: Option<f64>,
    priority: Option<f64>,
    batch: Option<f64>,
    flex: Option<f64>,
    /// The vendor does not offer fast mode for a long context.
    #[serde(default)]
    fast_is_short: bool,
}

impl Price {
    /// The cost in millionths of a dollar; `None` if the vendor has not published a rate for it.
    fn cost_of(self, bill: &Bill<'_>) -> Option<i64> {
        let rates = self.for_context(bill.tokens)?;
        let factor = match bill.tier {
            Tier::Standard => 1.0,
            Tier::Fast if self.fast_is_short && self.is_long(bill.tokens) => return None,
            Tier::Fast => self.fast?,
            Tier::Priority => self.priority?,
            Tier::Batch => self.batch?,
            Tier::Flex => self.flex?,
            Tier::Unknown => return None,
        };
        Some(rates.cost_micros(bill.tokens, factor))
    }

    fn is_long(&self, tokens: &Tokens) -> bool {
        let context = tokens.input.saturating_add(tokens.cache_creation).saturating_add(tokens.cache_read);
        self.long_context_above.is_some_and(|most| context > most)
    }

    /// The rates for a response with these tokens.
    fn for_context(self, tokens: &Tokens) -> Option<Self> {
        if !self.is_long(tokens) {
            return Some(self);
        }
        Some(Self {
            input: self.input_long?,
            output: self.output_long?,
            cache_write_5m: self.cache_write_5m_long?,
            cache_write_1h: self.cache_write_1h_long?,
            cache_read: self.cache_read_long?,
            ..self
        })
    }

    /// The cost at exactly these rates times a factor, in millionths of a dollar.
    fn cost_micros(self, tokens: &Tokens, factor: f64) -> i64 {
        #[expect(clippy::cast_precision_loss, reason = "token counts are below 2^53")]
        let part = |count: i64, dollars_per_million: f64| count as f64 * dollars_per_million;
        let short_lived = (tokens.cache_creation - tokens.cache_creation_1h).max(0);
        // A dollar per million tokens is a millionth of a dollar per token.
        let micros = part(tokens.input, self.input)
            + part(tokens.output, self.output)
            + part(short_lived, self.cache_write_5m)
            + part(tokens.cache_creation_1h, self.cache_write_1h)
            + part(tokens.cache_read, self.cache_read);
        #[expect(clippy::cast_possible_truncation, reason = "far below 2^63")]
        let micros = (micros * factor).round() as i64;
        micros
    }

    fn amounts(&self) -> impl Iterator<Item = f64> {
        let always = [self.input, self.output, self.cache_write_5m, self.cache_write_1h, self.cache_read];
        let others = [
            self.input_long,
            self.output_long,
            self.cache_write_5m_long,
            self.cache_write_1h_long,
            self.cache_read_long,
            self.fast,
            self.priority,
            self.batch,
            self.flex,
        ];
        always.into_iter().chain(others.into_iter().flatten())
    }
}

const SHIPPED: &str = include_str!("../prices.toml");

#[derive(Debug, Default, Deserialize)]
pub struct Table {
    models: BTreeMap<String, Price>,
    #[serde(skip)]
    fingerprint: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("invalid price table {path}: {message}")]
    Invalid { path: PathBuf, message: String },
}

impl PriceError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(_) => "pass a TOML file with a [models.NAME] table for each model",
            Self::Invalid { .. } => {
                "each [models.NAME] needs input, output, cache_write_5m, cache_write_1h and cache_read, in dollars per million tokens"
            }
        }
    }
}

impl Table {
    /// The table in the repository.
    pub fn shipped() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        // A test makes sure that the shipped file parses.
        TABLE.get_or_init(|| Self::parse(SHIPPED).unwrap_or_default())
    }

    /// Reads a table of the same form from the text of the file at `path`.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, PriceError> {
        let invalid = |message: String| PriceError::Invalid { path: path.to_owned(), message };
        let table = Self::parse(text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| before.matches('\n').count() + 1);
            invalid(format!("line {line}: {}", error.message()))
        })?;
        let wrong = |price: &Price| price.amounts().any(|amount| !amount.is_finite() || amount < 0.0);
        match table.models.iter().find(|(_, price)| wrong(price)) {
            Some((model, _)) => Err(invalid(format!("a price of {model} is negative or not a number"))),
            None => Ok(table),
        }
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let table: Self = toml::from_str(text)?;
        Ok(Self { fingerprint: text::checksum(text.as_bytes()), ..table })
    }

    /// Changes with the content of the table.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The cost of a response in millionths of a dollar; `None` when the table has no price for it.
    pub fn cost_micros(&self, bill: &Bill<'_>) -> Option<i64> {
        self.models.get(plain_model(bill.model))?.cost_of(bill)
    }
}

/// The cost of a response by the shipped table. A hook needs one model, so only that model's lines are parsed; a test
/// compares this with the whole table.
pub fn cost_micros(bill: &Bill<'_>) -> Option<i64> {
    shipped_price(plain_model(bill.model))?.cost_of(bill)
}

/// Whether a model that a user named surely has no price. A name without a digit is an alias, such as `opus`.
pub fn is_unknown(model: &str) -> bool {
    let name = plain_model(model);
    name.bytes().any(|byte| byte.is_ascii_digit()) && !is_priced(name)
}

/// Whether the shipped table has any price for a model.
pub fn is_priced(model: &str) -> bool {
    shipped_price(plain_model(model)).is_some()
}

/// Millionths of a dollar as dollars.
#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
pub fn dollars(micros: i64) -> f64 {
    micros as f64 / 1_000_000.0
}

/// Dollars as millionths of a dollar, rounded.
#[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
pub fn micros(dollars: f64) -> i64 {
    (dollars * 1_000_000.0).round() as i64
}

fn shipped_price(model: &str) -> Option<Price> {
    let headers = [format!("\n[models.{model}]\n"), format!("\n[models.\"{model}\"]\n")];
    let (_, rest) = headers.iter().find_map(|header| SHIPPED.split_once(header.as_str()))?;
    toml::from_str(rest.split("\n[").next().unwrap_or(rest)).ok()
}

/// Strips what does not change the price: the context variant `[1m]` and the release date, which the vendors write
/// as `-20251001` or `-2026-09-29`.
fn plain_model(model: &str) -> &str {
    let model = model.split_once('[').map_or(model, |(name, _)| name);
    let shapes = ["-DDDDDDDD", "-DDDD-DD-DD"];
    let name = shapes.iter().find_map(|shape| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(shape.len())?)?;
        let fits = |(byte, shape): (u8, u8)| {
            if shape == b'D' { byte.is_ascii_digit() } else { byte == shape }
        };
        date.bytes().zip(shape.bytes()).all(fits).then_some(name)
    });
    name.unwrap_or(model)
}

#[cfg(test)]
mod tests;
