//! `config.toml` and the environment variables.

use std::fmt::Write as _;

use super::{check, code, page, prose, source, table};

const KEYS: &str = "crates/steadfast-system/src/config/all_keys.toml";
const VARIABLES: &str = "crates/steadfast-system/src/env_vars.rs";

#[test]
fn the_page_of_the_configuration_is_current() {
    let mut text = page("Configuration", include_str!("intro/configuration.md"));
    for section in sections(&source(KEYS)) {
        let title = if section.name.is_empty() { "At the top".to_owned() } else { format!("[{}]", section.name) };
        write!(text, "\n## {title}\n").unwrap();
        if !section.about.is_empty() {
            write!(text, "\n{}\n", prose(&section.about)).unwrap();
        }
        write!(text, "\n{}", table(["key", "default", "meaning"], section.rows)).unwrap();
    }
    write!(text, "\n## All of it\n\n```toml\n{}```\n", without_header(&source(KEYS))).unwrap();
    check("configuration.md", &text);
}

struct SettingsSection {
    name: String,
    about: String,
    rows: Vec<[String; 3]>,
}

/// Comments above a key or a section are about it. A key in a comment has no default, unless the comment above names one.
fn sections(text: &str) -> Vec<SettingsSection> {
    let mut sections = vec![SettingsSection { name: String::new(), about: String::new(), rows: Vec::new() }];
    let mut comment: Vec<&str> = Vec::new();
    for line in without_header(text).lines() {
        let (inside, is_comment) = line.strip_prefix("# ").map_or((line, false), |inside| (inside, true));
        let pair = inside.split_once(" = ").filter(|(name, _)| !name.contains(' '));
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            let about = std::mem::take(&mut comment).join(" ");
            sections.push(SettingsSection { name: name.to_owned(), about, rows: Vec::new() });
        } else if let Some((key, value)) = pair {
            let about = std::mem::take(&mut comment).join(" ");
            let (about, named) = about.split_once(" Default: ").map_or((&*about, None), |(it, end)| (it, Some(end)));
            let default = match named.map(|it| it.trim_end_matches('.')) {
                Some(named) if is_comment && named != code(value) => format!("{named}; example: {}", code(value)),
                Some(named) => named.to_owned(),
                None if is_comment => format!("none; such as {}", code(value)),
                None => code(value),
            };
            let meaning = prose(about.trim_end_matches('.'));
            sections.last_mut().unwrap().rows.push([code(key), default, meaning]);
        } else if is_comment {
            comment.push(inside);
        }
    }
    sections
}

/// The file without the comment about itself.
fn without_header(text: &str) -> String {
    text.split_once("\n\n").unwrap().1.to_owned()
}

#[test]
fn the_page_of_environment_variables_is_current() {
    let mut text = page("Environment variables", include_str!("intro/environment.md"));
    let rows = documented(&source(VARIABLES)).into_iter().map(|(name, meaning)| [code(&name), prose(&meaning)]);
    write!(text, "\n{}", table(["variable", "meaning"], rows)).unwrap();
    check("environment.md", &text);
}

/// `pub const NAME: &str = "VALUE"` with the comment above; consts that stand together share it.
fn documented(text: &str) -> Vec<(String, String)> {
    let (mut found, mut comment, mut is_fresh) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        if let Some(said) = line.strip_prefix("/// ") {
            comment = if is_fresh { format!("{comment} {said}") } else { said.to_owned() };
            is_fresh = true;
            continue;
        }
        is_fresh = false;
        let name = line.strip_prefix("pub const ").and_then(|it| it.split_once(": &str = \"")?.1.strip_suffix("\";"));
        match name {
            Some(name) => {
                assert!(!comment.is_empty(), "{name} needs a comment in {VARIABLES}");
                found.push((name.to_owned(), comment.trim_end_matches('.').to_owned()));
            }
            None => comment.clear(),
        }
    }
    found
}
