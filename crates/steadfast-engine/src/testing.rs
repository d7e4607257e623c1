//! Readers that are private to this crate, for fuzzers: what must hold for any file that an agent leaves.

use std::path::Path;

use steadfast_model::text;

use crate::agent::result::{self, ResultSource};

/// The longest text of a result, with room for the mark of a cut.
const LONGEST: usize = 10_100;

/// Reads the result of an iteration: bounded, printable, and the same each time.
pub fn check_result(file: &Path, status: &Path, answer: &str) {
    let answer = text::printable(answer);
    let markers = [("risk".to_owned(), "RISK".to_owned())];
    for votes in [false, true] {
        let source = ResultSource { file, status, votes, markers: &markers };
        let found = result::read(&source, Some(&answer), &answer);
        assert_eq!(result::read(&source, Some(&answer), &answer), found, "two readings differ");
        let Some(found) = found else { continue };
        let fields = found.fields.iter().map(|(_, value)| value);
        let lists = found.files.iter().chain(&found.items).chain(&found.errors).chain(&found.branches);
        for text in found.summary.iter().chain(&found.reasoning).chain(fields).chain(lists) {
            assert!(text.chars().count() <= LONGEST, "{} bytes", text.len());
            assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{text:?}");
        }
        let stored = serde_json::to_string(&found).unwrap_or_default();
        assert_eq!(serde_json::from_str(&stored).ok(), Some(found), "{stored}");
    }
    let reason = result::verdict(file, &answer).and_then(|(_, reason)| reason).unwrap_or_default();
    assert!(reason.chars().count() <= LONGEST, "{} bytes", reason.len());
    for promise in result::promises(&result::without_echo(&answer, "say <promise>DONE</promise>")) {
        assert!(!promise.is_empty() && promise.chars().count() <= LONGEST, "{promise}");
    }
}
