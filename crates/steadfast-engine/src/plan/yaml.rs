//! YAML as a small tree in which every value knows its line. Only this file sees the parser. What people write is
//! bounded before it is read: size, depth, number of nodes and what aliases may unfold to, since a file in a
//! repository can be hostile.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Spanned};

/// Definitions are small; prompts are files of their own.
pub(super) const MOST_BYTES: usize = 1 << 20;
const MOST_DEPTH: usize = 24;
const MOST_NODES: usize = 20_000;

/// A value and the line on which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: Yaml,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    Null,
    Bool(bool),
    /// A number, as it was written.
    Number(f64, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) node: Node,
}

/// What is wrong with the text itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct YamlFault {
    pub(super) line: u32,
    pub(super) what: String,
}

/// Reads one document. Never panics, whatever the bytes.
pub(super) fn parse(bytes: &[u8]) -> Result<Node, YamlFault> {
    if bytes.len() > MOST_BYTES {
        return Err(YamlFault { line: 1, what: format!("the file is larger than {MOST_BYTES} bytes") });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        YamlFault { line: line_after(before), what: "the file is not UTF-8 text".into() }
    })?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MOST_DEPTH,
            flow_nesting_limit: MOST_DEPTH,
            max_nodes: MOST_NODES,
            max_events: 4 * MOST_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_NODES,
            max_replay_stack_depth: 8,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    let node: Spanned<Yaml> = serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error))?;
    Ok(Node::from(node))
}

fn line_after(before: &[u8]) -> u32 {
    u32::try_from(before.iter().filter(|byte| **byte == b'\n').count()).map_or(u32::MAX, |lines| lines + 1)
}

fn fault(error: &Error) -> YamlFault {
    let line = error.location().map_or(1, |location| to_line(location.line()));
    let what = error.to_string();
    let what = what.lines().next().unwrap_or("not YAML").to_owned();
    YamlFault { line, what: format!("not valid YAML: {what}") }
}

fn to_line(line: u64) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

impl From<Spanned<Yaml>> for Node {
    fn from(spanned: Spanned<Yaml>) -> Self {
        Self { line: to_line(spanned.referenced.line()), value: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Yaml;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("YAML")
            }

            fn visit_unit<E>(self) -> Result<Yaml, E> {
                Ok(Yaml::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
                Ok(Yaml::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
                #[expect(clippy::cast_precision_loss, reason = "whoever asks for a number checks its range")]
                let number = value as f64;
                Ok(Yaml::Number(number, value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
                #[expect(clippy::cast_precision_loss, reason = "whoever asks for a number checks its range")]
                let number = value as f64;
                Ok(Yaml::Number(number, value.to_string()))
            }

            fn visit_i128<E>(self, value: i128) -> Result<Yaml, E> {
                #[expect(clippy::cast_precision_loss, reason = "whoever asks for a number checks its range")]
                let number = value as f64;
                Ok(Yaml::Number(number, value.to_string()))
            }

            fn visit_u128<E>(self, value: u128) -> Result<Yaml, E> {
                #[expect(clippy::cast_precision_loss, reason = "whoever asks for a number checks its range")]
                let number = value as f64;
                Ok(Yaml::Number(number, value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
                Ok(Yaml::Number(value, value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
                Ok(Yaml::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> Result<Yaml, E> {
                Ok(Yaml::Text(value))
            }

            fn visit_bytes<E>(self, value: &[u8]) -> Result<Yaml, E> {
                Ok(Yaml::Text(String::from_utf8_lossy(value).into_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Yaml, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = list.next_element::<Spanned<Yaml>>()? {
                    nodes.push(Node::from(node));
                }
                Ok(Yaml::List(nodes))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
                let mut entries = Vec::new();
                while let Some(key) = map.next_key::<Spanned<String>>()? {
                    let node = Node::from(map.next_value::<Spanned<Yaml>>()?);
                    entries.push(Entry { line: to_line(key.referenced.line()), key: key.value, node });
                }
                Ok(Yaml::Map(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod probe {
    use super::*;
    #[test]
    fn probe() {
        for text in [
            "",
            "a: 1\nb:\n  - x\n  - {c: no, d: 1.10, e: ~, f: \"1\"}\ng: |\n  two\n  lines\n? [1, 2]\n: x",
            "a: &x {k: 1}\nb: *x\nc:\n  <<: *x\n  z: 1\n",
            "a: 1\na: 2\n",
            "a: [",
            "x: !!binary aGk=\n",
            "---\na: 1\n---\nb: 2\n",
            "1: x\ntrue: y\n",
            "a: 0x10\nb: 1e3\nc: 99999999999999999999999\nd: .inf\ne: 2024-01-01\nf: 1_000\n",
            "just text",
            "a:\tb\n\tc: d",
            "\u{feff}a: 1",
            "name: x\n",
        ] {
            println!("{text:?}\n  => {:?}", parse(text.as_bytes()));
        }
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
            + &(1..9)
                .map(|n| {
                    format!(
                        "a{n}: &a{n} [{}]\n",
                        vec![format!("*a{}", if n == 1 { String::new() } else { (n - 1).to_string() }); 9].join(",")
                    )
                })
                .collect::<String>();
        println!("{:?}", parse(bomb.as_bytes()).err());
        println!("{:?}", parse("[".repeat(100_000).as_bytes()).err());
        println!("{:?}", parse("- ".repeat(100_000).as_bytes()).err());
        println!("{:?}", parse(&[0xff, 0xfe, b'a']).err());
        println!("{:?}", parse("a: *nope".as_bytes()).err());
        println!("{:?}", parse("&a [*a]".as_bytes()));
    }
}
