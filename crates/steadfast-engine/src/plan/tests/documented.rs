//! Every key, variable and rule that definitions may have is in `docs/runs.md`.

use steadfast_model::run::rule::RuleKind;
use steadfast_model::run::template;
use strum::VariantNames as _;

use crate::plan::keys::{KeyTable, Keys};
use crate::plan::pipeline::{PipelineKeys, StageKeys};
use crate::plan::planning::LimitsDef;
use crate::plan::stage::{LoopDef, StageDef};

const PAGE: &str = include_str!("../../../../../docs/runs.md");

fn keys_of<T: KeyTable>() -> Vec<&'static str> {
    let mut keys = Keys::empty();
    T::read(&mut keys);
    keys.known().to_vec()
}

fn is_shown(word: &str) -> bool {
    let mut quoted = PAGE.split('`').skip(1).step_by(2);
    quoted.any(|code| code.split(|c: char| !(c.is_alphanumeric() || "_-.${}".contains(c))).any(|part| part == word))
}

#[test]
fn every_key_is_documented() {
    let tables = [
        keys_of::<PipelineKeys>(),
        keys_of::<StageKeys>(),
        keys_of::<StageDef>(),
        keys_of::<LoopDef>(),
        keys_of::<LimitsDef>(),
    ];
    let missing: Vec<&str> = tables.into_iter().flatten().filter(|key| !is_shown(key)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_rule_and_variable_is_documented() {
    let rules = RuleKind::VARIANTS.iter().filter(|name| !["any", "all", "merged"].contains(*name));
    let missing: Vec<&&str> = rules.filter(|name| !is_shown(name)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
    let missing: Vec<&str> =
        template::NAMES.into_iter().filter(|name| !PAGE.contains(&format!("${{{name}}}"))).collect();
    assert_eq!(missing, [""; 0]);
}
