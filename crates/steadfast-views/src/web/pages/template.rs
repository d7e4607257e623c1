//! Templates and their filters. Whatever a template prints is made printable and escaped here, in one place; only charts
//! are markup already.

use std::sync::LazyLock;

use minijinja::value::Serde;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, HtmlEscape, UndefinedBehavior, Value, context, escape_formatter,
};
use serde::Serialize;
use steadfast_model::clock::{self, Millis};
use steadfast_model::{price, text};

const TEMPLATES: [(&str, &str); 12] = [
    ("actions.html", include_str!("../../../templates/actions.html")),
    ("first.html", include_str!("../../../templates/first.html")),
    ("goal.html", include_str!("../../../templates/goal.html")),
    ("help.html", include_str!("../../../templates/help.html")),
    ("macros.html", include_str!("../../../templates/macros.html")),
    ("need.html", include_str!("../../../templates/need.html")),
    ("now.html", include_str!("../../../templates/now.html")),
    ("page.html", include_str!("../../../templates/page.html")),
    ("run.html", include_str!("../../../templates/run.html")),
    ("search.html", include_str!("../../../templates/search.html")),
    ("trouble.html", include_str!("../../../templates/trouble.html")),
    ("usage.html", include_str!("../../../templates/usage.html")),
];

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

static ENVIRONMENT: LazyLock<Result<Environment<'static>, Error>> = LazyLock::new(environment);

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        Some(words) => escape_formatter(out, state, &Value::from(text::printable(words))),
        None if value.is_none() => Ok(()),
        None => escape_formatter(out, state, value),
    });
    // Nothing but a chart may be markup.
    environment.remove_filter("safe");
    environment.add_filter("ago", |at: &Value| moment(at).map(|at| ago(at, clock::now())));
    environment.add_filter("base", |path: String| base(&path));
    environment.add_filter("iso", |at: &Value| moment(at).map(clock::to_rfc3339));
    environment.add_filter("line", |words: String, most: usize| text::headline(&words, most));
    environment.add_filter("local", |at: &Value| moment(at).map(clock::to_local));
    environment.add_filter("long", |number: i64| text::thousands(number));
    environment.add_filter("number", |number: i64| text::short_number(number));
    environment.add_filter("part", |percent: i64| percent.clamp(0, 100));
    environment.add_filter("said", |sentence: String| said(&sentence));
    environment.add_filter("seg", |id: String| seg(&id));
    environment.add_filter("span", |seconds: i64| text::duration(seconds.max(0)));
    environment.add_filter("usd", |dollars: Option<f64>| text::cost(dollars.map(price::micros)));
    environment.add_filter("words", |name: String| name.replace('_', " "));
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// Renders a template; the error is for the one who changed the template.
pub(super) fn render(name: &str, values: &Value) -> Result<String, String> {
    let environment = ENVIRONMENT.as_ref().map_err(explain)?;
    environment.get_template(name).and_then(|template| template.render(values.clone())).map_err(|error| explain(&error))
}

fn explain(error: &Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The page that needs no template.
pub(super) fn broken(message: &str) -> String {
    let message = text::printable(message);
    format!("<!doctype html><meta charset=\"utf-8\"><title>Trouble</title><p>{}</p>", HtmlEscape(&message))
}

/// A read model as a value of templates.
pub(super) fn serde(model: &impl Serialize) -> Value {
    Value::from(Serde(model))
}

/// A chart, whose text is escaped already.
pub(super) fn chart(svg: String) -> Value {
    Value::from_safe_string(svg)
}

/// A part of an address.
pub(super) fn seg(words: &str) -> String {
    let mut encoded = String::with_capacity(words.len());
    for byte in words.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&text::hex(&[byte]).to_uppercase());
        }
    }
    encoded
}

/// A moment as models have it: steady milliseconds, or RFC 3339.
fn moment(at: &Value) -> Result<Millis, Error> {
    let parsed = at.as_str().map_or_else(|| at.as_i64(), clock::parse_rfc3339);
    parsed.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "this is no moment"))
}

/// `3 m ago`, `in 2 h`; the script keeps it up to date.
fn ago(at: Millis, now: Millis) -> String {
    let seconds = (now.saturating_sub(at)) / 1_000;
    let words = match seconds.abs() {
        span if span < MINUTE => format!("{span} s"),
        span if span < HOUR => format!("{} m", span / MINUTE),
        span if span < 2 * DAY => format!("{} h", span / HOUR),
        span => format!("{} d", span / DAY),
    };
    if seconds < 0 { format!("in {words}") } else { format!("{words} ago") }
}

/// A sentence in parts: commands stand between backticks, or are all of it up to a remark in parentheses.
fn said(sentence: &str) -> Value {
    let part = |is_code: bool, text: &str| context! { is_code, text };
    if sentence.starts_with("steadfast ") && !sentence.contains('`') {
        let (command, rest) = sentence.split_at(sentence.find(" (").unwrap_or(sentence.len()));
        return [part(true, command), part(false, rest)].into_iter().collect();
    }
    let parts = sentence.split('`').enumerate().filter(|(_, text)| !text.is_empty());
    parts.map(|(index, text)| part(index % 2 == 1, text)).collect()
}

/// The last part of a path.
fn base(path: &str) -> String {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_understood() {
        assert!(ENVIRONMENT.is_ok(), "{:?}", ENVIRONMENT.as_ref().err());
    }

    #[test]
    fn times_are_short_and_name_their_direction() {
        for (seconds, words) in [
            (0, "0 s ago"),
            (59, "59 s ago"),
            (60, "1 m ago"),
            (3_600, "1 h ago"),
            (47 * 3_600, "47 h ago"),
            (48 * 3_600, "2 d ago"),
            (-90, "in 1 m"),
        ] {
            assert_eq!(ago(1_000_000_000, 1_000_000_000 + seconds * 1_000), words);
        }
    }

    #[test]
    fn commands_in_a_sentence_are_code() {
        for (sentence, expected) in [
            ("type `a b` or `c`", vec![(false, "type "), (true, "a b"), (false, " or "), (true, "c")]),
            ("steadfast loop approve x (or reject)", vec![(true, "steadfast loop approve x"), (false, " (or reject)")]),
            ("continues now", vec![(false, "continues now")]),
            ("", vec![]),
        ] {
            let parts = serde_json::to_value(said(sentence)).unwrap();
            let parts = parts.as_array().unwrap().iter();
            let parts: Vec<_> =
                parts.map(|part| (part["is_code"].as_bool().unwrap(), part["text"].as_str().unwrap())).collect();
            assert_eq!(parts, expected);
        }
    }

    #[test]
    fn a_part_of_an_address_cannot_leave_its_place() {
        assert_eq!(seg("a b/../c?x#y\"é"), "a%20b%2F..%2Fc%3Fx%23y%22%C3%A9");
    }
}
