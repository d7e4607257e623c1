//! Boxes in a Markdown file: `- [ ]`, `* [x]`, `1. [ ]`. Lines between code fences are examples, not tasks.

use std::path::Path;

use steadfast_system::bounded;

use super::CheckResult;

const MOST_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Boxes {
    pub(super) ticked: usize,
    pub(super) open: usize,
}

/// Whether no box is open; unknown for a file without boxes.
pub(super) fn is_ticked(file: &Path) -> CheckResult {
    match bounded::whole(file, MOST_BYTES) {
        Err(error) => (None, format!("cannot read the checklist: {error}")),
        Ok(bytes) => match count(&String::from_utf8_lossy(&bytes)) {
            Boxes { ticked: 0, open: 0 } => (None, "the checklist has no boxes".to_owned()),
            Boxes { ticked, open } => (Some(open == 0), format!("{ticked} of {} boxes are ticked", ticked + open)),
        },
    }
}

pub(super) fn count(markdown: &str) -> Boxes {
    let mut boxes = Boxes::default();
    let mut fence: Option<(char, usize)> = None;
    for line in markdown.lines() {
        let line = line.trim_start().trim_start_matches(['>', ' ']);
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = mark.map_or(0, |mark| line.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            (None, Some(mark)) if length >= 3 => fence = Some((mark, length)),
            // A fence ends with at least as many of the same marks, and nothing after them.
            (Some((open, least)), Some(mark)) if mark == open && length >= least => {
                if line.trim_end().chars().all(|c| c == mark) {
                    fence = None;
                }
            }
            (Some(_), _) => {}
            (None, _) => match box_of(line) {
                Some(true) => boxes.ticked += 1,
                Some(false) => boxes.open += 1,
                None => {}
            },
        }
    }
    boxes
}

/// Whether a line's box is ticked, if it has one.
fn box_of(line: &str) -> Option<bool> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = if numbered.len() < line.len() {
        numbered.strip_prefix(['.', ')'])?
    } else {
        line.strip_prefix(['-', '*', '+'])?
    };
    let (mark, rest) = item.strip_prefix([' ', '\t'])?.trim_start().split_at_checked(3)?;
    match mark {
        _ if !rest.is_empty() && !rest.starts_with(char::is_whitespace) => None,
        "[ ]" => Some(false),
        "[x]" | "[X]" => Some(true),
        _ => None,
    }
}
