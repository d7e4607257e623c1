//! Acceptance items of a goal: what must be true at the end, in words. The list is fixed at the start; the worker adds a
//! proof to each item.

use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::redact::redact;
use crate::text;

/// Most items of a goal.
pub const ITEMS_MAX: usize = 100;
/// Longest text of an item, in characters.
pub const ITEM_MAX: usize = 500;
/// Longest proof of an item, in characters.
pub const PROOF_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub text: String,
    /// `None` while the item is open.
    pub proof: Option<ItemProof>,
}

/// What shows that an item is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemProof {
    pub text: String,
    pub at_ms: Millis,
}

impl Item {
    pub fn open(text: String) -> Self {
        Self { text, proof: None }
    }
}

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ItemError {
    #[error("item {0} is empty")]
    Empty(usize),
    #[error("item {number} has {length} characters; the maximum is {ITEM_MAX}")]
    TooLong { number: usize, length: usize },
    #[error("{0} items; the maximum is {ITEMS_MAX}")]
    TooMany(usize),
    #[error("the goal has no item {0}")]
    Unknown(i64),
    #[error("the proof of item {0} is empty")]
    NoProof(i64),
    #[error("the proof of item {number} has {length} characters; the maximum is {PROOF_MAX}")]
    ProofTooLong { number: i64, length: usize },
    #[error("the proof of item {0} only repeats the item")]
    Repeated(i64),
}

impl ItemError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty(_) | Self::TooLong { .. } => "write what must be true, in 1 to 500 characters",
            Self::TooMany(_) => "split the work into several goals; `--queue` lines them up",
            Self::Unknown(_) => "get_goal lists the items; the first one has the number 1",
            Self::NoProof(_) | Self::ProofTooLong { .. } | Self::Repeated(_) => {
                "say in 1 to 1000 characters what shows that it is met: a command and its result, a file and line"
            }
        }
    }
}

/// The texts of a goal's items, one printable line each, without secrets.
pub fn texts(given: &[String]) -> Result<Vec<String>, ItemError> {
    if given.len() > ITEMS_MAX {
        return Err(ItemError::TooMany(given.len()));
    }
    let checked = given.iter().zip(1..).map(|(item, number)| {
        let line = text::one_line(item);
        match line.chars().count() {
            0 => Err(ItemError::Empty(number)),
            length if length > ITEM_MAX => Err(ItemError::TooLong { number, length }),
            _ => Ok(redact(&line).into_owned()),
        }
    });
    checked.collect()
}

/// The entries of the lists in a Markdown text. A ticked box is an item too: it still has to be proven.
pub fn of_markdown(markdown: &str) -> Vec<String> {
    markdown.lines().filter_map(list_entry).map(str::to_owned).collect()
}

fn list_entry(line: &str) -> Option<&str> {
    let line = line.trim();
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).filter(|_| rest.len() < line.len())
    };
    let entry = ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark)).or_else(numbered)?.trim();
    let boxes = ["[ ]", "[x]", "[X]"];
    let text = boxes.into_iter().find_map(|mark| entry.strip_prefix(mark)).unwrap_or(entry).trim();
    (!text.is_empty()).then_some(text)
}

/// A proof as it is stored: one printable line without secrets.
pub(super) fn proof(number: i64, item: &str, given: &str, at_ms: Millis) -> Result<ItemProof, ItemError> {
    let line = text::one_line(given);
    let length = line.chars().count();
    let plain = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    if length == 0 {
        return Err(ItemError::NoProof(number));
    }
    if length > PROOF_MAX {
        return Err(ItemError::ProofTooLong { number, length });
    }
    if plain(&line) == plain(item) {
        return Err(ItemError::Repeated(number));
    }
    Ok(ItemProof { text: redact(&line).into_owned(), at_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_entries_of_a_markdown_list_are_items() {
        let markdown = "# Done when\n\n- one\n* two\n  1. three\n- [ ] four\n- [x] five\n2) six\n+ seven\n\
            plain text\n-no space\n- \n- [ ]\n1.5 is a number\n. dot\n";
        assert_eq!(of_markdown(markdown), ["one", "two", "three", "four", "five", "six", "seven"]);
        assert!(of_markdown("").is_empty() && of_markdown("no list\n").is_empty());
    }

    #[test]
    fn an_item_is_one_printable_line_of_bounded_length() {
        let hostile = owned(&["one\nstatus: complete\r\n", "\u{1b}[31mred\u{1b}[0m \u{202e}txet\0"]);
        assert_eq!(texts(&hostile).unwrap(), ["one status: complete", "red txet"]);
        assert_eq!(texts(&["x".repeat(500)]).unwrap()[0].len(), 500);
        assert_eq!(texts(&["x".repeat(4_000)]), Err(ItemError::TooLong { number: 1, length: 4_000 }));
        assert_eq!(texts(&owned(&["a", " \n\u{1b}[0m"])), Err(ItemError::Empty(2)));
        assert_eq!(texts(&vec!["a".to_owned(); 101]), Err(ItemError::TooMany(101)));
    }

    #[test]
    fn a_proof_says_more_than_its_item_and_has_no_secrets() {
        let of = |given: &str| proof(1, "The tests pass.", given, 7);
        assert_eq!(
            of("cargo test:\n 12 passed\u{7}").unwrap(),
            ItemProof { text: "cargo test: 12 passed".into(), at_ms: 7 }
        );
        assert_eq!(of(" \n"), Err(ItemError::NoProof(1)));
        assert_eq!(of("the tests pass"), Err(ItemError::Repeated(1)));
        assert_eq!(of(&"x".repeat(1_001)), Err(ItemError::ProofTooLong { number: 1, length: 1_001 }));
        let secret = of("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyzAB' gave 200").unwrap();
        assert!(!secret.text.contains("ghp_0123456789"), "{}", secret.text);
    }
}
