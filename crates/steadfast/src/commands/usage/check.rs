//! `steadfast usage --check`: whether what the whole machine used reaches a cap of `[limits]`.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_app::usage::report::Amounts;
use steadfast_app::usage::summary::{SLOT_MS, Summary};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::limit::{Cap, Used};
use steadfast_system::paths::Paths;

use crate::error::code;
use crate::output::{CommandOutput, CommandResult};

pub(super) fn run(db: Option<&Path>, summaries: &[(Host, Summary)], now: Millis) -> CommandResult {
    let paths = Paths::find(db)?;
    let standings: Vec<Value> = paths.config.limits.0.iter().flat_map(|cap| standings(cap, summaries, now)).collect();
    let is_reached = standings.iter().any(|standing| standing["reached"] == json!(true));
    let mut text: Vec<&str> = standings.iter().filter_map(|standing| standing["text"].as_str()).collect();
    if text.is_empty() {
        text.push("no cap is set: add [limits] to config.toml");
    }
    let text = text.join("\n");
    let json = json!({"reached": is_reached, "caps": standings});
    Ok(CommandOutput { text, json, code: if is_reached { code::LIMIT } else { 0 } })
}

fn standings(cap: &Cap, summaries: &[(Host, Summary)], now: Millis) -> Vec<Value> {
    let from = cap.period.start(now);
    let mut spent = Amounts::default();
    let sums = summaries.iter().flat_map(|(_, summary)| &summary.sums);
    for sum in sums.filter(|sum| sum.slot.saturating_mul(SLOT_MS) >= from) {
        spent += sum.into();
    }
    let used = Used { tokens: spent.tokens.charged(), cost_micros: spent.priced_micros, ..Used::default() };
    let axes = cap.limits.iter().filter_map(|(axis, _)| cap.limits.standing(axis, &used));
    axes.map(|standing| {
        // A cost of which a part is unknown is at least this much.
        let is_least = standing.axis == steadfast_model::limit::Axis::Usd && spent.cost_unknown;
        let least = if is_least { "at least " } else { "" };
        let state = if standing.is_reached() { "reached" } else { "not reached" };
        let (shown, most) = (standing.axis.format(standing.used), standing.axis.format(standing.most));
        json!({
            "period": cap.period.to_string(), "axis": standing.axis, "used": standing.used, "limit": standing.most,
            "is_lower_bound": is_least, "reached": standing.is_reached(),
            "text": format!("{} cap {state}: {least}{shown} of {most}", cap.period),
        })
    })
    .collect()
}
