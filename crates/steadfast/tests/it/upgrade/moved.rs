//! The files of an earlier release, unpacked in a directory of the test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::env::Env;
use crate::setup::tree;

/// Stands for the directory in which the files were made.
pub(super) const ROOT: &str = "/the/root";

pub(super) struct OldFiles {
    pub(super) env: Env,
    /// What the earlier release said about its own files.
    pub(super) expected: Value,
}

pub(super) fn archive(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/upgrade/{release}.tar.gz"))
}

/// Unpacks the files and puts this version's program where that of the earlier release was.
pub(super) fn unpack(release: &str) -> OldFiles {
    let mut env = Env::new();
    let root = env.path("");
    let done = Command::new("tar").arg("-xzf").arg(archive(release)).arg("-C").arg(&root).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let here = root.to_str().unwrap().trim_end_matches('/').to_owned();
    move_paths(&root, ROOT, &here);
    let expected = serde_json::from_slice(&std::fs::read(root.join("expected.json")).unwrap()).unwrap();
    install_program(&mut env);
    OldFiles { env, expected }
}

fn install_program(env: &mut Env) {
    std::fs::create_dir_all(env.path("bin")).unwrap();
    let program = env.path("bin/steadfast");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
    env.use_program(program);
}

/// Replaces the root in all text files and in all texts of the store.
pub(super) fn move_paths(root: &Path, from: &str, to: &str) {
    for (path, bytes) in tree(root) {
        if let Ok(text) = String::from_utf8(bytes)
            && text.contains(from)
        {
            std::fs::write(&path, text.replace(from, to)).unwrap();
        }
    }
    let db = rusqlite::Connection::open(root.join("home/goals.db")).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let tables =
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'";
    for table in list(tables) {
        for column in list(&format!("SELECT name FROM pragma_table_xinfo('{table}') WHERE hidden = 0")) {
            let sql = format!(
                "UPDATE {table} SET {column} = replace({column}, ?1, ?2) WHERE typeof({column}) = 'text' AND instr({column}, ?1)"
            );
            db.execute(&sql, [from, to]).unwrap();
        }
    }
    let (_, _): (i64, i64) =
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok((row.get(1)?, row.get(2)?))).unwrap();
}

/// What the user had before the earlier release was set up.
pub(super) fn files_of_the_user(old: &OldFiles) -> BTreeMap<PathBuf, Vec<u8>> {
    let (kept, user) = (old.env.path("user-before"), old.env.path("user"));
    let files = tree(&kept).into_iter();
    files.map(|(path, bytes)| (user.join(path.strip_prefix(&kept).unwrap()), bytes)).collect()
}

/// The files of a first setup of this version, with the paths of the old one.
pub(super) fn fresh_setup(old: &OldFiles) -> BTreeMap<PathBuf, Vec<u8>> {
    let env = &old.env;
    let (home, kept) = (env.home(), env.path("home-kept"));
    let (user, user_kept) = (env.path("user"), env.path("user-kept"));
    std::fs::rename(&home, &kept).unwrap();
    std::fs::rename(&user, &user_kept).unwrap();
    let copied = Command::new("cp").arg("-a").arg(env.path("user-before")).arg(&user).status().unwrap();
    assert!(copied.success());
    env.run(&["setup", "claude", "--yes"]).succeeds();
    env.run(&["setup", "codex", "--yes"]).succeeds();
    let files = [home.join("claude"), user.clone()].into_iter().flat_map(|root| tree(&root)).collect();
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::remove_dir_all(&user).unwrap();
    std::fs::rename(&kept, &home).unwrap();
    std::fs::rename(&user_kept, &user).unwrap();
    files
}
