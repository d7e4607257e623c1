//! `inputs:` of a stage: which earlier stages `${INPUTS}` shows, and how much of each.

use super::fault::{At, Faults, did_you_mean};
use super::fields::{Fields, Value};
use super::yaml::Yaml;

/// What `${INPUTS}` of a stage shows.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// `None` for the stage before.
    pub(super) names: Option<Vec<(String, At)>>,
    /// Only the last output of each.
    pub(super) latest: bool,
}

/// Names, one name, or `{from: name, select: …}` as later versions write it. There the last output is given unless all
/// are asked for.
pub(super) fn read_inputs(value: &Value<'_>, faults: &mut Faults) -> Option<Inputs> {
    if value.is_off() {
        return None;
    }
    if matches!(value.node.value, Yaml::Map(_)) {
        let mut fields = Fields::of(value.node, &value.at, "`inputs`", faults)?;
        let from = fields.take(&["from"], faults);
        let select = fields.take(&["select"], faults).filter(|select| !select.is_off());
        let latest = match select.as_ref().and_then(|select| select.text(faults)).as_deref() {
            Some("all") => false,
            Some("latest") | None => true,
            Some(other) => {
                if let Some(select) = &select {
                    let meant = did_you_mean(other, ["latest", "all"]);
                    let fix = format!("{meant}Write `select: latest` or `select: all`");
                    faults.error(&select.at, format!("there is no `select: {other}`"), fix);
                }
                true
            }
        };
        for name in ["from_initial", "from_parallel"] {
            if let Some(value) = fields.take(&[name], faults) {
                faults.warning(&value.at, format!("`{name}` has no effect"), "name the stage with `from:`");
            }
        }
        fields.finish("`inputs`", faults);
        return Some(Inputs { names: from.map(|from| name_list(&from, faults)), latest });
    }
    Some(Inputs { names: Some(name_list(value, faults)), latest: false })
}

fn name_list(value: &Value<'_>, faults: &mut Faults) -> Vec<(String, At)> {
    value.nodes().filter_map(|part| Some((part.text(faults)?, part.at.clone()))).collect()
}
