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

/// Types a word and the Tab key into a zsh with a terminal, as a user does; `steadfast` there prints its arguments.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; steadfast() print got: \"\$@\" :end; print rea''dy"
zpty -r shell said '*ready*'
zpty -w -n shell $'steadfast goal stat\t\n'
zpty -r shell said '*got:*:end*'
print -r -- "${${said##*got: }%% :end*}"
"#;

#[test]
fn zsh_completes_a_verb() {
    let env = Env::new();
    let script = script(&env, "zsh");
    if has("zsh") {
        let folder = env.path("completions");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::rename(script, folder.join("_steadfast")).unwrap();
        let mut zsh = Command::new("zsh");
        let output = finish(zsh.args(["-f", "-c", ZSH, "zsh"]).arg(folder).env("HOME", env.home()), b"");
        assert_eq!((output.code, output.stdout.trim()), (0, "goal status"), "{output:?}");
    }
}

#[test]
fn fish_completes_verbs_and_flags() {
    let env = Env::new();
    let script = script(&env, "fish");
    if has("fish") {
        let complete = |words: &str| {
            let text = format!("source '{}'; complete -C '{words}'", script.display());
            let mut fish = Command::new("fish");
            let output = finish(fish.args(["--no-config", "-c", &text]).env("HOME", env.home()), b"");
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{words}: {output:?}");
            let words = output.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned());
            words.collect::<Vec<_>>()
        };
        assert_eq!(complete("steadfast goal sta"), ["start", "status"]);
        assert_eq!(complete("steadfast goal start --verif"), ["--verify"]);
    }
}

#[test]
fn completions_exist_for_three_shells() {
    let env = Env::new();
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
