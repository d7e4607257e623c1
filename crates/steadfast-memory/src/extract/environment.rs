//! Changes of the environment: activated environments, exported names (never their values), tool chains and installed
//! packages.

use super::{Notes, ONE_LINE_MAX};
use steadfast_model::memory::{Category, Importance};

/// Programs that choose versions, with the subcommands that do.
const TOOLCHAINS: [(&str, &[&str]); 16] = [
    ("nvm", &["use", "install", "alias"]),
    ("fnm", &["use", "install", "default"]),
    ("volta", &["install", "pin"]),
    ("pyenv", &["local", "global", "shell", "install", "activate", "virtualenv"]),
    ("rbenv", &["local", "global", "shell", "install"]),
    ("nodenv", &["local", "global", "shell", "install"]),
    ("goenv", &["local", "global", "shell", "install"]),
    ("asdf", &["local", "global", "shell", "install", "set"]),
    ("mise", &["use", "install", "set"]),
    ("rustup", &["default", "override", "install", "update", "toolchain", "target", "component"]),
    ("sdk", &["use", "install", "default"]),
    ("conda", &["create", "install", "env"]),
    ("mamba", &["create", "install", "env"]),
    ("micromamba", &["create", "install", "env"]),
    ("virtualenv", &[""]),
    ("corepack", &["enable", "use", "prepare"]),
];

/// Programs that install packages, with the subcommands that do.
const INSTALLERS: [(&str, &[&str]); 30] = [
    ("npm", &["install", "i", "ci", "add"]),
    ("pnpm", &["install", "i", "add"]),
    ("yarn", &["install", "add", ""]),
    ("bun", &["install", "i", "add"]),
    ("deno", &["install", "add"]),
    ("pip", &["install"]),
    ("pip3", &["install"]),
    ("pipx", &["install"]),
    ("uv", &["add", "sync", "venv", "pip", "tool"]),
    ("poetry", &["add", "install"]),
    ("pdm", &["add", "install"]),
    ("cargo", &["add", "install"]),
    ("go", &["get", "install"]),
    ("gem", &["install"]),
    ("bundle", &["install", "add"]),
    ("composer", &["install", "require"]),
    ("dotnet", &["add", "restore"]),
    ("apt", &["install"]),
    ("apt-get", &["install"]),
    ("apk", &["add"]),
    ("dnf", &["install"]),
    ("yum", &["install"]),
    ("zypper", &["install", "in"]),
    ("pacman", &["-S", "-Sy", "-Syu"]),
    ("brew", &["install"]),
    ("port", &["install"]),
    ("snap", &["install"]),
    ("choco", &["install"]),
    ("winget", &["install"]),
    ("scoop", &["install"]),
];

pub(super) fn note(notes: &mut Notes, words: &[String]) {
    let Some((program, arguments)) = words.split_first() else {
        return;
    };
    let program = program.rsplit('/').next().unwrap_or_default();
    let first = arguments.first().map_or("", String::as_str);
    let mut keep = |kind: &'static str, subject: &str, text: &str| {
        notes.keep(Category::Environment, kind, Importance::Normal, subject, text, ONE_LINE_MAX);
    };
    match program {
        "source" | "." if is_activation(first) => keep("activate", first, &format!("source {first}")),
        "conda" | "mamba" | "micromamba" if first == "activate" => {
            let name = arguments.get(1).map_or("base", String::as_str);
            keep("activate", name, &format!("{program} activate {name}"));
        }
        "export" => {
            for name in arguments.iter().filter_map(|word| exported(word)) {
                keep("export", name, &format!("export {name}"));
            }
        }
        "python" | "python3" if first == "-m" => {
            if let Some(module @ ("pip" | "venv")) = arguments.get(1).map(String::as_str)
                && (module == "venv" || arguments.get(2).is_some_and(|word| word == "install"))
            {
                keep(if module == "pip" { "install" } else { "toolchain" }, "python", &words.join(" "));
            }
        }
        _ => {
            let does = |list: &[(&str, &[&str])]| {
                let verb =
                    arguments.iter().map(String::as_str).find(|word| !word.starts_with("--")).unwrap_or_default();
                list.iter().any(|(name, verbs)| *name == program && (verbs.contains(&verb) || (*verbs == [""])))
            };
            if does(&TOOLCHAINS) {
                keep("toolchain", program, &words.join(" "));
            } else if does(&INSTALLERS) {
                keep("install", program, &words.join(" "));
            }
        }
    }
}

fn is_activation(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name == "activate" || name.starts_with("activate.")
}

/// The name in `NAME=value`.
fn exported(word: &str) -> Option<&str> {
    let name = word.split('=').next().unwrap_or_default();
    let fine = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    fine.then_some(name)
}
