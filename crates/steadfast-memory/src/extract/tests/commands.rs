//! Commands: which of them failed, what they are called, and what they did.

use super::*;

fn ran(command: &str, output: &str, outcome: ShellOutcome) -> Findings {
    let directory = ShellDirectory::Before("/p".into());
    only(Observation::Shell(Shell { command: command.into(), output: output.into(), outcome, directory }))
}

fn worked(command: &str) -> Findings {
    ran(command, "", ShellOutcome::Worked)
}

/// What a command that worked did: `git/commit subject | text`.
fn did(command: &str) -> Vec<String> {
    worked(command)
        .findings
        .iter()
        .map(|it| format!("{}/{} {} | {}", it.category, it.kind, it.subject, it.text))
        .collect()
}

fn error_of(command: &str) -> String {
    let seen = ran(command, "Exit code 1", ShellOutcome::Failed);
    assert_eq!(seen.findings.len(), 1, "{command}: {seen:?}");
    assert_eq!(seen.worked, Vec::<String>::new());
    seen.findings[0].subject.clone()
}

#[test]
fn an_error_is_known_by_how_the_command_ended() {
    let failed = ran("cargo test", "Exit code 101\ntest result: FAILED. 1 failed", ShellOutcome::Failed);
    let text = "test result: FAILED. 1 failed";
    let expected = found(Category::Error, "failed", Importance::High, "shell: cargo test", text);
    assert_eq!(failed, Findings { findings: vec![expected], ..Findings::default() });
    // Words in the output of a command that worked are words.
    for output in ["test result: ok. 12 passed; 0 failed", "error: 0, failed: 0", "FAILED\nerror[E0001]", "Exit code 1"]
    {
        let seen = ran("cargo test", output, ShellOutcome::Worked);
        assert_eq!(seen.findings, vec![], "{output}");
    }
    assert_eq!(ran("cargo test", "error: x", ShellOutcome::Unfinished), Findings::default());
}

#[test]
fn the_error_line_comes_first() {
    let text = |output: &str| ran("./check", output, ShellOutcome::Failed).findings[0].text.clone();
    for (output, expected) in [
        ("Exit code 1", "Exit code 1"),
        ("Exit code 2\n\nno rule for x\n", "no rule for x"),
        (
            "Exit code 101\n   Compiling a\nerror[E0308]: mismatched",
            "error[E0308]: mismatched\n…\nCompiling a\nerror[E0308]: mismatched",
        ),
        (
            "> web@1 build\nstep 1, 0 errors\nbundle failed: x",
            "bundle failed: x\n…\n> web@1 build\nstep 1, 0 errors\nbundle failed: x",
        ),
        ("Exit code of the child: 3\nbye", "Exit code of the child: 3\nbye"),
    ] {
        assert_eq!(text(output), expected, "{output}");
    }
    let long = text(&format!("Exit code 1\nfatal: it broke\n{}", "more\n".repeat(2_000)));
    assert!(long.starts_with("fatal: it broke\n…\nmore\n") && long.chars().count() <= ERROR_MAX, "{long}");
}

#[test]
fn files_are_read_through_the_shell_too() {
    let read = |command: &str, output: &str, directory: ShellDirectory| -> Vec<String> {
        let outcome = ShellOutcome::Unknown;
        let shell = Shell { command: command.into(), output: output.into(), outcome, directory };
        let seen = only(Observation::Shell(shell)).findings;
        let reads = seen.into_iter().filter(|it| (it.category, it.kind) == (Category::File, "read"));
        reads.map(|it| it.subject).collect()
    };
    let codex = |command: &str| read(command, "text", ShellDirectory::Before("/p".into()));
    for (command, paths) in [
        ("cat src/main.rs", vec!["src/main.rs"]),
        ("sed -n '1,200p' ./src/lib.rs", vec!["src/lib.rs"]),
        ("sed -n 1p a.rs b.rs", vec!["a.rs", "b.rs"]),
        ("head -50 README.md", vec!["README.md"]),
        ("head -n 50 README.md", vec!["README.md"]),
        ("tail -n +10 Makefile | grep x", vec!["Makefile"]),
        ("nl -ba src/a.rs | sed -n '1,80p'", vec!["src/a.rs"]),
        ("bash -lc \"cat 'my notes.md'\"", vec!["my notes.md"]),
        ("/bin/bash -lc 'nl -b a x.rs'", vec!["x.rs"]),
        ("cd crates/core && cat src/lib.rs", vec!["crates/core/src/lib.rs"]),
        ("cd /q && cat a && head ../b", vec!["/q/a", "/b"]),
        ("cat a.rs; cat a.rs", vec!["a.rs"]),
        ("cat ../up.rs ~/x /etc/hosts", vec!["../up.rs", "~/x", "/etc/hosts"]),
        ("cat a > b", vec!["a"]),
    ] {
        assert_eq!(codex(command), paths, "{command}");
    }
    for command in [
        "cat *.rs",
        "cat src/{a,b}.rs",
        "cat $FILE",
        "cat \"$(git ls-files)\"",
        "cat <<'EOF' > x\ntext\nEOF",
        "cat -",
        "cat 0",
        "cat /dev/null",
        "head -n 20",
        "ls | cat x",
        "test -f x || cat x",
        "(cat x)",
        "cd $X && cat x",
        "cd a && cat ../../x",
        "sed -i 's/a/b/' x.rs",
        "sed -n -i 1p x.rs",
        "sed s/a/b/ x.rs",
        "awk 1 x.rs",
        "echo cat x",
        "git show HEAD:x",
        "cat https://h/x",
    ] {
        assert_eq!(codex(command), Vec::<String>::new(), "{command}");
    }
    let missing = "cat: b.rs: No such file or directory\n";
    assert_eq!(read("cat a.rs b.rs", missing, ShellDirectory::Before("/p".into())), ["a.rs"]);
    assert_eq!(read("cat src/a.rs", "", ShellDirectory::After("/p".into())), ["/p/src/a.rs"]);
    let many: Vec<String> = (0..50).map(|number| format!("f{number}.rs")).collect();
    assert_eq!(codex(&format!("cat {}", many.join(" "))), many[..10]);
    let rule = worked("cat AGENTS.md").findings.pop().unwrap();
    assert_eq!(rule, found(Category::Rule, "instructions", Importance::High, "AGENTS.md", "AGENTS.md"));
}

#[test]
fn without_an_exit_code_only_strong_evidence_counts() {
    for output in [
        "error: could not compile `a` (lib) due to 1 previous error",
        "  Compiling\nerror[E0308]: mismatched types\n",
        "Traceback (most recent call last):\n  File \"a.py\"\nValueError: x",
        "bash: line 1: foo: command not found",
        "make: *** [Makefile:3: all] Error 2",
        "===== 2 failed, 3 passed in 1.20s =====",
        "Tests:       1 failed, 4 passed, 5 total",
        "--- FAIL: TestA (0.00s)",
        "src/a.c:3:5: error: expected ';'",
        "thread 'main' panicked at src/main.rs:1:1:",
        "\u{1b}[31mfatal: not a git repository\u{1b}[0m",
        "src/a.ts(1,1): error TS2322: Type",
    ] {
        let seen = ran("./check", output, ShellOutcome::Unknown);
        assert_eq!(seen.findings.len(), 1, "{output}");
        assert_eq!((seen.findings[0].subject.as_str(), seen.worked.len()), ("shell: check", 0), "{output}");
    }
    for output in [
        "",
        "hello-from-tool\n",
        "test result: ok. 12 passed; 0 failed; 0 ignored",
        "error: 0\nerrors: none, 0 failed",
        "===== 5 passed, 0 failed in 0.10s =====",
        "no error: everything works, nothing FAILED",
        "Tests:       4 passed, 4 total",
        "see the chapter: Permission denied",
    ] {
        let seen = ran("./check", output, ShellOutcome::Unknown);
        assert_eq!((seen.findings, seen.worked), (vec![], vec!["shell: check".to_owned()]), "{output}");
    }
    // Who shows a log has not failed.
    for command in ["cat build.log", "tail -50 build.log | grep error", "git log -p", "cd x && rg panicked"] {
        let seen = ran(command, "thread 'main' panicked at src/main.rs:1:1:", ShellOutcome::Unknown);
        assert!(seen.findings.iter().all(|it| it.category != Category::Error), "{command}");
    }
}

#[test]
fn what_failed_has_a_stable_name() {
    for (command, name) in [
        ("cargo test --workspace -q 2>&1 | tail -20", "cargo test"),
        ("cd /p && RUST_BACKTRACE=1 cargo test -p core foo", "cargo test"),
        ("cargo +nightly fmt --all", "cargo fmt"),
        ("cargo nextest run -p core", "cargo nextest run"),
        ("npm run build -- --watch", "npm run build"),
        ("npm --prefix web test", "npm test"),
        ("python3 -m pytest -q tests/a.py", "python3 -m pytest"),
        ("/usr/bin/make -C sub all", "make all"),
        ("git -C sub push --force", "git push"),
        ("cargo fmt --check && cargo clippy && cargo test", "cargo fmt && cargo clippy && cargo test"),
        ("ls; cargo test", "cargo test"),
        ("sudo systemctl restart x", "systemctl restart"),
        ("exit 3", "exit 3"),
        ("cd /nowhere", "cd"),
        ("docker compose up -d", "docker compose up"),
    ] {
        assert_eq!(error_of(command), format!("shell: {name}"), "{command}");
    }
}

#[test]
fn no_password_becomes_a_name() {
    for (command, name) in [
        ("curl -u admin:S3cretPw1 https://x", "curl https://x"),
        ("curl -X POST -u admin:S3cretPw1 https://x", "curl https://x"),
        ("sshpass -p S3cretPw1 ssh h", "sshpass ssh"),
        ("redis-cli -a S3cretPw1 ping", "redis-cli ping"),
        ("zip -P S3cretPw1 out.zip a", "zip out.zip"),
        ("ldapsearch -w S3cretPw1 uid=a", "ldapsearch uid=a"),
        ("mysqldump --password S3cretPw1 db", "mysqldump db"),
        ("mysql -pS3cretPw1 db", "mysql db"),
        ("http -a u:S3cretPw1 https://x", "http https://x"),
        // An unknown program: what follows its flag is not part of the name.
        ("deployer -z S3cretPw1 up", "deployer up"),
        ("deployer --phrase S3cretPw1", "deployer"),
        ("deployer -s S3cretPw1", "deployer"),
    ] {
        assert_eq!(error_of(command), format!("shell: {name}"), "{command}");
    }
}

#[test]
fn the_word_behind_a_flag_without_a_value_is_a_name() {
    for (command, name) in [
        ("pytest -x tests/a.py", "pytest tests/a.py"),
        ("npm --silent run build", "npm run build"),
        ("git --no-pager push", "git push"),
        ("make --jobs=4 check", "make check"),
    ] {
        assert_eq!(error_of(command), format!("shell: {name}"), "{command}");
    }
}

#[test]
fn only_certain_successes_are_reported() {
    for (command, output, names) in [
        ("cargo test", "", vec!["cargo test"]),
        ("cd x && cargo fmt && cargo test", "", vec!["cargo fmt", "cargo test", "cargo fmt && cargo test"]),
        ("cargo test 2>&1 | tail -5", "test result: ok. 3 passed", vec!["cargo test"]),
        // How the first of a pipe ended is not known, but here it shows.
        ("cargo test 2>&1 | tail -5", "test result: FAILED. 1 failed", vec![]),
        ("cargo test; ls -l", "test result: FAILED. 1 failed", vec!["ls"]),
        ("make || true; ls", "", vec!["ls"]),
    ] {
        let expected: Vec<String> = names.iter().map(|name| format!("shell: {name}")).collect();
        assert_eq!(ran(command, output, ShellOutcome::Worked).worked, expected, "{command}");
    }
}

#[test]
fn git_is_known_by_its_words() {
    for (command, expected) in [
        ("git commit -m 'Fix the bug'", vec!["git/commit Fix the bug | Fix the bug"]),
        ("git commit -am \"One\" -m Two", vec!["git/commit One … | One\n\nTwo"]),
        ("git commit --message=One", vec!["git/commit One | One"]),
        ("git commit --amend --no-edit", vec!["git/commit  | git commit --amend --no-edit"]),
        ("git commit -m \"$(cat <<'EOF'\nTitle\n\nBody\nEOF\n)\"", vec!["git/commit Title … | Title\n\nBody"]),
        (
            "GIT_PAGER=cat sudo env X=1 git -C ../x -c a=b checkout -b topic",
            vec!["git/checkout topic | git checkout -b topic"],
        ),
        (
            "git add . && git push origin main | cat; git cherry-pick abc",
            vec![
                "git/add . | git add .",
                "git/push origin | git push origin main",
                "git/cherry_pick abc | git cherry-pick abc",
            ],
        ),
        ("echo git commit -m x; grep 'git push' a", vec![]),
        ("git frobnicate", vec![]),
        ("git", vec![]),
    ] {
        assert_eq!(did(command), expected, "{command}");
    }
    let importance = |command| worked(command).findings[0].importance;
    assert_eq!(importance("git status"), Importance::Low);
    assert_eq!(importance("git branch -a"), Importance::Low);
    assert_eq!(importance("git branch topic"), Importance::Normal);
}

#[test]
fn a_commit_before_a_failed_push_was_made() {
    let output = "Exit code 1\n[main 1a2b3c4] Fix it\n 1 file changed\nerror: failed to push";
    let seen = ran("git commit -m 'Fix it' && git push", output, ShellOutcome::Failed);
    let kinds: Vec<&str> = seen.findings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["failed", "commit"]);
    let nothing = ran("git commit -m 'Fix it' && git push", "Exit code 1\nnothing to commit", ShellOutcome::Failed);
    assert_eq!(nothing.findings.len(), 1);
}

#[test]
fn directories_are_followed() {
    let cwd = |path: &str| vec![found(Category::Cwd, "cd", Importance::Normal, path, path)];
    let from = |command: &str, directory: ShellDirectory| {
        let shell = Shell { command: command.into(), output: String::new(), outcome: ShellOutcome::Worked, directory };
        only(Observation::Shell(shell)).findings
    };
    for (command, path) in [
        ("cd src; ls", "/p/src"),
        ("cd 'my dir' && ls", "/p/my dir"),
        ("cd ../q/./r", "/q/r"),
        ("cd /tmp/", "/tmp"),
        ("cd", "~"),
        ("cd ~/x", "~/x"),
        ("cd a && cd ../b", "/p/b"),
        ("cd a; cd /q && cd r", "/q/r"),
        ("pushd -n sub", "/p/sub"),
    ] {
        assert_eq!(from(command, ShellDirectory::Before("/p".into())), cwd(path), "{command}");
    }
    // The client followed the command already.
    assert_eq!(from("cd ..", ShellDirectory::After("/p".into())), cwd("/p"));
    assert_eq!(from("cd /tmp", ShellDirectory::After("/p".into())), cwd("/tmp"));
    for command in ["cd -", "cd $DIR", "cd \"$(git rev-parse)\"", "(cd sub && ls)", "popd", "echo cd x"] {
        assert_eq!(from(command, ShellDirectory::Before("/p".into())), vec![], "{command}");
    }
}

#[test]
fn the_environment_is_remembered_without_its_values() {
    for (command, expected) in [
        ("source .venv/bin/activate", vec!["environment/activate .venv/bin/activate | source .venv/bin/activate"]),
        (
            ". ./env/bin/activate.fish",
            vec!["environment/activate ./env/bin/activate.fish | source ./env/bin/activate.fish"],
        ),
        ("conda activate ml", vec!["environment/activate ml | conda activate ml"]),
        ("export A='x y' B=2", vec!["environment/export A | export A", "environment/export B | export B"]),
        ("nvm use 20", vec!["environment/toolchain nvm | nvm use 20"]),
        ("rustup default nightly", vec!["environment/toolchain rustup | rustup default nightly"]),
        ("python3 -m venv .venv", vec!["environment/toolchain python | python3 -m venv .venv"]),
        ("npm install left-pad", vec!["environment/install npm | npm install left-pad"]),
        ("sudo apt-get install -y jq", vec!["environment/install apt-get | apt-get install -y jq"]),
        ("pip install -r requirements.txt", vec!["environment/install pip | pip install -r requirements.txt"]),
        ("cargo add serde", vec!["environment/install cargo | cargo add serde"]),
        ("npm test", vec![]),
        ("source ./deploy.sh", vec![]),
        ("export -f name", vec!["environment/export name | export name"]),
    ] {
        assert_eq!(did(command), expected, "{command}");
    }
    let text = format!("{:?}", worked("export PLAIN='hidden value here' && run"));
    assert!(!text.contains("hidden") && !text.contains("value here"), "{text}");
}

#[test]
fn of_a_long_output_the_lead_and_the_end_are_kept() {
    let mut output = String::from("starting\n");
    output.push_str("error[E0308]: mismatched types\n");
    output.push_str(&"note: some more lines about it\n".repeat(200));
    output.push_str("error: could not compile `a`");
    let seen = ran("cargo build", &output, ShellOutcome::Failed);
    let text = &seen.findings[0].text;
    assert!(text.starts_with("error[E0308]: mismatched types\n…\nnote: some"), "{text}");
    assert!(text.ends_with("error: could not compile `a`"));
    assert!((900..=ERROR_MAX).contains(&text.chars().count()));
    // Ten megabytes: what is far from the end is not looked at.
    let huge = format!("{}\n{}\nlast words", "fatal: first\n", "x".repeat(10 << 20));
    let seen = ran("cargo build", &huge, ShellOutcome::Failed);
    assert_eq!(seen.findings[0].text.lines().last(), Some("last words"));
    assert!(!seen.findings[0].text.contains("fatal"));
}
