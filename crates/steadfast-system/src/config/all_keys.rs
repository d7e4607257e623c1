//! `all_keys.toml`, from which the reference is written, has every key of the configuration, with its default.

use std::collections::BTreeSet;

use super::*;

const ALL_KEYS: &str = include_str!("all_keys.toml");

/// The keys of a file as `section.key`, all hosts and models as one.
fn keys_in(text: &str) -> BTreeSet<String> {
    let (file, faults) = DeTable::parse_recoverable(text);
    assert!(faults.is_empty(), "{faults:?}");
    let mut found = BTreeSet::new();
    collect(file.get_ref(), "", &mut found);
    found
}

fn collect(table: &DeTable<'_>, place: &str, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        let name = format!("{place}{}", key.get_ref());
        match value.get_ref().as_table() {
            Some(table) => collect(table, &format!("{name}."), found),
            None => drop(found.insert(name)),
        }
    }
}

/// The text with the examples of keys without a default.
fn with_examples() -> String {
    let line = |line: &'static str| match line.strip_prefix("# ") {
        Some(key) if key.split_once(" = ").is_some_and(|(name, _)| !name.contains(' ')) => key,
        _ => line,
    };
    ALL_KEYS.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn load(text: &str) -> Config {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    fs_err::write(&file, text).unwrap();
    Config::load(&file).unwrap()
}

#[test]
fn the_values_are_the_defaults() {
    let mut config = load(ALL_KEYS);
    assert_eq!(config.unknown, []);
    config.agents.hosts.clear();
    assert_eq!(config, Config::default());
}

#[test]
fn every_key_has_a_line() {
    let text = with_examples();
    assert_eq!(load(&text).unknown, []);
    assert_eq!(keys_in(&text), keys::every().into_iter().collect());
}
