//! What `--json` prints, from the schemas in `docs/schema/`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Command, CommandFactory as _};
use serde_json::Value;
use steadfast_model::goal::PausedReason;
use strum::IntoEnumIterator as _;

use super::{check, code, page, prose, repository, table};
use crate::cli::Cli;

/// Deeper fields are in the schema itself.
const DEEPEST: usize = 3;

/// Commands whose answers have no schema here, with the reason.
const WITHOUT_SCHEMA: [(&str, &str); 4] = [
    ("fleet", "the program steadfast-fleet answers; what it shares with loops has their schemas"),
    ("hook", "the agent that calls it defines the answer"),
    ("mcp", "the Model Context Protocol defines the answers"),
    ("statusline", "prints a line of text for a client's status bar, also with --json"),
];
/// The only schema that belongs to all commands.
const OF_ALL_COMMANDS: &str = "error.schema.json";

#[test]
fn the_page_of_json_is_current() {
    let mut text = page("JSON", include_str!("intro/json.md"));
    let mut links = String::new();
    for (name, schema) in all() {
        let title = schema["title"].as_str().unwrap_or_else(|| panic!("{name} needs a title"));
        let short = name.trim_end_matches(".schema.json");
        write!(text, "\n## {short}\n\n**{title}** ·\n[{name}](../schema/{name})\n").unwrap();
        let mut rows = Vec::new();
        fields(&schema, &schema, "", 0, &mut rows);
        write!(text, "\n{}", table(["field", "type", "meaning"], rows)).unwrap();
        writeln!(links, "- [{name}](../schema/{name})").unwrap();
    }
    write!(text, "\n## Schemas\n\n{links}").unwrap();
    check("json.md", &text);
}

/// The schemas with the names of their files.
fn all() -> Vec<(String, Value)> {
    let folder = repository().join("docs/schema");
    let mut files: Vec<_> = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap())
    };
    files.into_iter().map(read).collect()
}

#[test]
fn every_schema_knows_every_reason_of_a_pause() {
    let expected: BTreeSet<String> = PausedReason::iter().map(|reason| reason.to_string()).collect();
    let mut lists = 0;
    for (name, schema) in all() {
        let mut open = vec![&schema];
        while let Some(value) = open.pop() {
            if let Some(words) = value["paused_reason"]["enum"].as_array() {
                let words: BTreeSet<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                assert_eq!(words, expected, "{name}");
                lists += 1;
            }
            match value {
                Value::Object(fields) => open.extend(fields.values()),
                Value::Array(values) => open.extend(values),
                _ => {}
            }
        }
    }
    assert!(lists >= 3, "the schemas of goals list the reasons");
}

#[test]
fn every_command_has_a_schema_or_a_reason_to_have_none() {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let mut commands = BTreeSet::new();
    collect(&cli, "", &mut commands);
    let mut named = BTreeSet::new();
    for (name, schema) in all().into_iter().filter(|(name, _)| name != OF_ALL_COMMANDS) {
        let of_schema = commands_in(schema["title"].as_str().unwrap());
        let known: BTreeSet<String> = of_schema.intersection(&commands).cloned().collect();
        assert!(!known.is_empty(), "the title of {name} names no command");
        named.extend(known);
    }
    let without: BTreeSet<String> = WITHOUT_SCHEMA.iter().map(|(command, _)| (*command).to_owned()).collect();
    let unknown: Vec<&String> = without.difference(&commands).chain(without.intersection(&named)).collect();
    assert!(unknown.is_empty(), "WITHOUT_SCHEMA lists commands that do not exist or have a schema: {unknown:?}");
    let missing: Vec<&String> = commands.iter().filter(|it| !named.contains(*it) && !without.contains(*it)).collect();
    assert!(
        missing.is_empty(),
        "no schema in docs/schema names these commands in its title: {missing:?}.\n\
        Add a schema, or the command and a reason to WITHOUT_SCHEMA"
    );
}

/// All visible commands that do something by themselves, as they are typed after `steadfast`; the program alone is
/// `steadfast`.
fn collect(command: &Command, path: &str, commands: &mut BTreeSet<String>) {
    if !command.is_subcommand_required_set() {
        commands.insert(if path.is_empty() { command.get_name() } else { path }.to_owned());
    }
    for inner in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        collect(inner, format!("{path} {}", inner.get_name()).trim_start(), commands);
    }
}

/// The commands that a title names: it lists them between commas and semicolons, each with its arguments.
fn commands_in(title: &str) -> BTreeSet<String> {
    let is_of_command = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
    let command = |part: &str| part.split_whitespace().take_while(is_of_command).collect::<Vec<_>>().join(" ");
    title.split([',', ';']).map(command).collect()
}

#[test]
fn every_schema_is_held_against_real_answers() {
    let mut tests = String::new();
    let mut open = vec![repository().join("crates/steadfast/tests/it")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs_err::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "rs") {
            tests.push_str(&fs_err::read_to_string(path).unwrap());
        }
    }
    for (name, _) in all() {
        assert!(tests.contains(&format!("\"{name}\"")), "no test in tests/it checks an answer against {name}");
    }
}

/// The fields of an object, of the objects in a list and of its alternatives.
fn fields(root: &Value, schema: &Value, place: &str, depth: usize, rows: &mut Vec<[String; 3]>) {
    let schema = followed(root, schema);
    for list in ["allOf", "anyOf", "oneOf"] {
        for part in schema[list].as_array().into_iter().flatten() {
            fields(root, part, place, depth, rows);
        }
    }
    let inside = followed(root, &schema["items"]);
    if inside.is_object() {
        fields(root, inside, &format!("{place}[]"), depth, rows);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        let target = followed(root, field);
        let said = field["description"].as_str().or(target["description"].as_str()).unwrap_or_default();
        assert!(!said.is_empty(), "`{path}` of {} has no description", root["title"]);
        let row = [code(&path), kind_in(root, field), prose(said)];
        if !rows.contains(&row) {
            rows.push(row);
        }
        if depth < DEEPEST {
            fields(root, target, &path, depth + 1, rows);
        }
    }
}

fn followed<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// The type of a field in words.
pub(super) fn kind_of(schema: &Value) -> String {
    kind_in(schema, schema)
}

fn kind_in(root: &Value, schema: &Value) -> String {
    let schema = followed(root, schema);
    let named = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "array" => list(root, schema),
        other => other.to_owned(),
    };
    if let Some(constant) = schema.get("const") {
        return code(&constant.to_string());
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| code(&value.to_string())).collect::<Vec<_>>().join(", ");
    }
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(named).collect::<Vec<_>>().join(" or "),
        Value::String(_) => named(&schema["type"]),
        _ => {
            let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema[*key].as_array());
            let mut kinds: Vec<String> = alternatives.into_iter().flatten().map(|it| kind_in(root, it)).collect();
            kinds.dedup();
            if kinds.is_empty() { "object".to_owned() } else { kinds.join(" or ") }
        }
    }
}

fn list(root: &Value, schema: &Value) -> String {
    let inside = if schema["items"].is_object() { kind_in(root, &schema["items"]) } else { "any".to_owned() };
    format!("list of {inside}")
}
