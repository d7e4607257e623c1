//! Command lines as agents write them.

use proptest::prelude::*;

use super::*;

/// The commands of a line with how each is joined: `;` for `Then`, `&` for `And`, `!` for `Or`, `|` for `Pipe`, `(` when nested.
fn split(line: &str) -> Vec<(String, Vec<String>)> {
    let operator = |operator: Operator| match operator {
        Operator::Then => ";",
        Operator::And => "&",
        Operator::Or => "!",
        Operator::Pipe => "|",
    };
    commands(line)
        .into_iter()
        .map(|it| (format!("{}{}", operator(it.operator), if it.nested { "(" } else { "" }), it.words))
        .collect()
}

fn one(line: &str) -> Vec<String> {
    let mut all = commands(line);
    assert_eq!(all.len(), 1, "{line}");
    all.remove(0).words
}

#[test]
fn words_come_without_quotes_redirections_and_wrappers() {
    for (line, words) in [
        ("cargo test --workspace", vec!["cargo", "test", "--workspace"]),
        ("cd 'my dir'", vec!["cd", "my dir"]),
        ("cd \"a \\\"b\\\" $x\"", vec!["cd", "a \"b\" $x"]),
        ("cd a\\ b", vec!["cd", "a b"]),
        ("make > log.txt 2>&1", vec!["make"]),
        ("make 2>/dev/null >> log all", vec!["make", "all"]),
        ("cmd &> out x", vec!["cmd", "x"]),
        ("cat <<< text", vec!["cat"]),
        ("RUST_LOG=debug A='b c' cargo run", vec!["cargo", "run"]),
        ("sudo -u bob -E git status", vec!["git", "status"]),
        ("env -i FOO=1 git push", vec!["git", "push"]),
        ("time nice -n 10 git gc", vec!["git", "gc"]),
        ("timeout -k 5 60s cargo test", vec!["cargo", "test"]),
        ("ls # a comment; rm -rf /", vec!["ls"]),
        ("echo $(date; echo ')') x", vec!["echo", "$(date; echo ')')", "x"]),
        ("echo \"$(basename \"a (b)\")\" x", vec!["echo", "$(basename \"a (b)\")", "x"]),
        ("echo `a; b`", vec!["echo", "`a; b`"]),
        ("echo a \\\n  b", vec!["echo", "a", "b"]),
        ("echo '' x", vec!["echo", "", "x"]),
        ("echo 'never closed; x", vec!["echo", "never closed; x"]),
        ("cat > a.txt <<'EOF'\ngit push; cd /\nEOF\n", vec!["cat"]),
    ] {
        assert_eq!(one(line), words, "{line}");
    }
}

#[test]
fn joined_commands_come_apart() {
    let is = |line: &str, expected: &[(&str, &str)]| {
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(operator, words)| ((*operator).to_owned(), words.split(' ').map(str::to_owned).collect()))
            .collect();
        assert_eq!(split(line), expected, "{line}");
    };
    is("cd src; ls", &[(";", "cd src"), (";", "ls")]);
    is("a && b | c || d & e", &[(";", "a"), ("&", "b"), ("|", "c"), ("!", "d"), (";", "e")]);
    is("a &&\n  b", &[(";", "a"), ("&", "b")]);
    is("a\nb\n\nc", &[(";", "a"), (";", "b"), (";", "c")]);
    is("(cd x && make) && ls", &[(";(", "cd x"), ("&(", "make"), ("&", "ls")]);
    is("(cd x && make); ls", &[(";(", "cd x"), ("&(", "make"), (";", "ls")]);
    is("if make; then git push; fi", &[(";", "make"), (";", "git push")]);
    is("for f in *; do cat x; done", &[(";", "cat x")]);
    is("cat <<A >f && git add f\nx; y\nA\ngit push", &[(";", "cat"), ("&", "git add f"), (";", "git push")]);
    is("make |& tee log", &[(";", "make"), ("|", "tee log")]);
}

#[test]
fn a_message_in_a_heredoc_is_unwrapped() {
    let line = "git commit -m \"$(cat <<'EOF'\nFix it (now) and don't \"wait\"\n\nBody.\nEOF\n)\" && git push";
    let commands = commands(line);
    assert_eq!(commands.len(), 2);
    assert_eq!(commands[0].words[3], "Fix it (now) and don't \"wait\"\n\nBody.");
    assert_eq!(commands[1].words, ["git", "push"]);
}

#[test]
fn no_line_is_too_long() {
    let many = "a;".repeat(1_000_000);
    assert_eq!(commands(&many).len(), COMMANDS_MAX);
    assert_eq!(commands(&"目".repeat(1_000_000))[0].words[0].len(), LOOKED_AT / 3 * 3);
}

proptest! {
    #[test]
    fn any_line_can_be_read(line in "[a-z =|&;<>()'\"`$#\\\\\n目-]{0,60}") {
        for command in commands(&line) {
            prop_assert!(!command.words.is_empty());
        }
    }
}
