//! Secrets in sentences and in other languages: `the password is …`, `login me password …`, `密码：…`. A sentence goes
//! on in many ways behind these words, so only what no sentence has is taken for a secret.

use std::ops::Range;

use super::after;
use super::names::Grade;
use super::plain::{is_code, is_ordinary, is_reference, is_sentence, looks_random};
use super::values::{ends_clause, value_at};
use super::{MARK, before};

/// What a password is called where names are not made of plain letters.
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
/// How such a name goes on behind the plain letters it begins with.
const GOES_ON: [(&str, &str); 4] = [("contrase", "ña"), ("contrase", "n\u{303}a"), ("has", "ło"), ("l", "ösenord")];

/// Where the name of a password ends that begins with a letter of another script.
pub(super) fn foreign_name(text: &str, at: usize) -> Option<usize> {
    let rest = after(text, at);
    FOREIGN.iter().find(|name| rest.starts_with(**name)).map(|name| at + name.len())
}

/// Where the name of a password ends whose first letters are plain and end at `end`.
pub(super) fn half_foreign_name(text: &str, run: &str, end: usize) -> Option<usize> {
    let rest = after(text, end);
    GOES_ON.iter().find_map(|(begin, more)| {
        (rest.starts_with(more) && run.eq_ignore_ascii_case(begin)).then_some(end + more.len())
    })
}

/// `the password is …`; `end` is where the name ends.
pub(super) fn said(text: &str, end: usize, grade: Grade) -> Option<Range<usize>> {
    const VERBS: [&str; 11] = [" is ", " is: ", " was ", " ist ", " est ", " es ", "是", "为", "為", "は", " (is) "];
    if !matches!(grade, Grade::Strong | Grade::Token) {
        return None;
    }
    let rest = after(text, end);
    let verb = VERBS.iter().find(|verb| rest.starts_with(**verb))?;
    let skipped = after(rest, verb.len());
    let start = text.len() - skipped.trim_start_matches([' ', ':', '：']).len();
    let value = value_at(text, start)?;
    let word = text.get(value.range.clone())?;
    if word == MARK {
        return Some(value.range);
    }
    if is_reference(word) || is_ordinary(word) || word.contains(char::is_whitespace) {
        return None;
    }
    let numeric = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    let secret = if numeric {
        // `the password is 12 characters long`.
        word.len() >= if grade == Grade::Strong { 4 } else { 6 } && ends_clause(after(text, value.range.end))
    } else if value.quoted {
        looks_random(word) || (grade == Grade::Strong && word.len() >= 4)
    } else {
        // The name of a variable is not its value.
        looks_random(&word.replace('_', "")) && !is_code(word, after(text, value.range.end))
    };
    secret.then_some(value.range)
}

/// `login me password …`, as the file of passwords for FTP and HTTP has it, in one line or in several.
pub(super) fn of_netrc(text: &str, at: usize, name: &str, end: usize) -> Option<Range<usize>> {
    const PROSE: [&str; 12] = [
        "reset", "field", "fields", "form", "change", "check", "prompt", "manager", "hash", "policy", "recovery",
        "page",
    ];
    if name != "password" || !after(text, end).starts_with([' ', '\t']) {
        return None;
    }
    let mut words = before(text, at, 160).split_whitespace().rev();
    if words.nth(1) != Some("login") {
        return None;
    }
    let start = text.len() - after(text, end).trim_start_matches([' ', '\t']).len();
    let value = value_at(text, start)?;
    let word = text.get(value.range.clone())?;
    let rest = after(text, value.range.end);
    let goes_on = ["machine", "default", "account", "macdef"].iter().any(|next| rest.trim_start().starts_with(next));
    let plain = is_reference(word) || is_ordinary(word) || is_sentence(word) || PROSE.contains(&word);
    let secret = word == MARK || (!plain && (value.quoted || looks_random(word) || goes_on || ends_clause(rest)));
    secret.then_some(value.range)
}
