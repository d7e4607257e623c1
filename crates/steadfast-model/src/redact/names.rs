//! Which names announce a secret: `DB_PASSWORD`, `apiKey`, `x-auth-token`, but not `max_tokens` or `password_reset_url`.
//! The last word of a name decides, without qualifiers behind it.

use super::words::has;
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
    /// A key of something unknown: the value must look like a key.
    Key,
    /// A number of some digits.
    Pin,
    /// `Authorization`: a scheme, then the secret.
    Header,
    /// `Cookie`: pairs of names and secrets.
    Cookie,
}

/// Longer names are text without blanks.
const NAME_MAX: usize = 100;

const STRONG: &str = "password passwords passwd passphrase passcode secret secrets credential credentials creds apikey pw \
    psk mnemonic dockerconfigjson dockercfg passe passwort kennwort wachtwoord senha contrasena";
/// Also with something before them in the same word: `PGPASSWORD`.
const STRONG_ENDINGS: [&str; 6] = ["password", "passwd", "passphrase", "passwort", "secret", "apikey"];
/// A key of these is a secret: `API_KEY`, `sshkey`.
const KEYS: &str = "api access private secret signing encryption session master auth ssh service account storage deploy \
    consumer webhook shared rsa app client hmac preshared jwt token cookie crypto cipher license admin activation product \
    serial recovery";
/// A key of these finds something and hides nothing.
const PLAIN_KEYS: &str = "public pub publishable primary foreign partition sort cache row hash range index unique natural \
    composite candidate object map dict group order lookup routing message event translation i18n registry hot short \
    lock idempotency dedup site host known";
/// Cookies that are a session.
const SESSIONS: &str = "sessid phpsessid jsessionid sessionid aspsessionid";
const SEEDS: &str = "mfa totp otp wallet 2fa";
/// A `pat` of these is an access token, not a pattern.
const PATS: &str = "github gitlab gh azure devops access";
/// Words that may follow: `password_new`, `SECRET_KEY_BASE`.
const QUALIFIERS: &str = "value base old new prod production dev test staging live b64 base64 raw plain hash default \
    current string text data confirmation confirm again repeat main";
const LETTERS: [[u8; 3]; 25] = [
    *b"pas", *b"pwd", *b"sec", *b"tok", *b"cre", *b"aut", *b"key", *b"sig", *b"jwt", *b"cod", *b"sas", *b"coo",
    *b"ken", *b"wac", *b"sen", *b"con", *b"pat", *b"psk", *b"pin", *b"sal", *b"mne", *b"ses", *b"log", *b"see",
    *b"otp",
];

/// Names of passwords with letters outside ASCII.
const FOREIGN: &str = "密码|密碼|口令|パスワード|パスフレーズ|暗証番号|비밀번호|пароль|Пароль|ключ доступа|κωδικός|كلمة المرور|\
    contraseña|contrasen\u{303}a|hasło|lösenord";

pub(super) fn grade(name: &str) -> Option<Grade> {
    if !(2..=NAME_MAX).contains(&name.len()) || name == "OLDPWD" || !may_announce(name) {
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
        "id" if full.ends_with("_access_key_id") || full.ends_with("_private_key_id") => Grade::Strong,
        "jwt" if full == "_jwt" => Grade::Query,
        // In small letters it is the program.
        "sshpass" if name == "SSHPASS" => Grade::Strong,
        "token" | "jwt" => Grade::Token,
        "authorization" => Grade::Header,
        "pat" if name.contains("PAT") || has(PATS, previous) => Grade::Token,
        "cookie" | "cookies" if !qualified => Grade::Cookie,
        "key" if has(KEYS, previous) => Grade::Strong,
        "auth" | "pass" | "pwd" if !qualified => Grade::Weak,
        "key" if !previous.is_empty() && !has(PLAIN_KEYS, previous) => Grade::Key,
        "sig" | "signature" | "key" | "code" | "sas" if !qualified => Grade::Query,
        "salt" | "keystring" => Grade::Key,
        // The password of a paid Ruby gem is named after its server.
        "com" if name.ends_with("CONTRIBSYS__COM") => Grade::Strong,
        "login" if previous == "sonar" => Grade::Key,
        "session" if name.starts_with('_') => Grade::Key,
        "pin" | "otp" if !qualified => Grade::Pin,
        "seed" if has(SEEDS, previous) => Grade::Strong,
        word if has(SESSIONS, word) => Grade::Key,
        word if word.ends_with("token") => Grade::Token,
        word if has(STRONG, word) || STRONG_ENDINGS.iter().any(|end| word.ends_with(end)) => Grade::Strong,
        word if word.strip_suffix("key").is_some_and(|kind| has(KEYS, kind)) => Grade::Strong,
        _ => return None,
    })
}

/// `API key: …`: a name that is written as two words.
pub(super) fn spaced(text: &str, at: usize, name: &str) -> Option<Grade> {
    let kinds = match name {
        "key" | "Key" | "KEY" => KEYS,
        "seed" | "Seed" => SEEDS,
        "phrase" | "Phrase" => {
            let word = before(text, at, 24).strip_suffix(' ')?.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
            return has("seed recovery backup mnemonic secret wallet", word).then_some(Grade::Key);
        }
        "code" | "codes" => "recovery backup 2fa mfa otp totp",
        _ => return None,
    };
    let word = before(text, at, 24).strip_suffix(' ')?.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    has(kinds, word).then_some(Grade::Strong)
}

/// The end of the name whose first letter outside ASCII is at `at`.
pub(super) fn foreign(text: &str, at: usize) -> Option<usize> {
    FOREIGN.as_bytes().split(|byte| *byte == b'|').find_map(|name| {
        let (first, rest) = name.split_at_checked(name.iter().position(|byte| !byte.is_ascii())?)?;
        let found = after(text, at).as_bytes().starts_with(rest)
            && before(text, at, first.len()).as_bytes().eq_ignore_ascii_case(first);
        found.then(|| at + rest.len())
    })
}

/// Whether a name contains three letters of any name above. Most do not and need no further reading.
fn may_announce(name: &str) -> bool {
    let known = |letters: &[u8]| matches!(letters, [a, b, c] if LETTERS.contains(&[a | 0x20, b | 0x20, c | 0x20]));
    name.as_bytes().windows(3).any(known) || matches!(name.as_bytes(), [.., b'p' | b'P', b'w' | b'W'])
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
