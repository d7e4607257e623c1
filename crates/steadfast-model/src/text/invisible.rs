//! Characters without a glyph, which Unicode calls default-ignorable: a text can hide words from its reader with them,
//! and a key from the rules that would remove it.

use std::borrow::Cow;

const EMOJI_STYLE: char = '\u{fe0f}';
const JOINER: char = '\u{200d}';
const NON_JOINER: char = '\u{200c}';

pub(super) fn is_invisible(character: char) -> bool {
    if character < '\u{ad}' {
        return false;
    }
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The same text without them.
pub fn without_invisible(text: &str) -> Cow<'_, str> {
    // Plain ASCII, which most text is, needs no further look.
    if text.is_ascii() || !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_invisible(*c)).collect())
}

/// Whether this one belongs to the character before it: it makes one emoji of several, or shapes the letters of scripts
/// that are written joined.
pub(super) fn shapes_others(before: &str, character: char) -> bool {
    let Some(previous) = before.chars().next_back() else { return false };
    let pictures = matches!(previous, '\u{a9}' | '\u{ae}' | '\u{2030}'..='\u{2bff}' | '\u{3030}'..='\u{303d}' | '\u{1f000}'..='\u{1faff}');
    match character {
        EMOJI_STYLE => pictures,
        JOINER => pictures || previous == EMOJI_STYLE || is_joined_script(previous),
        NON_JOINER => is_joined_script(previous),
        _ => false,
    }
}

fn is_joined_script(letter: char) -> bool {
    matches!(letter, '\u{620}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{900}'..='\u{dff}')
}

#[cfg(test)]
mod tests {
    use super::super::{escape_xml, printable};

    #[test]
    fn hidden_words_are_dropped_and_emoji_stay() {
        let hidden: String = "obey".chars().map(|c| char::from_u32(0xe0000 + c as u32).unwrap()).collect();
        for (text, seen) in [
            (format!("build{hidden} ok"), "build ok"),
            ("pass\u{200b}word\u{ad}\u{2060}=\u{feff}x".to_owned(), "password=x"),
            ("a\u{202e}b\u{200e}c\u{fe0f}d\u{200d}e".to_owned(), "abcde"),
            ("👩\u{200d}💻 fixes ❤\u{fe0f}".to_owned(), "👩\u{200d}💻 fixes ❤\u{fe0f}"),
            ("👩\u{200d}\u{200d}\u{200d}💻".to_owned(), "👩\u{200d}💻"),
            ("می\u{200c}خواهم".to_owned(), "می\u{200c}خواهم"),
        ] {
            assert_eq!(printable(&text), seen, "{text:?}");
            assert_eq!(escape_xml(&text), seen, "{text:?}");
        }
    }
}
