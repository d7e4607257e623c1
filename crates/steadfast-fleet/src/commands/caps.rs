//! `fleet caps`: the caps of a day over all runs of the namespace, and what today cost.

use serde_json::json;
use steadfast_model::limit::Axis;
use steadfast_model::{clock, text};

use super::Here;
use crate::cli::CapsArgs;
use crate::output::{CommandError, CommandResult, Output, code};
use crate::wire::{Caps, LedgerState};

pub(super) async fn caps(here: &Here, arguments: &CapsArgs) -> CommandResult {
    let fleet = here.connect().await?;
    let now = fleet.ledger().await?.unwrap_or_default();
    let is_change = arguments.none || arguments.usd.is_some() || arguments.tokens.is_some();
    if !is_change {
        return show(&now);
    }
    let wanted = wanted(arguments, now.caps)?;
    fleet.set_caps(wanted).await?;
    show(&LedgerState { caps: wanted, ..now })
}

fn wanted(arguments: &CapsArgs, before: Caps) -> Result<Caps, CommandError> {
    if arguments.none {
        return Ok(Caps::default());
    }
    let amount = |axis: Axis, text: &str| {
        axis.parse(text, clock::now()).map_err(|error| CommandError::new(code::USAGE, error.to_string(), error.hint()))
    };
    let tokens = arguments.tokens.as_deref().map(|text| amount(Axis::Tokens, text)).transpose()?;
    let usd = arguments.usd.map(|usd| amount(Axis::Usd, &usd.to_string())).transpose()?;
    Ok(Caps { tokens: tokens.or(before.tokens), cost_micros: usd.or(before.cost_micros) })
}

fn show(state: &LedgerState) -> CommandResult {
    let today = clock::now().div_euclid(24 * clock::HOUR);
    let is_today = state.day == today;
    let (tokens, cost) = if is_today { (state.tokens, state.cost_micros) } else { (0, 0) };
    let cap = |amount: Option<i64>, words: fn(i64) -> String| amount.map_or_else(|| "no cap".to_owned(), words);
    let lines = [
        format!("tokens today: {} of {}", text::short_number(tokens), cap(state.caps.tokens, text::short_number)),
        format!(
            "cost today: {} of {}",
            text::cost(Some(cost)),
            cap(state.caps.cost_micros, |cost| text::cost(Some(cost)))
        ),
    ];
    #[expect(clippy::cast_precision_loss, reason = "dollars for people")]
    let usd = |micros: i64| micros as f64 / 1e6;
    Output::new(
        lines.join("\n"),
        json!({
            "tokens": tokens, "cost_usd": usd(cost),
            "caps": {"tokens": state.caps.tokens, "usd": state.caps.cost_micros.map(usd)},
        }),
    )
}
