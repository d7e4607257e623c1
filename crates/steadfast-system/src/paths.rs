//! Where things are on disk: the home directory, the store, the configuration and the log.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use crate::config::{Config, ConfigError};
use crate::env_vars;
use crate::private::{self, Closed, PrivacyError};

#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("no home directory is known")]
    NoHome,
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Private(#[from] PrivacyError),
}

impl PathError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoHome => "set STEADFAST_HOME",
            Self::Config(error) => error.hint(),
            Self::Private(error) => error.hint(),
        }
    }
}

/// The rule by which a plugin that was not set up keeps its store in the directory that the client gives it.
pub const PLUGIN_DATA: &str = "$CLAUDE_PLUGIN_DATA";

/// The directories and settings of this invocation.
#[derive(Debug, Clone)]
pub struct Paths {
    pub home: PathBuf,
    pub store: PathBuf,
    /// Which rule chose the store, for `doctor`.
    pub store_from: &'static str,
    pub config: Config,
    /// What other users could read or write until this call.
    pub closed: Vec<Closed>,
}

impl Paths {
    /// Finds the home and the store: `--db`, `$STEADFAST_DB`, the configuration, the plugin's data directory,
    /// the home directory; the first that applies.
    pub fn find(db_flag: Option<&Path>) -> Result<Self, PathError> {
        match Self::find_despite_config(db_flag)? {
            (_, Some(error)) => Err(error.into()),
            (paths, None) => Ok(paths),
        }
    }

    /// The same with the defaults instead of a broken configuration, and what is wrong with it.
    pub fn find_despite_config(db_flag: Option<&Path>) -> Result<(Self, Option<ConfigError>), PathError> {
        let home = home()?;
        // Before the configuration of another user is read.
        let mut closed = private::close_home(&home)?;
        let (config, error) = Config::load_or_default(&home.join("config.toml"));
        let (store, store_from) = if let Some(path) = db_flag {
            (path.to_owned(), "--db")
        } else if let Some(path) = env_vars::path(env_vars::DB) {
            (path, "$STEADFAST_DB")
        } else if let Some(path) = &config.db {
            (path.clone(), "config.toml")
        } else if let Some(path) = env_vars::path(env_vars::CLAUDE_PLUGIN_DATA) {
            (path.join("goals.db"), PLUGIN_DATA)
        } else {
            (home.join("goals.db"), "home")
        };
        closed.extend(private::close_store(&store)?);
        Ok((Self { home, store, store_from, config, closed }, error))
    }

    /// The paths of a process that was started in the background: its environment may be that of another terminal.
    pub fn at(home: PathBuf, store: PathBuf, store_from: &'static str) -> Result<Self, PathError> {
        let mut closed = private::close_home(&home)?;
        let config = Config::load(&home.join("config.toml"))?;
        closed.extend(private::close_store(&store)?);
        Ok(Self { home, store, store_from, config, closed })
    }

    pub fn config_file(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    pub fn log_file(&self) -> PathBuf {
        self.home.join("log").join("hooks.log")
    }

    /// The log of `steadfast watch` in the background.
    pub fn watch_log(&self) -> PathBuf {
        self.home.join("log").join("watch.log")
    }

    /// Why old rows could not be deleted.
    pub fn upkeep_log(&self) -> PathBuf {
        self.home.join("log").join("upkeep.log")
    }
}

/// `$STEADFAST_HOME`, else the platform's data directory.
pub fn home() -> Result<PathBuf, PathError> {
    if let Some(home) = env_vars::path(env_vars::HOME) {
        return Ok(home);
    }
    let strategy = etcetera::choose_base_strategy().map_err(|_| PathError::NoHome)?;
    Ok(strategy.data_dir().join("steadfast"))
}

/// Creates a directory that only its owner can read, and those above it that are missing in the same way.
pub fn create_private_dir(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| {
        // A file is in the way.
        let is_taken = source.kind() == std::io::ErrorKind::AlreadyExists;
        let source = if is_taken { rustix::io::Errno::NOTDIR.into() } else { source };
        std::io::Error::new(source.kind(), format!("cannot create the directory `{}`: {source}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn every_directory_that_is_made_is_private() {
        let world = tempfile::tempdir().unwrap();
        let deepest = world.path().join("home/loops/mine");
        create_private_dir(&deepest).unwrap();
        create_private_dir(&deepest).unwrap();
        for path in ["home", "home/loops", "home/loops/mine"] {
            let mode = fs_err::metadata(world.path().join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{path}");
        }
        fs_err::write(world.path().join("file"), "").unwrap();
        let refused = create_private_dir(&world.path().join("file/below")).unwrap_err();
        assert!(refused.to_string().contains("file/below"), "{refused}");
    }
}
