//! What tokens cost, from a dated table in the repository. A model the table does not know has no cost; none is
//! ever invented.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::text;
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

/// Prices by model.
#[derive(Debug)]
pub struct Table {
    models: BTreeMap<String, Price>,
    fingerprint: u64,
}

#[derive(Debug, Deserialize)]
struct TableWire {
    models: BTreeMap<String, Price>,
}

#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("{path} is not a price table: {message}")]
    Invalid { path: PathBuf, message: String },
}

impl PriceError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(_) => "give a TOML file with a [models.NAME] table for each model",
            Self::Invalid { .. } => {
                "each [models.NAME] needs input, output, cache_write_5m, cache_write_1h and cache_read, in dollars for a million tokens"
            }
        }
    }
}

impl Table {
    /// The table in the repository.
    pub fn shipped() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        // A test holds the file in the repository to its form.
        TABLE.get_or_init(|| {
            Self::parse(include_str!("../prices.toml")).unwrap_or(Self {
                models: BTreeMap::new(),
                fingerprint: 0,
            })
        })
    }

    /// Reads a table of the same form from a file.
    pub fn load(path: &Path) -> Result<Self, PriceError> {
        let text = fs_err::read_to_string(path)?;
        let invalid = |message: String| PriceError::Invalid {
            path: path.to_owned(),
            message,
        };
        let table = Self::parse(&text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| before.matches('\n').count() + 1);
            invalid(format!("line {line}: {}", error.message()))
        })?;
        let wrong = |price: &Price| {
            price
                .amounts()
                .iter()
                .any(|amount| !amount.is_finite() || *amount < 0.0)
        };
        match table.models.iter().find(|(_, price)| wrong(price)) {
            Some((model, _)) => Err(invalid(format!("a price of {model} is no amount of money"))),
            None => Ok(table),
        }
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let wire: TableWire = toml::from_str(text)?;
        Ok(Self {
            models: wire.models,
            fingerprint: text::checksum(text.as_bytes()),
        })
    }

    /// Tells tables apart.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The cost of a response in millionths of a dollar; `None` when its model is not in the table.
    pub fn cost_micros(&self, response: &Response) -> Option<i64> {
        let price = self.models.get(plain_model(&response.model))?;
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
}

impl Price {
    fn amounts(&self) -> [f64; 5] {
        [
            self.input,
            self.output,
            self.cache_write_5m,
            self.cache_write_1h,
            self.cache_read,
        ]
    }
}

/// The cost of a response by the table in the repository.
pub fn cost_micros(response: &Response) -> Option<i64> {
    Table::shipped().cost_micros(response)
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
    fn the_table_in_the_repository_is_read() {
        assert!(!Table::shipped().models.is_empty());
        assert_ne!(Table::shipped().fingerprint(), 0);
    }

    #[test]
    fn a_broken_table_is_refused_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("prices.toml");
        let fine = "[models.x]\ninput = 2\noutput = 4\ncache_write_5m = 0\ncache_write_1h = 0\ncache_read = 0\n";
        for (text, about) in [
            ("[models.x]\ninput = \"much\"\n", "line 2"),
            ("models = 5", "line 1"),
            ("[models.x]\ninput = 1\n", "missing field"),
            (&fine.replace("= 2", "= -2"), "of x is no amount"),
            (&fine.replace("= 2", "= nan"), "of x is no amount"),
        ] {
            fs_err::write(&path, text).unwrap();
            let error = Table::load(&path).unwrap_err().to_string();
            assert!(error.contains(about), "{text}: {error}");
        }
        fs_err::write(&path, fine).unwrap();
        let response = Response {
            model: "x".into(),
            input: 10,
            output: 1,
            ..Response::default()
        };
        assert_eq!(Table::load(&path).unwrap().cost_micros(&response), Some(24));
    }

    #[test]
    fn an_unknown_model_has_no_cost() {
        assert_eq!(
            cost_micros(&Response {
                model: "mystery-1".into(),
                input: 5,
                ..Response::default()
            }),
            None
        );
    }
}
