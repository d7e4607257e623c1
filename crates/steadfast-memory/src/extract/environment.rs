//! Changes of the environment: activated environments, exported names (never their values), tool chains and installed
//! packages.

use super::Notes;
use std::path::Path;

use super::shell::line::{Command, is_variable};
use steadfast_model::memory::{Category, Importance};

/// What programs do with some of their subcommands.
const TOOLS: [(&str, &str, &str); 11] = [
    ("toolchain", "nvm fnm sdk mise", "use install default alias set"),
    ("toolchain", "volta corepack", "install pin enable use prepare"),
    ("toolchain", "pyenv rbenv nodenv goenv asdf", "local global shell install activate virtualenv set"),
    ("toolchain", "rustup", "default override install update toolchain target component"),
    ("toolchain", "conda mamba micromamba", "create install env"),
    ("install", "npm pnpm yarn bun deno", "install i ci add"),
    ("install", "poetry pdm cargo bundle apk composer dotnet", "install add require restore"),
    ("install", "pip pip3 pipx gem apt apt-get dnf yum zypper brew port snap choco winget scoop", "install"),
    ("install", "uv", "add sync venv pip tool"),
    ("install", "go", "get install"),
    ("install", "pacman", "-S -Sy -Syu"),
];

pub(super) fn note(notes: &mut Notes, command: &Command) {
    let program = command.program();
    let arguments: Vec<&str> = command.arguments().collect();
    let line = command.words.join(" ");
    let mut keep = |kind: &'static str, subject: &str, text: &str| {
        notes.keep(Category::Environment, kind, Importance::Normal, subject, text);
    };
    match (program, arguments.as_slice()) {
        ("source" | ".", [path, ..]) if Path::new(path).file_stem().is_some_and(|stem| stem == "activate") => {
            keep("activate", path, &format!("source {path}"));
        }
        ("conda" | "mamba" | "micromamba", ["activate", name, ..]) => keep("activate", name, &line),
        ("export", words) => {
            for name in words.iter().filter_map(|word| word.split('=').next()).filter(|name| is_variable(name)) {
                keep("export", name, &format!("export {name}"));
            }
        }
        ("python" | "python3", ["-m", "venv", ..]) => keep("toolchain", "python", &line),
        ("python" | "python3", ["-m", "pip", "install", ..]) => keep("install", "python", &line),
        (program, arguments) => {
            let verb = arguments.iter().find(|word| !word.starts_with("--"));
            let is_one_of = |list: &str, word: &str| list.split(' ').any(|known| known == word);
            let does = |(_, programs, verbs): &&(&str, &str, &str)| {
                is_one_of(programs, program) && verb.is_some_and(|verb| is_one_of(verbs, verb))
            };
            if let Some((kind, ..)) = TOOLS.iter().find(does) {
                keep(kind, program, &line);
            }
        }
    }
}
