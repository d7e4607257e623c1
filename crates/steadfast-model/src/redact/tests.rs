//! Secrets that must be removed, and ordinary text that must not change.

use super::*;

fn becomes(cases: &[(&str, &str)]) {
    for (text, clean) in cases {
        assert_eq!(redact(text), *clean, "from {text:?}");
        assert_eq!(redact(clean), *clean, "again");
    }
}

#[test]
fn keys_are_recognized_by_their_shape() {
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
        "dckr_pat_AbCdEfGh-IjKlMnOpQrStUvWxYz0",
        "ya29.a0AfH6SMBx-abcdefghij.klmnopqr_stuv",
        "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",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "hvs.CAESIJlWh6fMZ9vGd5Jx0123456789",
        "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54",
        "lin_api_abcdefghijklmnopqrstuvwxyz0123456789ABCD",
        "dapi0123456789abcdef0123456789abcdef",
        "glptt-0123456789abcdef0123456789abcdef01234567",
        "dp.st.dev.abcdefghijklmnopqrstuvwxyz0123456789ABCD",
        "SK0123456789abcdef0123456789abcdef",
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
fn private_keys_are_removed_whole_even_when_cut_off() {
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
fn values_of_secret_names_are_removed() {
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
fn secrets_in_flags_headers_and_urls_are_removed() {
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
fn secrets_in_flags_of_programs_are_removed() {
    becomes(&[
        ("mysql -u root -pHunter2 db", "mysql -u root -p[redacted] db"),
        ("mysql -pS3cretPw1 db", "mysql -p[redacted] db"),
        ("mysqldump -uroot -p'Hun ter2' db > x", "mysqldump -uroot -p'[redacted]' db > x"),
        ("sudo docker exec db mariadb -pH!2 app", "sudo docker exec db mariadb -p[redacted] app"),
        ("mysqldump --password Hunter2 db", "mysqldump --password [redacted] db"),
        ("sshpass -pHunter2 ssh h", "sshpass -p[redacted] ssh h"),
        ("redis-cli -h h -a swordfish ping", "redis-cli -h h -a [redacted] ping"),
        ("zip -P swordfish out.zip a", "zip -P [redacted] out.zip a"),
        ("7z x -pswordfish a.7z", "7z x -p[redacted] a.7z"),
        ("ldapsearch -x -D cn=a -w swordfish", "ldapsearch -x -D cn=a -w [redacted]"),
        ("http -a bob:swordfish https://x", "http -a bob:[redacted] https://x"),
        ("openssl enc -aes-256-cbc -k swordfish -in a", "openssl enc -aes-256-cbc -k [redacted] -in a"),
        ("openssl enc -pass pass:swordfish -in a", "openssl enc -pass pass:[redacted] -in a"),
        ("openssl rsa -passin 'pass:sword fish' -in a", "openssl rsa -passin 'pass:[redacted]' -in a"),
        ("mongosh -u bob -p swordfish", "mongosh -u bob -p [redacted]"),
        ("docker login -u bob -p swordfish r.io", "docker login -u bob -p [redacted] r.io"),
        ("curl -sSu bob:swordfish https://x", "curl -sSu bob:[redacted] https://x"),
        ("curl \\\n  -u bob:swordfish x", "curl \\\n  -u bob:[redacted] x"),
        ("curl -b \"sid=abc; b=2\" https://x", "curl -b \"[redacted]\" https://x"),
        ("curl -b sid=abc https://x", "curl -b [redacted] https://x"),
        ("curl --cookie 'sid=abc' https://x", "curl --cookie '[redacted]' https://x"),
    ]);
}

#[test]
fn passwords_that_look_like_code_are_removed() {
    becomes(&[
        ("Server=db;Password=swordfish;Database=x", "Server=db;Password=[redacted];Database=x"),
        ("Server=db;Uid=sa;Pwd=swordfish;", "Server=db;Uid=sa;Pwd=[redacted];"),
        ("export PGPASSWORD=swordfish; psql", "export PGPASSWORD=[redacted]; psql"),
        ("DB_PASSWORD=correct.horse.battery", "DB_PASSWORD=[redacted]"),
        ("DB_PASS=correct.horse.battery", "DB_PASS=[redacted]"),
        ("PASSWORD=Tr0ub4dor(3)", "PASSWORD=[redacted]"),
        ("f(user=u, password=Tr0ub4dor(3))", "f(user=u, password=[redacted])"),
        ("PASSWORD=a<b>c", "PASSWORD=[redacted]"),
        ("PASSWORD=[abc", "PASSWORD=[redacted]"),
        ("PASSWORD=&abc", "PASSWORD=[redacted]"),
        ("login --password correct.horse; ls", "login --password [redacted]; ls"),
        ("login --password=correct.horse; ls", "login --password=[redacted]; ls"),
    ]);
}

#[test]
fn passwords_in_operands_are_removed() {
    becomes(&[
        ("aws configure set aws_secret_access_key wJalrXUtnFEMI", "aws configure set aws_secret_access_key [redacted]"),
        (
            "aws configure set profile.prod.aws_session_token 'a b' --profile p",
            "aws configure set profile.prod.aws_session_token '[redacted]' --profile p",
        ),
        (
            "npm config set //registry.npmjs.org/:_authToken swordfish",
            "npm config set //registry.npmjs.org/:_authToken [redacted]",
        ),
        ("smbclient //h/s -U bob%swordfish -c ls", "smbclient //h/s -U bob%[redacted] -c ls"),
        ("smbclient -U 'DOM\\bob%sword fish' //h/s", "smbclient -U 'DOM\\bob%[redacted]' //h/s"),
        ("rpcclient --user=bob%swordfish h", "rpcclient --user=bob%[redacted] h"),
        ("lftp -u bob,swordfish sftp://h", "lftp -u bob,[redacted] sftp://h"),
    ]);
}

#[test]
fn cookies_webhooks_and_bot_tokens_are_removed() {
    becomes(&[
        ("Cookie: a=b1; c=d2\nnext", "Cookie: [redacted]\nnext"),
        ("< Set-Cookie: sid=abc; Path=/; HttpOnly\r\nnext", "< Set-Cookie: [redacted]\r\nnext"),
        ("curl -H 'Cookie: sid=abc; t=1' https://x", "curl -H 'Cookie: [redacted]' https://x"),
        (r#"{"set-cookie": ["sid=abc; Path=/"], "n": 1}"#, r#"{"set-cookie": ["[redacted]"], "n": 1}"#),
        (r#"{\"Cookie\": \"sid=abc\"}"#, r#"{\"Cookie\": \"[redacted]\"}"#),
        ("to https://hooks.slack.com/services/T0/B0/XyZ now", "to https://hooks.slack.com/services/[redacted] now"),
        ("https://discord.com/api/webhooks/12/aB-c_D.", "https://discord.com/api/webhooks/[redacted]."),
        ("https://discordapp.com/api/v10/webhooks/12/aB", "https://discordapp.com/api/v10/webhooks/[redacted]"),
        ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1 x", "123456789:[redacted] x"),
        (
            "https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/getMe",
            "https://api.telegram.org/bot123456789:[redacted]/getMe",
        ),
    ]);
}

#[test]
fn passwords_in_sentences_and_other_languages_are_removed() {
    becomes(&[
        ("the password is hunter2, use it", "the password is [redacted], use it"),
        ("The token is: aB3dE5", "The token is: [redacted]"),
        ("the password is `swordfish`.", "the password is `[redacted]`."),
        ("my password is 123456", "my password is [redacted]"),
        ("the API key is abc123 today", "the API key is [redacted] today"),
        ("machine h login me password swordfish", "machine h login me password [redacted]"),
        ("machine h\n  login me\n  password swordfish\n", "machine h\n  login me\n  password [redacted]\n"),
        ("pw: swordfish", "pw: [redacted]"),
        ("DB_PW=abc", "DB_PW=[redacted]"),
        ("Passwort: Schwertfisch", "Passwort: [redacted]"),
        ("das Passwort ist hunter2.", "das Passwort ist [redacted]."),
        ("contraseña: pezespada", "contraseña: [redacted]"),
        ("Contraseña=x1", "Contraseña=[redacted]"),
        ("mot de passe : espadon", "mot de passe : [redacted]"),
        ("Mot de passe\u{a0}: espadon", "Mot de passe\u{a0}: [redacted]"),
        ("密码：hunter2 用", "密码：[redacted] 用"),
        ("密码是hunter2", "密码是[redacted]"),
        ("パスワード: hunter2", "パスワード: [redacted]"),
        ("пароль: меч", "пароль: [redacted]"),
    ]);
}

#[test]
fn private_blocks_are_removed() {
    becomes(&[
        ("a <private>b\nc</private> d", "a [redacted] d"),
        ("a <PRIVATE>b</Private> d <private>e", "a [redacted] d [redacted]"),
        ("<private></private>", "[redacted]"),
        ("a <b> private", "a <b> private"),
    ]);
}

#[test]
fn ordinary_text_is_unchanged() {
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
        "connect(token=self.token, password=config.db_password)",
        "login(password=get_password(), token=getpass.getpass(\"> \"))",
        "<Login password={password} token={this.token} />",
        "password = get_password()",
        "def f(token: str, password: str) -> None:",
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
        "the password is wrong",
        "the password is 12 characters long",
        "the token is expired",
        "the token is user_id or DB_TOKEN",
        "the login page password reset",
        "-p 8080",
        "docker run -p 80:80 mysql -p80:80",
        "docker exec login-db run -p 8080",
        "mkdir -p src/a",
        "mysql -u root -p db",
        "mysql x && mkdir -psrc",
        "git clone https://x -a bob:y",
        "openssl rsa -key a.pem -passin env:PASS",
        "curl -b cookies.txt -u bob https://x",
        "gcloud --credentials creds.json, SSH_KEY=deploy.pem",
        "aws configure set region eu-west-1",
        "aws configure get aws_secret_access_key now",
        "aws configure set aws_secret_access_key $SECRET",
        "smbclient -U bob //h/s, smbclient -U bob%$PASS",
        "lftp -u bob sftp://h",
        "htpasswd -c .htpasswd bob and type it",
        "htpasswd -b is insecure. It shows what you type",
        "htpasswd -b f bob \"$PASS\"",
        "cookie recipe: flour",
        "Cookie: chocolate",
        "if (cookie == other) {}",
        "SG.x and dapi docs, SKIP, SKU0123, ya29.x",
        "12:34:56 and 123456:7",
        "[redacted] password=[redacted], --token [redacted]",
    ] {
        assert!(matches!(redact(text), Cow::Borrowed(same) if same == text), "{text:?} became {:?}", redact(text));
    }
}

mod commands;
mod corpus;
mod properties;
