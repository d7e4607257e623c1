//! The command line, the slash commands, the tools of agents and the exit codes.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};
use serde_json::Value;
use steadfast_hosts::command::AnsweredBy;

use super::{check, code, page, prose, table};
use crate::cli::Cli;
use crate::error;
use crate::slash_commands::SLASH_COMMANDS;

const WIDEST: usize = 110;

/// Flags of every command; the page names them once.
const EVERYWHERE: [&str; 5] = ["help", "version", "db", "json", "session"];

/// A command may have a flag of its own with such a name.
fn is_everywhere(argument: &Arg) -> bool {
    let name = argument.get_id().as_str();
    EVERYWHERE.contains(&name) && (argument.is_global_set() || ["help", "version"].contains(&name))
}

#[test]
fn the_page_of_commands_is_current() {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let mut text = page("Commands", include_str!("intro/commands.md"));
    for command in visible(&cli) {
        write(command, "steadfast", 2, &mut text);
    }
    check("commands.md", &text);
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help")
}

fn write(command: &Command, parent: &str, level: usize, text: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(text, "\n{} {name}\n\n{}.\n", "#".repeat(level), prose(&about)).unwrap();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().strip_prefix("Usage: ").unwrap_or_default().replace("\n       ", "\n");
    write!(text, "\n```text\n{usage}\n```\n").unwrap();
    let is_shown = |it: &&Arg| !it.is_hide_set() && !is_everywhere(it);
    let arguments: Vec<&Arg> = command.get_arguments().filter(is_shown).collect();
    if !arguments.is_empty() {
        let row = |argument: &&Arg| [code(&spelled(argument)), meaning(argument)];
        write!(text, "\n{}", table(["argument", "meaning"], arguments.iter().map(row))).unwrap();
    }
    if let Some(after) = command.get_after_help() {
        write!(text, "\n```text\n{}\n```\n", wrapped(after.to_string().trim())).unwrap();
    }
    for inner in visible(command) {
        write(inner, &name, (level + 1).min(4), text);
    }
}

/// A terminal wraps paragraphs by itself; rows of examples stay as they are.
fn wrapped(help: &str) -> String {
    let mut lines = Vec::new();
    for line in help.lines() {
        if line.starts_with(' ') {
            lines.push(line.to_owned());
            continue;
        }
        let mut row = String::new();
        for word in line.split(' ') {
            if !row.is_empty() && row.len() + word.len() >= WIDEST {
                lines.push(std::mem::take(&mut row));
            }
            row = if row.is_empty() { word.to_owned() } else { format!("{row} {word}") };
        }
        lines.push(row);
    }
    lines.join("\n")
}

/// How an argument is typed.
fn spelled(argument: &Arg) -> String {
    let takes = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = if takes { names.iter().map(clap::builder::Str::as_str).collect() } else { Vec::new() };
    let flags = [argument.get_short().map(|it| format!("-{it}")), argument.get_long().map(|it| format!("--{it}"))];
    let flags = flags.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let repeats = matches!(argument.get_action(), clap::ArgAction::Append) && !argument.is_positional();
    let tail = if repeats { "…" } else { "" };
    format!("{flags} {}{tail}", values.join(" ")).trim().to_owned()
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = prose(&help);
    let values = argument.get_possible_values();
    let names: Vec<String> = values.iter().filter(|it| !it.is_hide_set()).map(|it| code(it.get_name())).collect();
    if argument.get_action().takes_values() && !names.is_empty() {
        write!(text, ": {}", names.join(", ")).unwrap();
    }
    let defaults = argument.get_default_values().iter().map(|it| code(&it.to_string_lossy())).collect::<Vec<_>>();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        write!(text, " (default {})", defaults.join(", ")).unwrap();
    }
    text
}

#[test]
fn the_page_of_slash_commands_is_current() {
    let mut text = page("Slash commands", include_str!("intro/slash-commands.md"));
    let rows = SLASH_COMMANDS.iter().map(|command| {
        let by = match command.answered_by {
            AnsweredBy::Hook => "the hook",
            AnsweredBy::Model => "the model",
        };
        let typed = format!("/goal-{} {}", command.name, command.arguments);
        [code(typed.trim()), command.description.to_owned(), by.to_owned()]
    });
    write!(text, "\n{}", table(["command", "effect", "answered by"], rows)).unwrap();
    check("slash-commands.md", &text);
}

#[test]
fn the_page_of_tools_is_current() {
    let mut text = page("Tools of the agent", include_str!("intro/tools.md"));
    for tool in crate::mcp::tools() {
        let tool = serde_json::to_value(&tool).unwrap();
        let word = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        write!(text, "\n## {}\n\n{}\n", word("name"), prose(&word("description"))).unwrap();
        let (schema, required) = (&tool["inputSchema"], &tool["inputSchema"]["required"]);
        let is_required = |name: &str| required.as_array().is_some_and(|it| it.iter().any(|it| it == name));
        let row = |(name, schema): (&String, &Value)| {
            let need = if is_required(name) { "yes" } else { "" };
            let description = schema["description"].as_str().unwrap_or_else(|| plain_argument(name));
            [code(name), super::schemas::kind_of(schema), need.to_owned(), prose(description)]
        };
        let fields = schema["properties"].as_object().unwrap();
        if !fields.is_empty() {
            let rows: Vec<[String; 4]> = fields.iter().map(row).collect();
            write!(text, "\n{}", table(["argument", "type", "needed", "meaning"], rows)).unwrap();
        }
    }
    check("tools.md", &text);
}

/// Arguments whose names are enough for a model, which pays for each word of a description.
fn plain_argument(name: &str) -> &'static str {
    match name {
        "objective" => "The new objective",
        "budget_profile" => "A profile of tokens, turns and hours",
        "max_turns" => "Most turns",
        "max_hours" => "Most hours of active time",
        "max_usd" => "Most US dollars",
        "goal_id" => "The goal that is meant [default: this session's]",
        "status" => "What the work ends as; without it, only `items` are recorded",
        "items" => "Objects `{item, proof}`: the number of the item, from 1, and its proof",
        "verdict" => "What the evaluator found",
        "reason" => "Why, in a few sentences",
        "seconds" => "Wait this long",
        "category" => "Only what was remembered as this",
        _ => panic!("the reference needs a meaning of `{name}`"),
    }
}

#[test]
fn the_page_of_exit_codes_is_current() {
    let mut text = page("Exit codes", include_str!("intro/exit-codes.md"));
    let done = ["0".to_owned(), String::new(), "done".to_owned()];
    let errors = error::code::ALL.map(|(number, kind, meaning)| [number.to_string(), code(kind), meaning.to_owned()]);
    write!(text, "\n{}", table(["code", "kind", "meaning"], [done].into_iter().chain(errors))).unwrap();
    check("exit-codes.md", &text);
}
