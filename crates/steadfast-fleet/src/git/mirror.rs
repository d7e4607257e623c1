//! The mirror of a repository on a worker's machine: a bare repository below `$STEADFAST_HOME/fleet/mirrors`. Changes of
//! its refs wait for each other, also across processes; pushes do not. `mirror/pruning` deletes those that are not used.

pub(crate) mod pruning;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use steadfast_engine::process::Cancel;
use steadfast_model::text;
use steadfast_system::paths;

use super::{GitCall, Refs, WorkError, check_address};

/// How many refs one push deletes.
const MOST_DELETED: usize = 200;
/// How often a push is tried, with a pause that grows.
const TRIES: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// The mirror of one repository.
#[derive(Debug, Clone)]
pub(crate) struct Mirror {
    path: PathBuf,
    url: String,
    /// Locked for as long as the mirror is in use.
    _in_use: Arc<File>,
}

/// Held while the refs of a mirror change.
struct MirrorLock {
    _file: File,
}

impl Mirror {
    /// Opens the mirror, and creates it if it is missing.
    pub(crate) fn open(home: &Path, url: &str) -> Result<Self, WorkError> {
        check_address(url)?;
        let hash = text::hex(&Sha256::digest(url.as_bytes()));
        let name = hash.get(..20).unwrap_or(&hash);
        let mirrors = pruning::mirrors_of(home);
        for private in [home, &home.join("fleet"), &mirrors] {
            paths::create_private_dir(private)?;
        }
        let path = mirrors.join(name);
        let mirror = Self { _in_use: Arc::new(pruning::use_of(&path)?), path, url: url.to_owned() };
        if !mirror.path.join("HEAD").is_file() {
            let _lock = mirror.lock()?;
            paths::create_private_dir(&mirror.path)?;
            GitCall::at(&mirror.path).text(&["init", "--quiet", "--bare", "."])?;
        }
        Ok(mirror)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn lock(&self) -> Result<MirrorLock, WorkError> {
        let path = self.path.with_extension("lock");
        let file = fs_err::OpenOptions::new().create(true).append(true).open(path)?.into_parts().0;
        file.lock()?;
        Ok(MirrorLock { _file: file })
    }

    pub(crate) fn git(&self) -> GitCall<'_> {
        GitCall::at(&self.path)
    }

    /// The commit, blob or tree that a name stands for, if the mirror has it.
    pub(crate) fn resolve(&self, name: &str) -> Option<String> {
        let found = self.git().text(&["rev-parse", "--quiet", "--verify", "--end-of-options", name]).ok()?;
        (!found.is_empty()).then_some(found)
    }

    /// Where the mirror keeps a ref of the repository points to.
    pub(crate) fn kept(&self, remote: &str) -> Option<String> {
        self.resolve(&Refs::kept(remote))
    }

    pub(crate) fn has_commit(&self, sha: &str) -> Result<bool, WorkError> {
        if !is_sha(sha) {
            return Err(WorkError::Damaged(sha.escape_debug().to_string(), "it is no commit".to_owned()));
        }
        self.git().succeeds(&["cat-file", "-e", &format!("{sha}^{{commit}}")])
    }

    /// Fetches refs of the repository to where the mirror keeps them. A missing one is an error.
    pub(crate) fn fetch(&self, remotes: &[&str], cancel: &Cancel) -> Result<(), WorkError> {
        let specs: Vec<String> = remotes.iter().map(|remote| Refs::fetched(remote)).collect();
        let mut arguments =
            vec!["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", &self.url];
        arguments.extend(specs.iter().map(String::as_str));
        let _lock = self.lock()?;
        self.git().until(cancel).text(&arguments).map(drop)
    }

    /// Makes sure that the mirror has a commit: from the refs that should lead to it, otherwise by its id.
    pub(crate) fn ensure(&self, sha: &str, remotes: &[&str], cancel: &Cancel) -> Result<(), WorkError> {
        for remote in remotes {
            if self.has_commit(sha)? {
                return Ok(());
            }
            // A ref that is not there yet is no reason not to look at the next one.
            if let Err(WorkError::Stopped) = self.fetch(&[remote], cancel) {
                return Err(WorkError::Stopped);
            }
        }
        if self.has_commit(sha)? {
            return Ok(());
        }
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--"];
        let _lock = self.lock()?;
        self.git().until(cancel).text(&[&fetch[..], &[&self.url, sha]].concat()).map(drop)
    }

    /// The refs of the repository that match a pattern: name and commit.
    pub(crate) fn remote_refs(&self, pattern: &str) -> Result<Vec<(String, String)>, WorkError> {
        let listed = self.git().text(&["ls-remote", "--quiet", "--", &self.url, pattern])?;
        let pair = |line: &str| line.split_once('\t').map(|(sha, name)| (name.to_owned(), sha.to_owned()));
        Ok(listed.lines().filter_map(pair).collect())
    }

    /// The refs that the mirror keeps below a ref of the repository: the name there, and the commit.
    pub(crate) fn kept_below(&self, remote: &str) -> Result<Vec<(String, String)>, WorkError> {
        let kept = Refs::kept(remote);
        let listed = self.git().text(&["for-each-ref", "--format=%(objectname)\t%(refname)", &kept])?;
        let pair = |line: &str| {
            let (sha, name) = line.split_once('\t')?;
            Some((format!("{remote}{}", name.strip_prefix(&kept)?), sha.to_owned()))
        };
        Ok(listed.lines().filter_map(pair).collect())
    }

    /// Pushes from a repository that has the objects, and keeps in mind what was pushed.
    pub(crate) fn push(&self, from: &Path, push: &Push) -> Result<(), WorkError> {
        let mut arguments = vec!["push".to_owned(), "--quiet".to_owned(), "--no-verify".to_owned()];
        arguments.extend(push.leases.iter().map(|(name, old)| format!("--force-with-lease={name}:{old}")));
        arguments.extend(["--".to_owned(), self.url.clone()]);
        arguments.extend(push.updates.iter().map(|(name, sha)| format!("{sha}:{name}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        GitCall::at(from).text(&arguments).map(drop)
    }

    /// Pushes new refs; no other process writes them, so it is tried again when the network fails.
    pub(crate) fn push_new(&self, from: &Path, push: &Push, cancel: &Cancel) -> Result<(), WorkError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.push(from, push) {
                Err(error) if tries >= TRIES || cancel.is_cancelled() => return Err(error),
                Err(_) => std::thread::sleep(PAUSE * 4_u32.pow(tries)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Keeps in mind where refs of the repository point to.
    pub(crate) fn keep(&self, updates: &[(String, String)]) -> Result<(), WorkError> {
        let _lock = self.lock()?;
        for (name, sha) in updates {
            let kept = Refs::kept(name);
            let change: &[&str] =
                if sha.is_empty() { &["update-ref", "-d", &kept] } else { &["update-ref", &kept, sha] };
            self.git().text(change)?;
        }
        Ok(())
    }

    /// Deletes refs of the repository. Those that are gone already do not matter.
    pub(crate) fn delete(&self, names: &[String]) -> Result<(), WorkError> {
        for some in names.chunks(MOST_DELETED) {
            let updates = some.iter().map(|name| (name.clone(), String::new())).collect();
            let push = Push { updates, ..Push::default() };
            if self.push(&self.path, &push).is_err() {
                // One that is missing fails the whole push on some hosts.
                let left = self.still_there(some)?;
                if !left.is_empty() {
                    let updates = left.into_iter().map(|name| (name, String::new())).collect();
                    self.push(&self.path, &Push { updates, ..Push::default() })?;
                }
            }
            self.keep(&push.updates)?;
        }
        Ok(())
    }

    fn still_there(&self, names: &[String]) -> Result<Vec<String>, WorkError> {
        let mut arguments = vec!["ls-remote", "--quiet", "--", &self.url];
        arguments.extend(names.iter().map(String::as_str));
        let listed = self.git().text(&arguments)?;
        Ok(listed.lines().filter_map(|line| line.split_once('\t')).map(|(_, name)| name.to_owned()).collect())
    }
}

/// What to push: names of refs with their new commits, an empty one to delete a ref, and where refs must point to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Push {
    pub(crate) updates: Vec<(String, String)>,
    /// An empty commit for a ref that must not exist.
    pub(crate) leases: Vec<(String, String)>,
}

pub(crate) fn is_sha(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
