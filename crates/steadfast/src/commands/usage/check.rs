//! `steadfast usage --check`: whether what the whole machine used, runs included, reaches a cap of `[limits]`.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_app::usage::report::Amounts;
use steadfast_app::usage::summary::{SLOT_MS, Sum, Summary};
use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;
use steadfast_model::limit::{Axis, Cap, CapScope, Spend};
use steadfast_store::{Store, spend};

use crate::commands::own_paths;
use crate::error::code;
use crate::output::{CommandOutput, CommandResult};

pub(super) fn run(db: Option<&Path>, summaries: &[(Host, Summary)], now: Millis) -> CommandResult {
    let paths = own_paths::find(db)?;
    // A store that cannot be read knows neither when the day began nor what runs used.
    let store = Store::open_if_there(&paths.store).ok().flatten();
    let standing_of = |cap: &Cap| {
        let now = clock::from_wall(now);
        let kept = store.as_ref().and_then(|store| store.read().cap_start(cap, now).ok());
        let from = kept.unwrap_or_else(|| cap.period().map_or(0, |period| period.start(now)));
        let stored = store.as_ref().and_then(|store| spend::of_machine(store.read(), cap, now).ok());
        standing(cap, summaries, clock::to_wall(from), stored)
    };
    let standings: Vec<Value> = paths.config.limits.caps.iter().filter_map(standing_of).collect();
    let is_reached = standings.iter().any(|standing| standing["reached"] == json!(true));
    let mut text: Vec<&str> = standings.iter().filter_map(|standing| standing["text"].as_str()).collect();
    if text.is_empty() {
        text.push("no cap is set: add [limits] to config.toml");
    }
    let text = text.join("\n");
    let json = json!({"reached": is_reached, "caps": standings});
    Ok(CommandOutput { text, json, code: if is_reached { code::LIMIT } else { 0 } })
}

/// Session files know sessions without hooks, and the store knows runs of other agents: the larger sum counts, so a cap
/// that stops a run is reached here too.
fn standing(cap: &Cap, summaries: &[(Host, Summary)], from: Millis, stored: Option<Spend>) -> Option<Value> {
    let model_prefix = match &cap.scope {
        CapScope::Machine(_) => "",
        CapScope::Model(prefix, _) => prefix,
        // It has no sum of its own: each session has one.
        CapScope::Session => return None,
    };
    let mut spent = Amounts::default();
    for (_, summary) in summaries {
        let is_of_model =
            |model: u32| summary.models.get(model as usize).is_some_and(|name| name.starts_with(model_prefix));
        let counts = |sum: &&Sum| sum.slot.saturating_mul(SLOT_MS) >= from && is_of_model(sum.model);
        for sum in summary.sums.iter().filter(counts) {
            spent += sum.into();
        }
    }
    let (tokens, micros) = stored.map_or((0, 0), |stored| (stored.tokens, stored.cost_micros));
    let used = Spend { tokens: spent.tokens.charged().max(tokens), cost_micros: spent.priced_micros.max(micros) };
    let standing = cap.standing(used, from).standing;
    // A cost of which a part is unknown is at least this much.
    let is_least = cap.axis == Axis::Usd && spent.cost_unknown;
    let least = if is_least { "at least " } else { "" };
    let state = if standing.is_reached() { "reached" } else { "not reached" };
    let (shown, most) = (cap.axis.format(standing.used), cap.axis.format(standing.most));
    Some(json!({
        "cap": cap.name(), "axis": cap.axis, "used": standing.used, "limit": standing.most,
        "is_lower_bound": is_least, "reached": standing.is_reached(),
        "text": format!("cap {} {state}: {least}{shown} of {most}", cap.name()),
    }))
}
