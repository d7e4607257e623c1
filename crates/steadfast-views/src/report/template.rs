//! The templates of reports and their filters. All text is made printable, loses its secrets and is escaped here, in one
//! place; only charts and our own styles are markup already.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;
use steadfast_model::clock::{self, Millis};
use steadfast_model::redact::redact;
use steadfast_model::{price, text};

use super::ReportError;
use crate::chart;

const TEMPLATES: [(&str, &str); 5] = [
    ("report_checks.html", include_str!("../../templates/report_checks.html")),
    ("report_foot.html", include_str!("../../templates/report_foot.html")),
    ("report_goal.html", include_str!("../../templates/report_goal.html")),
    ("report_head.html", include_str!("../../templates/report_head.html")),
    ("report_run.html", include_str!("../../templates/report_run.html")),
];
const STYLE: &str = include_str!("../../templates/report.css");

pub(super) fn render(name: &str, values: Value) -> Result<String, ReportError> {
    let explain = |error: Error| ReportError(format!("{error:#}"));
    let environment = environment().map_err(explain)?;
    let template = environment.get_template(name).map_err(explain)?;
    template.render(values).map_err(explain)
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        Some(words) => escape_formatter(out, state, &Value::from(redact(&text::printable(words)).into_owned())),
        None if value.is_none() => Ok(()),
        None => escape_formatter(out, state, value),
    });
    // Nothing but a chart may be markup.
    environment.remove_filter("safe");
    environment.add_filter("base", |path: String| base(&path));
    environment.add_filter("hash", |hash: String| text::head(&hash, 12).to_owned());
    environment.add_filter("iso", |at: &Value| moment(at).map(clock::to_rfc3339));
    environment.add_filter("local", |at: &Value| moment(at).map(clock::to_local));
    environment.add_filter("long", |number: i64| text::thousands(number));
    environment.add_filter("number", |number: i64| text::short_number(number));
    environment.add_filter("seconds", |ms: i64| seconds(ms));
    environment.add_filter("span", |seconds: i64| text::duration(seconds.max(0)));
    environment.add_filter("usd", |dollars: Option<f64>| money(dollars));
    environment.add_filter("words", |name: String| name.replace('_', " "));
    environment.add_global("style", markup(format!("{}{STYLE}", chart::CSS)));
    environment.add_global("version", env!("CARGO_PKG_VERSION"));
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// A read model as a value of templates.
pub(super) fn serde(model: &impl Serialize) -> Value {
    Value::from(Serde(model))
}

/// A chart, whose text is escaped already.
pub(super) fn markup(markup: String) -> Value {
    Value::from_safe_string(markup)
}

pub(super) fn money(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| "unknown".to_owned(), |dollars| text::usd(price::micros(dollars)))
}

/// A moment as models have it: steady milliseconds, or RFC 3339.
fn moment(at: &Value) -> Result<Millis, Error> {
    let parsed = at.as_str().map_or_else(|| at.as_i64(), clock::parse_rfc3339);
    parsed.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "this is no moment"))
}

/// Milliseconds as `0.3 s`, or as a longer time.
fn seconds(ms: i64) -> String {
    let ms = ms.max(0);
    if ms < 60_000 { format!("{}.{} s", ms / 1_000, ms % 1_000 / 100) } else { text::duration(ms / 1_000) }
}

/// The last part of a path: where the project is on this machine does not concern a reader.
fn base(path: &str) -> String {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned()
}
