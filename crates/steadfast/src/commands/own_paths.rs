//! Finds home, store and configuration for a command in a terminal, and says once on stderr what is odd about them.

use std::path::Path;
use std::sync::Once;

use steadfast_system::config::ConfigError;
use steadfast_system::log;
use steadfast_system::paths::Paths;

use crate::error::CliError;
use crate::output;

/// Notes in the log are no errors.
pub(super) const NOTE: &str = "note: ";

/// For a command that may start something: a broken configuration is an error.
pub(super) fn find(db: Option<&Path>) -> Result<Paths, CliError> {
    let paths = Paths::find(db)?;
    warn(&paths, None);
    Ok(paths)
}

/// For a command that starts nothing: the defaults take the place of a broken configuration, with a warning.
pub(super) fn find_to_read(db: Option<&Path>) -> Result<Paths, CliError> {
    let (paths, broken) = Paths::find_despite_config(db)?;
    warn(&paths, broken.as_ref());
    Ok(paths)
}

/// Records what was closed to other users.
pub(super) fn log_closed(paths: &Paths) {
    if paths.closed.is_empty() {
        return;
    }
    let closed: Vec<String> = paths.closed.iter().map(ToString::to_string).collect();
    log::line(&paths.log_file(), &format!("{NOTE}closed to other users: {}", closed.join(", ")));
}

fn warn(paths: &Paths, broken: Option<&ConfigError>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log_closed(paths);
        if let Some(error) = broken {
            output::note(&format!("warning: {error}; the defaults apply"));
        }
        for key in &paths.config.unknown {
            output::note(&format!("warning: {key}"));
        }
    });
}
