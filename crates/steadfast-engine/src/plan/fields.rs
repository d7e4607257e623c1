//! Reading the keys of a definition: each value as what it should be, with a fault and a fix where it is not, and a
//! warning for keys that nobody knows.

use steadfast_model::clock;
use steadfast_model::clock::Millis;

use super::fault::{At, Faults, did_you_mean};
use super::yaml::{Entry, Node, Yaml};

/// A text of a definition that is longer is a mistake; prompts are not read through this.
const LONGEST_TEXT: usize = 20_000;
const MOST_TEXTS: usize = 1_000;

/// A setting that can be left out, or switched off by `null` or `false`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Setting<T> {
    #[default]
    Absent,
    Off,
    On(T),
}

impl<T> Setting<T> {
    /// This, unless it was left out.
    pub(super) fn or(self, other: Self) -> Self {
        if matches!(self, Self::Absent) { other } else { self }
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

/// A value of a definition, its key and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    pub(super) key: &'a str,
    pub(super) node: &'a Node,
    pub(super) at: At,
}

/// The keys of one map.
pub(super) struct Fields<'a> {
    pub(super) at: At,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The keys of `node`, which `what` names in the fault if it is no map.
    pub(super) fn of(node: &'a Node, at: &At, what: &str, faults: &mut Faults) -> Option<Self> {
        let at = at.line(node.line);
        if let Yaml::Map(entries) = &node.value {
            return Some(Self { at, entries, asked: Vec::new() });
        }
        faults.error(&at, format!("{what} has to be keys with values"), "write `key: value` lines");
        None
    }

    /// The value of the first of these keys that is there; they are names for the same thing.
    pub(super) fn take(&mut self, names: &[&'static str], faults: &mut Faults) -> Option<Value<'a>> {
        self.asked.extend_from_slice(names);
        let mut found = self.entries.iter().filter(|entry| names.contains(&entry.key.as_str()));
        let first = found.next()?;
        for second in found {
            let what = format!("`{}` and `{}` say the same thing", first.key, second.key);
            faults.error(&self.at.line(second.line), what, format!("remove `{}`", second.key));
        }
        Some(Value { key: &first.key, node: &first.node, at: self.at.line(first.line) })
    }

    pub(super) fn text(&mut self, names: &[&'static str], faults: &mut Faults) -> Option<String> {
        self.take(names, faults)?.text(faults)
    }

    pub(super) fn truth(&mut self, name: &'static str, faults: &mut Faults) -> Option<bool> {
        self.take(&[name], faults)?.truth(faults)
    }

    pub(super) fn whole(&mut self, names: &[&'static str], least: u32, faults: &mut Faults) -> Option<u32> {
        self.take(names, faults)?.whole(least, faults)
    }

    /// Warns of the keys that nobody asked for.
    pub(super) fn finish(self, what: &str, faults: &mut Faults) {
        for entry in self.entries.iter().filter(|entry| !self.asked.contains(&entry.key.as_str())) {
            let key: String = entry.key.chars().take(80).collect();
            let meant = did_you_mean(&key, self.asked.iter().copied());
            let fix = if meant.is_empty() { "remove it".to_owned() } else { format!("{meant}Otherwise remove it") };
            faults.warning(&self.at.line(entry.line), format!("{what} has no key `{key}`: it is ignored"), fix);
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn is_off(&self) -> bool {
        matches!(self.node.value, Yaml::Null | Yaml::Bool(false))
    }

    /// `Off` for `null` and `false`, else what `read` makes of it.
    pub(super) fn setting<T>(self, read: impl FnOnce(Self) -> Option<T>) -> Setting<T> {
        if self.is_off() { Setting::Off } else { read(self).into() }
    }

    fn wrong(&self, faults: &mut Faults, expected: &str, fix: &str) {
        faults.error(&self.at, format!("`{}` has to be {expected}", self.key), fix);
    }

    fn scalar(&self) -> Option<String> {
        match &self.node.value {
            Yaml::Text(text) => Some(text.clone()),
            Yaml::Number(_, written) => Some(written.clone()),
            Yaml::Bool(truth) => Some(truth.to_string()),
            Yaml::Null | Yaml::List(_) | Yaml::Map(_) => None,
        }
    }

    /// A text that is not empty; `null` is none at all.
    pub(super) fn text(&self, faults: &mut Faults) -> Option<String> {
        if self.node.value == Yaml::Null {
            return None;
        }
        let text = self.scalar();
        match text {
            Some(text) if text.trim().is_empty() => self.wrong(faults, "a text", "write a text, or remove the key"),
            Some(text) if text.len() > LONGEST_TEXT => self.wrong(faults, "shorter", "shorten it"),
            Some(text) => return Some(text),
            None => self.wrong(faults, "a text", &format!("write `{}: TEXT`", self.key)),
        }
        None
    }

    /// Several texts: a list, or a single one.
    pub(super) fn texts(&self, faults: &mut Faults) -> Option<Vec<String>> {
        let Yaml::List(nodes) = &self.node.value else { return self.text(faults).map(|text| vec![text]) };
        if nodes.len() > MOST_TEXTS {
            self.wrong(faults, &format!("at most {MOST_TEXTS} texts"), "shorten the list");
            return None;
        }
        Some(self.nodes().filter_map(|value| value.text(faults)).collect())
    }

    /// The elements of a list; of anything else, itself.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (key, at, own) = (self.key, self.at.clone(), self.node);
        let nodes = match &own.value {
            Yaml::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(own),
        };
        nodes.iter().map(move |node| Value { key, node, at: at.line(node.line) })
    }

    pub(super) fn truth(&self, faults: &mut Faults) -> Option<bool> {
        let word = match &self.node.value {
            Yaml::Bool(truth) => return Some(*truth),
            Yaml::Null => return Some(false),
            Yaml::Text(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        };
        match word.as_str() {
            "yes" | "on" => Some(true),
            "no" | "off" => Some(false),
            _ => {
                self.wrong(faults, "true or false", &format!("write `{}: true` or remove it", self.key));
                None
            }
        }
    }

    pub(super) fn whole(&self, least: u32, faults: &mut Faults) -> Option<u32> {
        const MOST: u32 = 1_000_000;
        let number = match &self.node.value {
            Yaml::Number(number, _) => Some(*number),
            Yaml::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| number.fract() == 0.0);
        let whole = number.and_then(|number| (least..=MOST).contains(&as_u32(number)?).then(|| as_u32(number)));
        if whole.is_none() {
            let expected = format!("a whole number from {least} to {MOST}");
            self.wrong(faults, &expected, &format!("write for example `{}: {}`", self.key, least.max(5)));
        }
        whole.flatten()
    }

    /// A number of seconds, or a span such as `90s` or `2h 30m`.
    pub(super) fn span(&self, faults: &mut Faults) -> Option<Millis> {
        const MOST_SECONDS: f64 = 3_600.0 * 24.0 * 366.0;
        let read = match &self.node.value {
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            Yaml::Number(seconds, _) if (0.0..=MOST_SECONDS).contains(seconds) => Some((seconds * 1_000.0) as Millis),
            Yaml::Text(text) if text.trim() == "0" => Some(0),
            Yaml::Text(text) => clock::parse_duration(text).filter(|ms| *ms <= 366 * clock::DAY),
            _ => None,
        };
        if read.is_none() {
            self.wrong(faults, "a number of seconds or a span", &format!("write for example `{}: 90s`", self.key));
        }
        read
    }
}

fn as_u32(number: f64) -> Option<u32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (0.0..=f64::from(u32::MAX)).contains(&number).then_some(number as u32)
}
