//! Facts about the build for `steadfast --version`. Everything comes from the environment and from files of the source
//! tree, so that the same source gives the same binary. A build outside of git has no commit, which is no error.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script gets its facts from cargo's variables and has no dependencies"
)]

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=STEADFAST_COMMIT");
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let unknown = || "unknown".to_owned();
    let profile = variable("OUT_DIR").and_then(|out| profile(Path::new(&out))).unwrap_or_else(unknown);
    // A commit must not rebuild what is built all day.
    let is_release = variable("PROFILE").as_deref() == Some("release");
    let commit = variable("STEADFAST_COMMIT").or_else(|| is_release.then(commit).flatten()).unwrap_or_else(unknown);
    println!("cargo::rustc-env=STEADFAST_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=STEADFAST_BUILD_TARGET={}", variable("TARGET").unwrap_or_else(unknown));
    println!("cargo::rustc-env=STEADFAST_BUILD_PROFILE={profile}");
    if profile == "dist" && variable("CARGO_CFG_TARGET_OS").as_deref() == Some("linux") {
        leave_out_unwind_tables();
    }
}

/// Makes the program an eighth smaller.
fn leave_out_unwind_tables() {
    let script = "no-unwind-tables.ld";
    println!("cargo::rerun-if-changed={script}");
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    for argument in ["--no-eh-frame-hdr".to_owned(), format!("-T,{directory}/{script}")] {
        println!("cargo::rustc-link-arg-bins=-Wl,{argument}");
    }
}

/// `PROFILE` knows only debug and release; the directory has the name: `target/dist/build/steadfast-HASH/out`.
fn profile(out: &Path) -> Option<String> {
    Some(out.ancestors().nth(3)?.file_name()?.to_str()?.to_owned())
}

/// The commit of the published package, or of the repository around it.
fn commit() -> Option<String> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let published = package.join(".cargo_vcs_info.json");
    if let Ok(text) = std::fs::read_to_string(&published) {
        return text.split('"').find(|word| is_commit(word)).map(str::to_owned);
    }
    // Only the repository of this package: it may have been unpacked inside of another one.
    let root = package.ancestors().nth(2)?;
    root.join("crates/steadfast/build.rs").exists().then_some(())?;
    let git = git_directory(&root.join(".git"))?;
    let head = read(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else { return Some(head).filter(|head| is_commit(head)) };
    // A worktree keeps its branch in the repository that it belongs to.
    let common = read(&git.join("commondir")).map_or_else(|| git.clone(), |path| git.join(path));
    let packed = || {
        let text = read(&common.join("packed-refs"))?;
        text.lines().find_map(|line| line.strip_suffix(reference)).map(|commit| commit.trim().to_owned())
    };
    read(&common.join(reference)).or_else(packed).filter(|commit| is_commit(commit))
}

/// `.git` is a directory, or a file that names one.
fn git_directory(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = read(path)?;
    Some(path.parent()?.join(text.strip_prefix("gitdir: ")?))
}

/// Reads a file of git, and builds again when it changes.
fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}

fn is_commit(word: &str) -> bool {
    word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
