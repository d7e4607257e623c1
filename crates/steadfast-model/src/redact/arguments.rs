//! Where the secret in an argument of a command begins and ends, in whatever way a shell takes it: bare, quoted whole,
//! or quoted in part (`bob:"…"`), also with the quotes escaped, as commands stand in JSON.

use std::ops::Range;

use super::places::cookies;
use super::plain::{is_ordinary, is_reference, is_sentence};
use super::{MARK, after, window};

/// The longest name before what stands between it and its secret.
const NAME_MAX: usize = 256;

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Password,
    /// With what stands between the two.
    UserAndPassword(char),
    /// A setting or a variable by its name: not every value of one is a secret.
    Setting,
    /// `name=…`, one of the secrets that are kept in a store of them.
    Entry,
    /// `pass:…`, or where else it comes from.
    Source,
    Cookies,
}

/// How far an argument goes that is being read.
#[derive(Clone, Copy)]
struct Quote {
    mark: Option<char>,
    escaped: bool,
}

impl Quote {
    const NONE: Self = Self { mark: None, escaped: false };

    /// The quote that `rest` begins with, and how long it is.
    fn opening(rest: &str) -> Option<(Self, usize)> {
        let inner = rest.strip_prefix('\\').unwrap_or(rest);
        let mark = inner.chars().next().filter(|first| matches!(first, '"' | '\''))?;
        let length = rest.len() - inner.len() + 1;
        Some((Self { mark: Some(mark), escaped: length > 1 }, length))
    }

    fn ends(self, c: char) -> bool {
        match self.mark {
            Some(mark) => c == mark || c == '\n' || (self.escaped && c == '\\'),
            None => c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | ')'),
        }
    }
}

/// The secret in the argument that begins at `from`, glued to its flag or, if the flag may stand alone, behind a blank.
pub(super) fn secret_in(text: &str, from: usize, holds: Holds, spaced: bool) -> Option<Range<usize>> {
    let glued = after(text, from);
    let rest = if spaced { glued.trim_start_matches([' ', '=']) } else { glued };
    let (mut quote, opened) = Quote::opening(rest).unwrap_or((Quote::NONE, 0));
    let rest = after(rest, opened);
    let mut start = text.len() - rest.len();
    match holds {
        Holds::Password | Holds::Setting => {}
        Holds::Cookies => return cookies(text, start, |c| quote.ends(c)),
        Holds::UserAndPassword(between) => start += past_name(rest, between, &mut quote)?.len(),
        Holds::Entry => {
            let name = past_name(rest, '=', &mut quote)?;
            if is_no_secret(name) {
                return None;
            }
            start += name.len();
        }
        Holds::Source if rest.starts_with("pass:") => start += "pass:".len(),
        Holds::Source if rest.starts_with(MARK) => {}
        Holds::Source => return None,
    }
    // Only the secret is quoted: `bob:"…"`.
    if quote.mark.is_none()
        && let Some((inner, opened)) = Quote::opening(after(text, start))
    {
        quote = inner;
        start += opened;
    }
    let secret = after(text, start);
    if secret.starts_with(MARK) {
        return Some(start..start + MARK.len());
    }
    let secret = secret.get(..secret.find(|c| quote.ends(c)).unwrap_or(secret.len()))?;
    let hidden = !secret.is_empty() && !is_something_else(secret, holds, quote.mark.is_some()) && !is_reference(secret);
    hidden.then_some(start..start + secret.len())
}

/// The name before a secret, with what stands between them. A quote that ends before that is none of the secret's.
fn past_name<'t>(rest: &'t str, between: char, quote: &mut Quote) -> Option<&'t str> {
    let near = window(rest, 0, NAME_MAX);
    for (at, c) in near.char_indices() {
        if c == between {
            return near.get(..at + c.len_utf8());
        }
        if quote.mark.is_some() && quote.ends(c) && c != '\n' {
            *quote = Quote::NONE;
        } else if quote.ends(c) {
            return None;
        }
    }
    None
}

/// What stands beside the secrets in a store of them, by the last word of its name.
fn is_no_secret(name: &str) -> bool {
    const WORDS: [&str; 9] = ["user", "username", "login", "host", "hostname", "port", "ttl", "policies", "type"];
    name.trim_end_matches('=').rsplit(['_', '-', '.']).next().is_some_and(|last| WORDS.contains(&last))
}

fn is_something_else(secret: &str, holds: Holds, quoted: bool) -> bool {
    let alone = matches!(holds, Holds::Password | Holds::Setting);
    // `docker run mysql -p80:80` opens ports.
    let ports = alone
        && secret.contains(':')
        && secret.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let another_flag = alone && !quoted && is_sentence(secret);
    // A command whose output is meant, as one shell writes it.
    let command = !quoted && secret.starts_with('(');
    let ordinary = holds == Holds::Setting && is_ordinary(secret);
    let file = holds == Holds::Entry && secret.starts_with('@');
    ports || another_flag || command || ordinary || file
}
