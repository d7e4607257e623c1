//! The inputs of a run: files, directories and patterns with `*`, `?` and `**`. Directories and patterns skip hidden
//! files, and links are not followed out of the directory that was named.

use std::fs::FileType;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use super::inputs;
use super::keys::{LocatedText, Value};
use super::rules::is_inside_project;

/// More files are refused.
const MOST_FILES: usize = 500;
/// How deep directories are searched, and how many entries are looked at.
const MAX_DEPTH: usize = 12;
const MOST_ENTRIES: usize = 50_000;

/// Files, directories and patterns in the project.
pub(super) fn input_patterns(value: &Value<'_>) -> Option<Vec<LocatedText>> {
    let mut patterns = inputs::names(value)?;
    patterns.retain(|(pattern, at)| {
        let is_inside = is_inside_project(pattern);
        if !is_inside {
            let fix = format!("name a file in the project, or give it when you run it: `--input {pattern}`");
            at.error(format!("the input `{pattern}` is outside of the project"), fix);
        }
        is_inside
    });
    Some(patterns)
}

#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("there is no file for the input `{0}`")]
    Nothing(String),
    #[error("the input `{pattern}` means more than {MOST_FILES} files")]
    TooMany { pattern: String },
    #[error("the input `{pattern}` leaves the project")]
    LeavesProject { pattern: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl InputError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nothing(_) => "name a file, a directory or a pattern such as `docs/*.md`",
            Self::TooMany { .. } => "name fewer files, or let the prompt say where they are",
            Self::LeavesProject { .. } => "name it with --input instead",
            Self::Io(_) => "check that it can be read",
        }
    }
}

/// The files that an input means, absolute and in order. Relative ones are below `base`; `inside` refuses files whose
/// real place is outside of it.
pub fn input_files(base: &Path, pattern: &str, inside: bool) -> Result<Vec<PathBuf>, InputError> {
    let whole = base.join(pattern);
    let mut search = FileSearch { files: Vec::new(), looked_at: 0 };
    if whole.is_file() {
        search.files.push(whole);
    } else if whole.is_dir() {
        search.all_below(&whole, 0)?;
    } else {
        let (fixed, rest) = split(&whole);
        search.matching(&fixed, &rest, 0)?;
    }
    search.files.sort();
    search.files.dedup();
    if search.files.len() > MOST_FILES || search.looked_at > MOST_ENTRIES {
        return Err(InputError::TooMany { pattern: pattern.to_owned() });
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let root = real(base);
    let leaves = |file: &PathBuf| !real(file).zip(root.as_ref()).is_some_and(|(file, root)| file.starts_with(root));
    if inside && search.files.iter().any(leaves) {
        return Err(InputError::LeavesProject { pattern: pattern.to_owned() });
    }
    if search.files.is_empty() {
        return Err(InputError::Nothing(pattern.to_owned()));
    }
    Ok(search.files)
}

fn has_wildcard(part: &str) -> bool {
    part.contains(['*', '?'])
}

/// The part of a path before its first wildcard, and the components from there.
fn split(path: &Path) -> (PathBuf, Vec<String>) {
    let mut fixed = PathBuf::new();
    let mut rest: Vec<String> = Vec::new();
    for component in path.components() {
        let part = component.as_os_str().to_string_lossy();
        if rest.is_empty() && !(matches!(component, Component::Normal(_)) && has_wildcard(&part)) {
            fixed.push(component);
        } else {
            rest.push(part.into_owned());
        }
    }
    (fixed, rest)
}

struct FileSearch {
    files: Vec<PathBuf>,
    looked_at: usize,
}

impl FileSearch {
    fn is_full(&self) -> bool {
        self.files.len() > MOST_FILES || self.looked_at > MOST_ENTRIES
    }

    /// The names in a directory, without hidden ones; none if there is no such directory.
    fn entries(&mut self, directory: &Path) -> io::Result<Vec<(String, FileType)>> {
        let entries = match fs_err::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            self.looked_at += 1;
            if self.is_full() {
                break;
            }
            if let Ok(name) = entry.file_name().into_string()
                && !name.starts_with('.')
            {
                names.push((name, entry.file_type()?));
            }
        }
        Ok(names)
    }

    fn all_below(&mut self, directory: &Path, depth: usize) -> io::Result<()> {
        for (name, kind) in self.entries(directory)? {
            if kind.is_dir() && depth < MAX_DEPTH {
                self.all_below(&directory.join(name), depth + 1)?;
            } else if kind.is_file() {
                self.files.push(directory.join(name));
            }
        }
        Ok(())
    }

    fn matching(&mut self, directory: &Path, rest: &[String], depth: usize) -> io::Result<()> {
        let Some((first, later)) = rest.split_first() else { return Ok(()) };
        if depth > MAX_DEPTH || self.is_full() {
            return Ok(());
        }
        if first == "**" {
            self.matching(directory, later, depth)?;
        }
        for (name, kind) in self.entries(directory)? {
            let path = directory.join(&name);
            if first == "**" {
                if kind.is_dir() {
                    self.matching(&path, rest, depth + 1)?;
                } else if kind.is_file() && later.is_empty() {
                    self.files.push(path);
                }
            } else if matches(first, &name) {
                match later {
                    [] if kind.is_file() || path.is_file() => self.files.push(path),
                    [] => {}
                    later => self.matching(&path, later, depth + 1)?,
                }
            }
        }
        Ok(())
    }
}

/// Whether a name fits a pattern of `*` and `?`. Linear in practice: only the last `*` is tried again.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut retry) = (0, 0, None);
    while let Some(character) = name.get(n) {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n + 1));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == character => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((after_star, next)) = retry else { return false };
                (p, n) = (after_star, next);
                retry = Some((after_star, next + 1));
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|character| *character == '*'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_match_patterns() {
        for (pattern, name, fits) in [
            ("*.md", "a.md", true),
            ("*.md", "a.mdx", false),
            ("a?c*", "abcd", true),
            ("*a*b*", "xaxb", true),
            ("*a*b", "xbxa", false),
            ("**", "x", true),
            ("", "", true),
            ("?", "", false),
            ("ä?.md", "äü.md", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }

    #[test]
    fn inputs_are_files_directories_and_patterns() {
        let world = tempfile::tempdir().unwrap();
        let project = world.path().join("project");
        for file in ["docs/a.md", "docs/b.txt", "docs/deep/er/c.md", "docs/.hidden.md", "plan.md"] {
            fs_err::create_dir_all(project.join(file).parent().unwrap()).unwrap();
            fs_err::write(project.join(file), "x").unwrap();
        }
        fs_err::write(world.path().join("secret.md"), "x").unwrap();
        symlink("../secret.md", project.join("link.md")).unwrap();
        for (pattern, expected) in [
            ("plan.md", &["plan.md"][..]),
            ("docs", &["docs/a.md", "docs/b.txt", "docs/deep/er/c.md"]),
            ("docs/*.md", &["docs/a.md"]),
            ("**/*.md", &["docs/a.md", "docs/deep/er/c.md", "plan.md"]),
            ("docs/*/er/?.md", &["docs/deep/er/c.md"]),
            ("docs/**", &["docs/a.md", "docs/b.txt", "docs/deep/er/c.md"]),
        ] {
            let found = input_files(&project, pattern, pattern != "**/*.md");
            let expected: Vec<PathBuf> = expected.iter().map(|file| project.join(file)).collect();
            let mut found = found.unwrap();
            found.retain(|file| !file.ends_with("link.md"));
            assert_eq!(found, expected, "{pattern}");
        }
        for pattern in ["nothing.md", "docs/*.rs", "docs/.hidden*"] {
            let error = input_files(&project, pattern, true).unwrap_err();
            assert_eq!(error.to_string(), format!("there is no file for the input `{pattern}`"));
        }
        for pattern in ["link.md", "../secret.md", "*.md"] {
            let error = input_files(&project, pattern, true).unwrap_err();
            assert_eq!(error.to_string(), format!("the input `{pattern}` leaves the project"));
        }
        symlink("round", project.join("round")).unwrap();
        for pattern in ["round/*.md", "*/a.md"] {
            let error = input_files(&project, pattern, true).unwrap_err();
            assert!(error.to_string().contains(&*project.join("round").to_string_lossy()), "{pattern}: {error}");
        }
        assert_eq!(input_files(&project, "../secret.md", false).unwrap().len(), 1);
    }
}
