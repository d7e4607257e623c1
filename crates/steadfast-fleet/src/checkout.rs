//! Where one attempt works: a folder of its own below `$STEADFAST_HOME/fleet/work` with a repository that shares
//! the objects of the mirror. What an agent does to the settings and hooks of its repository ends with the agent
//! (`checkout/repository`). A lock shows that the worker lives; folders whose worker was killed are removed when the next
//! one starts.

mod repository;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use steadfast_engine::attempt::Attempt;
use steadfast_engine::process::Cancel;
use steadfast_engine::run_folder::RunFolder;
use steadfast_system::paths;

use self::repository::CheckoutRepository;
use crate::git::mirror::Mirror;
use crate::git::{GitCall, IDENTITY, WorkError};
use crate::wire::RunRef;

const LOCK: &str = "lock";
/// The folder of the checkout.
const TREE: &str = "tree";

fn work_of(home: &Path) -> PathBuf {
    home.join("fleet").join("work")
}

/// A folder with a checkout. It is removed on drop.
#[derive(Debug)]
pub(crate) struct FleetCheckout {
    root: PathBuf,
    subdirectory: String,
    repository: CheckoutRepository,
    /// Set once the repository was made anew after the agent: whether that succeeded.
    rebuilt: Arc<OnceLock<Result<(), String>>>,
    _lock: File,
}

impl FleetCheckout {
    /// Checks out a commit that the mirror has. `key` is what it is for.
    pub(crate) fn create(
        home: &Path,
        mirror: &Mirror,
        run: &RunRef,
        key: &str,
        sha: &str,
        cancel: &Cancel,
    ) -> Result<Self, WorkError> {
        let work = work_of(home);
        let random = uuid::Uuid::new_v4().simple().to_string();
        let root = work.join(format!("{key}-{}", random.get(..8).unwrap_or_default()));
        for private in [&work, &root] {
            paths::create_private_dir(private)?;
        }
        let lock = lock_file(&root)?;
        lock.lock()?;
        let tree = root.join(TREE);
        let repository = CheckoutRepository::new(tree.clone(), mirror, sha);
        let subdirectory = run.repo.subdirectory.clone();
        let checkout = Self { root, subdirectory, repository, rebuilt: Arc::default(), _lock: lock };
        paths::create_private_dir(&tree)?;
        checkout.repository.create(None)?;
        GitCall::at(&tree).until(cancel).text(&["checkout", "--quiet", "--detach", sha, "--"])?;
        fs_err::create_dir_all(checkout.directory())?;
        Ok(checkout)
    }

    /// Adds a branch that the stage merges.
    pub(crate) fn add_branch(&mut self, name: &str, head: &str) -> Result<(), WorkError> {
        self.repository.add_branch(name, head)
    }

    /// What makes the repository anew, once: to be called when the agent or the commands of a check have ended, before
    /// git is called again.
    pub(crate) fn rebuilding(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let (repository, rebuilt) = (self.repository.clone(), Arc::clone(&self.rebuilt));
        let aside = self.root.join(format!("left-{}.git", uuid::Uuid::new_v4().simple()));
        move || rebuilt.get_or_init(|| repository.rebuild(&aside).map_err(|error| error.to_string())).clone()
    }

    /// Makes sure that nothing which an agent or a command left in the repository's settings is used.
    pub(crate) fn secure(&self) -> Result<(), WorkError> {
        let damaged = |message| WorkError::Damaged("the repository that the agent left".to_owned(), message);
        self.rebuilding()().map_err(damaged)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The root of the checkout.
    pub(crate) fn tree(&self) -> PathBuf {
        self.root.join(TREE)
    }

    /// The project in the checkout.
    pub(crate) fn directory(&self) -> PathBuf {
        if self.subdirectory.is_empty() { self.tree() } else { self.tree().join(&self.subdirectory) }
    }

    /// Commits everything that is not ignored, and returns the newest commit. An agent that left nothing gets an empty one.
    pub(crate) fn commit(&self, base: &str, message: &str) -> Result<String, WorkError> {
        self.secure()?;
        let tree = self.tree();
        let add = ["-c", "core.safecrlf=false", "add", "--all"];
        if let Err(error) = GitCall::at(&tree).text(&add) {
            // What cannot be added, such as a repository without a commit, does not prevent the rest.
            let some = GitCall::at(&tree).text(&[&add[..], &["--ignore-errors"]].concat());
            some.map_err(|_| error)?;
        }
        let head = || GitCall::at(&tree).text(&["rev-parse", "--verify", "HEAD^{commit}"]);
        let is_clean = GitCall::at(&tree).succeeds(&["diff", "--cached", "--quiet"])?;
        if !is_clean || head()? == base {
            let commit = ["commit", "--quiet", "--no-verify", "--allow-empty", "-m", message];
            let own = GitCall::at(&tree).text(&commit);
            own.or_else(|_| GitCall::at(&tree).text(&[&IDENTITY[..], &commit].concat()))?;
        }
        head()
    }
}

impl Drop for FleetCheckout {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

fn lock_file(root: &Path) -> std::io::Result<File> {
    let file = fs_err::OpenOptions::new().create(true).append(true).open(root.join(LOCK))?;
    Ok(file.into_parts().0)
}

/// Removes a folder, the lock last: what stays of it is removed by the next worker.
fn remove(root: &Path) {
    for name in [TREE, "runs", "worktrees"] {
        // Best effort, as the next worker tries again.
        let _ = fs_err::remove_dir_all(root.join(name));
    }
    let _ = fs_err::remove_dir_all(root);
}

/// Ends the agents that killed workers of this home left, and removes their folders.
pub(crate) fn tidy(home: &Path, grace: Duration) -> std::io::Result<()> {
    let Ok(entries) = fs_err::read_dir(work_of(home)) else { return Ok(()) };
    for root in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let lock = lock_file(&root)?;
        if lock.try_lock().is_err() {
            continue;
        }
        let runs = fs_err::read_dir(root.join("runs")).into_iter().flatten().flatten();
        for run in runs.filter_map(|entry| entry.file_name().into_string().ok()) {
            for attempt in RunFolder::at(&root, &run).attempts() {
                Attempt::in_directory(attempt).stop(grace)?;
            }
        }
        remove(&root);
    }
    Ok(())
}
