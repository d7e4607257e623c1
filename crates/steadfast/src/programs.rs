//! Finds programs on PATH.

use std::env::consts::{ARCH, OS};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use steadfast_system::env_vars;

/// This program, also after its file was replaced by an upgrade.
pub(crate) fn own() -> Option<PathBuf> {
    let running = Path::new("/proc/self/exe");
    std::env::current_exe().ok().filter(|path| path.exists()).or_else(|| running.exists().then(|| running.to_owned()))
}

/// The first executable file of that name on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let search = env_vars::path(env_vars::PATH)?;
    std::env::split_paths(&search).map(|folder| folder.join(name)).find(|candidate| is_executable(candidate))
}

/// Whether `found` starts `own`, which is a real path: as a link to it, or as the launcher of the npm package, which
/// starts the program of a package below or beside its own.
pub(crate) fn leads_to(found: &Path, own: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    let Some(file) = real(found) else { return false };
    let package = file.parent().and_then(Path::parent);
    let modules = package
        .into_iter()
        .flat_map(|package| [Some(package.join("node_modules")), package.parent().map(Path::to_owned)]);
    let program = format!("steadfast-{}/bin/steadfast", npm_platform());
    file == own || modules.flatten().any(|modules| real(&modules.join(&program)).as_deref() == Some(own))
}

/// The platform as npm names it.
fn npm_platform() -> String {
    let system = if OS == "macos" { "darwin" } else { OS };
    let processor = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{processor}")
}

pub(crate) fn is_executable(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path) -> PathBuf {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "#!/bin/sh\n").unwrap();
        fs_err::canonicalize(path).unwrap()
    }

    #[test]
    fn a_link_and_the_npm_launcher_lead_to_the_program() {
        let prefix = tempfile::tempdir().unwrap();
        let modules = prefix.path().join("lib/node_modules");
        let launcher = write(&modules.join("steadfast/bin/steadfast"));
        let link = prefix.path().join("steadfast");
        symlink(&launcher, &link).unwrap();
        let native = format!("steadfast-{}/bin/steadfast", npm_platform());
        let (beside, other) = (modules.join(&native), write(&prefix.path().join("other/steadfast")));
        assert!(leads_to(&link, &launcher));
        assert!(!leads_to(&link, &other));
        assert!(leads_to(&link, &write(&beside)));
        fs_err::remove_file(beside).unwrap();
        assert!(leads_to(&link, &write(&modules.join("steadfast/node_modules").join(native))));
        assert!(!leads_to(&prefix.path().join("missing"), &other));
    }
}
