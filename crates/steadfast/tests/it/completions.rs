//! Completion scripts in the real shells, and the manual pages.

use std::path::PathBuf;
use std::process::Command;

use crate::env::{Env, finish};
use crate::outages::skipped;

fn script(env: &Env, shell: &str) -> PathBuf {
    let path = env.project().join(format!("steadfast.{shell}"));
    std::fs::write(&path, &env.run(&["completions", shell]).succeeds().stdout).unwrap();
    path
}

/// Whether `shell` is here; says so if not.
fn has(shell: &str) -> bool {
    let found = Command::new(shell).args(["-c", "true"]).status().is_ok_and(|status| status.success());
    if !found {
        skipped(&format!("completions in {shell}: it is not installed"));
    }
    found
}

#[test]
fn bash_completes_verbs_flags_and_values() {
    let env = Env::new();
    let script = script(&env, "bash");
    let complete = |words: &str, path: &str| {
        let (word, before) = (words.split(' ').next_back().unwrap(), words.split(' ').nth_back(1).unwrap());
        let text = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _steadfast steadfast '{word}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = finish(Command::new("bash").args(["--norc", "-c", &text]).env("PATH", path), b"");
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{words}: {output:?}");
        output.stdout.trim().to_owned()
    };
    let path = "/usr/bin:/bin";
    assert_eq!(complete("steadfast goal st", path), "start status");
    assert_eq!(complete("steadfast completions z", path), "zsh");
    assert_eq!(complete("steadfast goal start --verif", path), "--verify");
    assert_eq!(complete("steadfast --vers", path), "--version");
    // Commands that only programs call are not for people.
    assert_eq!(complete("steadfast __", path), "");
}

#[test]
fn zsh_and_fish_accept_their_scripts() {
    let env = Env::new();
    for shell in ["zsh", "fish"] {
        let script = script(&env, shell);
        if has(shell) {
            let output = finish(Command::new(shell).arg("-n").arg(script), b"");
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{shell}: {output:?}");
        }
    }
    env.run(&["completions", "tcsh"]).fails_with(1, "invalid value 'tcsh'");
    assert_eq!(env.run(&["completions", "fish", "--json"]).succeeds().json()["shell"], "fish");
}

#[test]
fn every_command_has_a_manual_page() {
    let env = Env::new();
    let pages = env.project().join("man");
    env.run(&["__man", pages.to_str().unwrap()]).succeeds();
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(read("steadfast.1").contains("completions"));
    assert!(read("steadfast-goal-start.1").contains("\\-\\-verify"));
    assert!(read("steadfast-pipeline-run.1").contains("\\-\\-detach"));
    let hidden = std::fs::read_dir(&pages)
        .unwrap()
        .filter(|page| page.as_ref().unwrap().file_name().to_string_lossy().contains("__"));
    assert_eq!(hidden.count(), 0);
}
