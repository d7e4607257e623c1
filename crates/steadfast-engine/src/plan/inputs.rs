//! `inputs:` of a stage: the earlier stages that `${INPUTS}` shows, and how much of each.

use super::fault::did_you_mean;
use super::keys::{LocatedText, Setting, Value, keys, located_text, no_effect, text};

#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    /// `None` for the stage before.
    pub(super) names: Option<Vec<LocatedText>>,
    /// Show only the last output of each.
    pub(super) latest: bool,
}

keys! {
    /// The mapping that newer tools write.
    InputsMap {
        from: Option<Vec<LocatedText>> = names("from"),
        is_latest: Setting<bool> = select("select"),
        from_initial: Option<()> = no_effect("from_initial"),
        from_parallel: Option<()> = no_effect("from_parallel"),
    }
}

pub(super) fn inputs(value: &Value<'_>) -> Option<Inputs> {
    if value.is_off() {
        return None;
    }
    if value.is_map() {
        let InputsMap { from, is_latest, .. } = value.table("`inputs`")?;
        return Some(Inputs { names: from, latest: is_latest.on().unwrap_or(true) });
    }
    Some(Inputs { names: names(value), latest: false })
}

#[expect(clippy::unnecessary_wraps, reason = "all readers of a table return an option")]
fn names(value: &Value<'_>) -> Option<Vec<LocatedText>> {
    Some(value.elements().filter_map(|element| located_text(&element)).collect())
}

fn select(value: &Value<'_>) -> Option<bool> {
    match text(value)?.as_str() {
        "latest" => Some(true),
        "all" => Some(false),
        other => {
            let fix = format!("{}Write `select: latest` or `select: all`", did_you_mean(other, ["latest", "all"]));
            value.at.refuse(format!("there is no `select: {other}`"), fix)
        }
    }
}
