//! Text that comes from outside, made safe and short: escaping for prompts, cuts at character boundaries,
//! fingerprints, and numbers as people read them.

mod invisible;

pub use invisible::without_invisible;

use std::fmt::{Display, Write as _};
use std::iter::Peekable;
use std::str::Chars;

/// Escapes text that a prompt quotes inside an XML-like element, so that it cannot close the element, and drops
/// control characters other than newline and tab, and characters that are not visible.
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => {}
            other if invisible::is_invisible(other) && !invisible::shapes_others(&escaped, other) => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Drops control characters but newline and tab, characters that are not visible, and the escape sequences of terminals
/// whole, so that stored text cannot drive one or look other than it is.
pub fn printable(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.peek() {
                Some('[') => {
                    characters.next();
                    skip_sequence(&mut characters);
                }
                // Titles and links: up to a bell or a string terminator, but never over the line.
                Some(']' | 'P' | '_' | '^') => {
                    while let Some(inside) = characters.next_if(|c| *c != '\n') {
                        if inside == '\u{7}' || inside == '\u{9c}' {
                            break;
                        }
                        if inside == '\u{1b}' {
                            characters.next_if_eq(&'\\');
                            break;
                        }
                    }
                }
                Some('(' | ')') => {
                    characters.next();
                    characters.next_if(char::is_ascii_alphanumeric);
                }
                _ => {}
            },
            '\u{9b}' => skip_sequence(&mut characters),
            '\n' | '\t' => kept.push(character),
            control if control.is_control() => {}
            other if invisible::is_invisible(other) && !invisible::shapes_others(&kept, other) => {}
            other => kept.push(other),
        }
    }
    kept
}

/// The parameters of a control sequence and the character that ends it.
fn skip_sequence(characters: &mut Peekable<Chars<'_>>) {
    while characters.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    characters.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// The first line of a text, printable, at most `most` characters.
pub fn headline(text: &str, most: usize) -> String {
    let line = printable(text.split('\n').next().unwrap_or_default()).replace('\t', "");
    let line = if text.contains('\n') { format!("{} …", line.trim_end()) } else { line };
    cut(&line, most)
}

/// A text without its line breaks: one line, printable.
pub fn one_line(text: &str) -> String {
    let printable = printable(text).replace('\r', "\n");
    printable.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text of several lines below a label, printable: the lines after the first are indented, so that none of them looks
/// like a line of the view around it.
pub fn indented(text: &str) -> String {
    let printable = printable(text).replace(['\u{2028}', '\u{2029}'], "\n");
    printable.trim_end().replace('\n', "\n    ")
}

/// Keeps at most `most` characters; a cut text ends in `…`.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// The columns a text needs on a screen: East Asian characters and emoji need two.
pub fn columns(text: &str) -> usize {
    let is_wide = |character: &char| matches!(character, '\u{1100}'..='\u{115f}' | '\u{2e80}'..);
    text.chars().count() + text.chars().filter(is_wide).count()
}

/// Keeps at most `most` columns; a cut text ends in `…`.
pub fn cut_to_columns(text: &str, most: usize) -> String {
    let mut most_characters = most;
    loop {
        let shorter = cut(text, most_characters);
        if most_characters == 0 || columns(&shorter) <= most {
            return shorter;
        }
        most_characters -= 1;
    }
}

/// The first `most` bytes of a text, up to a character boundary.
pub fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// The last `most` bytes of a text, from a character boundary on.
pub fn tail(text: &str, most: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(most))..).unwrap_or_default()
}

/// A short fingerprint (FNV-1a, 64 bit) to notice that a text changed; not for security.
pub fn fingerprint(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A fingerprint (FNV-1a, 128 bit) of several pieces, the same in every version; not for security.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint(u128);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fingerprint {
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    pub fn value(self) -> u128 {
        self.0
    }
}

/// A quick checksum, eight bytes at a time, to notice that a file was not written to its end.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    for word in words.iter().chain([&last]) {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    sum
}

/// Bytes in hexadecimal digits, as digests are written.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = number.unsigned_abs().to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{sign}{}", groups.join(","))
}

/// `1 turn`, `2 turns`.
pub fn count<Number: Copy + Display + PartialEq + From<u8>>(number: Number, noun: &str) -> String {
    let plural = if number == Number::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `1234567` as `1.2M`: rounded down, so that a budget never looks more used than it is.
pub fn short_number(number: i64) -> String {
    let (unit, name) = match number {
        1_000_000_000.. => (1_000_000_000, "B"),
        1_000_000.. => (1_000_000, "M"),
        1_000.. => (1_000, "k"),
        _ => return number.to_string(),
    };
    let tenths = number / (unit / 10);
    if tenths % 10 == 0 || tenths >= 1_000 {
        format!("{}{name}", tenths / 10)
    } else {
        format!("{}.{}{name}", tenths / 10, tenths % 10)
    }
}

/// Seconds as `h:mm`.
pub fn clock(seconds: i64) -> String {
    format!("{}:{:02}", seconds / 3600, seconds % 3600 / 60)
}

/// Seconds as `2h 05m`, `3m 04s` or `12s`.
pub fn duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m {rest:02}s"),
        _ => format!("{hours}h {minutes:02}m"),
    }
}

/// Millionths of a dollar as `$1.23`; small amounts keep four digits.
pub fn usd(micros: i64) -> String {
    let (scale, unit, width) = if micros < 1_000_000 { (100, 10_000, 4) } else { (10_000, 100, 2) };
    let rounded = micros.saturating_add(scale / 2) / scale;
    format!("${}.{:0width$}", rounded / unit, rounded % unit)
}

/// Tokens as people read them, in few characters.
pub fn tokens(known: Option<i64>) -> String {
    known.map_or_else(|| "tokens unknown".to_owned(), |tokens| format!("{} tokens", short_number(tokens)))
}

/// A cost as people read it.
pub fn cost(micros: Option<i64>) -> String {
    micros.map_or_else(|| "cost unknown".to_owned(), usd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_text_are_no_lines_of_the_view_around_it() {
        for (text, shown) in [
            ("one", "one"),
            ("one\nstatus: complete\n", "one\n    status: complete"),
            ("one\r\n\nnext: x", "one\n    \n    next: x"),
            ("one\u{2028}status: complete", "one\n    status: complete"),
            ("one\u{1b}[2Jtwo", "onetwo"),
        ] {
            assert_eq!(indented(text), shown, "{text:?}");
        }
    }

    #[test]
    fn quoted_text_cannot_leave_its_element() {
        assert_eq!(escape_xml("a </objective> & \u{1b}[31m\u{0}b"), "a &lt;/objective&gt; &amp; [31mb");
    }

    #[test]
    fn nothing_is_left_that_drives_a_terminal() {
        for (text, kept) in [
            ("a\tb\r\nc\u{0}\u{7}", "a\tb\nc"),
            ("\u{1b}[1;31merror\u{1b}[0m: x\u{1b}[K", "error: x"),
            ("\u{1b}]8;;https://h\u{1b}\\link\u{1b}]8;;\u{7} x", "link x"),
            ("\u{1b}]0;title\nnext", "\nnext"),
            ("\u{9b}31mred\u{1b}(B", "red"),
            ("目\u{1b}[", "目"),
            ("[31m stays", "[31m stays"),
        ] {
            assert_eq!(printable(text), kept, "{text:?}");
        }
    }

    #[test]
    fn text_reads_as_it_is_written() {
        let turned = "a\u{202a}b\u{202e}c\u{2066}d\u{2069}e\u{200e}\u{200f}";
        assert_eq!(printable(turned), "abcde");
        assert_eq!(escape_xml(turned), "abcde");
    }

    #[test]
    fn cuts_respect_characters() {
        assert_eq!(cut("目標を達成する", 4), "目標を…");
        assert_eq!((head("目標", 4), head("目標", 9)), ("目", "目標"));
        assert_eq!((tail("目標", 4), tail("目標", 9)), ("標", "目標"));
        assert_eq!(headline("one\ntwo", 80), "one …");
        assert_eq!((headline("one\ntwo", 3), headline("one\ntwo", 4)), ("on…".into(), "one…".into()));
        assert_eq!((cut_to_columns("abcdef", 6), cut_to_columns("abcdefg", 6)), ("abcdef".into(), "abcde…".into()));
        assert_eq!((cut_to_columns("目標を", 6), cut_to_columns("“目標を達”", 6)), ("目標を".into(), "“目標…".into()));
    }

    #[test]
    fn digests_have_two_digits_for_each_byte() {
        assert_eq!(hex(&[0x00, 0x0a, 0xff]), "000aff");
    }

    #[test]
    fn a_headline_reads_as_it_is() {
        assert_eq!(headline("safe \u{202e}txt.exe\u{2069}\nmore", 40), "safe txt.exe …");
    }

    #[test]
    fn one_line_folds_breaks_and_drops_what_drives_a_terminal() {
        assert_eq!(one_line("a\n  b\r\n\n\tc \u{1b}[31md\r"), "a b c d");
        assert_eq!(one_line("\n\n"), "");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(24_500), "24,500");
        assert_eq!(thousands(-1), "-1");
        for (number, text) in [
            (999, "999"),
            (1_000, "1k"),
            (12_345, "12.3k"),
            (1_234_567, "1.2M"),
            (10_000_000, "10M"),
            (1_000_000_000, "1B"),
            (999_999, "999k"),
        ] {
            assert_eq!(short_number(number), text);
        }
        assert_eq!((count(1, "turn"), count(0, "turn")), ("1 turn".into(), "0 turns".into()));
        assert_eq!(clock(2_520), "0:42");
        assert_eq!(usd(36_500), "$0.0365");
        assert_eq!(usd(12_345_678), "$12.35");
    }
}
