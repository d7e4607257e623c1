//! A walk over a line of JSON that looks only at the fields it is asked for and steps over everything else without
//! decoding it. Most bytes of a session file are text that does not matter for counting tokens. It returns `None`
//! for a line that it cannot read safely (odd syntax, escapes in a field that matters), and a full parser reads that one.

/// A place in a line.
pub(super) struct Skim<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Skim<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Walks the object that begins here. `field` gets each key and must consume its value.
    pub(super) fn object(&mut self, mut field: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            field(self, key)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Whether nothing but white space is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// A string without its quotes, still escaped.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        self.end_of_string()?;
        self.bytes.get(start..self.at - 1)
    }

    /// Puts a string without its quotes, still escaped, into its place; null is no string.
    pub(super) fn string_into(&mut self, place: &mut Option<&'a [u8]>) -> Option<()> {
        *place = if self.peek()? == b'n' {
            self.null()?;
            None
        } else {
            Some(self.string()?)
        };
        Some(())
    }

    /// A whole number of at most fifteen digits; null counts as zero.
    pub(super) fn count(&mut self) -> Option<i64> {
        if self.peek()? == b'n' {
            return self.null().map(|()| 0);
        }
        let start = self.at;
        let mut number = 0_i64;
        while let Some(digit) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - start;
        let ends = matches!(self.peek()?, b',' | b'}' | b']');
        (ends && (1..=15).contains(&digits)).then_some(number)
    }

    pub(super) fn is_at(&mut self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    /// Whether the value here is `true`; any other counts as false.
    pub(super) fn truth(&mut self) -> Option<bool> {
        let is_true = self.peek()? == b't';
        self.skip()?;
        Some(is_true)
    }

    /// Steps over any value.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.end_of_string()
            }
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let rest = self.bytes.get(self.at..)?;
                let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
                self.at += length;
                (length > 0).then_some(())
            }
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => self.end_of_string()?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
    }

    /// Moves behind the quote that ends the string we are in.
    fn end_of_string(&mut self) -> Option<()> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let length = find_quote(rest)?;
            self.at += length + 1;
            // The search never starts inside an escape, so the backslashes before a quote are all here.
            let before = rest.get(..length)?;
            if before.last() != Some(&b'\\') {
                return Some(());
            }
            let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes % 2 == 0 {
                return Some(());
            }
        }
    }

    fn null(&mut self) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(b"null").then(|| self.at += 4)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }
}

/// The place of the next quote. Most strings are short, for which setting up a vector search costs more than it
/// saves, so the first bytes are searched eight at a time.
fn find_quote(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut searched = 0;
    for word in bytes.as_chunks::<8>().0.iter().take(5) {
        // Quotes become zero bytes; the lowest high bit that is left marks the first of them.
        let word = u64::from_le_bytes(*word) ^ (LOW * 0x22);
        let zeros = word.wrapping_sub(LOW) & !word & HIGH;
        if zeros != 0 {
            return Some(searched + (zeros.trailing_zeros() / 8) as usize);
        }
        searched += 8;
    }
    memchr::memchr(b'"', bytes.get(searched..)?).map(|at| searched + at)
}

/// A string's text, if it needs no decoding.
pub(super) fn plain(string: &[u8]) -> Option<&str> {
    std::str::from_utf8(string).ok().filter(|text| !text.contains('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `a` (text) and `n` (count) of a line.
    fn fields(line: &str) -> Option<(Option<&str>, i64)> {
        let (mut text, mut number) = (None, 0);
        let mut skim = Skim::new(line.as_bytes());
        skim.object(|skim, key| {
            match key {
                b"a" => skim.string_into(&mut text)?,
                b"n" => number = skim.count()?,
                _ => skim.skip()?,
            }
            Some(())
        })?;
        let text = match text {
            Some(text) => Some(plain(text)?),
            None => None,
        };
        skim.at_end().then_some((text, number))
    }

    #[test]
    fn fields_are_found_among_anything() {
        for line in [
            r#"{"a":"x","n":7}"#,
            "{ \"a\" : \"x\" ,\t\"n\" : 7 }\r\n",
            r#"{"a":"x","b":{"a":"no","n":[1,{"n":2}]},"n":7,"c":[]}"#,
            r#"{"b":"\"a\":\"no\"","\\":"\\","a":"x","n":7,"c":"\\\"}"}"#,
            r#"{"b":"a text longer than sixteen bytes \\\" with quotes \\","a":"x","n":7,"t":true,"f":-1.5e3}"#,
        ] {
            assert_eq!(fields(line), Some((Some("x"), 7)), "{line}");
        }
        assert_eq!(fields(r#"{"a":null,"n":null}"#), Some((None, 0)));
        assert_eq!(fields("{}"), Some((None, 0)));
    }

    #[test]
    fn quotes_are_found_at_any_distance() {
        for length in 0..100 {
            let text = format!("{}\"{}", "é!#".repeat(40).chars().take(length).collect::<String>(), "\"x".repeat(5));
            assert_eq!(find_quote(text.as_bytes()), text.find('"'), "{length}");
            let text = "a".repeat(length);
            assert_eq!(find_quote(text.as_bytes()), None, "{length}");
        }
    }

    #[test]
    fn doubtful_lines_are_left_to_a_parser() {
        for line in [
            "",
            "x",
            "[]",
            "{",
            r#"{"a":"x""#,
            r#"{"a":"x"}}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":5}"#,
            r#"{"n":"5"}"#,
            r#"{"n":-5}"#,
            r#"{"n":5.5}"#,
            r#"{"n":1234567890123456}"#,
            r#"{"n":nil}"#,
            r#"{"b":"open}"#,
            r#"{"b":,"n":1}"#,
            r#"{"b" 1}"#,
            "{b:1}",
            r#"{"b":[1,2}"#,
        ] {
            assert_eq!(fields(line), None, "{line}");
        }
    }
}
