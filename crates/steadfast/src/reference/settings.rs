//! `config.toml` and the environment variables.

use super::{check, code, page, prose, source, table};

const KEYS: &str = "crates/steadfast-system/src/config/all_keys.toml";
const VARIABLES: &str = "crates/steadfast-system/src/env_vars.rs";

#[test]
fn the_page_of_the_configuration_is_current() {
    let about = "`config.toml` in the home directory (`$STEADFAST_HOME`, else the platform's data directory + `steadfast`). All keys\n\
        are optional. [How caps work](../howto/limits.md#caps-over-everything), [what is kept](../howto/store.md#what-is-kept-and-for-how-long).\n\n\
        - An unknown key is named with its line and the nearest known one: `doctor` fails, commands warn, hooks report it once\n  \
        per session. The rest of the file holds.\n\
        - In `[limits]` a mistake is an error: no goal or run starts, and a live goal pauses (`degraded`). Fix the line, then\n  \
        `/goal-resume`.";
    let mut text = page("Configuration", about);
    for section in sections(&source(KEYS)) {
        let title = if section.name.is_empty() { "At the top".to_owned() } else { format!("[{}]", section.name) };
        text.push_str(&format!("\n## {title}\n"));
        if !section.about.is_empty() {
            text.push_str(&format!("\n{}\n", prose(&section.about)));
        }
        text.push_str(&format!("\n{}", table(["key", "default", "meaning"], section.rows)));
    }
    text.push_str(&format!("\n## All of it\n\n```toml\n{}```\n", without_header(&source(KEYS))));
    check("configuration.md", &text);
}

struct Section {
    name: String,
    about: String,
    rows: Vec<[String; 3]>,
}

/// Comments above a key or a section are about it; a key in a comment has no default.
fn sections(text: &str) -> Vec<Section> {
    let mut sections = vec![Section { name: String::new(), about: String::new(), rows: Vec::new() }];
    let mut comment: Vec<&str> = Vec::new();
    for line in without_header(text).lines() {
        let (inside, is_comment) = line.strip_prefix("# ").map_or((line, false), |inside| (inside, true));
        let pair = inside.split_once(" = ").filter(|(name, _)| !name.contains(' '));
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            let about = std::mem::take(&mut comment).join(" ");
            sections.push(Section { name: name.to_owned(), about, rows: Vec::new() });
        } else if let Some((key, value)) = pair {
            let default = if is_comment { format!("none; such as {}", code(value)) } else { code(value) };
            let meaning = prose(std::mem::take(&mut comment).join(" ").trim_end_matches('.'));
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
    let about = "What the program reads and sets. A repository's or a client's settings cannot set those of Steadfast: export them\n\
        where you start the client.";
    let mut text = page("Environment variables", about);
    let rows = documented(&source(VARIABLES)).into_iter().map(|(name, meaning)| [code(&name), prose(&meaning)]);
    text.push_str(&format!("\n{}", table(["variable", "meaning"], rows)));
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
