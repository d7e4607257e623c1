//! The text after a slash command, as words for the command line. No shell ever sees it: quotes group words,
//! everything else is literal.

use clap::CommandFactory as _;

use crate::cli::SlashCli;
use crate::error::{CliError, code};

/// One word, and whether the user quoted it, in which case it is never a flag.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
}

/// Turns `/goal-VERB ARGUMENTS` into what the command line would have got: flags first, then the free text.
pub(crate) fn words(verb: &str, arguments: &str) -> Result<Vec<String>, CliError> {
    let cli = SlashCli::command();
    let Some(command) = cli.find_subcommand(verb) else {
        return Err(CliError::new(code::USAGE, format!("there is no /goal-{verb}"), "/goal-status shows the goal"));
    };
    let flags: Vec<(&str, bool)> = command
        .get_arguments()
        .chain(cli.get_arguments())
        .flat_map(|argument| {
            let takes_value = argument.get_action().takes_values();
            let names = argument.get_long().into_iter().chain(argument.get_all_aliases().unwrap_or_default());
            names.map(move |name| (name, takes_value)).collect::<Vec<_>>()
        })
        .collect();
    let mut flag_words = vec![verb.to_owned()];
    let mut text_words = Vec::new();
    let mut rest = split(arguments).into_iter();
    while let Some(word) = rest.next() {
        let Some(name) = word.text.strip_prefix("--").filter(|name| !word.quoted && !name.is_empty()) else {
            text_words.push(word.text);
            continue;
        };
        let bare = name.split('=').next().unwrap_or(name);
        let Some((_, takes_value)) = flags.iter().find(|(flag, _)| *flag == bare) else {
            let known: Vec<String> = flags.iter().map(|(flag, _)| format!("--{flag}")).collect();
            let hint = format!("/goal-{verb} knows {}; put the text in quotes if it is part of it", known.join(", "));
            return Err(CliError::new(code::USAGE, format!("unknown flag `--{bare}`"), hint));
        };
        let value_follows = *takes_value && !name.contains('=');
        flag_words.push(word.text);
        if value_follows {
            flag_words.extend(rest.next().map(|value| value.text));
        }
    }
    if !text_words.is_empty() {
        flag_words.push("--".to_owned());
        flag_words.append(&mut text_words);
    }
    Ok(flag_words)
}

/// Splits at white space. A quote opens only at the start of a word and only if it closes at the end of one, so
/// that apostrophes are just letters. Line breaks outside quotes are kept as words of their own.
fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            let end = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
            if rest[..end].contains('\n') {
                words.push(Word { text: "\n".into(), quoted: true });
            }
            rest = &rest[end..];
        } else if let Some((word, after)) = quoted(rest) {
            words.push(Word { text: word, quoted: true });
            rest = after;
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            words.push(Word { text: rest[..end].to_owned(), quoted: false });
            rest = &rest[end..];
        }
    }
    words
}

/// A quoted word at the start of `text`, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.char_indices();
    let close = match characters.next()?.1 {
        '"' => '"',
        '\'' => '\'',
        '“' => '”',
        _ => return None,
    };
    let mut word = String::new();
    while let Some((at, character)) = characters.next() {
        if character == close {
            let after = &text[at + character.len_utf8()..];
            if after.is_empty() || after.starts_with(char::is_whitespace) {
                return Some((word, after));
            }
        }
        if character == '\\' && close == '"' {
            match characters.next()? {
                (_, escaped @ ('"' | '\\')) => word.push(escaped),
                (_, other) => word.extend(['\\', other]),
            }
        } else {
            word.push(character);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(verb: &str, arguments: &str) -> Vec<String> {
        words(verb, arguments).map_err(|failure| failure.message).unwrap()
    }

    #[test]
    fn text_with_and_without_quotes() {
        assert_eq!(parsed("start", "fix it --budget 10M"), ["start", "--budget", "10M", "--", "fix", "it"]);
        assert_eq!(parsed("start", "\"fix it\" --budget=10M"), ["start", "--budget=10M", "--", "fix it"]);
        assert_eq!(
            parsed("start", "“fix it” --verify 'make test'"),
            ["start", "--verify", "make test", "--", "fix it"]
        );
        assert_eq!(parsed("start", "don't break 'this"), ["start", "--", "don't", "break", "'this"]);
        assert_eq!(parsed("start", "one\n two"), ["start", "--", "one", "\n", "two"]);
        assert_eq!(parsed("status", ""), ["status"]);
    }

    #[test]
    fn nothing_is_expanded_and_quoted_flags_are_text() {
        assert_eq!(
            parsed("start", "cost $HOME and $(id) `id`"),
            ["start", "--", "cost", "$HOME", "and", "$(id)", "`id`"]
        );
        assert_eq!(parsed("start", "\"--budget\" x"), ["start", "--", "--budget", "x"]);
        assert_eq!(parsed("start", r#""say \"hi\" \n""#), ["start", "--", r#"say "hi" \n"#]);
    }

    #[test]
    fn a_mistyped_flag_is_not_swallowed_by_the_objective() {
        assert_eq!(
            words("start", "x --bugdet 10M").map_err(|failure| failure.message),
            Err("unknown flag `--bugdet`".into())
        );
        assert!(words("frobnicate", "").is_err());
    }
}
