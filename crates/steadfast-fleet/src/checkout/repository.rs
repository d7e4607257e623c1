//! The repository of a checkout. An agent can change all of it, settings and hooks included, and git would run what they
//! name. So once the agent has ended, the repository is made anew, and only data is taken over: objects, the index, a
//! merge in progress, patterns of ignored files, and the commit that the agent left.

use std::path::{Path, PathBuf};

use steadfast_engine::files;

use crate::git::mirror::{Mirror, is_sha};
use crate::git::{GitCall, WorkError};

/// Files without settings that a commit needs.
const CARRIED: [&str; 5] = ["index", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE"];
/// Parts of an index that is split.
const SHARED_INDEX: &str = "sharedindex.";
/// The most bytes that are read of a file of refs.
const MOST_REFS: u64 = 16 << 20;
/// How many symbolic refs lead to a commit at most.
const MOST_STEPS: usize = 5;

#[derive(Debug, Clone)]
pub(super) struct CheckoutRepository {
    tree: PathBuf,
    /// The objects of the mirror.
    objects: PathBuf,
    url: String,
    /// The commit that is checked out.
    base: String,
    /// Branches that the stage merges, with their commits.
    branches: Vec<(String, String)>,
}

impl CheckoutRepository {
    pub(super) fn new(tree: PathBuf, mirror: &Mirror, base: &str) -> Self {
        let (objects, url) = (mirror.path().join("objects"), mirror.url().to_owned());
        Self { tree, objects, url, base: base.to_owned(), branches: Vec::new() }
    }

    fn git(&self) -> GitCall<'_> {
        GitCall::at(&self.tree)
    }

    /// Makes the repository, with nothing checked out.
    pub(super) fn create(&self, more_objects: Option<&Path>) -> Result<(), WorkError> {
        self.git().text(&["init", "--quiet", "--template=", "."])?;
        let info = self.tree.join(".git").join("info");
        let objects = self.tree.join(".git").join("objects").join("info");
        for folder in [&info, &objects] {
            fs_err::create_dir_all(folder)?;
        }
        let mut alternates = String::new();
        for path in std::iter::once(self.objects.as_path()).chain(more_objects) {
            alternates.push_str(&path.to_string_lossy());
            alternates.push('\n');
        }
        fs_err::write(objects.join("alternates"), alternates)?;
        // The agent sees the repository itself as its remote, as in a clone of the user's.
        self.git().text(&["config", "remote.origin.url", &self.url])?;
        self.git().text(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"])?;
        // Agents commit, also on a machine whose owner never told git a name.
        if !self.git().succeeds(&["var", "GIT_COMMITTER_IDENT"])? {
            self.git().text(&["config", "user.name", "Steadfast"])?;
            self.git().text(&["config", "user.email", "steadfast@localhost"])?;
        }
        let exclude: String = files::patterns_anywhere().map(|line| line + "\n").collect();
        fs_err::write(info.join("exclude"), exclude)?;
        Ok(())
    }

    pub(super) fn add_branch(&mut self, name: &str, head: &str) -> Result<(), WorkError> {
        self.git().text(&["update-ref", name, head])?;
        self.branches.push((name.to_owned(), head.to_owned()));
        Ok(())
    }

    /// Replaces the repository by a new one with the same content. `aside` is where the old one goes.
    pub(super) fn rebuild(&self, aside: &Path) -> Result<(), WorkError> {
        let git = self.tree.join(".git");
        let found = fs_err::symlink_metadata(&git).ok();
        let is_repository = found.as_ref().is_some_and(std::fs::Metadata::is_dir);
        if found.is_some() {
            fs_err::rename(&git, aside)?;
        }
        if !is_repository {
            self.create(None)?;
            return self.set_head(&self.base);
        }
        self.create(Some(&aside.join("objects")))?;
        carry(aside, &git)?;
        let head = resolve(aside, "HEAD", MOST_STEPS).unwrap_or_else(|| self.base.clone());
        // The run's branch only moves forward: work on other commits is kept as a change of the files.
        let is_later = self.git().succeeds(&["merge-base", "--is-ancestor", &self.base, &head])?;
        self.set_head(if is_later { &head } else { &self.base })
    }

    fn set_head(&self, head: &str) -> Result<(), WorkError> {
        self.git().text(&["update-ref", "--no-deref", "HEAD", head])?;
        for (name, commit) in &self.branches {
            self.git().text(&["update-ref", name, commit])?;
        }
        Ok(())
    }
}

fn is_plain_file(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|it| it.is_file())
}

/// Takes over files of the old repository. They are moved, because git compares the time of the index.
fn carry(from: &Path, to: &Path) -> Result<(), WorkError> {
    let shared = fs_err::read_dir(from)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let shared: Vec<String> = shared.filter(|name| name.starts_with(SHARED_INDEX)).collect();
    for name in CARRIED.into_iter().chain(shared.iter().map(String::as_str)) {
        if is_plain_file(&from.join(name)) {
            fs_err::rename(from.join(name), to.join(name))?;
        }
    }
    let exclude = Path::new("info").join("exclude");
    if is_plain_file(&from.join(&exclude)) {
        let ours = fs_err::read(to.join(&exclude))?;
        let theirs = fs_err::read(from.join(&exclude))?;
        fs_err::write(to.join(&exclude), [theirs, b"\n".to_vec(), ours].concat())?;
    }
    Ok(())
}

/// The commit that a ref of a repository leads to, read without git, which would read its settings.
fn resolve(repository: &Path, name: &str, steps: usize) -> Option<String> {
    let is_inside = !name.starts_with('/') && !name.split('/').any(|part| part.is_empty() || part == "..");
    if steps == 0 || !is_inside {
        return None;
    }
    let read = |path: PathBuf| {
        let is_readable = is_plain_file(&path) && fs_err::metadata(&path).is_ok_and(|it| it.len() <= MOST_REFS);
        is_readable.then(|| fs_err::read_to_string(&path).ok()).flatten()
    };
    let packed = || {
        let listed = read(repository.join("packed-refs"))?;
        let mut lines = listed.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(_, found)| *found == name).map(|(sha, _)| sha.to_owned())
    };
    let text = read(repository.join(name)).or_else(packed)?;
    let text = text.trim();
    match text.strip_prefix("ref:") {
        Some(next) => resolve(repository, next.trim(), steps - 1),
        None => is_sha(text).then(|| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_read_without_git() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let head = || resolve(folder.path(), "HEAD", MOST_STEPS);
        assert_eq!(head(), None);
        write("HEAD", &format!("{one}\n"));
        assert_eq!(head(), Some(one.clone()));
        write("HEAD", "ref: refs/heads/topic\n");
        assert_eq!(head(), None, "a branch without a commit");
        write("packed-refs", &format!("# pack-refs\n{two} refs/heads/topic\n"));
        assert_eq!(head(), Some(two));
        write("refs/heads/topic", &one);
        assert_eq!(head(), Some(one));
        for text in ["ref: HEAD", "ref: ../../outside", "ref: /etc/passwd", "--upload-pack=x"] {
            write("HEAD", text);
            assert_eq!(head(), None, "{text}");
        }
    }
}
