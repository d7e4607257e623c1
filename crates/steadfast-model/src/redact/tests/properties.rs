//! Properties of any text: named secrets are removed, and redacting is linear and idempotent.

use proptest::prelude::*;

use super::super::words::{is_certainly_code, is_ordinary, is_reference, is_sentence};
use super::*;

#[test]
fn hostile_repetitions_take_linear_time() {
    // A rule that looks far ahead at each of these takes minutes.
    let long = ["a://b:", "-p ", "token=", "\"password\": \"", "eyJ", "<private", "-----BEGIN ", "sk-"];
    let others = [
        "a://1@",
        "a://b:c/",
        "curl -u/",
        "curl -u a",
        "mysql -p",
        "htpasswd -b ",
        "echo ",
        "echo '",
        "echo a|",
        "echo a | b --password-stdin ",
        "set -x SECRET ",
        "vault kv put a=",
        "kubectl create secret --from-literal ",
        "docker --password-stdin <<<",
        "https://a@",
        "https://a:x",
        "<private ",
        "<private a=",
        "<private></private",
        "\"password=a ",
        "'token=a \\",
        "curl '",
        "aws configure set aws_secret_access_key ",
        "token=a(",
        "token=)",
        "token=<",
        "token: ",
        "token=\"${",
        "eyJ.",
        "eyJ.eyJhbGciOiJIUzI1NiJ9.",
        "<private>",
        "-----END ",
        "xoxb-",
        "SG.",
        "key ",
        "Authorization: ",
        "Authorization:a ",
        "Authorization: Bearer ",
        "Cookie: a=$",
        "Cookie:",
        "bearer ",
        "login a password ",
        "password is ",
        "1:",
        "密码",
        "?token=",
        ",a",
        "plain words ",
        "hooks.slack.com/services/",
        "pat.",
        "api-",
        "A3-",
        "00",
        "<password>",
        "<a key=\"password\"",
        "password \"a ",
        "password for a",
        "Private-Lines: ",
        "$1$",
        "{SSHA}",
        "abc1Q~",
        "\"d\":\"",
        "IDENTIFIED BY ",
        "-----BEGIN A-----",
        "a:5432:",
        "ENV TOKEN ",
        "setPassword(",
        "PDO(a,",
        "AAAAAAAAAAAAAAAAAAAAA",
        "\u{200b}ghp_",
        "password: |\n ",
        "password:\n ",
        "--password\n- ",
        "token = a ? b : \"",
        "token == \"",
        "password{\"",
        "password <- \"",
        "token=a(\"",
        "Passphrase: ",
        "Passphrase: aaa bbb ccc ",
        "| password | a",
        "set the password to a ",
        "postgres://a:b@",
        "password: \\\\\\\"",
        "net user a1 ",
        "AUTH a1 ",
    ];
    for (piece, length) in long.iter().map(|piece| (piece, 300_000)).chain(others.iter().map(|piece| (piece, 200_000)))
    {
        let text = piece.repeat(length / piece.len());
        let clean = redact(&text);
        assert!(clean.len() <= text.len() + GROWTH_MAX + MARK.len(), "{piece}");
    }
}

#[test]
fn text_full_of_secrets_grows_within_a_limit() {
    let text = "pw_password=a ".repeat(10_000);
    let clean = redact(&text);
    assert!(clean.len() <= text.len() + GROWTH_MAX + MARK.len());
    assert!(!clean.contains("=a"));
    assert_eq!(redact(&clean), clean);
}

/// Pieces that matter to the scanner, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "password", "token", "API_KEY", "auth", "Authorization", "Bearer ", "--", "-u ", "curl ", "://", "@", "=",
            ":", ": ", " = ", "\"", "'", "\\\"", "`", "<private>", "</private>", "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----", "sk-ant-", "ghp_", "eyJ", ".", "AKIA", "?", "&", "sig", ",", ";", "\n", " ",
            "[redacted]", "[", "]", "$", "{", "}", "(", ")", "<", ">", "\\", "：", "目", "secret", "x1", "abc",
            "hunter2", "key", "api ", "Cookie", "mysql -p", "openssl -pass pass:", "redis-cli -a ", "htpasswd -b ", "smbclient -U u%", "aws configure set ", " is ", "login me ",
            "echo ", " | docker login --password-stdin", "<<<", "set -x ", "vault kv put ", "create secret --from-literal=", "kubectl ",
            "https://", "<private x=", "</private ", "-H ", "gh secret set -b ", "setx ", "x-oauth-basic", "ssh-keygen -N ",
            "密码", "contraseña", "mot de passe", "hooks.slack.com/services/", "curl -b ", "a=", "SG.", "ya29.", "pw", "sshpass -p ", "Digest ", "%", "#", "_", "-",
        ]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9]{1,24}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn redacting_is_idempotent(text in pieces()) {
        let clean = redact(&text).into_owned();
        prop_assert!(clean.len() <= text.len() + GROWTH_MAX + MARK.len());
        prop_assert_eq!(redact(&clean), clean.clone(), "from {:?}", text);
    }

    #[test]
    fn named_secrets_are_removed(
        secret in prop_oneof!["[a-z]{4,16}", "[a-z]{3,8}(\\.[a-z]{3,8}){1,3}", "[A-Za-z][A-Za-z0-9+/_.!@#%^*(){}<>;,&~?-]{2,20}[a-z0-9]"],
        quote in prop::sample::select(vec!["", "\"", "'"]),
        (name, rest) in prop::sample::select(vec![
            ("export MY_PASSWORD=", " and go"),
            ("export MY_PASSWORD=", "; psql"),
            ("Server=db;Password=", ";Database=x"),
            ("login --password ", " -v"),
            ("f(n=1, password=", ")"),
        ]),
    ) {
        prop_assume!(!is_ordinary(&secret) && !is_sentence(&secret) && !is_reference(&secret) && !is_certainly_code(&secret, ""));
        // Which bracket ends the call is ambiguous then.
        prop_assume!(rest != ")" || !secret.contains(['(', ')']));
        let text = format!("run it: {name}{quote}{secret}{quote}{rest}");
        prop_assert_eq!(redact(&text), format!("run it: {name}{quote}[redacted]{quote}{rest}"));
    }
}
