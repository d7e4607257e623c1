//! Which names say that their value is a secret: `DB_PASSWORD`, `apiKey`, `x-auth-token`, but not `max_tokens` or
//! `password_reset_url`. A name is taken apart into its words, and the last ones that matter decide.

/// How much a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    /// Whatever the value is, it is a secret.
    Strong,
    /// Short numbers are something else: `token: 5`.
    Token,
    /// A word with other meanings; the value must look like a secret.
    Weak,
    /// Only a secret in the query of a URL.
    Query,
    /// `Authorization`: a scheme, then the secret.
    Header,
    /// `Cookie`: pairs of names and secrets.
    Cookie,
}

/// Names longer than this are text that happens to have no blanks.
const NAME_MAX: usize = 100;
const WORDS_MAX: usize = 12;

/// Words behind the one that matters which leave it what it is: `password_new`, `SECRET_KEY_BASE`, `TOKEN_2`.
const QUALIFIERS: [&str; 26] = [
    "value",
    "base",
    "old",
    "new",
    "prod",
    "production",
    "dev",
    "test",
    "staging",
    "live",
    "b64",
    "base64",
    "raw",
    "plain",
    "hash",
    "default",
    "current",
    "string",
    "text",
    "data",
    "confirmation",
    "confirm",
    "again",
    "repeat",
    "main",
    "id",
];
/// What makes a key a secret one.
const KEYS: [&str; 19] = [
    "api",
    "access",
    "private",
    "secret",
    "signing",
    "encryption",
    "session",
    "master",
    "auth",
    "ssh",
    "service",
    "account",
    "storage",
    "deploy",
    "consumer",
    "webhook",
    "shared",
    "rsa",
    "app",
];

/// Whose `pat` is a token and no pattern, also where names are in lower case.
const ACCESS_OF: [&str; 6] = ["github", "gitlab", "gh", "azure", "devops", "access"];

pub(super) fn grade(name: &str) -> Option<Grade> {
    if name.len() < 2 || name.len() > NAME_MAX || matches!(name, "PWD" | "OLDPWD") {
        return None;
    }
    // Most names have none of these letters together; taking them apart is left to the few that do.
    if !may_matter(name) {
        return None;
    }
    let words = words(name);
    let mut last = words.len().checked_sub(1)?;
    while last > 0 && is_qualifier(words.get(last)?) {
        last -= 1;
    }
    let word = words.get(last)?.as_str();
    let before = last.checked_sub(1).and_then(|at| words.get(at)).map_or("", String::as_str);
    let qualified = last + 1 < words.len();
    match word {
        "password" | "passwords" | "passwd" | "passphrase" | "passcode" | "secret" | "secrets" | "credential"
        | "credentials" | "creds" | "apikey" | "pw" | "passwort" | "kennwort" | "wachtwoord" | "senha"
        | "contrasena" => Some(Grade::Strong),
        "token" if qualified && words.last().is_some_and(|word| word == "id") => None,
        "token" | "jwt" => Some(if word == "jwt" && words.len() == 1 { Grade::Query } else { Grade::Token }),
        "authorization" => Some(Grade::Header),
        "pat" => (name.contains("PAT") || ACCESS_OF.contains(&before)).then_some(Grade::Token),
        "cookie" | "cookies" if !qualified => Some(Grade::Cookie),
        "key" if KEYS.contains(&before) => Some(Grade::Strong),
        "auth" | "pass" | "pwd" if !qualified => Some(Grade::Weak),
        "sig" | "signature" | "key" | "code" | "sas" if !qualified => Some(Grade::Query),
        glued if glued.ends_with("token") => Some(Grade::Token),
        glued
            if ["password", "passwd", "passphrase", "passwort", "secret", "apikey"]
                .iter()
                .any(|end| glued.ends_with(end)) =>
        {
            Some(Grade::Strong)
        }
        glued => {
            let kind = glued.strip_suffix("key")?;
            KEYS.contains(&kind).then_some(Grade::Strong)
        }
    }
}

/// `API key: …`, `mot de passe : …`: a name of several words, as people write it.
pub(super) fn spaced_key(text: &str, at: usize, name: &str) -> Option<Grade> {
    let spaced = || super::before(text, at, 24).strip_suffix(' ');
    if name.eq_ignore_ascii_case("passe") {
        let ends = spaced()?.as_bytes();
        let words = ends.get(ends.len().checked_sub(6)?..)?;
        return words.eq_ignore_ascii_case(b"mot de").then_some(Grade::Strong);
    }
    if !name.eq_ignore_ascii_case("key") {
        return None;
    }
    let word = spaced()?.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    KEYS.iter().any(|kind| word.eq_ignore_ascii_case(kind)).then_some(Grade::Strong)
}

fn is_qualifier(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) || QUALIFIERS.contains(&word)
}

/// One quick look at every three letters; it may say yes too often.
fn may_matter(name: &str) -> bool {
    let name = name.as_bytes();
    let ends_in_pw = name.last_chunk::<2>().is_some_and(|end| end.eq_ignore_ascii_case(b"pw"));
    // Inside of names it is mostly a path.
    let ends_in_pat = name.last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b"pat"));
    ends_in_pw
        || ends_in_pat
        || name.windows(3).any(|letters| {
            let &[a, b, c] = letters else { return false };
            matches!(
                &[a | 0x20, b | 0x20, c | 0x20],
                b"pas"
                    | b"pwd"
                    | b"sec"
                    | b"tok"
                    | b"cre"
                    | b"aut"
                    | b"key"
                    | b"sig"
                    | b"jwt"
                    | b"cod"
                    | b"sas"
                    | b"coo"
                    | b"ken"
                    | b"wac"
                    | b"sen"
                    | b"con"
            )
        })
}

/// The words of a name in lower case: split at `_`, `-`, `.`, and where the case or the kind of character changes.
fn words(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, byte) in bytes.iter().copied().enumerate() {
        let previous = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b'_');
        let next = bytes.get(at + 1).copied().unwrap_or(b'_');
        let begins = (byte.is_ascii_uppercase() && previous.is_ascii_lowercase())
            || (byte.is_ascii_uppercase() && previous.is_ascii_uppercase() && next.is_ascii_lowercase())
            || (byte.is_ascii_digit() && previous.is_ascii_alphabetic() && !next.is_ascii_alphanumeric());
        if (begins || !byte.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if byte.is_ascii_alphanumeric() {
            word.push(byte.to_ascii_lowercase() as char);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    let extra = words.len().saturating_sub(WORDS_MAX);
    words.drain(..extra);
    words
}
