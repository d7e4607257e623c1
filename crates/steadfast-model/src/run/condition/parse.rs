//! From text to a condition. Length and depth are limited, because a definition can be hostile.

use super::facts;
use super::{Comparison, Condition, Operand};

const LONGEST: usize = 2_000;
const DEEPEST: usize = 32;

/// What is wrong with a condition, at which of its characters (from 1), and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (at character {at})")]
pub struct ConditionError {
    pub at: usize,
    pub what: String,
    hint: String,
}

impl ConditionError {
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Open,
    Close,
    Comparison(Comparison),
    Text(String),
    /// A keyword, a number or the name of a fact.
    Word(String),
}

pub fn parse(text: &str) -> Result<Condition, ConditionError> {
    if text.chars().nth(LONGEST).is_some() {
        let what = format!("the condition has more than {LONGEST} characters");
        return Err(ConditionError { at: LONGEST + 1, what, hint: "shorten it".into() });
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, end: text.chars().count() + 1 };
    let condition = parser.any(0)?;
    match parser.peek() {
        None => Ok(condition),
        Some(Token::Close) => parser.fail("a `)` without its `(`", "remove it"),
        Some(_) => parser.fail("two conditions without `and` or `or` between them", "write `and` or `or` here"),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ConditionError> {
    let fail = |at: usize, what: String, hint: &str| Err(ConditionError { at, what, hint: hint.into() });
    let mut tokens = Vec::new();
    let mut rest = text.chars().zip(1..).peekable();
    while let Some((character, at)) = rest.next() {
        let mut followed_by = |wanted: char| rest.next_if(|(next, _)| *next == wanted).is_some();
        let token = match character {
            character if character.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            '=' if followed_by('=') => Token::Comparison(Comparison::Equal),
            '!' if followed_by('=') => Token::Comparison(Comparison::NotEqual),
            '<' if followed_by('=') => Token::Comparison(Comparison::AtMost),
            '>' if followed_by('=') => Token::Comparison(Comparison::AtLeast),
            '<' => Token::Comparison(Comparison::Less),
            '>' => Token::Comparison(Comparison::More),
            '=' => return fail(at, "`=` is not a comparison".into(), "write `==`"),
            '!' => return fail(at, "`!` is not an operator".into(), "write `not`"),
            '&' => return fail(at, "`&` is not an operator".into(), "write `and`"),
            '|' => return fail(at, "`|` is not an operator".into(), "write `or`"),
            '$' => return fail(at, "variables have no value here".into(), "name a fact, such as `tests.exit_code`"),
            '"' | '\'' => {
                let mut inside = String::new();
                loop {
                    match rest.next() {
                        None => return fail(at, "the quote is not closed".into(), "close it"),
                        Some((close, _)) if close == character => break,
                        Some(('\\', _)) => {
                            let escaped = rest.next_if(|(next, _)| matches!(next, '\\' | '"' | '\''));
                            inside.push(escaped.map_or('\\', |(escaped, _)| escaped));
                        }
                        Some((plain, _)) => inside.push(plain),
                    }
                }
                Token::Text(inside)
            }
            character if is_in_word(character) => {
                let mut word = String::from(character);
                while let Some((next, _)) = rest.next_if(|(next, _)| is_in_word(*next)) {
                    word.push(next);
                }
                match word.as_str() {
                    "contains" => Token::Comparison(Comparison::Contains),
                    _ => Token::Word(word),
                }
            }
            other => {
                let what = format!("`{}` means nothing here", other.escape_debug());
                return fail(at, what, "put texts in quotes");
            }
        };
        tokens.push((at, token));
    }
    Ok(tokens)
}

/// Names of stages and fields have no other characters.
fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '.' | '_' | '-')
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// The position after the last character.
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn is_at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_at_word(word);
        self.next += usize::from(is_next);
        is_next
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.next += usize::from(is_next);
        is_next
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn fail<T>(&self, what: impl Into<String>, hint: impl Into<String>) -> Result<T, ConditionError> {
        Err(ConditionError { at: self.at(), what: what.into(), hint: hint.into() })
    }

    fn any(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        self.joined("or", Condition::Any, &mut |parser| {
            parser.joined("and", Condition::All, &mut |parser| parser.one(depth))
        })
    }

    /// One or more parts with a word between them.
    fn joined(
        &mut self,
        word: &str,
        join: fn(Vec<Condition>) -> Condition,
        part: &mut dyn FnMut(&mut Self) -> Result<Condition, ConditionError>,
    ) -> Result<Condition, ConditionError> {
        let first = part(self)?;
        if !self.is_at_word(word) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn one(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        if depth > DEEPEST {
            return self.fail("the condition is nested too deeply", "use fewer parentheses");
        }
        if self.take_word("not") {
            return self.one(depth + 1).map(|inner| Condition::Not(Box::new(inner)));
        }
        if self.take(&Token::Open) {
            let inner = self.any(depth + 1)?;
            return if self.take(&Token::Close) { Ok(inner) } else { self.fail("a `)` is missing", "close the `(`") };
        }
        if self.take_word("exists") {
            return self.exists();
        }
        let at = self.at();
        let left = self.operand()?;
        let Some(Token::Comparison(comparison)) = self.peek().cloned() else {
            let hint = format!("compare it, such as `{left} == …`");
            return self.fail(format!("`{left}` is compared with nothing"), hint);
        };
        self.next += 1;
        let right = self.operand()?;
        facts::check(&left, comparison, &right).map_err(|(what, hint)| ConditionError { at, what, hint })?;
        Ok(Condition::Compare(left, comparison, right))
    }

    fn exists(&mut self) -> Result<Condition, ConditionError> {
        let hint = "write `exists(\"FILE\")`";
        if !self.take(&Token::Open) {
            return self.fail("`exists` needs a file in parentheses", hint);
        }
        let Some(Token::Text(path)) = self.peek().cloned() else {
            return self.fail("the file of `exists` is not a text in quotes", hint);
        };
        if !is_inside_project(&path) {
            let hint = "write a path inside the project, such as \"docs/PLAN.md\"";
            return self.fail(format!("`{path}` is not a path of the project"), hint);
        }
        self.next += 1;
        if !self.take(&Token::Close) {
            return self.fail("a `)` is missing", hint);
        }
        Ok(Condition::Exists(path))
    }

    fn operand(&mut self) -> Result<Operand, ConditionError> {
        let operand = match self.peek() {
            None => return self.fail("a value is missing", "write a fact, a number or a text in quotes"),
            Some(Token::Text(text)) => Operand::Text(text.clone()),
            Some(Token::Word(word)) => match (word.parse(), facts::split(word)) {
                (Ok(number), _) => Operand::Number(number),
                (_, Some((stage, fact))) => Operand::Fact { stage: stage.to_owned(), fact: fact.to_owned() },
                (Err(_), None) => {
                    let what = format!("`{word}` is not a value");
                    let stage = word.split('.').next().unwrap_or_default();
                    let hint = format!("facts are `{stage}.FACT` with one of {}; put texts in quotes", facts::known());
                    return self.fail(what, hint);
                }
            },
            Some(_) => return self.fail("a value is missing here", "write a fact, a number or a text in quotes"),
        };
        self.next += 1;
        Ok(operand)
    }
}

/// Whether a path stays in the project, whatever is there.
pub(in crate::run) fn is_inside_project(path: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "..");
    !path.contains(['\0', '\n']) && path.strip_suffix('/').unwrap_or(path).split('/').all(is_plain)
}
