//! `[statusline]`: what the status line shows, and in which order.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use strum::{Display, EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

use super::keys::did_you_mean;

#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct StatuslineConfig {
    /// Empty for the line about the goal alone.
    #[serde(deserialize_with = "segments")]
    pub segments: Vec<Segment>,
}

/// One part of the status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Segment {
    /// The goal's status, tokens, turns and time.
    Goal,
    /// How much of the limit that comes first is used.
    Bar,
    /// How much of the plan's windows is used.
    Plan,
    /// How much of the model's context window is used.
    Context,
    /// What was spent today, and the cap of the day.
    Today,
}

impl Segment {
    /// The segment of a name, or what is wrong with it.
    pub fn parse(name: &str) -> Result<Self, String> {
        let name = name.trim();
        name.parse().map_err(|_| {
            let known: Vec<&str> = Self::iter().map(<&str>::from).collect();
            format!("unknown segment `{name}`{} It knows {}", did_you_mean(name, &known), known.join(", "))
        })
    }
}

fn segments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Segment>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)
        .map_err(|_| D::Error::custom("`segments` is a list, such as [\"goal\", \"bar\", \"plan\"]"))?;
    names.iter().map(|name| Segment::parse(name)).collect::<Result<_, _>>().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn statusline(text: &str) -> Result<Vec<Segment>, String> {
        let read = toml::from_str::<Config>(&format!("[statusline]\n{text}\n"));
        read.map(|config| config.statusline.segments).map_err(|error| error.to_string())
    }

    #[test]
    fn segments_are_read_in_their_order_and_a_mistyped_one_is_named() {
        assert_eq!(statusline("").unwrap(), []);
        assert_eq!(statusline("segments = ['bar', 'goal']").unwrap(), [Segment::Bar, Segment::Goal]);
        for (text, expected) in [
            (
                "segments = ['gaol']",
                "unknown segment `gaol`; did you mean `goal`? It knows goal, bar, plan, context, today",
            ),
            ("segments = 'goal'", "`segments` is a list, such as"),
            ("segments = [1]", "`segments` is a list, such as"),
        ] {
            let error = statusline(text).unwrap_err();
            assert!(error.contains(expected) && error.contains("line 2"), "{text}: {error}");
        }
    }
}
