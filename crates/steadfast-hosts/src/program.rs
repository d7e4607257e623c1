//! The version of a client's program, without starting it: that takes a second, and a look at its files no time.

use std::path::Path;

use fs_err as fs;
use serde_json::Value;
use steadfast_model::host::VersionCheck;
use steadfast_system::bounded;

/// How far above the program the files of its package are looked for.
const LEVELS: usize = 4;
const PACKAGE_MAX: u64 = 256 * 1024;

/// The version of an installed program, as its package or its path says; `None` if neither does.
pub fn installed_version(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let real = fs::canonicalize(program).ok()?;
    let of_package = real.ancestors().skip(1).take(LEVELS).find_map(|directory| package_version(directory, name));
    // An installer may keep every version in a file or directory of that name.
    let in_path = || real.iter().rev().find_map(|part| part.to_str().filter(|part| is_version(part)));
    of_package.or_else(|| in_path().map(str::to_owned))
}

fn package_version(directory: &Path, program: &str) -> Option<String> {
    let text = bounded::text(&directory.join("package.json"), PACKAGE_MAX).ok()?;
    let package: Value = serde_json::from_slice(text.as_bytes()).ok()?;
    // A program in a project of the user is not the project.
    let is_its_own = package["name"].as_str()?.contains(program);
    let version = package["version"].as_str()?;
    (is_its_own && is_version(version)).then(|| version.to_owned())
}

fn is_version(text: &str) -> bool {
    VersionCheck::numbers(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_package_or_the_path() {
        let world = tempfile::tempdir().unwrap();
        let at = |path: &str| world.path().join(path);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        let link = |target: &str, path: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(at(target), at(path)).unwrap();
            installed_version(&at(path))
        };
        write("lib/codex/package.json", r#"{"name": "@openai/codex", "version": "0.166.0"}"#);
        write("lib/codex/bin/codex.js", "");
        assert_eq!(link("lib/codex/bin/codex.js", "bin/codex").as_deref(), Some("0.166.0"));
        write("share/claude/versions/2.1.197", "");
        assert_eq!(link("share/claude/versions/2.1.197", "bin/claude").as_deref(), Some("2.1.197"));
        write("shop/package.json", r#"{"name": "shop", "version": "9.9.9"}"#);
        write("shop/tools/claude", "");
        assert_eq!(installed_version(&at("shop/tools/claude")), None);
        assert_eq!(installed_version(&at("nowhere/claude")), None);
    }
}
