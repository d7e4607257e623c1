//! What a text without quotes means: nothing, yes or no, a number, or itself.

use super::Yaml;

pub(super) fn value(text: &str) -> Yaml {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if text.is_empty() || text == "~" || is("null") {
        Yaml::Null
    } else if is("true") || is("false") {
        Yaml::Bool(is("true"))
    } else {
        number(text).map_or_else(|| Yaml::Text(text.to_owned()), Yaml::Number)
    }
}

fn number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let radix = match unsigned.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => return Some(sign * decimal(unsigned)?),
    };
    let digits = without_separators(unsigned.get(2..)?, radix)?;
    let shifted = |number: f64, digit: u32| number * f64::from(radix) + f64::from(digit);
    Some(sign * digits.chars().filter_map(|c| c.to_digit(radix)).fold(0.0, shifted))
}

fn decimal(unsigned: &str) -> Option<f64> {
    if unsigned.eq_ignore_ascii_case(".inf") {
        return Some(f64::INFINITY);
    }
    // Rust reads words such as `infinity` as numbers.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    without_separators(unsigned, 10).as_deref().unwrap_or(unsigned).parse().ok()
}

/// Digits without the `_` between some of them.
fn without_separators(text: &str, radix: u32) -> Option<String> {
    let is_whole = text.split('_').all(|part| !part.is_empty() && part.chars().all(|c| c.is_digit(radix)));
    is_whole.then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_told_from_texts() {
        for text in ["", "~", "null", "NULL"] {
            assert_eq!(value(text), Yaml::Null, "{text}");
        }
        assert_eq!((value("true"), value("False")), (Yaml::Bool(true), Yaml::Bool(false)));
        for (text, number) in [
            ("0", 0.0),
            ("-12", -12.0),
            ("+3", 3.0),
            ("007", 7.0),
            ("1_000_000", 1e6),
            ("0x1F", 31.0),
            ("-0o17", -15.0),
            ("0b1_0", 2.0),
            ("1.5", 1.5),
            (".5", 0.5),
            ("2e3", 2000.0),
            ("1e999", f64::INFINITY),
            ("-.inf", f64::NEG_INFINITY),
            ("123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890.0),
        ] {
            assert_eq!(value(text), Yaml::Number(number), "{text}");
        }
        for text in [
            "yes",
            "no",
            "on",
            "1.2.3",
            "2026-11-20",
            "12:30",
            "1_",
            "_1",
            "1__0",
            "0x",
            "0xg",
            "0o8",
            "inf",
            "infinity",
            "nan",
            ".nan",
            "+",
            "-",
            ".",
            "1e",
            "e5",
            "5k",
            "10%",
            "--1",
            "1_0.5",
        ] {
            assert_eq!(value(text), Yaml::Text(text.into()), "{text}");
        }
    }
}
