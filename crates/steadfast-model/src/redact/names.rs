//! Which names announce a secret: `DB_PASSWORD`, `apiKey`, `x-auth-token`, but not `max_tokens` or `password_reset_url`.
//! The last word of a name decides, without qualifiers behind it.

use super::words::{LetterSet, has};
use super::{after, before};

/// How certain a name is about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    /// Every value is a secret.
    Strong,
    /// Short numbers are not: `token: 5`.
    Token,
    /// The word has other meanings; the value must look like a secret.
    Weak,
    /// A secret only in the query of a URL.
    Query,
    /// `Authorization`: a scheme, then the secret.
    Header,
    /// `Cookie`: pairs of names and secrets.
    Cookie,
}

/// Longer names are text without blanks.
const NAME_MAX: usize = 100;

const STRONG: &str = "password passwords passwd passphrase passcode secret secrets credential credentials creds apikey pw \
    passwort kennwort wachtwoord senha contrasena";
/// Also with something before them in the same word: `PGPASSWORD`.
const STRONG_ENDINGS: [&str; 6] = ["password", "passwd", "passphrase", "passwort", "secret", "apikey"];
/// A key of these is a secret: `API_KEY`, `sshkey`.
const KEYS: &str = "api access private secret signing encryption session master auth ssh service account storage deploy \
    consumer webhook shared rsa app";
/// A `pat` of these is an access token, not a pattern.
const PATS: &str = "github gitlab gh azure devops access";
/// Words that may follow: `password_new`, `SECRET_KEY_BASE`.
const QUALIFIERS: &str = "value base old new prod production dev test staging live b64 base64 raw plain hash default \
    current string text data confirmation confirm again repeat main id";
/// Three letters that every name above contains. Most names contain none of them and need no further reading.
static LETTERS: LetterSet = LetterSet::new(&["pas pwd sec tok cre aut key sig jwt cod sas coo ken wac sen con pw pat"]);

/// Names of passwords that begin with a letter outside ASCII.
const FOREIGN: [&str; 12] = [
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "パスフレーズ",
    "暗証番号",
    "비밀번호",
    "пароль",
    "Пароль",
    "ключ доступа",
    "κωδικός",
    "كلمة المرور",
];
/// Names of passwords that begin in ASCII.
const HALF_FOREIGN: [(&str, &str); 4] =
    [("contrase", "ña"), ("contrase", "n\u{303}a"), ("has", "ło"), ("l", "ösenord")];

pub(super) fn grade(name: &str) -> Option<Grade> {
    if !(2..=NAME_MAX).contains(&name.len()) || matches!(name, "PWD" | "OLDPWD") || !LETTERS.occur_in(name) {
        return None;
    }
    let full = snake_case(name);
    let mut kept = full.as_str();
    while let Some((head, last)) = kept.rsplit_once('_')
        && !head.is_empty()
        && (has(QUALIFIERS, last) || last.bytes().all(|byte| byte.is_ascii_digit()))
    {
        kept = head;
    }
    let qualified = kept.len() < full.len();
    let (head, word) = kept.rsplit_once('_')?;
    let previous = head.rsplit('_').next().unwrap_or_default();
    Some(match word {
        "token" if full.ends_with("_id") => return None,
        "jwt" if full == "_jwt" => Grade::Query,
        "token" | "jwt" => Grade::Token,
        "authorization" => Grade::Header,
        "pat" if name.contains("PAT") || has(PATS, previous) => Grade::Token,
        "cookie" | "cookies" if !qualified => Grade::Cookie,
        "key" if has(KEYS, previous) => Grade::Strong,
        "auth" | "pass" | "pwd" if !qualified => Grade::Weak,
        "sig" | "signature" | "key" | "code" | "sas" if !qualified => Grade::Query,
        word if word.ends_with("token") => Grade::Token,
        word if has(STRONG, word) || STRONG_ENDINGS.iter().any(|end| word.ends_with(end)) => Grade::Strong,
        word if word.strip_suffix("key").is_some_and(|kind| has(KEYS, kind)) => Grade::Strong,
        _ => return None,
    })
}

/// `API key: …`, `mot de passe : …`: names that are written as several words.
pub(super) fn spaced(text: &str, at: usize, name: &str) -> Option<Grade> {
    let kinds = match name.len() {
        3 if name.eq_ignore_ascii_case("key") => KEYS,
        5 if name.eq_ignore_ascii_case("passe") => "de",
        _ => return None,
    };
    let words = before(text, at, 24).strip_suffix(' ')?;
    let word = words.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let whole = kinds != "de" || words.to_ascii_lowercase().ends_with("mot de");
    (whole && has(kinds, word)).then_some(Grade::Strong)
}

/// The end of a name that begins with a letter outside ASCII.
pub(super) fn foreign(text: &str, at: usize) -> Option<usize> {
    FOREIGN.iter().find(|name| after(text, at).starts_with(**name)).map(|name| at + name.len())
}

/// The end of a name whose first letters are the run that ends at `end`.
pub(super) fn half_foreign(text: &str, run: &str, end: usize) -> Option<usize> {
    let rest = after(text, end);
    let is_whole = |(first, more): &&(&str, &str)| rest.starts_with(more) && run.eq_ignore_ascii_case(first);
    HALF_FOREIGN.iter().find(is_whole).map(|(_, more)| end + more.len())
}

/// `dbPassword2` as `_db_password_2`.
fn snake_case(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut words = String::with_capacity(name.len() + 8);
    for (at, byte) in bytes.iter().copied().enumerate() {
        let previous = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b'_');
        let next = bytes.get(at + 1).copied().unwrap_or(b'_');
        let begins = !previous.is_ascii_alphanumeric()
            || (byte.is_ascii_uppercase() && (previous.is_ascii_lowercase() || next.is_ascii_lowercase()))
            || (byte.is_ascii_digit() && previous.is_ascii_alphabetic() && !next.is_ascii_alphanumeric());
        if byte.is_ascii_alphanumeric() {
            if begins {
                words.push('_');
            }
            words.push(byte.to_ascii_lowercase() as char);
        }
    }
    words
}
