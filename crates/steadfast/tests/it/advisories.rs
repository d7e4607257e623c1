//! `scripts/check_advisories`: an advisory fails it; a database that cannot be fetched does not, and that is said.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::env::{Env, Output, finish};

/// Stands for cargo: records its arguments, and fetches and checks as it is told.
const CARGO: &str = r#"#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  *' fetch db') exit "$FETCH" ;;
  *' check advisories') exit "$CHECK" ;;
esac
exit 9
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the script with the exit codes of the fetch and of the check. Returns what it asked cargo for, too.
fn check(has_copy: bool, fetch: i32, check: i32) -> (Output, Vec<String>) {
    let env = Env::new();
    let (bin, calls, home) = (env.path("bin"), env.path("calls"), env.path("cargo-home"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("cargo"), CARGO).unwrap();
    std::fs::set_permissions(bin.join("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    if has_copy {
        std::fs::create_dir_all(home.join("advisory-dbs/advisory-db-1/crates")).unwrap();
    }
    let mut command = Command::new(root().join("scripts/check_advisories"));
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    command.env("CALLS", &calls).env("CARGO_HOME", home);
    command.env("FETCH", fetch.to_string()).env("CHECK", check.to_string());
    let output = finish(&mut command, b"");
    let calls = std::fs::read_to_string(calls).unwrap_or_default();
    (output, calls.lines().map(|call| call.split(' ').next_back().unwrap_or_default().to_owned()).collect())
}

#[test]
fn an_advisory_fails_the_check() {
    for (has_copy, fetch) in [(false, 0), (true, 0), (true, 1)] {
        let (clean, calls) = check(has_copy, fetch, 0);
        assert_eq!((clean.code, calls.as_slice()), (0, &["db".to_owned(), "advisories".to_owned()][..]), "{clean:?}");
        let (found, _) = check(has_copy, fetch, 1);
        assert_ne!(found.code, 0, "{has_copy} {fetch}: {found:?}");
        assert!(!found.stderr.contains("SKIPPED"), "{found:?}");
    }
}

#[test]
fn a_database_that_cannot_be_fetched_is_said_and_is_no_failure() {
    let (skipped, calls) = check(false, 1, 1);
    assert_eq!((skipped.code, calls.as_slice()), (77, &["db".to_owned()][..]), "{skipped:?}");
    assert!(skipped.stderr.contains("!! SKIPPED: the advisory database cannot be fetched"), "{skipped:?}");
    let (older, _) = check(true, 1, 0);
    assert!(older.stderr.contains("note: the advisory database cannot be fetched; the copy of 2"), "{older:?}");
}

#[test]
fn the_test_command_and_the_clean_machine_run_the_check() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let test = read("test");
    let lines: Vec<&str> = test.lines().map(str::trim).collect();
    assert!(lines.iter().any(|line| line.starts_with("scripts/check_advisories")), "./test does not call it");
    let ci = read(".ci/run");
    assert!(ci.contains("cargo-deny") && ci.lines().any(|line| line == "exec ./test"), "{ci}");
}
