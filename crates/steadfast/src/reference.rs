//! Writes `docs/reference/` from the code, and fails when a page there differs. To write the pages again:
//! `UPDATE_DOCS=1 cargo test -p steadfast --bin steadfast reference`.

mod commands;
mod schemas;
mod settings;
mod words;

use std::path::{Path, PathBuf};

use steadfast_system::env_vars;

const UPDATE: &str = "UPDATE_DOCS";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source(path: &str) -> String {
    fs_err::read_to_string(repository().join(path)).unwrap()
}

/// Compares a page with its text, or writes it.
#[track_caller]
fn check(name: &str, text: &str) {
    let path = repository().join("docs/reference").join(name);
    if env_vars::text(UPDATE).is_some() {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
    }
    let written = fs_err::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(text.lines()).find(|(written, expected)| written != expected);
    assert!(
        written == text,
        "docs/reference/{name} is not what the code says, first at {differs:?}.\n\
        Run `{UPDATE}=1 cargo test -p steadfast --bin steadfast reference`"
    );
}

/// A page: its title, what it is about, and where it comes from.
fn page(title: &str, about: &str) -> String {
    format!("# {title}\n\n{about}\n<!-- Written from the code by crates/steadfast/src/reference.rs; do not edit. -->\n")
}

/// A table of Markdown.
fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&headings.map(str::to_owned));
    text.push_str(&line(&headings.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(&row.map(|cell| cell.replace('|', "\\|").replace('\n', " "))));
    }
    text
}

/// Text between backticks, safe in a table; empty stays empty.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Prose in which `<` is no tag.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(i, part)| if i % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}
