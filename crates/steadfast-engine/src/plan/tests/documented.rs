//! Every key, variable and rule that definitions may have is in `docs/runs.md`, in words and in an example.

use steadfast_model::run::rule::RuleKind;
use steadfast_model::run::template;
use strum::VariantNames as _;

use crate::plan::keys::{KeyTable, Keys};
use crate::plan::order::MergeDef;
use crate::plan::pipeline::{PipelineKeys, StageKeys};
use crate::plan::planning::LimitsDef;
use crate::plan::stage::{Guardrails, LoopDef, StageDef};

const PAGE: &str = include_str!("../../../../../docs/runs.md");

fn keys_of<T: KeyTable>() -> Vec<&'static str> {
    let mut keys = Keys::empty();
    T::read(&mut keys);
    keys.known().to_vec()
}

/// Other names of keys, and one that is refused with a fix.
const WITHOUT_EXAMPLE: [&str; 6] = ["max_iterations", "iterations", "steps", "loops", "stage", "pipeline"];

/// The blocks of these languages, one after the other.
fn examples(languages: &[&str]) -> String {
    let blocks = PAGE.split("\n```").skip(1).step_by(2);
    let of_language =
        |block: &str| languages.iter().find_map(|it| block.strip_prefix(&format!("{it}\n")).map(str::to_owned));
    blocks.filter_map(of_language).collect()
}

/// Whether a key is set in an example.
fn is_set(key: &str, yaml: &str) -> bool {
    let is_inside =
        |before: Option<char>| before.is_some_and(|before| before.is_alphanumeric() || "_-.".contains(before));
    yaml.match_indices(&format!("{key}:")).any(|(at, _)| !is_inside(yaml[..at].chars().next_back()))
}

fn is_shown(word: &str) -> bool {
    let mut quoted = PAGE.split('`').skip(1).step_by(2);
    quoted.any(|code| {
        code.split(|c: char| !(c.is_alphanumeric() || "_-.${}".contains(c)))
            .any(|part| part == word || part.trim_matches(['{', '}']) == word)
    })
}

#[test]
fn every_key_is_documented_and_in_an_example() {
    let tables = [
        keys_of::<PipelineKeys>(),
        keys_of::<StageKeys>(),
        keys_of::<StageDef>(),
        keys_of::<LoopDef>(),
        keys_of::<LimitsDef>(),
        keys_of::<MergeDef>(),
        keys_of::<Guardrails>(),
    ];
    let keys: Vec<&str> = tables.into_iter().flatten().filter(|key| *key != "max_runtime").collect();
    let missing: Vec<&&str> = keys.iter().filter(|key| !is_shown(key)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
    let yaml = examples(&["yaml"]);
    let without: Vec<&&str> =
        keys.iter().filter(|key| !is_set(key, &yaml) && !WITHOUT_EXAMPLE.contains(*key)).collect();
    assert_eq!(without, Vec::<&&str>::new());
}

#[test]
fn every_variable_is_in_an_example() {
    let prompts = examples(&["yaml", "markdown"]);
    let more = ["MERGE_BRANCH", "MERGE_CONFLICTS"];
    let named = ["MATRIX.", "INPUTS.", "ARTIFACTS.", "COMMANDS."].map(|name| format!("${{{name}"));
    let plain = template::names().chain(more).map(|name| format!("${{{name}}}"));
    let missing: Vec<String> = plain.chain(named).filter(|variable| !prompts.contains(variable)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_rule_and_variable_is_documented() {
    let rules = RuleKind::VARIANTS.iter().filter(|name| !["any", "all", "merged"].contains(*name));
    let missing: Vec<&&str> = rules.filter(|name| !is_shown(name)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
    let missing: Vec<&str> = template::names().filter(|name| !PAGE.contains(&format!("${{{name}}}"))).collect();
    assert_eq!(missing, [""; 0]);
}
