//! `inputs:` of a stage: the earlier stages that `${INPUTS}` shows, and how much of each.

use super::fault::did_you_mean;
use super::keys::{FromYaml, Located, NoEffect, Setting, Value, keys};

#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    /// `None` for the stage before.
    pub(super) names: Option<StageNames>,
    /// Show only the last output of each.
    pub(super) latest: bool,
}

type StageNames = Vec<Located<String>>;

keys! {
    /// The mapping that newer tools write.
    InputsMap {
        from: Option<StageNames>,
        select: Setting<Select>,
        from_initial: NoEffect,
        from_parallel: NoEffect,
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Select {
    Latest,
    All,
}

impl FromYaml for Inputs {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        if value.is_off() {
            return None;
        }
        if value.is_map() {
            let InputsMap { from, select, .. } = value.table("`inputs`")?;
            return Some(Self { names: from, latest: select != Setting::On(Select::All) });
        }
        Some(Self { names: StageNames::from_yaml(value), latest: false })
    }
}

impl FromYaml for StageNames {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        Some(value.elements().filter_map(|element| Located::from_yaml(&element)).collect())
    }
}

impl FromYaml for Select {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        match String::from_yaml(value)?.as_str() {
            "latest" => Some(Self::Latest),
            "all" => Some(Self::All),
            other => {
                let meant = did_you_mean(other, ["latest", "all"]);
                let fix = format!("{meant}Write `select: latest` or `select: all`");
                value.at.refuse(format!("there is no `select: {other}`"), fix)
            }
        }
    }
}
