//! Where a heredoc and a substitution end, and the text that a substitution of a heredoc gives.

pub(super) struct Mark {
    pub(super) mark: String,
    pub(super) length: usize,
}

/// What stands behind `<<`: `EOF`, `'EOF'`, `-EOF`.
pub(super) fn heredoc_mark(text: &str) -> Option<Mark> {
    let word = text.trim_start_matches(['-', ' ', '\t']);
    let skipped = text.len() - word.len();
    let length = word.find(|c: char| c.is_whitespace() || ";&|)<>".contains(c)).unwrap_or(word.len());
    let mark: String = word.get(..length)?.chars().filter(|c| !"'\"\\".contains(*c)).collect();
    (!mark.is_empty()).then_some(Mark { mark, length: skipped + length })
}

/// The text up to the line that is the mark, and how many bytes it takes with that line.
pub(super) fn heredoc_body<'a>(text: &'a str, mark: &str) -> (&'a str, usize) {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == mark {
            return (text.get(..length).unwrap_or_default(), length + line.len());
        }
        length += line.len();
    }
    (text, text.len())
}

/// How long the `$( … )` at the start of a text is.
pub(super) fn substitution_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    let mut mark: Option<String> = None;
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        let inner = rest.get(character.len_utf8()..).unwrap_or_default();
        at += character.len_utf8();
        match character {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            '\\' => at += inner.chars().next().map_or(0, char::len_utf8),
            '\'' => at += inner.find('\'').map_or(inner.len(), |end| end + 1),
            '"' => at += quotation_length(inner),
            '<' if rest.starts_with("<<") && !rest.starts_with("<<<") => {
                if let Some(end) = heredoc_mark(rest.get(2..).unwrap_or_default()) {
                    at += 1 + end.length;
                    mark = Some(end.mark);
                }
            }
            '\n' => {
                if let Some(mark) = mark.take() {
                    // The line of the mark may also close the substitution.
                    at += heredoc_body(inner, &mark).1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// How long a text in double quotes is, with the closing one.
fn quotation_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '"' if !escaped => return at + 1,
            character => escaped = character == '\\' && !escaped,
        }
    }
    text.len()
}

/// The text that `$(cat <<'EOF' … EOF)` gives, which is how messages of several lines are written.
pub(in crate::extract) fn unwrapped(word: &str) -> &str {
    let Some(rest) = word.trim().strip_prefix("$(cat <<") else {
        return word;
    };
    let body = heredoc_mark(rest).and_then(|end| {
        let rest = rest.get(end.length..)?;
        let start = rest.find('\n')? + 1;
        Some(heredoc_body(rest.get(start..)?, &end.mark).0)
    });
    body.map_or(word, str::trim)
}
