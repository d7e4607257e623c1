//! Both sides of the line: what must never be kept, and ordinary text that must stay as it is.

use proptest::prelude::*;

use super::*;

fn becomes(cases: &[(&str, &str)]) {
    for (text, clean) in cases {
        assert_eq!(redact(text), *clean, "from {text:?}");
        assert_eq!(redact(clean), *clean, "again");
    }
}

#[test]
fn keys_are_known_by_their_shape() {
    for key in [
        "sk-abcdefgh12345678",
        "sk-ant-api03-AAAA_bbbb-CCCC",
        "sk-proj-abcdefghij",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "gho_16C7e42F292c6912E7710c838347Ae178B4a",
        "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0_abcdefghijklmnop",
        "glpat-xxYYzz112233-_aabb",
        "xoxb-123456789012-abcdefABCDEF",
        "xoxp-1-2-3-abc",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "hf_abcdefghijklmnopqrstuvwx",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "sk_live_51H8abcdefgh",
    ] {
        for (before, after) in
            [("", ""), ("use ", " now"), ("(", ")"), ("\"", "\","), ("x=", "\n"), ("https://h/", "?a")]
        {
            let text = format!("{before}{key}{after}");
            assert_eq!(redact(&text), format!("{before}[redacted]{after}"), "{text}");
        }
    }
}

#[test]
fn private_keys_go_whole_even_when_cut() {
    becomes(&[
        (
            "key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc+/=\n-----END RSA PRIVATE KEY-----\nrest",
            "key:\n[redacted]\nrest",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\\nb3Bl\\n-----END OPENSSH PRIVATE KEY-----\\n", "[redacted]\\n"),
        ("a -----BEGIN PRIVATE KEY-----\nMIIE", "a [redacted]"),
        ("log: done!\nMIIEabc\ndef=\n-----END PRIVATE KEY-----\nok", "log: done![redacted]\nok"),
        (
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        ),
    ]);
}

#[test]
fn the_name_of_a_value_gives_it_away() {
    becomes(&[
        ("PASSWORD=hunter2", "PASSWORD=[redacted]"),
        ("export DB_PASSWORD='correct horse battery' && run", "export DB_PASSWORD='[redacted]' && run"),
        ("export API_KEY=\"a b c\"; echo", "export API_KEY=\"[redacted]\"; echo"),
        ("AWS_SECRET_ACCESS_KEY=wJalr/XUtn+FEMI AWS_REGION=eu", "AWS_SECRET_ACCESS_KEY=[redacted] AWS_REGION=eu"),
        ("password: hunter2", "password: [redacted]"),
        ("password: swordfish", "password: [redacted]"),
        ("my password: swordfish, use it", "my password: [redacted], use it"),
        ("Passwort ist egal, API key: abc123", "Passwort ist egal, API key: [redacted]"),
        ("secret：秘密です", "secret：[redacted]"),
        (r#"{"token": "abc def", "n": 1}"#, r#"{"token": "[redacted]", "n": 1}"#),
        (r#"{"apiKey":"k\"1","user":"bob"}"#, r#"{"apiKey":"[redacted]","user":"bob"}"#),
        (r#"{\"access_token\": \"abc\", \"a\": 1}"#, r#"{\"access_token\": \"[redacted]\", \"a\": 1}"#),
        ("client_secret = 'x y'", "client_secret = '[redacted]'"),
        ("password = swordfish\nuser = bob", "password = [redacted]\nuser = bob"),
        ("token := \"abc\"", "token := \"[redacted]\""),
        (":password => \"abc\"", ":password => \"[redacted]\""),
        ("env['GITHUB_TOKEN'] = 'abc'", "env['GITHUB_TOKEN'] = '[redacted]'"),
        ("f(user=bob, password=abc, n=1)", "f(user=bob, password=[redacted], n=1)"),
        ("host=h;password=a;b;user=u", "host=h;password=[redacted];user=u"),
        ("SECRET_KEY_BASE=00ff", "SECRET_KEY_BASE=[redacted]"),
        ("//registry.npmjs.org/:_authToken=abc", "//registry.npmjs.org/:_authToken=[redacted]"),
        ("_auth=dXNlcjpwYXNz", "_auth=[redacted]"),
        ("x-api-key: 12ab", "x-api-key: [redacted]"),
        ("PASSWORD=\"never closed\nnext", "PASSWORD=\"[redacted]\nnext"),
        ("password=\"\"\"two\nlines\"\"\" x", "password=\"\"\"[redacted]\"\"\" x"),
        ("DB_PASS=abc", "DB_PASS=[redacted]"),
        ("credentials: u1:p2", "credentials: [redacted]"),
        ("printf 'password=abc\\nuser=x'", "printf 'password=[redacted]\\nuser=x'"),
    ]);
}

#[test]
fn flags_headers_and_urls() {
    becomes(&[
        ("mysql --password hunter2 db", "mysql --password [redacted] db"),
        ("gh auth --token=abc x", "gh auth --token=[redacted] x"),
        ("app --api-key 'a b' -v", "app --api-key '[redacted]' -v"),
        ("tool -token abc", "tool -token [redacted]"),
        (r#"["--password", "hunter2"]"#, r#"["--password", "[redacted]"]"#),
        ("curl -u bob:hunter2 https://x", "curl -u bob:[redacted] https://x"),
        ("curl -s -ubob:hunter2 https://x", "curl -s -ubob:[redacted] https://x"),
        ("curl --user 'bob:h u' https://x", "curl --user 'bob:[redacted]' https://x"),
        ("sshpass -p abc ssh h", "sshpass -p [redacted] ssh h"),
        ("curl -H 'Authorization: Bearer abc.def' https://x", "curl -H 'Authorization: Bearer [redacted]' https://x"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"),
        ("authorization: token abc\nnext", "authorization: token [redacted]\nnext"),
        (r#"{"Authorization": "Bearer abc"}"#, r#"{"Authorization": "Bearer [redacted]"}"#),
        (
            "Proxy-Authorization: Digest username=\"u1\", response=\"0f\"\nnext",
            "Proxy-Authorization: Digest [redacted]\nnext",
        ),
        ("got Bearer abcdef123456, thanks", "got Bearer [redacted], thanks"),
        ("postgres://bob:hunter2@db:5432/app", "postgres://bob:[redacted]@db:5432/app"),
        ("git clone https://u:p@ss@github.com/a/b", "git clone https://u:[redacted]@github.com/a/b"),
        ("redis://:secret@h", "redis://:[redacted]@h"),
        ("mongodb://u:a/b@h/db", "mongodb://u:[redacted]@h/db"),
        ("https://h/p?a=1&token=abc&b=2#f", "https://h/p?a=1&token=[redacted]&b=2#f"),
        ("https://h/b?sv=1&sig=a%2Bb%3D", "https://h/b?sv=1&sig=[redacted]"),
        ("https://h/?key=AbC123", "https://h/?key=[redacted]"),
        (
            "https://h/?X-Amz-Credential=A%2F1&X-Amz-Signature=0f1e",
            "https://h/?X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]",
        ),
    ]);
}

#[test]
fn what_the_user_marked_is_not_kept() {
    becomes(&[
        ("a <private>b\nc</private> d", "a [redacted] d"),
        ("a <PRIVATE>b</Private> d <private>e", "a [redacted] d [redacted]"),
        ("<private></private>", "[redacted]"),
        ("a <b> private", "a <b> private"),
    ]);
}

#[test]
fn ordinary_text_stays() {
    for text in [
        "",
        "the token budget is 10M",
        "password reset flow",
        "max_tokens: 100",
        "max_tokens=4096, total_tokens: 123456",
        "token: 5 left",
        "token_count=123456789",
        "password_reset_url: https://h/reset",
        "auth: fix the refresh of tokens",
        "fix(auth): token refresh",
        "secret: it was me all along",
        "The secret sauce. The key: patience",
        "password: string;",
        "pub password: Option<String>,",
        "pub token: &str,",
        "let token = lexer.next_token();",
        "let token = parser.current;",
        "if token == expected { secret != other }",
        "token::Kind and auth::login",
        "export TOKEN=$GITHUB_TOKEN",
        "PASSWORD=\"${DB_PASSWORD}\"",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "password=<your password>",
        "const key = process.env.API_KEY",
        "api_key = os.environ['API_KEY']",
        "--password is required, --token or --user",
        "docker login --password-stdin",
        "docker run -u 1000:1000 image",
        "PWD=/home/user OLDPWD=/tmp",
        "https://example.com:8080/path?a=b&c=d",
        "http://localhost:3000/@scope/pkg",
        "git@github.com:owner/repo.git",
        "sk-learn and task-force, risk-averse1234",
        "npm_config_registry npm_lifecycle_event_is_long",
        "pass=12 fail=0, PASS: 3",
        "Authorization: Bearer tokens are checked",
        "-H \"Authorization: Bearer $TOKEN\"",
        "Basic usage and bearer tokens",
        "key=value, foreign key: user_id",
        "commit 0f1e2d3c4b5a69788796a5b4c3d2e1f001234567",
        "error code: 404, exit code=1",
        "signature: fn(a) -> b",
        "eyJ is how it begins",
        "目標: パスワード 変更",
        "[redacted] password=[redacted], --token [redacted]",
    ] {
        assert!(matches!(redact(text), Cow::Borrowed(same) if same == text), "{text:?} became {:?}", redact(text));
    }
}

#[test]
fn a_text_full_of_secrets_does_not_grow_without_end() {
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
            "hunter2", "key", "api ", "sshpass -p ", "Digest ", "%", "#", "_", "-",
        ]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9]{1,24}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn redacting_is_done_once_and_never_panics(text in pieces()) {
        let clean = redact(&text).into_owned();
        prop_assert!(clean.len() <= text.len() + GROWTH_MAX + MARK.len());
        prop_assert_eq!(redact(&clean), clean.clone(), "from {:?}", text);
    }

    #[test]
    fn a_named_secret_never_survives(secret in "[a-z]{3}[0-9]{3}[A-Za-z0-9+/_.!@#%^*-]{0,20}[a-z0-9]", quote in prop::sample::select(vec!["", "\"", "'"])) {
        let text = format!("run it: export MY_PASSWORD={quote}{secret}{quote} and go");
        prop_assert_eq!(redact(&text), format!("run it: export MY_PASSWORD={quote}[redacted]{quote} and go"));
    }
}
