//! YAML as a small tree in which every value has its line. Only this file uses the parser. Size, depth, number of nodes
//! and what aliases expand to are limited, because a file in a repository can be hostile.

use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Spanned};

use super::fault::Location;

pub(super) const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 24;
const MAX_NODES: usize = 20_000;

/// A value and the line on which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: Yaml,
    /// A number or text as it stands in the file: `1.10` is a version to people, and folded text has lost its lines.
    pub(super) written: String,
    /// The line on which `written` begins; for an alias, that of its anchor.
    pub(super) written_line: u32,
    span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<MapEntry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct MapEntry {
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) node: Node,
}

/// What is wrong with the text itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct YamlFault {
    line: u32,
    what: String,
}

/// Reads one document. Never panics, whatever the bytes.
pub(super) fn parse(bytes: &[u8]) -> Result<Node, YamlFault> {
    if bytes.len() > MAX_BYTES {
        return Err(YamlFault { line: 1, what: format!("the file is larger than {MAX_BYTES} bytes") });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        YamlFault { line: to_line(line as u64), what: "the file is not UTF-8 text".into() }
    })?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: 8,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    let node: Spanned<Yaml> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error, text))?;
    let mut node = Node::from(node);
    node.keep_as_written(text);
    Ok(node)
}

/// Reads a definition and reports a fault if it is not YAML.
pub(super) fn open(bytes: &[u8], at: &Location) -> Option<Node> {
    parse(bytes).map_err(|fault| at.line(fault.line).error(fault.what, "fix the YAML")).ok()
}

fn fault(error: &Error, text: &str) -> YamlFault {
    // The parser reports an unclosed quote on the line after the last one.
    let last = to_line(text.lines().count() as u64);
    let line = error.location().map_or(1, |location| to_line(location.line())).min(last);
    let what = error.to_string();
    let what = what.lines().next().unwrap_or_default();
    // Cut the line, which the fault has, and the names of the parser's settings.
    let what = what.split(" at line ").next().unwrap_or(what).split(", set DuplicateKeyPolicy").next().unwrap_or(what);
    YamlFault { line, what: format!("not valid YAML: {what}") }
}

fn to_line(line: u64) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

impl From<Spanned<Yaml>> for Node {
    fn from(spanned: Spanned<Yaml>) -> Self {
        let span = spanned.defined.span();
        let at = |bytes: Option<u64>| bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        let from = at(span.byte_offset());
        Self {
            line: to_line(spanned.referenced.line()),
            value: spanned.value,
            written: String::new(),
            written_line: to_line(spanned.defined.line()),
            span: from..from.saturating_add(at(span.byte_len())),
        }
    }
}

impl Node {
    fn keep_as_written(&mut self, source: &str) {
        match &mut self.value {
            Yaml::Number(_) | Yaml::Text(_) => {
                source.get(self.span.clone()).unwrap_or_default().trim_end().clone_into(&mut self.written);
            }
            Yaml::List(nodes) => nodes.iter_mut().for_each(|node| node.keep_as_written(source)),
            Yaml::Map(entries) => entries.iter_mut().for_each(|entry| entry.node.keep_as_written(source)),
            Yaml::Null | Yaml::Bool(_) => {}
        }
    }
}

/// Accepts any number: what is too large is infinite, and readers check the range.
macro_rules! visit_numbers {
    ($($visit:ident($type:ty))*) => {
        $(fn $visit<E>(self, value: $type) -> Result<Yaml, E> {
            Ok(Yaml::Number(value.to_string().parse().unwrap_or(f64::INFINITY)))
        })*
    };
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyYaml;
        impl<'de> Visitor<'de> for AnyYaml {
            type Value = Yaml;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("YAML")
            }

            visit_numbers! { visit_i64(i64) visit_u64(u64) visit_i128(i128) visit_u128(u128) visit_f64(f64) }

            fn visit_unit<E>(self) -> Result<Yaml, E> {
                Ok(Yaml::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
                Ok(Yaml::Bool(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
                Ok(Yaml::Text(value.to_owned()))
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
                while let Some((key, node)) = map.next_entry::<Spanned<String>, Spanned<Yaml>>()? {
                    entries.push(MapEntry { line: to_line(key.referenced.line()), key: key.value, node: node.into() });
                }
                Ok(Yaml::Map(entries))
            }
        }
        deserializer.deserialize_any(AnyYaml)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(source: &str) -> Vec<MapEntry> {
        let Yaml::Map(entries) = parse(source.as_bytes()).unwrap().value else { panic!("{source}") };
        entries
    }

    #[test]
    fn values_know_their_lines_and_numbers_how_they_were_written() {
        let source = "name: no\nversion: 1.10\ncount: 0x10\noff: ~\nyes: true\ntext: |\n  two\n  lines\nbig: 99999999999999999999999\n";
        let text = |value: &str| Yaml::Text(value.into());
        let expected = [
            ("name", 1, text("no"), "no"),
            ("version", 2, Yaml::Number(1.1), "1.10"),
            ("count", 3, Yaml::Number(16.0), "0x10"),
            ("off", 4, Yaml::Null, ""),
            ("yes", 5, Yaml::Bool(true), ""),
            ("text", 7, text("two\nlines\n"), "two\n  lines"),
            ("big", 9, Yaml::Number(1e23), "99999999999999999999999"),
        ];
        assert_eq!(entries(source).len(), expected.len());
        for (entry, (key, line, value, written)) in entries(source).into_iter().zip(expected) {
            assert_eq!((entry.key.as_str(), entry.node.line, entry.node.value), (key, line, value));
            assert_eq!(entry.node.written, written);
        }
    }

    #[test]
    fn hostile_files_are_refused_with_their_line() {
        let unfold = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","));
        let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", (1..9).map(unfold).collect::<String>());
        let many = format!("[{}]", "x,".repeat(MAX_NODES));
        for (source, line, what) in [
            (bomb.as_bytes(), 5, "alias replay limit exceeded"),
            ("[".repeat(100_000).as_bytes(), 1, "recursion limit exceeded"),
            ("- ".repeat(100_000).as_bytes(), 1, "Depth"),
            (many.as_bytes(), 1, "budget breached"),
            (b"a: 1\nb: \xff", 2, "not UTF-8"),
            (b"a: 1\nb: *missing", 2, "unknown anchor"),
            (b"&a [*a]", 1, "recursive references"),
            (b"a: 1\nb: 2\na: 3", 3, "duplicate mapping key: a"),
            (b"a: [1", 1, "unclosed bracket"),
            (b"a: 1\nb: 'x\n", 2, "quoted scalar"),
            (b"a: 1\nb: \"x\n\n", 3, "quoted scalar"),
            (b"a: 1\n---\nb: 2\n", 2, "Documents"),
            (vec![b'a'; MAX_BYTES + 1].as_slice(), 1, "larger than"),
        ] {
            let fault = parse(source).unwrap_err();
            assert_eq!(fault.line, line, "{fault:?}");
            assert!(fault.what.contains(what) && !fault.what.contains('\n'), "{fault:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn nothing_that_looks_like_yaml_makes_it_panic(text in "[a-c0-9:\\-\\[\\]{}&*!|>'\"#%@`,?~. \n\t<]{0,200}") {
            let _ = parse(text.as_bytes());
        }
    }
}
