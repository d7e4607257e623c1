//! Files that the user writes for Steadfast: `config.toml` and a table of prices.

use std::path::Path;

use steadfast_model::price::Table;
use steadfast_model::reading::{Bill, Tier, Tokens};
use steadfast_system::config::{Config, ConfigError};

use crate::scratch;

pub(crate) fn config(data: &[u8]) {
    let path = scratch::file("config.toml", data);
    let (config, error) = Config::load_or_default(&path);
    match (Config::load(&path), error) {
        (Ok(loaded), None) => assert_eq!(loaded, config),
        (Err(ConfigError::Invalid { line, message, .. }), Some(_)) => {
            let lines = data.split(|byte| *byte == b'\n').count();
            assert!((1..=lines).contains(&line), "line {line} of {lines}: {message}");
            assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
        }
        (Err(ConfigError::Read(_)), Some(_)) => assert!(str::from_utf8(data).is_err(), "text that cannot be read"),
        (loaded, error) => panic!("{loaded:?}, but {error:?}"),
    }
}

pub(crate) fn prices(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(table) = Table::from_toml(text, Path::new("prices.toml")) else { return };
    let models = text.split(|c: char| !c.is_alphanumeric() && !"-._".contains(c)).filter(|word| !word.is_empty());
    for model in models.take(40) {
        for amount in [0, 1, 200_001, i64::MAX] {
            let tokens = Tokens {
                input: amount,
                output: amount,
                cache_creation: amount,
                cache_read: amount,
                ..Tokens::default()
            };
            for tier in [Tier::Standard, Tier::Fast, Tier::Priority, Tier::Batch, Tier::Flex, Tier::Unknown] {
                let cost = table.cost_micros(&Bill { model, tier, tokens: &tokens });
                assert!(cost.is_none_or(|cost| cost >= 0), "{model} {tier}: {cost:?} for {amount}");
            }
        }
    }
}
