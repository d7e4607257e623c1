//! Keys that the file has and no section knows: typing mistakes, or keys of a newer version. The known ones are asked of
//! the types that read the sections.

use std::cell::Cell;

use serde::de::value::Error;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use steadfast_model::host::Host;
use toml::de::DeTable;

use super::{
    AccountingConfig, AgentConfig, Config, FleetConfig, GoalConfig, MemoryConfig, NotifyConfig, RetentionConfig,
    RunsConfig, StatuslineConfig, WatchConfig, limits,
};

/// An unknown key, and where in the file it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownKey {
    pub(super) at: usize,
    pub(super) message: String,
    /// It is the name of a limit, which holds nothing here.
    pub(super) is_limit: bool,
}

/// All unknown keys outside `[limits]`, in their order in the file.
pub(super) fn unknown(text: &str) -> Vec<UnknownKey> {
    let (file, _) = DeTable::parse_recoverable(text);
    let mut found = Vec::new();
    compare(file.get_ref(), "", &sections(), &mut found);
    for (name, value) in file.get_ref() {
        let name: &str = name.get_ref();
        let Some(table) = value.get_ref().as_table() else { continue };
        if name == "agents" {
            let hosts = Host::ALL.iter().map(|host| host.name());
            compare(table, " in [agents]", &hosts.chain(["sandbox"]).collect::<Vec<_>>(), &mut found);
            for (host, section) in table {
                let place = format!(" in [agents.{}]", host.get_ref());
                if let Some(section) = section.get_ref().as_table() {
                    compare(section, &place, fields_of::<AgentConfig>(), &mut found);
                }
            }
        } else if let Some(known) = keys_of(name) {
            compare(table, &format!(" in [{name}]"), known, &mut found);
        }
    }
    found.sort_by_key(|key| key.at);
    found
}

/// The keys at the top of the file.
pub(super) fn sections() -> Vec<&'static str> {
    fields_of::<Config>().iter().copied().chain([limits::SECTION]).collect()
}

fn keys_of(section: &str) -> Option<&'static [&'static str]> {
    Some(match section {
        "goal" => fields_of::<GoalConfig>(),
        "accounting" => fields_of::<AccountingConfig>(),
        "memory" => fields_of::<MemoryConfig>(),
        "runs" => fields_of::<RunsConfig>(),
        "watch" => fields_of::<WatchConfig>(),
        "notify" => fields_of::<NotifyConfig>(),
        "retention" => fields_of::<RetentionConfig>(),
        "statusline" => fields_of::<StatuslineConfig>(),
        "fleet" => fields_of::<FleetConfig>(),
        _ => return None,
    })
}

fn compare(table: &DeTable<'_>, place: &str, known: &[&str], found: &mut Vec<UnknownKey>) {
    for (key, _) in table {
        let name: &str = key.get_ref();
        if known.contains(&name) {
            continue;
        }
        let is_limit = limits::is_key(name);
        let message = if is_limit {
            format!("`{name}`{place} is a limit; write it under [limits]")
        } else {
            format!("unknown key `{name}`{place}{}", did_you_mean(name, known))
        };
        found.push(UnknownKey { at: key.span().start, message, is_limit });
    }
}

/// `; did you mean …?` with the nearest known key.
pub(super) fn did_you_mean(key: &str, known: &[impl AsRef<str>]) -> String {
    let nearest = known.iter().map(AsRef::as_ref).min_by_key(|known| strsim::osa_distance(known, key));
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

/// The keys that a section is read into.
fn fields_of<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let names = FieldNames(Cell::new(&[]));
    // It never has a value; only the question counts.
    let _ = T::deserialize(&names);
    names.0.get()
}

/// Has no value, and keeps the names of the fields that it is asked for.
struct FieldNames(Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for &FieldNames {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_no_section_knows_is_named_with_the_nearest_one() {
        for (text, expected, is_limit) in [
            (
                "[goal]\nno_progres_limit = 1",
                "unknown key `no_progres_limit` in [goal]; did you mean `no_progress_limit`?",
                false,
            ),
            ("[gaol]\nx = 1", "unknown key `gaol`; did you mean `goal`?", false),
            ("[memory]\nenable = true", "did you mean `enabled`?", false),
            ("[retention]\nledger_day = 1", "did you mean `ledger_days`?", false),
            (
                "[agents]\nsandbox = true\n[agents.claud]\nflags = []",
                "unknown key `claud` in [agents]; did you mean `claude`?",
                false,
            ),
            ("[agents.codex]\nflag = []", "unknown key `flag` in [agents.codex]; did you mean `flags`?", false),
            ("daily_usd = 1.0", "`daily_usd` is a limit; write it under [limits]", true),
            ("[goal]\nplan_percent = 9", "`plan_percent` in [goal] is a limit; write it under [limits]", true),
        ] {
            let found = unknown(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].message.contains(expected), "{text}: {found:?}");
            assert_eq!(found[0].is_limit, is_limit, "{text}");
        }
    }

    #[test]
    fn every_key_that_a_section_is_read_into_is_known() {
        assert_eq!(fields_of::<AccountingConfig>(), ["on_compact"]);
        assert_eq!(fields_of::<AgentConfig>(), ["program", "permission_flags", "flags"]);
        for section in sections().into_iter().filter(|name| !["db", "agents", limits::SECTION].contains(name)) {
            let known = keys_of(section).unwrap_or_else(|| panic!("[{section}] is not checked"));
            assert!(!known.is_empty(), "{section}");
        }
        assert_eq!(unknown("db = 'x'\n[limits]\nanything = 1\n[runs]\ngrace_ms = 1\n"), []);
    }
}
