//! Keys of definitions as tables. `keys!` lists the keys of one mapping, each with its type and its reader; a reader turns
//! one value into that type, or reports a fault with a fix. To add a key, add a line to its table.

use steadfast_model::clock::{self, Millis};

use super::fault::{Location, did_you_mean};
use super::yaml::{MapEntry, Node, Yaml};

/// A longer text is a mistake; prompts are not read through this.
const MAX_TEXT: usize = 20_000;
const MAX_TEXTS: usize = 1_000;

/// Keys of other tools, and what they are called here.
const FOREIGN: [(&str, &str); 13] = [
    ("if", "when"),
    ("condition", "when"),
    ("depends_on", "needs"),
    ("dependencies", "needs"),
    ("after", "needs"),
    ("retry", "retries"),
    ("max_retries", "retries"),
    ("environment", "env"),
    ("secrets", "env"),
    ("continue_on_error", "on_fail"),
    ("allow_failure", "on_fail"),
    ("approval", "approve"),
    ("outputs", "artifacts"),
];

/// Defines a struct from a table of `field: type = reader("key" | "synonym")`. A field without a reader is another table
/// that reads its keys from the same mapping.
macro_rules! keys {
    (@read $keys:ident) => { $crate::plan::keys::KeyTable::read($keys) };
    (@read $keys:ident $reader:ident $($key:literal)+) => {
        $crate::plan::keys::Slot::fill($keys.take(&[$($key),+]), $reader)
    };
    ($(#[$attribute:meta])* $table:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty $(= $reader:ident($key:literal $(| $synonym:literal)*))?,)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default)]
        pub(in crate::plan) struct $table {
            $($(#[$doc])* pub(in crate::plan) $field: $type,)*
        }

        impl $crate::plan::keys::KeyTable for $table {
            fn read(keys: &mut $crate::plan::keys::Keys<'_>) -> Self {
                Self { $($field: $crate::plan::keys::keys!(@read keys $($reader $key $($synonym)*)?),)* }
            }
        }

        impl $crate::plan::keys::Inherit for $table {
            fn or(self, other: Self) -> Self {
                Self { $($field: $crate::plan::keys::Inherit::or(self.$field, other.$field),)* }
            }
        }
    };
}
pub(super) use keys;

pub(super) trait KeyTable: Sized {
    fn read(keys: &mut Keys<'_>) -> Self;
}

pub(super) trait Inherit {
    /// This, with what it does not set from `other`.
    fn or(self, other: Self) -> Self;
}

/// Holds the value of one key. Readers return `None` after a fault, and for `null` where that means nothing.
pub(super) trait Slot<T> {
    fn fill(value: Option<Value<'_>>, read: impl FnOnce(&Value<'_>) -> Option<T>) -> Self;
}

impl<T> Slot<T> for Option<T> {
    fn fill(value: Option<Value<'_>>, read: impl FnOnce(&Value<'_>) -> Option<T>) -> Self {
        read(&value?)
    }
}

impl<T> Inherit for Option<T> {
    fn or(self, other: Self) -> Self {
        self.or(other)
    }
}

/// A setting that a definition can leave out, or switch off with `null` or `false`. A value with a fault is off.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Setting<T> {
    #[default]
    Absent,
    Off,
    On(T),
}

impl<T> Setting<T> {
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(super) fn on(self) -> Option<T> {
        if let Self::On(value) = self { Some(value) } else { None }
    }

    pub(super) fn as_on(&self) -> Option<&T> {
        if let Self::On(value) = self { Some(value) } else { None }
    }
}

impl<T> From<Option<T>> for Setting<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::On)
    }
}

impl<T> Slot<T> for Setting<T> {
    fn fill(value: Option<Value<'_>>, read: impl FnOnce(&Value<'_>) -> Option<T>) -> Self {
        match value {
            None => Self::Absent,
            Some(value) if value.is_off() => Self::Off,
            Some(value) => read(&value).map_or(Self::Off, Self::On),
        }
    }
}

impl<T> Inherit for Setting<T> {
    fn or(self, other: Self) -> Self {
        if self.is_absent() { other } else { self }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    pub(super) key: &'a str,
    pub(super) node: &'a Node,
    pub(super) at: Location,
}

/// The entries of one mapping.
pub(super) struct Keys<'a> {
    at: Location,
    entries: &'a [MapEntry],
    /// The names asked for so far.
    known: Vec<&'static str>,
}

#[cfg(test)]
impl Keys<'_> {
    /// A mapping without entries, to see which keys a table asks for.
    pub(super) fn empty() -> Self {
        Self { at: super::fault::Faults::default().file(""), entries: &[], known: Vec::new() }
    }

    pub(super) fn known(&self) -> &[&'static str] {
        &self.known
    }
}

impl<'a> Keys<'a> {
    /// The value of the first entry with one of these names.
    pub(super) fn take(&mut self, names: &[&'static str]) -> Option<Value<'a>> {
        self.known.extend_from_slice(names);
        let mut found = self.entries.iter().filter(|entry| names.contains(&entry.key.as_str()));
        let first = found.next()?;
        for second in found {
            let what = format!("`{}` and `{}` are the same key", first.key, second.key);
            self.at.line(second.line).error(what, format!("remove `{}`", second.key));
        }
        Some(Value::of_entry(first, &self.at))
    }

    /// A key that means nothing here was meant to do something, so it is not skipped.
    fn refuse_unknown(&self, what: &str) {
        for entry in self.entries.iter().filter(|entry| !self.known.contains(&entry.key.as_str())) {
            let key: String = entry.key.chars().take(80).collect();
            let other = FOREIGN.iter().find(|(foreign, own)| *foreign == key && self.known.contains(own));
            let meant = match other {
                Some((_, own)) => format!("the key is `{own}` here. "),
                None => did_you_mean(&key, self.known.iter().copied()),
            };
            let fix = if meant.is_empty() { "remove it".to_owned() } else { format!("{meant}Otherwise remove it") };
            self.at.line(entry.line).error(format!("{what} has no key `{key}`"), fix);
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn document(node: &'a Node, at: &Location) -> Self {
        Self { key: "", node, at: at.clone() }
    }

    pub(super) fn of_entry(entry: &'a MapEntry, at: &Location) -> Self {
        Self { key: &entry.key, node: &entry.node, at: at.line(entry.line) }
    }

    /// Reads a mapping by a table; `what` names it in faults.
    pub(super) fn table<T: KeyTable>(&self, what: &str) -> Option<T> {
        let at = self.at.line(self.node.line);
        let Yaml::Map(entries) = &self.node.value else {
            return at.refuse(format!("{what} has to be keys with values"), "write `key: value` lines");
        };
        let mut keys = Keys { at, entries, known: Vec::new() };
        let table = T::read(&mut keys);
        keys.refuse_unknown(what);
        Some(table)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.node.value, Yaml::Map(_))
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self.node.value, Yaml::Null | Yaml::Bool(false))
    }

    pub(super) fn wrong<T>(&self, expected: &str, fix: &str) -> Option<T> {
        self.at.refuse(format!("`{}` has to be {expected}", self.key), fix)
    }

    /// The elements of a list, or the value itself.
    pub(super) fn elements(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (key, at, own) = (self.key, self.at.clone(), self.node);
        let nodes = match &own.value {
            Yaml::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(own),
        };
        nodes.iter().map(move |node| Value { key, node, at: at.line(node.line) })
    }
}

/// A text that is not empty.
pub(super) fn text(value: &Value<'_>) -> Option<String> {
    let text = match &value.node.value {
        Yaml::Null => return None,
        Yaml::Text(text) => text.clone(),
        Yaml::Number(_) => value.node.written.clone(),
        Yaml::Bool(truth) => truth.to_string(),
        Yaml::List(_) | Yaml::Map(_) => return value.wrong("a text", &format!("write `{}: TEXT`", value.key)),
    };
    match text {
        text if text.trim().is_empty() => value.wrong("a text", "write a text, or remove the key"),
        text if text.len() > MAX_TEXT => value.wrong("shorter", "shorten it"),
        text => Some(text),
    }
}

/// A list of texts, or a single one.
pub(super) fn texts(value: &Value<'_>) -> Option<Vec<String>> {
    match &value.node.value {
        Yaml::List(nodes) if nodes.len() > MAX_TEXTS => {
            value.wrong(&format!("at most {MAX_TEXTS} texts"), "shorten the list")
        }
        Yaml::List(_) => Some(value.elements().filter_map(|element| text(&element)).collect()),
        _ => text(value).map(|text| vec![text]),
    }
}

pub(super) type LocatedText = (String, Location);

pub(super) fn located_text(value: &Value<'_>) -> Option<LocatedText> {
    Some((text(value)?, value.at.clone()))
}

pub(super) fn truth(value: &Value<'_>) -> Option<bool> {
    match &value.node.value {
        Yaml::Bool(truth) => Some(*truth),
        Yaml::Null => Some(false),
        Yaml::Text(text) if ["yes", "on"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(true),
        Yaml::Text(text) if ["no", "off"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(false),
        _ => value.wrong("true or false", &format!("write `{}: true` or remove it", value.key)),
    }
}

pub(super) fn count(value: &Value<'_>) -> Option<u32> {
    count_from(1, value)
}

pub(super) fn count_or_zero(value: &Value<'_>) -> Option<u32> {
    count_from(0, value)
}

fn count_from(least: u32, value: &Value<'_>) -> Option<u32> {
    const MAX: u32 = 1_000_000;
    let number = match &value.node.value {
        Yaml::Number(number) => Some(*number),
        Yaml::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let range = f64::from(least)..=f64::from(MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    let count = number.filter(|number| number.fract() == 0.0 && range.contains(number)).map(|number| number as u32);
    let fix = || format!("write for example `{}: {}`", value.key, least.max(5));
    count.or_else(|| value.wrong(&format!("a whole number from {least} to {MAX}"), &fix()))
}

/// A number of seconds, or a duration such as `90s` or `2h 30m`; 0 for `null` and `false`.
pub(super) fn duration(value: &Value<'_>) -> Option<Millis> {
    const MAX_SECONDS: f64 = 3_600.0 * 24.0 * 366.0;
    let read = match &value.node.value {
        Yaml::Null | Yaml::Bool(false) => Some(0),
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        Yaml::Number(seconds) if (0.0..=MAX_SECONDS).contains(seconds) => Some((seconds * 1_000.0) as Millis),
        Yaml::Text(text) if text.trim() == "0" => Some(0),
        Yaml::Text(text) => clock::parse_duration(text).filter(|ms| *ms <= 366 * clock::DAY),
        _ => None,
    };
    let fix = || format!("write for example `{}: 90s`", value.key);
    read.or_else(|| value.wrong("a number of seconds or a duration", &fix()))
}

/// A time limit; `null`, `false` and 0 mean none.
pub(super) fn timeout(value: &Value<'_>) -> Option<Millis> {
    /// Longer than anything runs, and far from overflowing.
    const NONE_MS: Millis = 365 * clock::DAY;
    duration(value).map(|ms| if ms == 0 { NONE_MS } else { ms })
}
