//! Parses the text after a slash command into command-line words. No shell sees the text: quotes group words, and
//! everything else is literal.

use clap::ArgAction::Append;
use clap::{CommandFactory as _, Parser as _};
use steadfast_model::hook::{HookEvent, HookInput, TypedCommand};
use steadfast_model::text;

use crate::cli::SlashCli;
use crate::error::{CliError, code};
use steadfast_hosts::command::SlashCommand;

use crate::slash_commands::SLASH_COMMANDS;

/// One word, and whether it was quoted. A quoted word is never a flag.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
    /// It begins with a double quote that nothing closes.
    unclosed: bool,
}

/// Corrects the commands that were found in a prompt, which may be skills of another program.
pub(crate) fn read_prompt(input: HookInput) -> HookInput {
    let (found, other_text) = match &input.event {
        HookEvent::Command { verb, arguments } if input.event_name == "UserPromptSubmit" => {
            (vec![TypedCommand { verb: verb.clone(), arguments: arguments.clone() }], false)
        }
        HookEvent::Commands { commands, other_text } => (commands.clone(), *other_text),
        _ => return input,
    };
    HookInput { event: prompt_event(&found, other_text), ..input }
}

/// `$goal-WORD` with an unknown word is ordinary text. So are the lines after a command that takes no text; words on the
/// same line are ignored.
fn prompt_event(found: &[TypedCommand], mut other_text: bool) -> HookEvent {
    let cli = SlashCli::command();
    let mut commands = Vec::new();
    for TypedCommand { verb, arguments } in found {
        let parser = cli.find_subcommand(verb);
        if parser.is_none() && SLASH_COMMANDS.iter().all(|command| command.name != verb) {
            other_text = true;
            continue;
        }
        let takes_words =
            parser.is_some_and(|parser| parser.get_positionals().next().is_some() || parser.has_subcommands());
        let takes_lines =
            parser.is_some_and(|parser| parser.get_positionals().any(|text| matches!(text.get_action(), Append)));
        let (line, rest) = arguments.split_once('\n').filter(|_| !takes_lines).unwrap_or((arguments, ""));
        other_text |= !rest.trim().is_empty();
        let arguments =
            if takes_words { line } else { line.find("--").and_then(|at| line.get(at..)).unwrap_or_default() };
        commands.push(TypedCommand { verb: verb.clone(), arguments: arguments.trim().to_owned() });
    }
    match commands.as_slice() {
        [] => HookEvent::Prompt { typed: true },
        [TypedCommand { verb, arguments }] if !other_text => {
            HookEvent::Command { verb: verb.clone(), arguments: arguments.clone() }
        }
        _ => HookEvent::Commands { commands, other_text },
    }
}

/// The name of a verb or of an alias of it.
pub(crate) fn name_of(verb: &str) -> String {
    let cli = SlashCli::command();
    cli.find_subcommand(verb).map_or(verb, clap::Command::get_name).to_owned()
}

/// Parses `/goal-VERB ARGUMENTS`. The hint of an error spells the command as a slash command.
pub(crate) fn parse(verb: &str, arguments: &str) -> Result<SlashCli, CliError> {
    SlashCli::try_parse_from(words(verb, arguments)?).map_err(|error| {
        let error = CliError::usage(&error, "steadfast goal");
        if error.hint.starts_with("usage: ") { CliError { hint: usage(verb), ..error } } else { error }
    })
}

/// `usage: /goal-start "OBJECTIVE" [--budget …] …`, also for an alias.
fn usage(verb: &str) -> String {
    let (name, arguments) = command_of(verb).map_or((verb, ""), |command| (command.name, command.arguments));
    format!("usage: /goal-{name} {arguments}").trim_end().to_owned()
}

/// The command that a verb or an alias of it names.
fn command_of(verb: &str) -> Option<&'static SlashCommand> {
    let name = name_of(verb);
    SLASH_COMMANDS.iter().find(|command| command.name == name)
}

/// Turns `/goal-VERB ARGUMENTS` into command-line words: flags first, then the free text.
fn words(verb: &str, arguments: &str) -> Result<Vec<String>, CliError> {
    let cli = SlashCli::command();
    let Some(command) = cli.find_subcommand(verb) else {
        let names: Vec<String> = SLASH_COMMANDS.iter().map(|command| format!("/goal-{}", command.name)).collect();
        let hint = format!("use one of {}", names.join(", "));
        return Err(CliError::new(code::USAGE, format!("unknown command /goal-{verb}"), hint));
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
    let mut rest = split(arguments).into_iter().peekable();
    while let Some(word) = rest.next() {
        let Some(name) = word.text.strip_prefix("--").filter(|name| !word.quoted && !name.is_empty()) else {
            // Inside a text a lone quote is a character; at its start it is a mistake.
            if text_words.is_empty() {
                refuse_unclosed(&word, verb)?;
            }
            text_words.push(word.text);
            continue;
        };
        let bare = name.split('=').next().unwrap_or(name);
        let Some((_, takes_value)) = flags.iter().find(|(flag, _)| *flag == bare) else {
            let known: Vec<String> = flags.iter().map(|(flag, _)| format!("--{flag}")).collect();
            let hint = format!("/goal-{verb} accepts {}; quote the word if it belongs to the text", known.join(", "));
            return Err(CliError::new(code::USAGE, format!("unknown flag `--{bare}`"), hint));
        };
        let value_follows = *takes_value && !name.contains('=');
        flag_words.push(word.text);
        if let Some(value) = rest.next_if(|_| value_follows) {
            refuse_unclosed(&value, verb)?;
            flag_words.push(value.text);
        }
    }
    // The words of a verb with subcommands are no free text.
    if !text_words.is_empty() && !command.has_subcommands() {
        flag_words.push("--".to_owned());
    }
    flag_words.append(&mut text_words);
    Ok(flag_words)
}

fn refuse_unclosed(word: &Word, verb: &str) -> Result<(), CliError> {
    if !word.unclosed {
        return Ok(());
    }
    let message = format!("unclosed quote: {}", text::headline(&word.text, 40));
    Err(CliError::new(code::USAGE, message, usage(verb)))
}

/// Splits at white space. A quote opens only at the start of a word and only if it closes at the end of one, so that
/// apostrophes are letters. Line breaks outside quotes become separate words.
fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            let (space, after) = rest.split_at(rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()));
            if space.contains('\n') {
                words.push(Word { text: "\n".into(), quoted: true, unclosed: false });
            }
            rest = after;
        } else if let Some((word, after)) = quoted(rest) {
            words.push(Word { text: word, quoted: true, unclosed: false });
            rest = after;
        } else {
            let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            let never_closes = |(open, close)| rest.strip_prefix(open).is_some_and(|inside| !inside.contains(close));
            let unclosed = [('"', '"'), ('“', '”')].into_iter().any(never_closes);
            words.push(Word { text: word.to_owned(), quoted: false, unclosed });
            rest = after;
        }
    }
    words
}

/// The quoted word at the start of `text`, and the text after it.
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
            let after = text.get(at + character.len_utf8()..)?;
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
        words(verb, arguments).map_err(|error| error.message).unwrap()
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
        assert_eq!(parsed("queue", "move 2 1"), ["queue", "move", "2", "1"]);
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
    fn a_mistyped_flag_does_not_become_part_of_the_objective() {
        assert_eq!(
            words("start", "x --bugdet 10M").map_err(|error| error.message),
            Err("unknown flag `--bugdet`".into())
        );
        assert!(words("frobnicate", "").is_err());
    }

    fn typed(verb: &str, arguments: &str) -> TypedCommand {
        TypedCommand { verb: verb.into(), arguments: arguments.into() }
    }

    #[test]
    fn a_quote_that_nothing_closes_is_an_error() {
        for (verb, arguments) in [
            ("start", "\"unclosed"),
            ("start", "--budget 5 “fix it all"),
            ("start", "fix --verify \"make test"),
            ("update", "\"x"),
        ] {
            let error = words(verb, arguments).unwrap_err();
            let name = if verb == "update" { "edit" } else { verb };
            assert!(error.message.starts_with("unclosed quote: "), "{}", error.message);
            assert!(error.hint.starts_with(&format!("usage: /goal-{name} \"")), "{}", error.hint);
        }
        for text in ["say \"hi", "\"one\"two three", "'tis done", "5\" pipes"] {
            assert!(words("start", text).is_ok(), "{text}");
        }
    }

    #[test]
    fn usage_is_that_of_the_slash_command() {
        let hint = |verb, arguments| parse(verb, arguments).map(|_| ()).unwrap_err().hint;
        assert!(hint("start", "").starts_with("usage: /goal-start \"OBJECTIVE\" [--budget "), "{}", hint("start", ""));
        assert_eq!(hint("adopt", ""), "usage: /goal-adopt GOAL");
        assert_eq!(hint("update", ""), "usage: /goal-edit \"NEW OBJECTIVE\"");
        assert_eq!(hint("pause", "now"), "usage: /goal-pause [--all]");
    }

    #[test]
    fn a_prompt_calls_known_commands_only() {
        let command =
            |verb: &str, arguments: &str| HookEvent::Command { verb: verb.into(), arguments: arguments.into() };
        let read = |verb: &str, arguments: &str| prompt_event(&[typed(verb, arguments)], false);
        assert_eq!(read("start", "fix it --budget 10M"), command("start", "fix it --budget 10M"));
        assert_eq!(read("update", "one\n two"), command("update", "one\n two"));
        assert_eq!(read("reconcile", "please --accept-reset"), command("reconcile", "--accept-reset"));
        assert_eq!(read("queue", "drop 1"), command("queue", "drop 1"));
        assert_eq!(read("pause", "it --all"), command("pause", "--all"));
        assert_eq!(read("doctor", "please"), command("doctor", ""));
        assert_eq!(read("stop", "it now"), command("stop", ""));
        assert_eq!(read("planner", "plan it"), HookEvent::Prompt { typed: true });
        assert_eq!(read("", ""), HookEvent::Prompt { typed: true });
    }

    #[test]
    fn lines_around_commands_are_for_the_model() {
        let several =
            |commands: &[TypedCommand], other_text| HookEvent::Commands { commands: commands.to_vec(), other_text };
        let (pause, extend) = (typed("pause", ""), typed("extend", "--add-turns 5"));
        assert_eq!(
            prompt_event(&[pause.clone(), extend.clone()], false),
            several(&[pause.clone(), extend.clone()], false)
        );
        assert_eq!(
            prompt_event(&[typed("pause", "now\nand tell me why"), extend.clone()], false),
            several(&[pause.clone(), extend.clone()], true)
        );
        assert_eq!(
            prompt_event(&[typed("planner", "plan it"), extend.clone()], false),
            several(std::slice::from_ref(&extend), true)
        );
        let start = typed("start", "Fix\n- a\n- b");
        assert_eq!(prompt_event(&[start.clone(), pause.clone()], false), several(&[start, pause.clone()], false));
        assert_eq!(prompt_event(std::slice::from_ref(&pause), true), several(&[pause], true));
    }
}
