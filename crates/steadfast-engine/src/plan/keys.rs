//! Keys of definitions as tables. `keys!` lists the keys of one mapping, each with its type; a type reads one value and
//! reports a fault with a fix if it cannot. To add a key, add a line to its table, and a [`FromYaml`] type if none fits.

use steadfast_model::clock;
use steadfast_model::clock::Millis;

use super::fault::{Location, did_you_mean};
use super::yaml::{MapEntry, Node, Yaml};

/// A longer text is a mistake; prompts are not read through this.
const MAX_TEXT: usize = 20_000;
const MAX_TEXTS: usize = 1_000;

/// Defines a struct from a table of keys. A key has the name of its field, or the names after `=`, which are synonyms.
/// A field whose type is another table reads its keys from the same mapping.
macro_rules! keys {
    (@names $field:ident) => { &[stringify!($field)] };
    (@names $field:ident $($name:literal)+) => { &[$($name),+] };
    ($(#[$attribute:meta])* $table:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty $(= $name:literal $(| $synonym:literal)*)?,)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default)]
        pub(in crate::plan) struct $table {
            $($(#[$doc])* pub(in crate::plan) $field: $type,)*
        }

        impl $crate::plan::keys::Field for $table {
            fn read(keys: &mut $crate::plan::keys::Keys<'_>, _: &[&'static str]) -> Self {
                Self {
                    $($field: $crate::plan::keys::Field::read(
                        keys,
                        $crate::plan::keys::keys!(@names $field $($name $($synonym)*)?),
                    ),)*
                }
            }

            fn or(self, other: Self) -> Self {
                Self { $($field: $crate::plan::keys::Field::or(self.$field, other.$field),)* }
            }
        }
    };
}
pub(super) use keys;

/// A field of a table.
pub(super) trait Field: Default {
    /// Reads the key that has one of these names.
    fn read(keys: &mut Keys<'_>, names: &[&'static str]) -> Self;

    /// This, or `other` if the definition does not have the key.
    fn or(self, other: Self) -> Self;
}

/// A value of a key. `None` if it is `null`, or if a fault was reported.
pub(super) trait FromYaml: Sized {
    fn from_yaml(value: &Value<'_>) -> Option<Self>;
}

impl<T: FromYaml> Field for Option<T> {
    fn read(keys: &mut Keys<'_>, names: &[&'static str]) -> Self {
        T::from_yaml(&keys.take(names)?)
    }

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
        match self {
            Self::On(value) => Some(value),
            Self::Absent | Self::Off => None,
        }
    }

    pub(super) fn as_on(&self) -> Option<&T> {
        match self {
            Self::On(value) => Some(value),
            Self::Absent | Self::Off => None,
        }
    }
}

impl<T> From<Option<T>> for Setting<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::On)
    }
}

impl<T: FromYaml> Field for Setting<T> {
    fn read(keys: &mut Keys<'_>, names: &[&'static str]) -> Self {
        match keys.take(names) {
            None => Self::Absent,
            Some(value) if value.is_off() => Self::Off,
            Some(value) => T::from_yaml(&value).map_or(Self::Off, Self::On),
        }
    }

    fn or(self, other: Self) -> Self {
        if self.is_absent() { other } else { self }
    }
}

/// A key of other tools that changes nothing here.
#[derive(Debug, Clone, Default)]
pub(super) struct NoEffect;

impl Field for NoEffect {
    fn read(keys: &mut Keys<'_>, names: &[&'static str]) -> Self {
        if let Some(value) = keys.take(names) {
            value.at.warning(format!("`{}` has no effect", value.key), "remove it");
        }
        Self
    }

    fn or(self, _: Self) -> Self {
        self
    }
}

/// A value, its key and its line.
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

impl<'a> Keys<'a> {
    /// The value of the first entry with one of these names.
    fn take(&mut self, names: &[&'static str]) -> Option<Value<'a>> {
        self.known.extend_from_slice(names);
        let mut found = self.entries.iter().filter(|entry| names.contains(&entry.key.as_str()));
        let first = found.next()?;
        for second in found {
            let what = format!("`{}` and `{}` are the same key", first.key, second.key);
            self.at.line(second.line).error(what, format!("remove `{}`", second.key));
        }
        Some(Value::of_entry(first, &self.at))
    }

    fn warn_of_unknown(&self, what: &str) {
        for entry in self.entries.iter().filter(|entry| !self.known.contains(&entry.key.as_str())) {
            let key: String = entry.key.chars().take(80).collect();
            let meant = did_you_mean(&key, self.known.iter().copied());
            let fix = if meant.is_empty() { "remove it".to_owned() } else { format!("{meant}Otherwise remove it") };
            self.at.line(entry.line).warning(format!("{what} has no key `{key}`: it is ignored"), fix);
        }
    }
}

impl<'a> Value<'a> {
    /// A whole document.
    pub(super) fn document(node: &'a Node, at: &Location) -> Self {
        Self { key: "", node, at: at.clone() }
    }

    pub(super) fn of_entry(entry: &'a MapEntry, at: &Location) -> Self {
        Self { key: &entry.key, node: &entry.node, at: at.line(entry.line) }
    }

    /// Reads a mapping by a table; `what` names it in faults.
    pub(super) fn table<T: Field>(&self, what: &str) -> Option<T> {
        let at = self.at.line(self.node.line);
        let Yaml::Map(entries) = &self.node.value else {
            return at.refuse(format!("{what} has to be keys with values"), "write `key: value` lines");
        };
        let mut keys = Keys { at, entries, known: Vec::new() };
        let table = T::read(&mut keys, &[]);
        keys.warn_of_unknown(what);
        Some(table)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.node.value, Yaml::Map(_))
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self.node.value, Yaml::Null | Yaml::Bool(false))
    }

    fn wrong<T>(&self, expected: &str, fix: &str) -> Option<T> {
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

    /// An amount that `parse` reads from text, such as `5M`.
    pub(super) fn amount(&self, parse: impl FnOnce(&str) -> Option<i64>, example: &str) -> Option<i64> {
        let amount = String::from_yaml(self).and_then(|text| parse(text.trim()));
        let fix = format!("write for example `{}: {example}`", self.key);
        amount.or_else(|| self.at.refuse(format!("`{}` is not an amount", self.key), fix))
    }
}

/// A text that is not empty.
impl FromYaml for String {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
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
}

/// A list of texts, or a single one.
impl FromYaml for Vec<String> {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        match &value.node.value {
            Yaml::List(nodes) if nodes.len() > MAX_TEXTS => {
                value.wrong(&format!("at most {MAX_TEXTS} texts"), "shorten the list")
            }
            Yaml::List(_) => Some(value.elements().filter_map(|element| String::from_yaml(&element)).collect()),
            _ => String::from_yaml(value).map(|text| vec![text]),
        }
    }
}

impl FromYaml for bool {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        match &value.node.value {
            Yaml::Bool(truth) => Some(*truth),
            Yaml::Null => Some(false),
            Yaml::Text(text) if ["yes", "on"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(true),
            Yaml::Text(text) if ["no", "off"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(false),
            _ => value.wrong("true or false", &format!("write `{}: true` or remove it", value.key)),
        }
    }
}

/// A value with the location of its key.
#[derive(Debug, Clone)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) at: Location,
}

impl<T: FromYaml> FromYaml for Located<T> {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        Some(Self { value: T::from_yaml(value)?, at: value.at.clone() })
    }
}

/// A whole number that is at least `LEAST`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count<const LEAST: u32>(pub(super) u32);

impl<const LEAST: u32> FromYaml for Count<LEAST> {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        const MAX: u32 = 1_000_000;
        let number = match &value.node.value {
            Yaml::Number(number) => Some(*number),
            Yaml::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        let range = f64::from(LEAST)..=f64::from(MAX);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        let count = number.filter(|number| number.fract() == 0.0 && range.contains(number)).map(|number| number as u32);
        count.map(Self).or_else(|| {
            let fix = format!("write for example `{}: {}`", value.key, LEAST.max(5));
            value.wrong(&format!("a whole number from {LEAST} to {MAX}"), &fix)
        })
    }
}

/// A number of seconds, or a duration such as `90s` or `2h 30m`; 0 for `null` and `false`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay(pub(super) Millis);

impl FromYaml for Delay {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
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
        read.map(Self).or_else(|| value.wrong("a number of seconds or a duration", &fix()))
    }
}

/// A time limit; `null`, `false` and 0 mean none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeout(pub(super) Millis);

impl FromYaml for Timeout {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        /// Longer than anything runs, and far from overflowing.
        const NONE_MS: Millis = 365 * clock::DAY;
        Delay::from_yaml(value).map(|Delay(ms)| Self(if ms == 0 { NONE_MS } else { ms }))
    }
}
