//! What is no secret although it stands where one might: references to variables, types, calls, and plain words.

/// References and code are short. What is longer is taken for a secret, so that nothing long is ever looked at twice.
const SHORT_MAX: usize = 256;

/// Not the secret itself, but where it comes from, or a place left for it.
pub(super) fn is_reference(value: &str) -> bool {
    if value.len() > SHORT_MAX {
        return false;
    }
    let value = value.trim();
    let name = |text: &str| {
        text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            && text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
    };
    let wrapped = |open: &str, close: &str| {
        value
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
            .is_some_and(|inner| inner.chars().all(|c| c.is_alphanumeric() || " _-.:$|'\"[]()".contains(c)))
    };
    value.strip_prefix('$').is_some_and(name)
        || [
            "${",
            "$(",
            "{{",
            "process.env",
            "os.environ",
            "os.getenv",
            "import.meta.env",
            "std::env",
            "env::var",
            "secrets.",
        ]
        .iter()
        .any(|start| value.starts_with(start))
        || wrapped("<", ">")
        || wrapped("{", "}")
        || wrapped("%", "%")
        || value.chars().all(|c| "*.…xX•-_".contains(c))
}

/// Words that stand for a value in prose, in types and in settings.
pub(super) fn is_ordinary(value: &str) -> bool {
    const WORDS: [&str; 44] = [
        "true",
        "false",
        "null",
        "none",
        "nil",
        "undefined",
        "ok",
        "done",
        "yes",
        "no",
        "missing",
        "required",
        "optional",
        "invalid",
        "valid",
        "expired",
        "string",
        "str",
        "&str",
        "number",
        "int",
        "integer",
        "bool",
        "boolean",
        "empty",
        "unset",
        "set",
        "redacted",
        "bytes",
        "any",
        "unknown",
        "object",
        "array",
        "char",
        "text",
        "disabled",
        "enabled",
        "basic",
        "bearer",
        "changed",
        "failed",
        "passed",
        "found",
        "fixed",
    ];
    WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Words that go on a sentence behind the name of a flag.
pub(super) fn is_sentence(word: &str) -> bool {
    const WORDS: [&str; 24] = [
        "flag",
        "flags",
        "option",
        "options",
        "argument",
        "parameter",
        "or",
        "and",
        "is",
        "to",
        "for",
        "if",
        "in",
        "when",
        "with",
        "from",
        "as",
        "value",
        "was",
        "are",
        "must",
        "should",
        "can",
        "on",
    ];
    word.starts_with('-') || WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// A call, a type or the path of a variable, as programs have them.
pub(super) fn is_code(word: &str, rest: &str) -> bool {
    if word.len() > SHORT_MAX {
        return false;
    }
    let path = word.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b':' | b'?'));
    let dotted = word.contains('.') || word.contains("::");
    let called = word.find('(').is_some_and(|at| {
        at > 0
            && word
                .get(..at)
                .is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:!".contains(&b)))
    });
    let generic = word.find('<').is_some_and(|at| {
        at > 0
            && word
                .get(..at)
                .is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:&".contains(&b)))
    });
    called
        || generic
        || word.starts_with(['&', '['])
        || (path && (dotted || rest.starts_with(';') || rest.starts_with('(')))
}

/// What nobody has for a password: a call without arguments or of a quoted one, a field of what programs keep their
/// settings in, and the file of a key (`token=self.token`, `password=getpass("> ")`, `SSH_KEY=id.pem`).
pub(super) fn is_certainly_code(word: &str, rest: &str) -> bool {
    const HOLDERS: [&str; 17] = [
        "self", "this", "cls", "args", "opts", "options", "config", "cfg", "conf", "settings", "env", "ctx", "context",
        "req", "request", "params", "props",
    ];
    const FILES: [&str; 15] =
        ["pem", "key", "pub", "crt", "cer", "p12", "pfx", "jks", "json", "toml", "yaml", "yml", "txt", "env", "asc"];
    if word.len() > SHORT_MAX {
        return false;
    }
    let path = |text: &str| {
        let name = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
        text.split('.').all(name)
    };
    let held = word.split_once('.').is_some_and(|(holder, _)| HOLDERS.contains(&holder)) && path(word);
    let file = word.rsplit_once('.').is_some_and(|(_, kind)| FILES.contains(&kind)) && path(word);
    let called = word
        .strip_suffix("()")
        .or_else(|| word.strip_suffix('(').filter(|_| rest.starts_with(['"', '\''])))
        .is_some_and(path);
    held || file || called
}

/// Something no dictionary has: digits, signs, or capitals inside.
pub(super) fn looks_random(word: &str) -> bool {
    let bytes = word.as_bytes();
    let inner_capital =
        bytes.windows(2).any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    bytes.iter().any(u8::is_ascii_digit)
        || inner_capital
        || word.len() >= 24
        || bytes.iter().any(|byte| b"+=!@#$%^&*~_".contains(byte))
}
