//! Secrets in the arguments of calls: `define('DB_PASSWORD', '…')`, `setPassword("…")`, `HTTPBasicAuth("bob", "…")`.

use std::ops::Range;

use super::words::{has, is_ordinary, is_reference, is_sentence};
use super::{after, before, window};

/// The last string in the arguments of these is a secret.
const LAST_STRING: &str = "HTTPBasicAuth BasicAuth HttpBasicAuth SetBasicAuth setBasicAuth basic_auth getConnection \
    NetworkCredential PasswordCredential UsernamePasswordCredentials BasicAWSCredentials AwsBasicCredentials PDO mysqli \
    mysql_connect mysqli_connect pg_connect ftp_login imap_open ldap_bind login signIn sign_in authenticate";
/// What tests type into the field of a name.
const TYPING: [&str; 5] = [".type(", ".fill(", ".send_keys(", ".sendKeys(", ".setValue("];
/// The third string in the arguments of these is one.
const THIRD_STRING: &str = "mysqli mysqli_connect mysqli_real_connect mysql_connect";
const FIELD_MAX: usize = 40;
const ARGUMENTS_MAX: usize = 512;

/// The secret in the call of a function with this name.
pub(super) fn of_function(text: &str, run: &str, end: usize) -> Option<Range<usize>> {
    let name = run.rsplit('.').next().filter(|_| after(text, end).starts_with('('))?;
    if has(THIRD_STRING, name)
        && let Some(third) = third_string(text, end + 1)
    {
        return Some(third);
    }
    // Most calls take no string last, which is quicker to see than the name.
    let found = last_string(text, end + 1)?;
    has(LAST_STRING, name).then_some(found)
}

/// The secret behind a name that is quoted as the first argument, or that is itself the name of a setter.
pub(super) fn of_name(text: &str, at: usize, end: usize, name: &str) -> Option<Range<usize>> {
    let rest = after(text, end);
    let last = name.rsplit('.').next()?;
    if let Some(arguments) = rest.strip_prefix('(') {
        let arguments = arguments.trim_start();
        if last.eq_ignore_ascii_case("auth") {
            return last_string(text, end + 1);
        }
        let lower = last.to_ascii_lowercase();
        let sets =
            lower.starts_with("set") || lower.starts_with("with") || last == "PASSWORD" || has("password secret", last);
        return sets.then(|| string(text, text.len() - arguments.len())).flatten().map(|(range, _)| range);
    }
    if last.eq_ignore_ascii_case("auth") {
        return rest.strip_prefix("=(").and_then(|_| last_string(text, end + 2));
    }
    if before(text, at, 1).starts_with(['#', '=', '"', '\'']) && before(text, at, 3) != "r=\"" {
        let near = window(text, end, FIELD_MAX);
        let typed = TYPING.iter().find_map(|verb| near.find(verb).map(|at| at + verb.len()));
        let argument =
            near.find("', '").or_else(|| near.find("\", \"")).filter(|_| !before(text, at, 1).starts_with(['"', '\'']));
        if let Some(start) = typed.or(argument.map(|at| at + 3)) {
            return string(text, end + start).map(|(range, _)| range);
        }
    }
    let variable =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    // `-define(PASSWORD, "…")`
    if let Some(behind) = rest.strip_prefix(", ").filter(|_| before(text, at, 1) == "(" && variable(name)) {
        return string(text, text.len() - behind.len()).map(|(range, _)| range);
    }
    // Names of variables are written in capitals; other words are only listed.
    let quote = before(text, at, 1).chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let behind = rest.strip_prefix(quote)?.strip_prefix(',')?.trim_start_matches([' ', '\t']);
    let (range, word) = string(text, text.len() - behind.len())?;
    (variable(name) && !variable(word)).then_some(range)
}

/// The quoted string at a position, if it may be a secret.
fn string(text: &str, at: usize) -> Option<(Range<usize>, &str)> {
    let rest = window(text, at, ARGUMENTS_MAX);
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let length = after(rest, 1).find([quote, '\n'])?;
    let word = text.get(at + 1..at + 1 + length)?;
    let prompt = word.ends_with([' ', ':', '>', '?']) && word.len() < 40;
    let secret = !word.is_empty() && !is_reference(word) && !is_ordinary(word) && !is_sentence(word) && !prompt;
    secret.then_some((at + 1..at + 1 + length, word))
}

/// The third of the strings that a call begins with.
fn third_string(text: &str, from: usize) -> Option<Range<usize>> {
    let arguments = window(text, from, ARGUMENTS_MAX).split([')', '\n']).next()?;
    let third = arguments.match_indices(',').nth(1).map(|(at, _)| after(arguments, at + 1).trim_start())?;
    string(text, from + arguments.len() - third.len()).map(|(range, _)| range)
}

/// The last string before the bracket closes; there must be an argument before it.
fn last_string(text: &str, from: usize) -> Option<Range<usize>> {
    let arguments = window(text, from, ARGUMENTS_MAX);
    let arguments = arguments.get(..arguments.find([')', '\n'])?)?;
    let comma = arguments.rfind(',')?;
    let last = after(arguments, comma + 1).trim_start();
    string(text, from + arguments.len() - last.len()).map(|(range, _)| range)
}
