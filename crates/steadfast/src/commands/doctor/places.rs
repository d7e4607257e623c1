//! Home, its permissions and its configuration.

use steadfast_hosts::doctor::{DoctorCheck, fail, ok, warn};
use steadfast_hosts::install;
use steadfast_store::remove_stray_backups;
use steadfast_system::config::ConfigError;
use steadfast_system::disk::DiskFault;
use steadfast_system::paths::Paths;
use steadfast_system::private;

pub(super) fn home(paths: &Paths) -> DoctorCheck {
    let shown = paths.home.display().to_string();
    if !paths.home.exists() {
        return ok("home", format!("{shown} (created when first needed)"));
    }
    match tempfile::tempfile_in(&paths.home) {
        Ok(_) => ok("home", shown),
        Err(error) => {
            let hint = DiskFault::of(&error).map_or("make it writable, or set STEADFAST_HOME", DiskFault::hint);
            let what = DiskFault::of(&error).map_or_else(|| error.to_string(), |fault| fault.to_string());
            fail("home", format!("{what}: {shown}"), hint)
        }
    }
}

/// Whether other users can use home or store. What could be closed to them was, before this report.
pub(super) fn permissions(paths: &Paths) -> DoctorCheck {
    let places = [&paths.home, &paths.store];
    if let Some((path, mode)) = places.into_iter().find_map(|path| Some((path, private::open_mode(path)?))) {
        let detail = format!("other users can use {} (mode {mode:04o})", path.display());
        let hint = "set STEADFAST_HOME to a directory that has no other use, or run `chmod go-rwx` on this one";
        return warn("permissions", detail, hint);
    }
    if paths.closed.is_empty() {
        return ok("permissions", "for your user alone");
    }
    let closed: Vec<String> = paths.closed.iter().map(ToString::to_string).collect();
    ok("permissions", format!("repaired: closed to other users: {}", closed.join(", ")))
}

pub(super) fn config(paths: &Paths, broken: Option<&ConfigError>) -> DoctorCheck {
    if let Some(error) = broken {
        return fail("config", error.to_string(), "fix that line; until then no goal is driven");
    }
    let file = paths.config_file();
    if !file.exists() {
        return ok("config", "none; the defaults apply");
    }
    let unknown: Vec<String> = paths.config.unknown.iter().map(ToString::to_string).collect();
    if unknown.is_empty() {
        return ok("config", file.display().to_string());
    }
    fail("config", unknown.join("; "), "correct or remove the key; a newer steadfast may know it")
}

/// Removes what killed processes left unfinished; `None` if there was nothing.
pub(super) fn strays(paths: &Paths) -> Option<DoctorCheck> {
    let mut removed = install::remove_strays(&paths.home, None);
    removed.extend(remove_stray_backups(&paths.store));
    let shown: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    (!shown.is_empty()).then(|| ok("unfinished_files", format!("removed: {}", shown.join(", "))))
}
