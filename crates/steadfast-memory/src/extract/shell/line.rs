//! Splits a shell line into commands and words without running it. Quotes and escapes are resolved; redirections, heredocs
//! and wrappers (`sudo`, `env`, `time`, assignments) are dropped; substitutions stay as written.

use steadfast_model::text;

/// At most this many bytes are read, and this many commands.
pub(in crate::extract) const LOOKED_AT: usize = 16 * 1024;
const COMMANDS_MAX: usize = 64;

/// How a command is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::extract) enum Operator {
    /// The first command, or behind `;`, `&` or the end of a line.
    #[default]
    Then,
    And,
    Or,
    Pipe,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::extract) struct Command {
    /// Without quotes; a substitution stands as it was written.
    pub(in crate::extract) words: Vec<String>,
    pub(in crate::extract) operator: Operator,
    /// In parentheses: it does not change the directory of the shell.
    pub(in crate::extract) nested: bool,
}

impl Command {
    /// The program without its path.
    pub(in crate::extract) fn program(&self) -> &str {
        self.words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default()
    }

    pub(in crate::extract) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(String::as_str)
    }
}

pub(in crate::extract) fn commands(text: &str) -> Vec<Command> {
    let text = without_heredocs(text::head(text, LOOKED_AT));
    let mut reader = Reader { rest: &text, ..Reader::default() };
    reader.read();
    reader.commands
}

/// The text without its heredocs. `"$(cat <<'EOF' … EOF)"`, which is how messages of several lines are written, becomes
/// the message.
fn without_heredocs(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let length = heredoc_mark(line).and_then(|mark| lines.clone().position(|line| line.trim() == mark));
        let message = line.split_once("$(cat <<").filter(|_| length.is_some());
        kept.push_str(message.map_or(line, |(before, _)| before));
        let Some(length) = length else { continue };
        let body: String = lines.by_ref().take(length).collect();
        lines.next();
        if message.is_some() {
            for character in body.trim().chars() {
                if ESCAPED_IN_QUOTES.contains(character) {
                    kept.push('\\');
                }
                kept.push(character);
            }
            let closing = lines.next().unwrap_or_default();
            kept.push_str(closing.trim_start().strip_prefix(')').unwrap_or(closing));
        }
    }
    kept
}

/// What stands behind `<<`: `EOF`, `'EOF'`, `-EOF`.
fn heredoc_mark(line: &str) -> Option<&str> {
    let (_, mark) = line.split_once("<<").filter(|(_, mark)| !mark.starts_with('<'))?;
    let mark = mark.trim_start_matches(['-', ' ', '\t']).trim_start_matches(['\'', '"', '\\']);
    let mark = mark.split(|c: char| c.is_whitespace() || "'\";&|)<>".contains(c)).next()?;
    Some(mark).filter(|mark| !mark.is_empty())
}

/// A backslash escapes these inside double quotes.
const ESCAPED_IN_QUOTES: &str = "\"\\$`";

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    commands: Vec<Command>,
    words: Vec<String>,
    word: Option<String>,
    operator: Operator,
    depth: usize,
    quoted: bool,
    /// The next word is the target of a redirection.
    redirected: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(character) = self.rest.chars().next() {
            if self.commands.len() >= COMMANDS_MAX {
                return;
            }
            match character {
                '"' => {
                    self.skip(1);
                    self.push(0);
                    self.quoted = !self.quoted;
                }
                '\\' => self.escaped(),
                '$' if self.rest.starts_with("$(") => self.push(substitution_length(self.rest)),
                other if self.quoted => self.push(other.len_utf8()),
                '\'' => {
                    self.skip(1);
                    self.push(self.rest.find('\'').unwrap_or(self.rest.len()));
                    self.skip(1);
                }
                '`' => self.push(self.rest.match_indices('`').nth(1).map_or(self.rest.len(), |(end, _)| end + 1)),
                '#' if self.word.is_none() => {
                    self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
                }
                '\n' => {
                    self.end_unless_empty();
                    self.skip(1);
                }
                '&' if self.rest.starts_with("&&") => self.operator(2, Operator::And),
                '&' if self.rest.starts_with("&>") => self.redirection(),
                '|' if self.rest.starts_with("||") => self.operator(2, Operator::Or),
                '|' => self.operator(if self.rest.starts_with("|&") { 2 } else { 1 }, Operator::Pipe),
                '&' | ';' => self.operator(1, Operator::Then),
                '(' if self.word.is_none() => {
                    self.end_unless_empty();
                    self.skip(1);
                    self.depth += 1;
                }
                ')' => {
                    self.operator(1, Operator::Then);
                    self.depth = self.depth.saturating_sub(1);
                }
                '<' | '>' => self.redirection(),
                blank if blank.is_whitespace() => {
                    self.end_word();
                    self.skip(blank.len_utf8());
                }
                other => self.push(other.len_utf8()),
            }
        }
        self.end_command(Operator::Then);
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        skipped
    }

    /// Adds the next bytes to the word.
    fn push(&mut self, bytes: usize) {
        let text = self.skip(bytes);
        self.word.get_or_insert_default().push_str(text);
    }

    fn operator(&mut self, bytes: usize, operator: Operator) {
        self.end_command(operator);
        self.skip(bytes);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.redirected)
        {
            self.words.push(word);
        }
    }

    fn end_command(&mut self, next: Operator) {
        self.end_word();
        self.redirected = false;
        let words = bare(std::mem::take(&mut self.words));
        if !words.is_empty() {
            self.commands.push(Command { words, operator: self.operator, nested: self.depth > 0 });
        }
        self.operator = next;
    }

    /// `a &&` continues in the next line, and into parentheses.
    fn end_unless_empty(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.end_command(Operator::Then);
        }
    }

    fn escaped(&mut self) {
        match self.rest.chars().nth(1) {
            // A continued line is not part of the word.
            Some('\n') => {
                self.skip(2);
            }
            Some(character) if !self.quoted || ESCAPED_IN_QUOTES.contains(character) => {
                self.skip(1);
                self.push(character.len_utf8());
            }
            _ => self.push(1),
        }
    }

    /// `2>&1`, `> file`, `<<EOF`, `<(…)`.
    fn redirection(&mut self) {
        // A number before it says which stream; it is no argument.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.skip(self.rest.bytes().take(3).take_while(|byte| b"<>|&".contains(byte)).count());
        self.redirected = true;
    }
}

/// How long the `$( … )` at the start of a text is; quotes in it may contain parentheses.
fn substitution_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '(') => depth += 1,
            (None, ')') if depth <= 1 => return at + 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The command itself, without keywords, assignments and the programs that only run another one.
fn bare(words: Vec<String>) -> Vec<String> {
    let mut words = words.into_iter().peekable();
    let mut in_env = false;
    while let Some(word) = words.peek().map(String::as_str) {
        let skipped = match word {
            "{" | "}" | "!" | "then" | "do" | "else" | "if" | "elif" | "while" | "until" | "fi" | "done" => 1,
            "for" | "case" | "function" | "select" | "esac" => return Vec::new(),
            "sudo" | "doas" | "env" | "exec" | "time" | "command" | "nohup" | "nice" | "setsid" | "stdbuf"
            | "builtin" | "timeout" | "gtimeout" => {
                in_env = true;
                1
            }
            "-u" | "-n" | "-g" if in_env => 2,
            flag if in_env && flag.starts_with('-') => 1,
            // The duration of `timeout`, the value of a flag.
            number if in_env && number.trim_end_matches(['s', 'm', 'h']).parse::<f64>().is_ok() => 1,
            word if word.split_once('=').is_some_and(|(name, _)| is_variable(name)) => 1,
            _ => break,
        };
        words.by_ref().take(skipped).for_each(drop);
    }
    words.collect()
}

pub(in crate::extract) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
