//! Secrets that only their position among the words of a command gives away: `htpasswd -b FILE USER PASSWORD`.

use std::ops::Range;

use super::plain::{is_reference, is_sentence};
use super::{MARK, window};

/// The farthest that the words of such a command are looked for, and how many of them.
const OPERANDS_MAX: usize = 512;
const WORDS_MAX: usize = 16;

/// The password of `htpasswd -b FILE USER PASSWORD`, or of `htpasswd -nb USER PASSWORD`, which writes no file. What is
/// marked already is nothing any more, so that the words before it are looked at too.
pub(super) fn of_htpasswd(text: &str, end: usize) -> Option<Range<usize>> {
    let near = window(text, end, OPERANDS_MAX);
    let (mut in_command, mut prints, mut skips) = (false, false, false);
    let mut operands = Vec::new();
    let mut at = 0;
    for _ in 0..WORDS_MAX {
        let Some(word) = word_from(near, at) else { break };
        at = word.end;
        let written = near.get(word.clone())?;
        if std::mem::take(&mut skips) {
            continue;
        }
        match written.strip_prefix('-').filter(|letters| letters.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            Some(letters) => {
                in_command |= letters.contains('b');
                prints |= letters.contains('n');
                // These take a number.
                skips = letters.ends_with(['C', 'r']);
            }
            None => operands.push(word),
        }
    }
    let password = operands.get(if prints { 1 } else { 2 }).filter(|_| in_command)?.clone();
    // `htpasswd -b is …` is talk about it.
    let talk = operands.first().and_then(|first| near.get(first.clone())).is_some_and(is_sentence);
    let written = near.get(password.clone())?;
    (!talk && written != MARK && !is_reference(written)).then_some(end + password.start..end + password.end)
}

/// The next word behind a place, without its quotes; none where the command ends.
pub(super) fn word_from(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.get(from..)?;
    // The quote that closed the word before.
    let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
    let rest = past_blanks(rest);
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
    let rest = quote.and_then(|quote| rest.strip_prefix(quote)).unwrap_or(rest);
    let start = text.len() - rest.len();
    let ends = |(at, c): (usize, char)| match (quote, c) {
        (Some(quote), c) => c == quote || c == '\n',
        // A password may have this sign inside, which only ends a command where nothing is glued to it.
        (None, '&') => rest.get(at + 1..).is_none_or(|next| next.is_empty() || next.starts_with(['&', ' ', '\n'])),
        (None, c) => c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | '>' | '<' | ')'),
    };
    let length = rest.char_indices().find(|place| ends(*place)).map_or(rest.len(), |(at, _)| at);
    (length > 0).then_some(start..start + length)
}

/// The text behind its blanks. A line that goes on is the same command.
pub(super) fn past_blanks(text: &str) -> &str {
    let rest = text.trim_start_matches([' ', '\t']);
    rest.strip_prefix("\\\n").map_or(rest, |line| line.trim_start_matches([' ', '\t']))
}
