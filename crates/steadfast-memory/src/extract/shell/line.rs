//! Splits a shell line into commands and words without running it. Quotes and escapes are resolved; redirections, heredocs
//! and wrappers (`sudo`, `env`, `time`, assignments) are dropped; substitutions stay as written.

mod heredoc;

pub(in crate::extract) use heredoc::unwrapped;
use heredoc::{heredoc_body, heredoc_mark, substitution_length};
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
    pub(in crate::extract) fn program(&self) -> Option<&str> {
        let word = self.words.first()?;
        word.rsplit('/').next().filter(|name| !name.is_empty()).or(Some(word))
    }
}

pub(in crate::extract) fn commands(text: &str) -> Vec<Command> {
    let mut reader = Reader { rest: text::head(text, LOOKED_AT), ..Reader::default() };
    reader.read();
    reader.commands
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    commands: Vec<Command>,
    words: Vec<String>,
    word: Option<String>,
    operator: Operator,
    depth: usize,
    /// The marks of heredocs whose text begins after this line.
    heredocs: Vec<String>,
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
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '`' => self.raw_until_backtick(),
                '\\' => self.escaped(),
                '$' if self.rest.starts_with("$(") => self.substitution(),
                '#' if self.word.is_none() => {
                    self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
                }
                '\n' => {
                    self.end_unless_empty();
                    self.skip(1);
                    self.skip_heredocs();
                }
                '&' if self.rest.starts_with("&&") => self.operator(2, Operator::And),
                '&' if self.rest.starts_with("&>") => self.redirect(2),
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
                '<' if self.rest.starts_with("<<<") => self.redirect(3),
                '<' if self.rest.starts_with("<<") => self.heredoc(),
                '<' | '>' => self.redirection(),
                blank if blank.is_whitespace() => {
                    self.end_word();
                    self.skip(blank.len_utf8());
                }
                other => {
                    self.push(other);
                    self.skip(other.len_utf8());
                }
            }
        }
        self.end_command(Operator::Then);
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        skipped
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn push_str(&mut self, text: &str) {
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

    fn single_quoted(&mut self) {
        self.skip(1);
        let end = self.rest.find('\'').unwrap_or(self.rest.len());
        let text = self.skip(end);
        self.push_str(text);
        self.skip(1);
    }

    fn double_quoted(&mut self) {
        self.skip(1);
        self.push_str("");
        while let Some(character) = self.rest.chars().next() {
            match character {
                '"' => {
                    self.skip(1);
                    return;
                }
                '\\' => self.escaped_in_quotes(),
                '$' if self.rest.starts_with("$(") => self.substitution(),
                other => {
                    self.push(other);
                    self.skip(other.len_utf8());
                }
            }
        }
    }

    fn escaped(&mut self) {
        self.skip(1);
        if let Some(character) = self.rest.chars().next() {
            self.skip(character.len_utf8());
            // A continued line is not part of the word.
            if character != '\n' {
                self.push(character);
            }
        }
    }

    /// Inside double quotes a backslash only escapes a few characters.
    fn escaped_in_quotes(&mut self) {
        self.skip(1);
        match self.rest.chars().next() {
            Some(character @ ('"' | '\\' | '$' | '`')) => {
                self.skip(1);
                self.push(character);
            }
            Some('\n') => {
                self.skip(1);
            }
            _ => self.push('\\'),
        }
    }

    fn raw_until_backtick(&mut self) {
        let end = self.rest.get(1..).and_then(|rest| rest.find('`')).map_or(self.rest.len(), |end| end + 2);
        let text = self.skip(end);
        self.push_str(text);
    }

    /// `$( … )` as it stands, to its own end: quotes and heredocs in it may hold parentheses.
    fn substitution(&mut self) {
        let length = substitution_length(self.rest);
        let text = self.skip(length);
        self.push_str(text);
    }

    fn redirect(&mut self, bytes: usize) {
        self.end_word();
        self.skip(bytes);
        self.redirected = true;
    }

    /// `2>&1`, `> file`, `<(…)`.
    fn redirection(&mut self) {
        // A number before it says which stream; it is no argument.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        let operator = self.rest.bytes().take_while(|byte| matches!(byte, b'<' | b'>' | b'|' | b'&')).count();
        self.redirect(operator.clamp(1, 3));
    }

    fn heredoc(&mut self) {
        self.end_word();
        self.skip(2);
        if let Some(end) = heredoc_mark(self.rest) {
            self.skip(end.length);
            self.heredocs.push(end.mark);
        }
    }

    fn skip_heredocs(&mut self) {
        for mark in std::mem::take(&mut self.heredocs) {
            let (_, length) = heredoc_body(self.rest, &mark);
            self.skip(length);
        }
    }
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
            word if is_assignment(word) => 1,
            _ => break,
        };
        for _ in 0..skipped {
            words.next();
        }
    }
    words.collect()
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests;
