//! Secrets that are recognized by what stands around them: headers, cookies, URLs, sentences and `.netrc` files.

use std::ops::Range;

use super::names::Grade;
use super::values::{ends_clause, value_after, value_at};
use super::words::{has, is_code, is_ordinary, is_reference, looks_random};
use super::{after, before, is_run, window};

/// How far the `@` of a URL is searched.
const URL_MAX: usize = 1_024;
/// Schemes with several parts.
const SIGNED: &str = "Digest OAuth Hawk Signature AWS4-HMAC-SHA256 NTLM Negotiate";
/// Before `token`, where a parser speaks.
const PARSERS: &str = "unexpected expected next current last previous invalid unknown first each every";
const COOKIE_NAME_MAX: usize = 128;
/// User names in URLs that are not tokens.
const URL_USERS: &str = "git user username root admin anonymous hg svn oauth2 x-access-token www me";
/// Between the name of a password and its value in a sentence.
const VERBS: [&str; 12] =
    [" lautet ", " is ", " is: ", " was ", " ist ", " est ", " es ", "是", "为", "為", "は", " (is) "];

/// `Authorization: Bearer …`; the scheme stays.
pub(super) fn header(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    let value = value_after(text, end, false)?;
    let stop = if value.quoted { value.range.end } else { text.len() };
    let body = text.get(value.range.start..stop)?;
    let closes = |c: char| c == '\n' || (!value.quoted && matches!(c, '"' | '\'' | '`' | '\\'));
    let first_word = |text: &'_ str| text.find(|c: char| c.is_whitespace() || closes(c)).unwrap_or(text.len());
    let past_blanks = |text: &'_ str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let scheme = window(body, 0, first_word(body));
    if has(SIGNED, scheme) && !value.quoted {
        let line = window(body, 0, URL_MAX).split('\n').next()?.trim_end();
        let from = value.range.start + scheme.len() + 1;
        return (line.len() > scheme.len() + 1).then(|| from..value.range.start + line.len());
    }
    let gap = scheme.len() + past_blanks(after(body, scheme.len()));
    let has_scheme = first_word(after(body, gap)) > 0 && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
    let credentials = after(body, if has_scheme { gap } else { 0 });
    let word = window(credentials, 0, first_word(credentials)).trim_end_matches([',', ';', ')', '.']);
    let rest = after(credentials, word.len());
    let last = rest.trim_start_matches([' ', '\t']);
    // A sentence does not end here, nor is it quoted together with the name.
    let alone =
        (last.is_empty() || last.starts_with(closes)) && (has_scheme || before(text, at, 1).starts_with(['"', '\'']));
    // `headers['Authorization'] = authorization_header`
    let variable = !has_scheme
        && !value.quoted
        && word.contains('_')
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let opens = word.bytes().all(|byte| b"([{".contains(&byte));
    if opens || variable || is_reference(word) || is_ordinary(word) || !(looks_random(word) || alone) {
        return None;
    }
    let length = if value.quoted { credentials.len() } else { word.len() };
    let from = stop - credentials.len();
    Some(from..from + length)
}

/// `Bearer …` without its header.
pub(super) fn bearer(text: &str, end: usize) -> Option<Range<usize>> {
    let rest = after(text, end).strip_prefix(' ')?;
    let word = rest.split(|c: char| c.is_whitespace() || "\"'`,;)\\".contains(c)).next()?;
    let is_basic = before(text, end, 5).eq_ignore_ascii_case("basic");
    // Base64, not the name of a thing: `Basic ProxyAgent`.
    if is_basic
        && !(word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
            && word.bytes().any(|byte| byte.is_ascii_digit() || byte == b'='))
    {
        return None;
    }
    (word.len() >= 8 && looks_random(word) && !is_reference(word)).then_some(end + 1..end + 1 + word.len())
}

/// `Cookie: a=…; b=…` with its names, or `--cookie a=…`.
pub(super) fn cookie(text: &str, end: usize, flag: bool) -> Option<Range<usize>> {
    let rest = after(text, end);
    let bare = rest.trim_start_matches(['"', '\'', '`', '\\', ']']).trim_start_matches([' ', '\t']);
    let value = bare.strip_prefix([':', '=']).or_else(|| (flag && bare.len() < rest.len()).then_some(bare))?;
    let value = value.trim_start_matches([' ', '\t', '[']);
    let inner = value.trim_start_matches('\\').strip_prefix(['"', '\'', '`']);
    let one_word = flag && inner.is_none();
    let value = inner.unwrap_or(value);
    let name = value.bytes().take(COOKIE_NAME_MAX).take_while(|byte| is_cookie_name(*byte)).count();
    if !after(value, name).starts_with('=') {
        return None;
    }
    let ends = |c: char| matches!(c, '\n' | '"' | '\'' | '`' | '\\') || (one_word && c.is_whitespace());
    let cookies = value.get(..value.find(ends).unwrap_or(value.len()))?.trim_end();
    let start = text.len() - value.len();
    is_cookies(cookies).then_some(start..start + cookies.len())
}

/// Whether this is `name=value…`, not the path of a file.
pub(super) fn is_cookies(cookies: &str) -> bool {
    let Some((name, value)) = cookies.split_once('=') else { return false };
    let named = !name.is_empty() && name.bytes().all(is_cookie_name);
    named && !value.is_empty() && !value.starts_with(['=', '>', ' ']) && !is_reference(value) && !is_ordinary(value)
}

fn is_cookie_name(byte: u8) -> bool {
    is_run(byte) || b"%$!#*".contains(&byte)
}

/// `scheme://user:password@host`; `at` is the colon of the scheme.
pub(super) fn url_password(text: &str, at: usize) -> Option<Range<usize>> {
    let near = window(after(text, at).strip_prefix("://")?, 0, URL_MAX);
    memchr::memchr(b'@', near.as_bytes())?;
    let url = near.split(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).next()?;
    let authority = url.split(['/', '?', '#']).next()?;
    // A password may contain a slash; a port may not.
    let port = authority.split_once(':').map_or("", |(_, port)| port);
    let has_slash = !authority.contains('@') && port.bytes().any(|byte| !byte.is_ascii_digit());
    let scheme = before(text, at, 5).to_ascii_lowercase();
    let web = scheme == "https" || scheme.ends_with("http");
    // Paths of the web contain this sign; elsewhere the password may contain slashes and it.
    let whole = has_slash || (!web && authority.contains(':'));
    let (user, _) = if whole { url.split('?').next()? } else { authority }.rsplit_once('@')?;
    let (from, secret) = match user.split_once(':') {
        // Some services take a token as the user.
        Some((token, "" | "x-oauth-basic")) if web => (0, token),
        Some((name, password)) => (name.len() + 1, password),
        None if web && !has(URL_USERS, user) => (0, user),
        None if !web && user.len() >= 16 && looks_random(user) => (0, user),
        None => return None,
    };
    let start = at + 3 + from;
    (!secret.is_empty() && !is_reference(secret)).then_some(start..start + secret.len())
}

/// `the password is …`; the name ends at `end`.
pub(super) fn sentence(text: &str, end: usize, grade: Grade) -> Option<Range<usize>> {
    if !matches!(grade, Grade::Strong | Grade::Token) {
        return None;
    }
    let rest = after(text, end);
    // `The password for the server is …`
    let about = [" for ", " of ", " to "].iter().any(|word| rest.starts_with(word));
    let clause = window(rest, 0, ABOUT_MAX).split(['\n', ',', '.', ':', ';', '"']).next().filter(|_| about);
    let rest = clause.and_then(|clause| clause.find(" is ")).map_or(rest, |verb| after(rest, verb));
    let behind = VERBS.iter().find_map(|verb| rest.strip_prefix(verb))?;
    let value = value_at(text, text.len() - behind.trim_start_matches([' ', ':', '：']).len())?;
    let word = text.get(value.range.clone())?;
    if is_reference(word) || is_ordinary(word) || word.contains(char::is_whitespace) {
        return None;
    }
    let rest = after(text, value.range.end);
    let secret = if word.bytes().all(|byte| byte.is_ascii_digit() || b".,".contains(&byte)) {
        // `the password is 12 characters long`
        word.len() >= if grade == Grade::Strong { 4 } else { 6 } && ends_clause(rest)
    } else if value.quoted {
        looks_random(word) || (grade == Grade::Strong && word.len() >= 4)
    } else {
        // The name of a variable is not a secret.
        looks_random(&word.replace('_', "")) && !is_code(word, rest)
    };
    secret.then_some(value.range)
}

/// `machine h login me password …`, as `.netrc` has it.
pub(super) fn netrc(text: &str, at: usize, name: &str, end: usize) -> Option<Range<usize>> {
    let mut words = before(text, at, 160).split_whitespace().rev();
    if name != "password" || words.nth(1) != Some("login") || words.nth(1) != Some("machine") {
        return None;
    }
    let value = after(text, end).trim_start_matches([' ', '\t']);
    let value = value_at(text, text.len() - value.len())?;
    let word = text.get(value.range.clone())?;
    (!is_reference(word) && !is_ordinary(word)).then_some(value.range)
}

/// `unexpected token: …`
pub(super) fn is_syntax(text: &str, at: usize) -> bool {
    let word = before(text, at, 16).strip_suffix(' ').and_then(|words| words.rsplit([' ', '\n', '\t', '`']).next());
    word.is_some_and(|word| has(PARSERS, word))
}

const APART_MAX: usize = 300;
const ABOUT_MAX: usize = 48;

/// `password "…"`, `with password hunter2`: only a blank between a name and its value.
pub(super) fn apart(text: &str, at: usize, end: usize, grade: Grade) -> Option<Range<usize>> {
    let rest = after(text, end).strip_prefix([' ', '\t'])?.trim_start_matches([' ', '\t']);
    // `user bob pass …`
    let named =
        || before(text, at, 64).trim_end().rsplit(' ').nth(1).is_some_and(|word| has("user username login", word));
    if !(matches!(grade, Grade::Strong | Grade::Token) || (grade == Grade::Weak && named()))
        || before(text, at, 1).starts_with(['"', '\'', '`', '-', '<'])
    {
        return None;
    }
    // `Password for bob: …`
    if let Some(behind) = rest.strip_prefix("for ") {
        let (who, behind) = window(behind, 0, 64).split_once(": ")?;
        let start = text.len() - after(rest, 4 + who.len() + 2).len();
        let word = behind.split_whitespace().next()?;
        let plain = who.contains(char::is_whitespace) || is_ordinary(word) || is_reference(word) || !looks_random(word);
        return (!plain).then(|| start..start + word.len());
    }
    // `password 7 …`: the kind of a stored password.
    let kind = rest.strip_prefix(|c: char| c.is_ascii_digit()).and_then(|rest| rest.strip_prefix(' '));
    let rest = kind.unwrap_or(rest);
    let near = text.get(..text.floor_char_boundary(end + APART_MAX))?;
    let value = value_at(near, text.len() - rest.len())?;
    let word = near.get(value.range.clone())?;
    if is_reference(word) || is_ordinary(word) || word.contains(char::is_whitespace) || is_code(word, "") {
        return None;
    }
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let both = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let secret = if value.quoted {
        grade == Grade::Strong && word.len() >= 4 && !word.contains(['/', '{'])
    } else {
        let least = if grade == Grade::Token { 20 } else { 7 };
        both && word.len() >= least && !word.contains(['/', '(', '[', '{', '=', ':', '<', '_'])
    };
    secret.then_some(value.range)
}
