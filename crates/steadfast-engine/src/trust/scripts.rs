//! Finds the files of a project that a command runs: `./check.sh`, `bash scripts/x.sh`, `python3 tools/y.py`, and the
//! recipes of `make`, `just` and `npm run`. A file that a command only reads is left out, because agents change such files
//! all the time.

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use steadfast_system::{bounded, folder};

/// Programs that run the file which follows them.
const RUNNERS: [&str; 24] = [
    ".",
    "source",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "python",
    "pypy",
    "node",
    "deno",
    "bun",
    "tsx",
    "ruby",
    "perl",
    "php",
    "lua",
    "pwsh",
    "Rscript",
    "osascript",
    "awk",
    "make",
    "just",
];
const SCRIPT_ENDS: [&str; 16] =
    ["sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "lua", "ps1", "mk"];
/// Programs that run what a file in their directory says, and the names of that file in lower case.
const RECIPES: [(&[&str], &[&str]); 3] = [
    (&["make", "gmake"], &["gnumakefile", "makefile"]),
    (&["just"], &["justfile", ".justfile"]),
    (&["npm", "pnpm", "yarn", "bun"], &[PACKAGE]),
];
pub(super) const PACKAGE: &str = "package.json";
/// Words before the directory that a program works in.
const ENTERS: [&str; 8] = ["cd", "-C", "--directory", "--prefix", "--cwd", "--dir", "-d", "--working-directory"];
/// A command with more words is not looked at further.
const MOST_WORDS: usize = 10_000;
/// No directory with a recipe has more entries.
const MOST_ENTRIES: usize = 100_000;

/// The files that a command runs; `root` is the top of the repository.
pub(super) fn named_in(command: &str, project: &Path, root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut add = |file: PathBuf| {
        if !found.contains(&file) {
            found.push(file);
        }
    };
    let mut places = vec![project.to_owned()];
    for simple in command.split([';', '|', '&', '(', ')', '{', '}', '\n', '`']) {
        let mut runs_next = true;
        let mut recipes: Vec<&[&str]> = Vec::new();
        let mut words = simple.split([' ', '\t', '\'', '"', '=', '<', '>']).filter(|word| !word.is_empty());
        let mut before = "";
        for word in words.by_ref().take(MOST_WORDS) {
            let entered = if ENTERS.contains(&before) { Some(word) } else { word.strip_prefix("-C") };
            for entered in entered.into_iter().filter(|entered| !entered.is_empty()) {
                places.extend(files_of(entered, &places).filter(|place| place.is_dir()).collect::<Vec<_>>());
            }
            recipes.extend(recipes_of(word));
            for file in files_of(word, &places).filter(|file| file.is_file()).collect::<Vec<_>>() {
                if runs_next || is_script(&file)? {
                    add(file);
                }
            }
            // Flags and their values may stand between a program and its script.
            runs_next = is_runner(word) || runs_next && word.starts_with('-');
            before = word;
        }
        for names in recipes {
            for place in &places {
                recipe_files(names, place, root)?.into_iter().for_each(&mut add);
            }
        }
    }
    // Names with spaces.
    for word in shlex::Shlex::new(command).take(MOST_WORDS) {
        for file in files_of(&word, &places).filter(|file| file.is_file()) {
            if is_script(&file)? {
                add(file);
            }
        }
    }
    Ok(found)
}

/// Where a word may point to. `$DIR/x.sh` is tried as `x.sh`, since variables that name the project are common.
fn files_of<'a>(word: &'a str, places: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
    let below = word.starts_with(['$', '/', '~']).then(|| word.split_once('/')).flatten().map(|(_, rest)| rest);
    let names = [Some(word).filter(|word| !word.starts_with('/')), below];
    let names = names.into_iter().flatten().filter(|name| !name.is_empty());
    let in_places = names.flat_map(move |name| places.iter().map(move |place| place.join(name)));
    let own = Some(PathBuf::from(word)).filter(|path| path.is_absolute());
    let project = places.first().cloned().unwrap_or_default();
    in_places.chain(own.filter(move |path| path.starts_with(&project)))
}

fn recipes_of(word: &str) -> Option<&'static [&'static str]> {
    let name = word.rsplit('/').next().unwrap_or(word);
    RECIPES.iter().find(|(programs, _)| programs.contains(&name)).map(|(_, files)| *files)
}

/// The recipes that a program finds in a directory. All but `make` look in the directories above it as well.
fn recipe_files(names: &[&str], place: &Path, root: &Path) -> io::Result<Vec<PathBuf>> {
    let climbs = !names.contains(&"makefile");
    let above = place.ancestors().skip(1).filter(|above| climbs && above.starts_with(root));
    for directory in std::iter::once(place).chain(above) {
        let found = folder::names(directory, MOST_ENTRIES)?;
        let found = found.iter().filter(|name| names.contains(&name.to_ascii_lowercase().as_str()));
        let files: Vec<PathBuf> = found.map(|name| directory.join(name)).filter(|path| path.is_file()).collect();
        if !files.is_empty() {
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

fn is_runner(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNNERS.contains(&name) || RUNNERS.contains(&word)
}

fn is_script(file: &Path) -> io::Result<bool> {
    let has_end = file.extension().and_then(|end| end.to_str()).is_some_and(|end| SCRIPT_ENDS.contains(&end));
    let is_executable = || std::fs::metadata(file).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
    if has_end || is_executable() {
        return Ok(true);
    }
    let mut start = [0; 2];
    match bounded::open(file).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) => Ok(start == *b"#!"),
        // What is too short for a mark, is no file, or may not be read cannot be run as a script.
        Err(error) if CANNOT_RUN.contains(&error.kind()) => Ok(false),
        Err(error) => Err(error),
    }
}

const CANNOT_RUN: [ErrorKind; 3] = [ErrorKind::UnexpectedEof, ErrorKind::InvalidInput, ErrorKind::PermissionDenied];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_in_commands_and_files_that_are_only_read_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path();
        fs_err::create_dir_all(project.join("tools/my dir")).unwrap();
        for file in ["check.sh", "tools/x.sh", "tools/y.py", "tools/my dir/z.sh", "plan.md", "tool", "marked", "data"] {
            fs_err::write(project.join(file), if file == "marked" { "#!/bin/sh" } else { "x" }).unwrap();
        }
        for (command, expected) in [
            ("./check.sh", &["check.sh"][..]),
            ("check.sh --all plan.md", &["check.sh"]),
            ("bash tools/x.sh plan.md", &["tools/x.sh"]),
            ("bash -eu data", &["data"]),
            ("/usr/bin/python3.12 tools/y.py data", &["tools/y.py"]),
            ("test -s plan.md && grep -q done plan.md", &[]),
            ("make -s;./tool", &["tool"]),
            ("A=$(./tool) sh -c './check.sh | tee data'", &["tool", "check.sh"]),
            ("\"$ROOT\"/check.sh", &["check.sh"]),
            ("\"${ROOT}/tools/x.sh\" $(pwd)/check.sh", &["tools/x.sh", "check.sh"]),
            ("cd tools && ./x.sh", &["tools/x.sh"]),
            ("'tools/my dir/z.sh'", &["tools/my dir/z.sh"]),
            ("env -i . marked; cat data", &["marked"]),
            ("run --script=tools/x.sh < data", &["tools/x.sh"]),
            ("cat marked", &["marked"]),
            ("/bin/sh -c true /etc/passwd", &[]),
            ("", &[]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(|file| project.join(file)).collect();
            let found: Vec<PathBuf> = named_in(command, project, project)
                .unwrap()
                .iter()
                .map(|file| fs_err::canonicalize(file).unwrap())
                .collect();
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn recipes_of_make_just_and_npm_are_found_where_these_look_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(directory.path()).unwrap();
        let project = root.join("app");
        fs_err::create_dir_all(project.join("sub/deep")).unwrap();
        for file in ["package.json", "app/Makefile", "app/sub/GNUmakefile", "app/sub/Justfile", "app/rules.mk"] {
            fs_err::write(root.join(file), "x").unwrap();
        }
        for (command, expected) in [
            ("make check", &["app/Makefile"][..]),
            ("CI=1 /usr/bin/make -s && true", &["app/Makefile"]),
            ("sh -c 'make test'", &["app/Makefile"]),
            ("make -f rules.mk", &["app/rules.mk", "app/Makefile"]),
            ("make -C sub", &["app/Makefile", "app/sub/GNUmakefile"]),
            ("make -Csub", &["app/Makefile", "app/sub/GNUmakefile"]),
            ("cd sub/deep && just test", &["app/sub/Justfile"]),
            ("npm run test -- --all", &["package.json"]),
            ("pnpm --dir sub test; yarn lint", &["package.json"]),
            ("makeinfo x; cargo test; justice", &[]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(|file| root.join(file)).collect();
            assert_eq!(named_in(command, &project, &root).unwrap(), expected, "{command}");
        }
    }
}
