//! Names of runs and stages. They become parts of file names, registry keys and labels, so they are checked once, here,
//! and have their own type.

use std::fmt;
use std::str::FromStr;

const LONGEST: usize = 64;

/// A letter or digit, then up to 63 letters, digits, `.`, `_` or `-`; never `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName(String);

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name `{name}` has {length} characters; the maximum is {LONGEST}")]
    TooLong { name: String, length: usize },
    #[error("the name `{name}` begins with `{first}`")]
    BadStart { name: String, first: char },
    #[error("the name `{name}` contains {}", shown(*found))]
    BadCharacter { name: String, found: char },
    #[error("the name `{name}` contains `..`")]
    TwoDots { name: String },
}

/// A character in quotes; one that cannot be printed, in words.
fn shown(character: char) -> String {
    match character {
        char::REPLACEMENT_CHARACTER => "a character that cannot be shown".to_owned(),
        ' ' => "a space".to_owned(),
        character => format!("`{character}`"),
    }
}

impl NameError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::BadCharacter { .. } => "use letters, digits, `.`, `_` and `-`, such as `fix-login`",
            Self::TooLong { .. } => "choose a shorter name",
            Self::BadStart { .. } => "begin it with a letter or a digit",
            Self::TwoDots { .. } => "use single dots",
        }
    }
}

const GOAL_PREFIX: &str = "run-";

/// The name of a run that pursues a goal, which is also the session of that goal.
pub fn of_goal(run_id: &str) -> String {
    let short: String = run_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{GOAL_PREFIX}{short}")
}

/// Whether a session id is that of a run that pursues a goal. The hosts' own ids are UUIDs.
pub fn is_of_goal(session_id: &str) -> bool {
    session_id.strip_prefix(GOAL_PREFIX).is_some_and(|rest| rest.len() == 8)
}

/// A name as a part of a git branch, where only the ending `.lock` is not allowed.
pub fn in_branch(name: &str) -> String {
    name.strip_suffix(".lock").map_or_else(|| name.to_owned(), |rest| format!("{rest}-lock"))
}

impl RunName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        // Quotes are plain text in an error, and control characters are not.
        let is_plain = |c: char| matches!(c, '\'' | '"' | '\\') || c.escape_debug().count() == 1;
        let escape = |c: char| if is_plain(c) { String::from(c) } else { c.escape_debug().to_string() };
        // The error shows the name, so control characters are escaped.
        let name = || crate::text::cut(&text.chars().map(escape).collect::<String>(), LONGEST);
        let first = text.chars().next().ok_or(NameError::Empty)?;
        if let Some(found) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-')) {
            // Do not print a control character.
            let found = if is_plain(found) { found } else { char::REPLACEMENT_CHARACTER };
            return Err(NameError::BadCharacter { name: name(), found });
        }
        if !first.is_ascii_alphanumeric() {
            return Err(NameError::BadStart { name: name(), first });
        }
        if text.len() > LONGEST {
            return Err(NameError::TooLong { name: name(), length: text.len() });
        }
        if text.contains("..") {
            return Err(NameError::TwoDots { name: name() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_use_are_names() {
        let longest = "a".repeat(64);
        for text in ["work", "fix-login", "0", "v1.2_final-3", "A.b", &longest] {
            assert_eq!(text.parse::<RunName>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn everything_that_could_leave_its_directory_or_its_line_is_refused() {
        let long = "a".repeat(65);
        let bad = |name: &str, found| NameError::BadCharacter { name: name.into(), found };
        for (text, expected) in [
            ("", NameError::Empty),
            ("../x", bad("../x", '/')),
            ("a..b", NameError::TwoDots { name: "a..b".into() }),
            ("..", NameError::BadStart { name: "..".into(), first: '.' }),
            (".hidden", NameError::BadStart { name: ".hidden".into(), first: '.' }),
            ("-rf", NameError::BadStart { name: "-rf".into(), first: '-' }),
            ("a b", bad("a b", ' ')),
            ("a\n", bad("a\\n", '\u{fffd}')),
            ("a\0", bad("a\\0", '\u{fffd}')),
            ("grün", bad("grün", 'ü')),
            ("計画", bad("計画", '計')),
            ("a\u{202e}b", bad("a\\u{202e}b", '\u{fffd}')),
            ("$(id)", bad("$(id)", '$')),
            ("x'y\"z", bad("x'y\"z", '\'')),
            ("a\\b", bad("a\\b", '\\')),
            (&long, NameError::TooLong { name: format!("{}…", "a".repeat(63)), length: 65 }),
        ] {
            assert_eq!(text.parse::<RunName>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn the_message_shows_what_can_be_shown() {
        for (text, message) in [
            ("x'y\"z", "the name `x'y\"z` contains `'`"),
            ("a\u{7}", "the name `a\\u{7}` contains a character that cannot be shown"),
            ("a b", "the name `a b` contains a space"),
        ] {
            assert_eq!(text.parse::<RunName>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn only_what_git_takes_for_its_locks_is_spelled_differently_in_branches() {
        for (name, expected) in [("a", "a"), ("a.lock", "a-lock"), ("a.lock.lock", "a.lock-lock"), ("a.", "a.")] {
            assert_eq!(in_branch(name), expected);
        }
    }
}
