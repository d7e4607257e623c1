//! Commands, settings and URLs with several kinds of secrets, and
//! ordinary ones that look similar.

use super::*;

/// Plain words and words with signs, as people choose them.
const WORDS: [&str; 4] = ["swordfish", "Tr0ub4dor&3", "correct-horse", "hunter2!"];

/// Every `{}` in these is a secret.
fn hides(templates: &[&str], secrets: &[(&str, &str)]) {
    let mut kept = Vec::new();
    for template in templates {
        for (secret, clean) in secrets {
            let text = template.replace("{}", secret);
            let expected = template.replace("{}", clean);
            for (text, case) in [(&text, "once"), (&expected, "again")] {
                let redacted = redact(text);
                if redacted != expected {
                    kept.push(format!("{case}: {text:?} became {redacted:?}, not {expected:?}"));
                }
            }
        }
    }
    assert!(kept.is_empty(), "{}", kept.join("\n"));
}

/// As words, and in quotes with blanks.
fn hides_words_and_quotations(templates: &[&str]) {
    hides(templates, &WORDS.map(|word| (word, MARK)));
    hides(templates, &[("'sword fish'", "'[redacted]'"), ("\"correct horse battery\"", "\"[redacted]\"")]);
}

#[test]
fn secrets_in_commands_are_removed() {
    hides_words_and_quotations(&[
        "npm config set //registry.npmjs.org/:_authToken {}",
        "npm config set //registry.npmjs.org/:_authToken={}",
        "pnpm config set --global _password {}",
        "npm set //registry.npmjs.org/:_authToken {}",
        "aws configure set aws_secret_access_key {} --profile p",
        "export GITHUB_PAT={}",
        "export MY_CREDS={} && run",
        "AZURE_DEVOPS_EXT_PAT={} az repos list",
        "heroku config:set API_TOKEN={} -a app",
        "gh secret set X --body {}",
        "gh secret set X -b {} --repo o/r",
        "gh secret set --body={} X",
        "vault kv put secret/x value={}",
        "vault kv put -mount=secret x user=bob value={}",
        "vault write secret/x value={} ttl=1h",
        "ssh-keygen -N {}",
        "ssh-keygen -t ed25519 -f k -N {} -C c",
        "ssh-keygen -p -P {} -N {} -f k",
        "echo {} | docker login --password-stdin",
        "echo {} | docker login -u bob --password-stdin r.io",
        "echo -n {} | sudo podman login r.io -u bob --password-stdin",
        "printf '%s' {} | docker login --password-stdin",
        "printf %s {} | helm registry login h --password-stdin",
        "echo {} |docker login --password-stdin && ls",
        "echo {} | gh auth login --with-token",
        "echo {} | gh secret set X",
        "echo {} | sudo -S ls",
        "echo {} | base64 -d | docker login --password-stdin",
        "echo {} \\\n  | docker login \\\n  --password-stdin",
        "sh -c 'echo {} | docker login --password-stdin'",
        "kubectl create secret generic x --from-literal=k={}",
        "kubectl create secret generic x --from-literal k={} -n a",
        "kubectl -n a create secret generic x --from-literal=user=bob --from-literal=k={}",
        "sshpass -p {} ssh h",
        "sshpass -p{} ssh h",
        "mysql -p{} db",
        "mysql -u root -p{}",
        "redis-cli -a {} ping",
        "redis-cli --pass {} ping",
        "PGPASSWORD={} psql -h h",
        "docker run -e DB_PASSWORD={} image",
        "docker run --env=DB_PASSWORD={} image",
        "curl --user admin:{} https://h",
        "curl -u admin:{} https://h",
        "curl --proxy-user admin:{} https://h",
        "wget --http-password={} https://h",
        "wget --user=bob --password {} https://h",
        "smbclient //h/s -U bob%{} -c ls",
        "lftp -u bob,{} sftp://h",
        "docker login -u bob -p {} r.io",
    ]);
}

#[test]
fn secrets_of_a_command_inside_another_are_removed() {
    becomes(&[
        ("docker exec db sh -c 'mysql -pS3cretPw1 db'; ls", "docker exec db sh -c 'mysql -p[redacted] db'; ls"),
        ("echo $(mysql -pSecret1 db)", "echo $(mysql -p[redacted] db)"),
        ("sudo /usr/bin/redis-cli -a swordfish ping", "sudo /usr/bin/redis-cli -a [redacted] ping"),
        (
            "kubectl exec p -- sh -c \"curl -u bob:hunter2 x | redis-cli -a abc1\"",
            "kubectl exec p -- sh -c \"curl -u bob:[redacted] x | redis-cli -a [redacted]\"",
        ),
        ("vault kv put x value=http", "vault kv put x value=[redacted]"),
    ]);
}

#[test]
fn secrets_in_quotations_are_removed() {
    hides(
        &[
            "curl --user \"admin:{}\" https://h",
            "psql \"password={} host=h\"",
            "psql \"host=h password={}\"",
            "psql 'host=h user=u password={} dbname=d'",
            "docker run -e \"DB_PASSWORD={}\" image",
            "kubectl create secret generic x --from-literal='k={}'",
            "kubectl create secret generic x --from-literal=\"k={}\"",
            "echo \"{}\" | docker login --password-stdin",
            "curl -H 'X-Api-Key: {}' https://h",
            "curl -H \"Authorization: Basic {}\" https://h",
            "curl -H 'Authorization: Bearer {}' https://h",
            "curl -H 'Authorization: {}' https://h",
            "openssl rsa -in a -passin pass:{} -out b",
            "openssl pkcs12 -export -passout pass:{}",
            "openssl pkcs12 -passin 'pass:{}' -passout \"pass:{}\"",
            "vault kv put secret/x 'value={}'",
            r#"{"client_secret": "{}", "n": 1}"#,
            r#"{"credentials":{"password":"{}"}}"#,
            "db:\n  password: {}\n  user: bob\n",
            "password: '{}'\nuser: bob",
            "machine h login u password {}",
            "machine h login u password {}\nmachine i login v password {}\n",
            "machine h\nlogin u\npassword {}\n",
        ],
        &WORDS.map(|word| (word, MARK)),
    );
    hides(
        &["openssl rsa -passin pass:{} -in a", "curl --user \"admin\":{} https://h", "curl -u \"$USER\":{} https://h"],
        &[("'sword fish'", "'[redacted]'"), ("\"correct horse\"", "\"[redacted]\"")],
    );
    hides(
        &[
            "docker run -e \"DB_PASSWORD={}\" -e X=1 image",
            "docker run -e 'DB_PASSWORD={}' image",
            "curl -H 'X-Api-Key: {}' https://h",
            "curl --header \"X-Api-Key: {}\" https://h",
            "kubectl create secret generic x --from-literal='k={}'",
            "vault kv put secret/x 'value={}' \"b={}\"",
            "smbclient -U 'bob%{}' //h/s",
            "{\"command\":\"curl --user admin:\\\"{}\\\" https://h\"}",
            "{\"command\":\"mysql -p\\\"{}\\\" db\"}",
            "curl -A 'X11; Linux | x' -u \"bob:{}\" https://h",
        ],
        &[("sword fish", MARK), ("Correct2 horse & battery", MARK)],
    );
}

#[test]
fn quotations_do_not_hide_the_end_of_a_command() {
    becomes(&[
        ("mysql -p'Hun ter2' db; mkdir -psrc", "mysql -p'[redacted]' db; mkdir -psrc"),
        ("mysql -pHunter2 -e 'a; b' -pX1 | mkdir -psrc", "mysql -p[redacted] -e 'a; b' -p[redacted] | mkdir -psrc"),
        ("curl -u \"bob\":'a b' x && git -u a:b", "curl -u \"bob\":'[redacted]' x && git -u a:b"),
        ("curl isn't here; mysql -pX1", "curl isn't here; mysql -p[redacted]"),
    ]);
}

#[test]
fn secrets_in_urls_are_removed() {
    hides(
        &[
            "git clone https://{}@github.com/o/r.git",
            "git clone https://user:{}@host/o/r.git",
            "git remote add origin https://user:{}@host/o/r.git",
            "fatal: unable to access 'https://{}@host/o/r.git/': 403",
            "origin\thttps://user:{}@host/o/r (fetch)",
            "url = https://{}@dev.azure.com/o/p",
            "postgres://user:{}@db:5432/x",
            "redis://:{}@h:6379",
            "https://{}:x-oauth-basic@github.com/o/r",
            "pip install --index-url https://{}@pypi.h/simple x",
        ],
        &["swordfish", "Tr0ub4dor&3", "correct-horse", "abc"].map(|word| (word, MARK)),
    );
    hides(&["git clone https://user:{}@h/o/r"], &[("p@ss", MARK), ("pa/ss1", MARK)]);
}

#[test]
fn private_tags_may_have_blanks() {
    becomes(&[
        ("a <private >b</private> c", "a [redacted] c"),
        ("a <PRIVATE>b</PRIVATE > c", "a [redacted] c"),
        ("a <private\n>b</private\n> c", "a [redacted] c"),
        ("a <private>b </private c", "a [redacted]"),
        ("a <private>b <private>c</private> d</private> e", "a [redacted] e"),
        ("a <private>everything\nbehind it", "a [redacted]"),
        ("ssh -i <private key> h <private>b</private> c", "ssh -i <private key> h [redacted] c"),
        ("<private>see <private key> b</private> c", "[redacted] c"),
        ("a <private", "a <private"),
        (
            "a <privateer>b</privateer> <private-key> <private_x>",
            "a <privateer>b</privateer> <private-key> <private_x>",
        ),
        ("a </private> b", "a </private> b"),
    ]);
}

#[test]
fn ordinary_commands_are_unchanged() {
    let kept: Vec<String> = [
        "git commit -m \"Fix password reset\"",
        "git commit -m 'Rotate the secret value=3'",
        "cargo test token_count",
        "let token = next_token();",
        "password: String",
        "docker run --user root image",
        "useradd --user root",
        "docker run --user 1000:1000 image",
        "ssh user@host",
        "git clone git@github.com:o/r.git",
        "git clone ssh://git@github.com/o/r.git",
        "git clone https://git@github.com/o/r.git",
        "https://example.org/@user/post",
        "https://example.org/a?mail=me@example.org",
        "npm config set registry https://registry.npmjs.org/",
        "npm config set //registry.npmjs.org/:always-auth true",
        "npm config get //registry.npmjs.org/:_authToken now",
        "set -x",
        "set -x\ncargo test",
        "set -e SECRET",
        "set -e SECRET OTHER_TOKEN",
        "set -e -g SECRET OTHER_TOKEN",
        "set -euo pipefail",
        "set --erase API_TOKEN now",
        "set -q API_TOKEN; or exit",
        "set -x PATH /usr/bin $PATH",
        "set -gx API_TOKEN $GITHUB_TOKEN",
        "set -gx API_TOKEN (pass show x)",
        "setx PATH C:\\bin",
        "setx API_KEY %API_KEY%",
        "value=3",
        "vault kv get secret/x",
        "in the vault module write a test with n=3",
        "vault kv put secret/x value=@file value=$SECRET value=-",
        "mysql -p",
        "mysql -p db",
        "mysql -u root -p",
        "grep -N pattern",
        "ssh-keygen -t ed25519 -N ''",
        "ssh-keygen -t ed25519 -N \"\" -f k",
        "ssh-keygen -N \"$PASS\" -f k",
        "docker login",
        "docker login r.io",
        "echo $TOKEN | docker login --password-stdin",
        "echo \"$TOKEN\" | docker login -u bob --password-stdin",
        "cat token.txt | docker login --password-stdin",
        "docker login --password-stdin < token.txt",
        "echo done | tee log",
        "echo hello; docker login --password-stdin",
        "echo a | grep b && docker login",
        "gh secret set X",
        "gh secret set X --body \"$VALUE\"",
        "gh secret list",
        "gh pr create --title t --body words",
        "kubectl create secret generic x --from-file=k=path",
        "kubectl create configmap x --from-literal=k=v",
        "kubectl create secret generic x --from-literal=k=$V",
        "openssl rsa -passin file:pw.txt -passout stdin",
        "redis-cli ping -a",
        "rsync -a src dst",
        "export PATH=/usr/bin CREDS=$CREDS",
        "pat=3 and PAT=$X",
        "the pattern: match, compat=true, dispatch: never",
        "git config --global user.name bob",
        "sudo -S ls",
        "set -x is on for SECRET handling",
        "set -gx PATH a SECRET b",
        "ssh -i <private key> host, <private key file>",
        "https://unpkg.com/react@18.2.0/umd and https://$TOKEN@github.com/o/r",
        "http://localhost:3000/@vite/client",
        "psql postgresql://bob@db/x",
        "the header \"Authorization: required\"",
        "{\"secrets\": {\n  \"n\": 1\n}}",
        "grep \"password=\" file.txt and 'token:' in it",
        "let url_pat = \"*.rs\";",
        "echo $(cat token) | docker login --password-stdin",
    ]
    .into_iter()
    .filter(|text| redact(text) != *text)
    .map(|text| format!("{text:?} became {:?}", redact(text)))
    .collect();
    assert!(kept.is_empty(), "{}", kept.join("\n"));
}
