//! A strict reader of the text format, version 0.0.4: it accepts nothing that Prometheus would refuse.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

pub(super) type Labels = Vec<(String, String)>;

#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) families: Vec<ParsedFamily>,
}

#[derive(Debug, Default)]
pub(super) struct ParsedFamily {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) samples: BTreeMap<Labels, f64>,
}

impl Page {
    pub(super) fn family(&self, name: &str) -> &ParsedFamily {
        self.families.iter().find(|family| family.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    pub(super) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: Labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.family(name).samples.get(&labels).copied()
    }
}

pub(super) fn parse(text: &str) -> Page {
    assert!(text.ends_with('\n') && !text.contains('\r'), "the last line ends in a line feed");
    let mut page = Page::default();
    let mut help: Option<String> = None;
    for line in text.trim_end_matches('\n').split('\n') {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && !words.is_empty() && help.is_none(), "{line}");
            assert!(page.families.iter().all(|family| family.name != name), "twice: {line}");
            help = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(help.take().as_deref(), Some(name), "HELP comes first: {line}");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            page.families.push(ParsedFamily { name: name.into(), kind: kind.into(), samples: BTreeMap::new() });
        } else {
            assert!(!line.starts_with('#') && help.is_none(), "{line}");
            let family = page.families.last_mut().unwrap();
            let (labels, value) = sample(line, &family.name);
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(family.samples.insert(labels, value).is_none(), "the same series twice: {line}");
        }
    }
    page
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn sample(line: &str, name: &str) -> (Labels, f64) {
    let rest = line.strip_prefix(name).unwrap_or_else(|| panic!("not of {name}: {line}"));
    let mut characters = rest.chars().peekable();
    let mut labels = Labels::new();
    if characters.next_if_eq(&'{').is_some() {
        loop {
            let label = until(&mut characters, '=');
            assert!(is_name(&label) && labels.iter().all(|(known, _)| *known != label), "{line}");
            assert_eq!(characters.next(), Some('"'), "{line}");
            labels.push((label, quoted(&mut characters, line)));
            match characters.next() {
                Some(',') => {}
                Some('}') => break,
                other => panic!("{other:?} after a label: {line}"),
            }
        }
    }
    assert_eq!(characters.next(), Some(' '), "{line}");
    let value: String = characters.collect();
    (labels, value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
}

fn until(characters: &mut Peekable<Chars<'_>>, end: char) -> String {
    let mut text = String::new();
    for character in characters.by_ref() {
        if character == end {
            return text;
        }
        text.push(character);
    }
    panic!("no {end} after {text}")
}

fn quoted(characters: &mut Peekable<Chars<'_>>, line: &str) -> String {
    let mut text = String::new();
    loop {
        match characters.next() {
            Some('"') => return text,
            Some('\\') => text.push(match characters.next() {
                Some('\\') => '\\',
                Some('"') => '"',
                Some('n') => '\n',
                other => panic!("unknown escape {other:?}: {line}"),
            }),
            Some(character) => text.push(character),
            None => panic!("no end of a label: {line}"),
        }
    }
}
