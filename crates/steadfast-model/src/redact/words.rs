//! Word lists, and what is not a secret although it stands where one might: references, code, plain words.

/// References and code are short; anything longer counts as a secret.
const SHORT_MAX: usize = 256;

/// Stand for a value in types and settings.
const ORDINARY: &str = "true false null none nil undefined ok done yes no missing required optional invalid valid expired \
    string str &str number int integer bool boolean empty unset set redacted bytes any unknown object array char text \
    disabled enabled basic bearer changed failed passed found fixed same-origin include omit inherit oauth2 [hidden] !vault \
    text/plain 必須 必填 必填项 任意 필수 erforderlich requis obligatoire";
/// Follow the name of a flag in a sentence.
const SENTENCE: &str = "flag flags option options argument parameter or and is to for if in when with from as value was are \
    must should can on";
/// Begin an expression that reads a secret from elsewhere.
const SOURCES: [&str; 12] = [
    "${",
    "$(",
    "{{",
    "<%",
    "$_",
    "process.env",
    "os.environ",
    "os.getenv",
    "import.meta.env",
    "std::env",
    "env::var",
    "secrets.",
];
/// Variables in which programs keep their settings.
const HOLDERS: &str =
    "self this cls args opts options config cfg conf settings env ctx context req request params props";
const FILE_TYPES: &str = "pem key pub crt cer p12 pfx jks json toml yaml yml txt env asc";

/// Whether a list of words separated by blanks has this one, in any case.
pub(super) fn has(list: &str, word: &str) -> bool {
    // On bytes: this runs often, and `str::split` is several times slower.
    list.as_bytes().split(|byte| *byte == b' ').any(|known| known.eq_ignore_ascii_case(word.as_bytes()))
}

/// A variable, a call or a placeholder instead of the secret.
pub(super) fn is_reference(value: &str) -> bool {
    let value = value.trim();
    let variable = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let placeholder = |(open, close): (char, char)| {
        let inner = value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|inner| inner.chars().all(|c| c.is_alphanumeric() || " _-.:$|'\"[]()!".contains(c)))
    };
    value.len() <= SHORT_MAX
        && (value.strip_prefix('$').is_some_and(variable)
            || SOURCES.iter().any(|source| value.starts_with(source))
            || [('<', '>'), ('{', '}'), ('%', '%')].into_iter().any(placeholder)
            || value.chars().all(|c| "*.…xX•-_".contains(c)))
}

pub(super) fn is_ordinary(value: &str) -> bool {
    has(ORDINARY, value.trim().trim_matches('*'))
}

pub(super) fn is_sentence(word: &str) -> bool {
    word.starts_with('-') || has(SENTENCE, word)
}

/// A call, a type or the path of a variable.
pub(super) fn is_code(word: &str, rest: &str) -> bool {
    let named = |open: char, others: &[u8]| {
        let name = word.split_once(open).map(|(name, _)| name).filter(|name| !name.is_empty());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte)))
    };
    let path = word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_.:?".contains(&byte));
    let dotted = word.contains('.') || word.contains("::");
    word.len() <= SHORT_MAX
        && (named('(', b"_.:!")
            || named('<', b"_.:&")
            || named('[', b"_.")
            || word.starts_with(['&', '['])
            || (path && (dotted || rest.starts_with([';', '(']))))
}

/// Code that cannot be a password: `self.token`, `getpass("> ")`, `id.pem`.
pub(super) fn is_certainly_code(word: &str, rest: &str) -> bool {
    let path = |text: &str| {
        let name = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        text.split('.').all(name)
    };
    let field = word.split_once('.').is_some_and(|(holder, _)| has(HOLDERS, holder));
    let file = word.rsplit_once('.').is_some_and(|(_, kind)| has(FILE_TYPES, kind));
    let quoted_argument = || word.strip_suffix('(').filter(|_| rest.starts_with(['"', '\'']));
    let called = word.strip_suffix("()").or_else(quoted_argument);
    word.len() <= SHORT_MAX && (((field || file) && path(word)) || called.is_some_and(path))
}

/// Not a word of a dictionary: digits, signs, or capitals inside.
pub(super) fn looks_random(word: &str) -> bool {
    let bytes = word.as_bytes();
    let inner_capital =
        bytes.windows(2).any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    inner_capital
        || word.len() >= 24
        || bytes.iter().any(|byte| byte.is_ascii_digit() || b"+=!@#$%^&*~_".contains(byte))
}

pub(super) fn is_hex(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Looks as if drawn by lot: capitals, small letters and digits change more often than in any name.
pub(super) fn is_random(word: &str) -> bool {
    let (mut counts, mut changes, mut previous) = ([0_usize; 3], 0, 3);
    for byte in word.bytes() {
        let class = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            _ => 3,
        };
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
            changes += usize::from(previous < 3 && previous != class);
        }
        previous = class;
    }
    let letters: usize = counts.iter().sum();
    counts.iter().all(|count| *count >= 2) && changes * 100 >= letters * 40 && !is_hex(word)
}

/// Where something is, not what it is.
pub(super) fn is_path(word: &str) -> bool {
    let starts = ["/", "~/", "./", "../", "C:\\"].iter().any(|start| word.starts_with(start));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./\\-:~".contains(&byte);
    starts && word.len() > 4 && word.bytes().all(plain) && !is_random(word)
}

/// Letters and digits of some length, as keys have them.
pub(super) fn is_key(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-.:~!".contains(&byte);
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    word.len() >= 16 && word.bytes().all(plain) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}
