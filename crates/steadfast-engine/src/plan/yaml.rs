//! YAML as a small tree in which every value has its line. Only this file uses the parser. Size, depth, number of nodes
//! and what aliases expand to are limited, because a file in a repository can be hostile.

mod plain;

use std::collections::{HashMap, HashSet};

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::fault::Location;

pub(super) const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 24;
/// With those that aliases repeat.
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
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    Null,
    Bool(bool),
    /// What is too large is infinite; readers check the range.
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
    let source = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        YamlFault { line: to_line(line), what: "the file is not UTF-8 text".into() }
    })?;
    TreeBuilder::new(source).document().map_err(|fault| {
        // The parser reports an unclosed quote on the line after the last one.
        let last = to_line(source.lines().count());
        YamlFault { line: fault.line.min(last), what: format!("not valid YAML: {}", fault.what) }
    })
}

/// Reads a definition and reports a fault if it is not YAML.
pub(super) fn open(bytes: &[u8], at: &Location) -> Option<Node> {
    parse(bytes).map_err(|fault| at.line(fault.line).error(fault.what, "fix the YAML")).ok()
}

fn to_line(line: usize) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

fn fault(span: Span, what: impl Into<String>) -> YamlFault {
    YamlFault { line: to_line(span.start.line()), what: what.into() }
}

impl From<ScanError> for YamlFault {
    fn from(error: ScanError) -> Self {
        let what = match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(),
            _ => error.info(),
        };
        Self { line: to_line(error.marker().line()), what }
    }
}

type Parsed<'s> = (Event<'s>, Span);

/// Makes a tree of the parser's events.
struct TreeBuilder<'s> {
    events: Parser<'s, StrInput<'s>>,
    source: &'s str,
    /// Finished nodes that have an anchor.
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'s> TreeBuilder<'s> {
    fn new(source: &'s str) -> Self {
        let mut options = Options::default();
        (options.flow_nesting_limit, options.block_nesting_limit) = (MAX_DEPTH, MAX_DEPTH);
        let events = Parser::new_from_str_with_options(source, options);
        Self { events, source, anchors: HashMap::new(), nodes: 0 }
    }

    fn next(&mut self) -> Result<Parsed<'s>, YamlFault> {
        match self.events.next_event() {
            Some(found) => Ok(found?),
            None => Err(YamlFault { line: u32::MAX, what: "the file ends in the middle of a value".into() }),
        }
    }

    fn document(&mut self) -> Result<Node, YamlFault> {
        let mut root = None;
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(root.unwrap_or_else(|| Node::at(1, Yaml::Null))),
                (Event::DocumentStart(..), span) if root.is_some() => {
                    return Err(fault(span, "there is more than one document"));
                }
                (Event::DocumentStart(..), _) => {
                    let first = self.next()?;
                    root = Some(self.node(first, 0)?);
                }
                (_, span) => return Err(fault(span, "a value stands outside of the document")),
            }
        }
    }

    /// The node that begins with this event.
    fn node(&mut self, (event, span): Parsed<'s>, depth: usize) -> Result<Node, YamlFault> {
        self.count(1, span)?;
        let (value, anchor) = match event {
            Event::Alias(id) => return self.repeated(id, span),
            Event::Scalar(text, style, anchor, tag) => (scalar(&text, style, tag.as_deref()), anchor),
            Event::SequenceStart(_, anchor, _) => (Yaml::List(self.list(depth_below(depth, span)?)?), anchor),
            Event::MappingStart(_, anchor, _) => (Yaml::Map(self.map(depth_below(depth, span)?)?), anchor),
            _ => return Err(fault(span, "a value is missing")),
        };
        let mut node = Node::at(to_line(span.start.line()), value);
        if matches!(node.value, Yaml::Number(_) | Yaml::Text(_)) {
            span.slice(self.source).unwrap_or_default().trim_end().clone_into(&mut node.written);
        }
        // The parser counts anchors from 1.
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, YamlFault> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(nodes),
                item => nodes.push(self.node(item, depth)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<MapEntry>, YamlFault> {
        let (mut entries, mut keys, mut merged) = (Vec::new(), HashSet::new(), Vec::new());
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(key, ScalarStyle::Plain, _, None), span) if key == "<<" => {
                    let value = self.next()?;
                    merged.extend(self.merged(value, span, depth)?);
                    continue;
                }
                (Event::Scalar(key, style, anchor, tag), span) => {
                    let text = key.to_string();
                    let key = self.node((Event::Scalar(key, style, anchor, tag), span), depth)?;
                    if key.value == Yaml::Null {
                        return Err(fault(span, "a key is missing"));
                    }
                    if !keys.insert(text.clone()) {
                        return Err(fault(span, format!("duplicate mapping key: {text}")));
                    }
                    (text, key.line)
                }
                (_, span) => return Err(fault(span, "a key has to be a word")),
            };
            let value = self.next()?;
            entries.push(MapEntry { key, line, node: self.node(value, depth)? });
        }
        // Own keys come before merged ones, and earlier merged ones before later ones.
        entries.extend(merged.into_iter().filter(|entry: &MapEntry| keys.insert(entry.key.clone())));
        Ok(entries)
    }

    /// The entries that `<<: VALUE` brings.
    fn merged(&mut self, value: Parsed<'s>, at: Span, depth: usize) -> Result<Vec<MapEntry>, YamlFault> {
        let maps = match self.node(value, depth)? {
            Node { value: Yaml::List(maps), .. } => maps,
            Node { value: Yaml::Null, .. } => Vec::new(),
            map => vec![map],
        };
        let mut entries = Vec::new();
        for map in maps {
            let Yaml::Map(found) = map.value else { return Err(fault(at, "`<<` needs keys with values")) };
            entries.extend(found);
        }
        Ok(entries)
    }

    /// What an alias stands for, with the line of the alias.
    fn repeated(&mut self, id: usize, span: Span) -> Result<Node, YamlFault> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(fault(span, "an alias stands inside of what it repeats"));
        };
        let mut node = node.clone();
        self.count(node.count(), span)?;
        node.set_line(to_line(span.start.line()));
        Ok(node)
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), YamlFault> {
        self.nodes += more;
        if self.nodes > MAX_NODES {
            return Err(fault(span, format!("the file has more than {MAX_NODES} values, with those of aliases")));
        }
        Ok(())
    }
}

fn depth_below(depth: usize, span: Span) -> Result<usize, YamlFault> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(fault(span, too_deep())) }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Yaml {
    // Tags of applications mean nothing here.
    let is_plain = match tag.and_then(Tag::core_suffix) {
        None => style == ScalarStyle::Plain,
        Some(name) => name != "str",
    };
    if is_plain { plain::value(text) } else { Yaml::Text(text.to_owned()) }
}

impl Node {
    fn at(line: u32, value: Yaml) -> Self {
        Self { line, value, written: String::new(), written_line: line }
    }

    fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match &self.value {
            Yaml::List(nodes) => Box::new(nodes.iter()),
            Yaml::Map(entries) => Box::new(entries.iter().map(|entry| &entry.node)),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn count(&self) -> usize {
        1 + self.children().map(Self::count).sum::<usize>()
    }

    fn set_line(&mut self, line: u32) {
        self.line = line;
        match &mut self.value {
            Yaml::List(nodes) => nodes.iter_mut().for_each(|node| node.set_line(line)),
            Yaml::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.line = line;
                entry.node.set_line(line);
            }),
            _ => {}
        }
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
    fn aliases_repeat_values_with_the_line_of_the_alias() {
        let source = "&k key: &v\n  a: 1\n  b: [x, *k]\nsame: *v\nmore:\n  <<: [*v, {c: 3, a: 9}]\n  b: own\n";
        let lines = |entries: &[MapEntry]| -> Vec<(String, u32)> {
            entries.iter().map(|entry| (entry.key.clone(), entry.line)).collect()
        };
        let in_lines = |expected: &[(&str, u32)]| -> Vec<(String, u32)> {
            expected.iter().map(|(key, line)| ((*key).to_owned(), *line)).collect()
        };
        let found = entries(source);
        assert_eq!(lines(&found), in_lines(&[("key", 1), ("same", 4), ("more", 5)]));
        let map = |node: &Node| {
            let Yaml::Map(entries) = &node.value else { panic!("{node:?}") };
            entries.clone()
        };
        let (first, again, merged) = (map(&found[0].node), map(&found[1].node), map(&found[2].node));
        let Yaml::List(list) = &first[1].node.value else { panic!("{first:?}") };
        assert_eq!((&list[1].value, list[1].line, list[1].written_line), (&Yaml::Text("key".into()), 3, 1));
        assert_eq!(lines(&again), in_lines(&[("a", 4), ("b", 4)]));
        assert_eq!(again[0].node.value, Yaml::Number(1.0));
        assert_eq!(lines(&merged), in_lines(&[("b", 7), ("a", 6), ("c", 6)]));
        assert_eq!(merged[1].node.value, Yaml::Number(1.0));
    }

    #[test]
    fn hostile_files_are_refused_with_their_line() {
        let unfold = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","));
        let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", (1..9).map(unfold).collect::<String>());
        let many = format!("[{}]", "x,".repeat(MAX_NODES));
        for (source, line, what) in [
            (bomb.as_bytes(), 5, "more than 20000 values, with those of aliases"),
            ("[".repeat(100_000).as_bytes(), 1, "nested deeper than 24 levels"),
            ("- ".repeat(100_000).as_bytes(), 1, "nested deeper than 24 levels"),
            (many.as_bytes(), 1, "more than 20000 values"),
            (b"a: 1\nb: \xff", 2, "not UTF-8"),
            (b"a: 1\nb: *missing", 2, "unknown anchor"),
            (b"&a [*a]", 1, "an alias stands inside of what it repeats"),
            (b"a: 1\nb: 2\na: 3", 3, "duplicate mapping key: a"),
            (b"<<: 1", 1, "`<<` needs keys with values"),
            (b"a: 1\n: 2", 2, "a key is missing"),
            (b"[a]: 1", 1, "a key has to be a word"),
            (b"a: [1", 1, "unclosed bracket"),
            (b"a: 1\nb: 'x\n", 2, "quoted scalar"),
            (b"a: 1\nb: \"x\n\n", 3, "quoted scalar"),
            (b"a: 1\n---\nb: 2\n", 2, "more than one document"),
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
