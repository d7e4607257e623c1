//! YAML as a small tree in which every value knows its line. Only this file sees the parser. What people write is
//! bounded before it is read: size, depth, number of nodes and what aliases may unfold to, since a file in a
//! repository can be hostile.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Spanned};

use super::fault::{At, Faults};

/// Definitions are small; prompts are files of their own.
pub(super) const MOST_BYTES: usize = 1 << 20;
const MOST_DEPTH: usize = 24;
const MOST_NODES: usize = 20_000;

/// A value and the line on which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: Yaml,
    /// The template variables in a text, each with its line: folding and escapes leave nothing to count in the value.
    pub(super) variables: Vec<(String, u32)>,
    /// Where it stands in the text, in bytes.
    span: Option<(usize, usize)>,
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
    let node: Spanned<Yaml> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(&error, text))?;
    let mut node = Node::from(node);
    node.keep_as_written(text);
    Ok(node)
}

/// Reads a definition; what is wrong with its text is a fault of its file.
pub(super) fn open(bytes: &[u8], at: &At, faults: &mut Faults) -> Option<Node> {
    parse(bytes).map_err(|fault| faults.error(&at.line(fault.line), fault.what, "mend the YAML")).ok()
}

fn line_after(before: &[u8]) -> u32 {
    u32::try_from(before.split(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

fn fault(error: &Error, text: &str) -> YamlFault {
    // What has no end is missed behind the last line.
    let last = to_line(text.lines().count() as u64);
    let line = error.location().map_or(1, |location| to_line(location.line())).min(last);
    let what = error.to_string();
    let what = what.lines().next().unwrap_or_default();
    // The line is told apart, and the parser's own settings are nobody's business.
    let what = what.split(" at line ").next().unwrap_or(what).split(", set DuplicateKeyPolicy").next().unwrap_or(what);
    YamlFault { line, what: format!("not valid YAML: {what}") }
}

fn to_line(line: u64) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

impl From<Spanned<Yaml>> for Node {
    fn from(spanned: Spanned<Yaml>) -> Self {
        let span = spanned.defined.span();
        let at = |bytes: Option<u64>| bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let span = at(span.byte_offset()).zip(at(span.byte_len()));
        Self { line: to_line(spanned.referenced.line()), value: spanned.value, variables: Vec::new(), span }
    }
}

impl Node {
    /// A version `1.10` is a number to YAML and a text to people; and people look for variables where they wrote them.
    fn keep_as_written(&mut self, source: &str) {
        let span = self.span;
        let own = || span.and_then(|(from, length)| Some((from, source.get(from..from.checked_add(length)?)?)));
        match &mut self.value {
            Yaml::Number(_, written) => {
                if let Some((_, text)) = own() {
                    text.trim().clone_into(written);
                }
            }
            Yaml::Text(text) if text.contains("${") => {
                self.variables = own().map(|(from, text)| variables(source, from, text)).unwrap_or_default();
            }
            Yaml::List(nodes) => nodes.iter_mut().for_each(|node| node.keep_as_written(source)),
            Yaml::Map(entries) => entries.iter_mut().for_each(|entry| entry.node.keep_as_written(source)),
            Yaml::Null | Yaml::Bool(_) | Yaml::Text(_) => {}
        }
    }
}

/// The variables in a part of the source that begins at `from`, each with its line. One that is written `$${…}` is none.
fn variables(source: &str, from: usize, part: &str) -> Vec<(String, u32)> {
    let mut line = line_after(source.as_bytes().get(..from).unwrap_or_default());
    let mut found = Vec::new();
    for text in part.split('\n') {
        for (at, _) in
            text.match_indices("${").filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('$')))
        {
            let name = text.get(at + 2..).and_then(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned());
            found.extend(name.map(|name| (name, line)));
        }
        line = line.saturating_add(1);
    }
    found
}

fn number(value: &impl ToString) -> Yaml {
    let written = value.to_string();
    // Whoever asks for a number checks its range; what is too large for one is infinite.
    Yaml::Number(written.parse().unwrap_or(f64::INFINITY), written)
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
                Ok(number(&value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
                Ok(number(&value))
            }

            fn visit_i128<E>(self, value: i128) -> Result<Yaml, E> {
                Ok(number(&value))
            }

            fn visit_u128<E>(self, value: u128) -> Result<Yaml, E> {
                Ok(number(&value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
                Ok(number(&value))
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(line: u32, value: &str) -> (u32, Yaml) {
        (line, Yaml::Text(value.into()))
    }

    fn top(source: &str) -> Vec<(String, (u32, Yaml))> {
        let Yaml::Map(entries) = parse(source.as_bytes()).unwrap().value else { panic!("{source}") };
        entries.into_iter().map(|entry| (entry.key, (entry.node.line, entry.node.value))).collect()
    }

    #[test]
    fn values_know_their_lines_and_numbers_how_they_were_written() {
        let source = "name: no\nversion: 1.10\ncount: 0x10\noff: ~\nyes: true\ntext: |\n  two\n  lines\nbig: 99999999999999999999999\n";
        let number = |line, value, written: &str| (line, Yaml::Number(value, written.into()));
        let expected = [
            ("name", text(1, "no")),
            ("version", number(2, 1.1, "1.10")),
            ("count", number(3, 16.0, "0x10")),
            ("off", (4, Yaml::Null)),
            ("yes", (5, Yaml::Bool(true))),
            ("text", text(7, "two\nlines\n")),
            ("big", number(9, 1e23, "99999999999999999999999")),
        ];
        assert_eq!(top(source), expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn variables_have_the_line_on_which_they_are_written() {
        let source = "a: >\n  one\n  two\n\n  three ${FOLDED} $${KEPT}\nb: \"x\\n\\ny ${ESCAPED}\"\nc: |\n  one\n\n  two ${BLOCK} ${SAME}\n\
                      d: plain\n  over lines ${PLAIN}\ne: &here 'ü ${QUOTED}\n\n  ${AGAIN}'\nf: *here\n";
        let Yaml::Map(entries) = parse(source.as_bytes()).unwrap().value else { panic!("{source}") };
        let found: Vec<_> = entries.into_iter().flat_map(|entry| entry.node.variables).collect();
        let expected = [
            ("FOLDED", 5),
            ("ESCAPED", 6),
            ("BLOCK", 10),
            ("SAME", 10),
            ("PLAIN", 12),
            ("QUOTED", 13),
            ("AGAIN", 15),
            ("QUOTED", 13),
            ("AGAIN", 15),
        ];
        assert_eq!(found, expected.map(|(name, line)| (name.to_owned(), line)));
    }

    #[test]
    fn hostile_files_are_refused_with_their_line() {
        let unfold = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","));
        let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", (1..9).map(unfold).collect::<String>());
        let many = format!("[{}]", "x,".repeat(MOST_NODES));
        for (source, line, what) in [
            (bomb.as_bytes(), 5, "alias replay limit exceeded"),
            ("[".repeat(100_000).as_bytes(), 1, "recursion limit exceeded"),
            ("- ".repeat(100_000).as_bytes(), 1, "Depth"),
            (many.as_bytes(), 1, "budget breached"),
            (b"a: 1\nb: \xff", 2, "not UTF-8"),
            (b"a: 1\nb: *nobody", 2, "unknown anchor"),
            (b"&a [*a]", 1, "recursive references"),
            (b"a: 1\nb: 2\na: 3", 3, "duplicate mapping key: a"),
            (b"a: [1", 1, "unclosed bracket"),
            (b"a: 1\nb: 'x\n", 2, "quoted scalar"),
            (b"a: 1\nb: \"x\n\n", 3, "quoted scalar"),
            (b"a: 1\n---\nb: 2\n", 2, "Documents"),
            (vec![b'a'; MOST_BYTES + 1].as_slice(), 1, "larger than"),
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
