//! Parts of what programs and agents printed. A secret that is cut does not look like one any more, so a text is redacted
//! before it is cut, and a part whose beginning is already lost begins with a whole word.

use std::io::{self, Read, Seek, SeekFrom};

use steadfast_model::redact::redact;
use steadfast_model::text;

/// How much is read before a tail, to see the secrets in which it would begin.
const BEFORE: u64 = 16 << 10;
/// The longest word whose rest is dropped whole.
const WORD_MAX: usize = 4 << 10;

/// The first characters of a text, at most `most`, printable and without secrets.
pub(crate) fn head(whole: &str, most: usize) -> String {
    text::cut(redact(text::printable(whole).trim()).trim(), most)
}

/// The last bytes of what was printed, at most `most`, printable and without secrets.
pub(crate) fn tail(printed: &mut (impl Read + Seek), most: u64) -> io::Result<String> {
    let size = printed.seek(SeekFrom::End(0))?;
    let from = size.saturating_sub(most + BEFORE);
    printed.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    printed.take(most + BEFORE).read_to_end(&mut bytes)?;
    let whole = text::printable(&String::from_utf8_lossy(&bytes));
    let clean = redact(&whole);
    let clean = if from > 0 { after_part_of_word(&clean) } else { &clean };
    Ok(text::tail(clean, usize::try_from(most).unwrap_or(usize::MAX)).to_owned())
}

/// A text without its first word, which may be the rest of a longer one.
pub(crate) fn after_part_of_word(text: &str) -> &str {
    let most = text.floor_char_boundary(WORD_MAX);
    let end = text.find(char::is_whitespace).unwrap_or(text.len()).min(most);
    text.get(end..).unwrap_or_default()
}
